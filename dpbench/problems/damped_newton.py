"""The optimum of any smooth convex problem by Levenberg-damped Newton steps, on the span of the rows."""

from __future__ import annotations

import numpy as np
import scipy

from dpbench.problems.interior_point import whitening
from dpbench.problems.risk import EmpiricalRisk

STEPS = 300


def solve(problem: EmpiricalRisk, tolerance: float) -> np.ndarray:
    """A point w (d,) with ‖∇F(w)‖₂ ≤ tolerance, or the one of smallest gradient after 300 steps."""
    T = whitening(problem.second_moment() + problem.l2 * np.eye(problem.d))
    u, damping = np.zeros(T.shape[1]), 1e-2
    value, slope = evaluate(problem, T @ u)
    best, least = T @ u, np.inf
    for _ in range(STEPS):
        norm = float(np.linalg.norm(slope))
        if norm < least:
            best, least = T @ u, norm
        if norm <= tolerance:
            break
        g, H = T.T @ slope, T.T @ problem.hessian((T @ u)[None])[0] @ T
        while damping < 1e12:
            try:
                step = -scipy.linalg.cho_solve(scipy.linalg.cho_factor(H + damping * np.eye(len(u))), g)
            except np.linalg.LinAlgError:
                damping *= 10
                continue
            predicted = -(g @ step) - step @ H @ step / 2
            new_value, new_slope = evaluate(problem, T @ (u + step))
            # Near the optimum F moves by less than its rounding: trust the model there.
            gain = (value - new_value) / predicted if predicted > 1e-13 * abs(value) else 1.0
            if gain > 1e-3:
                break
            damping *= 4
        else:
            break
        u, value, slope = u + step, new_value, new_slope
        if gain > 0.75:
            damping /= 4
    return best


def evaluate(problem: EmpiricalRisk, w: np.ndarray) -> tuple[float, np.ndarray]:
    """F(w) and ∇F(w) at one w (d,)."""
    value, slope = problem.value_and_gradient(w[None])
    return value[0], slope[0]
