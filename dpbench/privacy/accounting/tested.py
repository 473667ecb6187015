"""A draw behind a noisy test, `ledger.DrawAfterTest`, and other releases beside it."""

from __future__ import annotations

import math

from dpbench.privacy.accounting.base import Accounting
from dpbench.privacy.ledger import Counts, DrawAfterTest


def epsilon_of(releases: Counts, delta: float, others: Accounting) -> float | None:
    """ε_p + 2ε₁ + ϑ at max(δ_p, ϑ) for each (see `dpbench.privacy.tukey`), and of the rest what `others` gives.

    Basic composition of the two, the rest at the δ that is left; infinite where δ is too small.
    """
    mine = [(r, count) for r, count in releases if isinstance(r, DrawAfterTest)]
    rest = tuple((r, count) for r, count in releases if not isinstance(r, DrawAfterTest))
    left = delta - math.fsum(count * max(r.failure, r.leak) for r, count in mine)
    if left < -1e-12 * delta:
        return math.inf
    epsilon = math.fsum(count * (r.test + 2 * r.exponent + r.leak) for r, count in mine)
    beside = others.epsilon_of(rest, max(left, 0.0)) if rest else 0.0
    return None if beside is None else epsilon + beside
