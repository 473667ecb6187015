"""`bs16`: the tighter conversion of Bun and Steinke."""

from __future__ import annotations

import math

from dpbench.privacy.accounting.zcdp import ZeroConcentrated, solve, square_root_rule


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
