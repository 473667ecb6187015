"""A problem whose rows lie elsewhere, in shards: sums are taken where each is, and added in the shards' order.

A shard is a block that stays where it is: what asks it sends iterates and gets partial sums back, never rows, but for
methods that sample single ones. Sums differ from those of one place by rounding, and not at all from those of the same
shards held elsewhere, whichever answers first.
"""

from __future__ import annotations

import copy
import functools
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from dpbench.errors import UserError
from dpbench.problems import losses, optimum
from dpbench.problems.followed import EachShard, Merge, ShardState, added
from dpbench.problems.losses import Loss
from dpbench.problems.optimum import Optimum, find_optimum
from dpbench.problems.problem import Problem, columns_of, coordinate_state
from dpbench.problems.regularisers import Declaration
from dpbench.problems.risk import EmpiricalRisk
from dpbench.problems.rows import Pointwise, Rows


class NeedsAllRows(UserError):
    """What was asked for takes all rows in one place."""


class Question(NamedTuple):
    """function(rows, *arguments, *own[shard]), to be asked of the shards in `own`, where each is.

    merge: makes one answer of two; None for the list of all answers, in the order of the shards.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    own: dict[int, tuple[Any, ...]]
    merge: Merge | None

    def merged(self, answers: list[Any]) -> Any:
        """What was asked for, of the answers of the shards in `own`, in their order: so the bits are the same ones."""
        return answers if self.merge is None else functools.reduce(self.merge, answers)


Ask = Callable[[Question], Any]
# Methods of `Rows` over all rows that shards answer each for itself, and what makes one answer of two.
ASKED: dict[str, Merge] = {
    **dict.fromkeys(("sum_and_weighted_sum", "weighted_gram", "column_squares", "label_moments", "label_sum"), added),
    "largest_norm": np.maximum,
    "within": np.logical_and,
}


class Shards:
    """The interface of `Rows` over shards of `sizes` rows each, in their order, which `ask` asks."""

    def __init__(self, ask: Ask, sizes: Sequence[int], d: int, *, sparse: bool = False, single: bool = False) -> None:
        self._ask, self.d, self.sparse, self.single = ask, d, sparse, single
        self._starts = np.concatenate([[0], np.cumsum(sizes)])
        self.n = int(self._starts[-1])
        self._wide = False

    @cached_property
    def in_float64(self) -> Shards:
        """See `Rows`."""
        if not self.single:
            return self
        shards = copy.copy(self)
        shards.single, shards._wide = False, True  # noqa: SLF001 - a copy of itself
        return shards

    @property
    def in_float32(self) -> Shards | None:
        """See `Rows`."""
        if not self._wide:
            return None
        shards = copy.copy(self)
        shards.single, shards._wide = True, False  # noqa: SLF001 - a copy of itself
        return shards

    def total(
        self,
        function: Callable[..., Any] | str,
        arguments: tuple[Any, ...] = (),
        rows: np.ndarray | None = None,
        merge: Merge = added,
    ) -> Any:
        """What function(rows, *arguments, chosen) gives for the shards, merged. chosen: None, or those of `rows` in it.

        function: or the name of a method of `Rows`.
        Where `rows` are none at all, the first shard is asked for the answer about none.
        """
        own: dict[int, tuple[Any, ...]] = dict.fromkeys(range(len(self._starts) - 1), (None,))
        if rows is not None:
            own = {i: (rows[at] - self._starts[i],) for i, at in self._split(rows)} or {0: (rows,)}
        return self._ask_shards(function, arguments, own, merge)

    def each(self, function: Callable[..., Any] | str, *arguments: Any, merge: Merge | None = added) -> Any:
        """What function(rows, *arguments) gives for all shards, merged; merge None: the list."""
        return self._ask_shards(function, arguments, dict.fromkeys(range(len(self._starts) - 1), ()), merge)

    def kept(self, make: Callable[..., Any], *of: Any) -> EachShard:
        """See `Rows`; the latest that was asked for is kept."""
        return EachShard(ShardState(self.each, self._place), make, of)

    @cached_property
    def _place(self) -> str:
        return uuid.uuid4().hex

    def sum(self, function: Pointwise, W: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        return np.asarray(self.total("sum", (function, W), rows))

    def weighted_sum(self, function: Pointwise, W: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        return np.asarray(self.total("weighted_sum", (function, W), rows))

    def gram(
        self, function: Pointwise, W: np.ndarray, rows: np.ndarray | None = None, *, convex: bool = True
    ) -> np.ndarray:
        return np.asarray(self.total(_gram, (convex, function, W), rows))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in ASKED:
            raise AttributeError(f"shards have no {name}")
        return functools.partial(self.each, name, merge=ASKED[name])

    def take(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        X, y = np.empty((len(rows), self.d)), np.empty(len(rows))
        where = dict(self._split(rows))
        own = {i: (rows[at] - self._starts[i],) for i, at in where.items()}
        answers = self._ask_shards("take", (), own, None) if own else []
        for at, (A, b) in zip(where.values(), answers, strict=True):
            X[at], y[at] = A, b
        return X, y

    def all_predictions(self, W: np.ndarray) -> NoReturn:
        raise NeedsAllRows("asks for the prediction of every row at once, and the rows lie in shards")

    def _ask_shards(
        self,
        function: Callable[..., Any] | str,
        arguments: tuple[Any, ...],
        own: dict[int, tuple[Any, ...]],
        merge: Merge | None,
    ) -> Any:
        if isinstance(function, str):
            function, arguments = _method, (function, *arguments)
        # Shards hold the rows as they came; each widens its blocks as it reads them.
        if self._wide:
            function, arguments = _widely, (function, *arguments)
        return self._ask(Question(function, arguments, own, merge))

    def _split(self, rows: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """(shard, positions in `rows`) of each shard that has some of them, in the order of the shards."""
        shard = np.searchsorted(self._starts, rows, side="right") - 1
        for i in np.unique(shard):
            yield int(i), np.flatnonzero(shard == i)


class ShardedProblem(Problem):
    """A `Problem` on `Shards`: algorithms run on it unchanged. What takes all rows in one place raises `NeedsAllRows`.

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
        raise NeedsAllRows("works on the rows themselves, and they lie in shards")

    y = X

    @cached_property
    def row_norms(self) -> np.ndarray:
        return self.X

    def coordinate_state(self, W: np.ndarray) -> Any:
        """See `Problem`."""
        return _Coordinates(self, self.batch(W))

    @cached_property
    def _optimum(self) -> Optimum:
        problem = copy.copy(self)
        problem._shards = problem._rows = self._shards.in_float64  # type: ignore[assignment]  # noqa: SLF001 - in float64
        return find_optimum(problem, solve=_newton)


