"""Nesterov's accelerated method with Gaussian noise on a ball (Ganesh et al. 2023, Algorithm 4)."""

from __future__ import annotations

from typing import Any

from dpbench.algorithms.base import (
    ITERATIONS,
    Algorithm,
    Array,
    BaseSettings,
    Count,
    Declaration,
    Disclosure,
    Mechanisms,
    Needs,
    Outcome,
    Positive,
    Problem,
    Trace,
)
from dpbench.algorithms.cubic_newton import project
from dpbench.privacy.ledger import at_rho


class DPAcceleratedNesterov(Algorithm):
    """dp-accelerated-nesterov, for α_t = 2/(t+1) and γ_t = 8L₁/(t(t+1)), on the ball ‖w‖ ≤ D/2:

        w_md = w_ag + α_t (w - w_ag)
        G    = ∇f(w_md) + N(σ²I)
        w    ← Π(w - (α_t/γ_t) G),   w_ag ← α_t w + (1 - α_t) w_ag

    Δ = L₀/n for the mean gradient of the loss (a regulariser uses no data), so ρ/T a step is σ² = L₀²T/(2ρn²)
    (Theorem A.4). The text's w_md has w_t, which is not there yet: we take w_{t-1}. T is tuned; left out, it is
    (D²ρn²/(dL₀²))^{1/4}, which balances Theorem A.4's two terms.
    """

    name = "dp-accelerated-nesterov"
    title = "DP accelerated Nesterov"
    exact = "sums"
    needs = Needs(convex=True, lipschitz=True, smooth=True, regularisers=("l2",))
    diagnostics = (ITERATIONS,)
    discloses = (Disclosure("gradient", "the mean gradient", add_remove="L₀/n", why="‖∇f_i‖ ≤ L₀"),)

    class Settings(BaseSettings, frozen=True):
        T: Count | None = None
        D: Positive = 20.0

    def work(self, n: int, d: int, settings: Settings) -> float:
        return 4.0 * n * d * (settings.T or 100)

    def plan(self, problem: Declaration, mechanisms: Mechanisms, settings: Any) -> None:
        rho = mechanisms.budget.rho
        T = settings.T or balanced_T(problem, rho, settings.D)
        mechanisms.plan("gradient", at_rho(rho / T), T)

    def run(self, problem: Problem, W: Array, mechanisms: Mechanisms, settings: Settings, trace: Trace) -> Outcome:
        rho, D = mechanisms.budget.rho, settings.D
        T = settings.T or balanced_T(problem, rho, D)
        sensitivity, L1 = problem.lipschitz / problem.n, problem.objective_smoothness
        W = average = project(W, D / 2)
        trace(0, average, passes=0)
        for t in range(1, T + 1):
            alpha, gamma = 2 / (t + 1), 8 * L1 / (t * (t + 1))
            middle = average + alpha * (W - average)
            gradient = mechanisms.gaussian(
                problem.gradient(middle), sensitivity=sensitivity, rho=rho / T, label="gradient"
            )
            W = project(W - alpha / gamma * gradient, D / 2)
            average = alpha * W + (1 - alpha) * average
            trace(t, average, passes=t)
        return Outcome(average, columns={"iterations": [T] * len(W)})


def balanced_T(problem: Declaration, rho: float, D: float) -> int:
    """(D²ρn²/(dL₀²))^{1/4}, at least 1."""
    return max(1, round((D**2 * rho * problem.n**2 / (problem.d * problem.lipschitz**2)) ** 0.25))
