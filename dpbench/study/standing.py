"""How far the runs behind an artefact are: done, missing, failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from dpbench.privacy.accounting.base import OUT_OF_REACH
from dpbench.run.results import Store
from dpbench.study.experiment import Experiment
from dpbench.study.plan import Plan, Planner

NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True)
class Standing:
    """The runs behind one artefact under one profile, counted; notes: what stands in the way, in words.

    Runs whose ε no noise reaches under their accounting are not applicable: they are no failures, and are in the notes.
    """

    artefact: str
    profile: str
    done: int
    missing: int
    failed: int
    notes: str


def standing(one: Experiment, profile: str, store: Store) -> Iterator[Standing]:
    """The standing of each artefact that asks for runs under a profile."""
    planner, statuses = Planner(store), {}
    for key, (status, error) in planner.outcomes.items():
        statuses[key] = NOT_APPLICABLE if status == "failed" and OUT_OF_REACH in (error or "") else status
    for artefact in one.artefacts:
        planned = planner.plan(one.blocks(profile, artefact.name))
        if not (planned.by_key or planned.missing_data or planned.waiting):
            continue
        found = Counter(map(statuses.get, planned.by_key))
        failed, missing, beyond = found["failed"], found[None], found[NOT_APPLICABLE]
        unfinished = {job.problem for key, job in planned.by_key.items() if key not in statuses} if missing else set()
        done = found.total() - failed - missing - beyond
        yield Standing(
            f"{one.name}/{artefact.name}", profile, done, missing, failed, _notes(planned, unfinished, beyond)
        )


def _notes(planned: Plan, unfinished: set[str], beyond: int) -> str:
    notes = []
    absent = sorted({dataset for problem, dataset in planned.missing_data.items() if problem in unfinished})
    if absent:
        notes.append(f"data not at hand: {', '.join(absent)}")
    if beyond:
        notes.append(f"{beyond} {NOT_APPLICABLE}: ε is out of reach of their accounting")
    if planned.waiting:
        notes.append(f"{len(planned.waiting)} cells wait for other runs")
    return "; ".join(notes)
