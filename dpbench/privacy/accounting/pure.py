"""What follows from releases one by one, without a curve: three accountings.

`pure`: ε-DP releases, their basic composition and their amplification by sampling without replacement.
`advanced`: advanced composition of ε₀-DP releases.
`basic`: the ε and δ of noise on an objective and on its minimiser added up.
"""

from __future__ import annotations

import math

import numpy as np

from dpbench.privacy.accounting.base import Accounting, check_range
from dpbench.privacy.ledger import (
    BestOfRuns,
    BoundedRange,
    Counts,
    Gaussian,
    Laplace,
    ObjectivePerturbation,
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
    # Λ ≥ Rs in the event's numbers: curvature is R²/(4Λ), and s is rows·R·multiplier.
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


class Advanced(Accounting):
    """Releases that are all ε₀-DP for one ε₀ (Dwork and Roth 2014, Theorem 3.20).

    Calibration is greedy_coordinate's eq. (2): the plan's releases count as alike, at ε₀ = 1/z each, whatever a
    selection among them costs in truth.
    """

    name = "advanced"

    def epsilon_of(self, releases: Counts, delta: float) -> float | None:
        epsilons = [pure_epsilon(release) for release, _ in releases]
        if not releases or math.inf in epsilons or max(epsilons) > min(epsilons) * (1 + 1e-12):
            return None
        return advanced_composition(epsilons[0], sum(count for _, count in releases), delta)

    def noise_scale(self, plan: Counts, after: Counts, epsilon: float, delta: float) -> float:
        # Equation (2) knows releases of one kind alone; otherwise the noise is searched for.
        if after or any(not math.isfinite(pure_epsilon(release)) for release, _ in plan):
            return super().noise_scale(plan, after, epsilon, delta)
        return 1 / advanced_composition_epsilon0(epsilon, sum(count for _, count in plan), delta)


def advanced_composition(epsilon0: float, count: int, delta: float) -> float:
    """ε of `count` adaptively composed ε₀-DP releases at δ (Dwork and Roth 2014, Theorem 3.20, its exact last term).

    √(2·count·ln(1/δ)) ε₀ + count·ε₀(e^{ε₀} - 1): greedy_coordinate's eq. (2) for count = 2T.
    """
    check_range(1.0, delta)
    return math.sqrt(-2 * count * math.log(delta)) * epsilon0 + count * epsilon0 * math.expm1(epsilon0)


def advanced_composition_epsilon0(epsilon: float, count: int, delta: float) -> float:
    """The ε₀ of each of `count` releases that `advanced_composition` turns into (`epsilon`, `delta`)."""
    from scipy.optimize import brentq

    check_range(epsilon, delta)
    # The first term alone bounds ε₀ from above, and so does ε₀(e^{ε₀} - 1) ≤ ε.
    high = min(epsilon / math.sqrt(-2 * count * math.log(delta)), 1 + math.log1p(epsilon))
    return float(brentq(lambda e: advanced_composition(e, count, delta) - epsilon, 0.0, high, xtol=1e-300, rtol=1e-14))


class Basic(Accounting):
    """`likely_epsilon` of each release, and the Jacobian's share (Iyengar et al. 2019, Theorem 1).

    An objective perturbation brings its own δ; the Gaussian releases share what is left.
    """

    name = "basic"

    def epsilon_of(self, releases: Counts, delta: float) -> float | None:
        if not all(isinstance(release, Gaussian | ObjectivePerturbation) for release, _ in releases):
            return None
        left = delta - sum(count * r.delta for r, count in releases if isinstance(r, ObjectivePerturbation))
        outputs = sum(count for r, count in releases if isinstance(r, Gaussian))
        total = 0.0
        for release, count in releases:
            match release:
                case ObjectivePerturbation(z, jacobian, own):
                    total += count * (likely_epsilon(z, own) + jacobian)
                case Gaussian(z):
                    total += count * likely_epsilon(z, left / outputs)
        return total


def likely_epsilon(noise_multiplier: float, delta: float) -> float:
    """What the privacy loss of one Gaussian release exceeds with probability at most δ: (1 + √(2 ln(1/δ)))/z.

    The loss is N(1/(2z²), 1/z²), so that its tail gives 1/(2z²) + √(2 ln(1/δ))/z. The theorem's 1/z for 1/(2z²) is
    more where z ≥ 1/2, and too little below.
    """
    if delta <= 0:
        return math.inf
    return (max(1.0, 1 / (2 * noise_multiplier)) + math.sqrt(-2 * math.log(delta))) / noise_multiplier


def likely_multiplier(epsilon: float, delta: float) -> float:
    """The inverse of `likely_epsilon`: Gaussian noise over sensitivity at which ε holds up to probability δ."""
    tail = math.sqrt(-2 * math.log(delta))
    published = (1 + tail) / epsilon
    return published if published >= 1 / 2 else (tail + math.sqrt(tail**2 + 2 * epsilon)) / (2 * epsilon)
