"""Optima with a duality gap: an interior-point method for logistic regression, working sets for l1.

Newton's method on F alone can stop far from the infimum: where rare features separate some rows, ‖∇F‖ falls
below 1e-9 while F still has 1e-4 to go (fmnist, ‖w‖ = 3e8), and on a1a and covertype no minimiser exists at all.
The dual of logistic regression has a bounded solution in every case. With B = diag(y) X it reads

    minimise Σ_i φ(a_i) + ‖Bᵀa‖²/(2 n l2)  over 0 ≤ a ≤ 1  (l2 = 0: subject to Bᵀa = 0),
    φ(a) = a log a + (1-a) log(1-a),

and w is the multiplier: Bᵀa = n l2 w, a_i = σ(-y_i <x_i, w>). Predictor-corrector steps as in Mehrotra (1992),
on the conditions φ'(a) + Bw - s + t = 0, a s = μ, (1-a) t = μ. Measured, to a gap of 1e-12 or rounding: 10-20 steps
on a1a, adult, covertype, synthetic, accelerated; 68 on fmnist.

L1 problems take proximal Newton on a working set, checked by the duality gap, as in Massias et al. (2018) and skglm:
solve on the few coordinates that matter, look at the optimality conditions of all of them, enlarge, repeat.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy

from dpbench.problems.risk import EmpiricalRisk
from dpbench.problems.rows import Rows

STEPS = 300  # 64 to 112 on fmnist, by the order in which sums are rounded; tens elsewhere
TO_BOUNDARY = 0.99


class PrimalDualPoint(NamedTuple):
    """w (r,), a (n,) and the multipliers s, t (n,) of a ≥ 0 and a ≤ 1; `b` is 1 - a without cancellation."""

    w: np.ndarray
    a: np.ndarray
    b: np.ndarray
    s: np.ndarray
    t: np.ndarray

    def moved(self, step: float, by: PrimalDualPoint) -> PrimalDualPoint:
        return PrimalDualPoint(*(v + step * dv for v, dv in zip(self, by, strict=True)))


class Solution(NamedTuple):
    """w (d,), a bound on F(w) - F* up to rounding, and min_i y_i <x_i, w>."""

    w: np.ndarray
    gap: float
    smallest_margin: float


def solve_logistic(rows: Rows, l2: float, start: float) -> Solution:
    """Minimise mean log(1 + exp(-y <x, w>)) + (l2/2)‖w‖² over the rows (`rows.Rows`).

    start: initial μ; a larger one suits optima further out. Stops at a gap of 1e-12 and ‖∇F‖ ≤ 1e-10, or when
    μ has reached the end of float64, or after STEPS steps: the caller judges what was reached.
    """
    n, y, X = rows.n, rows.y, rows.X
    T = whitening(rows.weighted_gram() / n + l2 * np.eye(rows.d))
    # In coordinates in which the second moment is I, all directions converge alike.
    ridge = n * l2 * (T.T @ T)
    half, wall = np.full(n, 0.5), np.full(n, 2 * start)
    point = PrimalDualPoint(np.zeros(T.shape[1]), half, half, wall, wall)
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
        # Predictor and corrector (Mehrotra 1992): how far the plain Newton step gets decides how much to centre.
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


def _gap(point: PrimalDualPoint, margins: np.ndarray, infeasibility: np.ndarray, ridge: np.ndarray) -> float:
    """Primal minus dual value, plus what an infeasible dual point may be off by, ‖infeasibility‖·‖w‖; per row."""
    penalty = point.w @ ridge @ point.w
    primal = np.logaddexp(0, -margins).sum() + penalty / 2
    dual = -(scipy.special.xlogy(point.a, point.a) + scipy.special.xlogy(point.b, point.b)).sum() - penalty / 2
    slack = np.linalg.norm(infeasibility) * (1 + np.linalg.norm(point.w))
    return float(abs(primal - dual) + slack) / len(margins)


def _newton(
    rows: Rows, T: np.ndarray, ridge: np.ndarray, margins: np.ndarray, infeasibility: np.ndarray, point: PrimalDualPoint
) -> Callable[[float, PrimalDualPoint | None], PrimalDualPoint]:
    """direction(μ, affine) -> Point of changes: Newton on the conditions, with second-order terms of `affine`."""
    _, a, b, s, t = point
    # Eliminating s, t and a leaves a system of the size of w alone.
    weight = 1 / (1 / (a * b) + s / a + t / b)
    K = T.T @ rows.weighted_gram(weight) @ T + ridge
    invert = _pseudo_inverse(K)

    def direction(mu: float, affine: PrimalDualPoint | None) -> PrimalDualPoint:
        left, right = (mu, mu) if affine is None else (mu - affine.a * affine.s, mu - affine.b * affine.t)
        residual = np.log(a) - np.log(b) + margins - left / a + right / b
        dw = invert(infeasibility - T.T @ (rows.X.T @ (rows.y * weight * residual)))
        da = -weight * (residual + rows.y * (rows.X @ (T @ dw)))
        return PrimalDualPoint(dw, da, -da, left / a - s - s / a * da, right / b - t + t / b * da)

    return direction


def _pseudo_inverse(K: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """v ↦ K⁺v for a badly scaled positive semi-definite K."""
    # With a unit diagonal a cut-off relative to the largest eigenvalue means the same in every direction.
    scale = 1 / np.sqrt(np.diag(K))
    values, vectors = np.linalg.eigh(K * scale * scale[:, None])
    kept = values > len(values) * np.finfo(float).eps * values[-1]
    vectors = vectors[:, kept] * scale[:, None]
    return lambda v: vectors @ ((vectors.T @ v) / values[kept])


def _longest(point: PrimalDualPoint, by: PrimalDualPoint) -> float:
    """The step at which the first of a, b, s and t reaches zero."""
    steepest = max(np.max(-dv / v) for v, dv in zip(point[1:], by[1:], strict=True))
    return 1 / max(steepest, 1e-300)


SETS, NEWTON_STEPS, SWEEPS = 200, 100, 1000
FIRST_SET = 20


def duality_gap(problem: EmpiricalRisk, w: np.ndarray) -> float:
    """F(w) minus the dual value at the scaled residuals of w (d,), for a convex loss + l1 + l2.

    With u_i = ℓ'(z_i) and g = Xᵀu/n the dual value is -(1/n) Σ ℓ*(u_i) - ‖S(g, l1)‖²/(2 l2), S the soft
    threshold; for l2 = 0 it needs ‖g‖_∞ ≤ l1, so u is scaled down by max(1, ‖g‖_∞/l1). Never below the error
    F(w) - F*, up to rounding.
    """
    g = problem.data_gradient(w[None])[0]
    excess = np.maximum(np.abs(g) - problem.l1, 0)
    if problem.l2:
        scale, penalty = 1.0, excess @ excess / (2 * problem.l2)
    else:
        scale, penalty = max(1.0, np.abs(g).max() / problem.l1), 0.0
    dual = -problem.mean_conjugate(w, scale) - penalty
    return float(problem.value(w[None])[0] - dual)


def solve_sparse(problem: EmpiricalRisk, tolerance: float, start: np.ndarray | None = None) -> tuple[np.ndarray, float]:
    """(w (d,), duality gap) with gap ≤ tolerance · max(F(w), tiny), or the best of 200 working sets.

    start: a first guess (d,), such as the solution for a nearby l1.
    """
    w = np.zeros(problem.d) if start is None else np.array(start, dtype=float)
    size = max(FIRST_SET, 2 * int(np.count_nonzero(w)))
    best = w, np.inf
    for _ in range(SETS):
        gap = duality_gap(problem, w)
        if gap < best[1]:
            best = w.copy(), gap
        if gap <= tolerance * abs(problem.value(w[None])[0]):
            break
        gradient = problem.gradient(w[None])[0]
        violation = np.where(w != 0, np.inf, np.abs(gradient) - problem.l1)
        # All non-zeros stay in the set: their violation is set to inf above.
        size = min(problem.d, max(size, 2 * int(np.count_nonzero(w))))
        chosen = np.argpartition(-violation, size - 1)[:size]
        chosen = np.sort(chosen[violation[chosen] > 0])
        if len(chosen) == 0:
            break
        w[chosen] = _proximal_newton(problem, chosen, w[chosen])
        size *= 2
    return best


def _proximal_newton(problem: EmpiricalRisk, chosen: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Minimise F over the coordinates `chosen` (q,), from v (q,)."""
    A, loss, n, l1, l2 = problem.X[:, chosen], problem.loss, problem.n, problem.l1, problem.l2
    A = (A.toarray() if problem.is_sparse else np.ascontiguousarray(A)).astype(np.float64, copy=False)
    y = problem.y.astype(np.float64, copy=False)

    def value(v: np.ndarray) -> float:
        z = (A @ v)[None]
        return float(loss.value(z, y, z).sum() / n + l1 * np.abs(v).sum() + l2 / 2 * (v @ v))

    F = value(v)
    for _ in range(NEWTON_STEPS):
        z = (A @ v)[None]
        slope = loss.derivative(z.copy(), y, np.empty_like(z))[0]
        bend = loss.second_derivative(z, y, np.empty_like(z))[0]
        g, H = A.T @ slope / n + l2 * v, (A.T * bend) @ A / n
        H[np.diag_indices_from(H)] += l2
        direction = quadratic(H, g, v, l1) - v
        decrease = -(g @ direction) - l1 * (np.abs(v + direction).sum() - np.abs(v).sum())
        if decrease <= 1e-17 * max(1.0, abs(F)):
            # Below the rounding of F its values say nothing, and this step is what the last digits of the gap need.
            return v + direction  # `solve_sparse` keeps the least gap
        step = 1.0
        while (new := value(v + step * direction)) > F - 1e-4 * step * decrease and step > 1e-10:
            # Below the rounding of F its values say nothing: the full step is a Newton step near the optimum.
            if decrease < 1e-13 * max(1.0, abs(F)):
                break
            step /= 2
        v, F = v + step * direction, new
    return v


