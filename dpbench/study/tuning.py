"""The rule that settings are chosen by: for the "best" of a grid, among the rows that exist, and in tables and figures.

Settings are compared on the seeds that all of them have, by their mean excess loss; this is not private. Held out, they
are chosen on one half of these seeds and the winner is scored on its others, so that the score has not the optimism of
a minimum.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec
import numpy as np
import pandas as pd

from dpbench import algorithms
from dpbench.algorithms.base import make_settings
from dpbench.run import outcomes
from dpbench.run.job import JSON, keys_like, make_job
from dpbench.run.outcomes import RESULTS
from dpbench.run.row import settings_of
from dpbench.run.store import Store
from dpbench.study.statistics import excess, means

Setting = TypeVar("Setting", bound=Hashable)


Split: TypeAlias = Literal["none", "halves"] | int  # see `choose`
# The same ε under another accounting is another amount of noise, so its runs are tuned apart.
IDENTITY = ["problem", "algorithm", "epsilon", "accounting"]


def choose(losses: Mapping[Setting, Mapping[int, Any]], split: Split = "none") -> tuple[Setting, int, list[int]] | None:
    """(setting, member of its sweep, seeds to score it on) from setting → {seed: (m,) excess}; None without losses.

    The lowest mean over the seeds that all settings have, the first of equals; one with a NaN is infinite. A setting
    with less than half the seeds of another, and fewer than five, is not compared: its grid is still being run.

    Args:
        losses: what is compared.
        split: "none" scores the winner on all of its seeds; "halves" compares on every other shared seed, a number on
            those below it. Then the score is over the winner's other seeds, or where there are none on the same.
    """
    enough = min(5, max(map(len, losses.values()), default=0) / 2)
    compared = {setting: seeds for setting, seeds in losses.items() if seeds and len(seeds) >= enough}
    shared = sorted(set.intersection(*map(set, compared.values()))) if compared else []
    seen = [seed for seed in shared if seed < split] if isinstance(split, int) else shared[:: 1 + (split == "halves")]
    if not seen:
        return None
    averages = {}
    with np.errstate(over="ignore"):  # sums of nearly diverged runs may become infinite
        for setting, seeds in compared.items():
            mean = np.add.reduce([seeds[one] for one in seen]) / len(seen)
            averages[setting] = np.where(np.isnan(mean), math.inf, mean) if math.isnan(mean.min()) else mean
    winner = min(averages, key=lambda setting: averages[setting].min())
    # The winner may have seeds that others lack: they had no part in the choice, so they score too.
    rest = sorted(set(compared[winner]).difference(() if split == "none" else seen))
    return winner, int(averages[winner].argmin()), rest or seen


class RunColumns(NamedTuple):
    """What of the runs' rows decides on what else is to run: columns of the store, with an entry per row."""

    key: list[str]
    problem: list[str]
    algorithm: list[str]
    epsilon: list[float]
    seed: list[int]
    settings: list[str]
    sweep: list[str | None]
    status: list[str]
    timed: list[int]
    excess: list[float | None]
    values: list[np.ndarray | None]
    ending: list[str | None]


def columns_of(store: Store) -> RunColumns:
    """Of the rows there are."""
    return RunColumns(*store.lists(*RunColumns._fields))


class Tuner:
    """The best settings among some rows. A single run is a sweep over nothing."""

    def __init__(self, columns: RunColumns) -> None:
        self._columns = columns
        # With results, of (problem, algorithm, ε).
        self._rows: dict[tuple[str, str, float], list[int]] = defaultdict(list)
        self._tried = functools.cache(self._rows_with_results)
        excess = np.array(columns.excess, dtype=float)  # NaN where there is none
        without = np.isnan(excess) | (np.array(columns.status, dtype=object) == "diverged")
        self._excess: list[float] = np.where(without, math.inf, excess).tolist()
        usable = {status: status in RESULTS for status in {*columns.status}}
        combinations = zip(columns.problem, columns.algorithm, columns.epsilon, strict=True)
        for row, (at, timed, status) in enumerate(zip(combinations, columns.timed, columns.status, strict=True)):
            if timed == 0 and usable[status]:
                self._rows[at].append(row)

    def _rows_with_results(self, at: tuple[str, str, float]) -> dict[tuple[str, str], list[int]]:
        """(settings, sweep) → the rows with a result, of (problem, algorithm, ε), by seed."""
        settings, sweep, tried = self._columns.settings, self._columns.sweep, defaultdict(list)
        for row in sorted(self._rows.get(at, ()), key=self._columns.seed.__getitem__):  # a plan has those keys
            tried[settings[row], sweep[row] or ""].append(row)
        return tried

    def best(
        self,
        problem: str,
        algorithm: str,
        epsilon: float,
        fixed: dict[str, Any],
        tuned: Sequence[str],
        split: Split = "none",
        **terms: Any,
    ) -> dict[str, Any] | None:
        """Values of the `tuned` settings that `choose` takes, or None if there are no rows.

        algorithm may be an alias. Only rows count that differ from `fixed` and the defaults in the tuned settings alone
        (their keys tell): a sweep over another setting does not decide here. A diverged run, or NaN, is infinite.
        """
        method, alias = algorithms.resolve(algorithm)
        given = make_settings(method, alias | fixed)
        job = make_job(problem=problem, algorithm=algorithm, epsilon=epsilon, seed=0, settings=fixed, **terms)
        shown = algorithms.display_name(algorithms.reference(algorithm)[0], given)
        losses: dict[tuple[tuple[Any, ...], str], dict[int, Any]] = defaultdict(dict)
        for (settings, sweep), rows in self._tried((problem, shown, epsilon)).items():
            axes, values = settings_of(sweep), settings_of(settings)
            # A sweep over another setting holds runs of other settings than are asked for.
            if not axes.keys() <= set(tuned):
                continue
            chosen = {name: values[name] for name in tuned if name not in axes}
            tried = msgspec.structs.replace(given, **chosen, **{name: each[0] for name, each in axes.items()})
            # The key of what the row should be: rows of other versions or accountings have other keys.
            key_of = keys_like(msgspec.structs.replace(job, settings=JSON.encode(tried).decode(), sweep=sweep))
            keys, sweeps, seeds = self._columns.key, self._columns.values, [self._columns.seed[row] for row in rows]
            found = zip(rows, seeds, key_of.of(seeds, [0]), strict=True)
            # (m,) of a sweep, with NaN where a member diverged; a number of a single run.
            excesses = {
                seed: self._excess[row] if sweeps[row] is None else sweeps[row]
                for row, seed, key in found
                if keys[row] == key
            }
            losses[tuple(chosen.values()), sweep] |= excesses
        choice = choose({at: losses[at] for at in sorted(losses, key=lambda at: at[0])}, split)
        if choice is None:
            return None
        (alone, sweep), member, _ = choice  # of equals the smallest
        axes, rest = settings_of(sweep), iter(alone)
        swept = dict(zip(axes, next(itertools.islice(itertools.product(*axes.values()), member, None)), strict=True))
        return {name: swept[name] if name in swept else next(rest) for name in tuned}


