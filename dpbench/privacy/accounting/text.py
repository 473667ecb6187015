"""`text`: the conversion of ρ-zCDP in closed form both ways."""

from __future__ import annotations

import math

from dpbench.privacy.accounting.zcdp import ZeroConcentrated


class Text(ZeroConcentrated):
    """ε = 2(ρ + √(ρ(ρ + ln(1/δ)))): weaker than `standard`, from Bun and Steinke (2016), Proposition 1.3."""

    name = "text"

    def to_rho(self, epsilon: float, delta: float) -> float:
        return epsilon**2 / (4 * (-math.log(delta) + epsilon))

    def to_epsilon(self, rho: float, delta: float) -> float:
        return 2 * (rho + math.sqrt(rho * (rho - math.log(delta))))
