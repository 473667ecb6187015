"""A Problem: the empirical risk, its gradient coordinate by coordinate, and its optimum.

Coordinate j of sample i's gradient is r_i x_ij, r_i = ℓ'(<x_i, w>, y_i). Where it is clipped, what is summed is
clip(r_i x_ij, ±C_j), so replacing one row moves the mean over n rows by 2C_j/n at most (Mangold et al. 2023, Section
5). Nothing of size (n, d, k) is made: the work goes in blocks that stay in the first-level cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy

from dpbench.problems.fast_rows import kernels
from dpbench.problems.losses import Loss
from dpbench.problems.optimum import NoOptimum, Optimum, find_optimum
from dpbench.problems.risk import EmpiricalRisk
from dpbench.problems.rows import Rows

BLOCK = 8_192  # numbers worked on at a time: 64 kB; measured, 1.2 ns each, against 2 to 5 ns at four times the size
GROUP = 2**18  # residuals, of a few replicates, worked on at a time: 2 MB


class DataColumns:
    """The columns X of rows. share (d,): `EmpiricalRisk.clip_shares`."""

    def __init__(self, rows: Rows, loss: Loss, share: np.ndarray) -> None:
        self.rows, self.loss, self.share = rows, loss, share
        self.X: Any = rows.columns

    def clipped_gradient(self, W: np.ndarray, clip: np.ndarray) -> np.ndarray:
        """(k, d) sums over the rows of clip(r_i x_ij, ±clip·share_j), at W (k, d); clip (k,)."""
        total = np.empty_like(W)
        size = max(1, GROUP // self.rows.n)
        for start in range(0, len(W), size):
            group = slice(start, start + size)
            self._add_up(W[group], clip[group], total[group])
        return total

    def _add_up(self, W: np.ndarray, clip: np.ndarray, total: np.ndarray) -> None:
        """The sums over the rows, into `total` (k, d)."""
        z = self.rows.all_predictions(W)
        r = self.loss.derivative(z, self.rows.y, z)
        # Where no row can reach its threshold, clipping changes nothing: one matrix product for all such replicates.
        free = (np.abs(r) * self._reach).max(axis=1) <= clip
        if free.any():
            total[free] = (self.rows.X.T @ r[free].T).T
        if not free.all():
            total[~free] = self._clipped_sums(r[~free], clip[~free])

    @cached_property
    def _reach(self) -> np.ndarray:
        """(n,) max_j |x_ij|/share_j."""
        X, share = self.rows.X, np.where(self.share > 0, self.share, np.inf)  # an empty column reaches nothing
        if self.rows.sparse:
            return abs(X @ scipy.sparse.diags_array(1 / share)).max(axis=1).toarray().ravel()
        return np.abs(X / share).max(axis=1)

    def _clipped_sums(self, r: np.ndarray, clip: np.ndarray) -> np.ndarray:
        """(k, d) Σ_l clip(r_il x_lj, ±clip_i share_j) for r (k, n)."""
        compiled, share = kernels(), self.share
        if not self.rows.sparse:
            total = np.empty((len(r), len(share)))
            (compiled.clipped_sums if compiled else _dense_sums)(self.X, r, clip, share, total)
            return total
        if not compiled:
            return _sparse_sums(self.X, r, clip, share)
        total = np.empty((len(share), len(r)))
        X = self.X
        compiled.clipped_sums_of_sparse(X.data, X.indices, X.indptr, np.ascontiguousarray(r.T), clip, share, total)
        return total.T


def columns_of(rows: Rows, loss: Loss, share: np.ndarray) -> DataColumns:
    """The columns of these rows, the latest of which are kept with them."""
    columns: DataColumns | None = rows.__dict__.get("data_columns")
    if columns is None or not np.array_equal(columns.share, share):
        columns = rows.__dict__["data_columns"] = DataColumns(rows, loss, share)
    return columns


def _dense_sums(A: np.ndarray, r: np.ndarray, clip: np.ndarray, share: np.ndarray, total: np.ndarray) -> None:
    """total[i, j] = Σ_l clip(r_il a_jl, ±clip_i share_j)."""
    d, n = A.shape
    size = max(1, BLOCK // n)
    workspace, ones = np.empty((size, n)), np.ones(n)
    for start in range(0, d, size):
        block = A[start : start + size]
        c = share[start : start + size, None]
        product = workspace[: len(block)]
        for i in range(len(r)):
            np.multiply(block, r[i], out=product)
            bound = clip[i] * c
            np.minimum(product, bound, out=product)
            np.maximum(product, -bound, out=product)
            np.matmul(product, ones, out=total[i, start : start + size])


def _sparse_sums(A: Any, r: np.ndarray, clip: np.ndarray, share: np.ndarray) -> np.ndarray:
    sizes = np.diff(A.indptr)
    scaled, filled = A.data / np.repeat(share, sizes), np.flatnonzero(sizes)
    total = np.zeros((len(r), len(share)))
    for i in range(len(r)):
        product = (r[i] / clip[i])[A.indices]
        product *= scaled
        np.clip(product, -1, 1, out=product)
        total[i, filled] = np.add.reduceat(product, A.indptr[filled]) * (clip[i] * share[filled])
    return total


def coordinate_state(columns: DataColumns, W: np.ndarray) -> CoordinateState | CompiledState:
    """The predictions of W (k, d), kept up to date while single coordinates of it move."""
    compiled = kernels()
    if compiled is None or columns.rows.sparse:
        return CoordinateState(columns, W)
    return CompiledState(columns, W, compiled)


class CompiledState:
    """Dense data, by compiled loops: z is (k, n), and a replicate moves when its z is next in the cache.

    Ten calls of NumPy for every few rows become two for every few replicates.
    """

    def __init__(self, columns: DataColumns, W: np.ndarray, compiled: SimpleNamespace) -> None:
        rows, self._compiled = columns.rows, compiled
        self._columns, self._n, self._loss, self._y = columns.X, rows.n, columns.loss, rows.y
        self._z = rows.all_predictions(W)
        self._moved: tuple[int, np.ndarray] | None = None
        self._block = max(1, 4 * BLOCK // self._n)
        self._workspace = np.empty((self._block, self._n))

    def derivative(self, j: int, threshold: np.ndarray) -> np.ndarray:
        """(k,) means over the rows of clip(r_i x_ij, ±threshold); threshold (k,)."""
        x, share = self._columns[j : j + 1], np.ones(1)
        total = np.empty((len(threshold), 1))
        for start in range(0, len(threshold), self._block):
            block = slice(start, start + self._block)
            z = self._z[block]
            self._move(block)
            r = self._loss.derivative(z, self._y, self._workspace[: len(z)])
            self._compiled.clipped_sums(x, r, threshold[block], share, total[block])
        self._moved = None
        return total[:, 0] / self._n

    def move(self, j: int, change: np.ndarray) -> None:
        """Coordinate j of every replicate has changed by `change` (k,)."""
        self._move(slice(None))
        self._moved = j, change.copy()

    def _move(self, block: slice) -> None:
        if self._moved is not None:
            j, change = self._moved
            self._compiled.move(self._z[block], self._columns[j], change[block])


class CoordinateState:
    """The predictions of W (k, d), kept up to date while single coordinates of it move.

    Rows are the leading axis, so that the few rows of a sparse column are contiguous: z is (n, k).
    """

    def __init__(self, columns: DataColumns, W: np.ndarray) -> None:
        rows = columns.rows
        self._columns, self._sparse, self._n, self._loss = columns.X, rows.sparse, rows.n, columns.loss
        self._z = np.ascontiguousarray(rows.all_predictions(W).T)
        self._y = rows.y[:, None]
        self._block = max(1, BLOCK // len(W))
        self._workspace, self._ones = np.empty((self._block, len(W))), np.ones(self._block)

    def derivative(self, j: int, threshold: np.ndarray) -> np.ndarray:
        """(k,) means over the rows of clip(r_i x_ij, ±threshold); threshold (k,)."""
        total, below = np.zeros(len(threshold)), -threshold
        for rows, x in self._blocks(j):
            r = self._workspace[: len(x)]
            self._loss.derivative(self._z[rows], self._y[rows], r)
            r *= x
            np.minimum(r, threshold, out=r)
            np.maximum(r, below, out=r)
            total += self._ones[: len(x)] @ r
        total /= self._n
        return total

    def move(self, j: int, change: np.ndarray) -> None:
        """Coordinate j of every replicate has changed by `change` (k,)."""
        if not self._sparse:  # one pass over z instead of two
            scipy.linalg.blas.dger(1.0, change, self._columns[j], a=self._z.T, overwrite_a=1)
            return
        for rows, x in self._blocks(j):
            self._z[rows] += np.multiply(x, change, out=self._workspace[: len(x)])

    def _blocks(self, j: int) -> Iterator[tuple[Any, np.ndarray]]:
        """Pairs (row indices, their entries (b, 1) of column j)."""
        if self._sparse:
            A = self._columns
            rows, entries = A.indices[A.indptr[j] : A.indptr[j + 1]], A.data[A.indptr[j] : A.indptr[j + 1], None]
            for start in range(0, len(rows), self._block):
                yield rows[start : start + self._block], entries[start : start + self._block]
        else:
            column = self._columns[j, :, None]
            for start in range(0, self._n, self._block):
                yield slice(start, start + self._block), column[start : start + self._block]


WIDENED = 1e8  # entries of a float32 X up to which the optimum is found, on a float64 copy


class Problem(EmpiricalRisk):
    """Empirical risk minimisation: all that an algorithm and its judge ask of (X, y), loss and regularisers."""

    held_out: tuple[Any, np.ndarray] | None = None  # (X, y) that nobody trains on, for `scores`

    def clipped_gradient(self, W: np.ndarray, clip: np.ndarray, *, even: bool = False) -> np.ndarray:
        """(k, d) means of the rows' loss gradients, clipped per coordinate at ±clip·`clip_shares`; clip (k,).

        even: at ±clip/√d in every coordinate, which takes nothing from the data.
        """
        shares = self.even_shares if even else self.clip_shares
        return columns_of(self._rows, self.loss, shares).clipped_gradient(self.batch(W), clip) / self.n

    def coordinate_state(self, W: np.ndarray) -> CoordinateState | CompiledState:
        """The predictions of W (k, d), kept up to date while single coordinates move."""
        return coordinate_state(columns_of(self._rows, self.loss, self.clip_shares), self.batch(W))

    @cached_property
    def _optimum(self) -> Optimum:
        if not self._rows.single:
            return find_optimum(self)
        if self.n * self.d > WIDENED:
            raise NoOptimum(f"{self}: a certificate takes float64, and {self.n} x {self.d} are not widened to it")
        X = self.X.astype(np.float64)
        # Same hash and folder: float32 rows and their widened copy have one optimum.
        wide = Problem(X, self.y, folder=self.folder, data_hash=self.data_hash, **self.objective)
        return find_optimum(wide)

    def optimum(self) -> Optimum:
        """F* with a certificate: ‖∇F‖₂ ≤ 1e-9, or with l1 a relative duality gap ≤ 1e-10.

        Read from `folder` where it was computed before. Raises NoOptimum (a UserError) if F is not convex, or
        the data are linearly separable (inf F = 0 is not attained), or no certificate is reached. Where only
        some rows can be separated from the rest (a1a, covertype: rare categories with one label), the infimum
        is positive and not attained either: then w is a point within the certificate of it.
        """
        return self._optimum
