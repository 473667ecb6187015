"""The optimum F* of a convex problem, with a certificate, cached beside the data.

Smooth problems take Levenberg-damped Newton steps, on the span of the rows. Where there are fewer rows than columns,
the data's Hessian is AᵀA with A (n, d), and n unknowns do: of ½‖A(x - v)‖² + m/2 ‖x - v‖² + <g, x - v> + l1‖x‖₁ the
minimiser is x(p) = S(v - (g + Aᵀp)/m, l1/m), S the soft threshold, at the p (n,) that is A(x(p) - v): there Fenchel's
dual has gradient 0. It is piecewise quadratic with Hessian I + A_J A_Jᵀ/m, A_J the columns at which x(p) is not 0, so
that Newton's steps with Armijo's rule end after finitely many (semismooth Newton: Li, Sun and Toh 2018). Without l1
they are Woodbury's formula, and one is enough.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from dpbench import files
from dpbench.errors import UserError
from dpbench.problems import solvers
from dpbench.problems.losses import Loss
from dpbench.problems.risk import EmpiricalRisk
from dpbench.problems.rows import Rows
from dpbench.problems.solvers import whitening

STEPS = 300


def solve_newton(problem: EmpiricalRisk, tolerance: float) -> np.ndarray:
    """A point w (d,) with ‖∇F(w)‖₂ ≤ tolerance, or the one of smallest gradient after 300 steps."""
    # Where the second moment is the identity, one damping suits all directions.
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
            # What the undamped model promises; damping falls after steps that keep it and rises after others.
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


VERSION = 1  # part of the cache's file name: raise it when the solution or the file changes
SEPARABLE = "the data are linearly separable, so inf F = 0 is not attained; add l2 or l1"
GRADIENT_TOLERANCE = 1e-9
GAP_TOLERANCE = 1e-7  # logistic without l1, absolute; reached: 1e-12, but on fmnist (‖w‖ = 2e9) 3e-8
L1_TOLERANCE = 1e-10  # relative to F
STARTS = (1e2, 1.0)  # of the interior-point method; the first reaches every optimum of the benchmark


@dataclass(frozen=True)
class Optimum:
    """A minimiser, or where none exists a point whose value is the infimum to within the certificate.

    w: (d,). Not unique if XᵀX is singular; of arbitrary length along directions that separate some rows.
    value: F(w), the best value known.
    certificate: ‖∇F(w)‖₂ for kind "gradient norm", (F(w) - dual value)/F(w) for kind "duality gap".
    gap: bound on F(w) - F* from a dual point; NaN for other losses than logistic without l1.
    """

    w: np.ndarray
    value: float
    certificate: float
    kind: str
    gap: float


class NoOptimum(UserError):
    """A problem without an optimum to compare with: not convex, separable data, or none found in float64."""


def find_optimum(problem: EmpiricalRisk) -> Optimum:
    """F* of a convex problem, from its cache if that holds a valid one. See `Problem.optimum` and `minimise`."""
    if not problem.convex:
        raise NoOptimum(f"{problem}: not convex, so it has no certified optimum; compare values of F")
    path = None if problem.folder is None else problem.folder / f"optimum-{_digest(problem)}.npz"
    optimum = _read(path, problem) if path is not None else None
    if optimum is None:
        optimum = minimise(problem)
        if path is not None:
            _write(path, optimum)
    return optimum


def minimise(problem: EmpiricalRisk, start: np.ndarray | None = None) -> Optimum:
    """Solve anew; `start` (d,) speeds up l1 problems along a path of weights."""
    if problem.l1 and type(problem.loss).conjugate is Loss.conjugate:
        raise NoOptimum(f"{problem}: its loss gives no conjugate, so the optimum with l1 has no certificate")
    elif not problem.loss.smooth:
        raise NoOptimum(f"{problem}: its loss has kinks, so it has no certified optimum; compare values of F")
    elif problem.weighted and problem.l1:
        raise NoOptimum(f"{problem}: with l1 there is no certified optimum of rows that have weights")
    elif problem.l1:
        w, gap = solvers.solve_sparse(problem, L1_TOLERANCE / 2, start)
    elif problem.loss.name == "logistic" and not problem.weighted:
        w, gap = _logistic(problem)
    elif problem.loss.name == "squared" and not problem.weighted:
        w, gap = _least_squares(problem), np.nan
    else:
        w, gap = solve_newton(problem, GRADIENT_TOLERANCE / 100), np.nan
        if problem.loss.name == "logistic" and not problem.l2 and problem.smallest_margins(w[None])[0] > 0:
            raise NoOptimum(f"{problem}: {SEPARABLE}")
    optimum = _certified(problem, w, gap)
    if not _valid(optimum):
        raise NoOptimum(
            f"{problem}: no certified optimum: the best point has {optimum.kind} {optimum.certificate:.1e}, "
            f"F = {optimum.value:.6g} and gap {optimum.gap:.1e}; the data are nearly separable or badly scaled: add l2"
        )
    return optimum


def _certified(problem: EmpiricalRisk, w: np.ndarray, gap: float) -> Optimum:
    value = float(problem.value(w[None])[0])
    if problem.l1:
        return Optimum(w, value, max(gap, 0.0) / abs(value) if value else 0.0, "duality gap", gap)
    norm = float(np.linalg.norm(problem.gradient(w[None])[0]))
    return Optimum(w, value, norm, "gradient norm", gap)


def _valid(optimum: Optimum) -> bool:
    if optimum.kind == "duality gap":
        return optimum.certificate <= L1_TOLERANCE
    return optimum.certificate <= GRADIENT_TOLERANCE and not optimum.gap > GAP_TOLERANCE


def _logistic(problem: EmpiricalRisk) -> tuple[np.ndarray, float]:
    rows, back = _reduced(problem)
    solutions = []
    for start in STARTS:
        candidate = solvers.solve_logistic(rows, problem.l2, start)
        # Every margin is positive: scaling w up lowers F for ever.
        if not problem.l2 and candidate.smallest_margin > 0:
            raise NoOptimum(f"{problem}: {SEPARABLE}")
        solutions.append(candidate)
        best = min(solutions, key=lambda solution: solution.gap)
        if _valid(_certified(problem, back(best.w), best.gap)):
            break
    return back(best.w), best.gap


def _least_squares(problem: EmpiricalRisk) -> np.ndarray:
    """Newton's step from zero, refined: F is quadratic."""
    rows, back = _reduced(problem)
    if not problem.l2:
        return back(np.linalg.lstsq(rows.X.toarray() if rows.sparse else rows.X, rows.y, rcond=None)[0])
    K = rows.weighted_gram() / rows.n + problem.l2 * np.eye(rows.d)
    w = np.zeros(rows.d)
    # Iterative refinement: once is the solution, two more take off its rounding.
    for _ in range(3):
        w -= np.linalg.solve(K, rows.X.T @ (rows.X @ w - rows.y) / rows.n + problem.l2 * w)
    return back(w)


