"""What a method asks of the rows again and again, with little changed: lines, single coordinates, some columns.

Each is kept where the rows are: beside them in memory, or with every shard, which is told enough to make it anew where
it has not got it (any more). So a question may be asked twice, and no answer depends on who was asked before.
"""

from __future__ import annotations

import functools
import itertools
import uuid
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from dpbench.problems.losses import Loss
from dpbench.problems.rows import Rows

Merge: TypeAlias = Callable[[Any, Any], Any]  # of two shards' answers, such as their sum or their maximum


def added(a: Any, b: Any) -> Any:
    """The sum of two answers, or the sums of several each."""
    return tuple(map(np.add, a, b)) if isinstance(a, tuple) else np.add(a, b)


KEPT = 12e6  # bytes of predictions that a shard keeps, as dp-cd's batches have them


class LineTrials:
    """The loss along w - step·d for each pair of W and D (k, d), for a loss with one output."""

    def __init__(self, rows: Rows, loss: Loss, W: np.ndarray, D: np.ndarray) -> None:
        self._loss, self._y = loss, rows.y.astype(np.float64, copy=False)
        self._z, self._slope = rows.all_predictions(W), rows.all_predictions(D)
        self._margin = np.empty_like(self._z[0])

    def derivative(self, i: int, step: float) -> float:
        """Of the loss's sum over the rows with respect to the step, on line i."""
        z = self._margin
        np.multiply(self._slope[i], -step, out=z)
        np.add(z, self._z[i], out=z)
        return -float(self._loss.derivative(z, self._y, z) @ self._slope[i])


class Restricted:
    """The loss's sum over the rows where all coordinates but `chosen` (q,) are 0; v (q,) are those."""

    def __init__(self, rows: Rows, loss: Loss, chosen: np.ndarray) -> None:
        A = rows.X[:, chosen]
        dense = A.toarray() if rows.sparse else np.ascontiguousarray(A)
        self._A, self._loss = dense.astype(np.float64, copy=False), loss
        self._y = rows.y.astype(np.float64, copy=False)

    def value(self, v: np.ndarray) -> float:
        z = (self._A @ v)[None]
        return float(self._loss.value(z, self._y, z).sum())

    def model(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient (q,) and Hessian (q, q)."""
        z = (self._A @ v)[None]
        slope = self._loss.derivative(z.copy(), self._y, np.empty_like(z))[0]
        bend = self._loss.second_derivative(z, self._y, np.empty_like(z))[0]
        return self._A.T @ slope, (self._A.T * bend) @ self._A


# With shards


class ShardState:
    """A state that every shard keeps: made of its rows at first, then moved step by step. each: `Shards.each`.

    place: of those that never move, some may have one place, of which the latest that was asked for has the use.
    """

    def __init__(self, each: Callable[..., Any], place: str = "") -> None:
        self._each, self._token = each, place or uuid.uuid4().hex
        self._step = next(_steps)
        self._moved: tuple[Any, ...] = ()

    def ask(
        self,
        make: Callable[..., Any],
        arguments: tuple[Any, ...],
        name: str,
        *question: Any,
        merge: Merge = added,
    ) -> Any:
        """What the states' method `name` answers, merged. make(rows, *arguments): a state as it is now."""
        wanted = StateVersion(self._token, self._step, self._moved)
        return self._each(_answer, wanted, make, arguments, name, question, merge=merge)

    def move(self, *moved: Any) -> None:
        """Call `move` of every state with these, before the next question."""
        self._step, self._moved = self._step + 1, moved

    def renew(self) -> None:
        """Make every state anew, before the next question."""
        self._step += 2  # no move leads there


class EachShard:
    """The methods of a state made by `make`(rows, *`of`) that every shard keeps: their answers, added up."""

    def __init__(self, state: ShardState, make: Callable[..., Any], of: tuple[Any, ...]) -> None:
        self._state, self._make, self._of = state, make, of

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return functools.partial(self._state.ask, self._make, self._of, name)


_steps = itertools.count(0, 2)


class StateVersion(NamedTuple):
    """Which state a shard is asked for, at which step, and the move that led there."""

    token: str
    step: int
    moved: tuple[Any, ...]


_states: WeakKeyDictionary[Rows, OrderedDict[str, tuple[int, Any]]] = WeakKeyDictionary()  # the latest at the end


def _answer(
    rows: Rows,
    wanted: StateVersion,
    make: Callable[..., Any],
    arguments: tuple[Any, ...],
    name: str,
    question: tuple[Any, ...],
) -> Any:
    states = _states.setdefault(rows, OrderedDict())
    step, state = states.pop(wanted.token, (-2, None))
    # One move behind: brought up to date. Further behind, it is made anew from the arguments.
    if step == wanted.step - 1:
        state.move(*wanted.moved)
    elif step != wanted.step:
        state = make(rows, *arguments)
    states[wanted.token] = wanted.step, state
    # The oldest goes first; whoever asks for it again makes it anew.
    while len(states) > max(2, KEPT // (8 * max(rows.n, 1))):
        states.popitem(last=False)
    return getattr(state, name)(*question)
