"""Iterative Hessian mixing, and AdaSSP as its authors run it, both with the ridge I of the data's own paper.

Rows have ‖x‖₂ ≤ 1 and |y| ≤ 1; neighbours are one row more or less. The formulas are those of omrilev1/HessianMix at
3765136, IterativeHessianMixing_main.py, except that the ridge n·l2 = 1 is added, which is public.
"""

import math
from typing import Literal

import numpy as np
from dpbench.algorithms import base as dp
from dpbench.algorithms.library import LABEL, LibrarySolver, Solved
from dpbench.privacy.accounting.gaussian import gaussian_mu
from dpbench.privacy.ledger import Gaussian, Relation, Sketch, scaled
from scipy.optimize import brentq
from scipy.stats import norm

ITERATIONS, PER_COLUMN, CLIP = 3, 6, 1.0  # T; rows of the sketch over max(d, ln(4T/ϱ)); of the residuals
ORDERS = 1 + np.geomspace(1e-3, 1e5, 4000)


def failure_of(delta: float) -> float:
    """ϱ of the authors: the probability that a bound of theirs fails."""
    return delta / 10


def sketch_rows(d: int, delta: float) -> int:
    """k: the rows of one sketch."""
    return int(PER_COLUMN * max(d, math.log(4 * ITERATIONS / failure_of(delta))))


def published_ridge(k: int, epsilon: float, delta: float) -> float:
    """γ at which T sketches of k rows and the eigenvalue cost (ε/2, 3δ/4) by the authors' sum of bounds.

    Rényi DP of a sketch, ½k/(α-1)·(α ln(1 - 1/γ) - ln(1 - α/γ)), and √(2 ln(1.25/δ'))·√k/γ for the eigenvalue, δ' a
    third of 3δ/4.
    """
    third = delta / 4

    def cost(gamma: float) -> float:
        a = ORDERS[ORDERS < gamma]
        sketches = ITERATIONS * k / 2 * (a * math.log1p(-1 / gamma) - np.log1p(-a / gamma))
        tail = math.log(1 / third) + (a - 1) * np.log1p(-1 / a) - np.log(a)
        return float(np.min((sketches + tail) / (a - 1))) + math.sqrt(2 * math.log(1.25 / third) * k) / gamma

    return brentq(lambda gamma: cost(gamma) - epsilon / 2, 1.01, 1e9, xtol=1e-6)


class HessianMixing(LibrarySolver):
    """hessian-mixing: θ ← θ + H̃⁻¹(Xᵀclip(y - Xθ, ±1) + e), T = 3 times, H̃ from a new Gaussian sketch of X each time.

    H̃ = AᵀA/k, the k rows of A being N(0, XᵀX + Λ): a sketch SX of the rows with √Λ times Gaussian rows beside it. Λ =
    max(0, γ - λ̃), λ̃ = max(0, a noisy λ_min(XᵀX) less a quantile): so XᵀX + Λ ≥ γ but for the failure, and a row x has
    xᵀ(XᵀX + Λ)⁻¹x ≤ 1/γ. Releases: λ_min, moved by 1 at most (Weyl); T·k draws of a `Sketch` of ratio 1/γ; T sums of
    clipped residuals, each moved by 1. The sums are adaptive, and Λ is one for all T. The neighbour with the row has
    its λ_min up to 1 larger, and so the failure counts the quantile less that 1.

    Published: half of ε for the sketches by Rényi DP and the eigenvalue by the classical bound, half for the sums.
    Exact: the published noise, scaled until all together cost ε by their loss distributions.
    """

    name = "hessian-mixing"
    title = "Iterative Hessian mixing"
    home = "lev2026"
    library = "dpbench-lev2026"
    relation = Relation.ADD_REMOVE
    paper_accounting = "tight"
    accountings = ("tight",)
    delta = 1e-6
    needs = dp.Needs(quadratic=True, regularisers=("l2",))
    discloses = (
        dp.Disclosure(
            LABEL, "the model: λ_min, T clipped sums, T Gaussian sketches of k rows", count="1", add_remove="1",
            why="λ_min: Weyl; sums: ‖x‖ ≤ 1 and residuals clipped at 1; sketches: see `privacy.ledger.Sketch`",
        ),
    )  # fmt: skip

    class Settings(dp.BaseSettings, frozen=True):
        """calibration: of the noise, see the class."""

        calibration: Literal["exact", "published"] = "exact"

    def releases(self, d, budget, settings):
        """(k, γ, what is subtracted from the noisy eigenvalue, the releases: sketches, eigenvalue, sums)."""
        delta, k = budget.delta, sketch_rows(d, budget.delta)
        gamma, failure = published_ridge(k, budget.epsilon, delta), failure_of(delta)
        sums = math.sqrt(ITERATIONS) / gaussian_mu(budget.epsilon / 2, delta / 4)
        quantile = math.sqrt(2 * math.log(4 / failure))  # of the authors
        if settings.calibration == "published":
            failure = float(norm.sf(quantile - math.sqrt(k) / gamma))
        unit = (
            (Sketch(ITERATIONS * k, 1 / gamma, failure), 1),
            (Gaussian(gamma / math.sqrt(k)), 1),
            (Gaussian(sums), ITERATIONS),
        )
        if settings.calibration == "published":
            return k, gamma, quantile * gamma / math.sqrt(k), unit
        scale = budget.noise_scale(unit)
        made = tuple((scaled(release, scale), count) for release, count in unit)
        spread = scale * gamma / math.sqrt(k)
        return k, scale * gamma, float(norm.isf(failure)) * spread + 1, made

    def solve(self, problem, budget, settings, rng):
        d = problem.d
        k, gamma, less, made = self.releases(d, budget, settings)
        (_, _), (eigenvalue, _), (sums, _) = made
        gram = problem.hessian_sum(np.zeros(d))
        noisy = float(problem.least_eigenvalue(gram)[0]) + eigenvalue.noise_multiplier * rng.standard_normal()
        hidden = max(0.0, gamma - max(0.0, noisy - less))
        root = square_root(gram + hidden * np.eye(d))
        own, theta = problem.n * problem.l2, np.zeros(d)
        for _ in range(ITERATIONS):
            mixed = rng.standard_normal((k, d)) @ root
            step = -problem.n * problem.bounded_gradient(theta[None], CLIP)[0] - own * theta
            step += CLIP * sums.noise_multiplier * rng.standard_normal(d)
            theta = theta + np.linalg.solve(mixed.T @ mixed / k + own * np.eye(d), step)
        return Solved(theta, made, f"k = {k}, γ = {gamma:.4g}")