def expand_settings(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with one more column `set.<name>` per setting that any of them has."""
    # Seeds share their settings, so that there are far fewer texts to parse than runs.
    distinct = runs["settings"].drop_duplicates()
    parsed = pd.DataFrame([dict(settings_of(text)) for text in distinct], index=distinct.to_numpy()).add_prefix("set.")
    return runs.join(parsed, on="settings")


def summarise(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per (problem, algorithm, ε, accounting, settings): mean excess, its standard error, and counts.

    A diverged replicate counts as an infinite excess: a setting is only as good as all of its seeds.
    """
    return means(_tried(runs), [*IDENTITY, "settings", "T"])


def _tried(runs: pd.DataFrame) -> pd.DataFrame:
    right = runs["sweep"].isna() & runs["planted"].isna()
    untimed = runs[(runs["timed"] == 0) & outcomes.has_result(runs["status"]) & right]
    return untimed.assign(excess=excess(untimed))


def chosen(
    rows: pd.DataFrame, by: list[str], settings: list[str], value: str = "excess", split: Split = "none"
) -> pd.DataFrame:
    """The rows of each group's chosen setting, on the seeds that it is scored on: see `tuner.choose`.

    Args:
        rows: of runs, with a `seed`; of equal settings the one that comes first is chosen.
        by: the columns that a group has in common.
        settings: those that tell its settings apart.
        value: the column whose lowest mean decides.
    """
    losses = rows[value].to_numpy(float)[:, None]
    groups: dict[tuple[Any, ...], dict[tuple[Any, ...], dict[int, list[int]]]] = {}  # … → setting → seed → rows
    names = [rows[name].to_numpy(object) for name in (*by, *settings, "seed")]
    for i, (*at, seed) in enumerate(zip(*names, strict=True)):
        by_seed = groups.setdefault(tuple(at[: len(by)]), {}).setdefault(tuple(at[len(by) :]), {})
        by_seed.setdefault(seed, []).append(i)
    scored: list[int] = []
    for by_setting in groups.values():
        # A seed has several rows of one setting where an -opt method is asked for T and 2T and runs the same T'.
        means_of = {
            setting: {s: losses[at[0]] if len(at) == 1 else losses[at].mean(axis=0) for s, at in one.items()}
            for setting, one in by_setting.items()
        }
        choice = choose(means_of, split)
        if choice is not None:
            winner, _, seeds = choice
            scored += [row for seed in seeds for row in by_setting[winner][seed]]
    return rows.iloc[sorted(scored)]


def best(runs: pd.DataFrame, by: list[str] = IDENTITY, *, split: Split = "none") -> pd.DataFrame:
    """The chosen setting of each group, summarised over the seeds it is scored on, and whether its T ends the grid.

    Adds `at_end`: "" or "smallest"/"largest" when the best T is an end of the T values tried for its group and could go
    on there; no T is smaller than 1.
    """
    known = _tried(runs)
    known = known[known["excess"].notna()].sort_values("T", kind="stable")  # no excess: no optimum to measure from
    scored = chosen(known, by, ["settings", "accounting"], split=split).sort_index()  # of equals the smallest T
    table = means(scored, [*IDENTITY, "settings", "T"])
    ends = known.assign(T=known["T"].astype(float)).groupby(by)["T"].agg(["min", "max"])
    low, high = (table[by].merge(ends.reset_index(), on=by, how="left")[end] for end in ("min", "max"))
    T = table["T"].astype(float)
    at_end = np.select([(low == high) | (T == 1), low == T, high == T], ["", "smallest", "largest"], "")
    return table.assign(at_end=at_end)
