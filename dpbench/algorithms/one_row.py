"""The steps of dp-sgd-1 for a grid of (step, clip) on common rows and common noise: by NumPy, or by numba where it is.

A step costs k·d operations, a NumPy call about as much as 2,000 of them; numba (the extra `fast`) runs the steps of one
replicate after another instead, with its iterate in the first-level cache. Both do the same in the same order of
steps; sums over coordinates are rounded differently.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from dpbench.algorithms.base import Array, Problem
from dpbench.algorithms.passes import proximal_step
from dpbench.problems.compiled import compiler
from dpbench.problems.losses import Logistic, Loss, Squared
from dpbench.problems.sharded import ShardedProblem


def stepper(problem: Problem) -> Callable[..., None]:
    """advance(W (k, d), rows (s,), noise (s, d), step (k,), clip (k,)): s steps of W, in place.

    noise: in units of the sensitivity 2·clip. numba for dense data and the losses it knows, if it is installed.
    """
    kinds: dict[type[Loss], int] = {Squared: 0, Logistic: 1}
    kind = kinds.get(type(problem.loss))  # by type: a name may be lent to another
    compiled = _compiled() if kind is not None else None
    if isinstance(problem, ShardedProblem):
        return functools.partial(_fetched, problem)
    if compiled is None:
        return functools.partial(advance, problem, problem.row_norms)
    if problem.is_sparse:
        X = problem.X
        return functools.partial(
            compiled[1], X.data, X.indices, X.indptr, problem.y, problem.row_norms, kind, problem.l1, problem.l2
        )
    return functools.partial(
        compiled[0], np.asarray(problem.X), problem.y, problem.row_norms, kind, problem.l1, problem.l2
    )


def _fetched(problem: ShardedProblem, W: Array, rows: np.ndarray, *others: Array) -> None:
    """The same where the rows lie elsewhere: those that come next are fetched."""
    X, y = problem.take(rows)
    visited = Problem(X, y, loss=problem.loss, l1=problem.l1, l2=problem.l2, w2=problem.w2)
    stepper(visited)(W, np.arange(len(rows)), *others)


def advance(problem: Problem, norms: Array, W: Array, rows: np.ndarray, noise: Array, step: Array, clip: Array) -> None:
    """The same in NumPy, for any loss: one step of all replicates at a time."""
    for i, xi in zip(rows, noise, strict=True):
        x = problem.X[[i]].toarray()[0] if problem.is_sparse else problem.X[i]
        z = (W @ x)[:, None]
        r = problem.loss.derivative(z, problem.y[[i]], np.empty_like(z))[:, 0]
        r *= np.minimum(1, clip / np.maximum(np.abs(r) * norms[i], np.finfo(float).tiny))
        W[...] = proximal_step(problem, W, np.multiply.outer(r, x) + np.multiply.outer(2 * clip, xi), step[:, None])


@functools.cache
def _compiled() -> tuple[Callable[..., None], Callable[..., None]] | None:
    """(dense, sparse) versions of `advance`, or None without numba."""
    tools = compiler()
    if tools is None:
        return None
    compile_loop, within = tools.loop, tools.within

    @compile_loop
    def coefficient(kind: int, z: float, y: float, norm: float, clip: float) -> float:
        r = z - y if kind == 0 else -y / (1 + np.exp(min(y * z, 700.0)))
        size = abs(r) * norm
        return r * (clip / size) if size > clip else r

    @compile_loop
    def dense(
        X: Any, y: Any, norms: Any, kind: Any, l1: Any, l2: Any,
        W: Any, rows: Any, noise: Any, step: Any, clip: Any
    ) -> None:  # fmt: skip
        for a in range(len(W)):
            w, shrink, threshold, scale = W[a], 1 - step[a] * l2, step[a] * l1, 2 * clip[a]
            for t in range(len(rows)):
                i = rows[t]
                x, xi = X[i], noise[t]
                z = 0.0
                for j in range(len(w)):
                    z += w[j] * x[j]
                r = coefficient(kind, z, y[i], norms[i], clip[a])
                for j in range(len(w)):
                    v = shrink * w[j] - step[a] * (r * x[j] + scale * xi[j])
                    w[j] = v - within(v, -threshold, threshold)

    @compile_loop
    def sparse(
        data: Any, indices: Any, indptr: Any, y: Any, norms: Any, kind: Any, l1: Any, l2: Any,
        W: Any, rows: Any, noise: Any, step: Any, clip: Any,
    ) -> None:  # fmt: skip
        before = np.empty(W.shape[1])
        for a in range(len(W)):
            w, shrink, threshold, scale = W[a], 1 - step[a] * l2, step[a] * l1, 2 * clip[a]
            for t in range(len(rows)):
                i = rows[t]
                first, last, xi = indptr[i], indptr[i + 1], noise[t]
                z = 0.0
                for c in range(first, last):
                    z += w[indices[c]] * data[c]
                r = coefficient(kind, z, y[i], norms[i], clip[a])
                for c in range(first, last):  # the row's coordinates move on their own, from where they were
                    before[c - first] = w[indices[c]]
                for j in range(len(w)):
                    v = shrink * w[j] - step[a] * scale * xi[j]
                    w[j] = v - within(v, -threshold, threshold)
                for c in range(first, last):
                    j = indices[c]
                    v = shrink * before[c - first] - step[a] * (r * data[c] + scale * xi[j])
                    w[j] = v - within(v, -threshold, threshold)

    return dense, sparse
