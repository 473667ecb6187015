"""The cubic-regularised Newton method with a private inner solver (Ganesh et al. 2023, Algorithms 1 and 2)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpbench.algorithms.base import (
    NOTES,
    Algorithm,
    Array,
    AuditCase,
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
from dpbench.errors import UserError
from dpbench.privacy.ledger import at_rho


class CubicNewton(Algorithm):
    """cubic-newton: T times, minimise privately the cubic upper bound of the objective at w_t, eq. (3),

        φ(w) = <g, w - w_t> + (w - w_t)ᵀH(w - w_t)/2 + L₂‖w - w_t‖³/6   over the ball ‖w‖ ≤ D/2,

    by N steps of noisy projected gradient descent (Algorithm 2). The objective is the loss plus the problem's
    (μ/2)‖w‖², μ > 0, which uses no data: one example moves ∇φ by at most Δ = (L₀ + L₁D)/n, as ‖w - w_t‖ ≤ D. Each
    of the T·N steps is a release of ρ/(TN) zCDP: σ² = NΔ²/(2ρ/T) (Theorem 4.2; the text's line 2 drops n²).
    N = 2(ρ/T)(L₀ + L₁D + L₂D²)²/(dΔ²), L₀ and L₁ here with the regulariser's μD/2 and μ, capped at `inner`: the
    cap keeps the guarantee and gives up part of the accuracy.
    """

    name = "cubic-newton"
    title = "Cubic Newton"
    in_reals = "it adds noise to a gradient and a Hessian that float64 has put together"
    needs = Needs(convex=True, lipschitz=True, smooth=True, hessian_lipschitz=True, regularisers=("l2",))
    diagnostics = (NOTES,)
    discloses = (
        Disclosure(
            "model gradient",
            "the gradient of the cubic model",
            count="T·N",
            add_remove="(L₀ + L₁·D)/n",
            why="‖w - w_t‖ ≤ D; Ganesh et al. (2023), Theorem 4.2",
        ),
    )

    class Settings(BaseSettings, frozen=True):
        T: Count = 5
        D: Positive = 20.0
        inner: Count = 2000

    def complete(self, problem: Declaration, settings: Settings) -> Settings:
        if not problem.l2 > 0:
            raise UserError(
                f"{self.name}: needs a strongly convex objective: choose a problem with l2 > 0, e.g. a1a-ridge"
            )
        return settings

    def audit_case(self) -> AuditCase:
        # A small ball, on which Δ is next to L₀/n and can be attained.
        return AuditCase({"D": 0.1, "inner": 1}, l2=0.01)

    def canaries(self) -> tuple[AuditCase, ...]:
        # Several inner steps, so that curvature has a part in what is released.
        return (AuditCase({"D": 0.1, "inner": 4, "T": 1}, l2=0.01, bend=1.0, label="model gradient"),)

    def work(self, n: int, d: int, settings: Settings) -> float:
        return settings.T * (2.0 * n * d * (d + 2) + 2.0 * settings.inner * d**2)

    def plan(self, problem: Declaration, mechanisms: Mechanisms, settings: Any) -> None:
        rho = mechanisms.budget.rho / settings.T
        N = min(inner_steps(problem, rho, settings.D), settings.inner)
        mechanisms.plan("model gradient", at_rho(rho / N), settings.T * N)

    def run(self, problem: Problem, W: Array, mechanisms: Mechanisms, settings: Settings, trace: Trace) -> Outcome:
        rho = mechanisms.budget.rho / settings.T
        steps = inner_steps(problem, rho, settings.D)
        N = min(steps, settings.inner)
        W = project(W, settings.D / 2)
        trace(0, W, passes=0)
        for t in range(1, settings.T + 1):
            W = self._minimise_model(problem, W, rho, N, settings.D, mechanisms)
            trace(t, W, passes=2 * t)
        note = f"{N} inner steps" + (f", capped from {steps}" if steps > N else "")
        return Outcome(W, columns={"notes": [note] * len(W)})

    @staticmethod
    def _minimise_model(
        problem: Problem, W: Array, rho: float | Array, N: int, D: float, mechanisms: Mechanisms
    ) -> Array:
        """Algorithm 2 at the iterates W (k, d) for ρ̃ = `rho`: the weighted average of N iterates."""
        mu, L2 = problem.l2, problem.hessian_lipschitz
        sensitivity = (problem.lipschitz + problem.smoothness * D) / problem.n
        G, H = problem.gradient(W), problem.hessian(W)
        theta, average = W, np.zeros_like(W)
        for i in range(N):
            average += 2 * (i + 1) / (N * (N + 1)) * theta
            U = theta - W
            model = G + (H @ U[:, :, None])[:, :, 0] + L2 / 2 * np.linalg.norm(U, axis=1, keepdims=True) * U
            noisy = mechanisms.gaussian(model, sensitivity=sensitivity, rho=rho / N, label="model gradient")
            theta = project(theta - 2 / (mu * (i + 2)) * noisy, D / 2)
        return average


def inner_steps(problem: Declaration, rho: float, D: float) -> int:
    """N of Algorithm 2, line 2, before any cap."""
    mu = problem.l2
    slope = problem.lipschitz + mu * D / 2 + (problem.smoothness + mu) * D + problem.hessian_lipschitz * D**2
    sensitivity = (problem.lipschitz + problem.smoothness * D) / problem.n
    return math.ceil(2 * rho * slope**2 / (problem.d * sensitivity**2))


def project(W: Array, radius: float) -> Array:
    """The nearest point of the ball ‖w‖ ≤ radius, for each row of W (k, d)."""
    norms = np.linalg.norm(W, axis=1, keepdims=True)
    return W * (radius / np.maximum(norms, radius))
