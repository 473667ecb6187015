"""How long a call of `run` still takes: before it starts from rough costs, then from the batches that have ended."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

FLOPS = 5e9  # a core's in a second, between gradients (4e9) and eigendecompositions (2e10), seeds side by side
OVERHEAD = 1e-5  # seconds of an iteration beside its arithmetic
FADE = 0.8  # weight of a batch for each that ended after it


def seconds(work: float, iterations: float, cores: int) -> float:
    """A rough time, to the order of magnitude, before anything has run."""
    return (work / FLOPS + iterations * OVERHEAD) / max(cores, 1)


class Pace:
    """Seconds left, at the pace of the batches that ended last.

    Per flop and per run, and the lesser of the two: batches start with the costliest, so that where runs wait for more
    than arithmetic (noise that is calibrated for each, say) seconds per flop go up and say so, and where the rest is
    cheap seconds per run say too much. `clock` gives seconds.
    """

    def __init__(self, work: float, runs: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._left = [work or 1.0, float(runs or 1)]
        self._clock = clock
        self._start = self._last = clock()
        self._rates, self._weight = [0.0, 0.0], 0.0  # sums of seconds per flop and per run, and of their weights

    def ended(self, work: float, runs: int) -> None:
        """Note a batch that has just ended."""
        now = self._clock()
        for i, done in enumerate((work, runs)):
            self._rates[i] = FADE * self._rates[i] + (now - self._last) / max(done, 1e-300)
            self._left[i] = max(0.0, self._left[i] - done)
        self._weight = FADE * self._weight + 1.0
        self._last = now

    @property
    def left(self) -> float:
        """Seconds left; infinite before the first batch has ended, 0 after the last."""
        if self._left[1] <= 0:
            return 0.0
        if not self._weight:
            return math.inf
        return min(rate / self._weight * left for rate, left in zip(self._rates, self._left, strict=True))

    @property
    def share(self) -> float:
        """The share of the time that has passed, in [0, 1]; 1 only at the end."""
        left, passed = self.left, self._last - self._start
        if self._left[1] <= 0:
            return 1.0
        return min(passed / (passed + left), 0.999) if math.isfinite(left) and passed + left > 0 else 0.0
