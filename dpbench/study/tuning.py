"""Tuning: the setting with the lowest mean excess loss over seeds. It is not private.

One rule for tables, figures and the "best" settings of a grid (`choose`): settings are compared on the seeds that all
of them have. Held out, they are chosen on one half of these and the winner is scored on its other seeds, so that the
score has not the optimism of a minimum.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
import pandas as pd

from dpbench.run.jobs import identity, keys_of, make_job
from dpbench.study.statistics import excess, means

Setting = TypeVar("Setting", bound=Hashable)

IDENTITY = ["problem", "algorithm", "epsilon", "accounting"]


def expand_settings(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with one more column `set.<name>` per setting that any of them has."""
    distinct = runs["settings"].drop_duplicates()
    parsed = pd.DataFrame([json.loads(text) for text in distinct], index=distinct.to_numpy()).add_prefix("set.")
    return runs.join(parsed, on="settings")


def summarise(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per (problem, algorithm, ε, accounting, settings): mean excess, its standard error, and counts.

    A diverged replicate counts as an infinite excess: a setting is only as good as all of its seeds.
    """
    return means(_tried(runs), [*IDENTITY, "settings", "T"])


def _tried(runs: pd.DataFrame) -> pd.DataFrame:
    untimed = runs[(runs["timed"] == 0) & runs["status"].ne("failed") & runs["sweep"].isna()]
    return untimed.assign(excess=excess(untimed))


def choose(losses: Mapping[Setting, Mapping[int, Any]], held_out: bool) -> tuple[Setting, int, list[int]] | None:
    """(setting, member of its sweep, seeds to score it on) from setting → {seed: (m,) excess}; None without losses.

    The lowest mean over the seeds that all settings have, the first of equals. held_out: over every other of these
    seeds, and the score is over all the other seeds of the winner (where there are none, on those it was chosen on). A
    setting with less than half the seeds of another, and fewer than five, is not compared: its grid is still being run.
    """
    enough = min(5, max(map(len, losses.values()), default=0) / 2)
    compared = {setting: seeds for setting, seeds in losses.items() if seeds and len(seeds) >= enough}
    shared = sorted(set.intersection(*map(set, compared.values()))) if compared else []
    if not shared:
        return None
    seen = shared[::2] if held_out else shared
    with np.errstate(over="ignore"):  # sums of nearly diverged runs may become infinite
        averages = {setting: np.mean([seeds[one] for one in seen], axis=0) for setting, seeds in compared.items()}
    winner = min(averages, key=lambda setting: averages[setting].min())
    rest = sorted(set(compared[winner]).difference(seen if held_out else ()))
    return winner, int(averages[winner].argmin()), rest or seen


def best(runs: pd.DataFrame, by: list[str] = IDENTITY, *, held_out: bool = False) -> pd.DataFrame:
    """The chosen setting of each group, summarised over the seeds it is scored on, and whether its T ends the grid.

    Adds `at_end`: "" or "smallest"/"largest" when the best T is an end of the T values tried for its group and could go
    on there; no T is smaller than 1.
    """
    known = _tried(runs)
    known = known[known["excess"].notna()].sort_values("T", kind="stable")  # no excess: no optimum to measure from
    values = {name: known[name].to_numpy(object) for name in {*by, "settings", "accounting", "seed", "T"}}
    losses = known["excess"].to_numpy()[:, None]
    groups: dict[tuple[Any, ...], dict[tuple[str, str], dict[int, list[int]]]] = {}  # … → setting → seed → rows
    for row, group in enumerate(zip(*(values[name] for name in by), strict=True)):
        cell = groups.setdefault(group, {}).setdefault((values["settings"][row], values["accounting"][row]), {})
        cell.setdefault(values["seed"][row], []).append(row)
    scored: list[int] = []
    tried = {}
    for group, cells in groups.items():  # of equals the smallest T
        choice = choose({cell: {s: losses[at[-1]] for s, at in one.items()} for cell, one in cells.items()}, held_out)
        if choice is None:
            continue
        winner, _, seeds = choice
        scored += [row for seed in seeds for row in cells[winner][seed]]
        T = values["T"][[row for one in cells.values() for rows in one.values() for row in rows]].astype(float)
        tried[group] = {"": None, "smallest": np.fmin.reduce(T), "largest": np.fmax.reduce(T)}
    table = means(known.iloc[scored].sort_index(), [*IDENTITY, "settings", "T"])
    at_end = []
    for row in table.to_dict("records"):
        ends = tried[tuple(row[name] for name in by)]
        no_end = ends["smallest"] == ends["largest"] or row["T"] == 1
        at_end.append("" if no_end else next((end for end, T in ends.items() if row["T"] == T), ""))
    return table.assign(at_end=at_end)


class Row(NamedTuple):
    """What of a run's row decides on the best settings; columns of the store."""

    key: str
    problem: str
    algorithm: str
    epsilon: float
    seed: int
    settings: str
    sweep: str | None
    status: str
    timed: int
    excess: float | None
    values: np.ndarray | None


class Tuner:
    """The best settings among some rows. A single run is a sweep over nothing."""

    def __init__(self, rows: Iterable[Sequence[Any]]) -> None:
        """rows: values of `Row`'s fields."""
        self._tried: dict[tuple[str, str, float], dict[tuple[str, str], list[Row]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for row in itertools.starmap(Row, rows):
            if row.timed == 0 and row.status != "failed":
                sweep = row.sweep if isinstance(row.sweep, str) else ""
                self._tried[row.problem, row.algorithm, row.epsilon][row.settings, sweep].append(row)

    def best(
        self,
        problem: str,
        algorithm: str,
        epsilon: float,
        fixed: dict[str, Any],
        tuned: Sequence[str],
        accounting: str = "paper",
        delta: str | float | None = None,
        relation: str | None = None,
        held_out: bool = False,
    ) -> dict[str, Any] | None:
        """Values of the `tuned` settings that `choose` takes, or None if there are no rows.

        algorithm may be an alias. Only rows count that differ from `fixed` and the defaults in the tuned settings alone
        (their keys tell): a sweep over another setting does not decide here. A diverged run, or NaN, is infinite.
        """
        from dpbench import algorithms
        from dpbench.algorithms.base import make_settings

        method, alias = algorithms.resolve(algorithm)
        given = make_settings(method, alias | fixed)
        job = make_job(problem=problem, algorithm=algorithm, epsilon=epsilon, seed=0, settings=fixed,
                       accounting=accounting, delta=delta, relation=relation)  # fmt: skip
        content = identity(job)
        shown = algorithms.display_name(algorithms.reference(algorithm)[0], given)
        cells: dict[tuple[Any, ...], dict[int, Any]] = defaultdict(dict)
        for (settings, sweep), rows in self._tried.get((problem, shown, epsilon), {}).items():
            axes, values = json.loads(sweep or "{}"), json.loads(settings)
            if not set(axes) <= set(tuned):
                continue
            chosen = {name: values[name] for name in tuned if name not in axes}
            tried = msgspec.structs.replace(given, **chosen, **{name: each[0] for name, each in axes.items()})
            key_of = keys_of(content | {"settings": msgspec.to_builtins(tried)} | ({"sweep": axes} if axes else {}))
            cell = (*chosen.values(), json.dumps([chosen, axes]))
            cells[cell] |= {row.seed: _excesses(row, bool(axes)) for row in rows if row.key == key_of(row.seed, 0)}
        choice = choose({cell: cells[cell] for cell in sorted(cells, key=lambda cell: cell[:-1])}, held_out)
        if choice is None:
            return None
        (*_, told), member, _ = choice  # of equals the smallest
        chosen, axes = json.loads(told)
        swept = next(itertools.islice(itertools.product(*axes.values()), member, None))
        found = chosen | dict(zip(axes, swept, strict=True))
        return {name: found[name] for name in tuned}


def _excesses(row: Row, swept: bool) -> np.ndarray | float:
    """(m,) The excess losses of a row's sweep, or that of its one run; infinite where one diverged or has none."""
    if swept and row.values is not None:
        return np.where(np.isnan(row.values), math.inf, row.values)
    return math.inf if row.status == "diverged" or row.excess is None or math.isnan(row.excess) else row.excess
