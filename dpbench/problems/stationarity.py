"""Goldstein stationarity: a measure of it, and a problem on which it is known.

How close a point is to Goldstein stationary, measured: ‖∇F(w)‖_r = min of ‖g‖ over the convex hull of the gradients
in the ball of radius r around w (Zhang, Tran and Cutkosky 2024, Definition 2.1, after Goldstein 1977).

`Kinks` is piecewise linear, and its kinks are closer than a smoothing radius of 0.1: there the smoothed gradient turns
within one epoch, so that an oracle that does not follow it goes astray. Its loss is no function of a margin, so it is
no `Problem`; it has what the oracles of `algorithms.zeroth_order` and `goldstein_norm` ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dpbench.problems.risk import EmpiricalRisk

SPREAD = 0.1  # the radius of z's sphere
AHEAD = 4096  # samples drawn at a time for one replicate


class Kinks:
    """F(x) = 0.8 | |x₁| - 0.03 | + max(-0.02 x₂, 0.4 x₂) in R^d: two gutters, 0.06 apart, that fall to a wall.

    f(x, z) = F(x) + <z, x>, z uniform on the sphere of radius 0.1 around 0, from `n` samples a replicate, each drawn
    when it is taken; f is 1-Lipschitz, as sqrt(0.8² + 0.4²) + 0.1 < 1. Nonconvex in x₁, after the instances of
    Kornowski and Shamir (2021), whose descent is hidden beside steep walls. Both coordinates are sums of kinks, so F
    smoothed over a ball has its gradient in closed form.

    generators: one per replicate, for its samples.
    """

    lipschitz = 1.0
    start = (0.02, -0.5)  # the first coordinates of x₁; the others are 0
    # How much the last of them varies between replicates: an epoch's way, so that the mean number of epochs on the way
    # is no whole number.
    scatter = 0.1
    # Per coordinate: the slope left of all kinks, and by place how much each kink adds to it.
    pieces = ((-0.8, {-0.03: 1.6, 0.0: -1.6, 0.03: 1.6}), (-0.02, {0.0: 0.42}))

    def __init__(self, n: int, d: int, generators: Sequence[np.random.Generator]) -> None:
        self.n, self.d, self.generators = n, d, generators
        self._drawn, self._at = np.empty((len(generators), 0, d)), 0

    def take(self, rows: np.ndarray) -> np.ndarray:
        """z (k, b, d) for rows (k, b): fresh ones, so that a row must be asked for once, as a single pass does."""
        b = rows.shape[1]
        if self._at + b > self._drawn.shape[1]:
            size = (max(b, AHEAD), self.d)
            z = np.stack([generator.standard_normal(size) for generator in self.generators])
            self._drawn, self._at = SPREAD * z / np.linalg.norm(z, axis=2, keepdims=True), 0
        self._at += b
        return self._drawn[:, self._at - b : self._at]

    @staticmethod
    def values(z: np.ndarray, x: np.ndarray, r: float, U: np.ndarray) -> np.ndarray:
        """f(x + ru, z), (k, b, m): z (k, b, d), x (k, d), U (k, b, m, d) unit vectors."""
        at = x[:, None, None] + r * U
        first, second = at[..., 0], at[..., 1]
        F = 0.8 * np.abs(np.abs(first) - 0.03) + np.maximum(-0.02 * second, 0.4 * second)
        return np.asarray(F + (at @ z[..., None])[..., 0])

    def value(self, X: np.ndarray) -> np.ndarray:
        """F (p,) at X (p, d)."""
        rows = X[:, None]
        return self.values(np.zeros_like(rows), X, 0.0, np.zeros_like(rows)[:, :, None])[:, 0, 0]

    def gradient(self, X: np.ndarray) -> np.ndarray:
        """∇F (p, d) at X (p, d); at a kink the slope on its left."""
        return self._slopes(X, lambda beyond: (beyond > 0).astype(float))

    def smoothed(self, X: np.ndarray, radius: float) -> np.ndarray:
        """∇F̂ (p, d) at X (p, d): the mean of ∇F over the ball of this radius."""
        from scipy.special import betainc

        def share(beyond: np.ndarray) -> np.ndarray:
            # Of a uniform point v of the ball, v₁² has the law Beta(1/2, (d + 1)/2).
            t = np.clip(beyond / radius, -1, 1)
            return np.asarray((1 + np.sign(t) * betainc(0.5, (self.d + 1) / 2, t * t)) / 2)

        return self._slopes(X, share)

    def _slopes(self, X: np.ndarray, share: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """share: how far beyond a kink → how much of its turn counts."""
        G = np.zeros_like(X)
        for j, (slope, kinks) in enumerate(self.pieces):
            G[:, j] = slope + share(X[:, j, None] - [*kinks]) @ [*kinks.values()]
        return G


def goldstein_norm(
    problem: EmpiricalRisk | Kinks,
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
