"""Zeroth-order estimators of the gradient of the smoothed objective (Zhang, Tran and Cutkosky 2024, Section 3).

F̂(x) = E F(x + δv), v uniform in the unit ball: the smoothing of F with radius δ. With u uniform on the unit sphere of
R^d, ∇F̂(x) = E (d/2δ)(F(x + δu) - F(x - δu)) u (Lemma 2.2). Values come from the problem's loss on single rows.
The problem may also be `Kinks`, whose loss is no function of a margin.
All arrays have the leading axis k of replicates: x (k, d), rows (k, b) indices, U (k, b, m, d) unit vectors, m a row.

A round on one row costs a hundred operations and a NumPy call as much as thousands: numba (the extra `fast`) runs the
loops of a round in one call where it is installed, in the same order of draws; results differ by rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from dpbench.algorithms import base as dp
from dpbench.problems import fast_rows
from dpbench.problems.fast_rows import Loop, Within
from dpbench.problems.losses import Loss, PhaseRetrieval, Ramp
from dpbench.problems.stationarity import Kinks

WORKSPACE = 2**17  # numbers drawn at a time for one replicate: U stays in the second-level cache
AHEAD = 2**18  # numbers drawn ahead for all replicates: 2 MB
KINDS: dict[type[Loss], int] = {PhaseRetrieval: 0, Ramp: 1}  # compiled; by type: a name may be lent to another


class Coins:
    """The choices of an algorithm that use no data, round after round: s ~ U[0, 1] and then directions.

    What is drawn is what `Generator.random` and `directions` draw in turn, whether or not a plan lets it draw ahead.
    """

    def __init__(self, generators: dp.Generators) -> None:
        self.generators = generators
        self._left = self._at = 0
        self._s, self._U = np.empty((0, 0)), np.empty(0)

    def plan(self, rounds: int, b: int, m: int, d: int) -> None:
        """The next `rounds` rounds call `uniform` and then `directions(b, m, d)`, or with b = 0 not, and no others."""
        if compiled() is not None:
            self._left, self._shape = rounds, (b, m, d)
            self._s, self._at = np.empty((0, 0)), 0

    def uniform(self) -> dp.Array:
        """(k,) numbers in [0, 1)."""
        if self._at == len(self._s):
            if not self._left:
                self._s, self._at = self._s[:0], 0
                return np.array([generator.random() for generator in self.generators])
            self._draw_ahead()
        self._at += 1
        return np.asarray(self._s[self._at - 1])

    def directions(self, b: int, m: int, d: int) -> dp.Array:
        """U (k, b, m, d), see `directions`."""
        if not len(self._s):
            return directions(self.generators, b, m, d)
        return np.asarray(self._U[self._at - 1])

    def _draw_ahead(self) -> None:
        loops, k = compiled(), len(self.generators)
        assert loops is not None
        # At most 2 MB for all replicates, so that a round is read from the cache it was drawn into.
        rounds = min(self._left, max(1, AHEAD // (k * max(1, math.prod(self._shape)))))
        self._s, self._U, self._at = np.empty((rounds, k)), np.empty((rounds, k, *self._shape)), 0
        for i, generator in enumerate(self.generators):
            loops.draw(generator, self._s[:, i], self._U[:, i])
        self._left -= rounds


def directions(generators: dp.Generators, b: int, m: int, d: int) -> np.ndarray:
    """U (k, b, m, d): independent and uniform on the unit sphere, replicate i's from generators[i]."""
    U = np.empty((len(generators), b, m, d))
    for generator, out in zip(generators, U, strict=True):
        generator.standard_normal(out=out)
    U /= np.sqrt(np.einsum("kbmd,kbmd->kbm", U, U))[..., None]
    return U


def grad(problem: dp.Problem | Kinks, x: dp.Array, rows: np.ndarray, *, radius: float, U: dp.Array) -> dp.Array:
    """GRAD (Algorithm 1), (k, d): mean over rows and directions of (d/2δ)(f(x + δu) - f(x - δu)) u.

    Each term has norm ≤ dL, so a replaced row moves the mean by 2dL/b at most (Lemma 3.1).
    """
    return problem.d / (2 * radius) * _mean_difference(problem, x, radius, x, -radius, rows, U)


def diff(
    problem: dp.Problem | Kinks, x: dp.Array, y: dp.Array, rows: np.ndarray, *, radius: float, U: dp.Array
) -> dp.Array:
    """DIFF (Algorithm 2), (k, d): mean over rows and directions of (d/δ)(f(x + δu) - f(y + δu)) u.

    Each term has norm ≤ (d/δ) L‖x - y‖, so a replaced row moves the mean by 2dL‖x - y‖/(bδ) at most (Lemma 3.2).
    """
    return problem.d / radius * _mean_difference(problem, x, radius, y, radius, rows, U)


def subgradient(problem: dp.Problem, w: dp.Array, rows: np.ndarray) -> dp.Array:
    """(k, d): mean over rows (k, b) of f'(<a_i, w>) a_i, a subgradient of each row's loss at w (k, d)."""
    A, labels = problem.take(rows)
    z = (A @ w[:, :, None])[:, :, 0]
    slopes = problem.loss.derivative(z, labels, np.empty_like(z))
    return (slopes[:, None] @ A)[:, 0] / rows.shape[1]


