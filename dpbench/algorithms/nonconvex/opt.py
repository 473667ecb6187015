"""opt: gradient steps, and steps of negative curvature where the gradient is small; and its variants.

-ls: line search; -b: minibatches; 2opt: two phases.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy

from dpbench.algorithms import base as dp
from dpbench.algorithms.nonconvex import oracle as const
from dpbench.algorithms.nonconvex.base import MinibatchSettings, OnMinibatches, SecondOrderMethod, Stage
from dpbench.algorithms.nonconvex.oracle import FullBatch, Guard, Iterate, LineSearch, Method, ShortSteps
from dpbench.algorithms.nonconvex.published import LossRead, LossWatch, Search, Stop, searched
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
    """Algorithms 1 (short steps) and 3 (line search): for a replicate, see `oracle`.

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
    """stop, loss_read: what the published runs do otherwise, see `published`."""

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
