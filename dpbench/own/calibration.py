"""By how much the scores of several classes are multiplied, so that their probabilities mean what they say.

Descent that stops early, as private descent does, leaves scores too small: the class with most of them is right more
often than its probability says. What was released tells by how much, at no cost in ε. At the mean W̄ of the last m
iterates the loss L(sW̄) falls in s at the rate -<g, W̄>, g the mean of the gradients released there. Their noise is in
W̄ too, as each iterate is a sum of them times -η; so <g, W̄> is low by ησ²kd(m + 1)/(2m) on flat directions, which is
added. L'(s) = D(s) - C, where C does not depend on s, and D(s) = E Σ_j p_j(sz) z_j is what it would be for scores z =
W̄x of a row x in any direction: normal, of variance ‖W̄‖²/(kd). The calibrated s has L'(s) = 0.

Where rows are few, noise is all there is, so s is weighed against a public guess by the noise's variance (the largest
posterior density): ln s normal about ln 2 with deviation 1. W̄, g, σ, η, m are released or public, and so is s. The
order of the classes stays, and so does every prediction. `benchmarks.calibration` measures it.
"""

from __future__ import annotations

import math

import numpy as np

from dpbench.algorithms.gradient_descent import TailGradient

GUESS, SPREAD = math.log(2.0), 1.0  # of ln s before anything is released
SLOPE, BIAS, RISE = 0.15, 0.15, 0.02  # relative errors of <g, W̄>, of what is added to it, and of D
FACTORS = np.geomspace(0.2, 12.0, 60)
DRAWS = 1000


def factor(W: np.ndarray, tail: TailGradient) -> float:
    """The s > 0 by which the scores of a model are to be multiplied: a function of releases and public numbers alone.

    Args:
        W: (k, d), the mean of the last iterates.
        tail: what was released along them.
    """
    size = float((W * W).sum())
    if not size > 0:  # nothing was learnt
        return 1.0
    fall, own = slope(W, tail)
    # The same draws for every model: they stand for the integral of D, and hide nothing.
    z = np.random.default_rng(0).standard_normal((DRAWS, len(W))) * math.sqrt(size / W.size)
    start = _mean_score(1.0, z)
    rise = np.array([_mean_score(s, z) for s in FACTORS]) - start
    variance = tail.std**2 * size / tail.steps + (BIAS * own) ** 2 + (SLOPE * fall) ** 2 + (RISE * start) ** 2
    cost = (rise + fall) ** 2 / variance + ((np.log(FACTORS) - GUESS) / SPREAD) ** 2
    return float(FACTORS[np.argmin(cost)])


def slope(W: np.ndarray, tail: TailGradient) -> tuple[float, float]:
    """(L'(1), what was added to <g, W> for the noise that is in both)."""
    own = tail.step * tail.std**2 * W.size * (tail.steps + 1) / (2 * tail.steps)
    return float(tail.mean @ W.ravel()) + own, own


def _mean_score(s: float, z: np.ndarray) -> float:
    """D(s) of scores z (b, k), whose mean is 0."""
    p = np.exp(s * (z - z.max(axis=1, keepdims=True)))
    return float(((p / p.sum(axis=1, keepdims=True) - 1 / z.shape[1]) * z).sum(axis=1).mean())
