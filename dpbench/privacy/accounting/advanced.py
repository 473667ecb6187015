"""`advanced`: advanced composition of ε₀-DP releases."""

from __future__ import annotations

import math

from dpbench.privacy.accounting.base import Accounting, check_range
from dpbench.privacy.accounting.pure import pure_epsilon
from dpbench.privacy.ledger import Counts


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
