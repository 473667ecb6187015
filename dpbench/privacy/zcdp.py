"""Conversions between ρ-zCDP and (ε, δ)-DP, by name and in both directions. All are scalar and monotone.

`text`, `bs16` and `standard` follow from Bun and Steinke (2016), `cks20` is the best that holds for every ρ-zCDP
mechanism: so for equal (ε, δ) the ρ of `cks20` is the largest.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dpbench.errors import UserError, nearest


def rho(epsilon: float, delta: float, conversion: str) -> float:
    """The ρ at which `conversion` gives exactly (`epsilon`, `delta`); ε > 0, 0 < δ < 1."""
    if not 0 < epsilon < math.inf:
        raise UserError(f"epsilon must be positive and finite, got {epsilon}")
    _check_delta(delta)
    return _of(conversion)[0](epsilon, delta)


def epsilon(rho: float, delta: float, conversion: str) -> float:
    """The ε that `conversion` gives at `delta` for a `rho`-zCDP mechanism; ρ ≥ 0, 0 < δ < 1."""
    if not 0 <= rho < math.inf:
        raise UserError(f"rho must be non-negative and finite, got {rho}")
    _check_delta(delta)
    return _of(conversion)[1](rho, delta) if rho > 0 else 0.0


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise UserError(f"delta must be in (0, 1) for a zCDP conversion, got {delta}")


def _of(conversion: str) -> tuple[Callable[[float, float], float], Callable[[float, float], float]]:
    try:
        return CONVERSIONS[conversion]
    except KeyError:
        raise UserError(f"unknown conversion {conversion!r}; {nearest(conversion, CONVERSIONS)}") from None


def _rho_text(epsilon: float, delta: float) -> float:
    return epsilon**2 / (4 * (-math.log(delta) + epsilon))


def _epsilon_text(rho: float, delta: float) -> float:
    return 2 * (rho + math.sqrt(rho * (rho - math.log(delta))))


def _rho_standard(epsilon: float, delta: float) -> float:
    return _square_root_rule(epsilon, -math.log(delta))


def _epsilon_standard(rho: float, delta: float) -> float:
    """Bun and Steinke (2016), Proposition 1.3."""
    return rho + 2 * math.sqrt(-rho * math.log(delta))


def _square_root_rule(epsilon: float, L: float) -> float:
    """The root ρ of ε = ρ + 2√(ρL): (√(ε + L) - √L)², without its cancellation at small ε."""
    return (epsilon / (math.sqrt(epsilon + L) + math.sqrt(L))) ** 2


def _epsilon_bs16(rho: float, delta: float) -> float:
    """Bun and Steinke (2016), Lemma 3.6. Below ρ = δ²/π, (0, δ)-DP holds by Pinsker's inequality: ε = ρ will do."""
    return rho + 2 * math.sqrt(rho * _bs16_log(rho, delta))


def _rho_bs16(epsilon: float, delta: float) -> float:
    # ρ ≤ ε, so the logarithm at ε bounds the one at ρ: that gives the lower end.
    low = _square_root_rule(epsilon, _bs16_log(epsilon, delta))
    return _solve(lambda rho: _epsilon_bs16(rho, delta) - epsilon, low * (1 - 1e-12), epsilon)


def _bs16_log(rho: float, delta: float) -> float:
    return max(0.0, 0.5 * math.log(math.pi * rho) - math.log(delta))


def cks20_log_delta(rho: float, epsilon: float) -> float:
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
    return a * ((1 + a) * rho - epsilon) - u + (1 + a) * (u - math.log1p(a))


def _epsilon_cks20(rho: float, delta: float) -> float:
    target = math.log(delta)
    if cks20_log_delta(rho, 0.0) <= target:
        return 0.0
    return _solve(lambda eps: target - cks20_log_delta(rho, eps), 0.0, _epsilon_standard(rho, delta))


def _rho_cks20(epsilon: float, delta: float) -> float:
    def gap(rho: float) -> float:
        return cks20_log_delta(rho, epsilon) - math.log(delta)

    low = high = _rho_standard(epsilon, delta)  # sound, hence never above the optimal one
    while gap(high) < 0:
        high *= 2
    return _solve(gap, low * (1 - 1e-12), high)


def _solve(increasing: Callable[[float], float], low: float, high: float) -> float:
    from scipy.optimize import brentq

    return brentq(increasing, low, high, xtol=1e-300, rtol=1e-14, maxiter=500)


CONVERSIONS: dict[str, tuple[Callable[[float, float], float], Callable[[float, float], float]]] = {
    "text": (_rho_text, _epsilon_text),
    "bs16": (_rho_bs16, _epsilon_bs16),
    "cks20": (_rho_cks20, _epsilon_cks20),
    "standard": (_rho_standard, _epsilon_standard),
}
