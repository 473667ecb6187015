"""Rows on a public grid: multiples of 2⁻¹⁶, each within its bound in exact integers (see `exact`).

Many rows, few of which are not what X says, with no copy of X: others stand in their places.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy

from dpbench.datasets.recipes import one_entry_each
from dpbench.errors import PrivacyError
from dpbench.privacy.exact_sums import ROW_BITS
from dpbench.problems.rows import BLOCK, Rows

LARGE = 2**28  # bytes of X from which it is not copied for the sake of some rows
FEW = 1 / 16  # of the rows: where more are others, all are copied


class ShortenedRows(NamedTuple):
    """Which rows, in order, were beyond their bound or no numbers, and those (m, d) that stand for them."""

    rows: np.ndarray
    values: np.ndarray


class ReplacedRows(Rows):
    """The rows of a dense X (n, d), float32 or float64, but those of `short`. `X`, the attribute, is a copy of all."""

    def __init__(self, X: np.ndarray, y: np.ndarray, short: ShortenedRows, kept: dict[str, Any] | None = None) -> None:
        self._raw, self._short = np.asarray(X), short
        self._kept: dict[str, Any] = {"passes": 0} if kept is None else kept  # of all that are made of these rows
        self.sparse, self.dtype = False, self._raw.dtype
        self.single = self.dtype == np.float32
        self.n, self.d = X.shape
        self.y = y.astype(np.float32, copy=False) if self.single else y
        self.__dict__.update(common=None, _entries=None)  # which look at all of X

    @property
    def X(self) -> np.ndarray:
        """(n, d), the copy."""
        if "X" not in self._kept:
            out = np.empty_like(self._raw)
            for start in range(0, self.n, BLOCK):
                there = out[start : start + BLOCK]
                there[...] = self._made(slice(start, start + len(there)), there)
            self._kept["X"] = out
        X: np.ndarray = self._kept["X"]
        return X

    @functools.cached_property
    def in_float64(self) -> Rows:
        """See `Rows`."""
        if not self.single:
            return self
        rows = copy.copy(self)
        rows.single = False
        return rows

    @property
    def in_float32(self) -> Rows | None:
        """See `Rows`."""
        wide = not self.single and self.dtype == np.float32
        return type(self)(self._raw, self.y, self._short, self._kept) if wide else None

    def blocks(self, rows: np.ndarray | None = None, size: int = BLOCK) -> Iterator[tuple[Any, np.ndarray]]:
        """See `Rows`."""
        # Whoever reads all rows often enough gets a copy: see `GridRows._copied`.
        self._kept["passes"] += rows is None
        return super().blocks(rows, size)

    def _room(self, size: int) -> Any:
        return None if self._copied() else np.empty((size, self.d), self.dtype)

    def take(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See `Rows`."""
        return self._made(rows, np.empty((len(rows), self.d), self.dtype)), self.y[rows]

    def largest_norm(self, order: int) -> float:
        """See `Rows`."""
        parts = (A.astype(np.float64, copy=False) for A, _ in self.blocks(None, 8 * BLOCK))
        return float(np.max([np.linalg.norm(A, order, axis=1).max() for A in parts]))

    def within(self, order: int, limit: float) -> bool:
        """See `Rows`."""
        return self.largest_norm(order) <= limit

    def _copied(self) -> bool:
        """Whether blocks are of the copy."""
        return "X" in self._kept

    def _read(self, here: Any, room: Any) -> Any:
        return super()._read(here, None) if room is None else self._made(here, room)

    def _made(self, here: Any, out: np.ndarray) -> np.ndarray:
        """The rows `here`, a slice or their numbers: a part of X, or `out`, which has room for them."""
        if not isinstance(here, slice):
            out = out[: len(here)]
            self._raw.take(here, axis=0, out=out)
        elif len(self._among(here)[0]):
            out = out[: here.stop - here.start]
            np.copyto(out, self._raw[here])
        else:
            return self._raw[here]
        self._replace(here, out)
        return out

    def _replace(self, here: Any, out: np.ndarray) -> None:
        places, which = self._among(here)
        out[places] = self._short.values[which]

    def _among(self, here: Any) -> tuple[np.ndarray, Any]:
        """(places in `here` of rows that others stand for, which of those)."""
        short = self._short.rows
        if isinstance(here, slice):
            first, last = np.searchsorted(short, [here.start, here.stop])
            return short[first:last] - here.start, slice(first, last)
        if not len(short):
            return np.empty(0, int), slice(0, 0)
        place = np.minimum(np.searchsorted(short, here), len(short) - 1)
        # searchsorted gives a place for every row; those that others stand for are found at it.
        these = np.flatnonzero(short[place] == here)
        return these, place[these]


class SubstitutedRows:
    """Of a `Problem`: X is not to be seen, but `rows_of` makes of it and of `_short` what is."""

    rows_of: ClassVar[type[ReplacedRows]] = ReplacedRows
    _short: ShortenedRows | None = None
    _raw: Any
    y: np.ndarray

    @functools.cached_property
    def X(self) -> Any:
        """(n, d) the rows: a copy that is made when it is first asked for, where there is none."""
        return self._rows.X

    @functools.cached_property
    def _rows(self) -> Rows:
        return Rows(self.X, self.y) if self._short is None else self.rows_of(self._raw, self.y, self._short)


PREPARED = 2**16  # entries put on the grid at a time: they stay in the cache
PASSES, COPIED = 12, 2**31  # over all rows, after which a copy of so many bytes, and no more, has paid
UP, DOWN = np.float32(2.0**ROW_BITS), np.float32(2.0**-ROW_BITS)


