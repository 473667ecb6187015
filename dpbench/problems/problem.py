"""A Problem: the empirical risk, its gradient coordinate by coordinate, and its optimum."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from dpbench.problems.columns import Columns, CompiledState, CoordinateState, coordinate_state
from dpbench.problems.optimum import NoOptimum, Optimum, find_optimum
from dpbench.problems.risk import EmpiricalRisk

WIDENED = 1e8  # entries of a float32 X up to which the optimum is found, on a float64 copy


class Problem(EmpiricalRisk):
    """Empirical risk minimisation: all that an algorithm and its judge ask of (X, y), loss and regularisers."""

    held_out: tuple[Any, np.ndarray] | None = None  # (X, y) that nobody trains on, for `scores`
    derived = (*EmpiricalRisk.derived, "_columns", "_even_columns")

    @cached_property
    def _columns(self) -> Columns:
        return Columns(self._rows, self.loss, self.clip_shares)

    @cached_property
    def _even_columns(self) -> Columns:
        return Columns(self._rows, self.loss, self.even_shares)

    def clipped_gradient(self, W: np.ndarray, clip: np.ndarray, *, even: bool = False) -> np.ndarray:
        """(k, d) means of the rows' loss gradients, clipped per coordinate at ±clip·`clip_shares`; clip (k,).

        even: at ±clip/√d in every coordinate, which takes nothing from the data.
        """
        columns = self._even_columns if even else self._columns
        return columns.clipped_gradient(self.batch(W), clip) / self.n

    def coordinate_state(self, W: np.ndarray) -> CoordinateState | CompiledState:
        """The predictions of W (k, d), kept up to date while single coordinates move."""
        return coordinate_state(self._columns, self.batch(W))

    @cached_property
    def _optimum(self) -> Optimum:
        if not self._rows.single:
            return find_optimum(self)
        if self.n * self.d > WIDENED:
            raise NoOptimum(f"{self}: a certificate takes float64, and {self.n} x {self.d} are not widened to it")
        X = self.X.astype(np.float64)
        declared: dict[str, Any] = {"l1": self.l1, "l2": self.l2, "w2": self.w2}
        wide = Problem(X, self.y, loss=self.loss, folder=self.folder, data_hash=self.data_hash, **declared)
        return find_optimum(wide)

    def optimum(self) -> Optimum:
        """F* with a certificate: ‖∇F‖₂ ≤ 1e-9, or with l1 a relative duality gap ≤ 1e-10.

        Read from `folder` where it was computed before. Raises NoOptimum (a UserError) if F is not convex, or
        the data are linearly separable (inf F = 0 is not attained), or no certificate is reached. Where only
        some rows can be separated from the rest (a1a, covertype: rare categories with one label), the infimum
        is positive and not attained either: then w is a point within the certificate of it.
        """
        return self._optimum
