"""What an archive says was released, and a run repeated for what it released."""

from __future__ import annotations

from typing import Any, NamedTuple

from dpbench.privacy.ledger import Composition, Entry
from dpbench.privacy.plain import plain, release_of
from dpbench.run.bound import bind_jobs
from dpbench.run.jobs import Job
from dpbench.run.threads import one_thread
from dpbench.submitting.archive import worded


def counted(composition: Composition) -> list[dict[str, Any]]:
    """Every entry as the fields of an `archive.ReleaseCount`."""
    return [{"release": plain(r), "count": c, "label": worded(label)} for r, c, label in composition]


def composition_of(releases: list[Any]) -> Composition:
    """Of `archive.ReleaseCount`s."""
    return tuple(Entry(release_of(one.release), one.count, one.label) for one in releases)


class Replay(NamedTuple):
    """The result of repeating a run."""

    objective: float
    composition: Composition


def replay(job: Job) -> Replay:
    """Run one job again, for its objective and for what it released."""
    with one_thread():
        run = bind_jobs([job]).run()
    return Replay(float(run.objective[0]), run.mechanisms.ledger.planned(0))
