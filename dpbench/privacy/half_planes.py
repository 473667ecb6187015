"""The second route to the ε of objective perturbation: the tail of its privacy loss, from half-planes.

Gradient and Jacobian together, and Gaussian releases beside them. The privacy loss is above t where one of the
half-planes J + <ξ, v> + ‖v‖²/2 > t holds: its tail is a quadrature of a normal tail over the other coordinate, at a few
angles. Of the logistic loss over all p and p' (of steps of 1/160), of any other over the four vertices, in each other's
mirror two and two. Under add/remove there is one row. It shares nothing with `accounting.objective_perturbation`, which
integrates hockey sticks over intervals of p and of the angle.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from dpbench.privacy.ledger import ConvexPerturbation, LogisticPerturbation, Relation

COSINES = (-1.0, -0.99, -0.9, -0.5, 0.0)  # between the rows, times their labels
STRIDE = 25  # points of t between two at which all half-planes are looked at
LEAST = 1e-24  # δ: tails are taken to 11 standard deviations, beyond which lies 2e-28
FADED = 45.0  # e^{-45} = 3e-20: beyond it nothing counts
SIMPSON = np.array([1.0, *[4.0, 2.0] * 299, 4.0, 1.0]) / 1800  # of 601 points in [0, 1]


def epsilon_of(event: LogisticPerturbation, mu: float, delta: float) -> float:
    """ε at δ > 0 of one perturbation and of Gaussian releases of Σ 1/z² = μ²; infinite for δ below `LEAST`."""
    if delta < LEAST:
        return math.inf
    epsilon = 0.0
    for t, tail in _tails(event):
        epsilon = _from_tail(t, tail, mu, delta, epsilon)
    return epsilon


@functools.lru_cache(maxsize=64)
def _tails(event: LogisticPerturbation) -> list[tuple[np.ndarray, np.ndarray]]:
    """(t, P(U > t)) at each angle: the same whatever is released beside it, and at every δ."""
    rows = 2 if event.relation is Relation.REPLACE_ONE else 1
    s = 1 / (rows * event.noise_multiplier)
    top = (rows * s) ** 2 / 2 + 11 * rows * s + math.log1p(event.curvature)  # see `LEAST`
    t = np.linspace(0.0, top, 1201)
    tail = _mirrored_tail if isinstance(event, ConvexPerturbation) else _tail
    return [(t, tail(s, event.curvature, cosine, t, rows)) for cosine in (COSINES if rows == 2 else (-1.0,))]


def _mirrored_tail(s: float, curvature: float, cosine: float, t: np.ndarray, rows: int) -> np.ndarray:
    """P(U > t) for t ≥ 0, s = L₀/σ, of rows x and x' along x - x' and x + x', or of one row."""
    from scipy.special import ndtr

    long, short = (s * math.sqrt(2 - 2 * c) for c in (cosine, -cosine)) if rows == 2 else (s, 0.0)
    left = t[:, None] - math.log1p(curvature)
    y = np.linspace(-9, 9, 721) if short else np.zeros(1)
    weight = np.exp(-y * y / 2)
    reached = np.abs(y) * short + short**2 / 2 > left
    beyond = np.minimum(1.0, ndtr(long / 2 - left / long) + ndtr(np.minimum(0.0, long / 2 - left / long)))
    return np.asarray(np.where(reached, 1.0, beyond) @ (weight / weight.sum()))


def _tail(s: float, curvature: float, cosine: float, t: np.ndarray, rows: int) -> np.ndarray:
    """P(U > t) for t ≥ 0, s = L₀/σ, of the logistic loss."""
    from scipy.special import ndtr

    along, across = s * math.sqrt((1 - cosine) / 2), s * math.sqrt((1 + cosine) / 2)
    y = np.linspace(-9, 9, 73) if across else np.zeros(1)
    weight = np.exp(-y * y / 2)
    p = (1 - np.cos(np.linspace(0, math.pi, 161))) / 2
    jacobian = np.log1p(4 * curvature * p * (1 - p))
    nearest = np.full((len(t), len(y)), np.inf)
    for other in (0.0, 1.0)[:rows]:
        slope, tilt = along * (p + other), across * (p - other)
        free = jacobian + (slope**2 + tilt**2) / 2
        some = slope > 0
        np.minimum(nearest, _least_line(t, y, *(v[some] for v in (slope, tilt, free))), out=nearest)
    return np.asarray(ndtr(-nearest) @ (weight / weight.sum()))


def _least_line(t: np.ndarray, y: np.ndarray, slope: np.ndarray, tilt: np.ndarray, free: np.ndarray) -> np.ndarray:
    """(T, Y) least over the planes, of rising `slope`, of (t - free)/slope - tilt/slope·y.

    For one y these are lines in t, and the steeper ones, first in order, are least on the left: which one is least
    moves one way. So between two points of t it is one of those from the one's to the other's.
    """
    shift = tilt / slope
    over = shift * y[:, None]
    ends = np.append(np.arange(0, len(t) - 1, STRIDE), len(t) - 1)
    which = np.argmin(((t[ends, None] - free) / slope)[:, None, :] - over, axis=2)  # (ends, Y)
    low, high = np.minimum(which[:-1], which[1:]), np.maximum(which[:-1], which[1:])
    points = np.minimum(ends[:-1, None] + np.arange(STRIDE + 1), len(t) - 1)
    nearest = np.full((*low.shape, STRIDE + 1), np.inf)
    for ahead in range(int((high - low).max()) + 1):
        block, j = np.nonzero(high - low >= ahead)
        i = low[block, j] + ahead
        lines = (t[points[block]] - free[i, None]) / slope[i, None] - over[j, i, None]
        nearest[block, j] = np.minimum(nearest[block, j], lines) if ahead else lines
    lowest = np.empty((len(t), len(y)))
    lowest[points] = nearest.swapaxes(1, 2)
    return lowest


def _from_tail(t: np.ndarray, tail: np.ndarray, mu: float, delta: float, least: float) -> float:
    """ε at δ of a loss with these tails and an independent Gaussian of μ: δ(ε) = ∫ over t > ε of e^{ε-t} P(L > t).

    `least` where ε is no more than that: then it is not solved for.
    Between the points of t the tail is that of a normal whose quantiles are linear there: of a Gaussian loss, exact.
    """
    from scipy.optimize import brentq
    from scipy.special import ndtr, ndtri

    if mu > 1:  # the other loss may be much narrower than this one: a rule that is exact for polynomials would miss it
        nodes = np.linspace(-10.0, 10.0, 401)
        weights = np.exp(-nodes * nodes / 2)
    else:
        nodes, weights = np.polynomial.hermite_e.hermegauss(40 if mu else 1)
    losses, weights = mu * nodes + mu * mu / 2, weights / weights.sum()
    quantiles, along = ndtri(np.clip(tail, 1e-300, 1 - 1e-16)), np.linspace(0.0, 1.0, len(SIMPSON))

    def excess(epsilon: float) -> float:
        """ln δ(ε)/δ, in which an ε is found in fewer steps."""
        start = (epsilon - losses)[:, None]
        span = np.minimum(np.maximum(start, t[-1]), start + FADED) - start
        beyond = span * along
        x = start + beyond
        above = np.where(x < 0, 1.0, ndtr(np.interp(x, t, quantiles)))
        return math.log(max(weights @ (span[:, 0] * (np.exp(-beyond) * above @ SIMPSON)), 1e-300) / delta)

    if excess(least) <= 0:
        return least
    return float(brentq(excess, least, float(t[-1] + losses[-1]), xtol=1e-13))
