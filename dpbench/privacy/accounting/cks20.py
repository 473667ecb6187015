"""`cks20`: the best conversion that holds for every ρ-zCDP mechanism."""

from __future__ import annotations

import math

from dpbench.privacy.accounting.standard import Standard
from dpbench.privacy.accounting.zcdp import ZeroConcentrated, solve


class CanonneKamathSteinke(ZeroConcentrated):
    """Canonne, Kamath and Steinke (2020), Corollary 13; see `log_delta`."""

    name = "cks20"

    def to_rho(self, epsilon: float, delta: float) -> float:
        def gap(rho: float) -> float:
            return log_delta(rho, epsilon) - math.log(delta)

        low = high = Standard().rho(epsilon, delta)  # sound, hence never above the optimal one
        while gap(high) < 0:
            high *= 2
        return solve(gap, low * (1 - 1e-12), high)

    def to_epsilon(self, rho: float, delta: float) -> float:
        target = math.log(delta)
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
