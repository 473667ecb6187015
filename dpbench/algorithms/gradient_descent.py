"""Gradient descent on all rows: plain, Adam, averaged or last iterate alone, and with the best step as a yardstick."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple

import msgspec
import numpy as np

from dpbench.algorithms import base as dp
from dpbench.algorithms import newton_step
from dpbench.errors import UserError
from dpbench.privacy.accounting.gaussian import growth
from dpbench.privacy.ledger import LastIterate, at_rho
from dpbench.problems.losses import Loss
from dpbench.problems.regularisers import soft_threshold


class DPGradientDescent(dp.Algorithm):
    """dp-gd: w ← w - η (∇f(w) + N(σ²I)), T times (Bassily, Smith, Thakurta 2014, full batch).

    Every example's gradient has ‖∇f_i‖ ≤ L₀, so under add/remove with n public the mean gradient moves by
    Δ = L₀/n. Each step spends ρ/T of zCDP: σ = Δ sqrt(T/(2ρ)), which is sqrt(T)/(n sqrt(2ρ)) for logistic
    loss with ‖x‖₂ ≤ 1 (Ganesh et al. 2023, Section 6). The default step is 1/L₁: 4 for that loss.
    """

    name = "dp-gd"
    title = "DP-GD"
    exact = "sums"
    persons = True
    needs = dp.Needs(lipschitz=True, regularisers=("l2", "w2"))
    per_replicate: ClassVar = frozenset({"step", "epsilon"})
    discloses = (
        dp.Disclosure("gradient", "the mean gradient", add_remove="L₀/n", why="‖∇f_i‖ ≤ L₀; the divisor n is public"),
    )

    class Settings(dp.BaseSettings, frozen=True):
        T: dp.Count = 100
        step: dp.Positive | None = None

    def complete(self, problem, settings):
        return dp.at_default_step(problem, settings)

    def plan(self, problem, mechanisms, settings):
        mechanisms.plan("gradient", at_rho(mechanisms.budget.rho / settings.T), settings.T)

    def run(self, problem, W, mechanisms, settings, trace):
        sensitivity = problem.lipschitz / problem.n
        rho = mechanisms.budget.rho / settings.T
        step = np.asarray(settings.step)[:, None]
        trace(0, W, passes=0)
        for t in range(1, settings.T + 1):
            gradient = mechanisms.gaussian(problem.gradient(W), sensitivity=sensitivity, rho=rho, label="gradient")
            W = W - step * gradient
            trace(t, W, passes=t)
        return W


CLIPPED = dp.Disclosure(
    "gradient",
    "the mean gradient, derivatives clipped to ±C",
    add_remove="C·R/n",
    why="|ℓ'| ≤ C by clipping, ‖x‖ ≤ R; the divisor n is public",
)
CLIP = 0.3  # where the loss has no bound on its derivative
LEAST = 1e-8  # Adam's own floor, of a squared step


class DPAdam(dp.Algorithm):
    """dp-adam: w ← w - α·m̂/√max(v̂ - σ², (φσ)² + 10⁻⁸), T times: m̂ and v̂ Adam's moments of the noisy gradient.

    After Tang, Shpilevskiy and Lécuyer (2024). g = (1/n)Σ clip(ℓ'_i, ±c)x_i + N(0, σ²I) and the penalty's gradient,
    which uses no data; m ← β₁m + (1-β₁)g, v ← β₂v + (1-β₂)g², m̂ = m/(1-β₁ᵗ), v̂ = v/(1-β₂ᵗ). With ‖x‖ ≤ R the mean
    moves by Δ = cR/n, by 2cR/n under replace-one; T releases get ρ/T each, σ = Δ√(T/(2ρ)). All else is a function of
    what was released, and σ is public.

    E v̂ is the mean square of the gradient without noise, and σ² more: taking σ² off removes that bias. What is left has
    an error of σ²√(2/t) at first and σ²√(2(1-β₂)/(1+β₂)) later, a tenth of σ² at β₂ = 0.99. A floor far below σ
    divides the noise by that error, and the iterates run away: φ = 1.

    correct: whether σ² is taken off; without it the step is plain DP-Adam's. floor: φ. step: α. clip: c; None: what
    bounds ℓ' by itself, 0.3 for squared loss.
    """

    name = "dp-adam"
    title = "DP-Adam"
    exact = "sums"
    persons = True
    paper_accounting = "tight"
    needs = dp.Needs(outputs=True, regularisers=("l2", "w2"))
    per_replicate: ClassVar = frozenset({"epsilon"})
    discloses = (CLIPPED,)
    tuning: ClassVar = {"floor": [0.3, 1.0, 3.0]}

    class Settings(dp.BaseSettings, frozen=True):
        T: dp.Count = 100
        step: dp.Positive = 0.1
        beta1: dp.Share = 0.9
        beta2: dp.Share = 0.99
        floor: dp.Positive = 1.0
        correct: bool = True
        clip: dp.Positive | None = None

    def complete(self, problem, settings):
        return dp.at_default_clip(problem, settings, CLIP)

    audit_case = dp.AuditCase({"clip": 1.0}, loss="squared")

    def batch_size(self, n, d):
        return int(max(1, min(128, 200e6 / (8 * d))))

    def plan(self, problem, mechanisms, settings):
        mechanisms.plan("gradient", at_rho(mechanisms.budget.rho / settings.T), settings.T)

    def run(self, problem, W, mechanisms, settings, trace):
        T, clip = settings.T, settings.clip or 1.0  # `complete` has given it a value
        beta1, beta2 = settings.beta1, settings.beta2
        rho = mechanisms.budget.rho / T
        sensitivity = clip * problem.row_bound / problem.n
        moved = sensitivity * (2 if mechanisms.doubled else 1)
        variance = np.broadcast_to(moved**2 / (2 * np.asarray(rho)), len(W))[:, None]
        W, m, v = np.zeros_like(W), np.zeros_like(W), np.zeros_like(W)
        trace(0, W, passes=0)
        for t in range(1, T + 1):
            noisy = mechanisms.gaussian(
                problem.bounded_gradient(W, clip), sensitivity=sensitivity, rho=rho, label="gradient"
            )
            g = noisy + sum(r.gradient(W) for r in problem.regularisers.values())
            m = beta1 * m + (1 - beta1) * g
            v = beta2 * v + (1 - beta2) * g**2
            # Adam's bias correction, as both moments start at 0.
            square = v / (1 - beta2**t) - (variance if settings.correct else 0.0)
            least = settings.floor**2 * variance + LEAST if settings.correct else LEAST
            W = W - settings.step * m / (1 - beta1**t) / np.sqrt(np.maximum(square, least))
            trace(t, W, passes=t)
        return W


RADIUS = 8.0  # a guess of ‖w*‖, as in `rules`
WORK = 1e12  # flops of a run: minutes of one core
SAFETY, SAFETY_SQUARED = 0.03, 0.02
SAFETY_CLASSES = 0.2  # of ln k, what w = 0 costs under softmax loss


class AveragedGD(dp.Algorithm):
    """dp-gd-average: w ← soft(w - η(g + l2·w), η·l1), T times; released: the mean of the last ⌈T/2⌉ iterates.

    g = (1/n)Σ clip(ℓ'_i, ±c)x_i + N(0, σ²I). With ‖x‖ ≤ R its mean moves by Δ = cR/n, under replace-one by 2cR/n
    (attained at x' = x, ℓ' = -ℓ'' = c); T releases get ρ/T each, σ = Δ√(T/(2ρ)). All iterates are functions of what was
    released, so that their mean is free. Clipping makes a convex loss another convex loss, its Huber form (Song,
    Steinke, Thakkar and Thakurta 2021). The l2 penalty uses no data and is not clipped; l1 is a soft threshold after
    the noise.

    T: descent on a convex L₁-smooth function with steps of 1/L₁ has bias ≤ B²L₁/(2T), and on a quadratic with tr H ≤
    L₁ the noise adds ½η²σ²TL₁ (see `step`): least at T³ = B²L₁²ρ/Δ², B = 8; doubled, as the mean of the tail of a
    direction of curvature h has the noise σ²/(Th²), which does not grow with T (Bassily, Smith and Thakurta 2014;
    Rakhlin, Shamir and Sridharan 2012). No cap but the work: T ≤ work/(4nd).

    step: the least of 1/(L₁ + l2) and what bounds the noise part by κ: ½η²σ²T tr H ≤ κ, as Σ_t η(I - ηH)^{T-t}ξ_t has
    at most that; and with l1, l1·d·ησ√(2T/π) ≤ κ.

    Softmax regression over k classes: one gradient (k, d) a step, Σ_i (p_i - e_{y_i}) x_iᵀ. ‖p - e_y‖ ≤ √2 = c whatever
    k, where k models of one class against the rest together move by √k times 1; tr H ≤ R²(1 - 1/k), L₁ = R²/2.

    clip: c; None: what bounds ℓ' by itself, 0.3 for squared loss. safety: κ; None: 0.03, 0.02 for squared
    loss, 0.2 ln k for k classes. intervals: of logistic loss, whether 55 % of ρ are kept for what intervals of
    coefficients need (`newton_step`); "clustered": where rows of one person are not independent.
    """

    name = "dp-gd-average"
    gone: ClassVar = {"centred": False}
    title = "DP-GD, tail average"
    exact = "sums"
    persons = True
    paper_accounting = "tight"
    needs = dp.Needs(convex=True, smooth=True, outputs=True, regularisers=("l1", "l2"))
    discloses = (CLIPPED, *newton_step.LOGISTIC)
    tuning: ClassVar = {"T": [30, 100, 300, 1000]}

    class Settings(dp.BaseSettings, frozen=True):
        T: dp.Count | None = None
        clip: dp.Positive | None = None
        step: dp.Positive | None = None
        safety: dp.Positive | None = None
        work: dp.Positive = WORK
        intervals: bool | Literal["clustered"] = False

    def complete(self, problem, settings):
        if settings.intervals and (problem.loss.name != "logistic" or (settings.clip or 1.0) < 1):
            raise UserError("intervals: descent has them for logistic loss whose slopes are not clipped")
        safety = settings.safety or public_safety(problem.loss)
        return msgspec.structs.replace(dp.at_default_clip(problem, settings, CLIP), safety=safety)

    audit_case = dp.AuditCase({"clip": 1.0}, loss="squared")

    canaries = (
        *(
            dp.AuditCase({"intervals": True}, loss="logistic", d=1, steepest=label == "last gradient", label=label)
            for label in newton_step.SHARES
        ),
        dp.AuditCase({"intervals": "clustered"}, loss="logistic", d=1, label="scores"),
    )

    def work(self, n, d, settings):
        return min(4.0 * n * d * (settings.T or 1000), settings.work)

    def batch_size(self, n, d):
        return int(max(1, min(128, 200e6 / (8 * d))))

    def plan(self, problem, mechanisms, settings):
        T, _, rho = self._steps(problem, mechanisms, settings)
        mechanisms.plan("gradient", at_rho(rho / T), T)
        if settings.intervals:
            for label, share in newton_step.logistic_shares(settings.intervals).items():
                mechanisms.plan(label, at_rho(share * mechanisms.budget.rho), 1)

    def _steps(self, problem: dp.Declaration, mechanisms: dp.Mechanisms, settings: Settings) -> tuple[int, float, Any]:
        """T, by how much a neighbour moves the gradient, and what of ρ descent has."""
        moved = (settings.clip or 1.0) * problem.row_bound / problem.n * (2 if mechanisms.doubled else 1)
        rho = mechanisms.budget.rho * (newton_step.DESCENT if settings.intervals else 1)
        return settings.T or steps(problem, moved, rho, settings.work), moved, rho

    def run(self, problem, W, mechanisms, settings, trace):
        l1, l2 = problem.l1, problem.l2
        clip, safety = settings.clip or 1.0, settings.safety or 1.0  # `complete` has given both a value
        sensitivity = clip * problem.row_bound / problem.n
        T, moved, rho = self._steps(problem, mechanisms, settings)
        # From public numbers alone, so that the default step costs nothing.
        step = settings.step or safe_step(problem, moved * math.sqrt(T / (2 * rho)), T, safety)

        W, mean, first = np.zeros_like(W), np.zeros_like(W), T // 2
        released = np.zeros_like(W)  # mean of the tail's gradients, which tells how far descent has come
        trace(0, W, passes=0)
        for t in range(T):
            gradient = mechanisms.gaussian(
                problem.bounded_gradient(W, clip), sensitivity=sensitivity, rho=rho / T, label="gradient"
            )
            W = soft_threshold(W - step * (gradient + l2 * W), step * l1)
            # The mean of the tail, not the last iterate: noise of single steps averages out.
            if t >= first:
                mean += (W - mean) / (t - first + 1)
                released += (gradient - released) / (t - first + 1)
            trace(t + 1, mean if t >= first else W, passes=t + 1)
        tails: list[Any] | None = None
        if settings.intervals:
            tails = newton_step.logistic_steps(problem, mechanisms, mean, released, settings.intervals)
        if problem.loss.outputs > 1:
            tails = [TailGradient(one, moved * math.sqrt(T / (2 * rho)), step, T - first) for one in released]
        return dp.RunResult(mean, T=[T] * len(W), evidence=tails)


class TailGradient(NamedTuple):
    """Of descent with steps `step`: the mean (d,) of the last `steps` gradients, each released with noise of `std`."""

    mean: dp.Array
    std: float
    step: float
    steps: int


def public_safety(loss: Loss) -> float:
    """κ where none is given."""
    if loss.outputs > 1:
        return SAFETY_CLASSES * math.log(loss.outputs)
    return SAFETY_SQUARED if loss.quadratic else SAFETY


def steps(problem: dp.Declaration, moved: float, rho: float, work: float) -> int:
    """T by the class's rule, for a gradient that a neighbour moves by `moved`."""
    # T³ = B²L₁²ρ/Δ², where bias and noise are equal (see the class).
    balanced = max(3, round((RADIUS * problem.smoothness / moved) ** (2 / 3) * rho ** (1 / 3)))
    return max(1, int(min(2 * balanced, work / (4 * problem.n * problem.d))))


def safe_step(problem: dp.Declaration, sigma: float, T: int, safety: float) -> float:
    """η by the class's rule, for T gradients with noise of standard deviation `sigma` a coordinate."""
    step = min(1 / (problem.smoothness + problem.l2), math.sqrt(2 * safety / (T * problem.trace)) / sigma)
    if problem.l1:
        step = min(step, safety / (problem.l1 * problem.d * sigma * math.sqrt(2 * T / math.pi)))
    return step


LARGEST_STEP = 1e9  # a direction along which the loss falls for ever (separable data)


class DPGradientDescentOracle(dp.Algorithm):
    """dp-gd-oracle: w ← w - η g̃ with g̃ = ∇f(w) + N(σ²I) and η = argmin_{η≥0} f(w - η g̃).

    The noise is dp-gd's: Δ = L₀/n, ρ/T a step. The step η looks at the data and pays nothing, so this is NOT
    private (Ganesh et al. 2023, Section 6.3): it bounds what any choice of step could have done.
    """

    name = "dp-gd-oracle"
    title = "DP-GD, oracle step"
    private = False
    needs = dp.Needs(convex=True, lipschitz=True)
    discloses = (dp.Disclosure("gradient", "the mean gradient", add_remove="L₀/n", why="‖∇f_i‖ ≤ L₀"),)
    unpaid = "its step, by a search on the loss without noise"

    class Settings(dp.BaseSettings, frozen=True):
        T: dp.Count = 100

    def work(self, n, d, settings):
        return settings.T * (8.0 * n * d + 150.0 * n)

    def run(self, problem, W, mechanisms, settings, trace):
        sensitivity = problem.lipschitz / problem.n
        rho = mechanisms.budget.rho / settings.T
        trace(0, W, passes=0)
        for t in range(1, settings.T + 1):
            gradient = mechanisms.gaussian(problem.gradient(W), sensitivity=sensitivity, rho=rho, label="gradient")
            W = W - best_step(problem, W, gradient)[:, None] * gradient
            trace(t, W, passes=2 * t)
        return W


def best_step(problem: dp.Problem, W: dp.Array, D: dp.Array) -> dp.Array:
    """argmin_{η≥0} of the mean loss at w - η d, for W and D (k, d) → (k,), to a relative 1e-6.

    X w and X d once; after that each step tried costs one pass over n numbers.
    """
    y, margin = problem.y.astype(np.float64, copy=False), np.empty(problem.n)

    def derivative(z: dp.Array, slope: dp.Array, step: float) -> float:
        """Of the loss's sum over the rows with respect to the step; z, slope (n,): the predictions of w and d."""
        np.multiply(slope, -step, out=margin)
        np.add(margin, z, out=margin)
        return -float(problem.loss.derivative(margin, y, margin) @ slope)

    lines = zip(problem.predictions(W), problem.predictions(D), strict=True)
    return np.array([_best_step(functools.partial(derivative, *line)) for line in lines])


def _best_step(derivative: Callable[[float], float]) -> float:
    """The root of an increasing derivative, or 0 where it starts out positive."""
    from scipy.optimize import brentq

    low, high = 0.0, 1.0
    if not derivative(low) < 0:
        return 0.0
    # The derivative of a convex loss along a line increases: a change of sign holds the minimum.
    while derivative(high) < 0:
        low, high = high, 4 * high
        if high > LARGEST_STEP:
            return LARGEST_STEP
    return float(brentq(derivative, low, high, xtol=1e-12, rtol=1e-6))


class DPGDLastIterate(dp.Algorithm):
    """dp-gd-last: w ← w - η (∇F(w) + N(0, σ²I)), T times, F with a ridge l2; only w_T is released.

    With convex, β-smooth losses each step contracts by c = max(|1 - ηl2|, |1 - η(β + l2)|) < 1 on either data set, so
    what an early gradient gave away fades. T steps are μ-GDP with μ = (s/σ) sqrt((1-c^T)/(1+c^T) · (1+c)/(1-c)),
    s = 2L₀/n under replace-one (Bok, Su and Altschuler 2024, Theorem 4.2, after Altschuler and Talwar 2022; see
    `privacy.accounting.gaussian`). Full batch, one step size, one σ, no momentum; every w_t is hidden, so the
    objective along the way is a diagnostic here as everywhere, and nothing may be chosen by it.
    """

    name = "dp-gd-last"
    gone: ClassVar = {"noise": "constant"}
    title = "DP-GD, last iterate"
    relation = dp.Relation.REPLACE_ONE
    in_reals = "its proof is of steps that nobody sees, in numbers without a rounding"
    paper_accounting = "tight"
    needs = dp.Needs(convex=True, lipschitz=True, smooth=True, regularisers=("l2",))
    per_replicate: ClassVar = frozenset({"epsilon"})
    discloses = (
        dp.Disclosure(
            "last iterate",
            "w_T alone",
            "last iterate",
            "1",
            replace_one="2·L₀/n",
            why="‖∇f_i‖ ≤ L₀; each step contracts by c < 1",
        ),
    )

    class Settings(dp.BaseSettings, frozen=True):
        T: dp.Count = 100
        step: dp.Positive | None = None

    def complete(self, problem, settings):
        if not problem.l2:
            raise UserError(f"{self.name}: steps contract on a ridge problem only; give l2 > 0")
        settings = dp.at_default_step(problem, settings)
        # At c = 1 nothing fades, and the bound is that of T releases.
        if contraction(problem, settings) >= 1:
            raise UserError(
                f"{self.name}: step = {settings.step:g} does not contract; lower it below "
                f"{2 / problem.objective_smoothness:.3g}"
            )
        return settings

    audit_case = dp.AuditCase(l2=0.5)

    def plan(self, problem, mechanisms, settings):
        c, T = contraction(problem, settings), settings.T
        z = at_rho(mechanisms.budget.rho).noise_multiplier * growth(T, c)
        mechanisms.plan("last iterate", LastIterate(z, T, c), 1)

    def run(self, problem, W, mechanisms, settings, trace):
        c, T, step = contraction(problem, settings), settings.T, settings.step or 0.0
        hide = mechanisms.last_iterate(
            problem.d,
            T,
            sensitivity=2 * problem.lipschitz / problem.n,
            contraction=c,
            rho=mechanisms.budget.rho,
            label="last iterate",
        )
        trace(0, W, passes=0)
        for t in range(1, T + 1):
            W = W - step * hide(problem.gradient(W))
            trace(t, W, passes=t)
        return W


def contraction(problem: dp.Declaration, settings: DPGDLastIterate.Settings) -> float:
    """c of a step, whatever the data within the row bound."""
    step = settings.step or 0.0
    return max(abs(1 - step * problem.l2), abs(1 - step * problem.objective_smoothness))