def in_blocks(
    estimate: Callable[..., dp.Array], rows: np.ndarray, generators: dp.Generators, m: int, d: int
) -> dp.Array:
    """`estimate(rows, U=U)` of all the rows (k, b) from fresh directions, a block of rows at a time."""
    size = max(1, WORKSPACE // (m * d))
    total = np.zeros((len(rows), d))
    for i in range(0, rows.shape[1], size):
        block = rows[:, i : i + size]
        b = block.shape[1]
        # The mean over blocks weighs each by its rows: the last may be short.
        total = total + b * estimate(block, U=directions(generators, b, m, d))
    return total / rows.shape[1]


def _mean_difference(
    problem: dp.Problem | Kinks, x: dp.Array, r: float, y: dp.Array, q: float, rows: np.ndarray, U: dp.Array
) -> dp.Array:
    """(k, d) means over rows and directions of (f(x + ru, z) - f(y + qu, z)) u."""
    if isinstance(problem, Kinks):
        z = problem.take(rows)
        return _mean(problem.values(z, x, r, U) - problem.values(z, y, q, U), U)
    A, labels = problem.take(rows)
    loops, kind = compiled(), KINDS.get(type(problem.loss))
    if loops is not None and kind is not None:
        out = np.zeros(x.shape)
        loops.mean_difference(kind, A, labels, x, r, y, q, U, out)
        return out
    # <a, x + ru> = <a, x> + r<a, u>: one product with the directions serves both points.
    projected = (U @ A[..., None])[..., 0]
    first = _values(problem, A, labels, x, r * projected)
    return _mean(first - _values(problem, A, labels, y, q * projected), U)


def _values(problem: dp.Problem, A: dp.Array, labels: dp.Array, x: dp.Array, shift: dp.Array) -> dp.Array:
    """(k, b, m) values of the loss at <a_i, x> + shift, shift (k, b, m)."""
    shift += (A @ x[:, :, None])[:, :, 0][..., None]
    return problem.loss.value(shift, labels[..., None], shift)


def _mean(weights: np.ndarray, U: np.ndarray) -> np.ndarray:
    """(k, d) means over rows and directions of weights (k, b, m) times U."""
    k, b, m, d = U.shape
    return (weights.reshape(k, 1, b * m) @ U.reshape(k, b * m, d))[:, 0] / (b * m)


@fast_rows.compiled
def compiled(compile_loop: Loop, within: Within) -> SimpleNamespace:
    """The loops below, compiled; None without numba."""
    tiny = np.finfo(float).tiny

    @compile_loop
    def draw(generator: Any, s: Any, U: Any) -> None:
        """Round t's s[t] ~ U[0, 1] and unit vectors U[t] (b, m, d), t after t."""
        for t in range(len(s)):
            s[t] = generator.random()
            for i in range(U.shape[1]):
                for j in range(U.shape[2]):
                    u, square = U[t, i, j], 0.0
                    for c in range(len(u)):
                        v = generator.standard_normal()
                        u[c] = v
                        square += v * v
                    norm = np.sqrt(square)
                    for c in range(len(u)):
                        u[c] /= norm

    @compile_loop
    def value(kind: int, z: float, label: float) -> float:
        # Phase retrieval (kind 0) and the ramp, as `problems.losses` has them.
        return abs(abs(z) - label) if kind == 0 else within(1 - label * z, 0.0, 1.0)

    @compile_loop
    def mean_difference(
        kind: Any, A: Any, labels: Any, x: Any, r: Any, y: Any, q: Any, U: Any, out: Any
    ) -> None:  # fmt: skip
        k, b, m, d = U.shape
        for i in range(k):
            for row in range(b):
                # <a, x + r·u> = <a, x> + r <a, u>: <a, x> once a row, and each direction costs one product more.
                a, label, at_x, at_y = A[i, row], labels[i, row], 0.0, 0.0
                for c in range(d):
                    at_x += a[c] * x[i, c]
                    at_y += a[c] * y[i, c]
                for j in range(m):
                    u, along = U[i, row, j], 0.0
                    for c in range(d):
                        along += a[c] * u[c]
                    weight = value(kind, at_x + r * along, label) - value(kind, at_y + q * along, label)
                    for c in range(d):
                        out[i, c] += weight * u[c]
            for c in range(d):
                out[i, c] /= b * m

    @compile_loop
    def step(steps: Any, squares: Any, gradients: Any, radius: Any) -> None:
        for i in range(len(steps)):
            gradient, now = gradients[i], steps[i]
            for c in range(len(now)):
                squares[i] += gradient[c] * gradient[c]
            # `tiny`: before the first gradient that is not 0 there is nothing to divide by.
            eta, square = radius / np.sqrt(max(squares[i], tiny)), 0.0
            for c in range(len(now)):
                now[c] -= eta * gradient[c]
                square += now[c] * now[c]
            inside = radius / max(np.sqrt(square), radius)
            for c in range(len(now)):
                now[c] *= inside

    return SimpleNamespace(draw=draw, mean_difference=mean_difference, step=step)
