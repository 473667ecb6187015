"""Newton's method with double noise for logistic regression (Ganesh et al. 2023, Algorithms 3 and 5)."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
import numpy as np

from dpbench.algorithms.base import Algorithm, Count, Needs, Positive, Settings, Share
from dpbench.algorithms.memory import peak_of_modification
from dpbench.errors import UserError

SMOOTHNESS = 1 / 4  # of the logistic loss for ‖x‖₂ ≤ 1: one example moves n·H by at most this, in trace


class DPNewton(Algorithm):
    """dp-newton: noisy gradient, curvature with its eigenvalues lifted to λ₀, noisy direction.

    Each of the T iterations releases
      1. the gradient, Δ = 1/n, for a share 1-θ of ρ/T (Algorithm 5, line 14; the text's ∇ℓ);
      2. the trace of the curvature H, Δ = 1/(4n), for θγ: it sets λ₀ (Algorithm 5, lines 15-17);
      3. the direction H̃⁻¹g̃, Δ = ‖g̃‖/(4nλ₀² - λ₀) for clip, ‖g̃‖/(4nλ₀² + λ₀) for add, for θ(1-γ)
         (Theorems B.2 and B.3).
    H is the Hessian ("hess") or the paper's quadratic upper bound ("qu"). "clip" raises the eigenvalues
    below λ₀ to λ₀; "add" takes H + λ₀I. With `lambda0` given, λ₀ is fixed, nothing is spent on the trace
    and the whole share θ goes to the direction (Algorithm 3). `measure_memory` changes nothing in the run.
    """

    name = "dp-newton"
    title = "DP-Newton"
    needs = Needs(losses=("logistic",))

    class Settings(Settings):
        T: Count = 10
        curvature: Literal["hess", "qu"] = "hess"
        modification: Literal["clip", "add"] = "clip"
        beta: Positive = 1.0
        theta: Share = 0.3
        gamma: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.1
        lambda0: Positive | None = None
        measure_memory: bool = False

    def complete(self, problem, settings):
        lambda0 = settings.lambda0
        if lambda0 is not None and settings.modification == "clip" and lambda0 <= SMOOTHNESS / problem.n:
            raise UserError(
                f"dp-newton: lambda0 = {lambda0:g} with clip must exceed 1/(4n) = "
                f"{SMOOTHNESS / problem.n:.3g} (Theorem B.2); raise it or use modification=add"
            )
        return settings

    def work(self, n, d, settings):
        return settings.T * (2.0 * n * d * (d + 2) + 20.0 * d**3)

    def measure(self, problem, outcome, settings, generators):
        """With `measure_memory`: the bytes that modifying the last Hessian and solving with it took (C.7)."""
        if not settings.measure_memory:
            return {}
        curvatures = problem.data_hessian(outcome.W, settings.curvature)
        pairs = [peak_of_modification(H, settings.modification) for H in curvatures]
        return {
            "measured": [peak - before for before, peak in pairs],
            "notes": [f"peak of the process {peak} bytes" for _, peak in pairs],
        }

    def run(self, problem, W, mechanisms, settings, trace):
        n, T, theta = problem.n, settings.T, settings.theta
        gamma = settings.gamma if settings.lambda0 is None else 0.0
        rho = mechanisms.budget.rho / T
        rho_direction = theta * (1 - gamma) * rho
        trace(0, W, passes=0)
        for t in range(1, T + 1):
            gradient = mechanisms.gaussian(
                problem.data_gradient(W), sensitivity=1 / n, rho=(1 - theta) * rho, label="gradient"
            )
            H = problem.data_hessian(W, settings.curvature)
            if settings.lambda0 is None:
                lambda0 = self._released_lambda0(H, mechanisms, n, theta * gamma * rho, rho_direction, settings)
            else:
                lambda0 = np.full(len(W), settings.lambda0)
            direction = SOLVE[settings.modification](H, gradient, lambda0)
            W = W - mechanisms.gaussian(
                direction,
                sensitivity=np.linalg.norm(gradient, axis=1) * inverse_sensitivity(n, lambda0, settings.modification),
                rho=rho_direction,
                label="direction",
            )
            trace(t, W, passes=2 * t)
        return W

    @staticmethod
    def _released_lambda0(H, mechanisms, n, rho_trace, rho_direction, settings):
        """λ₀ = max(β (t̃ / (n² ρ_direction))^{1/3}, 1/n) from the noisy trace t̃ (Algorithm 5, lines 16-17)."""
        noisy = mechanisms.gaussian(
            np.trace(H, axis1=1, axis2=2),
            sensitivity=SMOOTHNESS / n,
            rho=rho_trace,
            label="trace",
            replaced=SMOOTHNESS / n,  # a row's trace is in [0, 1/4]: replacing it moves the sum no further than that
        )
        return np.maximum(settings.beta * np.cbrt(np.maximum(noisy, 0) / (n**2 * rho_direction)), 1 / n)


def inverse_sensitivity(n, lambda0, modification):
    """sup ‖(H̃⁻¹ - H̃'⁻¹) g‖ / ‖g‖ over neighbours: 1/(4nλ₀² ∓ λ₀) (Theorems B.2 for clip, B.3 for add)."""
    sign = -1 if modification == "clip" else 1
    return 1 / (4 * n * lambda0**2 + sign * lambda0)


def clip_and_solve(H, G, lambda0):
    """Ψ_λ₀(H)⁻¹ g with eigenvalues below λ₀ raised to λ₀. H (k, d, d), G (k, d), lambda0 (k,) → (k, d)."""
    values, vectors = np.linalg.eigh(H)
    coordinates = (G[:, None, :] @ vectors)[:, 0, :] / np.maximum(values, lambda0[:, None])
    return (vectors @ coordinates[:, :, None])[:, :, 0]


def add_and_solve(H, G, lambda0):
    """(H + λ₀I)⁻¹ g by Cholesky. H (k, d, d), G (k, d), lambda0 (k,) → (k, d)."""
    from scipy.linalg import cho_factor, cho_solve

    eye = np.eye(H.shape[1])
    return np.stack([cho_solve(cho_factor(h + l * eye), g) for h, g, l in zip(H, G, lambda0, strict=True)])


SOLVE = {"clip": clip_and_solve, "add": add_and_solve}
