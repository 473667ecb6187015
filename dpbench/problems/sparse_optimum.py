"""The optimum of an L1 problem: proximal Newton on a working set, checked by the duality gap.

Working sets as in Massias et al. (2018) and skglm: solve on the few coordinates that matter, look at the
optimality conditions of all of them, enlarge, repeat.
"""

from __future__ import annotations

import math

import numpy as np

from dpbench.problems.risk import EmpiricalRisk

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


def solve(problem: EmpiricalRisk, tolerance: float, start: np.ndarray | None = None) -> tuple[np.ndarray, float]:
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
    rows, n, l1, l2 = problem.restricted(chosen), problem.n, problem.l1, problem.l2

    def value(v: np.ndarray) -> float:
        return float(rows.value(v) / n + l1 * np.abs(v).sum() + l2 / 2 * (v @ v))

    F = value(v)
    for _ in range(NEWTON_STEPS):
        slope, bend = rows.model(v)
        g, H = slope / n + l2 * v, bend / n
        H[np.diag_indices_from(H)] += l2
        direction = quadratic(H, g, v, l1) - v
        decrease = -(g @ direction) - l1 * (np.abs(v + direction).sum() - np.abs(v).sum())
        if decrease <= 1e-17 * max(1.0, abs(F)):
            return v + direction if value(v + direction) <= F else v
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
