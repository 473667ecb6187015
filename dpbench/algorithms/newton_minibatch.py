"""Newton's method with double noise on Poisson samples (Ganesh et al. 2023, Algorithm 7)."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from dpbench.algorithms.audit_case import AuditCase
from dpbench.algorithms.base import Algorithm, Count, Needs, Positive, Settings, Share
from dpbench.algorithms.newton import SOLVE, inverse_sensitivity


class DPNewtonMinibatch(Algorithm):
    """dp-newton-minibatch: dp-newton with a sample for the gradient and another for the curvature.

    An iteration releases
      1. the gradient sum over a Poisson sample of rate p_g, Δ = 1 (scaled by 1/(n p_g));
      2. the direction H̃⁻¹g̃, H = Σ_B H_i/(n p_H) over a Poisson sample of rate p_H: Theorems B.2 and B.3 with n p_H
         in place of n give Δ = ‖g̃‖/(4np_Hλ₀² - λ₀) for clip and ‖g̃‖/(4np_Hλ₀² + λ₀) for add.
    The T gradients cost ((1-θ)ε, (1-θ)δ) together and the T directions (θε, θδ): each has the noise multiplier of
    T Poisson-sampled Gaussian releases, and the two add up (Theorem C.1). λ₀ is given, no trace is released; clip
    takes max(λ₀, 1/(np_H)), as its proof asks for λ₀ > 1/(4np_H).
    """

    name = "dp-newton-minibatch"
    title = "DP-Newton, minibatch"
    paper_accounting = "rdp"
    accountings = ("tight", "rdp")
    needs = Needs(losses=("logistic",))
    per_replicate: ClassVar = frozenset({"lambda0"})

    class Settings(Settings):
        T: Count = 20
        curvature: Literal["hess", "qu"] = "hess"
        modification: Literal["clip", "add"] = "add"
        lambda0: Positive = 0.01
        theta: Share = 0.3
        gradient_rate: Share = 0.1
        curvature_rate: Share = 0.1

    def audit_case(self):
        return AuditCase({"T": 1, "gradient_rate": 0.5, "curvature_rate": 0.5})

    def work(self, n, d, settings):
        rows = n * (settings.gradient_rate + settings.curvature_rate * (d / 2 + 1))
        return settings.T * (8.0 * rows * d + 20.0 * d**3)

    def run(self, problem, W, mechanisms, settings, trace):
        n, T, theta = problem.n, settings.T, settings.theta
        p_g, p_H = settings.gradient_rate, settings.curvature_rate
        gradients = mechanisms.poisson(n, p_g, label="gradient")
        directions = mechanisms.poisson(n, p_H, label="direction")
        z_g = gradients.noise_multiplier(T, share=1 - theta)
        z_H = directions.noise_multiplier(T, share=theta)
        b = directions.size
        lambda0 = np.maximum(settings.lambda0, 1 / b) if settings.modification == "clip" else settings.lambda0
        inverse = inverse_sensitivity(b, lambda0, settings.modification)
        trace(0, W, passes=0)
        for t in range(1, T + 1):
            total = np.stack([problem.gradient_sum(w, rows) for w, rows in zip(W, gradients.draw(), strict=True)])
            gradient = gradients.gaussian(total, sensitivity=1.0, noise_multiplier=z_g) / gradients.size
            H = np.stack(
                [
                    problem.hessian_sum(w, rows, settings.curvature) / b
                    for w, rows in zip(W, directions.draw(), strict=True)
                ]
            )
            W = W - directions.gaussian(
                SOLVE[settings.modification](H, gradient, lambda0),
                sensitivity=np.linalg.norm(gradient, axis=1) * inverse,
                noise_multiplier=z_H,
            )
            trace(t, W, passes=t * (p_g + p_H))
        return W
