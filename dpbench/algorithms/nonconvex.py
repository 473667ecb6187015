"""Second-order stationary points of smooth nonconvex problems: opt and its variants, dp-tr, dp-gd-2ns.

opt takes gradient steps, and steps of negative curvature where the gradient is small (-ls: line search, -b:
minibatches, 2opt: two phases); dp-tr takes trust-region steps; dp-gd-2ns descends and searches its iterates. What a
replicate releases next depends on what it released before, so each method is written for one replicate, as a generator
that asks for what it needs; `nonconvex_oracle` answers all replicates with one product over the data.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import scipy

from dpbench.algorithms import base as dp
from dpbench.algorithms import nonconvex_oracle as const
from dpbench.algorithms.nonconvex_base import (
    HessianRoot,
    LossRead,
    LossWatch,
    MinibatchSettings,
    OnMinibatches,
    Search,
    SecondOrderMethod,
    Stage,
    Stop,
    searched,
)
from dpbench.algorithms.nonconvex_oracle import FullBatch, Guard, Iterate, LineSearch, Method, ShortSteps
from dpbench.privacy import accounting
from dpbench.privacy.budget import Budget


class NoisyPhase(NamedTuple):
    """At most T iterations at noise multiplier σ."""

    T: int
    sigma: float


def descend(
    w: dp.Array,
    oracle: FullBatch,
    steps: ShortSteps | LineSearch,
    tolerances: const.Tolerances,
    T: int,
    watch: LossWatch,
) -> Method:
    """Algorithms 1 (short steps) and 3 (line search): for a replicate, see `nonconvex_oracle`.

    watch: the published runs' stop, which a private run has not.
    """
    for _ in range(T):
        yield Iterate(w)
        last = yield from watch.look(w)
        g = yield from oracle.gradient(w)
        if np.linalg.norm(g) > tolerances.gradient:
            w = w - (yield from steps.along_gradient(w, g)) * g
        else:
            H = yield from oracle.hessian(w)
            curvature, p = smallest_eigenpair(H, g)
            if curvature >= -tolerances.curvature:
                return w, "terminated"
            w = w + (yield from steps.along_curvature(w, p, curvature)) * p
        if last:
            break
    return w, "not terminated"


def smallest_eigenpair(H: np.ndarray, g: np.ndarray) -> tuple[float, np.ndarray]:
    """The smallest eigenvalue of H (d, d) and its unit eigenvector p with <p, g> ≤ 0 (equation 5)."""
    values, vectors = scipy.linalg.eigh(H, subset_by_index=[0, 0])
    p = vectors[:, 0]
    return float(values[0]), -p if p @ g > 0 else p


class FullBatchSettings(SecondOrderMethod.Settings, frozen=True):
    """stop, loss_read: what the published runs do otherwise, see `nonconvex_base`."""

    stop: Stop = "released"
    loss_read: LossRead = "after"


class Opt(SecondOrderMethod):
    """opt: Algorithm 1 with short steps.

    Each of the T iterations releases a gradient and perhaps a Hessian, each 1/(2σ²)-zCDP with σ² = T/ρ (Theorem 1 and
    equation 8 with ρ_f = 0, as the gap f(w₀) - inf f is a constant here).
    """

    name = "opt"
    title = "OPT"
    releases: ClassVar[int] = 2  # in an iteration, of 1/(2σ²)-zCDP each

    Settings: ClassVar[type[SecondOrderMethod.Settings]] = FullBatchSettings

    def T(self, alpha: float) -> int:
        return const.short_step_iterations(alpha)

    def lengths(self, alpha: float) -> tuple[int, ...]:
        """The most iterations of each phase."""
        return (self.T(alpha),)

    def planned(self, alpha, d):
        return sum(self.lengths(alpha))

    def phases(self, problem: dp.Declaration, budget: Budget, alpha: float, settings: Any) -> list[NoisyPhase]:
        """One phase, of the whole budget."""
        (T,) = self.lengths(alpha)
        return [NoisyPhase(T, math.sqrt(self.releases * T / (2 * budget.rho)))]

    def steps(
        self, problem: dp.Declaration, mechanisms: dp.Mechanisms, sigma: float, guard: Guard
    ) -> ShortSteps | LineSearch:
        return ShortSteps()

    def watched(self, phase: int, problem: dp.Problem, settings: Any) -> bool:
        """Whether the published runs watch the true loss in this phase, where the settings say `stop` as they do."""
        return getattr(settings, "stop", "released") == "true loss"

    def stages(self, problem, mechanisms, alpha, settings):
        left, stages = settings.cap, []
        for phase in self.phases(problem, mechanisms.budget, alpha, settings):
            # Noise is for the whole phase, also where the cap ends it early: ε does not depend on the cap.
            T, sigma = min(phase.T, left), settings.noise * phase.sigma
            guard = Guard(problem, settings.overflow == "lost")
            oracle = self.oracle(problem, mechanisms, sigma, settings, guard)
            stages.append(Stage(oracle, self.steps(problem, mechanisms, sigma, guard), T))
            left -= T
        return stages

    def descent(self, w, problem, mechanisms, alpha, settings):
        """Phase by phase, each from where the one before ended."""
        made = 0
        for number, (oracle, steps, T) in enumerate(self.stages(problem, mechanisms, alpha, settings)):
            watch = LossWatch(problem, self.watched(number, problem, settings), iterations=made)
            w, ending = yield from descend(w, oracle, steps, const.working(alpha), T, watch)
            if ending == "terminated":
                return w, ending
            made += T
        return w, "not terminated"


class OptLineSearch(Opt):
    """opt-ls: Algorithm 3. The line search adds 1/(2λ²)-zCDP to each iteration, λ = σ, σ² = 3T/(2ρ) (equation 14)."""

    name = "opt-ls"
    title = "OPT-LS"
    accountings = ("text", "bs16", "cks20", "standard")  # not every release is a Gaussian
    discloses = (
        *SecondOrderMethod.discloses,
        dp.Disclosure(
            "line search",
            "which of the trial steps is the first to decrease the objective enough",
            "sparse vector",
            "at most T",
            replace_one="2·γ·B_g·‖v‖/n",
            why="a row's value moves by at most γ·B_g·‖v‖ along the longest trial step γ·v",
        ),
    )
    releases = 3

    audit_case = dp.AuditCase({"alpha": 2.5}, n=2)  # T = 1, and some first gradients are long enough to search along

    def T(self, alpha):
        return const.line_search_iterations(alpha)

    def steps(self, problem, mechanisms, sigma, guard):
        return LineSearch(problem, mechanisms, sigma, guard)

    def work(self, n, d, settings):
        return 4 * super().work(n, d, settings)  # up to seven values to a gradient


class SearchedSettings(MinibatchSettings, frozen=True):
    """search: the published code's own bound on its search for the noise."""

    search: Search = "none"


