"""Frank and Wolfe's method on an ℓ₁ ball, each vertex drawn by the exponential mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from dpbench.algorithms import base as dp
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import BoundedRange
from dpbench.privacy.mechanisms import Score


class FrankWolfe(dp.Algorithm):
    """dp-frank-wolfe: w ← (1 - a)w + a·v, a = 2/(t + 2), v ∈ {±B e_j} (or 0, with l1) by the exponential mechanism.

    After Talwar, Thakurta and Zhang (2015). h = (1/n)Σ clip(ℓ'_i, ±c)x_i + l2·w; the score of ±B e_j is ∓B h_j - l1·B,
    that of 0 is 0. With |x_ij| ≤ R (‖x‖₂ ≤ R has it) h_j moves by cR/n at most, either way, and twice that under
    replace-one; so each score by B times that. The log-ratio of an index's probabilities lies in an interval of length
    ε₀: a bounded range, ε₀²/8-zCDP a step, where report-noisy-max with Laplace noise is ε₀-DP alone.

    T: error 8β B²/(T + 2), β = sup ℓ'', and noise (2Δ/ε₀) ln(2d): T = (4βBn√(8ρ)/(c ln 2d))^{2/3}, with ρ of (ε, δ) by
    Bun and Steinke (2016).

    radius: B, public. clip: c; None: what bounds ℓ' by itself, 0.3 for squared loss.
    """

    name = "dp-frank-wolfe"
    title = "DP-Frank-Wolfe"
    home = "greedy_coordinate"
    exact = "sums"
    persons = True
    paper_accounting = "tight"
    accountings: ClassVar = ("tight", "rdp", "pure")
    needs = dp.Needs(convex=True, smooth=True, regularisers=("l1", "l2"))
    discloses = (
        dp.Disclosure(
            "vertex",
            "the vertex whose score is largest, with Gumbel noise",
            "exponential",
            add_remove="B·C·R/n",
            why="each coordinate of the mean gradient moves by C·R/n, derivatives clipped to ±C",
        ),
    )
    tuning: ClassVar = {"radius": [1.0, 3.0, 10.0]}

    class Settings(dp.BaseSettings, frozen=True):
        T: dp.Count | None = None
        radius: dp.Positive = 3.0
        clip: dp.Positive | None = None

    def complete(self, problem, settings):
        return dp.at_default_clip(problem, settings, 0.3)

    audit_case = dp.AuditCase(d=1)

    def work(self, n, d, settings):
        return 4.0 * n * d * (settings.T or 100)

    def batch_size(self, n, d):
        return int(max(1, min(128, 200e6 / (8 * d))))

    def plan(self, problem, mechanisms, settings):
        T, epsilon = self._rounds(problem, mechanisms.budget, settings)
        mechanisms.plan("vertex", BoundedRange(epsilon), T)

    def _rounds(self, problem: dp.Declaration, budget: Budget, settings: Settings) -> tuple[int, float]:
        """T, and the ε₀ of each."""
        T = settings.T or rounds(problem, settings.radius, settings.clip or 1.0, budget.epsilon, budget.delta)
        return T, 1 / budget.noise_scale(((BoundedRange(1.0), T),))

    def run(self, problem, W, mechanisms, settings, trace):
        B, clip, l1 = settings.radius, settings.clip or 1.0, problem.l1
        sensitivity = B * clip * problem.row_bound / problem.n
        T, epsilon = self._rounds(problem, mechanisms.budget, settings)
        k, d = W.shape
        W, each = np.zeros_like(W), np.arange(k)

        score = vertex_score(B, l1)
        trace(0, W, passes=0)
        for t in range(T):
            h = problem.bounded_gradient(W, clip) + problem.l2 * W
            chosen = mechanisms.exponential(h, sensitivity=sensitivity, epsilon=epsilon, label="vertex", score=score)
            a = 2 / (t + 2)
            # A convex combination: the iterate stays in the ball, and starts at a vertex as a = 1 first.
            W *= 1 - a
            vertex = chosen < 2 * d
            W[each[vertex], chosen[vertex] % d] += np.where(chosen[vertex] < d, a * B, -a * B)
            trace(t + 1, W, passes=t + 1)
        return dp.RunResult(W, T=[T] * k)


def rounds(problem: dp.Declaration, radius: float, clip: float, epsilon: float, delta: float) -> int:
    """T by the class's rule; at δ = 0 of ε = T·ε₀ in place of ρ = T·ε₀²/8."""
    curvature = problem.loss.smoothness * problem.row_bound
    if delta == 0:
        balanced = math.sqrt(2 * curvature * radius * problem.n * epsilon / (clip * math.log(2 * problem.d + 1)))
    else:
        log = -math.log(delta)
        rho = (epsilon / (math.sqrt(epsilon + log) + math.sqrt(log))) ** 2
        scale = 4 * curvature * radius * problem.n * math.sqrt(8 * rho) / (clip * math.log(2 * problem.d + 1))
        # Error ∝ 1/T and noise ∝ √T: least together at a power of 2/3.
        balanced = scale ** (2 / 3)
    return int(min(max(3, round(balanced)), max(3, 1e12 / (4 * problem.n * problem.d))))


def vertex_score(radius: float, l1: float) -> Score:
    """Of a gradient h (k, d): ∓B h_j - l1·B for the vertices ±B e_j, all of + first, and with l1 a 0 for the origin."""

    def vertices(h: dp.Array) -> dp.Array:
        return np.hstack(
            [-radius * h - l1 * radius, radius * h - l1 * radius, *([np.zeros((len(h), 1))] if l1 else [])]
        )

    off: Callable[[dp.Array], float] = lambda sizes: 2.0**-51 * radius * (float(sizes.max()) + l1)  # noqa: E731
    return Score(vertices, off, radius, ("vertices", radius, l1))
