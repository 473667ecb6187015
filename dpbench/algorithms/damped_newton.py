"""Damped Newton with noise on the gradient and on the Hessian (Avella-Medina, Bradshaw and Loh 2023)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from dpbench.algorithms.base import (
    Algorithm,
    Array,
    BaseSettings,
    Count,
    Disclosure,
    Mechanisms,
    Needs,
    Problem,
    Share,
    Trace,
)
from dpbench.algorithms.newton import clip_and_solve
from dpbench.algorithms.resetting import Reset, back_inside, radius

FLOOR = 1e-5  # of the noisy Hessian's eigenvalues
JITTER = 1e-8  # on the diagonal of the noise-free Hessian


class DampedNewton(Algorithm):
    """damped-newton: w ← w - η H̃⁻¹ g̃, the private damped Newton method with a step that is NOT private.

    Of ρ/T an iteration gives
      1. the gradient, Δ = 1/n, a share 1-θ: noise of standard deviation sqrt(1/(2(1-θ)ρ/T))/n;
      2. the Hessian, Δ = ‖xxᵀ‖_F/(4n) ≤ 1/(4n), a share θ = 0.3: H + (N + Nᵀ)/2, N with i.i.d. entries.
    Both are zCDP by Bun and Steinke (2016), Proposition 1.6; averaging with the transpose is post-processing.
    Eigenvalues below 1e-5 are raised to it. The step η = log(1 + b)/b, b = ‖(H + 1e-8 I)⁻¹∇f‖, is taken from the
    noise-free gradient and Hessian and pays nothing, as in the comparison of Ganesh et al. 2023, Section 6.1. With
    ridge = "objective" the 1e-8 belongs to the loss, so to the gradient in b too: b then grows with what the iterate
    has gathered in directions where H is singular, and steps are shorter (as the authors' numbers have it). `reset`:
    as of dp-newton.
    """

    name = "damped-newton"
    title = "Damped Newton"
    private = False
    needs = Needs(convex=True, lipschitz=True, smooth=True)
    discloses = (
        Disclosure("gradient", "the mean gradient", add_remove="L₀/n", why="‖∇f_i‖ ≤ L₀"),
        Disclosure("Hessian", "the mean Hessian", add_remove="L₁/n", why="‖xxᵀ‖_F/4 ≤ L₁"),
    )
    unpaid = "its step, from the gradient and the Hessian without noise"

    class Settings(BaseSettings, frozen=True):
        T: Count = 10
        theta: Share = 0.3
        ridge: Literal["hessian", "objective"] = "hessian"
        reset: Reset = None

    def work(self, n: int, d: int, settings: Settings) -> float:
        return settings.T * (2.0 * n * d * (d + 2) + 20.0 * d**3)

    def run(self, problem: Problem, W: Array, mechanisms: Mechanisms, settings: Settings, trace: Trace) -> Array:
        n, rho = problem.n, mechanisms.budget.rho / settings.T
        floor = np.full(len(W), FLOOR)
        start, farthest = W, radius(problem, settings.reset)
        trace(0, W, passes=0)
        for t in range(1, settings.T + 1):
            G, H = problem.data_gradient(W), problem.data_hessian(W)
            ridged = G + JITTER * W if settings.ridge == "objective" else G
            step = non_private_step(H, ridged)[:, None]
            gradient = mechanisms.gaussian(
                G, sensitivity=problem.lipschitz / n, rho=(1 - settings.theta) * rho, label="gradient"
            )
            noisy = mechanisms.gaussian(
                H, sensitivity=problem.smoothness / n, rho=settings.theta * rho, label="Hessian"
            )
            W = W - step * clip_and_solve((noisy + noisy.swapaxes(1, 2)) / 2, gradient, floor)
            W = back_inside(W, start, farthest)
            trace(t, W, passes=2 * t)
        return W


def non_private_step(H: Array, G: Array) -> Array:
    """min(1, log(1 + b)/b), b = ‖(H + 1e-8 I)⁻¹g‖; 1 where b = 0. H (k, d, d), G (k, d) → (k,)."""
    newton = np.linalg.solve(H + JITTER * np.eye(H.shape[1]), G[:, :, None])[:, :, 0]
    b = np.linalg.norm(newton, axis=1)
    return np.divide(np.log1p(b), b, out=np.ones_like(b), where=b > 0)
