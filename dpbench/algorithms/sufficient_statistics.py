"""Linear models from noisy sums over the rows: ridge regression, its boosted form, a quadratic for logistic loss."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from dpbench.algorithms import base as dp
from dpbench.algorithms.newton_step import ReleasedStep, deviation, gram_disclosure, noisy_gram
from dpbench.privacy.ledger import at_rho

SCORES, CURVATURE = 0.05, 0.08  # of ρ, for intervals
FAILURE = 0.05  # ϱ of the paper: the probability that the noise on XᵀX is larger than the ridge covers


class AdaSSP(dp.Algorithm):
    """adassp: w = (XᵀX + E + (λ + n·l2)I)⁻¹(Xᵀy + e), after releasing λ_min(XᵀX), XᵀX and Xᵀy (Algorithm 2).

    Add/remove, ‖x‖ ≤ R and |y| ≤ B: xxᵀ moves λ_min by at most R² (Weyl) and XᵀX by R² in Frobenius norm; Xᵀy moves by
    RB. Replace-one: both λ_min lie within R² above that without the row, so R² again; two positive semidefinite
    matrices of rank one differ by √2 R² at most; and 2RB. Each release gets a third of ρ, where the paper splits ε.
    λ = max(0, s√(d ln(2d²/ϱ)) - n·l2 - λ̃), with s the noise on XᵀX and λ̃ ≥ 0 the noisy λ_min less √ln(6/δ) of its
    own standard deviations: what the operator norm of E needs to be covered. One pass, nothing to tune.

    label_bound: B, public; labels are clipped to [-B, B].
    """

    name = "adassp"
    title = "AdaSSP"
    home = "greedy_coordinate"
    exact = "sums"
    persons = True
    paper_accounting = "standard"
    needs = dp.Needs(quadratic=True, regularisers=("l2",))
    discloses = (
        dp.Disclosure("eigenvalue", "λ_min(XᵀX)", count="1", add_remove="R²", replace_one="R²", why="Weyl"),
        gram_disclosure("XᵀX", "R²"),
        dp.Disclosure("moments", "Xᵀy, labels clipped to ±B", count="1", add_remove="R·B", why="‖x‖ ≤ R and |y| ≤ B"),
    )

    class Settings(dp.BaseSettings, frozen=True):
        label_bound: dp.Positive = 1.0

    audit_case = dp.AuditCase({"label_bound": 1e6}, loss="squared")

    canaries = tuple(
        dp.AuditCase({"label_bound": 1e6}, loss="squared", d=1, label=label)
        for label in ("eigenvalue", "gram", "moments")
    )

    def inspection_case(self):
        return replace(super().inspection_case(), settings={"label_bound": 1.0})  # labels are beyond it

    def work(self, n, d, settings):
        return 2.0 * n * d * (d + 1) + 20.0 * d**3

    def plan(self, problem, mechanisms, settings):
        for label in ("eigenvalue", "gram", "moments"):
            mechanisms.plan(label, at_rho(mechanisms.budget.rho / 3), 1)

    def run(self, problem, W, mechanisms, settings, trace):
        bound, square = settings.label_bound, problem.row_bound**2
        k, d = W.shape
        rho = mechanisms.budget.rho / 3
        gram = problem.hessian_sum(np.zeros(d))
        least = mechanisms.gaussian(
            np.tile(problem.least_eigenvalue(gram), k),
            sensitivity=square,
            rho=rho,
            label="eigenvalue",
            replaced=square,
        )
        noisy = noisy_gram(mechanisms, np.tile(gram, (k, 1, 1)), square, 1, rho)
        moments = mechanisms.gaussian(
            np.tile(problem.label_moments(bound), (k, 1)),
            sensitivity=problem.row_bound * bound,
            rho=rho,
            label="moments",
        )
        unit = square / math.sqrt(2 * rho)  # a standard deviation at add/remove, and of the eigenvalue at both
        # A lower bound on the true least eigenvalue that fails with a small probability only.
        least = np.maximum(least - math.sqrt(math.log(6 / mechanisms.budget.delta)) * unit, 0.0)
        spread = unit * (math.sqrt(2) if mechanisms.doubled else 1.0) * math.sqrt(d * math.log(2 * d * d / FAILURE))
        # Only what the noise of the Gram matrix needs beyond its least eigenvalue and the problem's own ridge.
        ridge = problem.n * problem.l2 + np.maximum(0.0, spread - problem.n * problem.l2 - least)
        return np.linalg.solve(noisy + ridge[:, None, None] * np.eye(d), moments[:, :, None])[:, :, 0]


class BoostedSSP(dp.Algorithm):
    """boosted-ssp: w ← w - P(m + l2·w), T times: m the mean of the clipped residuals' gradients, P from a noisy XᵀX/n.

    After Tang, Aydore, Kearns, Rho, Roth, Wang, Wang and Wu (2023), with a ridge that follows the noise alone.
    G̃ = XᵀX/n + E gets the share a of μ²; each m = (1/n)Σ clip(<x_i, w> - y_i, ±c)x_i gets (1 - a)/T of it. With
    ‖x‖ ≤ R, XᵀX/n moves by R²/n in Frobenius norm, by √2R²/n under replace-one, and m by cR/n, twice that under
    replace-one. Labels need no bound: residuals are clipped.

    P = (G̃₊ + (λ + l2)I)⁻¹, λ = max(s√d, σR√(T/(2κ))), s and σ the standard deviations of E and of m's noise. The
    first covers E, whose spectrum ends near √2·s√d. The second bounds what the noise adds to the excess loss by κ: with
    P⁻¹ ⪰ H/2 each step is a contraction, and T of them add ½Tσ² tr(PHP) ≤ ½Tσ²R²/λ². Clipping makes the loss a Huber
    loss, so that the excess has a floor which no ε removes where residuals of the optimum are longer than c.

    With `intervals` it releases what intervals of coefficients need (`own.intervals`), for 13 % of ρ: at the last w the
    mean S of r²xxᵀ, r = clip(<x, w> - y, ±c), for SCORES of it, and the mean H of xxᵀ over the rows with an unclipped
    r, n being the divisor, for CURVATURE. A row adds to nS and to nH a positive semidefinite matrix of rank one, of
    norm c²R² and R² at most, so they move as XᵀX/n does: S by c²R²/n, H by R²/n, √2 times that under replace-one.

    clip: c, in units of the label. share: a. safety: κ, in units of the loss.
    """

    name = "boosted-ssp"
    title = "Boosted SSP"
    home = "greedy_coordinate"
    exact = "sums"
    persons = True
    paper_accounting = "tight"
    needs = dp.Needs(quadratic=True, regularisers=("l2",))
    per_replicate: ClassVar = frozenset({"epsilon"})
    discloses = (
        gram_disclosure("XᵀX/n", "R²/n"),
        dp.Disclosure(
            "gradient", "the mean gradient, residuals clipped to ±C", add_remove="C·R/n", why="|residual| ≤ C, ‖x‖ ≤ R"
        ),
        gram_disclosure("mean of r²xxᵀ, residuals clipped to ±C", "C²·R²/n", "scores", when="intervals"),
        gram_disclosure("mean of xxᵀ over the rows with |residual| ≤ C", "R²/n", "curvature", when="intervals"),
    )
    tuning: ClassVar = {"clip": [0.1, 0.3, 1.0]}

    class Settings(dp.BaseSettings, frozen=True):
        T: dp.Count = 10
        clip: dp.Positive = 0.3
        share: dp.Share = 0.15
        safety: dp.Positive = 0.02
        intervals: bool = False

    audit_case = dp.AuditCase(loss="squared")

    canaries = (
        *(dp.AuditCase(loss="squared", d=1, label=label) for label in ("gram", "gradient")),
        dp.AuditCase({"intervals": True}, loss="squared", d=1, label="scores"),
        dp.AuditCase({"intervals": True, "clip": 1e7}, loss="squared", d=1, label="curvature"),  # no row is clipped
    )

    def work(self, n, d, settings):
        return 1.0 * n * d * d + 4.0 * n * d * settings.T + 20.0 * d**3

    @staticmethod
    def shares(rho: Any, settings: BoostedSSP.Settings) -> tuple[Any, Any]:
        """What of ρ, a number or (k,), goes to the Gram matrix and to a moment."""
        whole = rho * (1 - SCORES - CURVATURE) if settings.intervals else rho
        return settings.share * whole, (1 - settings.share) * whole / settings.T

    def plan(self, problem, mechanisms, settings):
        rho = mechanisms.budget.rho
        gram, step = self.shares(rho, settings)
        mechanisms.plan("gram", at_rho(gram), 1)
        mechanisms.plan("gradient", at_rho(step), settings.T)
        if settings.intervals:
            mechanisms.plan("scores", at_rho(SCORES * rho), 1)
            mechanisms.plan("curvature", at_rho(CURVATURE * rho), 1)

    def run(self, problem, W, mechanisms, settings, trace):
        n, R, T, c = problem.n, problem.row_bound, settings.T, settings.clip
        k, d = W.shape
        rho = np.broadcast_to(mechanisms.budget.rho, (k,))
        for_gram, for_step = self.shares(rho, settings)
        second_moment = problem.data_hessian(np.zeros((1, d)))  # of squared loss, one for all replicates
        second_moment = second_moment if k == 1 else np.repeat(second_moment, k, axis=0)
        gram = noisy_gram(mechanisms, second_moment, R**2, n, for_gram)
        s = deviation(mechanisms, R**2, n, for_gram)
        sigma = (2 if mechanisms.doubled else 1) * c * R / n / np.sqrt(2 * for_step)
        # Both bounds from public numbers: the ridge does not look at the released Gram matrix.
        ridge = np.maximum(s * math.sqrt(d), sigma * R * math.sqrt(T / (2 * settings.safety)))
        values, vectors = np.linalg.eigh(gram)
        # A second moment has no negative eigenvalue: those of the noisy one are noise.
        inverse = 1 / (np.maximum(values, 0.0) + ridge[:, None] + problem.l2)

        W = np.zeros_like(W)
        first = T // 2  # those before are still on their way, where the curvature is another
        means = np.zeros((2, k, d))
        trace(0, W, passes=1)
        for t in range(1, T + 1):
            moment = mechanisms.gaussian(
                problem.bounded_gradient(W, c), sensitivity=c * R / n, rho=for_step, label="gradient"
            )
            if t > first:
                means += np.array([W, moment]) / (T - first)
            # In the eigenbasis, which is computed once: a step then costs d², not d³.
            slope = np.einsum("kij,ki->kj", vectors, moment + problem.l2 * W)
            W = W - np.einsum("kij,kj->ki", vectors, inverse * slope)
            trace(t, W, passes=1 + t)
        if not settings.intervals:
            return W
        parts = (("scores", problem.score_moment(W, c), c**2 * R**2, SCORES),
                 ("curvature", problem.clipped_curvature(W, c), R**2, CURVATURE))  # fmt: skip
        scores, curvature = (
            noisy_gram(mechanisms, matrix, square, n, share * rho, label=label)
            for label, matrix, square, share in parts
        )
        std = deviation(mechanisms, R**2, n, CURVATURE * rho)
        stds = zip(sigma / math.sqrt(T - first), std, std, strict=True)
        released = zip(*means, gram, curvature, scores, strict=True)
        steps = [ReleasedStep(*one, *map(float, std)) for one, std in zip(released, stds, strict=True)]
        return dp.RunResult(W, evidence=steps)


POINTS = 4096  # of the expansion's quadrature


class ChebyshevLogistic(dp.Algorithm):
    """dp-chebyshev: w = (2b₂(G̃₊ + s√d) + l2)⁻¹ q̃/2, from G = XᵀX/n and q = Σ y_i x_i/n with Gaussian noise.

    After Huggins, Adams and Broderick (2017) and Kulkarni et al. (2021). ln(1 + e^-m) = ln(2cosh(m/2)) - m/2: the odd
    part is -m/2, and the even one is replaced by its expansion of degree two on [-r, r], b₀ + b₂m². Then F(w) is a
    constant, -½<q, w> and b₂wᵀGw. G moves by R²/n in Frobenius norm, √2R²/n under replace-one, and q by R/n, twice that
    under replace-one. No iterations; the bias does not vanish with ε, as the minimum is another.

    radius: r, of the margins. share: of μ², for G.
    """

    name = "dp-chebyshev"
    title = "Chebyshev SSP"
    exact = "sums"
    persons = True
    paper_accounting = "tight"
    needs = dp.Needs(losses=("logistic",), regularisers=("l2",))
    per_replicate: ClassVar = frozenset({"epsilon"})
    discloses = (
        gram_disclosure("XᵀX/n", "R²/n"),
        dp.Disclosure("moments", "Σ y_i x_i/n", count="1", add_remove="R/n", why="|y| = 1 and ‖x‖ ≤ R"),
    )
    tuning: ClassVar = {"radius": [2.0, 4.0, 6.0]}

    class Settings(dp.BaseSettings, frozen=True):
        radius: dp.Positive = 4.0
        share: dp.Share = 0.5

    audit_case = dp.AuditCase(steepest=False)

    canaries = tuple(dp.AuditCase(d=1, steepest=False, label=label) for label in ("gram", "moments"))

    def work(self, n, d, settings):
        return 1.0 * n * d * d + 20.0 * d**3

    def plan(self, problem, mechanisms, settings):
        mechanisms.plan("gram", at_rho(settings.share * mechanisms.budget.rho), 1)
        mechanisms.plan("moments", at_rho((1 - settings.share) * mechanisms.budget.rho), 1)

    def run(self, problem, W, mechanisms, settings, trace):
        n, R = problem.n, problem.row_bound
        k, d = W.shape
        rho = np.broadcast_to(mechanisms.budget.rho, (k,))
        second, first = problem.second_moment(), problem.label_moments(1.0) / n
        gram = noisy_gram(mechanisms, np.tile(second, (k, 1, 1)), R**2, n, settings.share * rho)
        q = mechanisms.gaussian(
            np.tile(first, (k, 1)),
            sensitivity=R / n,
            rho=(1 - settings.share) * rho,
            label="moments",
        )
        s = deviation(mechanisms, R**2, n, settings.share * rho)
        values, vectors = np.linalg.eigh(gram)
        bend = 2 * even_coefficient(settings.radius)
        inverse = 1 / (bend * (np.maximum(values, 0.0) + math.sqrt(d) * s[:, None]) + problem.l2)
        return np.einsum("kij,kj->ki", vectors, inverse * np.einsum("kij,ki->kj", vectors, q) / 2)


def even_coefficient(radius: float) -> float:
    """b₂ of ln(2cosh(m/2)) ≈ b₀ + b₂m² on [-radius, radius], in Chebyshev's sense; 1/8 is Taylor's, near 0 alone."""
    angles = (np.arange(POINTS) + 0.5) * math.pi / POINTS
    # Chebyshev's nodes: the projection of degree two in their weight is all but the best uniform one.
    half = radius * np.cos(angles) / 2
    even = np.logaddexp(half, -half)
    return float(2 * (2 / POINTS) * (even @ np.cos(2 * angles)) / radius**2)
