"""Damped Newton with noise on the gradient and on the Hessian (Avella-Medina, Bradshaw and Loh 2023)."""

from __future__ import annotations

import numpy as np

from dpbench.algorithms.base import Algorithm, Count, Needs, Settings, Share
from dpbench.algorithms.newton import clip_and_solve

FLOOR = 1e-5  # of the noisy Hessian's eigenvalues
JITTER = 1e-8  # on the diagonal of the noise-free Hessian


class DampedNewton(Algorithm):
    """damped-newton: w ← w - η H̃⁻¹ g̃, the private damped Newton method with a step that is NOT private.

    Of ρ/T an iteration gives
      1. the gradient, Δ = 1/n, a share 1-θ: noise of standard deviation sqrt(1/(2(1-θ)ρ/T))/n;
      2. the Hessian, Δ = ‖xxᵀ‖_F/(4n) ≤ 1/(4n), a share θ = 0.3: H + (N + Nᵀ)/2, N with i.i.d. entries.
    Both are zCDP by Bun and Steinke (2016), Proposition 1.6; averaging with the transpose is post-processing.
    Eigenvalues below 1e-5 are raised to it. The step η = log(1 + b)/b, b = ‖(H + 1e-8 I)⁻¹∇f‖, is taken from the
    noise-free gradient and Hessian and pays nothing, as in the comparison of Ganesh et al. 2023, Section 6.1.
    """

    name = "damped-newton"
    title = "Damped Newton"
    private = False
    needs = Needs(losses=("logistic",))

    class Settings(Settings):
        T: Count = 10
        theta: Share = 0.3

    def work(self, n, d, settings):
        return settings.T * (2.0 * n * d * (d + 2) + 20.0 * d**3)

    def run(self, problem, W, mechanisms, settings, trace):
        n, rho = problem.n, mechanisms.budget.rho / settings.T
        floor = np.full(len(W), FLOOR)
        trace(0, W, passes=0)
        for t in range(1, settings.T + 1):
            G, H = problem.data_gradient(W), problem.data_hessian(W)
            step = non_private_step(H, G)[:, None]
            gradient = mechanisms.gaussian(
                G, sensitivity=problem.lipschitz / n, rho=(1 - settings.theta) * rho, label="gradient"
            )
            noisy = mechanisms.gaussian(
                H, sensitivity=problem.smoothness / n, rho=settings.theta * rho, label="Hessian"
            )
            W = W - step * clip_and_solve((noisy + noisy.swapaxes(1, 2)) / 2, gradient, floor)
            trace(t, W, passes=2 * t)
        return W


def non_private_step(H, G) -> np.ndarray:
    """min(1, log(1 + b)/b), b = ‖(H + 1e-8 I)⁻¹g‖; 1 where b = 0. H (k, d, d), G (k, d) → (k,)."""
    newton = np.linalg.solve(H + JITTER * np.eye(H.shape[1]), G[:, :, None])[:, :, 0]
    b = np.linalg.norm(newton, axis=1)
    return np.divide(np.log1p(b), b, out=np.ones_like(b), where=b > 0)
