"""Newton's steps where there are fewer rows than columns: the data's Hessian is AᵀA with A (n, d), and n unknowns do.

Of ½‖A(x - v)‖² + m/2 ‖x - v‖² + <g, x - v> + l1‖x‖₁ the minimiser is x(p) = S(v - (g + Aᵀp)/m, l1/m), S the soft
threshold, at the p (n,) that is A(x(p) - v): there Fenchel's dual has gradient 0. It is piecewise quadratic with
Hessian I + A_J A_Jᵀ/m, A_J the columns at which x(p) is not 0, so that Newton's steps with Armijo's rule end after
finitely many (semismooth Newton: Li, Sun and Toh 2018). Without l1 they are Woodbury's formula, and one is enough.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from dpbench.problems.risk import EmpiricalRisk

STEPS, HALVINGS = 100, 40


def fits(problem: EmpiricalRisk, ridge: float) -> bool:
    """Whether `ridge` and the problem's own make its smooth part AᵀA + mI with m > 0 and A of fewer rows than columns.

    And whether the rows are in memory; a matter of public numbers.
    """
    at_hand = "X" in vars(problem) and problem.loss.outputs == 1 and problem.loss.convex
    return at_hand and problem.n < problem.d and not problem.w2 and ridge + problem.l2 > 0


def solve(A: Any, m: float, g: np.ndarray) -> np.ndarray:
    """(AᵀA + mI)⁻¹ g for A (n, d), dense or CSR, and m > 0."""
    return (g - A.T @ _system(A, m)(A @ g)) / m


def quadratic(A: Any, m: float, g: np.ndarray, v: np.ndarray, l1: float) -> np.ndarray:
    """(d,) argmin_x <g, x - v> + (x-v)ᵀ(AᵀA + mI)(x-v)/2 + l1‖x‖₁, for A (n, d), dense or CSR, and m > 0."""

    def primal(p: np.ndarray) -> tuple[np.ndarray, float]:
        """x(p), and the dual function to be minimised."""
        slope = g + A.T @ p
        x = v - slope / m
        x = np.sign(x) * np.maximum(np.abs(x) - l1 / m, 0.0)
        inner = m / 2 * (x - v) @ (x - v) + slope @ (x - v) + l1 * np.abs(x).sum()
        return x, float(p @ p / 2 - inner)

    p = np.zeros(A.shape[0])
    x, value = primal(p)
    for _ in range(STEPS):
        residual = p - A @ (x - v)
        live = np.flatnonzero(x)
        direction = -_system(A[:, live], m)(residual) * m
        slope, step = residual @ direction, 1.0
        for _ in range(HALVINGS):
            end, lower = primal(p + step * direction)
            # Near the minimum the values differ by rounding only: the slack lets the last full steps through.
            if lower <= value + 1e-4 * step * slope + 1e-14 * abs(value):
                break
            step /= 2
        same = step == 1.0 and np.array_equal(np.flatnonzero(end), live)
        p, x, value = p + step * direction, end, lower
        if same:  # a full step within one piece ends at its minimum
            break
    return x


def _system(A: Any, m: float) -> Any:
    """p ↦ (AAᵀ + mI)⁻¹ p."""
    K: Any = A @ A.T
    K = K.toarray() if scipy.sparse.issparse(A) else K
    factor = scipy.linalg.cho_factor(K + m * np.eye(len(K)), overwrite_a=True, check_finite=False)
    return lambda p: scipy.linalg.cho_solve(factor, p, check_finite=False)
