"""A point of large Tukey depth among m points of which a neighbour replaces one, behind a test that it is safe.

The depth of y (d,) among m points is min_j min(#{i: θ_ij ≤ y_j}, #{i: θ_ij ≥ y_j}); a point replaced moves it by one at
most, anywhere. {depth ≥ i} is a box, from the i-th smallest to the i-th largest in every coordinate, of volume V_i; so
on neighbours V_{i+1} ≤ V'_i ≤ V_{i-1}.

The draw: density ∝ e^{ε₁·depth} on {depth ≥ t}, t = ⌊m/4⌋ (the exponential mechanism on a random box). Say that D is at
distance k + 1 where V_{t-2-k}/V_{t+g+1+k}·e^{-ε₁g} ≤ ϑ for some g ≥ 1, for this k ≥ 0 and all below it; else at 0. What
holds at k holds at k - 1 on a neighbour, whose distance is so within one.

At distance 1 or more, the draws from D and from any neighbour D' are (2ε₁ + ϑ, ϑ)-DP, both ways: with Z ≥ e^{ε₁(t+g)}
V_{t+g} what D's density is divided by, Z' ≤ e^{ε₁}Z + e^{ε₁t}V_{t-1} ≤ (e^{ε₁} + ϑ)Z, so where both are positive their
ratio is at most e^{ε₁}(e^{ε₁} + ϑ); and points of depth t for D and t - 1 for D' have mass e^{ε₁t}V_t/Z ≤ ϑ at most.
With D' in the place of D, V'_{t-1}/V'_{t+g} ≤ V_{t-2}/V_{t+g+1}.

The test: the distance with Laplace noise of scale 1/ε_p, and the draw where that is above ln(1/(2δ_p))/ε_p; else 0.
Where one of the neighbours is at distance 1 or more: (ε_p + 2ε₁ + ϑ, ϑ). Where both are at 0, their noisy distances are
one variable, and a draw is made with probability δ_p: (0, δ_p). Together (ε_p + 2ε₁ + ϑ, max(δ_p, ϑ))-DP.

After Amin, Joseph, Ribero and Vassilvitskii (2023); the test as in Brown, Gaboardi, Smith, Ullman and Zakynthinou
(2021).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbench.privacy.ledger import DrawAfterTest

Array = NDArray[Any]


def least_depth(m: int) -> int:
    """t: points of a smaller depth are never drawn."""
    return m // 4


def threshold(event: DrawAfterTest) -> float:
    """What the noisy distance has to pass."""
    return -math.log(2 * event.failure) / event.test


def log_widths(models: Array) -> Array:
    """ln of the sides of {depth ≥ i}, i = 1 … ⌊m/2⌋, of points (..., m, d): (..., ⌊m/2⌋, d); -∞ for an empty one."""
    ordered, half = np.sort(models, axis=-2), models.shape[-2] // 2
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(ordered[..., : -half - 1 : -1, :] - ordered[..., :half, :]))


def distance(log_volumes: Array, m: int, exponent: float, leak: float) -> int:
    """The distance, from ln V_1 … ln V_⌊m/2⌋ of one set of m points."""
    t, half = least_depth(m), m // 2
    if t < 3:
        return 0
    index = np.arange(1, half + 1)
    lower = np.where(np.isfinite(log_volumes), -log_volumes - exponent * index, np.inf)
    best = np.minimum.accumulate(lower[::-1])[::-1]  # the least over all depths from here on
    k = np.arange(t - 2)
    k = k[t + 2 + k <= half]
    ratio = log_volumes[t - 3 - k] + best[t + 1 + k] + exponent * (t + 1 + k)
    fails = np.flatnonzero(~(ratio <= math.log(leak)))
    return int(fails[0]) if len(fails) else len(k)


def distances(models: Array, event: DrawAfterTest) -> Array:
    """Of k sets of points (k, m, d): (k, 1)."""
    m = models.shape[1]
    volumes = log_widths(models).sum(axis=2)
    return np.array([[float(distance(each, m, event.exponent, event.leak))] for each in volumes])


def log_weights(log_volumes: Array, m: int, exponent: float) -> Array:
    """ln of e^{ε₁i}(V_i - V_{i+1}), i = t … ⌊m/2⌋, of ln V (..., ⌊m/2⌋): how often the draw has depth i, but for Z."""
    first = max(1, least_depth(m))
    inner = np.concatenate([log_volumes[..., first:], np.full((*log_volumes.shape[:-1], 1), -np.inf)], axis=-1)
    outer = log_volumes[..., first - 1 :]
    with np.errstate(divide="ignore", invalid="ignore"):
        shell = outer + np.log(-np.expm1(inner - outer))
    depths = np.arange(first, first + outer.shape[-1])
    return np.asarray(np.where(np.isfinite(shell), shell, -np.inf) + exponent * depths)


def depths(models: Array, points: Array) -> Array:
    """The depth of each of `points` (k, d) among its models (k, m, d): (k,)."""
    below = (models <= points[:, None, :]).sum(axis=1)
    above = (models >= points[:, None, :]).sum(axis=1)
    return np.asarray(np.minimum(below, above).min(axis=1))


def chances(models: Array, exponent: float) -> Array:
    """The probabilities (k, p) that the draw has depth max(1, t), and those above it, of models (k, m, d)."""
    weights = log_weights(log_widths(models).sum(axis=2), models.shape[1], exponent)
    raised = np.exp(weights - weights.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def log_density(models: Array, points: Array, exponent: float) -> Array:
    """ln of the draw's density at `points` (k, d), of models (k, m, d): (k,); -∞ where it is never drawn."""
    m = models.shape[1]
    weights = log_weights(log_widths(models).sum(axis=2), m, exponent)
    depth = depths(models, points)
    top = weights.max(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = top + np.log(np.exp(weights - top[:, None]).sum(axis=1))
        return np.asarray(np.where(depth >= max(1, least_depth(m)), exponent * depth - z, -np.inf))


def draw(models: Array, exponent: float, gumbel: Callable[[Array], Array], uniform: Callable[[Array], Array]) -> Array:
    """One point (k, d) of each set (k, m, d): its depth i, then a uniform point of {depth = i}.

    That is the box of depth i less the one of i + 1: the first coordinate c that leaves the inner box, with probability
    ∝ Π_{j<c} inner_j · (outer_c - inner_c) · Π_{j>c} outer_j, then each coordinate. A set without volume gives 0.

    gumbel: adds Gumbel noise to scores (k, p). uniform: an array of uniform numbers of the shape of its argument.
    """
    k, m, d = models.shape
    ordered, first = np.sort(models, axis=1), max(1, least_depth(m))
    widths = log_widths(models)
    weights = log_weights(widths.sum(axis=2), m, exponent)
    depth = first + np.argmax(gumbel(weights), axis=1)
    each = np.arange(k)
    low, high = ordered[each, depth - 1], ordered[each, m - depth]
    inside = (depth < m // 2)[:, None]
    inner_low = np.where(inside, ordered[each, np.minimum(depth, m - 1)], low)
    inner_high = np.where(inside, ordered[each, m - depth - 1], low)  # no box within: its side is 0, at the lower end
    outer, inner = high - low, inner_high - inner_low
    # Logarithms: volumes in many dimensions are below the least float64.
    with np.errstate(divide="ignore"):
        log_outer, log_inner, log_gap = np.log(outer), np.log(inner), np.log(outer - inner)
    before = np.concatenate([np.zeros((k, 1)), np.cumsum(log_inner, axis=1)[:, :-1]], axis=1)
    after = np.concatenate([np.cumsum(log_outer[:, ::-1], axis=1)[:, ::-1][:, 1:], np.zeros((k, 1))], axis=1)
    leaves = np.argmax(gumbel(before + log_gap + after), axis=1)[:, None]
    u, column = uniform(low), np.arange(d)
    left = inner_low - low
    # The two parts of the gap laid end to end, so that one uniform number picks a point of either.
    at = u * (outer - inner)
    outside = np.where(at < left, low + at, at + inner + low)
    points = np.where(column < leaves, inner_low + u * inner, np.where(column > leaves, low + u * outer, outside))
    there = weights.max(axis=1) > -np.inf
    return np.asarray(np.where(there[:, None] & np.isfinite(points), points, 0.0))
