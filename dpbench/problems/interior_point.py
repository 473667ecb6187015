"""The optimum of logistic regression by a primal-dual interior-point method, with a duality gap.

Newton's method on F alone can stop far from the infimum: where rare features separate some rows, ‖∇F‖ falls
below 1e-9 while F still has 1e-4 to go (fmnist, ‖w‖ = 3e8), and on a1a and covertype no minimiser exists at all.
The dual has a bounded solution in every case. With B = diag(y) X it reads

    minimise Σ_i φ(a_i) + ‖Bᵀa‖²/(2 n l2)  over 0 ≤ a ≤ 1  (l2 = 0: subject to Bᵀa = 0),
    φ(a) = a log a + (1-a) log(1-a),

and w is the multiplier: Bᵀa = n l2 w, a_i = σ(-y_i <x_i, w>). Predictor-corrector steps as in Mehrotra (1992),
on the conditions φ'(a) + Bw - s + t = 0, a s = μ, (1-a) t = μ. Measured, to a gap of 1e-12 or rounding: 10-20 steps
on a1a, adult, covertype, synthetic, accelerated; 68 on fmnist.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy

from dpbench.problems.kernels import Rows

STEPS = 300  # 64 to 112 on fmnist, by the order in which sums are rounded; tens elsewhere
TO_BOUNDARY = 0.99


class Point(NamedTuple):
    """w (r,), a (n,) and the multipliers s, t (n,) of a ≥ 0 and a ≤ 1; `b` is 1 - a without cancellation."""

    w: np.ndarray
    a: np.ndarray
    b: np.ndarray
    s: np.ndarray
    t: np.ndarray

    def moved(self, step: float, by: Point) -> Point:
        return Point(*(v + step * dv for v, dv in zip(self, by, strict=True)))


class Solution(NamedTuple):
    """w (d,), a bound on F(w) - F* up to rounding, and min_i y_i <x_i, w>."""

    w: np.ndarray
    gap: float
    smallest_margin: float


def solve(rows: Rows, l2: float, start: float) -> Solution:
    """Minimise mean log(1 + exp(-y <x, w>)) + (l2/2)‖w‖² over the rows (`kernels.Rows`).

    start: initial μ; a larger one suits optima further out. Stops at a gap of 1e-12 and ‖∇F‖ ≤ 1e-10, or when
    μ has reached the end of float64, or after STEPS steps: the caller judges what was reached.
    """
    n, y, X = rows.n, rows.y, rows.X
    T = whitening(rows.weighted_gram() / n + l2 * np.eye(rows.d))
    ridge = n * l2 * (T.T @ T)
    half, wall = np.full(n, 0.5), np.full(n, 2 * start)
    point = Point(np.zeros(T.shape[1]), half, half, wall, wall)
    best, least = Solution(T @ point.w, np.inf, 0.0), np.inf
    for _ in range(STEPS):
        w = T @ point.w
        margins = y * (X @ w)
        gradient = l2 * w - X.T @ (y * scipy.special.expit(-margins)) / n
        infeasibility = T.T @ (X.T @ (y * point.a)) - ridge @ point.w
        gap = _gap(point, margins, infeasibility, ridge)
        error = max(gap, float(np.linalg.norm(gradient)))
        if error < least:
            best, least = Solution(w, gap, float(margins.min())), error
        mu = (point.a @ point.s + point.b @ point.t) / (2 * n)
        if (gap <= 1e-12 and error <= 1e-10) or mu < 1e-15:
            break
        direction = _newton(rows, T, ridge, margins, infeasibility, point)
        affine = direction(0.0, None)
        reached = point.moved(min(1.0, _longest(point, affine)), affine)
        centring = ((reached.a @ reached.s + reached.b @ reached.t) / (2 * n * mu)) ** 3
        step = direction(centring * mu, affine)
        point = point.moved(min(1.0, TO_BOUNDARY * _longest(point, step)), step)
    return best


def whitening(gram: np.ndarray) -> np.ndarray:
    """T (d, r) with Tᵀ gram T = I on the range of gram, which it spans."""
    values, vectors = np.linalg.eigh(gram)
    kept = values > 4 * len(values) * np.finfo(float).eps * values[-1]
    return vectors[:, kept] / np.sqrt(values[kept])


def _gap(point: Point, margins: np.ndarray, infeasibility: np.ndarray, ridge: np.ndarray) -> float:
    """Primal minus dual value, plus what an infeasible dual point may be off by, ‖infeasibility‖·‖w‖; per row."""
    penalty = point.w @ ridge @ point.w
    primal = np.logaddexp(0, -margins).sum() + penalty / 2
    dual = -(scipy.special.xlogy(point.a, point.a) + scipy.special.xlogy(point.b, point.b)).sum() - penalty / 2
    slack = np.linalg.norm(infeasibility) * (1 + np.linalg.norm(point.w))
    return float(abs(primal - dual) + slack) / len(margins)


def _newton(
    rows: Rows, T: np.ndarray, ridge: np.ndarray, margins: np.ndarray, infeasibility: np.ndarray, point: Point
) -> Callable[[float, Point | None], Point]:
    """direction(μ, affine) -> Point of changes: Newton on the conditions, with second-order terms of `affine`."""
    _, a, b, s, t = point
    weight = 1 / (1 / (a * b) + s / a + t / b)
    K = T.T @ rows.weighted_gram(weight) @ T + ridge
    invert = _pseudo_inverse(K)

    def direction(mu: float, affine: Point | None) -> Point:
        left, right = (mu, mu) if affine is None else (mu - affine.a * affine.s, mu - affine.b * affine.t)
        residual = np.log(a) - np.log(b) + margins - left / a + right / b
        dw = invert(infeasibility - T.T @ (rows.X.T @ (rows.y * weight * residual)))
        da = -weight * (residual + rows.y * (rows.X @ (T @ dw)))
        return Point(dw, da, -da, left / a - s - s / a * da, right / b - t + t / b * da)

    return direction


def _pseudo_inverse(K: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """v ↦ K⁺v for a badly scaled positive semi-definite K."""
    scale = 1 / np.sqrt(np.diag(K))
    values, vectors = np.linalg.eigh(K * scale * scale[:, None])
    kept = values > len(values) * np.finfo(float).eps * values[-1]
    vectors = vectors[:, kept] * scale[:, None]
    return lambda v: vectors @ ((vectors.T @ v) / values[kept])


def _longest(point: Point, by: Point) -> float:
    """The step at which the first of a, b, s and t reaches zero."""
    steepest = max(np.max(-dv / v) for v, dv in zip(point[1:], by[1:], strict=True))
    return 1 / max(steepest, 1e-300)
