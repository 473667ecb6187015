"""Gradient descent that releases its last iterate alone."""

from __future__ import annotations

from typing import ClassVar

from dpbench.algorithms import base as dp
from dpbench.errors import UserError
from dpbench.privacy.accounting.gaussian import growth
from dpbench.privacy.ledger import LastIterate, at_rho


class DPGDLastIterate(dp.Algorithm):
    """dp-gd-last: w ← w - η (∇F(w) + N(0, σ²I)), T times, F with a ridge l2; only w_T is released.

    With convex, β-smooth losses each step contracts by c = max(|1 - ηl2|, |1 - η(β + l2)|) < 1 on either data set, so
    what an early gradient gave away fades. T steps are μ-GDP with μ = (s/σ) sqrt((1-c^T)/(1+c^T) · (1+c)/(1-c)),
    s = 2L₀/n under replace-one (Bok, Su and Altschuler 2024, Theorem 4.2, after Altschuler and Talwar 2022; see
    `privacy.accounting.last_iterate`). Full batch, one step size, one σ, no momentum; every w_t is hidden, so the
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
