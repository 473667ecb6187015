"""Averaged gradient descent whose clip follows a private quantile, and descent that releases its last iterate alone."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import msgspec
import numpy as np

from dpbench.algorithms import base as dp
from dpbench.algorithms.gradient_descent import CLIP, WORK, public_safety, safe_step, steps
from dpbench.errors import UserError
from dpbench.privacy.accounting.gaussian import growth
from dpbench.privacy.ledger import LastIterate, at_rho
from dpbench.problems.regularisers import soft_threshold

LEAST = 1e-3  # of the ceiling


class QuantileGD(dp.Algorithm):
    """dp-gd-quantile: dp-gd-average with C ← C·exp(-r(q̃ - γ)), q̃ the noisy share of rows with |ℓ'_i| ≤ C.

    After Andrew, Thakkar, McMahan and Ramaswamy (2021). Beside each gradient, which a row moves by CR/n, twice that
    under replace-one, q is released with the share 0.1 of the step's ρ. A row moves it by 1/n, under replace-one too
    (their correction of the noise has half of that, as of a centred count under add/remove). C is a function of what
    was released, so each step's noise may follow it: Σ(Δ/σ)² is the same on every path.

    C starts at the ceiling and stays below it: noise makes residuals large, a clip without a ceiling follows them, and
    the noise follows the clip. The step is dp-gd-average's safe one at each step's own noise. A quantile γ below 1
    leaves the 1 - γ longest residuals clipped whatever ε is: the loss it ends at is a Huber loss.

    quantile: γ. rate: r. clip: the ceiling; None: what bounds ℓ' by itself, 1 for squared loss. share: of ρ, for q.
    """

    name = "dp-gd-quantile"
    title = "DP-GD, quantile clip"
    in_reals = "the clip follows what was released, which no grid of integers was made for"
    paper_accounting = "tight"
    needs = dp.Needs(convex=True, smooth=True, regularisers=("l1", "l2"))
    discloses = (
        dp.Disclosure(
            "gradient",
            "the mean gradient, derivatives clipped to ±C·s",
            add_remove="C·s·R/n",
            why="|ℓ'| ≤ C·s by clipping, C the ceiling and s ≤ 1 as the clip follows the quantile; ‖x‖ ≤ R",
        ),
        dp.Disclosure(
            "quantile",
            "the share of rows with |ℓ'| within the clip",
            add_remove="1/n",
            replace_one="1/n",
            why="a count over n",
        ),
    )
    tuning: ClassVar = {"quantile": [0.5, 0.8, 0.95]}

    class Settings(dp.BaseSettings, frozen=True):
        T: dp.Count | None = None
        clip: dp.Positive | None = None
        quantile: dp.Share = 0.8
        rate: dp.Positive = 0.3
        share: dp.Share = 0.1
        step: dp.Positive | None = None
        safety: dp.Positive | None = None

    def complete(self, problem, settings):
        safety = settings.safety or public_safety(problem.loss)
        return msgspec.structs.replace(dp.at_default_clip(problem, settings, 1.0), safety=safety)

    audit_case = dp.AuditCase({"clip": 1.0}, loss="squared")

    # Labels of ±3: from the second step on one of the two is within a clip that stays at 3, and the other beyond.
    _at_the_clip: ClassVar = {"T": 16, "share": 0.9, "clip": 3.0, "rate": 1e-9}
    canaries = (dp.AuditCase(_at_the_clip, loss="squared", n=24, steepest=False, drawn=True, label="quantile"),)

    def work(self, n, d, settings):
        return min(8.0 * n * d * (settings.T or 1000), 2 * WORK)

    def plan(self, problem, mechanisms, settings):
        T = self._rounds(problem, mechanisms, settings)
        each = mechanisms.budget.rho / T
        mechanisms.plan("quantile", at_rho(settings.share * each), T)
        mechanisms.plan("gradient", at_rho((1 - settings.share) * each), T)

    def _rounds(self, problem: dp.Declaration, mechanisms: dp.Mechanisms, settings: Settings) -> int:
        """T of dp-gd-average, at the clip that it would take."""
        clip = settings.clip or 1.0  # `complete` has given it a value
        threshold = clip if problem.loss.lipschitz < math.inf else min(clip, CLIP)
        moved = threshold * problem.row_bound / problem.n * (2 if mechanisms.doubled else 1)
        return settings.T or steps(problem, moved, mechanisms.budget.rho, WORK)

    def run(self, problem, W, mechanisms, settings, trace):
        n, R, l1, l2 = problem.n, problem.row_bound, problem.l1, problem.l2
        ceiling, safety = settings.clip or 1.0, settings.safety or 1.0
        T = self._rounds(problem, mechanisms, settings)
        each = mechanisms.budget.rho / T
        for_count, for_step = settings.share * each, (1 - settings.share) * each

        W, mean, first = np.zeros_like(W), np.zeros_like(W), T // 2
        C = np.full(len(W), ceiling)
        trace(0, W, passes=0)
        for t in range(T):
            # Before the gradient, at the clip that the gradient is about to use.
            q = mechanisms.gaussian(
                problem.share_within(W, C), sensitivity=1 / n, replaced=1 / n, rho=for_count, label="quantile"
            )
            clipped = np.concatenate([problem.bounded_gradient(w[None], float(c)) for w, c in zip(W, C, strict=True)])
            gradient = mechanisms.gaussian(clipped, sensitivity=C * R / n, rho=for_step, label="gradient")
            sigma = C * R / n * (2 if mechanisms.doubled else 1) / math.sqrt(2 * for_step)
            step = np.array([[settings.step or safe_step(problem, float(s), T, safety)] for s in sigma])
            W = soft_threshold(W - step * (gradient + l2 * W), step * l1)
            # The floor keeps a clip of 0 from ending the run; the ceiling is explained in the class.
            C = np.clip(C * np.exp(-settings.rate * (q - settings.quantile)), LEAST * ceiling, ceiling)
            if t >= first:
                mean += (W - mean) / (t - first + 1)
            trace(t + 1, mean if t >= first else W, passes=2 * (t + 1))
        return dp.RunResult(mean, T=[T] * len(W))


class DPGDLastIterate(dp.Algorithm):
    """dp-gd-last: w ← w - η (∇F(w) + N(0, σ²I)), T times, F with a ridge l2; only w_T is released.

    With convex, β-smooth losses each step contracts by c = max(|1 - ηl2|, |1 - η(β + l2)|) < 1 on either data set, so
    what an early gradient gave away fades. T steps are μ-GDP with μ = (s/σ) sqrt((1-c^T)/(1+c^T) · (1+c)/(1-c)),
    s = 2L₀/n under replace-one (Bok, Su and Altschuler 2024, Theorem 4.2, after Altschuler and Talwar 2022; see
    `privacy.accounting.last_iterate`). Full batch, one step size, one σ, no momentum; every w_t is hidden, so the
    objective along the way is a diagnostic here as everywhere, and nothing may be chosen by it.

    noise: "constant" is the above. "growing" releases every iterate and composes as usual, with the public variances
    σ_t² = σ_T² c^{-(T-t)}, which reach the same variance of w_T in the slowest direction, and less in all others.
    """

    name = "dp-gd-last"
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
            when="noise=constant",
        ),
        dp.Disclosure("gradient", "the mean gradient", replace_one="2·L₀/n", why="‖∇f_i‖ ≤ L₀", when="noise=growing"),
    )

    class Settings(dp.BaseSettings, frozen=True):
        T: dp.Count = 100
        step: dp.Positive | None = None
        noise: Literal["constant", "growing"] = "constant"

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
        c, T, rho = contraction(problem, settings), settings.T, mechanisms.budget.rho
        if settings.noise == "constant":
            z = at_rho(rho).noise_multiplier * growth(T, c)
            mechanisms.plan("last iterate", LastIterate(z, T, c), 1)
            return
        for share in shares(T, c):
            mechanisms.plan("gradient", at_rho(share * rho), 1)

    def run(self, problem, W, mechanisms, settings, trace):
        c, T, step = contraction(problem, settings), settings.T, settings.step or 0.0
        sensitivity, rho = 2 * problem.lipschitz / problem.n, mechanisms.budget.rho
        by_step = shares(T, c)
        hide = None
        if settings.noise == "constant":
            hide = mechanisms.last_iterate(
                problem.d, T, sensitivity=sensitivity, contraction=c, rho=rho, label="last iterate"
            )
        trace(0, W, passes=0)
        for t in range(1, T + 1):
            gradient = problem.gradient(W)
            if hide is not None:
                noisy = hide(gradient)
            else:
                noisy = mechanisms.gaussian(
                    gradient, sensitivity=sensitivity, rho=by_step[t - 1] * rho, label="gradient"
                )
            W = W - step * noisy
            trace(t, W, passes=t)
        return W


def shares(T: int, c: float) -> dp.Array:
    """(T,) of ρ, for noise that grows: 1/σ_t² in proportion to c^{T-t}."""
    # Late steps shrink less afterwards, so they get more of ρ.
    growing = c ** np.arange(T)[::-1]
    return np.asarray(growing / growing.sum())


def contraction(problem: dp.Declaration, settings: DPGDLastIterate.Settings) -> float:
    """c of a step, whatever the data within the row bound."""
    step = settings.step or 0.0
    return max(abs(1 - step * problem.l2), abs(1 - step * problem.objective_smoothness))
