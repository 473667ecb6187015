"""What an archive says was released, and a run repeated for what it released."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from dpbench import algorithms
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Composition, Entry
from dpbench.privacy.plain import plain, release_of
from dpbench.privacy.streams import stream
from dpbench.problems import build, starts
from dpbench.run.execute import run_batch
from dpbench.run.jobs import Job, delta_value
from dpbench.submitting.archive import worded


def counted(composition: Composition) -> list[dict[str, Any]]:
    """Every entry as the fields of an `archive.ReleaseCount`."""
    return [{"release": plain(r), "count": c, "label": worded(label)} for r, c, label in composition]


def composition_of(releases: list[Any]) -> Composition:
    """Of `archive.ReleaseCount`s."""
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
