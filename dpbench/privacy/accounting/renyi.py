"""Rényi DP: of Gaussians on Poisson samples or on fixed-size ones (replace-one), and of all else.

A mechanism's Rényi curve is kept as its cumulant K(α) = (α-1)·D_α on a grid of orders; K adds up under composition.

`rdp`: Rényi DP of everything, converted once.
`poisson`: one row drawn at a time, accounted as if it were a Poisson sample.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbench.errors import PrivacyError
from dpbench.privacy.accounting.base import Accounting, check_range, smallest_scale
from dpbench.privacy.accounting.pure import pure_epsilon
from dpbench.privacy.ledger import (
    ZCDP,
    BestOfRuns,
    BoundedRange,
    Counts,
    Gaussian,
    Laplace,
    Poisson,
    PoissonReplaced,
    PureDP,
    Radial,
    RadialPerturbation,
    Release,
    WithoutReplacement,
    scaled,
)

Array = NDArray[np.float64]

LITTLE = 0.05  # noise multipliers that no experiment has, but a search for the noise of a huge ε


def poisson_cumulant(noise_multiplier: float, rate: float, orders: Array) -> Array:
    """K(α) of one Poisson-sampled Gaussian release, add/remove neighbours; `orders` > 1, increasing.

    ln E[(1-q + q e^{(2x-1)/(2σ²)})^α] over x ~ N(0, σ²): Mironov, Talwar and Zhang (2019), Section 3.3; by their
    binomial sum at integer orders, by the trapezoid rule at others.
    """
    if rate == 1:
        return gaussian_cumulant(noise_multiplier, orders)
    whole = orders == np.floor(orders)
    K = np.empty(len(orders))
    # The terms of the plain binomial sum to 1, so K = ln(1 + Σ_{j≥2} (…)(e^{(j²-j)/(2σ²)} - 1)): exact when K is tiny.
    j = np.arange(2, int(orders[-1]) + 1)
    excess = _log_expm1((j * j - j) / (2 * noise_multiplier**2)) + j * (math.log(rate) - math.log1p(-rate))
    K[whole] = [
        _log1p_sum(_log_binomials(a) + a * math.log1p(-rate) + excess[: a - 1]) for a in orders[whole].astype(int)
    ]
    # K is convex with K(1) = 0, so chords bound it: for little noise, where quadrature would need 44/σ² points.
    if noise_multiplier < LITTLE:
        K[~whole] = np.interp(orders[~whole], [1.0, *orders[whole]], [0.0, *K[whole]])
    else:
        K[~whole] = _poisson_by_quadrature(noise_multiplier, rate, orders[~whole])
    return K


def _poisson_by_quadrature(sigma: float, rate: float, orders: Array) -> Array:
    if not len(orders):
        return np.empty(0)
    # In units of σ. The integrand's nearest singularity is πσ off the real line: the error is of order e^{-2π²σ/h}.
    h = min(0.1, sigma / 4)
    x = np.arange(-12, 12 + orders[-1] / sigma, h)
    log_ratio = np.logaddexp(math.log1p(-rate), math.log(rate) + x / sigma - 0.5 / sigma**2)
    log_density = -x * x / 2 + math.log(h / math.sqrt(2 * math.pi))
    return np.array([_log_sum(a * log_ratio + log_density) for a in orders])


def poisson_replaced_cumulant(noise_multiplier: float, rate: float, orders: Array) -> Array:
    """K(α) of one Gaussian release on a Poisson sample, replace-one, by the trapezoid rule.

    The pair (1-q)N(0, z²) + qN(±1/2, z²) of `loss_distribution` dominates in every α-divergence too, each being a
    mixture of hockey sticks (Zhu, Dong and Wang 2022, Section 3).
    """
    half = 0.5 / noise_multiplier
    far = 12 + 2 * orders[-1] * half  # the likelihood ratio grows as e^{2·half·x}
    x = np.arange(-far, far, min(0.25, 0.25 / half))  # in units of z
    out = math.log1p(-rate) if rate < 1 else -math.inf
    first, second = (np.logaddexp(out, math.log(rate) + s * half * x - half**2 / 2) for s in (1, -1))
    log_density = -x * x / 2 + math.log((x[1] - x[0]) / math.sqrt(2 * math.pi))
    return np.maximum(0.0, [_log_sum(a * first + (1 - a) * second + log_density) for a in orders])


def without_replacement_cumulant(noise_multiplier: float, n: int, m: int, orders: Array) -> Array:
    """K(α) of one Gaussian release on m of n rows without replacement, replace-one; `orders`: increasing integers ≥ 2.

    Wang, Balle and Kasiviswanathan (2019), Theorem 9 (nonconvex's eq. 27), with the tighter terms of their
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
    sampled = [_log1p_sum(_log_binomials(a) + terms[: a - 1]) for a in map(int, orders)]
    curve: Array = np.minimum(whole, np.array(sampled))
    return curve


def gaussian_cumulant(noise_multiplier: float, orders: Array) -> Array:
    """K(α) = α(α-1)/(2σ²) of the Gaussian mechanism on all rows."""
    return orders * (orders - 1) / (2 * noise_multiplier**2)


def bounded_range_cumulant(epsilon: float, orders: Array) -> Array:
    """K(α) of losses in an interval of length ε, at most α(α-1)ε²/8: K'' is a variance in it, and K(0) = K(1) = 0.

    E_Q[e^{αL}] is convex in the likelihood ratio, so largest where L takes the ends t and t - ε alone, E_Q[e^L] = 1;
    over t it is largest at e^t = (1 - 1/α)(1 - e^{-αε})/(e^{-ε} - e^{-αε}) (Dong, Durfee and Rogers 2020).
    """
    bound = orders * (orders - 1) * epsilon**2 / 8
    with np.errstate(divide="ignore", over="ignore"):
        whole = -np.expm1(-orders * epsilon)
        top = np.log1p(-1 / orders) + np.log(whole) + epsilon - np.log(-np.expm1(-(orders - 1) * epsilon))
        exact = (orders - 1) * top + np.log(whole) - np.log(orders) - math.log(-math.expm1(-epsilon))
    # Below αε = 0.01 the differences in the exact form lose their digits, and the bound is as good.
    cumulant: Array = np.where(orders * epsilon > 1e-2, np.minimum(exact, bound), bound)
    return cumulant


def best_of_runs_cumulant(base: Counts, law: str, mean: float, orders: Array) -> Array | None:
    """K(α) of the best of a random number of runs that each release `base`; None where one has no curve.

    With D(α) the Rényi divergence of one run, Papernot and Steinke (2022):
    Poisson (Theorem 6): D(α) + mean·δ̂ + ln(mean)/(α-1), δ̂ the δ of one run at ε̂ = ln(1 + 1/(α-1)).
    Geometric (Theorem 2 with η = 1, γ = 1/mean): D(α) + 2 min over β of ((1-1/β)D(β) + ln(mean)/β) + ln(mean)/(α-1).
    δ̂ is by Canonne, Kamath and Steinke (2020), Proposition 12: min over β of e^{(β-1)(D(β)-ε̂)} (1-1/β)^β/(β-1).
    """
    curve = _total(base, orders)
    if curve is None:
        return None
    more = orders - 1
    if law == "geometric":
        # Both theorems hold at every auxiliary order β: the best one is taken, on the same grid.
        extra = 2 * np.min(curve / orders + math.log(mean) / orders)  # (1 - 1/β) D(β) = K(β)/β
    else:
        with np.errstate(over="ignore"):
            logs = curve[None, :] - more[None, :] * np.log1p(1 / more)[:, None]
            logs += (orders * np.log1p(-1 / orders) - np.log(more))[None, :]
            extra = mean * np.minimum(1.0, np.exp(np.minimum(logs.min(axis=1), 0.0)))
    cumulant: Array = curve + more * extra + math.log(mean)
    return cumulant


def rdp_epsilon(orders: Array, cumulant: Array, delta: float) -> float:
    """The smallest ε ≥ 0 the curve proves at `delta`.

    min over α of (K(α) - ln(δα))/(α-1) + ln(1-1/α): Canonne, Kamath and Steinke (2020), Proposition 12.
    """
    bound = (cumulant - np.log(delta * orders)) / (orders - 1) + np.log1p(-1 / orders)
    # Each order proves its own ε, so the least of them all is proved; a negative one says no more than 0.
    return max(0.0, float(np.min(bound)))


def cumulant(release: Release, orders: Array) -> Array | None:
    """K(α) of one release at `orders`; None for one without a Rényi curve here."""
    match release:
        case Gaussian(z):
            return gaussian_cumulant(z, orders)
        case Poisson(rate, Gaussian(z)):
            return poisson_cumulant(z, rate, orders)
        case PoissonReplaced(rate, Gaussian(z)):
            return poisson_replaced_cumulant(z, rate, orders)
        case WithoutReplacement(n, m, Gaussian(z)):
            return without_replacement_cumulant(z, n, m, orders)
        case ZCDP(rho):
            return orders * (orders - 1) * rho
        case BestOfRuns(base, law, mean):
            return best_of_runs_cumulant(base, law, mean, orders)
        case BoundedRange(epsilon):
            return bounded_range_cumulant(epsilon, orders)
        case Laplace() | PureDP() | Radial() | RadialPerturbation() | WithoutReplacement():
            # What is ε₀-DP has D(α) ≤ min(ε₀, αε₀²/2): Bun and Steinke (2016), Proposition 3.3.
            epsilon = pure_epsilon(release)
            return (orders - 1) * np.minimum(epsilon, orders * epsilon**2 / 2)
    return None


def epsilon_of(releases: Counts, delta: float) -> float | None:
    """ε at `delta` of all `releases`; None where one has no curve."""
    if not releases:
        return 0.0
    orders = _orders(releases)
    curve = _total(releases, orders)
    return None if curve is None or delta == 0 else rdp_epsilon(orders, curve, delta)


@lru_cache(maxsize=1024)
def noise_scale(plan: Counts, after: Counts, epsilon: float, delta: float) -> float:
    """See `Accounting.noise_scale`."""
    check_range(epsilon, delta)
    orders = _orders((*plan, *after))
    # For plain Gaussians 1 + 2 ln(1/δ)/ε is best, and sampling lowers it: what lies far above only takes time.
    orders = orders[orders <= max(64, 4 * -math.log(delta) / epsilon)]
    before = _total(after, orders)

    def cost(z: float) -> float:
        curve = _total(tuple((scaled(release, z), count) for release, count in plan), orders)
        if curve is None or before is None:
            raise PrivacyError("; ".join(f"{r}: not known to Rényi DP" for r, _ in (*plan, *after)))
        return rdp_epsilon(orders, before + curve, delta)

    return smallest_scale(cost, epsilon)


def _total(releases: Counts, orders: Array) -> Array | None:
    total = np.zeros(len(orders))
    for release, count in releases:
        curve = cumulant(release, orders)
        if curve is None:
            return None
        total += count * curve
    return total


def _orders(releases: Counts) -> Array:
    whole = any(isinstance(r, WithoutReplacement) and isinstance(r.release, Gaussian) for r, _ in releases)
    return WITHOUT_REPLACEMENT_ORDERS if whole else POISSON_ORDERS


# Sampled Gaussians have sharp bends, so tenths below 11; 3 % apart where the best order is large (4,000 for ε = 0.01 at
# δ = 1e-9 without sampling).
POISSON_ORDERS = np.array(  # numpy's `unique` loads numpy.ma
    sorted({*(np.arange(11, 110) / 10), *range(11, 65), *np.round(np.geomspace(64, 2**14, 190))})
)
# Theorem 9 is for integer orders. Beyond 256 the second accountant lacks the tighter terms, so we stop there too.
WITHOUT_REPLACEMENT_ORDERS = np.array(
    [*range(2, 33), *range(36, 65, 4), *range(72, 129, 8), *range(144, 257, 16)], dtype=float
)


@lru_cache(maxsize=512)
def _log_binomials(a: int) -> Array:
    """ln C(a, j) for j = 2, …, a."""
    from scipy.special import gammaln

    j = np.arange(2, a + 1)
    logs: Array = gammaln(a + 1) - gammaln(j + 1) - gammaln(a - j + 1)
    return logs


def _log_even_moments(sigma: float, last: int) -> Array:
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


def _log_expm1(x: Any) -> Any:
    return x + np.log(-np.expm1(-x))


def _log_sum(terms: Array) -> float:
    top = terms.max()
    return float(top + math.log(np.exp(terms - top).sum()))


def _log1p_sum(terms: Array) -> float:
    """ln(1 + Σ e^terms)."""
    return float(np.logaddexp(0.0, _log_sum(terms)))


class Renyi(Accounting):
    """The Rényi curves add up and are converted at the best order (Mironov 2017; Canonne, Kamath and Steinke 2020).

    Gaussian releases on all rows, on Poisson samples (Mironov, Talwar and Zhang 2019) or on samples without replacement
    (Wang, Balle and Kasiviswanathan 2019), zCDP and pure-DP ones; see `renyi`.
    """

    name = "rdp"

    def epsilon_of(self, releases: Counts, delta: float) -> float | None:
        return epsilon_of(releases, delta)

    def noise_scale(self, plan: Counts, after: Counts, epsilon: float, delta: float) -> float:
        return noise_scale(plan, after, epsilon, delta)


class PoissonSample(Renyi):
    """As `rdp`, with one row of n without replacement taken for a Poisson sample of rate 1/n under add/remove.

    Its noise counts relative to the clipping threshold C instead of the replace-one sensitivity 2C, as it is often
    implemented; exactly one row is drawn, so that guarantee is not for what runs.
    """

    name = "poisson"

    def epsilon_of(self, releases: Counts, delta: float) -> float | None:
        return super().epsilon_of(_as_poisson(releases), delta)

    def noise_scale(self, plan: Counts, after: Counts, epsilon: float, delta: float) -> float:
        return super().noise_scale(_as_poisson(plan), _as_poisson(after), epsilon, delta)


def _as_poisson(releases: Counts) -> Counts:
    def one(release: Release) -> Release:
        match release:
            # 2C is the replace-one sensitivity, C that of one row: relative to C the same noise is 2z.
            case WithoutReplacement(n, 1, Gaussian(z)):
                return Poisson(1 / n, Gaussian(2 * z))
        return release

    return tuple((one(release), count) for release, count in releases)
