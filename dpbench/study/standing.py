"""How far the runs behind an artefact are: done, missing, failed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dpbench.errors import counted
from dpbench.run.job import JobSeries
from dpbench.run.store import Ended, Store
from dpbench.study.experiment import Experiment
from dpbench.study.plan import JobPlan, Planner

NOT_APPLICABLE = "not applicable"


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


def run_counts(one: Experiment, profile: str, store: Store) -> Iterator[RunCounts]:
    """The standing of each artefact that asks for runs under a profile."""
    planner = Planner(store)
    count = RunCount(planner.ended)
    told: dict[tuple[int, ...], tuple[int, int, int, str]] = {}  # of the same blocks, however many artefacts ask
    alive = []  # while their blocks are, no other block has the identity of one
    for artefact in one.artefacts:
        blocks = one.blocks(profile, artefact.name)
        asked = tuple(map(id, blocks))
        alive.append(blocks)
        if asked not in told:
            planned = planner.plan(blocks)
            if not (planned.series or planned.missing_data or planned.waiting):
                continue
            whole, missing, failed, beyond, unfinished = count.of(planned.series)
            told[asked] = whole - missing - failed - beyond, missing, failed, _notes(planned, unfinished, beyond)
        yield RunCounts(f"{one.name}/{artefact.name}", profile, *told[asked])


class RunCount:
    """How many runs of some series are missing, failed and beyond reach, each run once.

    Series are counted one by one, and those of many artefacts once: half a million keys are in no set.
    """

    def __init__(self, ended: Ended) -> None:
        self._ended = ended
        self._known: dict[int, tuple[int, int, int, int]] = {}  # by the identity of a series, which its plan keeps

    def of(self, series: Iterable[JobSeries]) -> tuple[int, int, int, int, set[str]]:
        """(all, missing, failed, beyond reach), and the problems on which runs are missing."""
        alike: dict[bytes, list[JobSeries]] = defaultdict(list)
        for each in series:
            alike[each.like.whole].append(each)
        sums, unfinished = [0, 0, 0, 0], set()
        for first, *others in alike.values():
            if all(first == other for other in others):
                counts = self._known.get(id(first)) or self._known.setdefault(id(first), self._one([first]))
            else:
                counts = self._one([first, *others])
            for i, number in enumerate(counts):
                sums[i] += number
            if counts[1]:
                unfinished.add(first.job.problem)
        return sums[0], sums[1], sums[2], sums[3], unfinished

    def _one(self, alike: list[JobSeries]) -> tuple[int, int, int, int]:
        keys = alike[0].keys if len(alike) == 1 else set().union(*(one.keys for one in alike))
        traced = set().union(*(one.keys for one in alike if one.job.trace))
        return len(keys), *self._ended.counts(keys, traced)


def _notes(planned: JobPlan, unfinished: set[str], beyond: int) -> str:
    notes = []
    absent = sorted({dataset for problem, dataset in planned.missing_data.items() if problem in unfinished})
    if absent:
        notes.append(f"data not fetched: {', '.join(absent)}")
    if beyond:
        notes.append(f"{beyond} {NOT_APPLICABLE}: ε is out of reach of their accounting")
    if planned.waiting:
        wait = "waits" if len(planned.waiting) == 1 else "wait"
        notes.append(f"{counted(len(planned.waiting), 'cell')} {wait} for other runs")
    return "; ".join(notes)
