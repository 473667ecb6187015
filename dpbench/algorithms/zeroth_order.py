"""Zeroth-order estimators of the gradient of the smoothed objective (Zhang, Tran and Cutkosky 2024, Section 3).

F̂(x) = E F(x + δv), v uniform in the unit ball: the smoothing of F with radius δ. With u uniform on the unit sphere of
R^d, ∇F̂(x) = E (d/2δ)(F(x + δu) - F(x - δu)) u (Lemma 2.2). Values come from the problem's loss on single rows.
All arrays have the leading axis k of replicates: x (k, d), rows (k, b) indices, U (k, b, m, d) unit vectors, m a row.
"""

from __future__ import annotations

import numpy as np

WORKSPACE = 2**17  # numbers drawn at a time for one replicate: U stays in the second-level cache


def directions(generators: list[np.random.Generator], b: int, m: int, d: int) -> np.ndarray:
    """U (k, b, m, d): independent and uniform on the unit sphere, replicate i's from generators[i]."""
    U = np.empty((len(generators), b, m, d))
    for generator, out in zip(generators, U, strict=True):
        generator.standard_normal(out=out)
    U /= np.sqrt(np.einsum("kbmd,kbmd->kbm", U, U))[..., None]
    return U


def grad(problem, x, rows, *, radius: float, U) -> np.ndarray:
    """GRAD (Algorithm 1), (k, d): mean over rows and directions of (d/2δ)(f(x + δu) - f(x - δu)) u.

    Each term has norm ≤ dL, so a replaced row moves the mean by 2dL/b at most (Lemma 3.1).
    """
    differences = _values(problem, x, radius, rows, U) - _values(problem, x, -radius, rows, U)
    return problem.d / (2 * radius) * _mean(differences, U)


def diff(problem, x, y, rows, *, radius: float, U) -> np.ndarray:
    """DIFF (Algorithm 2), (k, d): mean over rows and directions of (d/δ)(f(x + δu) - f(y + δu)) u.

    Each term has norm ≤ (d/δ) L‖x - y‖, so a replaced row moves the mean by 2dL‖x - y‖/(bδ) at most (Lemma 3.2).
    """
    differences = _values(problem, x, radius, rows, U) - _values(problem, y, radius, rows, U)
    return problem.d / radius * _mean(differences, U)


def in_blocks(estimate, rows: np.ndarray, generators, m: int, d: int) -> np.ndarray:
    """`estimate(rows, U=U)` of all the rows (k, b) from fresh directions, a block of rows at a time."""
    size = max(1, WORKSPACE // (m * d))
    total = 0.0
    for i in range(0, rows.shape[1], size):
        block = rows[:, i : i + size]
        b = block.shape[1]
        total = total + b * estimate(block, U=directions(generators, b, m, d))
    return total / rows.shape[1]


def _values(problem, x, radius: float, rows, U) -> np.ndarray:
    """(k, b, m) values f(x + radius·u_ij, z_i): the loss at <a_i, x> + radius·<a_i, u_ij>."""
    A, y = _rows(problem, rows)
    z = (U @ A[..., None])[..., 0]
    z *= radius
    z += (A @ x[:, :, None])[:, :, 0][..., None]
    return problem.loss.value(z, y[..., None], z)


def _mean(weights: np.ndarray, U: np.ndarray) -> np.ndarray:
    """(k, d) means over rows and directions of weights (k, b, m) times U."""
    k, b, m, d = U.shape
    return (weights.reshape(k, 1, b * m) @ U.reshape(k, b * m, d))[:, 0] / (b * m)


def _rows(problem, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows (k, b) of the data: features (k, b, d), labels (k, b)."""
    if hasattr(problem.X, "tocsr"):
        return problem.X[rows.ravel()].toarray().reshape(*rows.shape, problem.d), problem.y[rows]
    return np.asarray(problem.X)[rows], problem.y[rows]
