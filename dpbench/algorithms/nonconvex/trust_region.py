"""dp-tr: a trust-region method with noisy gradients and Hessians (Wang and Xu 2021)."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from dpbench.algorithms.base import Array, Declaration, Mechanisms, Problem
from dpbench.algorithms.nonconvex import constants as const
from dpbench.algorithms.nonconvex.base import MinibatchSettings, OnMinibatches, SecondOrderMethod, Stage
from dpbench.algorithms.nonconvex.driver import Iterate, Method
from dpbench.algorithms.nonconvex.float32 import Guard
from dpbench.algorithms.nonconvex.line_search import ShortSteps
from dpbench.algorithms.nonconvex.published import HessianRoot, LossRead, recorded
from dpbench.algorithms.nonconvex.subproblem import solve
from dpbench.privacy import accounting
from dpbench.privacy.budget import Budget

Radius = Literal["published", "theory"]


class DPTrustRegion(SecondOrderMethod):
    """dp-tr: s = argmin <g̃, s> + <s, H̃s>/2 over ‖s‖ ≤ r, solved exactly; w ← w + s (Wang and Xu 2021).

    It ends at w once ‖g̃‖ ≤ α and λ̃_min ≥ -√(Mα), and at w + s once the multiplier of ‖s‖ ≤ r is below √(Mα). Each of
    the T iterations releases a gradient and a Hessian, both 1/(2σ²)-zCDP with σ² = T/ρ. r is α/M, which the published
    runs take, or √(α/M), which their T is derived for ("theory"). `hessian_root` "twice" has σ_H = √(Td/ρ), as the
    published code for the sigmoid: √d, which Δ_H holds already.
    """

    name = "dp-tr"
    title = "DP-TR"

    class Settings(SecondOrderMethod.Settings, frozen=True):
        radius: Radius = "published"
        loss_read: LossRead = "after"
        hessian_root: HessianRoot = "once"

    def planned(self, alpha: float, d: int) -> int:
        return const.trust_region_iterations(alpha)

    def sigma(self, problem: Declaration, budget: Budget, T: int, settings: Any) -> float:
        """Noise multiplier at which T gradients and T Hessians fit the budget."""
        return math.sqrt(T / budget.rho)

    def stages(self, problem: Declaration, mechanisms: Mechanisms, alpha: float, settings: Any) -> list[Stage]:
        T = self.planned(alpha, problem.d)
        sigma = settings.noise * self.sigma(problem, mechanisms.budget, T, settings)
        hessian_sigma = sigma * (math.sqrt(problem.d) if settings.hessian_root == "twice" else 1.0)
        guard = Guard(problem, settings.overflow == "lost")
        oracle = self.oracle(problem, mechanisms, sigma, settings, guard, hessian_sigma)
        return [Stage(oracle, ShortSteps(), min(T, settings.cap))]

    def method(self, w: Array, problem: Problem, mechanisms: Mechanisms, alpha: float, settings: Any) -> Method:
        return recorded(self.steps(w, problem, mechanisms, alpha, settings), settings)

    def steps(self, w: Array, problem: Problem, mechanisms: Mechanisms, alpha: float, settings: Any) -> Method:
        """`method`, step by step."""
        ((oracle, _, T),) = self.stages(problem, mechanisms, alpha, settings)
        target = const.target(alpha)
        radius = alpha / const.M if settings.radius == "published" else math.sqrt(alpha / const.M)
        for _ in range(T):
            yield Iterate(w)
            g = yield from oracle.gradient(w)
            H = yield from oracle.hessian(w)
            step = solve(H, g, radius)
            if np.linalg.norm(g) <= target.gradient and step.smallest >= -target.curvature:
                return w, "terminated"
            w = w + step.s
            if step.multiplier < target.curvature:
                return w, "terminated"
        return w, "not terminated"

    def work(self, n: int, d: int, settings: Any) -> float:
        return super().work(n, d, settings) * (1 + d / 4)


class DPTrustRegionMinibatch(OnMinibatches, DPTrustRegion):
    """dp-tr-b: dp-tr on minibatches: each release on m of the n rows, with noise for 2T of them to be (ε, δ)-DP.

    With `batch_noise` "n" it has dp-tr's own σ, as the published code does: no amplification, on Δ for n rows.
    """

    name = "dp-tr-b"
    title = "DP-TR-B"

    class Settings(MinibatchSettings, frozen=True):
        radius: Radius = "published"
        hessian_root: HessianRoot = "once"

    def sigma(self, problem: Declaration, budget: Budget, T: int, settings: Any) -> float:
        if settings.batch_noise == "n":
            return math.sqrt(T / accounting.get("standard").rho(budget.epsilon, budget.delta))
        return budget.noise_scale(self.samples(problem, settings, 2 * T))
