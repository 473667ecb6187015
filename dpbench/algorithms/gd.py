"""Full-batch gradient descent with Gaussian noise."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from dpbench.algorithms.base import (
    Algorithm,
    Array,
    BaseSettings,
    Count,
    Declaration,
    Disclosure,
    Mechanisms,
    Needs,
    Positive,
    Problem,
    Trace,
    at_default_step,
)
from dpbench.privacy.ledger import at_rho


class DPGradientDescent(Algorithm):
    """dp-gd: w ← w - η (∇f(w) + N(σ²I)), T times (Bassily, Smith, Thakurta 2014, full batch).

    Every example's gradient has ‖∇f_i‖ ≤ L₀, so under add/remove with n public the mean gradient moves by
    Δ = L₀/n. Each step spends ρ/T of zCDP: σ = Δ sqrt(T/(2ρ)), which is sqrt(T)/(n sqrt(2ρ)) for logistic
    loss with ‖x‖₂ ≤ 1 (Ganesh et al. 2023, Section 6). The default step is 1/L₁: 4 for that loss.
    """

    name = "dp-gd"
    title = "DP-GD"
    exact = "sums"
    needs = Needs(lipschitz=True, regularisers=("l2", "w2"))
    per_replicate: ClassVar = frozenset({"step", "epsilon"})
    discloses = (
        Disclosure("gradient", "the mean gradient", add_remove="L₀/n", why="‖∇f_i‖ ≤ L₀; the divisor n is public"),
    )

    class Settings(BaseSettings, frozen=True):
        T: Count = 100
        step: Positive | None = None

    def complete(self, problem: Declaration, settings: Settings) -> Settings:
        return at_default_step(problem, settings)

    def plan(self, problem: Declaration, mechanisms: Mechanisms, settings: Any) -> None:
        mechanisms.plan("gradient", at_rho(mechanisms.budget.rho / settings.T), settings.T)

    def run(self, problem: Problem, W: Array, mechanisms: Mechanisms, settings: Settings, trace: Trace) -> Array:
        sensitivity = problem.lipschitz / problem.n
        rho = mechanisms.budget.rho / settings.T
        step = np.asarray(settings.step)[:, None]
        trace(0, W, passes=0)
        for t in range(1, settings.T + 1):
            gradient = mechanisms.gaussian(problem.gradient(W), sensitivity=sensitivity, rho=rho, label="gradient")
            W = W - step * gradient
            trace(t, W, passes=t)
        return W