class AdaSSPLev(dp.Algorithm):
    """adassp-lev: AdaSSP as the authors of iterative Hessian mixing run it beside their method.

    Three releases, each at (ε/3, δ/3). The noise on XᵀX has its whole deviation off the diagonal, √2 times what
    is needed; the noisy λ_min loses s² where AdaSSP takes off s√ln(6/δ); and the ridge is for ϱ = δ/10
    where AdaSSP has .05. All three raise the noise or the ridge.
    """

    name = "adassp-lev"
    title = "AdaSSP as Lev et al. run it"
    home = "lev2026"
    paper_accounting = "tight"
    accountings = ("tight",)
    delta = 1e-6
    needs = dp.Needs(quadratic=True, regularisers=("l2",))
    discloses = (
        dp.Disclosure("eigenvalue", "λ_min(XᵀX)", count="1", add_remove="1", why="Weyl, ‖x‖ ≤ 1"),
        dp.Disclosure("gram", "XᵀX", count="1", add_remove="1", why="‖x‖ ≤ 1"),
        dp.Disclosure("moments", "Xᵀy, labels clipped to ±1", count="1", add_remove="1", why="‖x‖ ≤ 1, |y| ≤ 1"),
    )
    audit_case = dp.AuditCase(loss="squared", steepest=False)

    def work(self, n, d, settings):
        return 2.0 * n * d * d + 30.0 * d**3

    def plan(self, problem, mechanisms, settings):
        for one in self.discloses:
            mechanisms.plan(one.label, Gaussian(deviation(mechanisms.budget)), 1)

    def run(self, problem, W, mechanisms, settings, trace):
        (k, d), s, own = W.shape, deviation(mechanisms.budget), problem.n * problem.l2
        gram, moments = problem.hessian_sum(np.zeros(d)), problem.label_moments(1.0)
        least, noisy, right = (
            mechanisms.gaussian(value, sensitivity=1.0, noise_multiplier=s, label=label)
            for value, label in (
                (np.tile(problem.least_eigenvalue(gram), k), "eigenvalue"),
                (np.tile(gram, (k, 1, 1)), "gram"),
                (np.tile(moments, (k, 1)), "moments"),
            )
        )
        upper = np.triu(noisy)
        noisy = upper + np.triu(noisy, 1).transpose(0, 2, 1)
        spread = s * math.sqrt(d * math.log(2 * d * d / failure_of(mechanisms.budget.delta)))
        ridge = own + np.maximum(0.0, spread - np.maximum(0.0, least - s * s))
        return np.linalg.solve(noisy + ridge[:, None, None] * np.eye(d), right[:, :, None])[:, :, 0]


def deviation(budget) -> float:
    """s: each of three releases at (ε/3, δ/3)."""
    return 1 / gaussian_mu(budget.epsilon / 3, budget.delta / 3)


def square_root(matrix: np.ndarray) -> np.ndarray:
    """R (d, d) with RᵀR = matrix, which may be singular: what a constant column leaves of XᵀX."""
    values, vectors = np.linalg.eigh(matrix)
    return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
