"""How far the runs behind an artefact are: done, missing, failed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dpbench.errors import counted
from dpbench.run import outcomes
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
    planner = Planner(store)
    beyond_reach = {key for key, status in planner.outcomes.items() if status == "out of reach"}
    failures = {key for key, status in planner.outcomes.items() if status not in outcomes.RESULTS} - beyond_reach
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
            missing = planned.keys.difference(planner.outcomes)
            beyond = len(planned.keys & beyond_reach)
            failed = len(planned.keys & failures)
            done = len(planned.keys) - len(missing) - failed - beyond
            unfinished = {each.job.problem for each in planned.series if missing and not missing.isdisjoint(each.keys)}
            told[asked] = done, len(missing), failed, _notes(planned, unfinished, beyond)
        yield Standing(f"{one.name}/{artefact.name}", profile, *told[asked])


def _notes(planned: Plan, unfinished: set[str], beyond: int) -> str:
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
