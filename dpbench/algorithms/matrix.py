"""Minibatch gradient descent in a fixed order with correlated noise (matrix factorisation)."""

from __future__ import annotations

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
    Relation,
    Trace,
    at_default_step,
)
from dpbench.errors import UserError
from dpbench.privacy.ledger import at_rho


class DPMatrixFactorisation(Algorithm):
    """dp-mf: w ← w - η (Σ_{i∈B_t} ∇f_i + (C⁻¹Z)_t)/|B_t| over batches in a fixed order (Choquette-Choo et al. 2023).

    Row i is in batch i mod b of every epoch, so its rounds are b apart; no sampling, no assumption on it. Replacing it
    moves each of its k sums by at most 2L₀. With C of at most b bands its columns at these rounds are orthogonal: the
    whole run is one Gaussian release of sensitivity √k · max ‖column‖ · 2L₀ (less where the end cuts columns off; see
    `privacy.correlated`). Noise of neighbouring rounds cancels in the sum of the steps. On all rows (b = 1) C has one
    band: independent noise, as correlation cannot help there (‖1ᵀC⁻¹‖·‖C1‖ ≥ T by Cauchy and Schwarz).

    epochs: k. batches: b. bands: of C, b by default; 1 is dp-sgd in a fixed order.
    """

    name = "dp-mf"
    title = "DP-MF"
    relation = Relation.REPLACE_ONE
    exact = "sums"
    paper_accounting = "tight"
    needs = Needs(lipschitz=True, regularisers=("l2", "w2"))
    per_replicate: ClassVar = frozenset({"step"})
    discloses = (
        Disclosure(
            "gradient",
            "the sums of the batches' gradients, all rounds together",
            "correlated Gaussian",
            "1",
            replace_one="2·L₀·c",
            why="‖∇f_i‖ ≤ L₀; c = √k · max ‖column of C‖, k rounds that are b apart",
        ),
    )
    tuning: ClassVar = {"epochs": [3, 10, 30], "batches": [4, 16]}

    class Settings(BaseSettings, frozen=True):
        epochs: Count = 10
        batches: Count = 10
        bands: Count | None = None
        step: Positive | None = None

    def complete(self, problem: Declaration, settings: Settings) -> Settings:
        b = settings.batches
        if b > problem.n:
            raise UserError(f"{self.name}: batches = {b}, but the data have {problem.n} rows; lower it")
        if settings.bands is not None and settings.bands > b:
            raise UserError(f"{self.name}: bands = {settings.bands} must be at most batches = {b}")
        return msgspec.structs.replace(at_default_step(problem, settings), bands=settings.bands or b)

    def iterations(self, problem: Declaration, settings: Settings) -> int:
        return settings.epochs * settings.batches

    def audit_case(self) -> AuditCase:
        return AuditCase({"epochs": 2, "batches": 2})

    def work(self, n: int, d: int, settings: Settings) -> float:
        return settings.epochs * (4.0 * n * d + 1e5 * settings.batches)

    def plan(self, problem: Declaration, mechanisms: Mechanisms, settings: Any) -> None:
        mechanisms.plan("gradient", at_rho(mechanisms.budget.rho), 1)

    def run(self, problem: Problem, W: Array, mechanisms: Mechanisms, settings: Settings, trace: Trace) -> Array:
        b, T = settings.batches, settings.epochs * settings.batches
        noise = mechanisms.correlated(
            T,
            separation=b,
            bands=settings.bands or b,
            sensitivity=2 * problem.lipschitz,
            rho=mechanisms.budget.rho,
            label="gradient",
        )
        batches = [np.arange(first, problem.n, b) for first in range(b)]
        step = np.asarray(settings.step)[:, None]
        trace(0, W, passes=0)
        for t in range(1, T + 1):
            rows = batches[(t - 1) % b]
            noisy = noise.release(problem.gradient_sum(W, rows if b > 1 else None))
            penalty = sum(r.gradient(W) for r in problem.regularisers.values())
            W = W - step * (noisy / len(rows) + penalty)
            trace(t, W, passes=t / b)
        return W
