"""Many rows, few of which are not what X says, with no copy of X: others stand in their places."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dpbench.problems.kernels import BLOCK, Rows
from dpbench.problems.problem import Problem

LARGE = 2**28  # bytes of X from which it is not copied for the sake of some rows
FEW = 1 / 16  # of the rows: where more are others, all are copied


class Short(NamedTuple):
    """Which rows, in order, were beyond their bound or no numbers, and those (m, d) that stand for them."""

    rows: np.ndarray
    values: np.ndarray


class ReplacedRows(Rows):
    """The rows of a dense X (n, d), float32 or float64, but those of `short`. `X`, the attribute, is a copy of all."""

    def __init__(self, X: np.ndarray, y: np.ndarray, short: Short, kept: dict[str, Any] | None = None) -> None:
        self._raw, self._short = np.asarray(X), short
        self._kept: dict[str, Any] = {"passes": 0} if kept is None else kept  # of all that are made of these rows
        self.sparse, self.dtype = False, self._raw.dtype
        self.single = self.dtype == np.float32
        self.n, self.d = X.shape
        self.y = y.astype(np.float32, copy=False) if self.single else y
        self.__dict__.update(usual=None, groups=None, _entries=None)  # which look at all of X

    @property
    def X(self) -> np.ndarray:
        """(n, d), the copy."""
        if "X" not in self._kept:
            out = np.empty_like(self._raw)
            for start in range(0, self.n, BLOCK):
                there = out[start : start + BLOCK]
                there[...] = self._read(slice(start, start + len(there)), there)
            self._kept["X"] = out
        found: np.ndarray = self._kept["X"]
        return found

    @functools.cached_property
    def widened(self) -> Rows:
        """See `Rows`."""
        if not self.single:
            return self
        found = copy.copy(self)
        found.single = False
        return found

    @property
    def rough(self) -> Rows | None:
        """See `Rows`."""
        wide = not self.single and self.dtype == np.float32
        return type(self)(self._raw, self.y, self._short, self._kept) if wide else None

    def __sizeof__(self) -> int:
        return sum(array.nbytes for array in (self._raw, self.y, *self._short))

    def blocks(self, rows: np.ndarray | None = None, size: int = BLOCK) -> Iterator[tuple[Any, np.ndarray]]:
        """See `Rows`; a block of X may be a workspace, valid until the next."""
        self._kept["passes"] += rows is None
        if self._copied():
            yield from super().blocks(rows, size)
            return
        n = self.n if rows is None else len(rows)
        workspace = np.empty((min(size, n), self.d), self.dtype)
        wide = None if self.single or self.dtype == np.float64 else np.empty(workspace.shape)
        for start in range(0, n, size):
            here = slice(start, min(start + size, n)) if rows is None else rows[start : start + size]
            A, y = self._read(here, workspace), self.y[here]
            if wide is not None:
                np.copyto(wide[: len(y)], A)
                A, y = wide[: len(y)], y.astype(np.float64)
            yield A, y

    def take(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See `Rows`."""
        return self._read(rows, np.empty((len(rows), self.d), self.dtype)), self.y[rows]

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

    def _read(self, here: Any, out: np.ndarray) -> np.ndarray:
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
        these = np.flatnonzero(short[place] == here)
        return these, place[these]


class Apart:
    """Of a `Problem`: X is not to be seen, but `rows_of` makes of it and of `_short` what is."""

    rows_of: ClassVar[type[ReplacedRows]] = ReplacedRows
    _short: Short | None = None
    _raw: Any
    y: np.ndarray

    def _hide(self, short: Short) -> None:
        self._short, self._raw = short, self.__dict__.pop("X")

    @functools.cached_property
    def X(self) -> Any:
        """(n, d) the rows: a copy that is made when it is first asked for, where there is none."""
        return self._rows.X

    @functools.cached_property
    def _rows(self) -> Rows:
        return Rows(self.X, self.y) if self._short is None else self.rows_of(self._raw, self.y, self._short)


class ReplacedProblem(Apart, Problem):
    """A `Problem` on the rows of X but those of `short`; the caller has seen that all are within the bound."""

    def __init__(self, X: np.ndarray, y: np.ndarray, short: Short, **declared: Any) -> None:
        super().__init__(X, y, rows_checked=True, **declared)
        self._hide(short)
