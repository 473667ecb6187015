"""The gradient of a linear model coordinate by coordinate, every sample's share of every coordinate clipped.

Coordinate j of sample i's gradient is r_i x_ij, r_i = ℓ'(<x_i, w>, y_i); what is summed is clip(r_i x_ij, ±C_j), so
replacing one row moves the mean over n rows by 2C_j/n at most (Mangold et al. 2023, Section 5). Nothing of size
(n, d, k) is made: one block of rows at a time, in the second-level cache.
"""

from __future__ import annotations

import numpy as np

BLOCK = 32_768  # numbers worked on at a time


class ClippedGradient:
    """Mean over the rows of the gradients clipped at ±clip · share_j, for all coordinates at once.

    With x̃_ij = x_ij/share_j it is share_j · clip · mean_i clip(r_i/clip · x̃_ij, ±1).
    """

    def __init__(self, problem, share: np.ndarray):
        self._problem, self._share = problem, share
        if problem.is_sparse:
            self._columns = problem.X.tocsc(copy=True)
            self._columns.data /= np.repeat(share, np.diff(self._columns.indptr))
            self._largest = np.asarray(abs(self._columns).max(axis=1).todense()).ravel()
        else:
            self._scaled = problem.X / share
            self._largest = np.abs(self._scaled).max(axis=1)

    def __call__(self, W: np.ndarray, clip: np.ndarray) -> np.ndarray:
        """(k, d) clipped mean gradients of the loss at W (k, d); clip: (k,) thresholds C."""
        problem = self._problem
        z = problem.predictions(W)
        r = problem.loss.derivative(z, problem.y, np.empty_like(z))
        total = np.empty_like(W)
        # Where no row reaches its threshold, clipping changes nothing: one matrix product for all such replicates.
        free = np.array([np.abs(row * self._largest).max() <= c for row, c in zip(r, clip, strict=True)])
        if free.any():
            total[free] = (problem.X.T @ r[free].T).T
        summed = self._sparse_sum if problem.is_sparse else self._dense_sum
        for i in np.flatnonzero(~free):
            total[i] = summed(r[i] / clip[i]) * (clip[i] * self._share)
        total /= problem.n
        return total

    def _dense_sum(self, r: np.ndarray) -> np.ndarray:
        """(d,) Σ_i clip(r_i x̃_ij, ±1)."""
        X, total = self._scaled, np.zeros(self._scaled.shape[1])
        size = max(1, BLOCK // X.shape[1])
        workspace, ones = np.empty((size, X.shape[1])), np.ones(size)
        for start in range(0, len(r), size):
            A = X[start : start + size]
            product = np.multiply(A, r[start : start + size, None], out=workspace[: len(A)])
            np.minimum(product, 1, out=product)
            np.maximum(product, -1, out=product)
            total += ones[: len(A)] @ product
        return total

    def _sparse_sum(self, r: np.ndarray) -> np.ndarray:
        columns = self._columns
        product = r[columns.indices]
        product *= columns.data
        np.minimum(product, 1, out=product)
        np.maximum(product, -1, out=product)
        return type(columns)((product, columns.indices, columns.indptr), shape=columns.shape).sum(axis=0)


class CoordinateState:
    """The predictions of W (k, d), kept up to date while single coordinates of it move.

    Rows are the leading axis, so that the few rows of a sparse column are contiguous: z is (n, k).
    """

    def __init__(self, problem, W: np.ndarray):
        self._problem = problem
        self._z = np.ascontiguousarray(problem.predictions(W).T)
        self._columns = problem.X.tocsc() if problem.is_sparse else np.ascontiguousarray(problem.X.T)
        self._y = problem.y[:, None]
        self._block = max(1, BLOCK // len(W))
        self._workspace = np.empty((self._block, len(W)))

    def derivative(self, j: int, threshold: np.ndarray, members: slice) -> np.ndarray:
        """Mean over the rows of clip(r_i x_ij, ±threshold), for the replicates `members` and their thresholds."""
        total = np.zeros(len(threshold))
        for rows, x in self._blocks(j):
            z = self._z[rows, members]
            r = self._problem.loss.derivative(z, self._y[rows], self._workspace[: len(z), members])
            r *= x
            np.minimum(r, threshold, out=r)
            np.maximum(r, -threshold, out=r)
            total += r.sum(axis=0)
        total /= self._problem.n
        return total

    def move(self, j: int, change: np.ndarray, members: slice) -> None:
        """Coordinate j of the replicates `members` has changed by `change`."""
        for rows, x in self._blocks(j):
            self._z[rows, members] += x * change

    def _blocks(self, j: int):
        """Pairs (row indices, their entries (b, 1) of column j)."""
        if self._problem.is_sparse:
            A = self._columns
            first, last = A.indptr[j], A.indptr[j + 1]
            for start in range(first, last, self._block):
                chosen = slice(start, min(start + self._block, last))
                yield A.indices[chosen], A.data[chosen, None]
        else:
            column = self._columns[j]
            for start in range(0, len(column), self._block):
                yield slice(start, start + self._block), column[start : start + self._block, None]
