"""From a grid's blocks to jobs: what can run now, what waits for other rows, how far the runs of an artefact are."""

from __future__ import annotations

import functools
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dpbench import datasets
from dpbench.errors import counted
from dpbench.problems import catalogue
from dpbench.run.job import Job, JobSeries, make_job, seconds, work
from dpbench.run.store import Ended, Store
from dpbench.study.experiment import PLANTED, Experiment
from dpbench.study.grid import GridEntry
from dpbench.study.tuning import RunColumns, Tuner, columns_of

NOT_APPLICABLE = "not applicable"
WORTH_SAYING = 1.0  # core-hours of the missing runs


@dataclass(frozen=True)
class JobPlan:
    """The runs of some blocks, the problems whose data are not fetched, and what waits for rows of other blocks.

    Rows of a job may be there although its data are not: reports read them, and only `runnable` jobs can run.
    """

    absent: Callable[[str], str]  # the data set of a problem, "" where it is fetched
    problems: list[str] = field(default_factory=list)
    series: list[JobSeries] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    unknown: set[tuple[str, str]] = field(default_factory=set)  # (problem, algorithm) of which not every job is known

    @cached_property
    def missing_data(self) -> dict[str, str]:
        """Problem → data set that is not fetched; looked up on the disk only where it is asked for."""
        return {problem: dataset for problem in dict.fromkeys(self.problems) if (dataset := self.absent(problem))}

    @cached_property
    def keys(self) -> set[str]:
        """The keys of `jobs`."""
        return set().union(*(one.keys for one in self.series))

    @cached_property
    def by_key(self) -> dict[str, Job]:
        """key → job, of equal jobs one that is traced."""
        jobs: dict[str, Job] = {}
        for one in self.series:
            for key, job in zip(one.keys, one.jobs, strict=True):
                # A trace makes no other run, so the one that leaves more behind serves both.
                if key not in jobs or not jobs[key].trace:
                    jobs[key] = job
        return jobs

    @property
    def jobs(self) -> list[Job]:
        return list(self.by_key.values())

    @property
    def runnable(self) -> list[Job]:
        return [job for job in self.jobs if job.problem not in self.missing_data]


def plan(blocks: list[GridEntry], store: Store | None) -> JobPlan:
    """Jobs of the blocks. Those with "best" settings or `timed_if` look up other runs' rows in the store, or wait."""
    return Planner(store).plan(blocks)


class Planner:
    """Plans on the rows that a store has now. A block is planned once, however many artefacts ask for it."""

    def __init__(self, store: Store | None) -> None:
        self.store = store
        self._planned: dict[GridEntry, JobPlan] = {}
        self._fetched = functools.cache(datasets.available)

    def plan(self, blocks: list[GridEntry]) -> JobPlan:
        result = JobPlan(self._absent)
        for block in blocks:
            if block not in self._planned:
                self._planned[block] = self._block(block)
            one = self._planned[block]
            result.problems.extend(one.problems)
            result.series.extend(one.series)
            result.waiting.extend(one.waiting)
            result.unknown.update(one.unknown)
        return result

    @cached_property
    def _columns(self) -> RunColumns:
        return columns_of(self.store) if self.store else RunColumns(*([] for _ in RunColumns._fields))

    @cached_property
    def _tuner(self) -> Tuner:
        return Tuner(self._columns)

    @cached_property
    def outcomes(self) -> dict[str, str]:
        """key → status of the rows there are."""
        return dict(zip(self._columns.key, self._columns.status, strict=True))

    @cached_property
    def ended(self) -> Ended:
        """What there is of jobs."""
        return Ended(self.outcomes, self.store.traced if self.store else set)

    @cached_property
    def _endings(self) -> dict[str, str]:
        """key → how the run ended: by its method's own word for it, where that has one."""
        return {key: own for key, own in zip(self._columns.key, self._columns.ending, strict=True) if own}

    def _absent(self, problem: str) -> str:
        dataset = catalogue.recipe_of(problem).dataset
        return "" if self._fetched(dataset) else dataset

    def _block(self, block: GridEntry) -> JobPlan:
        result = JobPlan(self._absent, block.problems)
        tuned, swept, seeds = block.tuned, block.swept, range(block.seeds)
        lists = {name: block.values(name) for name in block.settings if name not in (*tuned, *swept)}
        given = [dict(zip(lists, values, strict=True)) for values in itertools.product(*lists.values())]
        made: dict[tuple[str, int, float], Job] = {}  # settings are validated once, not for each problem and ε
        for at, (i, fixed), planted in itertools.product(block.combinations, enumerate(given), block.planted):
            problem, algorithm, epsilon = at
            awaited = ""
            best: dict[str, Any] | None = {}
            if tuned:
                best = self._tuner.best(problem, algorithm, epsilon, fixed, tuned, block.split, **block.terms)
            if best is None:
                awaited = ", ".join(tuned)
            else:
                if tuned or (algorithm, i, planted) not in made:
                    made[algorithm, i, planted] = make_job(
                        problem=problem,
                        algorithm=algorithm,
                        epsilon=epsilon,
                        seed=0,
                        settings=fixed | best,
                        timed=min(block.timed, 1),
                        trace=block.trace,
                        sweep=swept,
                        planted=planted,
                        **block.terms,
                    )
                job = made[algorithm, i, planted].at(problem, epsilon)
                ended = self._ended(JobSeries(job, seeds, [0])) if block.timed_if else {""}
                if None in ended:
                    awaited = "its untimed runs"
                # All of the untimed runs: a mixed ending has no time of one meaning.
                if ended == {block.timed_if}:
                    result.series.append(JobSeries(job, seeds, range(1, block.timed + 1) or [0]))
            if awaited:
                result.unknown.add((problem, algorithm))
            # What waits for data anyway is said once, as missing data.
            if awaited and not self._absent(problem):
                result.waiting.append(f"{algorithm} on {problem} at ε = {epsilon:g} ({awaited})")
        return result

    def _ended(self, series: JobSeries) -> set[str | None]:
        """How the runs of the series ended; None among them where one is missing."""
        return {self._endings.get(key) or self.outcomes.get(key) for key in series.keys}


