"""Least squares from noisy sufficient statistics, with a ridge that adapts to them (Wang 2018: "AdaSSP")."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from dpbench.algorithms.base import (
    Algorithm,
    Array,
    AuditCase,
    BaseSettings,
    Declaration,
    Disclosure,
    Mechanisms,
    Needs,
    Positive,
    Problem,
    Trace,
)
from dpbench.privacy.ledger import at_rho

FAILURE = 0.05  # ϱ of the paper: the probability that the noise on XᵀX is larger than the ridge covers


class AdaSSP(Algorithm):
    """adassp: w = (XᵀX + E + (λ + n·l2)I)⁻¹(Xᵀy + e), after releasing λ_min(XᵀX), XᵀX and Xᵀy (Algorithm 2).

    Add/remove, ‖x‖ ≤ R and |y| ≤ B: xxᵀ moves λ_min by at most R² (Weyl) and XᵀX by R² in Frobenius norm; Xᵀy moves by
    RB. Replace-one: both λ_min lie within R² above that without the row, so R² again; two positive semidefinite
    matrices of rank one differ by √2 R² at most; and 2RB. Each release gets a third of ρ, where the paper splits ε.
    λ = max(0, s√(d ln(2d²/ϱ)) - n·l2 - λ̃), with s the noise on XᵀX and λ̃ ≥ 0 the noisy λ_min less √ln(6/δ) of its
    own standard deviations: what the operator norm of E needs to be covered. One pass, nothing to tune.

    label_bound: B, public; labels are clipped to [-B, B].
    """

    name = "adassp"
    title = "AdaSSP"
    home = "greedy_coordinate"
    exact = "sums"
    paper_accounting = "standard"
    needs = Needs(quadratic=True, regularisers=("l2",))
    discloses = (
        Disclosure("eigenvalue", "λ_min(XᵀX)", count="1", add_remove="R²", replace_one="R²", why="Weyl"),
        Disclosure(
            "gram",
            "XᵀX",
            "Gaussian, symmetric",
            "1",
            add_remove="R²",
            replace_one="√2·R²",
            why="two positive semidefinite matrices of rank one",
        ),
        Disclosure("moments", "Xᵀy, labels clipped to ±B", count="1", add_remove="R·B", why="‖x‖ ≤ R and |y| ≤ B"),
    )

    class Settings(BaseSettings, frozen=True):
        label_bound: Positive = 1.0

    def audit_case(self) -> AuditCase:
        return AuditCase({"label_bound": 1e6}, loss="squared")

    def canaries(self) -> tuple[AuditCase, ...]:
        return tuple(
            AuditCase({"label_bound": 1e6}, loss="squared", d=1, label=label)
            for label in ("eigenvalue", "gram", "moments")
        )

    def inspection_case(self) -> AuditCase:
        return replace(super().inspection_case(), settings={"label_bound": 1.0})  # labels are beyond it

    def work(self, n: int, d: int, settings: Settings) -> float:
        return 2.0 * n * d * (d + 1) + 20.0 * d**3

    def plan(self, problem: Declaration, mechanisms: Mechanisms, settings: Any) -> None:
        for label in ("eigenvalue", "gram", "moments"):
            mechanisms.plan(label, at_rho(mechanisms.budget.rho / 3), 1)

    def run(self, problem: Problem, W: Array, mechanisms: Mechanisms, settings: Settings, trace: Trace) -> Array:
        bound, square = settings.label_bound, problem.row_bound**2
        k, d = W.shape
        rho = mechanisms.budget.rho / 3
        gram = problem.hessian_sum(np.zeros(d))
        least = mechanisms.gaussian(
            np.tile(problem.least_eigenvalue(gram), k),
            sensitivity=square,
            rho=rho,
            label="eigenvalue",
            replaced=square,
        )
        noisy = mechanisms.gaussian(
            np.tile(gram, (k, 1, 1)),
            sensitivity=square,
            rho=rho,
            label="gram",
            symmetric=True,
            replaced=math.sqrt(2) * square,
        )
        moments = mechanisms.gaussian(
            np.tile(problem.label_moments(bound), (k, 1)),
            sensitivity=problem.row_bound * bound,
            rho=rho,
            label="moments",
        )
        unit = square / math.sqrt(2 * rho)  # a standard deviation at add/remove, and of the eigenvalue at both
        least = np.maximum(least - math.sqrt(math.log(6 / mechanisms.budget.delta)) * unit, 0.0)
        spread = unit * (math.sqrt(2) if mechanisms.doubled else 1.0) * math.sqrt(d * math.log(2 * d * d / FAILURE))
        ridge = problem.n * problem.l2 + np.maximum(0.0, spread - problem.n * problem.l2 - least)
        return np.linalg.solve(noisy + ridge[:, None, None] * np.eye(d), moments[:, :, None])[:, :, 0]