def _newton(problem: EmpiricalRisk) -> tuple[np.ndarray, float]:
    return optimum.solve_newton(problem, 1e-11), np.nan


class _Coordinates:
    """`Problem.coordinate_state` of shards: each keeps its own, and is told what moved with the next question."""

    def __init__(self, problem: ShardedProblem, W: np.ndarray) -> None:
        self._follower = ShardState(problem._shards.each)  # noqa: SLF001
        self._n, self._W = problem.n, W.copy()
        self._of = problem.loss, problem.clip_shares

    def derivative(self, j: int, threshold: np.ndarray) -> np.ndarray:
        total = self._follower.ask(_CoordinateSums, (*self._of, self._W), "derivative", j, threshold)
        return np.asarray(total) / self._n

    def move(self, j: int, change: np.ndarray) -> None:
        self._W[:, j] += change
        self._follower.move(j, change.copy())


class _CoordinateSums:
    """The state of one shard; its derivatives are sums, not means."""

    def __init__(self, rows: Rows, loss: Loss, share: np.ndarray, W: np.ndarray) -> None:
        self._n, self._state = rows.n, coordinate_state(columns_of(rows, loss, share), W)
        self.move = self._state.move

    def derivative(self, j: int, threshold: np.ndarray) -> np.ndarray:
        return np.asarray(self._state.derivative(j, threshold)) * self._n


def _widely(rows: Rows, function: Callable[..., Any], *arguments: Any) -> Any:
    return function(rows.in_float64, *arguments)


def _method(rows: Rows, name: str, *arguments: Any) -> Any:
    return getattr(rows, name)(*arguments)


def _gram(rows: Rows, convex: bool, function: Pointwise, W: np.ndarray, chosen: np.ndarray | None = None) -> np.ndarray:
    return rows.gram(function, W, chosen, convex=convex)
