"""Rényi DP of Gaussian releases on samples: Poisson (add/remove) and fixed-size without replacement (replace-one).

A mechanism's Rényi curve is kept as its cumulant K(α) = (α-1)·D_α on a grid of orders; K adds up under composition.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from dpbench.errors import UserError


def poisson_cumulant(noise_multiplier: float, rate: float, orders: np.ndarray) -> np.ndarray:
    """K(α) of one Poisson-sampled Gaussian release, add/remove neighbours; `orders` > 1, increasing.

    ln E[(1-q + q e^{(2x-1)/(2σ²)})^α] over x ~ N(0, σ²): Mironov, Talwar and Zhang (2019), Section 3.3; by their
    binomial sum at integer orders, by the trapezoid rule at others.
    """
    if rate == 1:
        return gaussian_cumulant(noise_multiplier, orders)
    whole = orders == np.floor(orders)
    K = np.empty(len(orders))
    K[~whole] = _poisson_by_quadrature(noise_multiplier, rate, orders[~whole])
    # The terms of the plain binomial sum to 1, so K = ln(1 + Σ_{j≥2} (…)(e^{(j²-j)/(2σ²)} - 1)): exact when K is tiny.
    j = np.arange(2, int(orders[-1]) + 1)
    excess = _log_expm1((j * j - j) / (2 * noise_multiplier**2)) + j * (math.log(rate) - math.log1p(-rate))
    K[whole] = [
        _log1p_sum(_log_binomials(a) + a * math.log1p(-rate) + excess[: a - 1]) for a in orders[whole].astype(int)
    ]
    return K


def _poisson_by_quadrature(sigma: float, rate: float, orders: np.ndarray) -> np.ndarray:
    if not len(orders):
        return np.empty(0)
    # In units of σ. The integrand's nearest singularity is πσ off the real line: the error is of order e^{-2π²σ/h}.
    h = min(0.1, sigma / 4)
    x = np.arange(-12, 12 + orders[-1] / sigma, h)
    log_ratio = np.logaddexp(math.log1p(-rate), math.log(rate) + x / sigma - 0.5 / sigma**2)
    log_density = -x * x / 2 + math.log(h / math.sqrt(2 * math.pi))
    return np.array([_log_sum(a * log_ratio + log_density) for a in orders])


def without_replacement_cumulant(noise_multiplier: float, n: int, m: int, orders: np.ndarray) -> np.ndarray:
    """K(α) of one Gaussian release on m of n rows without replacement, replace-one; `orders`: increasing integers ≥ 2.

    Wang, Balle and Kasiviswanathan (2019), Theorem 9 (nonconvex's eq. 27), with the sharper terms of their
    Theorem 27 for j ≥ 3 where they are smaller: without them the bound does not vanish as the noise grows, and no ε
    below about 1 is within reach at T in the hundreds. Never worse than no sampling at all, as the Rényi divergence
    is jointly quasi-convex. `noise_multiplier` is relative to the replace-one sensitivity of the value on m rows.
    """
    whole = gaussian_cumulant(noise_multiplier, orders)
    if m == n:
        return whole
    j = np.arange(2, int(orders[-1]) + 1)
    # j(j-1)/(2σ²) = (j-1) ε(j); with ε(∞) = ∞, Theorem 9's inner minimum is 2.
    terms = math.log(2) + j * (j - 1) / (2 * noise_multiplier**2)
    terms[0] = min(terms[0], math.log(4) + _log_expm1(noise_multiplier**-2))
    even = _log_even_moments(noise_multiplier, int(orders[-1]))
    terms[1:] = np.minimum(terms[1:], math.log(4) + 0.5 * (even[j[1:] // 2] + even[(j[1:] + 1) // 2]))
    terms += j * math.log(m / n)
    return np.minimum(whole, [_log1p_sum(_log_binomials(a) + terms[: a - 1]) for a in map(int, orders)])


def gaussian_cumulant(noise_multiplier: float, orders: np.ndarray) -> np.ndarray:
    """K(α) = α(α-1)/(2σ²) of the Gaussian mechanism on all rows."""
    return orders * (orders - 1) / (2 * noise_multiplier**2)


def rdp_epsilon(orders: np.ndarray, cumulant: np.ndarray, delta: float) -> float:
    """The smallest ε ≥ 0 the curve proves at `delta`.

    min over α of (K(α) - ln(δα))/(α-1) + ln(1-1/α): Canonne, Kamath and Steinke (2020), Proposition 12.
    """
    bound = (cumulant - np.log(delta * orders)) / (orders - 1) + np.log1p(-1 / orders)
    return max(0.0, float(np.min(bound)))


def poisson_epsilon(noise_multiplier: float, delta: float, rate: float, steps: int) -> float:
    """ε at `delta` of `steps` Poisson-sampled Gaussian releases, add/remove neighbours."""
    return rdp_epsilon(POISSON_ORDERS, steps * poisson_cumulant(noise_multiplier, rate, POISSON_ORDERS), delta)


def without_replacement_epsilon(noise_multiplier: float, delta: float, n: int, m: int, steps: int) -> float:
    """ε at `delta` of `steps` Gaussian releases on m of n rows without replacement, replace-one neighbours."""
    orders = WITHOUT_REPLACEMENT_ORDERS
    return rdp_epsilon(orders, steps * without_replacement_cumulant(noise_multiplier, n, m, orders), delta)


def poisson_noise_multiplier(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """The smallest noise multiplier at which `steps` Poisson-sampled Gaussian releases are (ε, δ)-DP by RDP."""
    _check(epsilon, delta, steps)
    orders = _useful(POISSON_ORDERS, epsilon, delta)
    return smallest_multiplier(lambda z: rdp_epsilon(orders, steps * poisson_cumulant(z, rate, orders), delta), epsilon)


@lru_cache(maxsize=1024)
def without_replacement_noise_multiplier(
    epsilon: float, delta: float, n: int, m: int, steps: int, after: tuple[tuple[float, int], ...] = ()
) -> float:
    """The same for releases on m of n rows without replacement, replace-one neighbours.

    after: (noise multiplier, count) of such releases made before, whose curves count towards ε too.
    """
    _check(epsilon, delta, steps)
    orders = _useful(WITHOUT_REPLACEMENT_ORDERS, epsilon, delta)
    before = sum(count * without_replacement_cumulant(z, n, m, orders) for z, count in after)
    return smallest_multiplier(
        lambda z: rdp_epsilon(orders, before + steps * without_replacement_cumulant(z, n, m, orders), delta), epsilon
    )


def gaussian_noise_multiplier(epsilon: float, delta: float) -> float:
    """The same for one Gaussian release on all rows (for T of them, √T times this)."""
    _check(epsilon, delta, 1)
    orders = POISSON_ORDERS
    return smallest_multiplier(lambda z: rdp_epsilon(orders, gaussian_cumulant(z, orders), delta), epsilon)


def smallest_multiplier(
    spent: Callable[[float], float], epsilon: float, *, start: float = 1.0, rtol: float = 1e-9
) -> float:
    """The noise multiplier, to `rtol` and never below, at which the decreasing function `spent` reaches `epsilon`."""
    from scipy.optimize import brentq

    low = high = start
    while spent(high) > epsilon:
        low, high = high, 2 * high
        if high > 1e9:
            raise UserError(
                f"epsilon: {epsilon:g} is out of reach of this accounting with any noise; raise epsilon or delta"
            )
    while spent(low) <= epsilon:
        low, high = low / 2, low
        if low < 1e-9:
            raise UserError(f"epsilon: {epsilon:g} needs no noise at this sampling rate and delta; lower epsilon")
    root = math.exp(brentq(lambda u: spent(math.exp(u)) - epsilon, math.log(low), math.log(high), xtol=rtol / 2))
    while spent(root) > epsilon:
        root *= 1 + rtol / 2
    return root


def _check(epsilon: float, delta: float, steps: int) -> None:
    if not 0 < epsilon < math.inf:
        raise UserError(f"epsilon must be positive and finite, got {epsilon}")
    if not 0 < delta < 1:
        raise UserError(f"delta must be in (0, 1) for a sampled Gaussian mechanism, got {delta}")
    if steps < 1:
        raise UserError(f"steps must be at least 1, got {steps}")


# Sampled Gaussians have sharp bends, so tenths below 11; 3 % apart where the best order is large (4,000 for ε = 0.01 at
# δ = 1e-9 without sampling).
POISSON_ORDERS = np.unique(
    np.concatenate([np.arange(11, 110) / 10, np.arange(11, 65), np.round(np.geomspace(64, 2**14, 190))])
)
# Theorem 9 is for integer orders. Beyond 256 the second accountant lacks the sharper terms, so we stop there too.
WITHOUT_REPLACEMENT_ORDERS = np.array(
    [*range(2, 33), *range(36, 65, 4), *range(72, 129, 8), *range(144, 257, 16)], dtype=float
)


def _useful(orders: np.ndarray, epsilon: float, delta: float) -> np.ndarray:
    """Without the orders that are too large to be best: at plain Gaussians the best is near 1 + 2 ln(1/δ)/ε."""
    return orders[orders <= max(64, 4 * -math.log(delta) / epsilon)]


@lru_cache(maxsize=512)
def _log_binomials(a: int) -> np.ndarray:
    """ln C(a, j) for j = 2, …, a."""
    from scipy.special import gammaln

    j = np.arange(2, a + 1)
    return gammaln(a + 1) - gammaln(j + 1) - gammaln(a - j + 1)


def _log_even_moments(sigma: float, last: int) -> np.ndarray:
    """ln E[(P/Q - 1)^{2l}] under Q = N(0, σ²), P = N(1, σ²), for l = 0, …, ⌈last/2⌉.

    The trapezoid rule on a positive, entire integrand: exact to rounding, where the finite differences of e^{K} that
    the paper writes lose all their digits for large σ.
    """
    half = (last + 1) // 2
    powers = 2 * np.arange(half + 1)
    spread = math.sqrt(powers[-1]) + 12
    x = np.arange(-spread, spread + powers[-1] / sigma, 0.1)  # in units of σ
    loss = x / sigma - 0.5 / sigma**2
    with np.errstate(divide="ignore"):
        log_ratio = np.maximum(loss, 0) + np.log(-np.expm1(-np.abs(loss)))  # ln |e^loss - 1|
    log_density = -x * x / 2 + math.log(0.1 / math.sqrt(2 * math.pi))
    return np.array([0.0] + [_log_sum(p * log_ratio + log_density) for p in powers[1:]])


def _log_expm1(x):
    return x + np.log(-np.expm1(-x))


def _log_sum(terms: np.ndarray) -> float:
    top = terms.max()
    return top + math.log(np.exp(terms - top).sum())


def _log1p_sum(terms: np.ndarray) -> float:
    """ln(1 + Σ e^terms)."""
    return float(np.logaddexp(0.0, _log_sum(terms)))
