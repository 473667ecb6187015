"""All of a run's privacy, not one (ε, δ): its profile ε(δ), and its trade-off curve (f-DP).

The trade-off f(α) is the least rate of false negatives of a test that distinguishes neighbours by all that was released
with a rate α of false positives (Dong, Roth and Su 2022). Gaussian releases alone: f = G_μ, exactly, μ² = Σ 1/z².
Others: by the profile, (ε, δ)-DP being f(α) ≥ max(0, 1 - δ - e^ε α, e^{-ε}(1 - δ - α)) (their Proposition 3); a lower
bound, as close as the profile's points.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpbench.errors import UserError
from dpbench.privacy.last_iterate import as_gaussian
from dpbench.privacy.ledger import Composition, Gaussian, LastIterate
from dpbench.privacy.relation import Relation
from dpbench.privacy.verify import spent

Curve: TypeAlias = NDArray[np.float64]

# Where a trade-off that is not Gaussian is taken from its profile.
DELTAS = (0.0, *np.geomspace(1e-10, 1e-3, 15), *np.geomspace(2e-3, 0.1, 18), *np.linspace(0.12, 0.95, 28))


def profile(composition: Composition, relation: Relation, deltas: Sequence[float] | Curve) -> Curve:
    """ε at each of `deltas`, in [0, 1), by the independent accountant (`verify`); infinite where there is none."""
    given = [float(delta) for delta in deltas]
    for delta in given:
        if not 0 <= delta < 1:
            raise UserError(f"deltas: each must be in [0, 1), got {delta:g}")
    found = np.array([spent(composition, delta, relation).epsilon for delta in given])
    order = np.argsort(given)  # a larger δ never costs more: accountants with an error of their own may say so
    found[order] = np.minimum.accumulate(found[order])
    return found


def mu(composition: Composition) -> float | None:
    """μ where everything in `composition` is Gaussian on all rows, None where it is not."""
    parts = [(as_gaussian(r) if isinstance(r, LastIterate) else r, count) for r, count, _ in composition]
    if not parts or not all(isinstance(release, Gaussian) for release, _ in parts):
        return None
    return math.sqrt(math.fsum(n / r.noise_multiplier**2 for r, n in parts if isinstance(r, Gaussian)))


def trade_off(composition: Composition, relation: Relation, alphas: Sequence[float] | Curve) -> Curve:
    """f(α) at each of `alphas`, in [0, 1]: see the module."""
    from scipy.stats import norm

    given = np.asarray(alphas, dtype=float)
    if not ((given >= 0) & (given <= 1)).all():
        raise UserError("alphas: each must be in [0, 1]")
    if (gaussian := mu(composition)) is not None:
        return np.asarray(norm.cdf(norm.isf(given) - gaussian))
    deltas = np.array(DELTAS)
    epsilons = profile(composition, relation, deltas)
    known = np.isfinite(epsilons) & (epsilons < 700)
    return of_points(epsilons[known], deltas[known], given)


def of_points(epsilon: float | Curve, delta: float | Curve, alpha: Curve) -> Curve:
    """f(α) of all that the pairs (ε, δ) say together, one pair or several."""
    alpha = np.asarray(alpha)[..., None]
    lines = np.maximum(1 - delta - np.exp(epsilon) * alpha, np.exp(np.negative(epsilon)) * (1 - delta - alpha))
    return np.asarray(np.maximum(0.0, lines).max(axis=-1, initial=0.0))
