"""What a ledger claims, as a trade-off: no test of false-positive rate α has a false-negative rate below f(α).

Releases that are all Gaussian on all rows: f of N(0, 1) against N(μ, 1), μ² = Σ 1/z² = 2ρ (Dong, Roth and Su 2022,
Corollary 3.3). Pure ε-DP ones: basic composition at δ = 0. Others: every (ε, δ) that `verify` composes the ledger to,
by privacy-loss distributions where there are any, bounds 1-f-δ by e^ε α both ways (Wasserman and Zhou 2010); one
release on a sample without replacement by Balle, Barthe and Gaboardi (2018), Theorem 9. On the audit's neighbours the
Jacobians of objective perturbation are equal and its gradients differ by a constant (see `neighbours`), so there its
linear term is a Gaussian release.
"""

from __future__ import annotations

import math
from collections import defaultdict
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from dpbench.privacy.accounting.gaussian import gaussian_delta
from dpbench.privacy.last_iterate import as_gaussian
from dpbench.privacy.ledger import (
    Composition,
    Entry,
    Gaussian,
    LastIterate,
    LogisticPerturbation,
    ObjectivePerturbation,
    Release,
    WithoutReplacement,
)
from dpbench.privacy.profile import of_points
from dpbench.privacy.relation import Relation
from dpbench.privacy.verify import spent

DELTAS = np.concatenate([[0], np.geomspace(1e-4, 0.05, 8), np.linspace(0.08, 0.9, 16)])


class Claim:
    """A trade-off f and the unit its tests are reported in."""

    unit = "μ"

    def __call__(self, alpha: np.ndarray) -> np.ndarray:
        """f(α), the smallest false-negative rate."""
        raise NotImplementedError

    def of(self, loss: float) -> Claim:
        """The trade-off of this `loss`, in the unit of this claim."""
        return GaussianClaim(loss)

    def bound(self, alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """The privacy loss that rates of at most α and β prove."""
        with np.errstate(all="ignore"):
            return -ndtri(alpha) - ndtri(beta)

    def at(self, alpha: np.ndarray) -> np.ndarray:
        """What is claimed of a test of false-positive rate α, in the same unit."""
        return self.bound(alpha, self(alpha))


class GaussianClaim(Claim):
    """N(0, 1) against N(μ, 1)."""

    def __init__(self, mu: float) -> None:
        self.mu = mu

    def __call__(self, alpha: np.ndarray) -> np.ndarray:
        return ndtr(-ndtri(alpha) - self.mu)

    def at(self, alpha: np.ndarray) -> np.ndarray:
        return np.full(np.shape(alpha), self.mu)


class PureClaim(Claim):
    """(ε, δ)-DP at one δ, by default ε-DP."""

    unit = "ε"

    def __init__(self, epsilon: float, delta: float = 0.0) -> None:
        self.epsilon, self.delta = epsilon, delta

    def __call__(self, alpha: np.ndarray) -> np.ndarray:
        return of_points(self.epsilon, self.delta, alpha)

    def of(self, loss: float) -> Claim:
        return PureClaim(loss, self.delta)

    def bound(self, alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
        left = 1 - self.delta
        with np.errstate(all="ignore"):
            ratios = np.log((left - beta) / alpha), np.log((left - alpha) / beta)
        return np.fmax(np.fmax(*ratios), 0.0) if self.delta else np.maximum(*ratios)

    def at(self, alpha: np.ndarray) -> np.ndarray:
        return np.full(np.shape(alpha), self.epsilon)


class CurveClaim(Claim):
    """All of a list of (ε, δ)."""

    def __init__(self, points: list[tuple[float, float]]) -> None:
        self.epsilon, self.delta = np.array([p for p in points if math.isfinite(p[0])]).T

    def __call__(self, alpha: np.ndarray) -> np.ndarray:
        return of_points(self.epsilon, self.delta, alpha)


@lru_cache(maxsize=256)
def claim(composition: Composition, relation: Relation, delta: float) -> Claim:
    """What `composition` claims under `relation`; of a run with δ = 0, its ε there."""
    releases = [(_on_line(entry.release), entry.count) for entry in composition]
    plain = [(z, count) for release, count in releases if (z := _plain(release))]
    if len(plain) == len(releases):
        return GaussianClaim(math.sqrt(sum(count / z**2 for z, count in plain)))
    if delta == 0:
        return PureClaim(spent(composition, 0.0, relation).epsilon)
    if len(releases) == 1 and releases[0][1] == 1 and isinstance(releases[0][0], WithoutReplacement):
        return CurveClaim(_sampled(releases[0][0]))
    return CurveClaim([(spent(composition, float(delta), relation).epsilon, float(delta)) for delta in DELTAS])


def joint(compositions: list[Composition]) -> Composition:
    """What holds for runs that release one or another of these: the most of everything any of them releases."""
    most: dict[tuple[Release, str], int] = defaultdict(int)
    for composition in compositions:
        for release, count, label in composition:
            most[release, label] = max(most[release, label], count)
    return tuple(Entry(release, count, label) for (release, label), count in most.items())


def _plain(release: Any) -> float | None:
    """The noise multiplier of a Gaussian release on all rows."""
    match release:
        case Gaussian(z):
            return z
        case WithoutReplacement(n, m, Gaussian(z)) if n == m:
            return z
    return None


def _on_line(release: Release) -> Release:
    """On the audit's neighbours."""
    match release:
        case ObjectivePerturbation(z, _, _) | LogisticPerturbation(z, _):
            return Gaussian(z)
        case LastIterate():
            return as_gaussian(release)
    return release


def _sampled(release: WithoutReplacement) -> list[tuple[float, float]]:
    """ε' = ln(1 + q(e^ε - 1)), δ' = qδ(ε), for a grid of ε."""
    rate = release.m / release.n
    return [
        (math.log1p(rate * math.expm1(epsilon)), rate * gaussian_delta(1 / release.release.noise_multiplier, epsilon))
        for epsilon in np.linspace(0, 12, 121)
    ]
