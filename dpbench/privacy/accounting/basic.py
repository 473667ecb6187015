"""`basic`: the ε and δ of noise on an objective and on its minimiser added up."""

from __future__ import annotations

import math

from dpbench.privacy.accounting.base import Accounting
from dpbench.privacy.ledger import Counts, Gaussian, ObjectivePerturbation


class Basic(Accounting):
    """(1 + √(2 ln(1/δ)))/z for each release, and the Jacobian's share (Iyengar et al. 2019, Theorem 1).

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
                    total += count * (_gaussian(z, own) + jacobian)
                case Gaussian(z):
                    total += count * _gaussian(z, left / outputs)
        return total


def _gaussian(noise_multiplier: float, delta: float) -> float:
    """ε of one release with that tail probability."""
    return (1 + math.sqrt(-2 * math.log(delta))) / noise_multiplier if delta > 0 else math.inf
