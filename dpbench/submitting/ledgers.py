"""Releases as plain data and back, and a run repeated for what it released."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple, get_args

import numpy as np
from threadpoolctl import threadpool_limits

from dpbench import algorithms
from dpbench.errors import PrivacyError, UserError
from dpbench.privacy import ledger
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Composition, Entry, Release
from dpbench.privacy.streams import stream
from dpbench.problems import build, starts
from dpbench.run.execute import run_batch
from dpbench.run.jobs import Job, delta_value

KINDS: dict[str, type] = {kind.__name__: kind for kind in get_args(ledger.Release)}


def plain(release: Release) -> dict[str, Any]:
    """{"kind": its class, field: value, …}, nested where a release is on a sample."""
    fields = {field.name: getattr(release, field.name) for field in dataclasses.fields(release)}
    return {"kind": type(release).__name__} | {
        name: plain(value) if type(value) in KINDS.values() else value for name, value in fields.items()
    }


def release_of(data: dict[str, Any]) -> Release:
    """The inverse of `plain`; UserError for anything that is not a release."""
    fields = dict(data)
    kind = KINDS.get(fields.pop("kind", ""))
    known = {} if kind is None else {field.name: field.type for field in dataclasses.fields(kind)}
    if kind is None or fields.keys() != known.keys():
        raise UserError(f"not a release: {str(data)[:80]}")
    values: dict[str, Any] = {}
    for name, value in fields.items():
        if isinstance(value, dict):
            values[name] = release_of(value)
        elif isinstance(value, bool) or not isinstance(value, int | float) or known[name] not in ("int", "float"):
            raise UserError(f"{kind.__name__}: {name} is no number")
        elif known[name] == "int" and not isinstance(value, int):
            raise UserError(f"{kind.__name__}: {name} is not a whole number")
        else:
            values[name] = float(value) if known[name] == "float" else value
    try:
        return kind(**values)
    except PrivacyError as error:
        raise UserError(str(error)) from None


def composition_of(releases: list[Any]) -> Composition:
    """Of `archive.ReleaseCount`s."""
    for one in releases:
        if one.count < 1:
            raise UserError(f"{one.label}: a count of {one.count}")
    return tuple(Entry(release_of(one.release), one.count, one.label) for one in releases)


class Replay(NamedTuple):
    """What a run came to when it was repeated."""

    objective: float
    composition: Composition


def replay(job: Job) -> Replay:
    """Run one job again, for its objective and for what it released."""
    algorithm, problem = algorithms.get(job.algorithm), build(job.problem)
    budget = Budget(
        job.epsilon, delta_value(job.delta, problem.n), job.neighbours, algorithm.accounting(job.accounting)
    )
    start = starts.draw(job.recipe.start, problem.d, stream(job.start_key, "init"))
    settings = algorithm.complete(problem, job.parsed())
    with threadpool_limits(1):
        run = run_batch(problem, algorithm, [settings], np.asarray(start)[None], budget, [job.stream_key])
    return Replay(float(run.objective[0]), run.mechanisms.ledger.planned(0))
