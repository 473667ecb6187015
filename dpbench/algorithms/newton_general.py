"""Newton's method with double noise for any convex, Lipschitz and smooth loss (Ganesh et al. 2023, Algorithm 6)."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from dpbench.algorithms.audit_case import AuditCase
from dpbench.algorithms.base import Algorithm, Count, Needs, Positive, Settings, Share
from dpbench.algorithms.newton import SOLVE
from dpbench.errors import UserError


class DPNewtonGeneral(Algorithm):
    """dp-newton-general: Algorithm 3 without the logistic loss's rank-one curvature.

    Of ρ/T an iteration gives a share 1-θ to the gradient, Δ = L₀/n, and θ to the direction H̃⁻¹g̃, with
    Δ = ‖g̃‖ L₁/(nλ₀² - λ₀L₁) for add and Δ = ‖g̃‖ L₁C/(nλ₀² - λ₀L₁C) for clip, C = 2/π + 1/2
    + ln((2n(L₁-λ₀) + L₁)/L₁)/π (Theorem B.6, Lemma B.7; the text prints the logarithm without its 2). It asks for
    nλ₀ > L₁ with add, and nλ₀ > L₁C and 2λ₀ ≤ L₁ with clip. One row's Hessian has ‖∇²f_i‖ ≤ L₁ in operator norm.
    """

    name = "dp-newton-general"
    title = "DP-Newton, general losses"
    needs = Needs()  # any loss that `complete` accepts

    class Settings(Settings):
        T: Count = 10
        modification: Literal["clip", "add"] = "clip"
        lambda0: Positive = 0.01
        theta: Share = 0.3

    def complete(self, problem, settings):
        if not problem.loss.convex or math.isinf(problem.lipschitz):
            raise UserError(
                f"{self.name}: loss {problem.loss.name} is not convex with a bounded gradient; "
                "Theorem B.6 covers convex, Lipschitz and smooth losses only"
            )
        inverse_sensitivity(problem.n, problem.smoothness, settings.lambda0, settings.modification)
        return settings

    def audit_case(self):
        return AuditCase({"T": 2, "modification": "add", "lambda0": 1.0})  # λ₀ as Theorem B.6 asks for at such an n

    def work(self, n, d, settings):
        return settings.T * (2.0 * n * d * (d + 2) + 20.0 * d**3)

    def run(self, problem, W, mechanisms, settings, trace):
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
