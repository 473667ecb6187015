"""dp-tr: a trust-region method with noisy gradients and Hessians (Wang and Xu 2021)."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from dpbench.algorithms.nonconvex import constants as const
from dpbench.algorithms.nonconvex.base import MinibatchSettings, OnMinibatches, SecondOrderMethod
from dpbench.algorithms.nonconvex.driver import Iterate
from dpbench.algorithms.nonconvex.subproblem import solve

Radius = Literal["published", "theory"]


class DPTrustRegion(SecondOrderMethod):
    """dp-tr: s = argmin <g̃, s> + <s, H̃s>/2 over ‖s‖ ≤ r, solved exactly; w ← w + s (Wang and Xu 2021).

    It ends at w once ‖g̃‖ ≤ α and λ̃_min ≥ -√(Mα), and at w + s once the multiplier of ‖s‖ ≤ r is below √(Mα). Each of
    the T iterations releases a gradient and a Hessian, both 1/(2σ²)-zCDP with σ² = T/ρ. r is α/M, which the published
    runs fit, or √(α/M), which their T is derived for ("theory").
    """

    name = "dp-tr"
    title = "DP-TR"

    class Settings(SecondOrderMethod.Settings):
        radius: Radius = "published"

    def planned(self, alpha, d):
        return const.trust_region_iterations(alpha)

    def sigma(self, problem, budget, T, settings) -> float:
        """Noise multiplier at which T gradients and T Hessians fit the budget."""
        return math.sqrt(T / budget.rho)

    def method(self, w, problem, mechanisms, alpha, settings):
        T = self.planned(alpha, problem.d)
        oracle = self.oracle(problem, mechanisms, self.sigma(problem, mechanisms.budget, T, settings), settings)
        target = const.target(alpha)
        radius = alpha / const.M if settings.radius == "published" else math.sqrt(alpha / const.M)
        for _ in range(min(T, settings.cap)):
            yield Iterate(w)
            g = yield from oracle.gradient(w)
            H = yield from oracle.hessian(w)
            step = solve(H, g, radius)
            if np.linalg.norm(g) <= target.gradient and step.smallest >= -target.curvature:
                return w, True
            w = w + step.s
            if step.multiplier < target.curvature:
                return w, True
        return w, False

    def work(self, n, d, settings):
        return super().work(n, d, settings) * (1 + d / 4)


class DPTrustRegionMinibatch(OnMinibatches, DPTrustRegion):
    """dp-tr-b: dp-tr on minibatches: each release on m of the n rows, with noise for 2T of them to be (ε, δ)-DP."""

    name = "dp-tr-b"
    title = "DP-TR-B"

    class Settings(MinibatchSettings):
        radius: Radius = "published"

    def sigma(self, problem, budget, T, settings):
        return budget.without_replacement_multiplier(problem.n, settings.m, 2 * T)
