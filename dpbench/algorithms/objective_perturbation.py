"""Objective perturbation that counts the problem's own ridge, and whose ridge follows the noise."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dpbench.algorithms.aop import newton_work
from dpbench.algorithms.base import (
    Algorithm,
    Array,
    AuditCase,
    BaseSettings,
    Declaration,
    Disclosure,
    Mechanisms,
    Needs,
    Outcome,
    Positive,
    Problem,
    Relation,
    Trace,
)
from dpbench.algorithms.perturbed_minimum import SOLVER, minimise, solved, tolerance
from dpbench.privacy import Budget
from dpbench.privacy.accounting.objective_perturbation import free_curvature
from dpbench.privacy.ledger import ConvexPerturbation, Counts, Gaussian, LogisticPerturbation

JACOBIAN = 0.1  # the share of ε that a loss other than the logistic gives to the ratio of Jacobians, at most 1


class Plan(NamedTuple):
    """ridge: Λ, the whole quadratic coefficient of the sum over rows. event, output: at relative noise."""

    ridge: float
    event: LogisticPerturbation
    output: Gaussian

    @property
    def releases(self) -> Counts:
        """What `Budget.noise_scale` takes."""
        return (self.event, 1), (self.output, 1)


class ObjectivePerturbation(Algorithm):
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
    relation = Relation.REPLACE_ONE
    either = True
    exact = "minimiser"
    paper_accounting = "tight"
    accountings: ClassVar = ("tight",)
    needs = Needs(convex=True, lipschitz=True, smooth=True, regularisers=("l1", "l2"))
    discloses = (
        Disclosure(
            "objective",
            "the exact minimiser of the objective with <b, w> added, seen through the next release",
            "objective perturbation",
            "1",
            add_remove="L₀/n",
            why="‖∇f_i‖ ≤ L₀; gradient and Hessian jointly, or one rank a row for a loss other than the logistic",
        ),
        Disclosure(
            "output",
            "the solver's approximate minimiser",
            count="1",
            add_remove="2·γ/ridge",
            replace_one="2·γ/ridge",
            why="two γ-approximate minima of a ridge-strongly convex objective; ridge = Λ/n",
        ),
    )
    tuning: ClassVar = {"safety": [0.01, 0.03, 0.1]}
    diagnostics = SOLVER

    class Settings(BaseSettings, frozen=True):
        safety: Positive = 0.03

    def audit_case(self) -> AuditCase:
        # Where the noise on the output, 1/n² to the solver's tolerance, is small beside b's, and its share of μ² too.
        return AuditCase(n=300, d=16)

    def work(self, n: int, d: int, settings: Settings) -> float:
        return newton_work(n, d)

    def plan(self, problem: Declaration, mechanisms: Mechanisms, settings: Any) -> None:
        _, event, output = calibrated(problem, mechanisms.budget, settings.safety)
        mechanisms.plan("objective", event, 1)
        mechanisms.plan("output", output, 1)

    def run(self, problem: Problem, W: Array, mechanisms: Mechanisms, settings: Settings, trace: Trace) -> Outcome:
        n, gamma = problem.n, tolerance(problem)
        ridge, event, output = calibrated(problem, mechanisms.budget, settings.safety)
        b = mechanisms.joint_term(
            problem.d,
            sensitivity=mechanisms.budget.relation.rows * problem.lipschitz / n,
            event=event,
            label="objective",
        )
        added = max(0.0, ridge / n - problem.l2)
        W, norms, evaluations = problem.nearly(minimise, np.zeros_like(W), b, added, gamma)
        W = mechanisms.gaussian(
            W,
            sensitivity=2 * gamma * n / ridge,
            noise_multiplier=output.noise_multiplier,
            label="output",
        )
        return solved(W, norms, gamma, evaluations)


def calibrated(problem: Declaration, budget: Budget, safety: float) -> tuple[float, LogisticPerturbation, Gaussian]:
    """Λ, and what is released of objective and output."""
    ridge, event, output = found = plan(problem, budget, safety)
    scale = budget.noise_scale(found.releases)
    return (
        ridge,
        replace(event, noise_multiplier=scale * event.noise_multiplier),
        Gaussian(scale * output.noise_multiplier),
    )


def plan(problem: Declaration, budget: Budget, safety: float) -> Plan:
    """Λ, and the releases at relative noise, from public numbers: see the class."""
    logistic = problem.loss.logistic
    if logistic:
        required = problem.smoothness / free_curvature(budget.epsilon, budget.delta, budget.relation)
    else:
        required = problem.smoothness / math.expm1(min(1.0, JACOBIAN * budget.epsilon))
    sigma = budget.relation.rows * problem.lipschitz / math.sqrt(2 * budget.rho)
    ridge = max(problem.n * problem.l2, required, sigma**2 * problem.d / (8 * problem.n * safety))
    curvature = problem.smoothness / ridge
    share = 1 / (1 + problem.d / curvature)
    kind = LogisticPerturbation if logistic else ConvexPerturbation
    event = kind((1 - share) ** -0.5, curvature, budget.relation)
    return Plan(ridge, event, Gaussian(share**-0.5))
