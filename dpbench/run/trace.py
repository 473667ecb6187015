"""What a run shows on its way: the objective at chosen iterations, outside the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

T = TypeVar("T")


def schedule(last: int, per_decade: int = 24) -> list[int]:
    """Iterations to record in a run of `last`: every one up to 20, then evenly on a log scale, and the last.

    >>> schedule(5)
    [0, 1, 2, 3, 4, 5]
    """
    dense = range(min(20, last) + 1)
    decades = np.log10(max(last, 20) / 20)
    sparse = np.geomspace(20, max(last, 20), int(np.ceil(decades * per_decade)) + 1).round().astype(int)
    return sorted({*dense, *(int(t) for t in sparse if t <= last), last})


class Clock:
    """Wall time of the method alone: it stands still while the run is being observed."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._paused = 0.0

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start - self._paused

    def outside(self, function: Callable[[], T]) -> T:
        """Call `function` with the clock standing still."""
        begin = time.perf_counter()
        try:
            return function()
        finally:
            self._paused += time.perf_counter() - begin


class Trace:
    """Records F(W) at scheduled iterations; calling it at any other iteration returns at once.

    `final` marks the last iteration of a run that ends before the schedule does: it is recorded in any case. Where
    replicates end at iterations of their own, `final` is (k,), and `passes` (k,) with NaN for those that have left:
    nothing is recorded for them, nor, between scheduled iterations, for those that go on.

    next: the iteration it waits for, -1 for none: a run that works in blocks ends one there.
    points: list of (iteration, passes (k,), seconds, objective (k,)).
    """

    def __init__(self, objective: Callable[[np.ndarray], np.ndarray], iterations: list[int], clock: Clock) -> None:
        self._objective = objective
        self._wanted = iter([*iterations, -1])
        self.next = next(self._wanted)
        self._clock = clock
        self.points: list[tuple[int, np.ndarray, float, np.ndarray]] = []

    def __call__(
        self, iteration: int, W: np.ndarray, passes: float | np.ndarray, *, final: bool | np.ndarray = False
    ) -> None:
        wanted = np.ones(len(W), bool) if iteration == self.next else np.broadcast_to(final, len(W))
        if not wanted.any():
            return
        seconds = self._clock.seconds
        if iteration == self.next:
            self.next = next(self._wanted)
        values = self._clock.outside(lambda: self._objective(W))
        self.points.append((iteration, np.where(wanted, passes, np.nan), seconds, values))