def on_grid(X: Any, bound: float, norm: str = "l2", *, steady: bool = False, owned: bool = False) -> Any:
    """X (n, d), dense or CSR, rounded towards zero to multiples of 2⁻¹⁶, each row within `bound` in exact integers.

    A function of each row alone: entries that are not finite count as 0, and a row beyond the bound is multiplied by
    bound/‖x‖ and 1 - 2⁻⁴⁰ before it is rounded. A copy, of the type of X. steady: all rows take the same steps, those
    within the bound too. owned: a dense X may be written to, and is what is returned.
    """
    sparse = scipy.sparse.issparse(X)
    X = one_entry_each(X.tocsr()).astype(np.float64, copy=True) if sparse else X
    limit = square_bound(bound) if norm == "l2" else math.floor(Fraction(bound) * 2**ROW_BITS)
    if not sparse and not steady and X.dtype == np.float32 and norm == "l2" and X.shape[1] < 2**16:
        out = X if owned and X.flags.writeable else np.empty_like(X)
        for _ in _in_float32(X, bound, out):
            pass
        return out
    out = X if sparse or (owned and X.flags.writeable) else np.empty(X.shape, X.dtype)
    size = max(1, PREPARED // X.shape[1])
    workspace = np.empty((size, X.shape[1]))
    with np.errstate(all="ignore"):
        for start in range(0, X.shape[0], size):
            block = X[start : start + size]
            A = block.toarray() if sparse else block
            grid = np.multiply(A, 2.0**ROW_BITS, out=workspace[: len(A)])
            np.trunc(grid, out=grid)
            inside = _sizes(grid, norm) <= limit  # and each entry is a number
            # Steady: all rows are shortened and then chosen from, so the time does not depend on which are long.
            some = np.arange(len(A)) if steady else np.flatnonzero(~inside)
            if len(some):
                short = np.trunc(_shortened(A[some].astype(np.float64), bound, norm))
                grid[some] = np.where(inside[some, None], grid[some], short)
                # Measured again: shortening is float arithmetic, which proves no bound.
                if not (_sizes(grid[some], norm) <= limit).all():
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


def _in_float32(X: np.ndarray, bound: float, out: np.ndarray | None) -> Iterator[ShortenedRows]:
    """Float32 rows X of ‖x‖₂ ≤ bound ≤ 2⁸ put on the grid, in `out` if there is one; yields those that are shortened.

    In float32: a number of 24 bits stays one, scaled and rounded. Integers have the last word where float32 does not
    see that a row is within, see `recipes.rows_beyond`.
    """
    n, d = X.shape
    size = max(1, PREPARED // d)
    limit = square_bound(bound)
    # Below it float32's own error cannot hide a row that is too long (see `recipes.rows_beyond`).
    sure = np.float32(limit * (1 - (d + 2) * 2.0**-23))
    workspace = np.empty((size, d), np.float32)  # `out` may be X, of which long rows are read again
    with np.errstate(all="ignore"):
        for start in range(0, n, size):
            block = X[start : start + size]
            grid = workspace[: len(block)]
            np.multiply(block, UP, out=grid)
            np.trunc(grid, out=grid)
            close = np.flatnonzero(~(np.einsum("ij,ij->i", grid, grid) < sure))
            beyond = close[~(_sizes(grid[close].astype(np.float64), "l2") <= limit)] if len(close) else close
            if len(beyond):
                short = np.trunc(_shortened(block[beyond].astype(np.float64), bound, "l2"))
                if not (_sizes(short, "l2") <= limit).all():
                    raise PrivacyError("rows could not be brought within their bound on the grid")
                grid[beyond] = short
                yield ShortenedRows(start + beyond, (short * 2.0**-ROW_BITS).astype(np.float32))
            if out is not None:
                np.multiply(grid, DOWN, out=out[start : start + size])


def short_rows(X: Any, bound: float, norm: str) -> ShortenedRows | None:
    """What `GridRows` takes; None for rows that are no float32, or have another norm, or too many to be kept apart."""
    if not isinstance(X, np.ndarray) or X.dtype != np.float32 or norm != "l2" or X.shape[1] >= 2**16:
        return None
    blocks, count = [ShortenedRows(np.empty(0, int), np.empty((0, X.shape[1]), np.float32))], 0
    for one in _in_float32(X, bound, None):
        blocks.append(one)
        count += len(one.rows)
        # With many of them a copy of all is smaller and faster than looking them up.
        if count > FEW * len(X):
            return None
    return ShortenedRows(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))


class GridRows(ReplacedRows):
    """Float32 rows as `on_grid` has them, block by block as they are read: there is no copy of them.

    X: (n, d) the rows before; `short` is of `short_rows`. The attribute `X` makes the copy, for who asks for it, and
    for who reads all rows again and again, where they are not too many.
    """

    def _copied(self) -> bool:
        return super()._copied() or (self._kept["passes"] > PASSES and self._raw.nbytes <= COPIED)

    def _made(self, here: Any, out: np.ndarray) -> np.ndarray:
        raw = self._raw[here] if isinstance(here, slice) else self._raw.take(here, axis=0)
        out = out[: len(raw)]
        with np.errstate(all="ignore"):  # of rows that are put in place next
            np.multiply(raw, UP, out=out)
            np.trunc(out, out=out)
            np.multiply(out, DOWN, out=out)
        self._replace(here, out)
        return out
