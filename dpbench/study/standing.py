"""How far the runs behind an artefact are: done, missing, failed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dpbench.errors import counted
from dpbench.run.job import JobSeries, seconds, work
from dpbench.run.store import Ended, Store
from dpbench.study.experiment import PLANTED, Experiment
from dpbench.study.plan import JobPlan, Planner

NOT_APPLICABLE = "not applicable"
WORTH_SAYING = 1.0  # core-hours of the missing runs


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
    for artefact in [*(one.name for one in experiment.artefacts), *([PLANTED] if experiment.cells else [])]:
        blocks = experiment.blocks(profile, artefact)
        alive.append(blocks)
        identity = tuple(map(id, blocks))
        if identity not in shared:
            plan = planner.plan(blocks)
            if not (plan.series or plan.missing_data or plan.waiting):
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
            if all(first == other for other in others):
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
    absent = sorted({dataset for problem, dataset in planned.missing_data.items() if problem in unfinished})
    if absent:
        notes.append(f"data not fetched: {', '.join(absent)}")
    if beyond:
        notes.append(f"{beyond} {NOT_APPLICABLE}: ε is out of reach of their accounting")
    if planned.waiting:
        wait = "waits" if len(planned.waiting) == 1 else "wait"
        notes.append(f"{counted(len(planned.waiting), 'cell')} {wait} for other runs")
    return "; ".join(notes)
