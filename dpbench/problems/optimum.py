"""Non-private optima to high accuracy: the f* that every excess loss is measured from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from dpbench.errors import UserError

GRADIENT = 1e-9  # the certificate asked for: ‖∇F‖₂ at the optimum


class Optimum(NamedTuple):
    """w (d,), value F(w), certificate ‖∇F(w)‖₂ and its kind."""

    w: np.ndarray
    value: float
    certificate: float
    kind: str


def minimise(problem, iterations: int = 300) -> Optimum:
    """Levenberg-damped Newton in the eigenbasis of XᵀX, for smooth convex problems.

    Directions outside the rows' span are left at zero. Raises UserError when ‖∇F‖ ≤ 1e-9 is not reached.
    """
    if not problem.convex or problem.l1:
        raise UserError(f"{problem.name}: no optimum for a nonconvex or L1 problem")
    basis = _span(problem)
    u, damping = np.zeros(basis.shape[1]), 1e-2
    value, slope = (v[0] for v in problem.value_and_gradient((basis @ u)[None]))
    best = (np.inf, None, None)
    for _ in range(iterations):
        norm = np.linalg.norm(slope)
        if norm < best[0]:
            best = (norm, basis @ u, value)
        if norm <= GRADIENT / 100:
            break
        g = basis.T @ slope
        H = basis.T @ problem.hessian((basis @ u)[None])[0] @ basis
        while True:
            try:
                step = -cho_solve(cho_factor(H + damping * np.eye(len(u))), g)
            except LinAlgError:
                damping *= 10
                continue
            predicted = -(g @ step) - step @ H @ step / 2
            new_value, new_slope = (v[0] for v in problem.value_and_gradient((basis @ (u + step))[None]))
            gain = (value - new_value) / predicted if predicted > 1e-13 * abs(value) else 1.0
            if gain > 1e-3:
                break
            damping *= 4
            if damping > 1e12:
                break
        u, value, slope = u + step, new_value, new_slope
        if gain > 0.75:
            damping /= 4
    norm, w, value = best
    if norm > GRADIENT:
        raise UserError(f"{problem.name}: no optimum to ‖∇F‖ <= {GRADIENT:g} (reached {norm:.2g}): separable data?")
    return Optimum(w, float(value), float(norm), "gradient norm")


def _span(problem) -> np.ndarray:
    from dpbench.problems.problem import _ones

    gram = problem._rows.gram(_ones, np.zeros((1, problem.d)))[0] / problem.n
    values, vectors = np.linalg.eigh(gram)
    keep = values > values[-1] * problem.d * 1e-15
    return vectors[:, keep] / np.sqrt(values[keep])
