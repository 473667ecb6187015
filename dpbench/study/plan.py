"""From a grid's blocks to jobs: what can run now, what waits for other rows, whose data are not at hand."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dpbench import datasets
from dpbench.problems import catalogue
from dpbench.run.jobs import Job, make_job, repeated
from dpbench.study.grid import GridEntry
from dpbench.study.tuning import Row, Tuner

if TYPE_CHECKING:
    from dpbench.run.results import Store


@dataclass
class Plan:
    """The jobs of some blocks, the problems whose data are not at hand, and what waits for rows of other blocks.

    Rows of a job may be there although its data are not: reports read them, and only `runnable` jobs can run.
    """

    by_key: dict[str, Job] = field(default_factory=dict)
    missing_data: dict[str, str] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)

    @property
    def jobs(self) -> list[Job]:
        return list(self.by_key.values())

    @property
    def runnable(self) -> list[Job]:
        return [job for job in self.jobs if job.problem not in self.missing_data]

    def add(self, other: Plan) -> None:
        """Take along what `other` has; of equal jobs one that is traced."""
        both = self.by_key.keys() & other.by_key.keys()
        traced = {key: self.by_key[key] for key in both if self.by_key[key].trace}
        self.by_key |= other.by_key
        self.by_key |= traced
        self.missing_data |= other.missing_data
        self.waiting += other.waiting


def plan(blocks: list[GridEntry], store: Store | None) -> Plan:
    """Jobs of the blocks. Those with "best" settings or `timed_if` look up other runs' rows in the store, or wait."""
    return Planner(store).plan(blocks)


class Planner:
    """Plans on the rows that a store has now. A block is planned once, however many artefacts ask for it."""

    def __init__(self, store: Store | None) -> None:
        self.store = store
        self._planned: dict[GridEntry, Plan] = {}
        self._missing: dict[str, bool] = {}  # data set → whether it is not at hand

    def plan(self, blocks: list[GridEntry]) -> Plan:
        result = Plan()
        for block in blocks:
            if block not in self._planned:
                self._planned[block] = self._block(block)
            result.add(self._planned[block])
        return result

    @cached_property
    def _tuner(self) -> Tuner | None:
        return Tuner(self.store.columns(*Row._fields)) if self.store else None

    @cached_property
    def outcomes(self) -> dict[str, list[Any]]:
        """key → [status, error] of the rows there are."""
        return {key: told for key, *told in self.store.columns("key", "status", "error")} if self.store else {}

    def _missing_data(self, problems: list[str]) -> dict[str, str]:
        found = {problem: catalogue.recipe_of(problem).dataset for problem in problems}
        self._missing.update({name: not datasets.available(name) for name in {*found.values()} - self._missing.keys()})
        return {problem: dataset for problem, dataset in found.items() if self._missing[dataset]}

    def _block(self, block: GridEntry) -> Plan:
        result = Plan(missing_data=self._missing_data(block.problems))
        for problem, algorithm, epsilon in block.cells:
            where = f"{algorithm} on {problem} at ε = {epsilon:g}"
            for settings in self._settings(block, problem, algorithm, epsilon):
                if settings is None:
                    if problem not in result.missing_data:
                        result.waiting.append(f"{where} ({', '.join(block.tuned)})")
                    continue
                job = make_job(
                    problem=problem,
                    algorithm=algorithm,
                    epsilon=epsilon,
                    seed=0,
                    settings=settings,
                    accounting=block.accounting,
                    delta=block.delta,
                    relation=block.relation,
                    timed=min(block.timed, 1),
                    trace=block.trace,
                    sweep=block.swept,
                )
                if block.timed_if:
                    ended = {self.outcomes.get(key, [None])[0] for key, _ in repeated(job, range(block.seeds), [0])}
                    if None in ended and problem not in result.missing_data:
                        result.waiting.append(f"{where} (its untimed runs)")
                    if ended != {block.timed_if}:
                        continue
                result.by_key.update(repeated(job, range(block.seeds), range(1, block.timed + 1) or [0]))
        return result

    def _settings(
        self, block: GridEntry, problem: str, algorithm: str, epsilon: float
    ) -> Iterator[dict[str, Any] | None]:
        lists = {name: block.values(name) for name in block.settings if name not in (*block.tuned, *block.sweep)}
        for values in itertools.product(*lists.values()):
            settings = dict(zip(lists, values, strict=True))
            if not block.tuned:
                yield settings
                continue
            how = (block.accounting, block.delta, block.relation, block.held_out)
            best = self._tuner.best(problem, algorithm, epsilon, settings, block.tuned, *how) if self._tuner else None
            yield None if best is None else settings | best
