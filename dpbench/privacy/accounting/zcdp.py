"""ρ-zCDP: Σρ of what was released, turned into (ε, δ) by one of four conversions (a subclass and a file each).

`text`, `bs16` and `standard` follow from Bun and Steinke (2016), `cks20` is the best that holds for every ρ-zCDP
mechanism: so for equal (ε, δ) the ρ of `cks20` is the largest. All are scalar and monotone.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dpbench.errors import PrivacyError, UserError
from dpbench.privacy.accounting import renyi
from dpbench.privacy.accounting.base import Accounting, check_range
from dpbench.privacy.accounting.pure import pure_epsilon
from dpbench.privacy.last_iterate import as_gaussian
from dpbench.privacy.ledger import (
    ZCDP,
    BoundedRange,
    Counts,
    Gaussian,
    Laplace,
    LastIterate,
    PureDP,
    Radial,
    RadialPerturbation,
    Release,
)


class ZeroConcentrated(Accounting):
    """Gaussian releases at 1/(2z²)-zCDP, ε₀-DP ones at ε₀²/2 (Bun and Steinke 2016, Propositions 1.6 and 1.4).

    Where a release is on a sample, which zCDP does not know: Rényi DP of everything, see `renyi`.
    """

    def rho(self, epsilon: float, delta: float) -> float:
        """The ρ at which the conversion gives exactly (`epsilon`, `delta`); ε > 0, 0 < δ < 1."""
        check_range(epsilon, delta)
        return self.to_rho(epsilon, delta)

    def epsilon(self, rho: float, delta: float) -> float:
        """The ε that the conversion gives at `delta` for a `rho`-zCDP mechanism; ρ ≥ 0, 0 < δ < 1."""
        if not 0 <= rho < math.inf:
            raise UserError(f"rho must be non-negative and finite, got {rho}")
        check_range(1.0, delta)
        return self.to_epsilon(rho, delta) if rho > 0 else 0.0

    def to_rho(self, epsilon: float, delta: float) -> float:
        """The conversion's formula for ρ, which a subclass gives; (ε, δ) are in range."""
        raise NotImplementedError

    def to_epsilon(self, rho: float, delta: float) -> float:
        """The conversion's formula for ε, which a subclass gives; ρ > 0 and δ are in range."""
        raise NotImplementedError

    def epsilon_of(self, releases: Counts, delta: float) -> float | None:
        total = total_rho(releases)
        return renyi.epsilon_of(releases, delta) if total is None else self.epsilon(total, delta)

    def noise_scale(self, plan: Counts, after: Counts, epsilon: float, delta: float) -> float:
        asked, spent = total_rho(plan), total_rho(after)
        if asked is None or spent is None:
            return renyi.noise_scale(plan, after, epsilon, delta)
        left = self.rho(epsilon, delta) - spent
        if left <= 0:
            raise PrivacyError(f"what was released before leaves nothing of ε = {epsilon:g}")
        return math.sqrt(asked / left)


def total_rho(releases: Counts) -> float | None:
    """Σρ; None where a release has none."""
    rhos = [rho_of(release) for release, _ in releases]
    return None if None in rhos else sum(c * rho for rho, (_, c) in zip(rhos, releases, strict=True) if rho)


def rho_of(release: Release) -> float | None:
    """The ρ of one release on all rows, None for others."""
    match release:
        case Gaussian(z):
            return 0.5 / z**2
        case LastIterate():  # a Gaussian of that μ dominates it
            return rho_of(as_gaussian(release))
        case ZCDP(rho):
            return rho
        case BoundedRange(epsilon):
            return epsilon**2 / 8
        case Laplace() | PureDP() | Radial() | RadialPerturbation():
            return pure_epsilon(release) ** 2 / 2
    return None


def square_root_rule(epsilon: float, L: float) -> float:
    """The root ρ of ε = ρ + 2√(ρL): (√(ε + L) - √L)², without its cancellation at small ε."""
    return (epsilon / (math.sqrt(epsilon + L) + math.sqrt(L))) ** 2


def solve(increasing: Callable[[float], float], low: float, high: float) -> float:
    """The root of `increasing` in [low, high]."""
    from scipy.optimize import brentq

    return float(brentq(increasing, low, high, xtol=1e-300, rtol=1e-14, maxiter=500))
