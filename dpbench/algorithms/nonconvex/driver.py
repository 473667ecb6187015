"""Methods as generators that ask for values, gradients and Hessians, and the driver that answers all of them at once.

A method for one replicate, `g = yield Gradient(w)` and so on, yields `Iterate(w)` at the start of each iteration and
returns (w, how it ended). Replicates advance in step, iteration by iteration, so that what they ask for at the
same time costs one product over the data; one that has returned leaves the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from dpbench.algorithms.base import Array, Problem, Trace


@dataclass(frozen=True)
class Request:
    """Something about the objective at `w` (d,), on the row indices `rows` (default: all)."""

    w: np.ndarray
    rows: np.ndarray | None = None


class Gradient(Request):
    """∇f(w), (d,): mean over the rows, and the regularisers'."""


class Hessian(Request):
    """∇²f(w), (d, d): mean over the rows, and the regularisers'."""


class Value(Request):
    """f(w), regularisers included. All rows only."""


class Smallest(Request):
    """min_i y_i <x_i, w> over the rows: for what a published run's arithmetic made of it."""


class Iterate(Request):
    """Not a request: an iteration starts at w. Answered with None once all replicates are here."""


Ending: TypeAlias = Literal["terminated", "not terminated", "crashed"]
Method: TypeAlias = Generator[Request, Any, tuple[Array, Ending]]
ArrayMethod: TypeAlias = Generator[Request, Any, Array]  # a part of a method that returns an array
FloatMethod: TypeAlias = Generator[Request, Any, float]


@dataclass
class Driven:
    """What came of k replicates: final iterates (k, d), how each ended (k), and how often each asked (k,).

    passes: over the data, for whatever was asked; NaN in a replicate's place once it has left the batch.
    """

    W: np.ndarray
    endings: list[Ending]
    gradients: np.ndarray
    hessians: np.ndarray
    passes: np.ndarray = field(repr=False)


def drive(problem: Problem, methods: list[Method], W: Array, trace: Trace) -> Driven:
    """Run the replicates to their ends. W (k, d): where they start.

    trace(t, W, passes=…, final=…) after t iterations, which is t gradients: all replicates that are still running, and
    those that ended since (`final`).
    """
    k = len(methods)
    run = Driven(W.copy(), ["not terminated"] * k, np.zeros(k, int), np.zeros(k, int), np.zeros(k))
    pending = {i: next(method) for i, method in enumerate(methods)}
    ended = np.zeros(k, bool)
    iteration = 0
    while True:
        asked = {i: request for i, request in pending.items() if not isinstance(request, Iterate)}
        if asked:
            answers = _answer(problem, asked, run)
        else:
            for i, iterate in pending.items():
                run.W[i] = iterate.w
            trace(iteration, run.W, passes=run.passes, final=ended)
            if not pending:
                return run
            run.passes[ended] = np.nan
            ended[:] = False
            iteration += 1
            answers = dict.fromkeys(pending)
        for i, answer in answers.items():
            try:
                pending[i] = methods[i].send(answer)
            except StopIteration as end:
                run.W[i], run.endings[i] = end.value
                ended[i] = True
                del pending[i]


def _answer(problem: Problem, asked: dict[int, Request], run: Driven) -> dict[int, Any]:
    """Answers by replicate; requests of a kind that share their rows in one call."""
    answers: dict[int, Any] = {}
    kinds: list[tuple[type[Request], Callable[..., Array], np.ndarray | None]] = [
        (Gradient, problem.gradient, run.gradients),
        (Hessian, problem.hessian, run.hessians),
        (Value, problem.value, None),
        (Smallest, partial(_smallest, problem), None),
    ]
    for kind, ask, count in kinds:
        of_kind = {i: request for i, request in asked.items() if isinstance(request, kind)}
        full = [i for i, request in of_kind.items() if request.rows is None]
        if full:
            answers |= zip(full, ask(np.stack([of_kind[i].w for i in full])), strict=True)
        for i in of_kind.keys() - set(full):
            answers[i] = ask(of_kind[i].w[None], rows=of_kind[i].rows)[0]
        for i, request in of_kind.items() if kind is not Smallest else ():
            run.passes[i] += 1.0 if request.rows is None else len(request.rows) / problem.n
            if count is not None:
                count[i] += 1
    return answers


def _smallest(problem: Problem, W: Array, rows: Array | None = None) -> Array:
    """(k,) the smallest margin y<x, w> over the given rows (default all)."""
    if rows is None:
        return problem.smallest_margins(W)
    X, y = problem.take(rows)
    return np.asarray((W @ X.T * y).min(axis=1))
