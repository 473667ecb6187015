"""Logistic regression from two noisy statistics: the loss's even part as a polynomial of degree two."""

from __future__ import annotations

import math
from typing import Any, ClassVar

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
    Share,
    Trace,
)
from dpbench.privacy.ledger import at_rho

POINTS = 4096  # of the expansion's quadrature


class ChebyshevLogistic(Algorithm):
    """dp-chebyshev: w = (2b₂(G̃₊ + s√d) + l2)⁻¹ q̃/2, from G = XᵀX/n and q = Σ y_i x_i/n with Gaussian noise.

    After Huggins, Adams and Broderick (2017) and Kulkarni et al. (2021). ln(1 + e^-m) = ln(2cosh(m/2)) - m/2: the odd
    part is -m/2, and the even one is replaced by its expansion of degree two on [-r, r], b₀ + b₂m². Then F(w) is a
    constant, -½<q, w> and b₂wᵀGw. G moves by R²/n in Frobenius norm, √2R²/n under replace-one, and q by R/n, twice that
    under replace-one. No iterations; the bias does not vanish with ε, as the minimum is another.

    radius: r, of the margins. share: of μ², for G.
    """

    name = "dp-chebyshev"
    title = "Chebyshev SSP"
    exact = "sums"
    paper_accounting = "tight"
    needs = Needs(losses=("logistic",), regularisers=("l2",))
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
        Disclosure("moments", "Σ y_i x_i/n", count="1", add_remove="R/n", why="|y| = 1 and ‖x‖ ≤ R"),
    )
    tuning: ClassVar = {"radius": [2.0, 4.0, 6.0]}

    class Settings(BaseSettings, frozen=True):
        radius: Positive = 4.0
        share: Share = 0.5

    def audit_case(self) -> AuditCase:
        return AuditCase(steepest=False)

    def canaries(self) -> tuple[AuditCase, ...]:
        return tuple(AuditCase(d=1, steepest=False, label=label) for label in ("gram", "moments"))

    def work(self, n: int, d: int, settings: Settings) -> float:
        return 1.0 * n * d * d + 20.0 * d**3

    def plan(self, problem: Declaration, mechanisms: Mechanisms, settings: Any) -> None:
        mechanisms.plan("gram", at_rho(settings.share * mechanisms.budget.rho), 1)
        mechanisms.plan("moments", at_rho((1 - settings.share) * mechanisms.budget.rho), 1)

    def run(self, problem: Problem, W: Array, mechanisms: Mechanisms, settings: Settings, trace: Trace) -> Array:
        n, R = problem.n, problem.row_bound
        k, d = W.shape
        rho = np.broadcast_to(mechanisms.budget.rho, (k,))
        second, first = problem.second_moment(), problem.label_moments(1.0) / n
        gram = mechanisms.gaussian(
            np.tile(second, (k, 1, 1)),
            sensitivity=R**2 / n,
            rho=settings.share * rho,
            label="gram",
            symmetric=True,
            replaced=math.sqrt(2) * R**2 / n,
        )
        q = mechanisms.gaussian(
            np.tile(first, (k, 1)),
            sensitivity=R / n,
            rho=(1 - settings.share) * rho,
            label="moments",
        )
        s = (math.sqrt(2) if mechanisms.doubled else 1.0) * R**2 / n / np.sqrt(2 * settings.share * rho)
        values, vectors = np.linalg.eigh(gram)
        bend = 2 * even_coefficient(settings.radius)
        inverse = 1 / (bend * (np.maximum(values, 0.0) + math.sqrt(d) * s[:, None]) + problem.l2)
        return np.einsum("kij,kj->ki", vectors, inverse * np.einsum("kij,ki->kj", vectors, q) / 2)


def even_coefficient(radius: float) -> float:
    """b₂ of ln(2cosh(m/2)) ≈ b₀ + b₂m² on [-radius, radius], in Chebyshev's sense; 1/8 is Taylor's, near 0 alone."""
    angles = (np.arange(POINTS) + 0.5) * math.pi / POINTS
    half = radius * np.cos(angles) / 2
    even = np.logaddexp(half, -half)
    return float(2 * (2 / POINTS) * (even @ np.cos(2 * angles)) / radius**2)
