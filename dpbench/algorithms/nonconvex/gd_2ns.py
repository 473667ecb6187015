"""dp-gd-2ns: noisy gradient descent, then a search of its iterates for a second-order stationary point."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpbench.algorithms.base import Array, Declaration, Mechanisms, Problem
from dpbench.algorithms.nonconvex import constants as const
from dpbench.algorithms.nonconvex.base import SecondOrderMethod, Stage
from dpbench.algorithms.nonconvex.driver import Iterate, Method
from dpbench.algorithms.nonconvex.float32 import Guard
from dpbench.algorithms.nonconvex.line_search import ShortSteps
from dpbench.algorithms.nonconvex.opt import smallest_eigenpair
from dpbench.algorithms.nonconvex.published import recorded


class DPGD2NS(SecondOrderMethod):
    """dp-gd-2ns: w ← w - g̃/G, T times; then the first iterate with small g̃ and no negative curvature in H̃.

    (Wang, Chen and Xu 2019.) The T gradients and at most T Hessians are 1/(2σ²)-zCDP each with σ² = T/ρ. The search
    uses the g̃ of the descent and releases nothing for iterates where that is large. The paper's own
    σ² = T ln(1/δ)/ε² is a quarter of what the budget asks for (an erratum of nonconvex).
    """

    name = "dp-gd-2ns"
    title = "DP-GD (2NS)"

    def planned(self, alpha: float, d: int) -> int:
        return const.gd_2ns_iterations(alpha, d)

    def stages(self, problem: Declaration, mechanisms: Mechanisms, alpha: float, settings: Any) -> list[Stage]:
        T = self.planned(alpha, problem.d)
        sigma = settings.noise * math.sqrt(T / mechanisms.budget.rho)
        oracle = self.oracle(problem, mechanisms, sigma, settings, Guard(problem, settings.overflow == "lost"))
        return [Stage(oracle, ShortSteps(), min(T, settings.cap))]

    def method(self, w: Array, problem: Problem, mechanisms: Mechanisms, alpha: float, settings: Any) -> Method:
        return recorded(self.steps(w, problem, mechanisms, alpha, settings), settings)

    def steps(self, w: Array, problem: Problem, mechanisms: Mechanisms, alpha: float, settings: Any) -> Method:
        """`method`, step by step."""
        ((oracle, _, T),) = self.stages(problem, mechanisms, alpha, settings)
        tolerances = const.working(alpha)
        candidates = []
        for _ in range(T):
            yield Iterate(w)
            g = yield from oracle.gradient(w)
            if np.linalg.norm(g) <= tolerances.gradient:
                candidates.append((w, g))
            w = w - g / const.G
        for candidate, g in candidates:
            H = yield from oracle.hessian(candidate)
            if smallest_eigenpair(H, g)[0] >= -tolerances.curvature:
                return candidate, "terminated"
        return w, "not terminated"