@dataclass(frozen=True)
class RunCounts:
    """The runs behind one artefact under one profile, counted; notes: what stands in the way, in words.

    Runs whose ε no noise reaches under their accounting are not applicable: they are no failures, and are in the notes.
    """

    artefact: str
    profile: str
    done: int
    missing: int
    failed: int
    notes: str


def run_counts(experiment: Experiment, profile: str, store: Store) -> Iterator[RunCounts]:
    """How many runs of each artefact are done, missing and failed; artefacts that need no run are left out."""
    planner = Planner(store)
    counter = RunCount(planner.ended)
    # Many artefacts share their blocks. Blocks are compared by identity, so all are kept alive: Python may give the id
    # of a freed block to another one.
    alive = []
    shared: dict[tuple[int, ...], tuple[int, int, int, str]] = {}
    for artefact in [*(one.name for one in experiment.artefacts), *([PLANTED] if experiment.published_values else [])]:
        blocks = experiment.blocks(profile, artefact)
        alive.append(blocks)
        identity = tuple(map(id, blocks))
        if identity not in shared:
            plan = planner.plan(blocks)
            if not (plan.series or plan.waiting or plan.missing_data):
                continue
            (total, missing, failed, unreachable), unfinished, hours = counter.of(plan.series)
            done = total - missing - failed - unreachable
            shared[identity] = done, missing, failed, _notes(plan, unfinished, unreachable, hours)
        yield RunCounts(f"{experiment.name}/{artefact}", profile, *shared[identity])


class RunCount:
    """How many runs of some series are missing, failed and beyond reach, each run once.

    Series are counted one by one, and those of many artefacts once: half a million keys are in no set.
    """

    def __init__(self, ended: Ended) -> None:
        self._ended = ended
        # By the identity of a series, which is kept: Python may give the id of a freed one to another.
        self._known: dict[int, tuple[JobSeries, tuple[int, int, int, int]]] = {}

    def of(self, series: Iterable[JobSeries]) -> tuple[tuple[int, int, int, int], set[str], float]:
        """(all, missing, failed, beyond reach); the problems on which runs are missing; these runs' hours.

        The hours are rough, on one core, at the T that the runs are given at most.
        """
        sums, unfinished, left = [0, 0, 0, 0], set(), 0.0
        for first, counts in self._each(series):
            for i, number in enumerate(counts):
                sums[i] += number
            if counts[1]:
                unfinished.add(first.job.problem)
                T = float(getattr(first.job.parsed(), "T", None) or 0)
                left += counts[1] * seconds(work(first.job), T, 1)
        return (sums[0], sums[1], sums[2], sums[3]), unfinished, left / 3600

    def _each(self, series: Iterable[JobSeries]) -> Iterator[tuple[JobSeries, tuple[int, int, int, int]]]:
        """The first of the series whose keys may be in common, and their counts together."""
        alike: dict[bytes, list[JobSeries]] = defaultdict(list)
        for each in series:
            alike[each.like.whole].append(each)
        for first, *others in alike.values():
            if not others or all(first == other for other in others):
                if id(first) not in self._known:
                    self._known[id(first)] = first, self._one([first])
                yield first, self._known[id(first)][1]
            else:
                yield first, self._one([first, *others])

    def _one(self, alike: list[JobSeries]) -> tuple[int, int, int, int]:
        keys = alike[0].keys if len(alike) == 1 else set().union(*(one.keys for one in alike))
        traced = set().union(*(one.keys for one in alike if one.job.trace))
        return len(keys), *self._ended.counts(keys, traced)


def _notes(planned: JobPlan, unfinished: set[str], beyond: int, hours: float) -> str:
    notes = [f"missing: roughly {hours:.2g} core-hours"] if hours >= WORTH_SAYING else []
    absent = sorted({dataset for problem in unfinished if (dataset := planned.absent(problem))})
    if absent:
        notes.append(f"data not fetched: {', '.join(absent)}")
    if beyond:
        notes.append(f"{beyond} {NOT_APPLICABLE}: ε is out of reach of their accounting")
    if planned.waiting:
        wait = "waits" if len(planned.waiting) == 1 else "wait"
        notes.append(f"{counted(len(planned.waiting), 'combination')} {wait} for other runs")
    return "; ".join(notes)
