"""Least squares from one noisy Gram matrix and T noisy moments of clipped residuals (boosted sufficient statistics)."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from dpbench.algorithms.base import (
    Algorithm,
    Array,
    AuditCase,
    BaseSettings,
    Count,
    Declaration,
    Disclosure,
    Mechanisms,
    Needs,
    Positive,
    Problem,
    Share,
    Trace,
)
from dpbench.privacy.ledger import at_rho


class BoostedSSP(Algorithm):
    """boosted-ssp: w ← w - P(m + l2·w), T times: m the mean of the clipped residuals' gradients, P from a noisy XᵀX/n.

    After Tang, Aydore, Kearns, Rho, Roth, Wang, Wang and Wu (2023), with a ridge that follows the noise alone.
    G̃ = XᵀX/n + E gets the share a of μ²; each m = (1/n)Σ clip(<x_i, w> - y_i, ±c)x_i gets (1 - a)/T of it. With
    ‖x‖ ≤ R, XᵀX/n moves by R²/n in Frobenius norm, by √2R²/n under replace-one, and m by cR/n, twice that under
    replace-one. Labels need no bound: residuals are clipped.

    P = (G̃₊ + (λ + l2)I)⁻¹, λ = max(s√d, σR√(T/(2κ))), s and σ the standard deviations of E and of m's noise. The
    first covers E, whose spectrum ends near √2·s√d. The second bounds what the noise adds to the excess loss by κ: with
    P⁻¹ ⪰ H/2 each step is a contraction, and T of them add ½Tσ² tr(PHP) ≤ ½Tσ²R²/λ². Clipping makes the loss a Huber
    loss, so that the excess has a floor which no ε removes where residuals of the optimum are longer than c.

    clip: c, in units of the label. share: a. safety: κ, in units of the loss.
    """

    name = "boosted-ssp"
    title = "Boosted SSP"
    home = "greedy_coordinate"
    exact = "sums"
    paper_accounting = "tight"
    needs = Needs(quadratic=True, regularisers=("l2",))
    per_replicate: ClassVar = frozenset({"epsilon"})
    discloses = (
        Disclosure(
            "gram",
            "XᵀX/n",
            "Gaussian, symmetric",
            "1",
            add_remove="R²/n",
            replace_one="√2·R²/n",
            why="two positive semidefinite matrices of rank one",
        ),
        Disclosure(
            "gradient", "the mean gradient, residuals clipped to ±C", add_remove="C·R/n", why="|residual| ≤ C, ‖x‖ ≤ R"
        ),
    )
    tuning: ClassVar = {"clip": [0.1, 0.3, 1.0]}

    class Settings(BaseSettings, frozen=True):
        T: Count = 10
        clip: Positive = 0.3
        share: Share = 0.15
        safety: Positive = 0.02

    def audit_case(self) -> AuditCase:
        return AuditCase(loss="squared")

    def canaries(self) -> tuple[AuditCase, ...]:
        return AuditCase(loss="squared", d=1, label="gram"), AuditCase(loss="squared", d=1, label="gradient")

    def work(self, n: int, d: int, settings: Settings) -> float:
        return 1.0 * n * d * d + 4.0 * n * d * settings.T + 20.0 * d**3

    def plan(self, problem: Declaration, mechanisms: Mechanisms, settings: Any) -> None:
        rho, share, T = mechanisms.budget.rho, settings.share, settings.T
        mechanisms.plan("gram", at_rho(share * rho), 1)
        mechanisms.plan("gradient", at_rho((1 - share) * rho / T), T)

    def run(self, problem: Problem, W: Array, mechanisms: Mechanisms, settings: Settings, trace: Trace) -> Array:
        n, R, T, c = problem.n, problem.row_bound, settings.T, settings.clip
        k, d = W.shape
        rho = np.broadcast_to(mechanisms.budget.rho, (k,))
        for_gram, for_step = settings.share * rho, (1 - settings.share) * rho / T
        second_moment = problem.data_hessian(np.zeros((1, d)))  # of squared loss, one for all replicates
        gram = mechanisms.gaussian(
            second_moment if k == 1 else np.repeat(second_moment, k, axis=0),
            sensitivity=R**2 / n,
            rho=for_gram,
            label="gram",
            symmetric=True,
            replaced=math.sqrt(2) * R**2 / n,
        )
        s = (math.sqrt(2) if mechanisms.doubled else 1.0) * R**2 / n / np.sqrt(2 * for_gram)
        sigma = (2 if mechanisms.doubled else 1) * c * R / n / np.sqrt(2 * for_step)
        ridge = np.maximum(s * math.sqrt(d), sigma * R * math.sqrt(T / (2 * settings.safety)))
        values, vectors = np.linalg.eigh(gram)
        inverse = 1 / (np.maximum(values, 0.0) + ridge[:, None] + problem.l2)

        W = np.zeros_like(W)
        trace(0, W, passes=1)
        for t in range(1, T + 1):
            moment = mechanisms.gaussian(
                problem.bounded_gradient(W, c), sensitivity=c * R / n, rho=for_step, label="gradient"
            )
            slope = np.einsum("kij,ki->kj", vectors, moment + problem.l2 * W)
            W = W - np.einsum("kij,kj->ki", vectors, inverse * slope)
            trace(t, W, passes=1 + t)
        return W
