"""Newton's method with double noise for any convex, Lipschitz and smooth loss (Ganesh et al. 2023, Algorithm 6)."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from dpbench.algorithms.base import (
    Algorithm,
    Array,
    AuditCase,
    BaseSettings,
    Count,
    Declaration,
    Disclosure,
    Mechanisms,
    Needs,
    Positive,
    Problem,
    Share,
    Trace,
)
from dpbench.algorithms.newton import SOLVE
from dpbench.errors import UserError
from dpbench.privacy.ledger import at_rho


class DPNewtonGeneral(Algorithm):
    """dp-newton-general: Algorithm 3 without the logistic loss's rank-one curvature.

    Of ρ/T an iteration gives a share 1-θ to the gradient, Δ = L₀/n, and θ to the direction H̃⁻¹g̃, with
    Δ = ‖g̃‖ L₁/(nλ₀² - λ₀L₁) for add and Δ = ‖g̃‖ L₁C/(nλ₀² - λ₀L₁C) for clip, C = 2/π + 1/2
    + ln((2n(L₁-λ₀) + L₁)/L₁)/π (Theorem B.6, Lemma B.7; the text prints the logarithm without its 2). It asks for
    nλ₀ > L₁ with add, and nλ₀ > L₁C and 2λ₀ ≤ L₁ with clip. One row's Hessian has ‖∇²f_i‖ ≤ L₁ in operator norm.
    """

    name = "dp-newton-general"
    title = "DP-Newton, general losses"
    in_reals = "its directions are computed in float64 from a Hessian that has no noise"
    needs = Needs(convex=True, lipschitz=True, smooth=True)  # Theorem B.6
    discloses = (
        Disclosure("gradient", "the mean gradient", add_remove="L₀/n", why="‖∇f_i‖ ≤ L₀"),
        Disclosure(
            "direction",
            "H̃⁻¹g̃; C = 1 with add, 2/π + 1/2 + ln((2n(L₁ - λ₀) + L₁)/L₁)/π with clip",
            add_remove="‖g̃‖·L₁·C/(n·λ₀² - λ₀·L₁·C)",
            why="Ganesh et al. (2023), Theorem B.6 and Lemma B.7",
        ),
    )

    class Settings(BaseSettings, frozen=True):
        T: Count = 10
        modification: Literal["clip", "add"] = "clip"
        lambda0: Positive = 0.01
        theta: Share = 0.3

    def complete(self, problem: Declaration, settings: Settings) -> Settings:
        inverse_sensitivity(problem.n, problem.smoothness, settings.lambda0, settings.modification)
        return settings

    def audit_case(self) -> AuditCase:
        return AuditCase({"modification": "add", "lambda0": 1.0})  # λ₀ as Theorem B.6 asks for at such an n

    def canaries(self) -> tuple[AuditCase, ...]:
        # With a λ₀ so large that nλ₀² ± λ₀L₁ are next to each other: the one is proved, the other is so.
        settings = {"theta": 0.9, "modification": "add", "lambda0": 5.0}
        return (AuditCase(settings, d=1, bend=1.0, label="direction"),)

    def work(self, n: int, d: int, settings: Settings) -> float:
        return settings.T * (2.0 * n * d * (d + 2) + 20.0 * d**3)

    def plan(self, problem: Declaration, mechanisms: Mechanisms, settings: Any) -> None:
        theta, rho = settings.theta, mechanisms.budget.rho / settings.T
        mechanisms.plan("gradient", at_rho((1 - theta) * rho), settings.T)
        mechanisms.plan("direction", at_rho(theta * rho), settings.T)

    def run(self, problem: Problem, W: Array, mechanisms: Mechanisms, settings: Settings, trace: Trace) -> Array:
        n, theta, rho = problem.n, settings.theta, mechanisms.budget.rho / settings.T
        lambda0 = np.full(len(W), settings.lambda0)
        inverse = inverse_sensitivity(n, problem.smoothness, settings.lambda0, settings.modification)
        trace(0, W, passes=0)
        for t in range(1, settings.T + 1):
            gradient = mechanisms.gaussian(
                problem.data_gradient(W), sensitivity=problem.lipschitz / n, rho=(1 - theta) * rho, label="gradient"
            )
            W = W - mechanisms.gaussian(
                SOLVE[settings.modification](problem.data_hessian(W), gradient, lambda0),
                sensitivity=np.linalg.norm(gradient, axis=1) * inverse,
                rho=theta * rho,
                label="direction",
            )
            trace(t, W, passes=2 * t)
        return W


def inverse_sensitivity(n: int, L1: float, lambda0: float, modification: str) -> float:
    """sup ‖(H̃⁻¹ - H̃'⁻¹) g‖ / ‖g‖ over neighbours (Theorem B.6); UserError where its conditions fail."""
    C = 1.0
    if modification == "clip":
        if 2 * lambda0 > L1:
            raise UserError(
                f"dp-newton-general: lambda0 = {lambda0:g} with clip must be at most L1/2 = {L1 / 2:.3g} "
                "(Theorem B.6); lower it or use modification=add"
            )
        C = 2 / math.pi + 1 / 2 + math.log((2 * n * (L1 - lambda0) + L1) / L1) / math.pi
    if n * lambda0 <= L1 * C:
        raise UserError(
            f"dp-newton-general: lambda0 = {lambda0:g} with {modification} must exceed {L1 * C / n:.3g} "
            f"at n = {n} (Theorem B.6); raise it"
        )
    return L1 * C / (n * lambda0**2 - lambda0 * L1 * C)
