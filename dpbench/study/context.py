"""What an artefact or a claim is made from: an experiment's rows under one profile."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import pandas as pd

from dpbench import datasets
from dpbench.errors import UserError
from dpbench.problems import catalogue
from dpbench.run.job import Job
from dpbench.run.store import Store, one_data
from dpbench.study.experiment import Experiment
from dpbench.study.grid import GridEntry
from dpbench.study.plan import JobPlan, Planner, RunCount
from dpbench.study.statistics import span

P = ParamSpec("P")
Value = TypeVar("Value")


def memoised(compute: Callable[Concatenate[Context, P], Value]) -> Callable[Concatenate[Context, P], Value]:
    """Compute once for each context and arguments (hashable): its rows, once read, stay as they are.

    Whoever asks again is given the same object, so nobody writes to it.
    """

    @wraps(compute)
    def find(context: Context, /, *args: P.args, **named: P.kwargs) -> Value:
        asked, known = (compute, args, *sorted(named.items())), context.found_before
        if asked not in known:
            known[asked] = compute(context, *args, **named)
        value: Value = known[asked]
        return value

    return find


def select(frame: pd.DataFrame, **equal: Any) -> pd.DataFrame:
    """Rows whose columns equal the given values (a list: any of them)."""
    import numpy as np

    rows = np.arange(len(frame))
    for column, value in equal.items():  # a column at a time: the frame is wide, and is copied once
        rows = rows[frame[column].iloc[rows].isin(value if isinstance(value, list | tuple | set) else [value])]
    return frame.iloc[rows]


@dataclass(frozen=True)
class Context:
    """What an artefact or a claim is made from: the experiment's rows under one profile."""

    experiment: Experiment
    profile: str
    store: Store

    @cached_property
    def runs(self) -> pd.DataFrame:
        return self.store.runs()

    def rows(self, artefact: str, **equal: Any) -> pd.DataFrame:
        """The rows that the artefact's own blocks of the grid ask for, further narrowed to `equal` columns."""
        return select(self._rows(artefact), **equal)

    @memoised
    def _rows(self, artefact: str) -> pd.DataFrame:
        rows = self.runs[self.runs["key"].isin(self._plan(artefact).by_key)]
        one_data(rows, "problem", self.store.folder / "runs")  # means are over rows of one problem
        return rows

    def traces(self, runs: pd.DataFrame) -> pd.DataFrame:
        """The traces of these runs, with the runs' columns beside them."""
        return self.store.traces(runs["key"]).merge(runs.drop(columns=["excess", "seconds"]), on="key")

    def blocks(self, artefact: str, **equal: Any) -> list[GridEntry]:
        """The artefact's blocks of the grid; `trace=True`, say, keeps those that record traces."""
        blocks = self.experiment.blocks(self.profile, artefact)
        return [block for block in blocks if all(bool(getattr(block, k)) == v for k, v in equal.items())]

    def problems(self, artefact: str, **equal: Any) -> list[str]:
        """The problems of these blocks, in the order of the grid."""
        return list(dict.fromkeys(p for block in self.blocks(artefact, **equal) for p in block.problems))

    def algorithms(self, artefact: str, **equal: Any) -> list[str]:
        """Their algorithms, in the order of the grid."""
        return list(dict.fromkeys(a for block in self.blocks(artefact, **equal) for a in block.algorithms))

    def epsilons(self, artefact: str, **equal: Any) -> list[float]:
        """Their ε, rising."""
        return sorted({e for block in self.blocks(artefact, **equal) for e in block.epsilon})

    def combinations(self, artefact: str, **equal: Any) -> set[tuple[str, str, float]]:
        """Their (problem, algorithm, ε): what is asked for, be it there or not."""
        return {at for block in self.blocks(artefact, **equal) for at in block.combinations}

    def command(self, artefact: str) -> str:
        """The command that fills the artefact's gaps; "" for those of all."""
        part = f"/{artefact}" if artefact else ""
        return f"dpbench run --experiment {self.experiment.name}{part} --profile {self.profile}"

    def gap(self, artefact: str, what: str) -> str:
        """One line on what an artefact has no rows for, with the command that makes them."""
        return f"{what}: {self.command(artefact)}"

    def why_missing(self, artefact: str, problem: str = "") -> str:
        """What stands where rows are missing: the command that makes them, after the one that gets the data.

        The same on every machine: whether the data are fetched where a figure is drawn says nothing of its rows.
        """
        dataset = catalogue.recipe_of(problem).dataset if problem else ""
        fetched = f"dpbench fetch {dataset}\n" if dataset and not datasets.describe(dataset).synthetic else ""
        return f"not run\n{fetched}{self.command(artefact)}"

    def jobs(self, artefact: str) -> list[Job]:
        """The jobs that the artefact's blocks ask for; those with "best" settings as tuned on today's rows."""
        return self._plan(artefact).jobs

    def unfinished(self, artefact: str) -> str:
        """One line on the runs of the artefact's grid that are not there, "" when none is missing."""
        (whole, missing, *_), *_ = RunCount(self._planner.ended).of(self._plan(artefact).series)
        told = f"{missing:,} of the {whole:,} runs of its grid are not there yet: {self.command(artefact)}"
        return told if missing else ""

    def behind(self, artefact: str) -> str:
        """One sentence on the rows behind an artefact: n, seeds, accounting, neighbours, tuning; "" without rows."""
        blocks = self.blocks(artefact)
        own = [block for block in blocks if artefact in block.artefacts] or blocks  # others tune for it
        shown = {(p, a) for block in own for p in block.problems for a in block.algorithms}
        rows = self.rows(artefact)
        rows = rows[[at in shown for at in zip(rows["problem"], rows["algorithm"], strict=True)]]
        if rows.empty:
            return ""
        alike = ["problem", "algorithm", "epsilon", "settings", "accounting"]
        untimed = rows[rows["timed"].eq(0)]
        seeds = (untimed if len(untimed) else rows).groupby(alike, sort=False, dropna=False)["seed"].nunique()
        parts = [_sizes(list(dict.fromkeys(rows["problem"]))), f"{span(seeds)} seed{'s' if seeds.max() > 1 else ''}"]
        parts.append(f"accounting {_either(rows['accounting'])}")
        parts.append(f"{_either(rows['relation'])} neighbours")
        tuned = [block for block in own if block.tuned]
        if tuned:
            names = ", ".join(dict.fromkeys(name for block in tuned for name in block.tuned))
            where = "chosen on half of the seeds, scored on the others" if tuned[0].held_out else "on the same seeds"
            parts.append(f"{names} tuned to the lowest mean, {where} (not private)")
        return f"Rows: {'; '.join(filter(None, parts))}."

    @cached_property
    def found_before(self) -> dict[Hashable, Any]:
        """What functions that are `memoised` have computed."""
        return {}

    @cached_property
    def _planner(self) -> Planner:
        return Planner(self.store)

    def _plan(self, artefact: str) -> JobPlan:
        return self._planner.plan(self.blocks(artefact))


def _sizes(problems: list[str]) -> str:
    """ "n = 30,956" of the problems, from the least to the largest; "" where none is known without its data."""
    sizes = []
    for problem in problems:
        try:
            sizes.append(catalogue.declare(problem).n)
        except UserError:  # not fetched, or of a package that is not installed here
            continue
    return f"n = {span(sizes)}" if sizes else ""


def _either(column: pd.Series) -> str:
    """The distinct values in words."""
    return " or ".join(sorted(set(column.dropna().astype(str)))) or "unknown"


def contexts(
    experiment: Experiment, profile: str | None = None, results: str | os.PathLike[str] = "results"
) -> Iterator[Context]:
    """A context for each profile of the experiment (or the one named) that has rows."""
    for each in [profile] if profile else list(experiment.grid()):
        experiment.blocks(each)  # an unknown profile is named before any work
        context = Context(experiment, each, Store(results, each, experiment.name))
        if not context.runs.empty:
            yield context
