"""ρ-zCDP: Σρ of what was released, turned into (ε, δ) by one of four conversions (a subclass each).

`text`, `bs16` and `standard` follow from Bun and Steinke (2016), `cks20` is the best that holds for every ρ-zCDP
mechanism: so for equal (ε, δ) the ρ of `cks20` is the largest. All are scalar and monotone. `bs16` also stands as the
two states of second_order's released code solve for it, which is not (ε, δ)-DP at small ε.

`bs16`: the tighter conversion of Bun and Steinke.
`cks20`: the best conversion that holds for every ρ-zCDP mechanism.
`standard`: the conversion of ρ-zCDP that most papers use.
`text`: the conversion of ρ-zCDP in closed form both ways.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

from dpbench.errors import PrivacyError, UserError
from dpbench.privacy.accounting import renyi
from dpbench.privacy.accounting.base import Accounting, check_range
from dpbench.privacy.accounting.gaussian import as_gaussian
from dpbench.privacy.accounting.pure import pure_epsilon
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
        planned, spent = total_rho(plan), total_rho(after)
        # A release on a sample has no ρ: then all of them are accounted by their Rényi curves.
        if planned is None or spent is None:
            return renyi.noise_scale(plan, after, epsilon, delta)
        left = self.rho(epsilon, delta) - spent
        if left <= 0:
            raise PrivacyError(f"what was released before leaves nothing of ε = {epsilon:g}")
        # z times the noise divides each ρ by z².
        return math.sqrt(planned / left)


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


class BunSteinke(ZeroConcentrated):
    """ε = ρ + 2√(ρ ln(√(πρ)/δ)): Bun and Steinke (2016), Lemma 3.6.

    Below ρ = δ²/π, (0, δ)-DP holds by Pinsker's inequality: ε = ρ will do.
    """

    name = "bs16"

    def to_rho(self, epsilon: float, delta: float) -> float:
        # ρ ≤ ε, so the logarithm at ε bounds the one at ρ: that gives the lower end.
        low = square_root_rule(epsilon, _log(epsilon, delta))
        return solve(lambda rho: self.to_epsilon(rho, delta) - epsilon, low * (1 - 1e-12), epsilon)

    def to_epsilon(self, rho: float, delta: float) -> float:
        return rho + 2 * math.sqrt(rho * _log(rho, delta))


def _log(rho: float, delta: float) -> float:
    return max(0.0, 0.5 * math.log(math.pi * rho) - math.log(delta))


class Standard(ZeroConcentrated):
    """ε = ρ + 2√(ρ ln(1/δ)): Bun and Steinke (2016), Proposition 1.3."""

    name = "standard"

    def to_rho(self, epsilon: float, delta: float) -> float:
        return square_root_rule(epsilon, -math.log(delta))

    def to_epsilon(self, rho: float, delta: float) -> float:
        return rho + 2 * math.sqrt(-rho * math.log(delta))


class CanonneKamathSteinke(ZeroConcentrated):
    """Canonne, Kamath and Steinke (2020), Corollary 13; see `log_delta`."""

    name = "cks20"

    def to_rho(self, epsilon: float, delta: float) -> float:
        def gap(rho: float) -> float:
            return log_delta(rho, epsilon) - math.log(delta)

        # `standard` is sound, hence never above the optimal ρ.
        low = high = Standard().rho(epsilon, delta)
        while gap(high) < 0:
            high *= 2
        return solve(gap, low * (1 - 1e-12), high)

    def to_epsilon(self, rho: float, delta: float) -> float:
        target = math.log(delta)
        # At so small a ρ even ε = 0 holds, and the root would be negative.
        if log_delta(rho, 0.0) <= target:
            return 0.0
        return solve(lambda eps: target - log_delta(rho, eps), 0.0, Standard().epsilon(rho, delta))


def log_delta(rho: float, epsilon: float) -> float:
    """ln of the smallest δ at which every ρ-zCDP mechanism is known to be (ε, δ)-DP.

    Canonne, Kamath and Steinke (2020), Corollary 13: δ = min over α > 1 of e^{(α-1)(αρ-ε)}/(α-1) · (1-1/α)^α.
    Its log is convex in α, with the derivative below: the minimum is a root, searched for in ln(α - 1).
    """
    from scipy.optimize import brentq

    def slope(u: float) -> float:
        a = math.exp(u)
        return (2 * a + 1) * rho - epsilon + u - math.log1p(a)

    # slope < 0 at the lower end (ρ(2a+1) ≤ 3ρ for a ≤ 1); slope > 0 at the upper: 2ρ + 2√ρ exceeds 1/a ≤ √ρ there.
    low, high = -3 * rho - 1, math.log((epsilon + rho) / (2 * rho) + 1 / math.sqrt(rho))
    u = brentq(slope, low, high, xtol=1e-13, rtol=1e-14)
    a = math.exp(u)
    return float(a * ((1 + a) * rho - epsilon) - u + (1 + a) * (u - math.log1p(a)))


class Text(ZeroConcentrated):
    """ε = 2(ρ + √(ρ(ρ + ln(1/δ)))): weaker than `standard`, from Bun and Steinke (2016), Proposition 1.3."""

    name = "text"

    def to_rho(self, epsilon: float, delta: float) -> float:
        return epsilon**2 / (4 * (-math.log(delta) + epsilon))

    def to_epsilon(self, rho: float, delta: float) -> float:
        return 2 * (rho + math.sqrt(rho * (rho - math.log(delta))))


class AsReleased(BunSteinke):
    """The root of ε(ρ) = ε that MINPACK's hybrid method finds from `start`, converged or not.

    Its first step leaves ρ > 0 where ε is far below ε(start), the search stops where it started, and ρ = start is
    spent. `epsilon_of` is `bs16`'s, so a row says what was spent. start: where `eps_to_zcdp` starts its root finder.
    """

    like = "bs16"
    start: ClassVar[float]

    def to_rho(self, epsilon: float, delta: float) -> float:
        import numpy as np
        from scipy.optimize import fsolve

        def gap(rho: Any) -> Any:  # (1,), as MINPACK hands it over
            return rho + np.sqrt(4 * rho * np.log(np.sqrt(math.pi * rho) / delta)) - epsilon

        with np.errstate(invalid="ignore", divide="ignore"):
            # The released code does not look at the flag of convergence, so neither does its model.
            root, *_ = fsolve(gap, self.start, full_output=True)
        return float(np.ravel(root)[0])


class ReleasedFebruary(AsReleased):
    """The state of February 2023: from ρ = 0.005, which is what the published Table 1 fits.

    At n = 53,121 it spends 0.005 for every ε up to about 0.30, at n = 10,000 up to about 0.27.
    """

    name = "released-february"
    start = 5e-3
    flaw = "ρ as the code of February 2023 finds it: not below 0.005, which costs more than a small ε"


class ReleasedJuly(AsReleased):
    """The state of July 2023: from ρ = 0.001, spent for every ε up to about 0.13."""

    name = "released-july"
    start = 1e-3
    flaw = "ρ as the released code finds it: not below 0.001, which costs more than a small ε"


class AsReleasedCode(ReleasedJuly):
    """`released-july` by its former name, which is part of the keys of finished rows."""

    name = "as-released-code"
