"""What dp-gcd, dp-cd and dp-sgd-1 have in common: settings counted in passes, a clipping threshold, a shared grid."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from dpbench.algorithms.audit_case import AuditCase
from dpbench.algorithms.base import Algorithm, Needs, Positive, Settings
from dpbench.privacy.relation import Relation


class ByPasses(Algorithm):
    """Base of greedy_coordinate's methods (Mangold, Bellet, Salmon and Tommasi 2023, Section 5).

    passes: passes over the data; a fraction of a pass is at least one iteration. step: γ. clip: C.
    Replicates that differ in step and clip alone draw the same random numbers, so that a (step × clip) grid advances
    on one draw of noise (common random numbers: settings are compared on equal noise, and replicates of equal seed are
    not independent of each other).
    """

    home = "greedy_coordinate"
    relation = Relation.REPLACE_ONE
    needs = Needs(losses=("logistic", "squared"), row_norm=None, regularisers=("l1", "l2"))
    per_replicate: ClassVar = frozenset({"step", "clip"})
    common_random: ClassVar = frozenset({"step", "clip"})
    counts_public = "the mean square of each column (M_j)"

    class Settings(Settings):
        passes: Positive = 2.0
        step: Positive = 1.0
        clip: Positive = 1.0

    @staticmethod
    def per_pass(n: int, d: int) -> int:
        """Iterations of one pass."""
        raise NotImplementedError

    def iterations(self, problem, settings):
        return max(1, round(settings.passes * self.per_pass(problem.n, problem.d)))

    def batch_size(self, n, d):
        return int(max(1, min(512, 100e6 / (8 * d))))

    def audit_case(self):
        return AuditCase({"passes": 1.0})

    def work(self, n, d, settings):
        return max(settings.passes, 1 / self.per_pass(n, d)) * 4.0 * n * d


def moved(problem, w: np.ndarray, gradient: np.ndarray, step: np.ndarray) -> np.ndarray:
    """prox(w - step (gradient + l2·w)): a step along coordinates w of any shape, `gradient` that of the data alone."""
    w = w - step * (gradient + problem.l2 * w)
    return np.copysign(np.maximum(np.abs(w) - step * problem.l1, 0), w) if problem.l1 else w
