"""The ε of Gaussian releases on batches under replace-one: drawn with replacement from both sides, else from below.

The replaced row is in a batch of m draws K ~ Bin(m, 1/n) times, and moves the mean over it by K times as much as once.
`z` is the noise multiplier relative to once.

At most: what is released is a function of (K, N(Kμ, 1)), K's law being that of both data sets, so all T of these with
K in the open cost no less (joint convexity of the hockey-stick divergence). Above `MOST` times all is taken for lost.

At least: all other rows are equal, so one data set gives N(0, z²) and the other the mixture of N(K, z²); distinguished
by which of many intervals each release falls into, with the loss of each rounded down.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    from dpbench.algorithms.base import Array

MOST = 6  # times in a batch; P(K > 6) is below 1e-15 at m/n = 1/50
BINS = 4000


def counts(n: int, m: int) -> Array:
    """(MOST + 1,) P(K = k), K ~ Bin(m, 1/n)."""
    from scipy.stats import binom

    return np.asarray(binom.pmf(np.arange(MOST + 1), m, 1 / n))


def at_most(z: float, n: int, m: int, T: int, delta: float, *, shared: int = 1, step: float = 5e-3) -> float:
    """ε of T batches with `shared` releases of multiplier z on each: together one Gaussian of multiplier z/√shared."""
    from scipy.stats import norm

    b, mu = counts(n, m), math.sqrt(shared) / z
    reach = (MOST * mu) ** 2 / 2 + 9 * MOST * mu
    edges = step * np.arange(math.floor(-9 * mu / step), math.ceil(reach / step) + 1)
    losses, masses = edges[1:], np.zeros(len(edges) - 1)  # each bin's mass at its upper end
    masses[np.searchsorted(losses, -1e-12)] += b[0]
    for k in range(1, MOST + 1):
        at = norm.cdf(edges, (k * mu) ** 2 / 2, k * mu)
        at[0] = 0.0
        masses += b[k] * np.diff(at)
    lost = max(0.0, 1 - float(masses.sum()))
    return float(_composed(losses, masses, lost, step, T, pessimistic=True).get_epsilon_for_delta(delta))


def at_least(z: float, n: int, m: int, T: int, delta: float, *, step: float = 1e-3) -> float:
    """ε of T releases of multiplier z, each on a batch of its own, that all equal rows but one attain."""
    from scipy.special import ndtr

    b = counts(n, m)
    edges = np.linspace(-8 * z, MOST + 4 * z, BINS)
    under = [_bins(ndtr, (edges - k) / z) for k in range(MOST + 1)]
    p, q = reduce(np.add, (weight * each for weight, each in zip(b, under, strict=True))), under[0]
    seen = (p > 0) & (q > 0)  # what is not counts as no loss at all
    losses = np.log(p[seen] / q[seen])
    return float(_composed(losses, p[seen], 0.0, step, T, pessimistic=False).get_epsilon_for_delta(delta))


def _bins(ndtr: Callable[[Array], Array], x: Array) -> Array:
    """Normal masses between the points, each from the nearer tail."""
    return np.where(x[:-1] > 0, ndtr(-x[:-1]) - ndtr(-x[1:]), ndtr(x[1:]) - ndtr(x[:-1]))


def _composed(
    losses: Array, masses: Array, infinite: float, step: float, T: int, *, pessimistic: bool
) -> PrivacyLossDistribution:
    """T times the distribution of a loss, on the grid of `step` rounded up or down; missing mass is at its low end."""
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    at = np.round(losses / step) if pessimistic else np.floor(losses / step)
    low = int(at.min())
    grid = np.bincount((at - low).astype(int), weights=masses)
    grid[0] += max(0.0, 1 - infinite - float(grid.sum()))
    pmf = pld_pmf.DensePLDPmf(step, low, grid, infinite, pessimistic_estimate=pessimistic)
    return PrivacyLossDistribution(pmf).self_compose(T)


def attained_among_equal_rows(z: float, rate: float, T: int, delta: float, interval: float = 2e-5) -> float:
    """ε of T Gaussian releases on subsets when all rows are equal and one is replaced.

    The output is N(0, z²) against the mixture (1 - rate) N(0, z²) + rate N(1, z²), whichever rows are drawn.
    """
    from dp_accounting.pld import privacy_loss_distribution as pld

    one = pld.from_gaussian_mechanism(
        z,
        sampling_prob=rate,
        value_discretization_interval=interval,
        pessimistic_estimate=False,
        use_connect_dots=False,
    )
    return float(one.self_compose(T).get_epsilon_for_delta(delta))
