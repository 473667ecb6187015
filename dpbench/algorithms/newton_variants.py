"""Newton's methods beside dp-newton: for any smooth convex loss, cubic-regularised, and damped."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import numpy as np

from dpbench.algorithms import base as dp
from dpbench.algorithms.newton import SOLVE, Reset, back_inside, clip_and_solve, radius
from dpbench.errors import UserError
from dpbench.privacy.ledger import at_rho


class DPNewtonGeneral(dp.Algorithm):
    """dp-newton-general: Algorithm 3 without the logistic loss's rank-one curvature.

    Of ρ/T an iteration gives a share 1-θ to the gradient, Δ = L₀/n, and θ to the direction H̃⁻¹g̃, with
    Δ = ‖g̃‖ L₁/(nλ₀² - λ₀L₁) for add and Δ = ‖g̃‖ L₁C/(nλ₀² - λ₀L₁C) for clip, C = 2/π + 1/2
    + ln((2n(L₁-λ₀) + L₁)/L₁)/π (Theorem B.6, Lemma B.7; the text prints the logarithm without its 2). It asks for
    nλ₀ > L₁ with add, and nλ₀ > L₁C and 2λ₀ ≤ L₁ with clip. One row's Hessian has ‖∇²f_i‖ ≤ L₁ in operator norm.
    """

    name = "dp-newton-general"
    title = "DP-Newton, general losses"
    in_reals = "its directions are computed in float64 from a Hessian that has no noise"
    needs = dp.Needs(convex=True, lipschitz=True, smooth=True)  # Theorem B.6
    discloses = (
        dp.Disclosure("gradient", "the mean gradient", add_remove="L₀/n", why="‖∇f_i‖ ≤ L₀"),
        dp.Disclosure(
            "direction",
            "H̃⁻¹g̃; C = 1 with add, 2/π + 1/2 + ln((2n(L₁ - λ₀) + L₁)/L₁)/π with clip",
            add_remove="‖g̃‖·L₁·C/(n·λ₀² - λ₀·L₁·C)",
            why="Ganesh et al. (2023), Theorem B.6 and Lemma B.7",
        ),
    )

    class Settings(dp.BaseSettings, frozen=True):
        T: dp.Count = 10
        modification: Literal["clip", "add"] = "clip"
        lambda0: dp.Positive = 0.01
        theta: dp.Share = 0.3

    def complete(self, problem, settings):
        inverse_sensitivity(problem.n, problem.smoothness, settings.lambda0, settings.modification)
        return settings

    audit_case = dp.AuditCase({"modification": "add", "lambda0": 1.0})  # λ₀ as Theorem B.6 asks for at such an n

    # With a λ₀ so large that nλ₀² ± λ₀L₁ are next to each other: the one is proved, the other is so.
    _large: ClassVar = {"theta": 0.9, "modification": "add", "lambda0": 5.0}
    canaries = (dp.AuditCase(_large, d=1, bend=1.0, label="direction"),)

    def work(self, n, d, settings):
        return settings.T * (2.0 * n * d * (d + 2) + 20.0 * d**3)

    def plan(self, problem, mechanisms, settings):
        theta, rho = settings.theta, mechanisms.budget.rho / settings.T
        mechanisms.plan("gradient", at_rho((1 - theta) * rho), settings.T)
        mechanisms.plan("direction", at_rho(theta * rho), settings.T)

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


class CubicNewton(dp.Algorithm):
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
    needs = dp.Needs(convex=True, lipschitz=True, smooth=True, hessian_lipschitz=True, regularisers=("l2",))
    diagnostics = (dp.NOTES,)
    discloses = (
        dp.Disclosure(
            "model gradient",
            "the gradient of the cubic model",
            count="T·N",
            add_remove="(L₀ + L₁·D)/n",
            why="‖w - w_t‖ ≤ D; Ganesh et al. (2023), Theorem 4.2",
        ),
    )

    class Settings(dp.BaseSettings, frozen=True):
        T: dp.Count = 5
        D: dp.Positive = 20.0
        inner: dp.Count = 2000

    def complete(self, problem, settings):
        if not problem.l2 > 0:
            raise UserError(
                f"{self.name}: needs a strongly convex objective: choose a problem with l2 > 0, e.g. a1a-ridge"
            )
        return settings

    # A small ball, on which Δ is next to L₀/n and can be attained.
    audit_case = dp.AuditCase({"D": 0.1, "inner": 1}, l2=0.01)

    # Several inner steps, so that curvature has a part in what is released.
    canaries = (dp.AuditCase({"D": 0.1, "inner": 4, "T": 1}, l2=0.01, bend=1.0, label="model gradient"),)

    def work(self, n, d, settings):
        return settings.T * (2.0 * n * d * (d + 2) + 2.0 * settings.inner * d**2)

    def plan(self, problem, mechanisms, settings):
        rho = mechanisms.budget.rho / settings.T
        N = min(inner_steps(problem, rho, settings.D), settings.inner)
        mechanisms.plan("model gradient", at_rho(rho / N), settings.T * N)

    def run(self, problem, W, mechanisms, settings, trace):
        rho = mechanisms.budget.rho / settings.T
        steps = inner_steps(problem, rho, settings.D)
        N = min(steps, settings.inner)
        W = project(W, settings.D / 2)
        trace(0, W, passes=0)
        for t in range(1, settings.T + 1):
            W = self._minimise_model(problem, W, rho, N, settings.D, mechanisms)
            trace(t, W, passes=2 * t)
        note = f"{N} inner steps" + (f", capped from {steps}" if steps > N else "")
        return dp.RunResult(W, columns={"notes": [note] * len(W)})

    @staticmethod
    def _minimise_model(
        problem: dp.Problem, W: dp.Array, rho: float | dp.Array, N: int, D: float, mechanisms: dp.Mechanisms
    ) -> dp.Array:
        """Algorithm 2 at the iterates W (k, d) for ρ̃ = `rho`: the weighted average of N iterates."""
        mu, L2 = problem.l2, problem.hessian_lipschitz
        sensitivity = (problem.lipschitz + problem.smoothness * D) / problem.n
        G, H = problem.gradient(W), problem.hessian(W)
        theta, average = W, np.zeros_like(W)
        for i in range(N):
            # Weights ∝ i + 1, for which a strongly convex objective has no logarithm in its bound.
            average += 2 * (i + 1) / (N * (N + 1)) * theta
            U = theta - W
            model = G + (H @ U[:, :, None])[:, :, 0] + L2 / 2 * np.linalg.norm(U, axis=1, keepdims=True) * U
            noisy = mechanisms.gaussian(model, sensitivity=sensitivity, rho=rho / N, label="model gradient")
            # Steps of 2/(μ(i + 2)), which these weights are for; the ball keeps ‖w - w_t‖ ≤ D, so Δ holds.
            theta = project(theta - 2 / (mu * (i + 2)) * noisy, D / 2)
        return average


def inner_steps(problem: dp.Declaration, rho: float, D: float) -> int:
    """N of Algorithm 2, line 2, before any cap."""
    mu = problem.l2
    slope = problem.lipschitz + mu * D / 2 + (problem.smoothness + mu) * D + problem.hessian_lipschitz * D**2
    sensitivity = (problem.lipschitz + problem.smoothness * D) / problem.n
    return math.ceil(2 * rho * slope**2 / (problem.d * sensitivity**2))


def project(W: dp.Array, radius: float) -> dp.Array:
    """The nearest point of the ball ‖w‖ ≤ radius, for each row of W (k, d)."""
    norms = np.linalg.norm(W, axis=1, keepdims=True)
    return W * (radius / np.maximum(norms, radius))


FLOOR = 1e-5  # of the noisy Hessian's eigenvalues
JITTER = 1e-8  # on the diagonal of the noise-free Hessian


class DampedNewton(dp.Algorithm):
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
    needs = dp.Needs(convex=True, lipschitz=True, smooth=True)
    discloses = (
        dp.Disclosure("gradient", "the mean gradient", add_remove="L₀/n", why="‖∇f_i‖ ≤ L₀"),
        dp.Disclosure("Hessian", "the mean Hessian", add_remove="L₁/n", why="‖xxᵀ‖_F/4 ≤ L₁"),
    )
    unpaid = "its step, from the gradient and the Hessian without noise"

    class Settings(dp.BaseSettings, frozen=True):
        T: dp.Count = 10
        theta: dp.Share = 0.3
        ridge: Literal["hessian", "objective"] = "hessian"
        reset: Reset = None

    def work(self, n, d, settings):
        return settings.T * (2.0 * n * d * (d + 2) + 20.0 * d**3)

    def run(self, problem, W, mechanisms, settings, trace):
        n, rho = problem.n, mechanisms.budget.rho / settings.T
        floor = np.full(len(W), FLOOR)
        start, farthest = W, radius(problem, settings.reset)
        trace(0, W, passes=0)
        for t in range(1, settings.T + 1):
            G, H = problem.data_gradient(W), problem.data_hessian(W)
            ridged = G + JITTER * W if settings.ridge == "objective" else G
            # Taken before the noise, as in the paper's comparison: see the class for what that costs.
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


def non_private_step(H: dp.Array, G: dp.Array) -> dp.Array:
    """min(1, log(1 + b)/b), b = ‖(H + 1e-8 I)⁻¹g‖; 1 where b = 0. H (k, d, d), G (k, d) → (k,)."""
    newton = np.linalg.solve(H + JITTER * np.eye(H.shape[1]), G[:, :, None])[:, :, 0]
    b = np.linalg.norm(newton, axis=1)
    return np.divide(np.log1p(b), b, out=np.ones_like(b), where=b > 0)
