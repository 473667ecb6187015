"""The optimum F* of a convex problem, with a certificate, cached beside the data."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from dpbench import files
from dpbench.errors import UserError
from dpbench.problems import damped_newton, interior_point, sparse_optimum
from dpbench.problems.kernels import Rows
from dpbench.problems.losses import Loss
from dpbench.problems.risk import EmpiricalRisk

VERSION = 1  # part of the cache's file name: raise it when the solution or the file changes
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


Solver: TypeAlias = Callable[[EmpiricalRisk], tuple[np.ndarray, float]]  # (w (d,), bound on F(w) - F* or NaN)


def find_optimum(problem: EmpiricalRisk, solve: Solver | None = None) -> Optimum:
    """F* of a convex problem, from its cache if that holds a valid one. See `Problem.optimum` and `minimise`."""
    if not problem.convex:
        raise NoOptimum(f"{problem}: not convex, so it has no certified optimum; compare values of F")
    path = None if problem.folder is None else problem.folder / f"optimum-{_digest(problem)}.npz"
    found = _read(path, problem) if path is not None else None
    if found is None:
        found = minimise(problem, solve=solve)
        if path is not None:
            _write(path, found)
    return found


def minimise(problem: EmpiricalRisk, start: np.ndarray | None = None, solve: Solver | None = None) -> Optimum:
    """Solve anew; `start` (d,) speeds up l1 problems along a path of weights. solve: for those without l1."""
    if problem.l1 and type(problem.loss).conjugate is Loss.conjugate:
        raise NoOptimum(f"{problem}: its loss gives no conjugate, so the optimum with l1 has no certificate")
    elif not problem.loss.smooth:
        raise NoOptimum(f"{problem}: its loss has kinks, so it has no certified optimum; compare values of F")
    elif problem.l1:
        w, gap = sparse_optimum.solve(problem, L1_TOLERANCE / 2, start)
    elif solve is not None:
        w, gap = solve(problem)
    elif problem.loss.name == "logistic":
        w, gap = _logistic(problem)
    elif problem.loss.name == "squared":
        w, gap = _least_squares(problem), np.nan
    else:
        w, gap = damped_newton.solve(problem, GRADIENT_TOLERANCE / 100), np.nan
    found = _certified(problem, w, gap)
    if not _valid(found):
        raise NoOptimum(
            f"{problem}: no certified optimum: the best point has {found.kind} {found.certificate:.1e}, "
            f"F = {found.value:.6g} and gap {found.gap:.1e}; the data are nearly separable or badly scaled: add l2"
        )
    return found


def _certified(problem: EmpiricalRisk, w: np.ndarray, gap: float) -> Optimum:
    value = float(problem.value(w[None])[0])
    if problem.l1:
        return Optimum(w, value, max(gap, 0.0) / abs(value) if value else 0.0, "duality gap", gap)
    norm = float(np.linalg.norm(problem.gradient(w[None])[0]))
    return Optimum(w, value, norm, "gradient norm", gap)


def _valid(found: Optimum) -> bool:
    if found.kind == "duality gap":
        return found.certificate <= L1_TOLERANCE
    return found.certificate <= GRADIENT_TOLERANCE and not found.gap > GAP_TOLERANCE


def _logistic(problem: EmpiricalRisk) -> tuple[np.ndarray, float]:
    rows, back = _reduced(problem)
    solutions = []
    for start in STARTS:
        found = interior_point.solve(rows, problem.l2, start)
        if not problem.l2 and found.smallest_margin > 0:
            raise NoOptimum(f"{problem}: the data are linearly separable, so inf F = 0 is not attained; add l2 or l1")
        solutions.append(found)
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
    for _ in range(3):
        w -= np.linalg.solve(K, rows.X.T @ (rows.X @ w - rows.y) / rows.n + problem.l2 * w)
    return back(w)


def _reduced(problem: EmpiricalRisk) -> tuple[Rows, Callable[[np.ndarray], np.ndarray]]:
    """(rows, map back to R^d): for d > n the rows in an orthonormal basis of their span, where w* lies too."""
    rows = Rows(problem.X, problem.y)
    if rows.d <= rows.n:
        return rows, lambda v: v
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
    found = _certified(problem, w, sparse_optimum.duality_gap(problem, w) if problem.l1 else gap)
    return found if _valid(found) and abs(found.value - value) <= 1e-9 * max(1, abs(value)) else None


def _write(path: Path, found: Optimum) -> None:
    """Whole or not at all; a folder that cannot be written to only costs the time to solve again."""
    with suppress(OSError), files.replacing(path) as staged, open(staged, "wb") as file:
        np.savez(file, w=found.w, value=found.value, gap=found.gap)
