"""Gradient descent, heavy ball and Nesterov's method: Laplace noise in shares of ε, or Gaussian noise on a ball.

How much of ε each iteration gets (Kuru et al. 2022, Section 4) is computed in logarithms. The error bound of T
iterations of Nesterov's method (Theorems 4.1 and 4.3) is a_{T,0} E₀ + d Σ_t a_{T,t} b_t² for Laplace noise of scale
b_t, with

    ln a_{T,t} = (s_T - s_t) ln 2 + Σ_{i=t+1}^T ln(1 - √(μα_i)) + ln(α_t (1 + α_t L)),

s_t the stage and α_t the step of iteration t. It splits into a term of T alone and a term of t alone: the bounds of
all T' ≤ T together take O(T), and nothing overflows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple

import msgspec
import numpy as np
import scipy

from dpbench.algorithms import base as dp
from dpbench.algorithms.newton_variants import project
from dpbench.errors import UserError
from dpbench.privacy.accounting.pure import base_epsilon
from dpbench.privacy.ledger import Laplace, WithoutReplacement, at_rho
from dpbench.privacy.sampling import laplace_multiplier


def stage_length(k: int, kappa: float, *, first: int | None = None) -> int:
    """n_k of eq. (4.7) with p = 1: 2^k ⌈√κ ln 8⌉ for k ≥ 2; n_1 is `first`, by default ⌈2 √κ ln √κ⌉ as in Section 5."""
    root = math.sqrt(kappa)
    if k > 1:
        return 2**k * math.ceil(root * 3 * math.log(2))
    return max(1, math.ceil(2 * root * math.log(root))) if first is None else first


def stages(T: int, kappa: float, *, first: int | None = None) -> np.ndarray:
    """(T,) stage s_t = 1, 2, … of every iteration of the multistage method; those of T' < T are a prefix."""
    lengths: list[int] = []
    while sum(lengths) < T:
        lengths.append(stage_length(len(lengths) + 1, kappa, first=first))
    return np.repeat(np.arange(1, len(lengths) + 1), lengths)[:T]


def steps(stage: np.ndarray, base: float | np.ndarray) -> np.ndarray:
    """(T,) step sizes: `base` in stage 1, base / 2^{2k} in stage k ≥ 2 (eq. (4.7), base = c/L)."""
    return base / np.where(stage == 1, 1.0, 4.0**stage)


class ErrorWeights(NamedTuple):
    """ln a_{T',t} = growth[T' - 1] + own[t - 1] for all 1 ≤ t ≤ T' ≤ T; both (T,)."""

    growth: np.ndarray
    own: np.ndarray

    def shares(self, T: int | None = None) -> np.ndarray:
        """(T,) ε_t/ε = a_{T,t}^{1/3} / Σ_j a_{T,j}^{1/3}: the budgets that minimise the bound (Proposition 4.2)."""
        return scipy.special.softmax(self.own[:T] / 3)

    def log_bounds(self, noise: float, E0: float) -> np.ndarray:
        """(T,) ln of the optimised bound (4.6) for every T' ≤ T: a_{T',0} E₀ + noise (Σ_t a_{T',t}^{1/3})³.

        noise: d S₁²/(nε)². E0: a guess of the initial error.
        """
        start = self.growth - math.log(2) + math.log(E0)  # s_{T'} - 1 doublings (4.8, with s_0 = 1)
        spread = self.growth + 3 * np.logaddexp.accumulate(self.own / 3)
        return np.logaddexp(start, math.log(noise) + spread)

    def best_T(self, noise: float, E0: float) -> int:
        """The T' ≤ T with the lowest bound (Remark 4.1)."""
        return int(np.argmin(self.log_bounds(noise, E0))) + 1


def error_weights(alpha: np.ndarray, stage: np.ndarray, mu: float, L: float) -> ErrorWeights:
    """The a_{T',t} of (4.8) for step sizes `alpha` (T,) and stages `stage` (T,); 0 < μα < 1."""
    contraction = np.cumsum(np.log1p(-np.sqrt(mu * alpha)))
    # Each stage doubles the weight of the error before it (Theorem 4.3); with one stage they cancel.
    doublings = stage * math.log(2)
    return ErrorWeights(doublings + contraction, np.log(alpha) + np.log1p(alpha * L) - doublings - contraction)


ROW_NORM = 20.0  # ‖u‖₁ ≤ 20 (Section 5): declared, never measured
AS_PUBLISHED = "as-published-code"


