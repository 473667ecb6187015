"""Adam on full-batch gradients with Gaussian noise, the noise's part of the second moment taken off again."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import msgspec
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

CLIP = 0.3  # where the loss has no bound on its derivative
LEAST = 1e-8  # Adam's own floor, of a squared step


class DPAdam(Algorithm):
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
    paper_accounting = "tight"
    needs = Needs(outputs=True, regularisers=("l2", "w2"))
    per_replicate: ClassVar = frozenset({"epsilon"})
    discloses = (
        Disclosure(
            "gradient",
            "the mean gradient, derivatives clipped to ±C",
            add_remove="C·R/n",
            why="|ℓ'| ≤ C by clipping, ‖x‖ ≤ R; the divisor n is public",
        ),
    )
    tuning: ClassVar = {"floor": [0.3, 1.0, 3.0]}

    class Settings(BaseSettings, frozen=True):
        T: Count = 100
        step: Positive = 0.1
        beta1: Share = 0.9
        beta2: Share = 0.99
        floor: Positive = 1.0
        correct: bool = True
        clip: Positive | None = None

    def complete(self, problem: Declaration, settings: Settings) -> Settings:
        clip = settings.clip or (problem.loss.lipschitz if problem.loss.lipschitz < math.inf else CLIP)
        return msgspec.structs.replace(settings, clip=clip)

    def audit_case(self) -> AuditCase:
        return AuditCase({"clip": 1.0}, loss="squared")

    def batch_size(self, n: int, d: int) -> int:
        return int(max(1, min(128, 200e6 / (8 * d))))

    def plan(self, problem: Declaration, mechanisms: Mechanisms, settings: Any) -> None:
        mechanisms.plan("gradient", at_rho(mechanisms.budget.rho / settings.T), settings.T)

    def run(self, problem: Problem, W: Array, mechanisms: Mechanisms, settings: Settings, trace: Trace) -> Array:
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
            square = v / (1 - beta2**t) - (variance if settings.correct else 0.0)
            least = settings.floor**2 * variance + LEAST if settings.correct else LEAST
            W = W - settings.step * m / (1 - beta1**t) / np.sqrt(np.maximum(square, least))
            trace(t, W, passes=t)
        return W
