"""What dp-gcd, dp-cd and dp-sgd-1 have in common: settings counted in passes, a clipping threshold, a shared grid."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from dpbench.algorithms.base import Algorithm, Array, AuditCase, BaseSettings, Declaration, Needs, Positive, Relation
from dpbench.problems.regularisers import soft_threshold


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
    counts_public = "the mean square of each column (M_j)"

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


def proximal_step(problem: Declaration, w: Array, gradient: Array, step: Array) -> Array:
    """prox(w - step (gradient + l2·w)): a step along coordinates w of any shape, `gradient` that of the data alone."""
    w = w - step * (gradient + problem.l2 * w)
    return soft_threshold(w, step * problem.l1) if problem.l1 else w