class LaplaceMomentum(dp.Algorithm):
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
    relation = dp.Relation.REPLACE_ONE
    paper_accounting = "pure"
    accountings = ("tight", "pure")
    delta = 0.0
    exact = "sums"
    persons = True
    needs = dp.Needs(convex=True, lipschitz=True, smooth=True, row_norm=("l1", ROW_NORM), regularisers=("l2",))

    per_replicate: ClassVar = frozenset({"c"})
    counts_public = "the top eigenvalue of XᵀX/n (L), unless L is given"
    diagnostics = (dp.NOTES,)
    discloses = (
        dp.Disclosure(
            "gradient",
            "the mean gradient",
            "Laplace",
            "T",
            replace_one="2·r·ℓ/n",
            why="Kuru et al. (2022), eq. (5.2): ‖u‖₁ ≤ r = 20, |ℓ'| ≤ ℓ = 1",
            when="m = n",
        ),
        dp.Disclosure(
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

    class Settings(dp.BaseSettings, frozen=True):
        T: dp.Count = 100
        c: dp.Positive = 1.0
        m: dp.Count | None = None
        L: dp.Positive | None = None
        noise_scale: Literal["laplace", "as-published-code"] = "laplace"

    def accounting(self, mode):
        super().accounting(mode)
        return "pure"

    def public(self, settings):
        return "" if settings.L else "the top eigenvalue of XᵀX/n (L)"

    def flaw(self, settings, accounting=""):
        if settings.noise_scale == AS_PUBLISHED:
            return "Laplace scale b/√2, as in the published code: does not meet the ε asked for"
        return ""

    def complete(self, problem, settings):
        m = problem.n if settings.m is None else settings.m
        if m > problem.n:
            raise UserError(f"{self.name}: m = {m} rows per iteration, but the data have n = {problem.n}; lower m")
        if self.momentum and not 0 < problem.l2 * settings.c < smoothness(problem, settings):
            raise UserError(
                f"{self.name}: needs 0 < c·l2 < L, got l2 = {problem.l2:g}, c = {settings.c:g}, "
                f"L = {smoothness(problem, settings):.4g}; its momentum rests on strong convexity: set l2 > 0"
            )
        return msgspec.structs.replace(settings, m=m)

    audit_case = dp.AuditCase({"T": 2}, l2=0.02)  # at δ = 0 all T have to show their largest loss at once

    def work(self, n, d, settings):
        rows = min(settings.m or n, n) + 10_000  # measured: drawing and gathering a small batch costs that many
        return 4.0 * settings.T * rows * d

    def schedule(self, problem: dp.Declaration, settings: Settings) -> tuple[dp.Array, dp.Array, np.ndarray]:
        """α_t and β_t, (T, k) or (T, 1), and the stage s_t, (T,); a restart (x_{t-1} := x_t) is β_t = 0 once."""
        T, L, mu = settings.T, smoothness(problem, settings), problem.l2
        stage = stages(T, L / mu) if self.multistage else np.ones(T, int)
        alpha = steps(stage[:, None], np.atleast_1d(settings.c) / L)
        beta = (1 - np.sqrt(alpha * mu)) / (1 + np.sqrt(alpha * mu)) if self.momentum else np.zeros((T, 1))
        # A restart, x_{t-1} := x_t, as eq. (4.7) has it where a stage begins.
        beta[1:][np.diff(stage) > 0] = 0.0
        return alpha, beta, stage

    def budgets(
        self, problem: dp.Declaration, settings: Any, epsilon: float, alpha: dp.Array, stage: np.ndarray
    ) -> dp.Array:
        """ε_t of the iterations to run; they sum to ε."""
        return np.full(settings.T, epsilon / settings.T)

    def plan(self, problem, mechanisms, settings):
        if self.by_data and settings.L is None:
            return  # T' is a function of L, which is read off the data
        alpha, _, stage = self.schedule(problem, settings)
        for epsilon in self.budgets(problem, settings, mechanisms.budget.epsilon, alpha, stage):
            sensitivity, scale = noise_of(problem, settings, epsilon)
            release = Laplace(float(laplace_multiplier(sensitivity, None, scale)))
            m = settings.m or problem.n
            mechanisms.plan("gradient", WithoutReplacement(problem.n, m, release) if m < problem.n else release, 1)

    def run(self, problem, W, mechanisms, settings, trace):
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
        return dp.RunResult(x, {"notes": [notes] * len(x)}, T=[T] * len(x))


def smoothness(problem: dp.Declaration, settings: LaplaceMomentum.Settings) -> float:
    """L: what the settings declare, or the top eigenvalue of UᵀU/n plus 2λ (Section 5)."""
    L = settings.L or problem.top_eigenvalue + problem.l2
    if not L:
        raise UserError("X: every cell is 0, so L = 0 gives no step; give l2 > 0, or L")
    return L


def noise_of(problem: dp.Declaration, settings: LaplaceMomentum.Settings, epsilon: float) -> tuple[float, float]:
    """(sensitivity, scale) of a gradient at ε_t: S₁/m, and b_t that makes it ε_t-DP on m of the n rows."""
    n, m = problem.n, settings.m or problem.n
    sensitivity = 2 * problem.loss.lipschitz * ROW_NORM / m
    # A Laplace variable of scale b has the standard deviation √2 b.
    correction = math.sqrt(0.5) if settings.noise_scale == AS_PUBLISHED else 1.0
    return sensitivity, sensitivity / base_epsilon(epsilon, n, m) * correction


def noisy_gradient(
    problem: dp.Problem, mechanisms: dp.Mechanisms, settings: LaplaceMomentum.Settings
) -> Callable[[dp.Array, float], dp.Array]:
    """The function (y, ε_t) → mean loss gradient at y over m rows + Laplace(b_t), all (k, d)."""
    n, m = problem.n, settings.m or problem.n
    sampler = mechanisms.without_replacement(n, m, "gradient") if m < n else None

    def release(y: dp.Array, epsilon: float) -> dp.Array:
        sensitivity, scale = noise_of(problem, settings, epsilon)
        # On all rows there is no sample to amplify by: ε₀ is ε_t itself.
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
        E0: dp.Positive = 10.0
        weights: Literal["paper", "as-published-code"] = "paper"

    def budgets(self, problem, settings, epsilon, alpha, stage):
        weights = error_weights(alpha[:, 0], stage, problem.l2, smoothness(problem, settings))
        S1 = 2 * problem.loss.lipschitz * ROW_NORM
        # Doubling E₀ and halving the noise is all by which the published weights differ.
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


class DPAcceleratedNesterov(dp.Algorithm):
    """dp-accelerated-nesterov, for α_t = 2/(t+1) and γ_t = 8L₁/(t(t+1)), on the ball ‖w‖ ≤ D/2:

        w_md = w_ag + α_t (w - w_ag)
        G    = ∇f(w_md) + N(σ²I)
        w    ← Π(w - (α_t/γ_t) G),   w_ag ← α_t w + (1 - α_t) w_ag

    Δ = L₀/n for the mean gradient of the loss (a regulariser uses no data), so ρ/T a step is σ² = L₀²T/(2ρn²)
    (Theorem A.4). The text's w_md has w_t, which is not there yet: we take w_{t-1}. T is tuned; left out, it is
    (D²ρn²/(dL₀²))^{1/4}, which balances Theorem A.4's two terms.
    """

    name = "dp-accelerated-nesterov"
    title = "DP accelerated Nesterov"
    exact = "sums"
    persons = True
    needs = dp.Needs(convex=True, lipschitz=True, smooth=True, regularisers=("l2",))
    diagnostics = (dp.ITERATIONS,)
    discloses = (dp.Disclosure("gradient", "the mean gradient", add_remove="L₀/n", why="‖∇f_i‖ ≤ L₀"),)

    class Settings(dp.BaseSettings, frozen=True):
        T: dp.Count | None = None
        D: dp.Positive = 20.0

    def work(self, n, d, settings):
        return 4.0 * n * d * (settings.T or 100)

    def plan(self, problem, mechanisms, settings):
        rho = mechanisms.budget.rho
        T = settings.T or balanced_T(problem, rho, settings.D)
        mechanisms.plan("gradient", at_rho(rho / T), T)

    def run(self, problem, W, mechanisms, settings, trace):
        rho, D = mechanisms.budget.rho, settings.D
        T = settings.T or balanced_T(problem, rho, D)
        sensitivity, L1 = problem.lipschitz / problem.n, problem.objective_smoothness
        W = average = project(W, D / 2)
        trace(0, average, passes=0)
        for t in range(1, T + 1):
            alpha, gamma = 2 / (t + 1), 8 * L1 / (t * (t + 1))
            middle = average + alpha * (W - average)
            gradient = mechanisms.gaussian(
                problem.gradient(middle), sensitivity=sensitivity, rho=rho / T, label="gradient"
            )
            W = project(W - alpha / gamma * gradient, D / 2)
            average = alpha * W + (1 - alpha) * average
            trace(t, average, passes=t)
        return dp.RunResult(average, columns={"iterations": [T] * len(W)})


def balanced_T(problem: dp.Declaration, rho: float, D: float) -> int:
    """(D²ρn²/(dL₀²))^{1/4}, at least 1."""
    return max(1, round((D**2 * rho * problem.n**2 / (problem.d * problem.lipschitz**2)) ** 0.25))