def _reduced(problem: EmpiricalRisk) -> tuple[Rows, Callable[[np.ndarray], np.ndarray]]:
    """(rows, map back to R^d): for d > n the rows in an orthonormal basis of their span, where w* lies too."""
    rows = Rows(problem.X, problem.y)
    if rows.d <= rows.n:
        return rows, lambda v: v
    # w* is a combination of the rows, so n unknowns do where d is larger.
    K = rows.X @ rows.X.T
    values, vectors = np.linalg.eigh(K.toarray() if rows.sparse else K)
    kept = values > 4 * rows.n * np.finfo(float).eps * values[-1]
    roots = np.sqrt(values[kept])
    coordinates = np.ascontiguousarray(vectors[:, kept] * roots)
    return Rows(coordinates, rows.y), lambda v: rows.X.T @ (vectors[:, kept] @ (v / roots))


# The cache


def _digest(problem: EmpiricalRisk) -> str:
    loss = problem.loss
    name = loss.name if loss.version == 1 else f"{loss.name} version {loss.version}"
    # All that F depends on: a cached optimum of anything else has another name.
    parts = (VERSION, problem.data_hash, name, problem.l1, problem.l2)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _read(path: Path, problem: EmpiricalRisk) -> Optimum | None:
    """The cached optimum if it is readable and its certificate, computed anew, holds."""
    try:
        with open(path, "rb") as handle, np.load(handle) as file:
            w, value, gap = np.array(file["w"], dtype=float), float(file["value"]), float(file["gap"])
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
        return None
    if w.shape != (problem.d,) or not np.isfinite(w).all():
        return None
    optimum = _certified(problem, w, solvers.duality_gap(problem, w) if problem.l1 else gap)
    return optimum if _valid(optimum) and abs(optimum.value - value) <= 1e-9 * max(1, abs(value)) else None


def _write(path: Path, optimum: Optimum) -> None:
    """Whole or not at all; a folder that cannot be written to only costs the time to solve again."""
    with suppress(OSError), files.replacing(path) as staged, open(staged, "wb") as file:
        np.savez(file, w=optimum.w, value=optimum.value, gap=optimum.gap)


WIDE_STEPS, HALVINGS = 100, 40


def fits(problem: EmpiricalRisk, ridge: float) -> bool:
    """Whether `ridge` and the problem's own make its smooth part AᵀA + mI with m > 0 and A of fewer rows than columns.

    And whether the rows are in memory; a matter of public numbers.
    """
    at_hand = "X" in vars(problem) and problem.loss.outputs == 1 and problem.loss.convex
    return at_hand and problem.n < problem.d and not problem.w2 and ridge + problem.l2 > 0


def solve_wide(A: Any, m: float, g: np.ndarray) -> np.ndarray:
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
    for _ in range(WIDE_STEPS):
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
