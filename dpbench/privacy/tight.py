"""The least Laplace noise for a run of T releases and T selections, by privacy-loss distributions.

A pure-DP selection counts as randomised response, the worst ε-DP mechanism (Kairouz, Oh and Viswanath 2015, Theorem
3.1), and a Laplace release as itself.
"""

from __future__ import annotations

from functools import lru_cache

from dpbench.privacy.ledger import Entry, Laplace, PureDP
from dpbench.privacy.relation import Relation
from dpbench.privacy.subsampled import smallest_multiplier
from dpbench.privacy.verify import spent


@lru_cache(maxsize=1024)
def laplace_epsilon(epsilon: float, delta: float, steps: int, selection: float = 1.0) -> float:
    """The largest ε', to 1e-4, at which `steps` × (an ε'-DP Laplace release, a selection·ε'-DP one) are (ε, δ)-DP.

    A few seconds at most; never below basic composition, ε' = ε/(steps·(1 + selection)).
    """

    def cost(multiplier: float) -> float:
        return composed(1 / multiplier, delta, steps, selection)

    basic = steps * (1 + selection) / epsilon
    return max(1 / basic, 1 / smallest_multiplier(cost, epsilon, start=basic, rtol=1e-4))


def composed(epsilon0: float, delta: float, steps: int, selection: float = 1.0) -> float:
    """ε at `delta` of `steps` ε₀-DP Laplace releases and as many selections of selection·ε₀ (0: none)."""
    entries = [Entry(Laplace(1 / epsilon0), steps, "")]
    if selection:
        entries.append(Entry(PureDP(selection * epsilon0), steps, ""))
    return spent(tuple(entries), delta, Relation.REPLACE_ONE).epsilon
