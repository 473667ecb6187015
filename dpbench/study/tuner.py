"""The rule that settings are chosen by, and the "best" settings of a grid, which are chosen among the rows that exist.

Settings are compared on the seeds that all of them have, by their mean excess loss; this is not private. Held out, they
are chosen on one half of these seeds and the winner is scored on its others, so that the score has not the optimism of
a minimum. Tables and figures choose by the same rule: see `tuning`.
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

from dpbench import algorithms
from dpbench.algorithms.base import make_settings
from dpbench.run.job import JSON, keys_like, make_job
from dpbench.run.outcomes import RESULTS
from dpbench.run.row import settings_of
from dpbench.run.store import Store

Setting = TypeVar("Setting", bound=Hashable)


Split: TypeAlias = Literal["none", "halves"] | int  # see `choose`


def choose(losses: Mapping[Setting, Mapping[int, Any]], split: Split = "none") -> tuple[Setting, int, list[int]] | None:
    """(setting, member of its sweep, seeds to score it on) from setting → {seed: (m,) excess}; None without losses.

    The lowest mean over the seeds that all settings have, the first of equals. A setting with less than half the seeds
    of another, and fewer than five, is not compared: its grid is still being run.

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
    with np.errstate(over="ignore"):  # sums of nearly diverged runs may become infinite
        averages = {
            setting: np.add.reduce([seeds[one] for one in seen]) / len(seen) for setting, seeds in compared.items()
        }
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
        self._rows: dict[tuple[str, str, float], list[int]] = defaultdict(list)  # of (problem, algorithm, ε)
        self._tried = functools.cache(self._rows_with_results)
        excess = np.array(columns.excess, dtype=float)  # NaN where there is none
        without = np.isnan(excess) | (np.array(columns.status, dtype=object) == "diverged")
        self._excess: list[float] = np.where(without, math.inf, excess).tolist()
        for row, cell in enumerate(zip(columns.problem, columns.algorithm, columns.epsilon, strict=True)):
            self._rows[cell].append(row)

    def _rows_with_results(self, cell: tuple[str, str, float]) -> dict[tuple[str, str], list[int]]:
        """(settings, sweep) → the rows with a result, of (problem, algorithm, ε)."""
        columns, tried = self._columns, defaultdict(list)
        timed, status, settings, sweep = columns.timed, columns.status, columns.settings, columns.sweep
        for row in sorted(self._rows.get(cell, ()), key=columns.seed.__getitem__):  # a plan has those keys
            if timed[row] == 0 and status[row] in RESULTS:
                tried[settings[row], sweep[row] or ""].append(row)
        return tried

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
        split: Split = "none",
    ) -> dict[str, Any] | None:
        """Values of the `tuned` settings that `choose` takes, or None if there are no rows.

        algorithm may be an alias. Only rows count that differ from `fixed` and the defaults in the tuned settings alone
        (their keys tell): a sweep over another setting does not decide here. A diverged run, or NaN, is infinite.
        """
        method, alias = algorithms.resolve(algorithm)
        given = make_settings(method, alias | fixed)
        job = make_job(problem=problem, algorithm=algorithm, epsilon=epsilon, seed=0, settings=fixed,
                       accounting=accounting, delta=delta, relation=relation)  # fmt: skip
        shown = algorithms.display_name(algorithms.reference(algorithm)[0], given)
        cells: dict[tuple[tuple[Any, ...], str], dict[int, Any]] = defaultdict(dict)
        for (settings, sweep), rows in self._tried((problem, shown, epsilon)).items():
            axes, values = settings_of(sweep), settings_of(settings)
            # A sweep over another setting holds runs of other settings than are asked for.
            if not axes.keys() <= set(tuned):
                continue
            chosen = {name: values[name] for name in tuned if name not in axes}
            tried = msgspec.structs.replace(given, **chosen, **{name: each[0] for name, each in axes.items()})
            # The key of what the row should be: rows of other versions or accountings have other keys.
            key_of = keys_like(msgspec.structs.replace(job, settings=JSON.encode(tried).decode(), sweep=sweep))
            keys, seeds = self._columns.key, [self._columns.seed[row] for row in rows]
            found = zip(rows, seeds, key_of.of(seeds, [0]), strict=True)
            excess_of = self._sweep if axes else self._excess.__getitem__
            excesses = {seed: excess_of(row) for row, seed, key in found if keys[row] == key}
            cells[tuple(chosen.values()), sweep] |= excesses
        choice = choose({cell: cells[cell] for cell in sorted(cells, key=lambda cell: cell[0])}, split)
        if choice is None:
            return None
        (alone, sweep), member, _ = choice  # of equals the smallest
        axes, rest = settings_of(sweep), iter(alone)
        swept = dict(zip(axes, next(itertools.islice(itertools.product(*axes.values()), member, None)), strict=True))
        return {name: swept[name] if name in swept else next(rest) for name in tuned}

    def _sweep(self, row: int) -> np.ndarray | float:
        """(m,) The excess losses of a row's sweep; infinite where one diverged or has none."""
        values = self._columns.values[row]
        return self._excess[row] if values is None else np.where(np.isnan(values), math.inf, values)
