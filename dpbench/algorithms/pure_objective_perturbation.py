"""Objective perturbation at δ = 0, where the logistic loss's Jacobian is free too."""

from __future__ import annotations

from typing import Any, ClassVar

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
    Share,
    Trace,
)
from dpbench.algorithms.perturbed_minimum import SOLVER, minimise, solved, tolerance
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Radial, RadialPerturbation


class PureObjectivePerturbation(Algorithm):
    """objpert-pure: release argmin Σ ℓ_i(w) + n·l1‖w‖₁ + (Λ/2)‖w‖² + <b, w>, b of density ∝ exp(-‖b‖/s), with noise.

    After Chaudhuri, Monteleoni and Sarwate (2011), Algorithm 2, with another calibration: s = 2R/ε' under replace-one,
    R/ε' under add/remove, and Λ = max(n·l2, R·s, s²d(d + 1)/(8nκ)). At Λ ≥ R·s the whole release is ε'-DP, the Jacobian
    is free (`privacy.accounting.pure.radial_epsilon`); the third bounds the noise's part of the excess loss by κ, as in
    `objpert`, with E‖b‖² = s²d(d + 1). The output hides the solver's error, 2γn/Λ, with ε - ε' = output·ε.

    safety: κ, in units of the loss. output: the share of ε.
    """

    name = "objpert-pure"
    title = "Objective perturbation, pure"
    relation = Relation.REPLACE_ONE
    either = True
    exact = "minimiser"
    paper_accounting = "pure"
    accountings = ("pure",)
    delta = 0.0
    needs = Needs(losses=("logistic",), regularisers=("l1", "l2"))
    discloses = (
        Disclosure(
            "objective",
            "the exact minimiser of the objective with <b, w> added, seen through the next release",
            "objective perturbation, radial",
            "1",
            add_remove="L₀/n",
            why="‖∇f_i‖ ≤ L₀; the Jacobian is free at Λ ≥ R·s",
        ),
        Disclosure(
            "output",
            "the solver's approximate minimiser",
            "radial",
            "1",
            add_remove="2·γ/ridge",
            replace_one="2·γ/ridge",
            why="two γ-approximate minima of a ridge-strongly convex objective; ridge = Λ/n",
        ),
    )
    tuning: ClassVar = {"safety": [0.01, 0.03, 0.1]}
    diagnostics = SOLVER

    class Settings(BaseSettings, frozen=True):
        safety: Positive = 0.03
        output: Share = 0.01

    def audit_case(self) -> AuditCase:
        return AuditCase(n=10_000, d=1)  # the output's noise is 100/n of b's

    def work(self, n: int, d: int, settings: Settings) -> float:
        return newton_work(n, d)

    def plan(self, problem: Declaration, mechanisms: Mechanisms, settings: Any) -> None:
        _, event = self._calibrated(problem, mechanisms.budget, settings)
        mechanisms.plan("objective", event, 1)
        mechanisms.plan("output", Radial(1 / (settings.output * mechanisms.budget.epsilon)), 1)

    def _calibrated(self, problem: Declaration, budget: Budget, settings: Settings) -> tuple[float, RadialPerturbation]:
        """Λ, and what is released of the objective."""
        multiplier = 1 / ((1 - settings.output) * budget.epsilon)
        s = budget.relation.rows * problem.lipschitz * multiplier
        ridge = pure_ridge(problem.n, problem.d, s, problem.l2, problem.row_bound, settings.safety)
        return ridge, RadialPerturbation(multiplier, problem.smoothness / ridge, budget.relation)

    def run(self, problem: Problem, W: Array, mechanisms: Mechanisms, settings: Settings, trace: Trace) -> Outcome:
        n, d, gamma = problem.n, problem.d, tolerance(problem)
        relation, epsilon = mechanisms.budget.relation, mechanisms.budget.epsilon
        ridge, event = self._calibrated(problem, mechanisms.budget, settings)
        b = mechanisms.radial_term(
            d,
            sensitivity=relation.rows * problem.lipschitz / n,
            event=event,
            label="objective",
        )
        W, norms, evaluations = problem.nearly(minimise, W * 0, b, max(0.0, ridge / n - problem.l2), gamma)
        W = mechanisms.radial(W, sensitivity=2 * gamma * n / ridge, epsilon=settings.output * epsilon, label="output")
        return solved(W, norms, gamma, evaluations)


def pure_ridge(n: int, d: int, s: float, l2: float, bound: float, safety: float) -> float:
    """Λ by the class's rule, for b of scale `s`."""
    return max(n * l2, bound * s, s**2 * d * (d + 1) / (8 * n * safety))
