"""Gradient descent, heavy ball and Nesterov's method with Laplace noise: pure ε-DP (Kuru et al. 2022)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import msgspec
import numpy as np

from dpbench.algorithms import allocation
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
    Relation,
    Trace,
)
from dpbench.errors import UserError
from dpbench.privacy.accounting.pure import base_epsilon
from dpbench.privacy.ledger import Laplace, WithoutReplacement
from dpbench.privacy.sampling import laplace_multiplier

ROW_NORM = 20.0  # ‖u‖₁ ≤ 20 (Section 5): declared, never measured
AS_PUBLISHED = "as-published-code"


class LaplaceMomentum(Algorithm):
    """The recursion that the family shares, with v_t = β_t (x_t - x_{t-1}) and x_{-1} = x_0:

        g̃_t     = ∇F_B(y_t) + Laplace(b_t)^d,   y_t = x_t, or x_t + v_t with look-ahead,
        x_{t+1} = x_t + v_t - α_t g̃_t.

    B is m of the n rows without replacement. Replacing one row moves the mean loss gradient over B by at most S₁/m
    in ℓ₁, S₁ = 2 sup‖u‖₁ = 40, since |ℓ'| ≤ 1 (eq. (5.2)); the regulariser uses no data. b_t = S₁/(m ε₀) with
    ε₀ = ln(1 + (e^{ε_t} - 1) n/m) makes the release ε_t-DP under replace-one (eqs. (3.3) to (3.5), Proposition 3.1),
    and Σ ε_t = ε by basic composition. At δ = 0 nothing composes Laplace releases better: their privacy losses reach
    ε_t all at once with positive probability, so the accountings "paper", "tight" and "pure" are one.

    α_t = c/L with L the top eigenvalue of UᵀU/n + 2λI, μ = 2λ the weight of the regulariser. As in the paper L is
    taken from the data and counts as public; give `L` to avoid that. The theorems on the error ask for c ≤ 1.

    noise_scale "as-published-code" draws noise of scale b_t/√2, as if b_t were a standard deviation, which is what
    the authors' code did: for comparison with their figures, and not ε-DP.
    """

    home = "accelerated"
    relation = Relation.REPLACE_ONE
    paper_accounting = "pure"
    accountings = ("tight", "pure")
    delta = 0.0
    exact = "sums"
    needs = Needs(convex=True, lipschitz=True, smooth=True, row_norm=("l1", ROW_NORM), regularisers=("l2",))

    per_replicate: ClassVar = frozenset({"c"})
    counts_public = "the top eigenvalue of XᵀX/n (L), unless L is given"
    diagnostics = (NOTES,)
    discloses = (
        Disclosure(
            "gradient",
            "the mean gradient",
            "Laplace",
            "T",
            replace_one="2·r·ℓ/n",
            why="Kuru et al. (2022), eq. (5.2): ‖u‖₁ ≤ r = 20, |ℓ'| ≤ ℓ = 1",
            when="m = n",
        ),
        Disclosure(
            "gradient",
            "the mean gradient of m rows",
            "Laplace on a sample",
            "T",
            replace_one="2·r·ℓ/m",
            why="Kuru et al. (2022), eqs. (3.3) to (3.5)",
            when="m < n",
        ),
    )

    momentum = True
    lookahead = True
    multistage = False
    by_data = False  # whether T' is a function of L

    class Settings(BaseSettings, frozen=True):
        T: Count = 100
        c: Positive = 1.0
        m: Count | None = None
        L: Positive | None = None
        noise_scale: Literal["laplace", "as-published-code"] = "laplace"

    def accounting(self, mode: str) -> str:
        super().accounting(mode)
        return "pure"

    def public(self, settings: Settings) -> str:
        return "" if settings.L else "the top eigenvalue of XᵀX/n (L)"

    def flaw(self, settings: Settings, accounting: str = "") -> str:
        if settings.noise_scale == AS_PUBLISHED:
            return "Laplace scale b/√2, as in the published code: does not meet the ε asked for"
        return ""

    def complete(self, problem: Declaration, settings: Settings) -> Settings:
        m = problem.n if settings.m is None else settings.m
        if m > problem.n:
            raise UserError(f"{self.name}: m = {m} rows per iteration, but the data have n = {problem.n}; lower m")
        if self.momentum and not 0 < problem.l2 * settings.c < smoothness(problem, settings):
            raise UserError(
                f"{self.name}: needs 0 < c·l2 < L, got l2 = {problem.l2:g}, c = {settings.c:g}, "
                f"L = {smoothness(problem, settings):.4g}; its momentum rests on strong convexity: set l2 > 0"
            )
        return msgspec.structs.replace(settings, m=m)

    def audit_case(self) -> AuditCase:
        return AuditCase({"T": 2}, l2=0.02)  # at δ = 0 all T have to show their largest loss at once

    def work(self, n: int, d: int, settings: Settings) -> float:
        rows = min(settings.m or n, n) + 10_000  # measured: drawing and gathering a small batch costs that many
        return 4.0 * settings.T * rows * d

    def schedule(self, problem: Declaration, settings: Settings) -> tuple[Array, Array, np.ndarray]:
        """α_t and β_t, (T, k) or (T, 1), and the stage s_t, (T,); a restart (x_{t-1} := x_t) is β_t = 0 once."""
        T, L, mu = settings.T, smoothness(problem, settings), problem.l2
        stage = allocation.stages(T, L / mu) if self.multistage else np.ones(T, int)
        alpha = allocation.steps(stage[:, None], np.atleast_1d(settings.c) / L)
        beta = (1 - np.sqrt(alpha * mu)) / (1 + np.sqrt(alpha * mu)) if self.momentum else np.zeros((T, 1))
        beta[1:][np.diff(stage) > 0] = 0.0
        return alpha, beta, stage

    def budgets(self, problem: Declaration, settings: Any, epsilon: float, alpha: Array, stage: np.ndarray) -> Array:
        """ε_t of the iterations to run; they sum to ε."""
        return np.full(settings.T, epsilon / settings.T)

    def plan(self, problem: Declaration, mechanisms: Mechanisms, settings: Any) -> None:
        if self.by_data and settings.L is None:
            return  # T' is a function of L, which is read off the data
        alpha, _, stage = self.schedule(problem, settings)
        for epsilon in self.budgets(problem, settings, mechanisms.budget.epsilon, alpha, stage):
            sensitivity, scale = noise_of(problem, settings, epsilon)
            release = Laplace(float(laplace_multiplier(sensitivity, None, scale)))
            m = settings.m or problem.n
            mechanisms.plan("gradient", WithoutReplacement(problem.n, m, release) if m < problem.n else release, 1)

    def run(self, problem: Problem, W: Array, mechanisms: Mechanisms, settings: Settings, trace: Trace) -> Outcome:
        alpha, beta, stage = self.schedule(problem, settings)
        epsilon = self.budgets(problem, settings, mechanisms.budget.epsilon, alpha, stage)
        T = len(epsilon)
        release = noisy_gradient(problem, mechanisms, settings)
        x, previous = W, W
        trace(0, x, passes=0)
        for t in range(T):
            v = beta[t, :, None] * (x - previous)
            y = x + v if self.lookahead else x
            x, previous = x + v - alpha[t, :, None] * (release(y, epsilon[t]) + problem.l2 * y), x
            trace(t + 1, x, passes=(t + 1) * (settings.m or problem.n) / problem.n, final=t + 1 == T)
        notes = "" if settings.L else f"L = {smoothness(problem, settings):.6g} from the data, counted as public"
        return Outcome(x, {"notes": [notes] * len(x)}, T=[T] * len(x))


def smoothness(problem: Declaration, settings: LaplaceMomentum.Settings) -> float:
    """L: what the settings declare, or the top eigenvalue of UᵀU/n plus 2λ (Section 5)."""
    return settings.L or problem.top_eigenvalue + problem.l2


def noise_of(problem: Declaration, settings: LaplaceMomentum.Settings, epsilon: float) -> tuple[float, float]:
    """(sensitivity, scale) of a gradient at ε_t: S₁/m, and b_t that makes it ε_t-DP on m of the n rows."""
    n, m = problem.n, settings.m or problem.n
    sensitivity = 2 * problem.loss.lipschitz * ROW_NORM / m
    correction = math.sqrt(0.5) if settings.noise_scale == AS_PUBLISHED else 1.0
    return sensitivity, sensitivity / base_epsilon(epsilon, n, m) * correction


def noisy_gradient(
    problem: Problem, mechanisms: Mechanisms, settings: LaplaceMomentum.Settings
) -> Callable[[Array, float], Array]:
    """The function (y, ε_t) → mean loss gradient at y over m rows + Laplace(b_t), all (k, d)."""
    n, m = problem.n, settings.m or problem.n
    sampler = mechanisms.without_replacement(n, m, "gradient") if m < n else None

    def release(y: Array, epsilon: float) -> Array:
        sensitivity, scale = noise_of(problem, settings, epsilon)
        if sampler is None:
            return mechanisms.laplace(problem.data_gradient(y), sensitivity=sensitivity, scale=scale, label="gradient")
        batches = sampler.draw()
        gradient = np.stack([problem.gradient_sum(w, rows) / m for w, rows in zip(y, batches, strict=True)])
        return sampler.laplace(gradient, sensitivity=sensitivity, scale=scale)

    return release


class DPGDLaplace(LaplaceMomentum):
    """dp-gd-laplace: x ← x - α g̃(x), every iteration at ε/T (eq. (2.4) with (2.8); the paper's DP-GD)."""

    name, title = "dp-gd-laplace", "DP-GD (Laplace)"
    momentum, lookahead = False, False


class DPHeavyBall(LaplaceMomentum):
    """dp-hb: Polyak's heavy ball (eq. (3.1)), gradient at x_t, β = (1 - √(αμ))/(1 + √(αμ)), ε/T each time."""

    name, title = "dp-hb", "DP-HB"
    lookahead = False


class DPNesterov(LaplaceMomentum):
    """dp-nag: Nesterov's method (eq. (4.1)), gradient at z_t = x_t + v_t, ε/T each time."""

    name, title = "dp-nag", "DP-NAG"


class DPMultistage(LaplaceMomentum):
    """dp-masg: Nesterov's method in stages of shrinking step (eq. (4.7), p = 1), ε/T each time."""

    name, title = "dp-masg", "DP-MASG"
    multistage = True


class Optimised(LaplaceMomentum):
    """Budgets ε_t ∝ a_{T',t}^{1/3} (Proposition 4.2) and T' ≤ T iterations, T' minimising the bound (4.6).

    Both are for m = n and are used for m < n too (Remark 4.2), where b_t inverts (3.3) exactly. T' reads nothing of
    the data but L. The rows' column T holds T'; the setting T keeps what was asked for.

    weights "as-published-code" has 2^{s_T'} E₀ and α/2 (1 + αL) where (4.6) and (4.8) have 2^{s_T' - 1} E₀ and
    α (1 + αL): the start counts double and the noise by half, so T' is another. The budgets still sum to ε.
    """

    per_replicate: ClassVar = frozenset()  # c decides T'
    by_data = True

    class Settings(LaplaceMomentum.Settings, frozen=True):
        E0: Positive = 10.0
        weights: Literal["paper", "as-published-code"] = "paper"

    def budgets(
        self, problem: Declaration, settings: Settings, epsilon: float, alpha: Array, stage: np.ndarray
    ) -> Array:
        weights = allocation.error_weights(alpha[:, 0], stage, problem.l2, smoothness(problem, settings))
        S1 = 2 * problem.loss.lipschitz * ROW_NORM
        factor = 2.0 if settings.weights == AS_PUBLISHED else 1.0
        T = weights.best_T(problem.d * (S1 / (problem.n * epsilon)) ** 2 / factor, factor * settings.E0)
        return epsilon * weights.shares(T)


class DPNesterovOptimised(Optimised):
    """dp-nag-opt: dp-nag with the budgets of Proposition 4.2 and T' of Remark 4.1."""

    name, title = "dp-nag-opt", "DP-NAG-opt"


class DPMultistageOptimised(Optimised):
    """dp-masg-opt: dp-masg with the budgets of Proposition 4.2 (a_{T,t} of Theorem 4.3) and T' of Remark 4.1."""

    name, title = "dp-masg-opt", "DP-MASG-opt"
    multistage = True
