"""What dp-gcd, dp-cd and dp-sgd-1 have in common: settings counted in passes, a clipping threshold, a shared grid."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from dpbench.algorithms.base import (
    Algorithm,
    Array,
    AuditCase,
    BaseSettings,
    Declaration,
    Needs,
    Positive,
    Problem,
    Relation,
)
from dpbench.errors import UserError
from dpbench.problems.losses import Loss
from dpbench.problems.regularisers import soft_threshold

ROW_NORM = ("l2", 1.0)  # of a row, where M_j comes from its bound


class ByPasses(Algorithm):
    """Base of greedy_coordinate's methods (Mangold, Bellet, Salmon and Tommasi 2023, Section 5).

    passes: passes over the data; a fraction of a pass is at least one iteration. step: γ. clip: C.
    Replicates that differ in step and clip alone draw the same random numbers, so that a (step × clip) grid advances
    on one draw of noise (common random numbers: settings are compared on equal noise, and replicates of equal seed are
    not independent of each other).
    """

    home = "greedy_coordinate"
    relation = Relation.REPLACE_ONE
    needs = Needs(convex=True, smooth=True, row_norm=None, regularisers=("l1", "l2"))
    per_replicate: ClassVar = frozenset({"step", "clip"})
    common_random: ClassVar = frozenset({"step", "clip"})

    class Settings(BaseSettings, frozen=True):
        passes: Positive = 2.0
        step: Positive = 1.0
        clip: Positive = 1.0

    @staticmethod
    def per_pass(n: int, d: int) -> int:
        """Iterations of one pass."""
        raise NotImplementedError

    def iterations(self, problem: Declaration, settings: Settings) -> int:
        return max(1, round(settings.passes * self.per_pass(problem.n, problem.d)))

    def batch_size(self, n: int, d: int) -> int:
        return int(max(1, min(512, 100e6 / (8 * d))))

    def audit_case(self) -> AuditCase:
        return AuditCase({"passes": 1.0}, loss="squared")  # whose residuals can be beyond any clipping threshold

    def inspection_case(self) -> AuditCase:
        return replace(super().inspection_case(), settings={"passes": 4.0})

    def work(self, n: int, d: int, settings: Settings) -> float:
        return max(settings.passes, 1 / self.per_pass(n, d)) * 4.0 * n * d


class ByCoordinates(ByPasses):
    """Base of dp-gcd and dp-cd, which know for every coordinate j how far F curves along it at most: M_j.

    scales "data": M_j = L₁·mean_i x_ij² + the regularisers' part, as in the paper. They are exact and are not paid for,
    so they count as public. "bound": M_j = L₁R² + the regularisers' part for all j, which the declared bound R on ‖x‖₂
    gives without the data; steps are up to d times shorter at the same γ, and thresholds are C_j = C/√d.
    """

    counts_public = "the mean square of each column (M_j)"

    class Settings(ByPasses.Settings, frozen=True):
        scales: Literal["data", "bound"] = "data"

    def public(self, settings: Any) -> str:
        return self.counts_public if settings.scales == "data" else ""

    def complete(self, problem: Declaration, settings: Any) -> Any:
        if settings.scales == "bound" and math.isinf(problem.row_bound):
            raise UserError(f"{self.name}: scales=bound takes M_j from a bound on the rows; declare a row bound")
        return settings

    def row_bound(self, loss: Loss, settings: Any) -> tuple[str, float] | None:
        return ROW_NORM if settings.scales == "bound" else None

    def inexact(self, loss: Loss, relation: Relation, settings: Any = None) -> str:
        if (settings or self.Settings()).scales == "data":
            return "scales=data takes rows of any length, and scales=bound has one"
        return super().inexact(loss, relation, settings)

    @staticmethod
    def constants(problem: Problem, settings: Any) -> Array:
        """M_j, (d,)."""
        if settings.scales == "data":
            return problem.coordinate_constants
        return np.full(problem.d, problem.smoothness + sum(one.smoothness for one in problem.smooth_regularisers))


def proximal_step(problem: Declaration, w: Array, gradient: Array, step: Array) -> Array:
    """prox(w - step (gradient + l2·w)): a step along coordinates w of any shape, `gradient` that of the data alone."""
    w = w - step * (gradient + problem.l2 * w)
    return soft_threshold(w, step * problem.l1) if problem.l1 else w
