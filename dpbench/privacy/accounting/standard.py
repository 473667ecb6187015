"""`standard`: the conversion of ρ-zCDP that most papers use."""

from __future__ import annotations

import math

from dpbench.privacy.accounting.zcdp import ZeroConcentrated, square_root_rule


class Standard(ZeroConcentrated):
    """ε = ρ + 2√(ρ ln(1/δ)): Bun and Steinke (2016), Proposition 1.3."""

    name = "standard"

    def to_rho(self, epsilon: float, delta: float) -> float:
        return square_root_rule(epsilon, -math.log(delta))

    def to_epsilon(self, rho: float, delta: float) -> float:
        return rho + 2 * math.sqrt(-rho * math.log(delta))
