"""Trust-region steps, subproblem solved exactly (dp-tr), and gradient descent and a search of iterates (dp-gd-2ns)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from dpbench.algorithms import base as dp
from dpbench.algorithms.nonconvex import oracle as const
from dpbench.algorithms.nonconvex.base import MinibatchSettings, OnMinibatches, SecondOrderMethod, Stage
from dpbench.algorithms.nonconvex.opt import smallest_eigenpair
from dpbench.algorithms.nonconvex.oracle import Guard, Iterate, ShortSteps
from dpbench.algorithms.nonconvex.published import HessianRoot, LossRead
from dpbench.privacy import accounting
from dpbench.privacy.budget import Budget


class Step(NamedTuple):
    """The minimiser s (d,), the multiplier λ ≥ 0 of ‖s‖ ≤ r, and the smallest eigenvalue of H."""

    s: np.ndarray
    multiplier: float
    smallest: float


def solve(H: np.ndarray, g: np.ndarray, radius: float) -> Step:
    """(H + λI)s = -g with H + λI positive semidefinite, ‖s‖ ≤ r and λ(r - ‖s‖) = 0 (Moré and Sorensen 1983).

    In the eigenbasis of the symmetric H (d, d), with gaps λ_i - λ_1 and μ = λ + λ_1 ≥ max(0, λ_1), s_i(μ) is
    -g_i/(μ + gap_i). Solving for μ rather than λ keeps all digits when g has next to no component along the
    first eigenvector. With none at all (the hard case) ‖s(0)‖ may fall short of r: that eigenvector makes up for it.
    """
    values, vectors = np.linalg.eigh(H)
    smallest, gaps = float(values[0]), values - values[0]
    g = vectors.T @ g

    def s(mu: float) -> np.ndarray:
        # Where g has no component a gap of 0 does no harm: 0/0 is taken for 0.
        return -np.divide(g, mu + gaps, out=np.zeros_like(g), where=g != 0)

    with np.errstate(divide="ignore", over="ignore"):
        least = max(smallest, 0.0)
        inside = s(least)
        if np.linalg.norm(inside) > radius:
            mu = _root(s, least, g, gaps, radius)
            return Step(vectors @ s(mu), mu - smallest, smallest)
    if smallest < 0:  # on the boundary all the same, in the direction nothing else points to
        inside[0] += np.sqrt(max(0.0, radius**2 - inside @ inside))
    return Step(vectors @ inside, max(-smallest, 0.0), smallest)


def _root(s: Callable[[float], np.ndarray], least: float, g: np.ndarray, gaps: np.ndarray, radius: float) -> float:
    """μ with ‖s(μ)‖ = r: of 1/r - 1/‖s(μ)‖, which is nearly linear, to the last digits."""
    from scipy.optimize import brentq

    def norm(v: np.ndarray) -> float:
        return float(np.linalg.norm(v))

    # ‖s(μ)‖ is at least the part along the first eigenvector, and at most ‖g‖/μ: both ends bracket the root.
    low, high = max(least, norm(g[gaps == 0]) / radius * (1 - 1e-15)), norm(g) / radius * (1 + 1e-15)
    return brentq(lambda mu: 1 / radius - 1 / norm(s(mu)), low, high, xtol=1e-300, rtol=1e-15, maxiter=1000)


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

    def planned(self, alpha, d):
        return const.trust_region_iterations(alpha)

    def sigma(self, problem: dp.Declaration, budget: Budget, T: int, settings: Any) -> float:
        """Noise multiplier at which T gradients and T Hessians fit the budget."""
        return math.sqrt(T / budget.rho)

    def stages(self, problem, mechanisms, alpha, settings):
        T = self.planned(alpha, problem.d)
        sigma = settings.noise * self.sigma(problem, mechanisms.budget, T, settings)
        hessian_sigma = sigma * (math.sqrt(problem.d) if settings.hessian_root == "twice" else 1.0)
        guard = Guard(problem, settings.overflow == "lost")
        oracle = self.oracle(problem, mechanisms, sigma, settings, guard, hessian_sigma)
        return [Stage(oracle, ShortSteps(), min(T, settings.cap))]

    def descent(self, w, problem, mechanisms, alpha, settings):
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

    def work(self, n, d, settings):
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

    def sigma(self, problem, budget, T, settings):
        if settings.batch_noise == "n":
            return math.sqrt(T / accounting.get("standard").rho(budget.epsilon, budget.delta))
        return budget.noise_scale(self.samples(problem, settings, 2 * T))


class DPGD2NS(SecondOrderMethod):
    """dp-gd-2ns: w ← w - g̃/G, T times; then the first iterate with small g̃ and no negative curvature in H̃.

    (Wang, Chen and Xu 2019.) The T gradients and at most T Hessians are 1/(2σ²)-zCDP each with σ² = T/ρ. The search
    uses the g̃ of the descent and releases nothing for iterates where that is large. The paper's own
    σ² = T ln(1/δ)/ε² is a quarter of what the budget asks for (an erratum of nonconvex).
    """

    name = "dp-gd-2ns"
    title = "DP-GD (2NS)"

    def planned(self, alpha, d):
        return const.gd_2ns_iterations(alpha, d)

    def stages(self, problem, mechanisms, alpha, settings):
        T = self.planned(alpha, problem.d)
        sigma = settings.noise * math.sqrt(T / mechanisms.budget.rho)
        oracle = self.oracle(problem, mechanisms, sigma, settings, Guard(problem, settings.overflow == "lost"))
        return [Stage(oracle, ShortSteps(), min(T, settings.cap))]

    def descent(self, w, problem, mechanisms, alpha, settings):
        ((oracle, _, T),) = self.stages(problem, mechanisms, alpha, settings)
        tolerances = const.working(alpha)
        candidates = []
        for _ in range(T):
            yield Iterate(w)
            g = yield from oracle.gradient(w)
            if np.linalg.norm(g) <= tolerances.gradient:
                # Kept with its gradient: the search then releases Hessians alone.
                candidates.append((w, g))
            w = w - g / const.G
        for candidate, g in candidates:
            H = yield from oracle.hessian(candidate)
            if smallest_eigenpair(H, g)[0] >= -tolerances.curvature:
                return candidate, "terminated"
        return w, "not terminated"
