"""Where a solver starts on many rows: the minimiser on some of them, and from there by gradients of all rows alone.

With m of n rows, the minimiser is off by about √(d/m) and the Hessian by as much, relatively. So a step by the sample's
Hessian takes the gradient down by a factor of about √(m/d), and BFGS updates of it by more each time: five gradients or
so take the place of seven Hessians. What is returned is a start, however good: the caller sees to the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpbench.algorithms.base import Array, Problem
from dpbench.problems import Problem as Whole

MANY = 2**17  # rows from which a Hessian of all costs more than this saves
SHARE, LEAST = 16, 2**14  # of the rows, one in so many; no fewer
ROWS_A_COLUMN, ENTRIES = 16, 2**26  # of a sample, which is dense: at least, and at most
STEPS = 15
FALL = 1 / 2  # of the gradient's norm by a step, or the Newton method of all rows goes on

Minimise = Callable[..., tuple[Array, Array, np.ndarray]]


def from_sample(
    minimise: Minimise, gradient: Callable[[Array, np.ndarray], Array], problem: Problem, W: Array, b: Array,
    ridge: float, gamma: float,
) -> tuple[Array, Array, np.ndarray]:  # fmt: skip
    """(iterates (k, d), their gradients, the Hessians that each took of the sample), of few rows those of W.

    Every so-manieth row makes the sample: where rows come in an order, the order is in it.
    """
    n, (k, d) = problem.n, W.shape
    step = max(1, n // max(LEAST, n // SHARE))
    if n < MANY or problem.loss.outputs > 1 or not d * ROWS_A_COLUMN <= n // step <= ENTRIES / d:
        return W, gradient(W, np.arange(k)), np.zeros(k, dtype=int)
    declared: dict[str, Any] = {"l2": problem.l2, "w2": problem.w2}
    X, y = problem.take(np.arange(step // 2, n, step))
    sample = Whole(np.asarray(X, dtype=float), y, loss=problem.loss, **declared)
    W, _, evaluations = minimise(sample, W, b, ridge, 1e-2 / np.sqrt(sample.n))
    inverses = np.linalg.inv(sample.hessian(W) + ridge * np.eye(d))
    G = gradient(W, np.arange(k))
    active = np.arange(k)
    for _ in range(STEPS):
        active = active[np.linalg.norm(G[active], axis=1) > gamma]
        if not len(active):
            break
        moves = -(inverses[active] @ G[active][:, :, None])[:, :, 0]
        ends = W[active] + moves
        slopes = gradient(ends, active)
        fell = np.linalg.norm(slopes, axis=1) <= FALL * np.linalg.norm(G[active], axis=1)
        changes = slopes - G[active]
        active, moves, changes = active[fell], moves[fell], changes[fell]
        W[active], G[active] = ends[fell], slopes[fell]
        for i, s, c in zip(active, moves, changes, strict=True):
            if (bend := s @ c) > 0:
                left = np.eye(d) - np.outer(s, c) / bend
                inverses[i] = left @ inverses[i] @ left.T + np.outer(s, s) / bend
    return W, G, evaluations + 1
