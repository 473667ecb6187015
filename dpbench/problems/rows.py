"""The hot paths: sums over the rows of X for a batch of iterates, one block of rows at a time.

A block of X stays in the second-level cache between the product that reads it for the predictions and the
one that reads it for the result, and nothing of size (n, k) or (n, d) is ever made. Measured on one core with
128 … 4,096 rows a block, 1,024 is within 12 % of the best: for the gradient at k = 15, 50, 105 and d = 20 … 784, for
the Hessian at k = 1, 4, 15 and d = 20, 54, 105, 784. Hence one constant; where k and d are small, so that a block is
done in less time than its calls of NumPy take, sums take longer blocks (at k = 1, d = 20 a gradient takes 17 instead of
23 ns a row, 6 instead of 16 in float32). Workspaces are per call, so threads do not share.

Rows kept as float32 are multiplied in float32, and the products of each block summed in float64: half the bytes and
twice the numbers a cycle, for a relative error of about 1e-7 in each gradient. So are Hessians.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy

from dpbench.datasets.recipes import all_within, row_norms
from dpbench.problems.fast_rows import LANES, CommonEntries, find_common_entries, kernels

BLOCK = 1024
SINGLE, SYMMETRIC = 2048, 32  # of float32 Hessians: rows a product, beyond twice that OpenBLAS is slower; columns
LONGEST, CACHED = 8192, 640 * 1024  # rows, and bytes with their predictions, of the blocks of sums
TOGETHER = 32  # replicates whose (d, k) sums and predictions stay in the first-level cache, for d about 100
FEW = 1 / 5  # of X's entries: with so many (adult-max: 1/8) products one by one halve a gradient's time for k ≥ 15
MOSTLY_ZERO = 1 / 3  # a row's m nonzeros make m²/2 products, one by one, where all d² run at full speed
FEW_ROWS, FEW_COLUMNS = 64, 6  # with fewer, to look for what is usual takes longer than it saves

Pointwise = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]  # (z, y, out) -> out, see `losses`


class Rows:
    """The rows of X (n, d) with their labels y (n,), in blocks. X is dense C-ordered float64 or float32, or CSR.

    Every method takes `rows`: None for all rows, else row indices (with repetition if they repeat).
    """

    def __init__(self, X: Any, y: np.ndarray) -> None:
        self.sparse = scipy.sparse.issparse(X)
        # A plain view: slicing a np.memmap instance costs two microseconds a block.
        self.X: Any = X if self.sparse else np.asarray(X)
        self.dtype = self.X.dtype
        self.single = not self.sparse and self.dtype == np.float32
        self.y = y.astype(np.float32, copy=False) if self.single else y
        self.n, self.d = X.shape

    @cached_property
    def in_float64(self) -> Rows:
        """The same rows, multiplied in float64: blocks of float32 become float64 on the way."""
        if not self.single:
            return self
        rows = Rows(self.X, self.y)
        rows.single = False
        rows.__dict__.update(common=None, _entries=None)  # both are of a float64 X
        return rows

    @property
    def in_float32(self) -> Rows | None:
        """The same rows, multiplied in float32 as they are kept, where these widen them; else None."""
        return None if self.single or self.sparse or self.dtype != np.float32 else Rows(self.X, self.y)

    @cached_property
    def columns(self) -> Any:
        """X by its columns: (d, n) C-ordered, or CSC; one copy of the data."""
        return self.X.tocsc() if self.sparse else np.ascontiguousarray(self.X.T)

    @cached_property
    def common(self) -> CommonEntries | None:
        """What all but few entries of a dense X are, as one-hot columns make it, by 1,024 rows or more; else None.

        It is not looked for in a small X, where nothing would be saved.
        """
        if self.sparse:
            return None
        sample = self.X[:: max(1, self.n // 1024)]
        if np.count_nonzero(sample) <= MOSTLY_ZERO * sample.size:
            return CommonEntries.zeros(self.n, self.d)
        return None if self.n < FEW_ROWS or self.d < FEW_COLUMNS else find_common_entries(self.X, MOSTLY_ZERO)

    def blocks(self, rows: np.ndarray | None = None, size: int = BLOCK) -> Iterator[tuple[Any, np.ndarray]]:
        """Pairs (block of X, block of y); a block of X may be a workspace, valid until the next."""
        n = self.n if rows is None else len(rows)
        room = self._room(min(size, n))
        # float32 rows that are worked on in float64 are widened block by block.
        wide = None if self.single or self.dtype == np.float64 else np.empty((min(size, n), self.d))
        for start in range(0, n, size):
            here = slice(start, min(start + size, n)) if rows is None else rows[start : start + size]
            A, y = self._read(here, room), self.y[here]
            if wide is not None:
                np.copyto(wide[: len(y)], A)
                A, y = wide[: len(y)], y.astype(np.float64)
            yield A, y

    def _room(self, size: int) -> Any:
        """A workspace for so many rows, where `_read` takes one."""
        return None

    def _read(self, here: Any, room: Any) -> Any:
        """The rows `here`, a slice or their numbers; in `room`, or where they are."""
        return self.X[here] if self.sparse or isinstance(here, slice) else self.X.take(here, axis=0)

    def predictions(
        self, W: np.ndarray, rows: np.ndarray | None = None, size: int = BLOCK
    ) -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
        """Triples (block of X, block of y, predictions z (k, b)); z is a workspace, valid until the next."""
        workspace = np.empty((len(W), size), np.float32 if self.single else np.float64)
        W = W.astype(workspace.dtype, copy=False)
        flat = workspace.reshape(-1)
        for A, y in self.blocks(rows, size):
            z = flat[: len(W) * len(y)].reshape(len(W), len(y))
            if self.sparse:
                z[...] = (A @ W.T).T
            else:
                np.matmul(W, A.T, out=z)
            yield A, y, z

    def _size(self, k: int) -> int:
        """Rows of a block of a sum for k iterates."""
        if self.sparse:
            return BLOCK
        if self.dtype == np.float64:
            fitting, most = CACHED // ((self.d + k) * 8), LONGEST
        elif self.single:
            fitting, most = 2 * CACHED // ((self.d + k) * 4), 2 * LONGEST
        else:
            return self.widened_size(self.d, k)
        return min(most, max(1, fitting // BLOCK) * BLOCK)

    @staticmethod
    def widened_size(d: int, k: int = 1) -> int:
        """Rows of a block of a sum over float32 rows in float64: a number of the shape alone."""
        return min(LONGEST, max(1, 4 * CACHED // ((d + k) * 12 * BLOCK)) * BLOCK)

    def all_predictions(self, W: np.ndarray) -> np.ndarray:
        """<x_i, w>, (k, n), of the type of W."""
        if self.sparse:
            return (self.X @ W.T).T
        return W @ self.X.T if self.dtype == W.dtype else (W.astype(self.dtype) @ self.X.T).astype(W.dtype)

    def sum(self, function: Pointwise, W: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """(k,) sums over rows of function(<x_i, w>, y_i)."""
        total = np.zeros(len(W))
        for _, y, z in self.predictions(W, rows, self._size(len(W))):
            total += function(z, y, z).sum(axis=1, dtype=np.float64)
        return total

    def weighted_sum(self, function: Pointwise, W: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """(k, d) sums over rows of function(<x_i, w>, y_i) x_i."""
        # Few replicates fill no vector register, and BLAS on the dense rows is faster then.
        if rows is None and len(W) >= LANES and (compiled := kernels()) and self._entries is not None:
            return self._weighted_sum_of_entries(compiled, self._entries, function, W)
        total = np.zeros((len(W), self.d))
        for A, y, z in self.predictions(W, rows, self._size(len(W))):
            self._add_rows(function(z, y, z), A, total)
        return total

    @cached_property
    def _entries(self) -> Any:
        """A dense float64 X as CSR where few of its entries are not 0; else None."""
        if self.sparse or self.single or np.count_nonzero(self.X) > FEW * self.X.size:
            return None
        return scipy.sparse.csr_array(self.X)

    def _weighted_sum_of_entries(
        self, compiled: SimpleNamespace, entries: Any, function: Pointwise, W: np.ndarray
    ) -> np.ndarray:
        """The same for many replicates together, from what is not 0 in each row; replicates last, in groups."""
        data, indices, indptr = entries.data, entries.indices, entries.indptr
        total = np.empty((len(W), self.d))
        for first in range(0, len(W), TOGETHER):
            group = W[first : first + TOGETHER]
            lanes = -(-len(group) // LANES) * LANES
            V, sums, workspace = np.zeros((self.d, lanes)), np.zeros((self.d, lanes)), np.empty((BLOCK, lanes))
            V[:, : len(group)] = group.T
            for start in range(0, self.n, BLOCK):
                y = self.y[start : start + BLOCK, None]
                z = workspace[: len(y)]
                compiled.products(data, indices, indptr, start, V, z)
                compiled.add_rows(data, indices, indptr, start, function(z, y, z), sums)
            total[first : first + TOGETHER] = sums[:, : len(group)].T
        return total

    def sum_and_weighted_sum(
        self, value: Pointwise, derivative: Pointwise, W: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Both of the above from one product for the predictions."""
        total, weighted = np.zeros(len(W)), np.zeros((len(W), self.d))
        for A, y, z in self.predictions(W, size=self._size(len(W))):
            total += value(z, y, np.empty_like(z)).sum(axis=1, dtype=np.float64)
            self._add_rows(derivative(z, y, z), A, weighted)
        return total, weighted

    def gram(
        self, function: Pointwise, W: np.ndarray, rows: np.ndarray | None = None, *, convex: bool = True
    ) -> np.ndarray:
        """(k, d, d) sums over rows of h_i x_i x_iᵀ, h_i = function(<x_i, w>, y_i); h ≥ 0 where `convex`."""
        if len(W) > 1 and not self.single and (compiled := kernels()) and self.common:
            return self._gram_of_common(compiled, self.common, function, W, rows)
        total = np.zeros((len(W), self.d, self.d))
        if self.single:
            return self._single_gram(function, W, rows, convex)
        add = self._add_sparse_gram if self.sparse else self._add_gram if convex else self._add_signed_gram
        workspace = np.empty((0 if self.sparse else BLOCK, self.d))
        for A, y, z in self.predictions(W, rows):
            A = A.astype(np.float64, copy=False)
            for h, H in zip(function(z, y, z).astype(np.float64, copy=False), total, strict=True):
                add(h, A, H, workspace)
        if not self.sparse:
            total += np.tril(total, -1).swapaxes(1, 2)
        return total

    def _single_gram(self, function: Pointwise, W: np.ndarray, rows: np.ndarray | None, convex: bool) -> np.ndarray:
        """The same of a float32 X: products of a part of a block in float32, added in float64.

        Of few columns both halves are computed, of more of a convex loss one: NumPy knows BᵀB by its pointers.
        """
        total = np.zeros((len(W), self.d, self.d))
        # √h exists for h ≥ 0 only, and half of a small product saves nothing.
        half = convex and self.d >= SYMMETRIC
        workspace = np.empty((SINGLE, self.d), np.float32)
        for A, y, z in self.predictions(W, rows, self._size(len(W))):
            weights = function(z, y, z)
            weights = np.sqrt(weights, out=weights) if half else weights
            for start in range(0, len(y), SINGLE):
                part = A[start : start + SINGLE]
                scaled = workspace[: len(part)]
                for h, H in zip(weights[:, start : start + SINGLE, None], total, strict=True):
                    np.multiply(part, h, out=scaled)
                    H += scaled.T @ (scaled if half else part)
        return (total + total.swapaxes(1, 2)) / 2

    def _gram_of_common(
        self, compiled: SimpleNamespace, common: CommonEntries, function: Pointwise, W: np.ndarray, rows: Any
    ) -> np.ndarray:
        """The same for all replicates together, from what is unusual in each row.

        With g = h s²: Σ h x xᵀ = Σ g r rᵀ + (Σ g r) bᵀ + b (Σ g r)ᵀ + (Σ g) b bᵀ, the last from a 1 behind each r.
        """
        k, shifted = len(W), bool(common.entry.any())
        size = self.d + shifted
        # Lanes beyond k keep weight 0: the compiled loop is fastest on a multiple of LANES.
        lanes = -(-k // LANES) * LANES
        weights = np.zeros((BLOCK, lanes))
        total = np.zeros((size, size, lanes))
        start = 0
        for A, y, z in self.predictions(W, rows):
            here = slice(start, start + len(y))
            inverse = common.inverse[here if rows is None else rows[here]]
            weights[: len(y), :k] = (function(z, y, z) / inverse**2).T
            compiled.gram(A, inverse, common.entry, common.slack, weights[: len(y)], total)
            start += len(y)
        sums = np.ascontiguousarray(np.moveaxis(total[..., :k], 2, 0))
        # The loop adds up the lower triangle alone.
        sums += np.tril(sums, -1).swapaxes(1, 2)
        if not shifted:
            return sums
        b, d = common.entry, self.d
        cross = sums[:, d, :d, None] * b
        return sums[:, :d, :d] + (cross + cross.swapaxes(1, 2)) + sums[:, d, d, None, None] * np.outer(b, b)

    def weighted_gram(self, weights: np.ndarray | None = None) -> np.ndarray:
        """(d, d) Σ_i weights_i x_i x_iᵀ for weights (n,) ≥ 0, by default 1."""
        total = np.zeros((self.d, self.d))
        workspace = np.empty((BLOCK, self.d))
        for start, (A, y) in zip(range(0, self.n, BLOCK), self.blocks(), strict=True):
            add = self._add_sparse_gram if self.sparse else self._add_gram
            h = np.ones(len(y)) if weights is None else weights[start : start + BLOCK].copy()
            add(h, A.astype(np.float64, copy=False), total, workspace)
        return total if self.sparse else total + np.tril(total, -1).T

    def column_squares(self) -> np.ndarray:
        """(d,) sums over the rows of x_ij²."""
        total = np.zeros(self.d)
        for A, _ in self.blocks():
            total += np.asarray(A.power(2).sum(axis=0)).ravel() if self.sparse else (A * A).sum(axis=0)
        return total

    def label_moments(self, bound: float) -> np.ndarray:
        """(d,) Σ_i y_i x_i with labels clipped to ±bound."""
        total = np.zeros((1, self.d))
        for A, y in self.blocks():
            self._add_rows(np.clip(y, -bound, bound)[None], A, total)
        return total[0]

    def label_sum(self) -> float:
        """Σ_i y_i."""
        return float(self.y.sum(dtype=np.float64))

    def largest_norm(self, order: int) -> float:
        """max_i ‖x_i‖₁ or ‖x_i‖₂; NaN where an entry is."""
        size = 8 * BLOCK
        return float(np.max([row_norms(self.X[i : i + size], order).max() for i in range(0, self.n, size)]))

    def within(self, order: int, limit: float) -> bool:
        """Whether all rows have ‖x‖₁ or ‖x‖₂ ≤ limit, and numbers alone."""
        return all_within(self.X, order, limit)

    def take(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows (m,) themselves: features (m, d), dense, and labels (m,)."""
        return (self.X[rows].toarray() if self.sparse else self.X[rows]), self.y[rows]

    def _add_rows(self, C: np.ndarray, A: Any, total: np.ndarray) -> None:
        """total (k, d) += C (k, b) @ A (b, d)."""
        total += (A.T @ C.T).T if self.sparse else C @ A

    @staticmethod
    def _add_gram(h: np.ndarray, A: np.ndarray, H: np.ndarray, workspace: np.ndarray) -> None:
        """Lower triangle of H += Aᵀ diag(h) A, h ≥ 0: half the work of a general product."""
        scaled = workspace[: len(h)]
        np.einsum("ij,i->ij", A, np.sqrt(h, out=h), out=scaled)  # a fifth faster than broadcasting
        _syrk(1.0, scaled, H)

    @staticmethod
    def _add_signed_gram(h: np.ndarray, A: np.ndarray, H: np.ndarray, workspace: np.ndarray) -> None:
        """The same for h of both signs: rows with h ≥ 0 are added, those with h < 0 subtracted."""
        order = np.argsort(h < 0, kind="stable")
        positive = np.count_nonzero(h >= 0)
        # Adding and subtracting separately: syrk takes BᵀB alone, without signs.
        scaled = np.take(A, order, axis=0, out=workspace[: len(h)], mode="clip")  # clip: no bounds buffer
        root = np.sqrt(np.abs(h))[order]
        scaled *= root[:, None]
        _syrk(1.0, scaled[:positive], H)
        _syrk(-1.0, scaled[positive:], H)

    @staticmethod
    def _add_sparse_gram(h: np.ndarray, A: Any, H: np.ndarray, _: np.ndarray) -> None:
        H += (A.T @ A.multiply(h[:, None]).tocsr()).toarray()


def _syrk(sign: float, B: np.ndarray, H: np.ndarray) -> None:
    """Lower triangle of H (d, d) += sign · BᵀB, in place, for B (b, d) and H both C-ordered."""
    if len(B):
        scipy.linalg.blas.dsyrk(sign, B.T, beta=1.0, c=H.T, overwrite_c=1)