def quadratic(H: np.ndarray, g: np.ndarray, v: np.ndarray, l1: float) -> np.ndarray:
    """(d,) argmin_x g·(x - v) + (x-v)ᵀH(x-v)/2 + l1‖x‖₁: coordinate descent for the signs, then their linear system."""
    x, slope = v.copy(), g.copy()  # slope = g + H (x - v)
    diagonal = np.diag(H)
    live = np.flatnonzero(diagonal > 0)
    for sweep in range(SWEEPS):
        moved = 0.0
        for j in live:
            target = x[j] - slope[j] / diagonal[j]
            new = math.copysign(max(abs(target) - l1 / diagonal[j], 0.0), target)
            if new != x[j]:
                change = new - x[j]
                slope += H[j] * change
                moved = max(moved, abs(change) * np.sqrt(diagonal[j]))
                x[j] = new
        if moved < 1e-14:
            break
        # Once the signs are right the rest is linear: its solution ends coordinate descent's slow tail.
        if sweep % 5 == 4 and (exact := _on_support(H, g, v, x, l1)) is not None:
            return exact
    return x


def _on_support(H: np.ndarray, g: np.ndarray, v: np.ndarray, x: np.ndarray, l1: float) -> np.ndarray | None:
    """The minimiser with the signs of x if it satisfies the optimality conditions, else None."""
    support = np.flatnonzero(x)
    signs = np.sign(x[support])
    right = H[support] @ v - g[support] - l1 * signs
    exact = np.zeros_like(x)
    exact[support] = np.linalg.lstsq(H[np.ix_(support, support)], right, rcond=None)[0]
    slope = g + H @ (exact - v)
    slope[support] += l1 * signs
    fits = np.all(exact[support] * signs >= 0) and np.abs(slope[support]).max(initial=0) <= 1e-12 + 1e-10 * l1
    return exact if fits and np.abs(np.delete(slope, support)).max(initial=0) <= l1 * (1 + 1e-10) else None