class OptMinibatch(OnMinibatches, Opt):
    """opt-b: opt on minibatches: each release on m of the n rows, with noise for 2T of them to be (ε, δ)-DP."""

    name = "opt-b"
    title = "OPT-B"
    Settings = SearchedSettings

    def phases(self, problem, budget, alpha, settings):
        (T,) = self.lengths(alpha)
        return [NoisyPhase(T, searched(budget.noise_scale(self.samples(problem, settings, 2 * T)), T, settings))]


class TwoPhase(Opt):
    """2opt: opt with 3/4 of ρ on T' = ⌊√T⌋ iterations; if that does not terminate, 1/4 of ρ on T more.

    (Section 3.4.) Phase two starts from where phase one ended, and does not use what phase one left unspent.
    """

    name = "2opt"
    title = "2OPT"

    def lengths(self, alpha):
        T = self.T(alpha)
        return math.isqrt(T), T

    def watched(self, phase, problem, settings):
        # phase two of loss B alone: in the scripts of loss A neither phase looks at the loss
        return phase == 1 and problem.loss.name == "sigmoid" and super().watched(phase, problem, settings)

    def phases(self, problem, budget, alpha, settings):
        return [
            NoisyPhase(T, math.sqrt(self.releases * T / (2 * share * budget.rho)))
            for T, share in zip(self.lengths(alpha), (3 / 4, 1 / 4), strict=True)
        ]


class TwoPhaseLineSearch(TwoPhase, OptLineSearch):
    """2opt-ls: 2opt with the steps and the noise of opt-ls."""

    name = "2opt-ls"
    title = "2OPT-LS"


class TwoPhaseMinibatch(OnMinibatches, TwoPhase):
    """2opt-b: 2opt on minibatches. 2T' releases cost (3ε/4, δ); with those of phase two, 2T more, it is (ε, δ)."""

    name = "2opt-b"
    title = "2OPT-B"
    Settings = SearchedSettings

    def phases(self, problem, budget, alpha, settings):
        first, T = self.lengths(alpha)
        # Phase two is calibrated with phase one's releases as they were, so the δ is not split.
        part = dataclasses.replace(budget, epsilon=3 / 4 * budget.epsilon)
        sigma = part.noise_scale(self.samples(problem, settings, 2 * first))
        before = self.samples(problem, settings, 2 * first, sigma)
        rest = budget.noise_scale(self.samples(problem, settings, 2 * T), after=before)
        return [NoisyPhase(first, searched(sigma, first, settings)), NoisyPhase(T, searched(rest, T, settings))]


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
