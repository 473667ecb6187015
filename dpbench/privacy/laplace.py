"""Pure DP: composition of ε-DP releases and their amplification by sampling without replacement."""

from __future__ import annotations

import math

import numpy as np

from dpbench.errors import UserError


def advanced_composition(epsilon0: float, count: int, delta: float) -> float:
    """ε of `count` adaptively composed ε₀-DP releases at δ (Dwork and Roth 2014, Theorem 3.20, its exact last term).

    √(2·count·ln(1/δ)) ε₀ + count·ε₀(e^{ε₀} - 1): greedy_coordinate's eq. (2) for count = 2T.
    """
    _check_delta(delta)
    return math.sqrt(-2 * count * math.log(delta)) * epsilon0 + count * epsilon0 * math.expm1(epsilon0)


def advanced_composition_epsilon0(epsilon: float, count: int, delta: float) -> float:
    """The ε₀ of each of `count` releases that `advanced_composition` turns into (`epsilon`, `delta`)."""
    from scipy.optimize import brentq

    if not 0 < epsilon < math.inf:
        raise UserError(f"epsilon must be positive and finite, got {epsilon}")
    _check_delta(delta)
    # The first term alone bounds ε₀ from above, and so does ε₀(e^{ε₀} - 1) ≤ ε.
    high = min(epsilon / math.sqrt(-2 * count * math.log(delta)), 1 + math.log1p(epsilon))
    return brentq(lambda e: advanced_composition(e, count, delta) - epsilon, 0.0, high, xtol=1e-300, rtol=1e-14)


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise UserError(f"delta must be in (0, 1) for advanced composition, got {delta}")


def amplified(base_epsilon: float | np.ndarray, n: int, m: int) -> float | np.ndarray:
    """ε of a `base_epsilon`-DP release on a uniformly random subset of `m` of `n` rows, replace-one neighbours.

    ln(1 + (e^{ε₀} - 1) m/n): Balle, Barthe and Gaboardi (2018), Theorem 9; accelerated's eq. (3.3).
    """
    return np.log1p(np.expm1(base_epsilon) * (m / n))


def base_epsilon(amplified_epsilon: float | np.ndarray, n: int, m: int) -> float | np.ndarray:
    """The inverse of `amplified`: what a release on the subset may cost (accelerated's eq. (3.5))."""
    return np.log1p(np.expm1(amplified_epsilon) * (n / m))
