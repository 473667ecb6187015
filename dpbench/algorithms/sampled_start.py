"""Where a solver starts on many rows: the minimiser on some of them, and from there by gradients of all rows alone.

With m of n rows, the minimiser is off by about √(d/m) and the Hessian by as much, relatively. So a step by the sample's
Hessian takes the gradient down by a factor of about √(m/d), and BFGS updates of it by more each time: five gradients or
so take the place of seven Hessians. Of rows kept as float32 these are float32 gradients, down to what float32 tells;
there one float32 Hessian of all rows, for the price of a float64 gradient or two, leaves a single step to be made in
float64. What is returned is a start, however good: the caller sees to the rest.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from dpbench.algorithms.base import Array, Problem
from dpbench.problems import Problem as Whole

MANY = 2**17  # rows from which a Hessian of all costs more than this saves
SHARE, LEAST, MOST = 64, 2**14, 2**18  # of the rows, one in so many; no fewer, no more
ROWS_A_COLUMN, ENTRIES = 16, 2**26  # of a sample, which is dense: at least, and at most
STEPS = 15
FALL = 1 / 2  # of the gradient's norm by a step, or what comes next goes on
SINGLE = 3e-8  # a mean gradient's norm from which float32 gets no nearer
NARROW = 64  # columns up to which a float32 Hessian costs less than the float64 gradients that it spares

Minimise = Callable[..., tuple[Array, Array, np.ndarray]]
Gradient = Callable[[Problem, Array, np.ndarray], Array]


def from_sample(
    minimise: Minimise, gradient: Gradient, problem: Problem, W: Array, b: Array, ridge: float, gamma: float
) -> tuple[Array, Array, np.ndarray]:
    """(iterates (k, d), their gradients, the Hessians that each took), of few rows W and theirs.

    gradient: (problem, iterates, which of b they have) → those of the objective. Every so-manieth row makes the sample:
    where rows come in an order, the order is in it.
    """
    n, (k, d) = problem.n, W.shape
    everyone = np.arange(k)
    step = max(1, n // max(LEAST, min(MOST, n // SHARE)))
    if n < MANY or problem.loss.outputs > 1 or not d * ROWS_A_COLUMN <= n // step <= ENTRIES / d:
        return W, gradient(problem, W, everyone), np.zeros(k, dtype=int)
    declared: dict[str, Any] = {"l2": problem.l2, "w2": problem.w2}
    X, y = problem.take(np.arange(step // 2, n, step))
    sample = Whole(np.asarray(X, dtype=float), y, loss=problem.loss, **declared)
    W, _, evaluations = minimise(sample, W, b, ridge, 1e-2 / np.sqrt(sample.n))
    inverses = np.linalg.inv(sample.hessian(W) + ridge * np.eye(d))
    evaluations = evaluations + 1
    rough = problem.rough
    if rough is not None:
        W, _, inverses = _descended(functools.partial(gradient, rough), W, inverses, max(gamma, SINGLE))
        if d <= NARROW:
            inverses = np.linalg.inv(rough.hessian(W) + ridge * np.eye(d))
            evaluations = evaluations + 1
    W, G, _ = _descended(functools.partial(gradient, problem), W, inverses, gamma)
    return W, G, evaluations


def _descended(
    gradient: Callable[[Array, np.ndarray], Array], W: Array, inverses: Array, gamma: float
) -> tuple[Array, Array, Array]:
    """(iterates, gradients, inverse Hessians) after BFGS steps, while they take the gradients down, to γ at best."""
    d = W.shape[1]
    active = np.arange(len(W))
    G = gradient(W, active)
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
    return W, G, inverses
