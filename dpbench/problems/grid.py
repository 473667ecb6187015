"""Rows on a public grid: multiples of 2⁻¹⁶, each within its bound in exact integers (see `exact`)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import scipy

from dpbench.datasets.recipes import one_entry_each
from dpbench.errors import PrivacyError
from dpbench.privacy.exact.sums import ROW_BITS
from dpbench.problems.replaced import FEW, ReplacedRows, Short

PREPARED = 2**16  # entries put on the grid at a time: they stay in the cache
PASSES, COPIED = 12, 2**31  # over all rows, after which a copy of so many bytes, and no more, has paid
UP, DOWN = np.float32(2.0**ROW_BITS), np.float32(2.0**-ROW_BITS)


def on_grid(X: Any, bound: float, norm: str = "l2", *, steady: bool = False) -> Any:
    """X (n, d), dense or CSR, rounded towards zero to multiples of 2⁻¹⁶, each row within `bound` in exact integers.

    A function of each row alone: entries that are not finite count as 0, and a row beyond the bound is multiplied by
    bound/‖x‖ and 1 - 2⁻⁴⁰ before it is rounded. A copy, of the type of X. steady: all rows take the same steps, those
    within the bound too.
    """
    sparse = scipy.sparse.issparse(X)
    X = one_entry_each(X.tocsr()).astype(np.float64, copy=True) if sparse else X
    limit = square_bound(bound) if norm == "l2" else math.floor(Fraction(bound) * 2**ROW_BITS)
    if not sparse and not steady and X.dtype == np.float32 and norm == "l2" and X.shape[1] < 2**16:
        out = np.empty_like(X)
        for _ in _in_float32(X, bound, out):
            pass
        return out
    out = X if sparse else np.empty(X.shape, X.dtype)
    size = max(1, PREPARED // X.shape[1])
    workspace = np.empty((size, X.shape[1]))
    with np.errstate(all="ignore"):
        for start in range(0, X.shape[0], size):
            block = X[start : start + size]
            A = block.toarray() if sparse else block
            grid = np.multiply(A, 2.0**ROW_BITS, out=workspace[: len(A)])
            np.trunc(grid, out=grid)
            inside = _sizes(grid, norm) <= limit  # and each entry is a number
            beyond = np.flatnonzero(~inside)
            if steady:
                short = np.trunc(_shortened(A.astype(np.float64), bound, norm))
                np.copyto(grid, np.where(inside[:, None], grid, short))
                if not (_sizes(grid, norm) <= limit).all():
                    raise PrivacyError("rows could not be brought within their bound on the grid")
            elif len(beyond):
                grid[beyond] = np.trunc(_shortened(A[beyond].astype(np.float64), bound, norm))
                if not (_sizes(grid[beyond], norm) <= limit).all():
                    raise PrivacyError("rows could not be brought within their bound on the grid")
            if sparse:
                part = slice(X.indptr[start], X.indptr[min(start + size, X.shape[0])])
                lines = np.repeat(np.arange(len(A)), np.diff(X.indptr[start : start + len(A) + 1]))
                out.data[part] = grid[lines, X.indices[part]] * 2.0**-ROW_BITS
            else:
                np.multiply(grid, 2.0**-ROW_BITS, out=out[start : start + size], casting="same_kind")
    return out


def _shortened(A: np.ndarray, bound: float, norm: str) -> np.ndarray:
    """Rows A in steps of the grid: entries that are no numbers are 0; a row beyond the bound then is just below it."""
    A = np.nan_to_num(A, nan=0.0, posinf=0.0, neginf=0.0)
    largest = np.maximum(np.abs(A).max(axis=1, keepdims=True), np.finfo(float).tiny)
    A = A / largest  # so that squares are finite
    size = np.sqrt((A * A).sum(axis=1, keepdims=True)) if norm == "l2" else np.abs(A).sum(axis=1, keepdims=True)
    return A * np.minimum(largest, bound * (1 - 2.0**-40) / np.maximum(size, np.finfo(float).tiny)) * 2.0**ROW_BITS


def square_bound(bound: float) -> int:
    """⌊R² 2³²⌋: the largest ‖x‖² of a row on the grid with ‖x‖ ≤ R, in squares of its step."""
    return math.floor(Fraction(bound) ** 2 * 2 ** (2 * ROW_BITS))


def _sizes(grid: np.ndarray, norm: str) -> np.ndarray:
    """(b,) ‖x‖₂² or ‖x‖₁ of integer rows: exact below 2⁵³, and not below 2⁵² where it is larger."""
    return np.einsum("ij,ij->i", grid, grid) if norm == "l2" else np.abs(grid).sum(axis=1)


def _in_float32(X: np.ndarray, bound: float, out: np.ndarray | None) -> Iterator[Short]:
    """Float32 rows X of ‖x‖₂ ≤ bound ≤ 2⁸ put on the grid, in `out` if there is one; yields those that are shortened.

    In float32: a number of 24 bits stays one, scaled and rounded. Integers have the last word where float32 does not
    see that a row is within, see `recipes.rows_beyond`.
    """
    n, d = X.shape
    size = max(1, PREPARED // d)
    limit = square_bound(bound)
    sure = np.float32(limit * (1 - (d + 2) * 2.0**-23))
    workspace = np.empty((size if out is None else 0, d), np.float32)
    with np.errstate(all="ignore"):
        for start in range(0, n, size):
            block = X[start : start + size]
            grid = workspace[: len(block)] if out is None else out[start : start + size]
            np.multiply(block, UP, out=grid)
            np.trunc(grid, out=grid)
            close = np.flatnonzero(~(np.einsum("ij,ij->i", grid, grid) < sure))
            beyond = close[~(_sizes(grid[close].astype(np.float64), "l2") <= limit)] if len(close) else close
            if len(beyond):
                short = np.trunc(_shortened(block[beyond].astype(np.float64), bound, "l2"))
                if not (_sizes(short, "l2") <= limit).all():
                    raise PrivacyError("rows could not be brought within their bound on the grid")
                grid[beyond] = short
                yield Short(start + beyond, (short * 2.0**-ROW_BITS).astype(np.float32))
            if out is not None:
                np.multiply(grid, DOWN, out=grid)


def short_rows(X: Any, bound: float, norm: str) -> Short | None:
    """What `GridRows` takes; None for rows that are no float32, or have another norm, or too many to be kept apart."""
    if not isinstance(X, np.ndarray) or X.dtype != np.float32 or norm != "l2" or X.shape[1] >= 2**16:
        return None
    found, count = [Short(np.empty(0, int), np.empty((0, X.shape[1]), np.float32))], 0
    for one in _in_float32(X, bound, None):
        found.append(one)
        count += len(one.rows)
        if count > FEW * len(X):
            return None
    return Short(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


class GridRows(ReplacedRows):
    """Float32 rows as `on_grid` has them, block by block as they are read: there is no copy of them.

    X: (n, d) the rows before; `short` is of `short_rows`. The attribute `X` makes the copy, for who asks for it, and
    for who reads all rows again and again, where they are not too many.
    """

    def _copied(self) -> bool:
        return super()._copied() or (self._kept["passes"] > PASSES and self._raw.nbytes <= COPIED)

    def _read(self, here: Any, out: np.ndarray) -> np.ndarray:
        raw = self._raw[here] if isinstance(here, slice) else self._raw.take(here, axis=0)
        out = out[: len(raw)]
        with np.errstate(all="ignore"):  # of rows that are put in place next
            np.multiply(raw, UP, out=out)
            np.trunc(out, out=out)
            np.multiply(out, DOWN, out=out)
        self._replace(here, out)
        return out
