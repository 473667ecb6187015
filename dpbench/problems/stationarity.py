"""How close a point is to Goldstein stationary, measured: ‖∇F(w)‖_r = min of ‖g‖ over the convex hull of the gradients
in the ball of radius r around w (Zhang, Tran and Cutkosky 2024, Definition 2.1, after Goldstein 1977)."""

from __future__ import annotations

import numpy as np

from dpbench.problems.risk import EmpiricalRisk
from dpbench.problems.sphere import Sphere


def goldstein_norm(
    problem: EmpiricalRisk | Sphere,
    w: np.ndarray,
    radius: float,
    points: np.ndarray,
    generator: np.random.Generator,
    samples: int | None = None,
) -> tuple[float, float]:
    """An upper estimate of ‖∇F(w)‖_radius, and its error: how much larger the worse half of the samples says it is.

    The hull is that of the gradients at `points` (p, d) and at `samples` points uniform in the ball, by default the
    larger of 128 and 4d; points outside the ball are left out. A hull of fewer gradients is smaller, so its value is
    larger, and half the samples overstate by more than all of them do. w: (d,).
    """
    inside = points[np.linalg.norm(points - w, axis=1) <= radius * (1 + 1e-9)]
    sampled = in_ball(generator, samples or max(128, 4 * problem.d), problem.d) * radius + w
    gradients = problem.gradient(np.vstack([inside, sampled]))
    known, first, second = np.split(gradients, [len(inside), len(inside) + len(sampled) // 2])
    hulls = (gradients, np.vstack([known, first]), np.vstack([known, second]))
    value, *fewer = (float(np.linalg.norm(min_norm_point(G))) for G in hulls)
    return value, max(0.0, max(fewer) - value)


def in_ball(generator: np.random.Generator, n: int, d: int) -> np.ndarray:
    """(n, d) points uniform in the unit ball."""
    v = generator.standard_normal((n, d))
    return v * (generator.random((n, 1)) ** (1 / d) / np.linalg.norm(v, axis=1, keepdims=True))


def min_norm_point(G: np.ndarray) -> np.ndarray:
    """The point (d,) of least norm in the convex hull of the rows of G (n, d).

    By least squares with bounds, min ‖Gᵀλ‖² + (Σλ - 1)² over λ ≥ 0: along a ray sλ̄ with Σλ̄ = 1 the least value is
    v/(1 + v), v = ‖Gᵀλ̄‖², which increases with v, so λ/Σλ is the answer, exactly (Lawson and Hanson 1974, ch. 23).
    """
    from scipy.optimize import lsq_linear  # not nnls: that of SciPy 1.15 stops short of the minimum

    scale = np.sqrt(np.einsum("ij,ij->i", G, G).mean()) or 1.0  # so that both terms weigh alike
    system = np.vstack([G.T / scale, np.ones(len(G))])
    target = np.append(np.zeros(G.shape[1]), 1.0)
    weights = lsq_linear(system, target, (0, np.inf), method="bvls", tol=1e-14, max_iter=100 * len(G)).x
    return weights @ G / weights.sum()
