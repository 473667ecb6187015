"""What goes to an executor and what comes back: batches of jobs, their rows, or the death of a worker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol, TypeAlias

from dpbench.run.jobs import Job
from dpbench.run.row import Point, Row

Batch: TypeAlias = list[Job]


class Rows(NamedTuple):
    """The rows of `runs` and of `traces` that a batch ended with."""

    runs: list[Row]
    traces: list[Point]


class Death(NamedTuple):
    """`times` workers died while they had the batch; why: what the library calls it."""

    times: int
    why: str


class Executor(Protocol):
    """Computes batches."""

    def shares(self) -> int:
        """Into how many even shares the work is cut: a batch longer than one would be the last to end."""

    def run(self, batches: dict[int, Batch]) -> Iterator[tuple[int, Rows | Death]]:
        """How each batch ended, in the order they end. A batch that did not start may be left out after a death."""
