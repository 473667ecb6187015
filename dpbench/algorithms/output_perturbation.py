"""The exact minimiser with noise on it: the baseline that asks for convex, Lipschitz losses and nothing else."""

from __future__ import annotations

from typing import Any, ClassVar

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
from dpbench.algorithms.objective_perturbation import rows
from dpbench.algorithms.perturbed_minimum import SOLVER, minimise, solved, tolerance
from dpbench.privacy.ledger import Radial, at_rho


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
    discloses = (
        Disclosure(
            "output",
            "the minimiser",
            count="1",
            add_remove="(L₀/n + 2·γ)/ridge",
            replace_one="(2·L₀/n + 2·γ)/ridge",
            why="a ridge-strongly convex objective whose gradient one row moves by L₀/n; γ is the solver's tolerance",
        ),
        Disclosure(
            "output",
            "the minimiser",
            "radial",
            "1",
            add_remove="(L₀/n + 2·γ)/ridge",
            replace_one="(2·L₀/n + 2·γ)/ridge",
            why="the same",
            when="δ = 0",
        ),
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
        budget = mechanisms.budget
        mechanisms.plan("output", Radial(1 / budget.epsilon) if budget.delta == 0 else at_rho(budget.rho), 1)

    def run(self, problem: Problem, W: Array, mechanisms: Mechanisms, settings: Settings, trace: Trace) -> Outcome:
        budget, gamma = mechanisms.budget, tolerance(problem)
        moved = rows(budget.relation) * problem.lipschitz / problem.n
        pure = budget.delta == 0
        spread = (problem.d + 1) / budget.epsilon**2 if pure else 1 / (2 * budget.rho)  # of a direction, at Δ = 1
        least = (2 * problem.smoothness * moved**2 * spread / settings.radius**2) ** (1 / 3)
        m = settings.ridge or max(problem.l2, least)
        none = np.zeros_like(W)
        W, norms, evaluations = problem.nearly(minimise, none, none, m - problem.l2, gamma)
        sensitivity = (moved + 2 * gamma) / m
        if pure:
            W = mechanisms.radial(W, sensitivity=sensitivity, epsilon=budget.epsilon, label="output")
        else:
            W = mechanisms.gaussian(W, sensitivity=sensitivity, rho=budget.rho, label="output")
        return solved(W, norms, gamma, evaluations)
