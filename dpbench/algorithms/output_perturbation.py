"""The minimiser with noise on it: the baseline of private convex optimisation."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from dpbench.algorithms import output_noise
from dpbench.algorithms.aop import newton_work
from dpbench.algorithms.base import (
    Algorithm,
    Array,
    AuditCase,
    BaseSettings,
    Declaration,
    Mechanisms,
    Needs,
    Outcome,
    Positive,
    Problem,
    Relation,
    Trace,
)
from dpbench.algorithms.perturbed_minimum import SOLVER, minimise, solved, tolerance
from dpbench.privacy.budget import Budget


class OutputPerturbation(Algorithm):
    """output-perturbation: release argmin F(w) + (m - l2)/2 ‖w‖² + noise, m = max(l2, m₀).

    Chaudhuri, Monteleoni and Sarwate (2011), Algorithm 1, with the solver's error. At the minimiser θ of F_D the
    gradient of F_D' is ‖∇ℓ' - ∇ℓ‖/n ≤ 2L₀/n (L₀/n under add/remove), and m‖θ - θ'‖ is at most that by strong
    monotonicity, l1 included. Each approximate minimiser is within γ/m of its own: Δ = (2L₀/n + 2γ)/m. Gaussian noise
    under `tight`, radial noise at δ = 0.

    m₀ balances what the noise costs, ½β(Δ/μ)² at tr H ≤ β, against the ridge's bias m·radius²/2: m₀³ =
    2β(2L₀)²/(nμ·radius)²; at δ = 0 with (d + 1)/ε² in place of 1/μ², as E‖b‖² = (Δ/ε)² d(d + 1).

    radius: a guess of ‖w*‖. ridge: m, public; None for that rule.
    """

    name = "output-perturbation"
    title = "Output perturbation"
    relation = Relation.REPLACE_ONE
    either = True
    exact = "minimiser"
    paper_accounting = "tight"
    accountings: ClassVar = ("tight", "pure")
    needs = Needs(convex=True, lipschitz=True, smooth=True, regularisers=("l1", "l2"))
    discloses = output_noise.disclosures(
        "the minimiser",
        "(L₀/n + 2·γ)/ridge",
        "a ridge-strongly convex objective whose gradient one row moves by L₀/n; γ is the solver's tolerance",
    )
    tuning: ClassVar = {"radius": [2.0, 8.0, 32.0]}
    diagnostics = SOLVER

    class Settings(BaseSettings, frozen=True):
        radius: Positive = 8.0
        ridge: Positive | None = None

    def audit_case(self) -> AuditCase:
        return AuditCase(n=300, d=2)

    def work(self, n: int, d: int, settings: Settings) -> float:
        return newton_work(n, d)

    def plan(self, problem: Declaration, mechanisms: Mechanisms, settings: Any) -> None:
        output_noise.plan(mechanisms)

    def run(self, problem: Problem, W: Array, mechanisms: Mechanisms, settings: Settings, trace: Trace) -> Outcome:
        gamma, none = tolerance(problem), np.zeros_like(W)
        moved = gradient_moves(problem, mechanisms.budget)
        m = settings.ridge or max(problem.l2, balancing_ridge(problem, mechanisms.budget, settings.radius))
        W, norms, evaluations = problem.nearly(minimise, none, none, m - problem.l2, gamma)
        return solved(output_noise.release(mechanisms, W, (moved + 2 * gamma) / m), norms, gamma, evaluations)


def gradient_moves(problem: Declaration, budget: Budget) -> float:
    """How far the gradients of the mean loss of neighbours are apart, at most: 2L₀/n, or L₀/n under add/remove."""
    return budget.relation.rows * problem.lipschitz / problem.n


def balancing_ridge(problem: Declaration, budget: Budget, radius: float, parts: int = 1) -> float:
    """m₀ of the class, where the noise is that of one of `parts` releases."""
    spread = output_noise.variance(budget, problem.d, parts)
    return (2 * problem.smoothness * gradient_moves(problem, budget) ** 2 * spread / radius**2) ** (1 / 3)
