"""Objective perturbation: noise and a ridge on the objective, whose approximate minimiser is released.

objpert counts the problem's own ridge and lets it follow the noise; objpert-pure is its form at δ = 0. Both rest on a
minimiser to a tolerance that the proof names.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from dpbench.algorithms import base as dp
from dpbench.algorithms.aop import ReleasedMinimiser, jointly, objective_disclosure, output_disclosure, solved
from dpbench.algorithms.aop import minimise as minimise_smooth
from dpbench.errors import UserError
from dpbench.privacy import Budget
from dpbench.privacy.accounting.objective_perturbation import free_curvature
from dpbench.privacy.ledger import Gaussian, LogisticPerturbation, Radial, RadialPerturbation
from dpbench.problems import optimum, solvers
from dpbench.problems.regularisers import least_subgradient

LEAST = 1e-13  # a mean gradient of rows of length 1 has no more digits
STEPS = 200


def tolerance(problem: dp.Declaration) -> float:
    """γ: the norm of the least (sub)gradient, of the mean over rows, at which a solver stops.

    n⁻²; with l1 n⁻³, as the noise that hides the solver's error makes each coordinate pay that penalty.
    """
    return max(float(problem.n) ** (-3 if problem.l1 else -2), LEAST)


def minimise(
    problem: dp.Problem, W: dp.Array, b: dp.Array, ridge: float, gamma: float, *, steady: bool = False
) -> tuple[dp.Array, dp.Array, np.ndarray]:
    """argmin F(w) + ridge/2 ‖w‖² + <b, w>, from each row of W, b (k, d), F with all of its regularisers.

    Returns the minimisers (k, d), the norms of their least subgradients (k,) and the Hessians each took (k,). steady:
    by a number of them that is the same for all data; UserError with l1, whose subproblems take as long as they take.
    """
    if not problem.l1:
        return minimise_smooth(problem, W, b, ridge, gamma, steady=steady)
    if steady:
        raise UserError("timing: a minimiser with l1 takes time that depends on the data; use dp-gd-average")
    results = [_proximal_newton(problem, w, term, ridge, gamma) for w, term in zip(W, b, strict=True)]
    iterates, norms, steps = zip(*results, strict=True)
    return np.stack(iterates), np.array(norms), np.array(steps)


def _proximal_newton(
    problem: dp.Problem, w: dp.Array, b: dp.Array, ridge: float, gamma: float
) -> tuple[dp.Array, float, int]:
    """(w, norm, Hessians) for one w (d,), with l1 (Lee, Sun and Saunders 2014)."""
    l1 = problem.l1

    def smooth(v: dp.Array) -> float:
        return float(problem.value(v[None])[0] - l1 * np.abs(v).sum() + ridge / 2 * v @ v + b @ v)

    # The best point so far, should the tolerance not be reached: its norm then says so.
    best: tuple[dp.Array, float] = w, np.inf
    for evaluations in range(STEPS):
        g = problem.gradient(w[None])[0] + ridge * w + b
        norm = float(np.linalg.norm(least_subgradient(g, w, l1)))
        if norm < best[1]:
            best = w, norm
        if norm <= gamma:
            return w, norm, evaluations
        # The minimiser of the quadratic model plus l1, less w.
        if optimum.fits(problem, ridge):
            direction = optimum.quadratic(problem.hessian_root(w), ridge + problem.l2, g, w, l1) - w
        else:
            H = problem.hessian(w[None])[0] + ridge * np.eye(len(w))
            direction = solvers.quadratic(H, g, w, l1) - w
        decrease = -(g @ direction) - l1 * (np.abs(w + direction).sum() - np.abs(w).sum())
        start, step = smooth(w) + l1 * np.abs(w).sum(), 1.0
        rounding = abs(start - b @ w) + abs(b @ w)  # of terms that may cancel
        while step > 1e-10:
            end = w + step * direction
            # Near the minimum the values differ by rounding only: the slack lets the last full steps through.
            if smooth(end) + l1 * np.abs(end).sum() <= start - 1e-4 * step * decrease + 1e-14 * rounding:
                break
            step /= 2
        w = w + step * direction
    return (*best, STEPS)


JACOBIAN = 0.1  # the share of ε that a loss other than the logistic gives to the ratio of Jacobians, at most 1


class DPObjectivePerturbation(ReleasedMinimiser):
    """objpert: release argmin Σ ℓ_i(w) + n·l1‖w‖₁ + (Λ/2)‖w‖² + <b, w>, b ~ N(0, σ²I), and noise on the solver's error.

    After Chaudhuri, Monteleoni and Sarwate (2011), Kifer, Smith and Thakurta (2012) and Redberg, Koskela and Wang
    (2023). Λ = max(n·l2, Λ_req, Λ_safe) is the *whole* quadratic coefficient:

    - n·l2, the problem's own ridge, counts in full. The ridge is in b(θ) = -(Σ ∇ℓ_i(θ) + Λθ) and in its Jacobian
      with the same value for both neighbours (n is public), so that only Λ enters `privacy.accounting`'s bound, as
      curvature = β/Λ. It must penalise every coordinate, the intercept too.
    - Λ_req is the least at which the logistic loss's Jacobian is free; of another convex loss, what keeps its
      logarithm at J = ln(1 + β/Λ) ≤ 0.1 ε. Where Λ is larger than that, J falls and the noise with it.
    - Λ_safe = σ²d/(8nκ) bounds the noise's part of the excess loss by κ: near the optimum θ - θ_Λ ≈ -(nH + Λ)⁻¹b costs
      ½σ² tr(H(nH + Λ)⁻²) ≤ σ²d/(8nΛ), since h/(nh + Λ)² ≤ 1/(4nΛ). Far from it Λ-strong convexity alone gives
      E F(θ) ≤ F(0) + σ²d/(2nΛ) = F(0) + 4κ. Without it the noise wins at small nε.

    l1, or any convex penalty without data: take smooth convex r_k → r uniformly; for each the bound holds with
    A₀ ⪰ ΛI + ∇²r_k ⪰ ΛI, θ_k → θ by strong convexity, and a bound on E f(θ_k) for all continuous f passes to the limit.

    A γ-approximate minimiser is within γn/Λ of the exact one, two of them within 2γn/Λ: the output's noise hides which.
    Its share of μ² is 1/(1 + dΛ/β). γ = n⁻², with l1 n⁻³, and not below 1e-13. A solver that does not reach γ is
    refused.

    safety: κ, in units of the loss; ln 2 is what w = 0 costs under logistic loss.
    """

    name = "objpert"
    title = "Objective perturbation"
    accountings: ClassVar = ("tight",)
    discloses = (
        objective_disclosure("gradient and Hessian jointly, or one rank a row for a loss other than the logistic"),
        output_disclosure(),
    )
    tuning: ClassVar = {"safety": [0.01, 0.03, 0.1]}

    class Settings(dp.BaseSettings, frozen=True):
        safety: dp.Positive = 0.03

    # Where the noise on the output, 1/n² to the solver's tolerance, is small beside b's, and its share of μ² too.
    audit_case = dp.AuditCase(n=300, d=16)

    def plan(self, problem, mechanisms, settings):
        _, event, output = calibrated(problem, mechanisms.budget, settings.safety)
        mechanisms.plan("objective", event, 1)
        mechanisms.plan("output", output, 1)

    def run(self, problem, W, mechanisms, settings, trace):
        n, gamma = problem.n, tolerance(problem)
        ridge, event, output = calibrated(problem, mechanisms.budget, settings.safety)
        b = mechanisms.linear_term(
            problem.d,
            sensitivity=mechanisms.budget.relation.rows * problem.lipschitz / n,
            event=event,
            label="objective",
        )
        # The problem's own ridge is in F already.
        added = max(0.0, ridge / n - problem.l2)
        W, norms, evaluations = problem.approximate_minimiser(minimise, np.zeros_like(W), b, added, gamma)
        W = mechanisms.gaussian(
            W,
            sensitivity=2 * gamma * n / ridge,
            noise_multiplier=output.noise_multiplier,
            label="output",
        )
        return solved(W, norms, gamma, evaluations)


def calibrated(problem: dp.Declaration, budget: Budget, safety: float) -> tuple[float, LogisticPerturbation, Gaussian]:
    """Λ, and what is released of objective and output."""
    ridge = whole_ridge(problem, budget, safety)
    return ridge, *jointly(problem, budget, problem.smoothness / ridge)


def whole_ridge(problem: dp.Declaration, budget: Budget, safety: float) -> float:
    """Λ, the whole quadratic coefficient of the sum over rows, from public numbers: see the class."""
    if problem.loss.logistic:
        # The least ridge at which the Jacobian costs nothing: a larger one would only bias the minimiser.
        required = problem.smoothness / free_curvature(budget.epsilon, budget.delta, budget.relation)
    else:
        required = problem.smoothness / math.expm1(min(1.0, JACOBIAN * budget.epsilon))
    sigma = budget.relation.rows * problem.lipschitz / math.sqrt(2 * budget.rho)
    return max(problem.n * problem.l2, required, sigma**2 * problem.d / (8 * problem.n * safety))


class PureObjectivePerturbation(ReleasedMinimiser):
    """objpert-pure: release argmin Σ ℓ_i(w) + n·l1‖w‖₁ + (Λ/2)‖w‖² + <b, w>, b of density ∝ exp(-‖b‖/s), with noise.

    After Chaudhuri, Monteleoni and Sarwate (2011), Algorithm 2, with another calibration: s = 2R/ε' under replace-one,
    R/ε' under add/remove, and Λ = max(n·l2, R·s, s²d(d + 1)/(8nκ)). At Λ ≥ R·s the whole release is ε'-DP, the Jacobian
    is free (`privacy.accounting.pure.radial_epsilon`); the third bounds the noise's part of the excess loss by κ, as in
    `objpert`, with E‖b‖² = s²d(d + 1). The output hides the solver's error, 2γn/Λ, with ε - ε' = output·ε.

    safety: κ, in units of the loss. output: the share of ε.
    """

    name = "objpert-pure"
    title = "Objective perturbation, pure"
    paper_accounting = "pure"
    accountings = ("pure",)
    delta = 0.0
    needs = dp.Needs(losses=("logistic",), regularisers=("l1", "l2"))
    discloses = (
        objective_disclosure("the Jacobian is free at Λ ≥ R·s", "objective perturbation, radial"),
        output_disclosure("radial"),
    )
    tuning: ClassVar = {"safety": [0.01, 0.03, 0.1]}

    class Settings(dp.BaseSettings, frozen=True):
        safety: dp.Positive = 0.03
        output: dp.Share = 0.01

    audit_case = dp.AuditCase(n=10_000, d=1)  # the output's noise is 100/n of b's

    def plan(self, problem, mechanisms, settings):
        _, event = self._calibrated(problem, mechanisms.budget, settings)
        mechanisms.plan("objective", event, 1)
        mechanisms.plan("output", Radial(1 / (settings.output * mechanisms.budget.epsilon)), 1)

    def _calibrated(
        self, problem: dp.Declaration, budget: Budget, settings: Settings
    ) -> tuple[float, RadialPerturbation]:
        """Λ, and what is released of the objective."""
        multiplier = 1 / ((1 - settings.output) * budget.epsilon)
        s = budget.relation.rows * problem.lipschitz * multiplier
        ridge = pure_ridge(problem.n, problem.d, s, problem.l2, problem.row_bound, settings.safety)
        return ridge, RadialPerturbation(multiplier, problem.smoothness / ridge, budget.relation)

    def run(self, problem, W, mechanisms, settings, trace):
        n, d, gamma = problem.n, problem.d, tolerance(problem)
        relation, epsilon = mechanisms.budget.relation, mechanisms.budget.epsilon
        ridge, event = self._calibrated(problem, mechanisms.budget, settings)
        b = mechanisms.linear_term(
            d,
            sensitivity=relation.rows * problem.lipschitz / n,
            event=event,
            label="objective",
        )
        W, norms, evaluations = problem.approximate_minimiser(
            minimise, W * 0, b, max(0.0, ridge / n - problem.l2), gamma
        )
        W = mechanisms.radial(W, sensitivity=2 * gamma * n / ridge, epsilon=settings.output * epsilon, label="output")
        return solved(W, norms, gamma, evaluations)


def pure_ridge(n: int, d: int, s: float, l2: float, bound: float, safety: float) -> float:
    """Λ by the class's rule, for b of scale `s`."""
    return max(n * l2, bound * s, s**2 * d * (d + 1) / (8 * n * safety))
