"""A problem whose rows lie elsewhere, in shards: the sums over each are taken where it is and added up here, in order.

A shard is a block that stays where it is: what asks it sends iterates and gets partial sums back, never rows, but for
methods that sample single ones. Sums differ from those of one place by rounding.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from dpbench.errors import UserError
from dpbench.problems import damped_newton, losses
from dpbench.problems.columns import Columns
from dpbench.problems.declaration import Declaration
from dpbench.problems.kernels import Pointwise, Rows
from dpbench.problems.losses import Loss
from dpbench.problems.optimum import NoOptimum, Optimum, find_optimum
from dpbench.problems.problem import Problem
from dpbench.problems.risk import EmpiricalRisk


class Elsewhere(UserError):
    """What was asked for takes all rows in one place."""


class Call(NamedTuple):
    """function(rows of the shard, *arguments), to be made where the shard is."""

    shard: int
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


Ask = Callable[[Sequence[Call]], Sequence[Any]]  # what the calls return, in their order


class Shards:
    """The interface of `Rows` over shards of `sizes` rows each, in their order, which `ask` asks."""

    def __init__(self, ask: Ask, sizes: Sequence[int], d: int, *, sparse: bool = False, single: bool = False) -> None:
        self._ask, self.d, self.sparse, self.single = ask, d, sparse, single
        self._starts = np.concatenate([[0], np.cumsum(sizes)])
        self.n = int(self._starts[-1])
        self._wide = False

    @cached_property
    def widened(self) -> Shards:
        """See `Rows`."""
        if not self.single:
            return self
        found = copy.copy(self)
        found.single, found._wide = False, True  # noqa: SLF001 - a copy of itself
        return found

    @property
    def rough(self) -> Shards | None:
        """See `Rows`."""
        if not self._wide:
            return None
        found = copy.copy(self)
        found.single, found._wide = True, False  # noqa: SLF001 - a copy of itself
        return found

    def each(self, function: Callable[..., Any], *arguments: Any) -> Sequence[Any]:
        """What function(rows, *arguments) gives for every shard."""
        return self._ask([self._call(i, function, arguments) for i in range(len(self._starts) - 1)])

    def _call(self, shard: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Call:
        return Call(shard, _widely, (function, *arguments)) if self._wide else Call(shard, function, arguments)

    def parts(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], rows: np.ndarray | None = None
    ) -> Sequence[Any]:
        """What function(rows, *arguments, chosen) gives for every shard; chosen: None, or those of `rows` in it."""
        return (
            self.each(function, *arguments, None)
            if rows is None
            else self._ask(self._split(function, arguments, rows)[1])
        )

    def sum(self, function: Pointwise, W: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        return self._total(Rows.sum, (function, W), rows, (len(W),))

    def weighted_sum(self, function: Pointwise, W: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        return self._total(Rows.weighted_sum, (function, W), rows, W.shape)

    def sum_and_weighted_sum(
        self, value: Pointwise, derivative: Pointwise, W: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        found = self.each(Rows.sum_and_weighted_sum, value, derivative, W)
        return _added([a for a, _ in found]), _added([b for _, b in found])

    def gram(
        self, function: Pointwise, W: np.ndarray, rows: np.ndarray | None = None, *, convex: bool = True
    ) -> np.ndarray:
        return self._total(_gram, (convex, function, W), rows, (*W.shape, self.d))

    def weighted_gram(self) -> np.ndarray:
        return _added(self.each(Rows.weighted_gram))

    def column_squares(self) -> np.ndarray:
        return _added(self.each(Rows.column_squares))

    def label_moments(self, bound: float) -> np.ndarray:
        return _added(self.each(Rows.label_moments, bound))

    def label_sum(self) -> float:
        return float(sum(self.each(Rows.label_sum)))

    def largest_norm(self, order: int) -> float:
        return float(np.max(self.each(Rows.largest_norm, order)))

    def within(self, order: int, limit: float) -> bool:
        return all(self.each(Rows.within, order, limit))

    def clipped_gradient(self, loss: Loss, share: np.ndarray, W: np.ndarray, clip: np.ndarray) -> np.ndarray:
        """See `Columns`."""
        return _added(self.each(_clipped_gradient, loss, share, W, clip))

    def take(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        X, y = np.empty((len(rows), self.d)), np.empty(len(rows))
        where, calls = self._split(Rows.take, (), rows)
        for positions, (A, b) in zip(where, self._ask(calls), strict=True):
            X[positions], y[positions] = A, b
        return X, y

    def all_predictions(self, W: np.ndarray) -> NoReturn:
        raise Elsewhere("asks for the prediction of every row at once, and the rows lie in shards")

    def _total(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], rows: np.ndarray | None, shape: tuple[int, ...]
    ) -> np.ndarray:
        if rows is None:
            return _added(self.each(function, *arguments))
        if not len(rows):
            return np.zeros(shape)
        return _added(self._ask(self._split(function, arguments, rows)[1]))

    def _split(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], rows: np.ndarray
    ) -> tuple[list[np.ndarray], list[Call]]:
        """(positions in `rows`, the call with the indices there behind its arguments) of each shard that has some."""
        shard = np.searchsorted(self._starts, rows, side="right") - 1
        asked = np.unique(shard)
        where = [np.flatnonzero(shard == i) for i in asked]
        return where, [
            self._call(int(i), function, (*arguments, rows[at] - self._starts[i]))
            for i, at in zip(asked, where, strict=True)
        ]


class ShardedProblem(Problem):
    """A `Problem` on `Shards`: algorithms run on it unchanged. What takes all rows in one place raises `Elsewhere`.

    row_bound, folder, data_hash, declared: as of `EmpiricalRisk`.
    """

    def __init__(
        self,
        shards: Shards,
        *,
        row_bound: float | None = None,
        folder: str | Path | None = None,
        data_hash: str = "",
        **declared: Any,
    ) -> None:
        self.features = shards.d
        Declaration.__init__(
            self, shards.n, shards.d * losses.get(declared.get("loss", "logistic")).outputs, **declared
        )
        self._shards = self._rows = shards  # type: ignore[assignment]
        self.folder = None if folder is None else Path(folder)
        self.data_hash = data_hash
        self.row_bound = self._checked_bound(row_bound)

    @property
    def X(self) -> Any:
        """Raises Elsewhere, as `y`, `row_norms` and `coordinate_state` do."""
        raise Elsewhere("works on the rows themselves, and they lie in shards")

    y = X

    @cached_property
    def row_norms(self) -> np.ndarray:
        return self.X

    def coordinate_state(self, W: np.ndarray) -> NoReturn:
        raise Elsewhere("keeps the predictions of all rows up to date, and the rows lie in shards")

    def clipped_gradient(self, W: np.ndarray, clip: np.ndarray, *, even: bool = False) -> np.ndarray:
        shares = self.even_shares if even else self.clip_shares
        return self._shards.clipped_gradient(self.loss, shares, self.batch(W), clip) / self.n

    @cached_property
    def _optimum(self) -> Optimum:
        return find_optimum(self, solve=_newton)


def _newton(problem: EmpiricalRisk) -> tuple[np.ndarray, float]:
    if problem.l1 or not problem.loss.smooth:
        raise NoOptimum(f"{problem}: of rows in shards the optimum is found for smooth objectives only")
    return damped_newton.solve(problem, 1e-11), np.nan


def _added(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Their sum, one after the other: in the same order whichever came first."""
    total = np.array(parts[0], dtype=np.float64)
    for part in parts[1:]:
        total += part
    return total


def _widely(rows: Rows, function: Callable[..., Any], *arguments: Any) -> Any:
    return function(rows.widened, *arguments)


def _gram(rows: Rows, convex: bool, function: Pointwise, W: np.ndarray, chosen: np.ndarray | None = None) -> np.ndarray:
    return rows.gram(function, W, chosen, convex=convex)


def _clipped_gradient(rows: Rows, loss: Loss, share: np.ndarray, W: np.ndarray, clip: np.ndarray) -> np.ndarray:
    columns: Columns | None = rows.__dict__.get("columns")
    if columns is None or not np.array_equal(columns.share, share):
        columns = rows.__dict__["columns"] = Columns(rows, loss, share)
    return columns.clipped_gradient(W, clip)
