"""What the published runs did otherwise, for comparison: `calibration` "as-published-code". None of it keeps its ε."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from dpbench.algorithms.base import Mechanisms, Problem
from dpbench.algorithms.nonconvex.driver import Iterate, Method, Value
from dpbench.algorithms.nonconvex.oracle import FullBatch
from dpbench.privacy.ledger import Gaussian, Release, WithoutReplacement

PUBLISHED = "as-published-code"
Calibration = Literal["private", "as-published-code"]

LOOK_EVERY = 10  # iterations
RISES = {"logistic": 1, "sigmoid": 3}  # looks in a row at which the true loss has risen
LARGEST_RHO = 1.0  # of the scripts' search for σ = √(T/ρ): they add no less noise than that, at any ε


def until_loss_rises(method: Method, rises: int) -> Method:
    """`method`, ended (and not terminated) once f itself has risen `rises` times in a row, every 10 iterations."""
    answer, last, risen, t = None, math.inf, 0, 0
    while True:
        try:
            request = method.send(answer)
        except StopIteration as end:
            return end.value
        if isinstance(request, Iterate):
            if t % LOOK_EVERY == 0:
                value = yield Value(request.w)
                risen = risen + 1 if value > last else 0
                last = value
                if risen == rises:
                    return request.w, False
            t += 1
        answer = yield request


class SharedMinibatch(FullBatch):
    """g̃ and H̃ on the same m rows, drawn with replacement, with the noise of a mean over all n: n/m times too little.

    Noise multipliers are recorded relative to the sensitivities on m rows, Δ_g = 2B_g/m and Δ_H = 2B_H√d/m.
    """

    def __init__(self, problem: Problem, mechanisms: Mechanisms, sigma: float, hessian_sigma: float, m: int) -> None:
        too_small = m / problem.n
        super().__init__(problem, mechanisms, sigma * too_small, hessian_sigma * too_small)
        self.size = m
        self._batches = mechanisms.with_replacement(problem.n, m, label="batch")
        self._release_gradient = self._release_hessian = self._batches.gaussian
        self._n = problem.n

    def event(self, sigma: float) -> Release:
        return WithoutReplacement(self._n, self.size, Gaussian(sigma))

    def _gradient_rows(self) -> np.ndarray:
        self._rows = self._batches.draw()[0]
        return self._rows

    def _hessian_rows(self) -> np.ndarray:
        return self._rows


def searched(multiplier: float, T: int, settings: Any) -> float:
    """`multiplier`, which ε asks for, or what the published search makes of it for T iterations."""
    return max(multiplier, math.sqrt(T / LARGEST_RHO)) if settings.calibration == PUBLISHED else multiplier
