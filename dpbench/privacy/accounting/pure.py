"""`pure`: ε-DP releases, their basic composition and their amplification by sampling without replacement."""

from __future__ import annotations

import math

import numpy as np

from dpbench.privacy.accounting.base import Accounting
from dpbench.privacy.ledger import (
    BestOfRuns,
    BoundedRange,
    Counts,
    Laplace,
    PureDP,
    Radial,
    RadialPerturbation,
    Release,
    WithoutReplacement,
)


class Pure(Accounting):
    """δ = 0: the ε₀ of the releases add up (Dwork and Roth 2014, Theorem 3.16)."""

    name = "pure"
    pure = True

    def epsilon_of(self, releases: Counts, delta: float) -> float | None:
        total = sum(count * pure_epsilon(release) for release, count in releases)
        return total if math.isfinite(total) else None


def pure_epsilon(release: Release) -> float:
    """The ε₀ of a release that is ε₀-DP; infinite for others."""
    match release:
        case PureDP(epsilon) | BoundedRange(epsilon):
            return epsilon
        case Laplace(z) | Radial(z):
            return 1 / z
        case RadialPerturbation():
            return radial_epsilon(release)
        case WithoutReplacement(n, m, Laplace(z)):
            return amplified(1 / z, n, m)
        case BestOfRuns(base, "geometric", _):  # Liu and Talwar (2019): see `BestOfRuns`
            return 3 * sum(count * pure_epsilon(each) for each, count in base)
    return math.inf


def radial_epsilon(release: RadialPerturbation) -> float:
    """ε of objective perturbation by b of density ∝ exp(-‖b‖₂/s): the gradient's part 2L₀/s, and the Jacobian's.

    θ ↔ b is one-to-one, so ln p(θ)/p'(θ) = ln det A/det A' + (‖b'‖ - ‖b‖)/s, and det A/det A' ≤ 1 + β/Λ (rank one, see
    `objective_perturbation`). Of the logistic loss, with u = yx, ∇ℓ = -pu and ∇²ℓ = p(1-p)xxᵀ: at most
    [ln(1 + p(1-p)R²/Λ) + pR/s] + p'R/s. The bracket is concave in p with slope R/s - R²/Λ at p = 1, so that where
    Λ ≥ Rs it is largest there, and the whole 2R/s: the Jacobian is free. Add/remove: without the second row.
    """
    rows = release.relation.rows
    gradient = 1 / release.noise_multiplier
    free = release.logistic and release.curvature <= gradient / (4 * rows) * (1 + 1e-12)
    return gradient if free else gradient + math.log1p(release.curvature)


def amplified(base_epsilon: float, n: int, m: int) -> float:
    """ε of a `base_epsilon`-DP release on a uniformly random subset of `m` of `n` rows, replace-one neighbours.

    ln(1 + (e^{ε₀} - 1) m/n): Balle, Barthe and Gaboardi (2018), Theorem 9; accelerated's eq. (3.3).
    """
    return float(np.log1p(np.expm1(base_epsilon) * (m / n)))


def base_epsilon(amplified_epsilon: float, n: int, m: int) -> float:
    """The inverse of `amplified`: what a release on the subset may cost (accelerated's eq. (3.5))."""
    return float(np.log1p(np.expm1(amplified_epsilon) * (n / m)))
