"""Step lengths: short ones from the smoothness constants, or a private line search."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpbench.algorithms.base import Array, Declaration, Mechanisms
from dpbench.algorithms.nonconvex import constants as const
from dpbench.algorithms.nonconvex.driver import FloatMethod
from dpbench.algorithms.nonconvex.float32 import Guard
from dpbench.privacy.ledger import PureDP


class ShortSteps:
    """1/G along -g̃ and 2|λ̃|/M along p̃ (equation 7): nothing is released."""

    def plan(self, T: int) -> None:
        """Nothing."""

    def along_gradient(self, w: Array, g: Array) -> FloatMethod:
        return 1 / const.G
        yield  # a generator, as the line search is

    def along_curvature(self, w: Array, p: Array, curvature: float) -> FloatMethod:
        return 2 * abs(curvature) / const.M
        yield


class LineSearch:
    """Backtracking by the sparse vector technique (Algorithms 2 and 3); 1/λ-DP a call, found a step or not.

    f(w) - f(w + γv) is a mean over n examples of differences of at most γ B_g ‖v‖, so replacing one moves a query by
    Δ_q = 2 γ_init B_g ‖v‖ / n at most, for every γ ≤ γ_init; the rest of it is public. 1/λ-DP is 1/(2λ²)-zCDP
    (Theorem 5).
    """

    def __init__(self, problem: Declaration, mechanisms: Mechanisms, scale: float, guard: Guard | None = None) -> None:
        self.n, self.mechanisms, self.scale = problem.n, mechanisms, scale
        self._value = (guard or Guard(problem)).value

    def plan(self, T: int) -> None:
        """A search in each of T iterations at most."""
        self.mechanisms.plan("line search", PureDP(1 / self.scale), T)

    def along_gradient(self, w: Array, g: Array) -> FloatMethod:
        """γ with f(w - γg̃) ≤ f(w) - c_g γ ‖g̃‖² (SD1), as far as the noise lets one see."""
        square = float(g @ g)
        return self._search(w, -g, const.FALLBACK_g, const.b_g, const.beta_g, lambda step: const.c_g * step * square)

    def along_curvature(self, w: Array, p: Array, curvature: float) -> FloatMethod:
        """γ with f(w + γp̃) ≤ f(w) - c_H γ² |λ̃|/2 (SD2)."""
        fallback = const.t2 * abs(curvature) / const.M
        return self._search(
            w, p, fallback, const.b_H, const.beta_H, lambda step: 0.5 * const.c_H * step**2 * abs(curvature)
        )

    def _search(
        self,
        w: Array,
        direction: Array,
        fallback: float,
        multiple: float,
        shrink: float,
        decrease: Callable[[float], float],
    ) -> FloatMethod:
        """Algorithm 2: the first of γ_init, βγ_init, … that is seen to decrease f enough, else the fallback."""
        step = multiple * fallback
        enough = self.mechanisms.above_threshold(
            sensitivity=2 * step * const.B_g * float(np.linalg.norm(direction)) / self.n,
            epsilon=1 / self.scale,
            label="line search",
        )
        value = yield from self._value(w)
        for _ in range(math.floor(math.log(1 / multiple, shrink)) + 1):
            trial = yield from self._value(w + step * direction)
            if enough(float(value - trial - decrease(step))):
                return step
            step *= shrink
        return fallback
