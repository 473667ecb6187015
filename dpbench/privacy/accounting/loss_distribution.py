"""Privacy-loss distributions on a grid, composed by Fourier transforms (Koskela, Jälkö and Honkela 2020).

For outputs P and Q of one release on two neighbours, the loss is L = ln(P/Q) under P; losses of a composition add up,
and δ(ε) = E[(1 - e^{ε-L})⁺] + P(L = ∞). Every release here has one dominating pair that serves all neighbours, or two:
a Poisson sample's with the row removed and with it added, each composed with its own kind and the worse taken (Zhu,
Dong and Wang 2022, Theorem 11 and Section 3).

On m of n rows under replace-one, q = m/n, neither direction alone dominates (Lebeda, Regehr, Kamath and Steinke 2024,
Section 4), but the larger of the two profiles does, and it is that of one pair. Without the row, a sample releases A;
with it B on the one data set and B' on the other, all pairs of them neighbours (put another row in its place). For
e^ε ≥ 1, H_ε((1-q)A + qB, (1-q)A + qB') ≤ q H_ε'(B, one of A, B') ≤ H_ε((1-q)N(0, z²) + qN(1, z²), N(0, z²)) by
advanced joint convexity (Balle, Barthe and Gaboardi 2018, Theorem 2); for e^ε < 1 the same of the reverse pairs (Zhu,
Dong and Wang 2022, Theorem 11). So its losses above 0 are those of the row removed, those below 0 those of the row
added, and what is left of both, (1-q)(2Φ(1/(2z)) - 1), is at 0: under P and under Q.

On a Poisson sample under replace-one the pair is (1-q)N(0, z²) + qN(±1/2, z²), the two rows opposite each other. Given
the other rows in the sample, the neighbours release (1-q)N(0) + qN(g) and (1-q)N(0) + qN(g'), in units of which
‖g‖, ‖g'‖ ≤ 1/2, and H_ε = E φ(l, l') over N(0), l and l' the likelihood ratios of N(g) and N(g') to it,
φ = ((1-q)(1-e^ε) + ql - e^ε ql')⁺; mixing over the other rows only lowers it (joint convexity). (a) φ is convex: the
larger the Gram matrix of (g, g') in Loewner's order, the larger H_ε (Blackwell 1953: a contraction and added noise lead
from one family of shifts to the other), so both norms may be taken as 1/2 at the same <g, g'>. (b) ln l and ln l' are
then jointly normal, with variances that do not depend on <g, g'>, their covariance; as a function of these two φ has
mixed derivative ≤ 0, a convex function of an increasing less another increasing one, so that H_ε falls with <g, g'>
(Slepian's inequality as Plackett 1954 derives it). It is largest at g' = -g, for every real ε, and attained there. The
pair is its own reverse, mirrored. With u = x/(2z²) its loss ln(P/Q) is L where
u = L/2 + arsinh((1/q - 1) e^{1/(8z²)} sinh(L/2)).

A release whose loss lies in an interval of length ε₀ (`ledger.BoundedRange`): of all pairs whose losses lie in
[t - ε₀, t], the profile at x is largest where both ends alone are taken (`renyi.bounded_range_cumulant`), as
(1 - e^{t-ε₀})(1 - e^{x-t})/(1 - e^{-ε₀}), and over t at t = (x + ε₀)/2 (Dong, Durfee and Rogers 2020):

    δ(x) = (1 - e^{(x-ε₀)/2})²/(1 - e^{-ε₀}) for |x| ≤ ε₀.

It is the profile of one pair, whose loss has the density e^{(L-ε₀)/2}/(2(1 - e^{-ε₀})) on [-ε₀, ε₀]. So it dominates,
and its compositions dominate adaptive ones in any order (Zhu, Dong and Wang 2022, Theorem 10). That order costs: the t
of a release may follow what was released before it. Many of them compose better by Rényi DP, where t is fixed for an
order: `tight` takes the lesser ε.

On the grid of step h, the masses p and q of a bin under P and Q go to its two ends such that both are kept: that
is the least pair on the grid that dominates ("connect the dots": Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022,
Section 3), so ε is never underestimated, by a relative error of about (h/s)²/10 at a standard deviation s of the loss.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbench.privacy.accounting.allocation import LEAST_DELTA, Ratios, likelihood_ratio
from dpbench.privacy.accounting.gaussian import normal_masses, squared_mu
from dpbench.privacy.accounting.pure import pure_epsilon
from dpbench.privacy.ledger import (
    Allocated,
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
    Sketch,
    WithoutReplacement,
)

Array = NDArray[np.floating[Any]]
Part = tuple[Array, Array, int]  # losses, masses, count

FINENESS = 32  # intervals to the least standard deviation: the error of ε is about 1e-4
REACH, BEYOND = 9.5, 2e-21  # standard deviations of a Gaussian, and what lies beyond: counted as an infinite loss
TAIL = 1e-17  # what of the tilted masses may wrap around
NOISE = 1e-12  # of a transform, 1e-16 of all mass, over the share of δ that it may take, 1e-4
MOST = 2**23  # points of a grid
FAR = 1e4  # draws·ratio², four times the mean loss of a sketch: beyond it ε is in the thousands, and the grid too large
WIDEST = 4000.0  # standard deviations of the loss of a sample of fixed size: with one row of 1e5 the grid is too large


def covers(releases: Counts, delta: float) -> bool:
    """Whether each of `releases` has a distribution here, and δ is not lost in the rounding of a transform.

    Choices of bounded range alone have none: Rényi DP composes them better.
    """
    if all(isinstance(release, BoundedRange) for release, _ in releases):
        return False
    least = LEAST_DELTA if any(isinstance(release, Allocated) for release, _ in releases) else 1e-13
    return delta >= least and all(math.isfinite(_deviation(release)) for release, _ in releases)


def epsilon_of(releases: Counts, delta: float) -> float | None:
    """ε ≥ 0 at `delta` of all `releases`; None where not `covers`, or where the grid would be too large."""
    if not covers(releases, delta):
        return None
    # One Gaussian for all of them: a grid less, and no error for it.
    gaussians = squared_mu(releases)
    rest = tuple((r, c) for r, c in releases if not isinstance(r, Gaussian))
    releases = (*rest, (Gaussian(gaussians**-0.5), 1)) if gaussians else rest  # they compose as one
    directions = (False, True) if any(isinstance(r, Poisson | Allocated | Sketch) for r, _ in releases) else (False,)
    try:
        epsilon = max(_epsilon(releases, delta, added) for added in directions)
    except _TooLarge:
        epsilon = math.inf
    if any(isinstance(release, Allocated) for release, _ in releases):
        # A mixture of Gaussian releases on all rows is no worse than one (joint convexity).
        whole = tuple((r.release if isinstance(r, Allocated) else r, count) for r, count in releases)
        epsilon = min(epsilon, epsilon_of(whole, delta) or math.inf)
    return epsilon if math.isfinite(epsilon) else None


class _TooLarge(Exception):
    pass


@lru_cache(maxsize=256)
def _epsilon(releases: Counts, delta: float, added: bool) -> float:
    h = min(_deviation(release) for release, _ in releases) / FINENESS
    grids = [_on_grid(release, h, added) for release, _ in releases]
    parts = [
        (h * (first + np.arange(len(p))), p, count) for (first, p), (_, count) in zip(grids, releases, strict=True)
    ]
    infinite = sum(count * _beyond(release, added) for release, count in releases)
    if infinite >= delta:
        return math.inf
    # Chernoff's tilt suits many releases. Where one rare, large loss outweighs the others' sum, a smaller one does.
    best = _tilt(parts, delta)
    for tilt in (*(best / 4**k for k in range(6)), 0.0):
        epsilon = _tilted(parts, h, tilt, delta, infinite)
        if epsilon is not None:
            return epsilon
    raise _TooLarge


def _tilted(parts: list[Part], h: float, tilt: float, delta: float, infinite: float) -> float | None:
    """ε from masses tilted by e^{tL}: rounding and wrapping are then relative to those that are large after it.

    None where that would be felt at the ε found, which then means nothing, or where the grid would be too large.
    """
    moments = [_log_moment(p, tilt * losses) for losses, p, _ in parts]
    tilted = [
        (losses, p * np.exp(tilt * losses - moment), count)
        for (losses, p, count), moment in zip(parts, moments, strict=True)
    ]
    low, size = _window(tilted, h)
    if size > MOST:
        return None
    spectrum: NDArray[np.complex128] = np.ones(size // 2 + 1, dtype=complex)
    # Sums are known modulo the size: the offset of all together is undone below.
    for _, p, count in tilted:
        spectrum *= np.fft.rfft(np.bincount(np.arange(len(p)) % size, weights=p, minlength=size)) ** count
    start = sum(round(float(losses[0]) / h) * count for losses, _, count in parts)
    total = np.roll(np.fft.irfft(spectrum, size), start - low)
    losses = h * np.arange(low, low + size)
    keep = losses > 0
    scale = sum(count * moment for (_, _, count), moment in zip(parts, moments, strict=True))
    # Rounding may leave a mass a little below 0; the tilt is taken off again.
    masses = np.maximum(total[keep], 0.0) * np.exp(scale - tilt * losses[keep])
    # What the ranges cut off counts as an infinite loss: from above.
    epsilon = _solve(losses[keep], masses, infinite, delta)
    outside = max(low * h, 0.0) >= epsilon > 0 or (epsilon == 0 and low > 0)
    # A transform is right to NOISE of the largest tilted mass, which at ε is e^{scale - tilt ε} times what it was.
    noisy = scale - tilt * epsilon > math.log(delta / NOISE)
    return None if outside or noisy else epsilon


def _solve(losses: Array, masses: Array, infinite: float, delta: float) -> float:
    """The least ε ≥ 0 with Σ p(1 - e^{ε-L})⁺ + `infinite` ≤ δ: exact, as e^ε enters linearly between grid points."""
    losses, masses = losses[::-1], masses[::-1]
    above = np.cumsum(masses) + infinite
    reached = np.flatnonzero(above > delta)
    if not len(reached):
        return 0.0
    top = losses[reached[0]]  # ε is below it: relative to it nothing that counts overflows
    with np.errstate(over="ignore", invalid="ignore"):
        # Σ p e^{-L} over the losses above, scaled by the largest that counts.
        weighted = np.cumsum(masses * np.exp(top - losses))
        at_next = above - np.exp(np.append(losses[1:], 0.0) - top) * weighted  # δ at the grid point below each loss
    crossings = np.flatnonzero(at_next > delta)
    if not len(crossings):
        return 0.0
    i = int(crossings[0])
    return max(0.0, float(top) + math.log((above[i] - delta) / weighted[i]))


def _tilt(parts: list[Part], delta: float) -> float:
    """The t of Chernoff's bound on the loss of probability `delta`: the tilted losses lie about that loss."""
    rates = np.geomspace(0.02, 3, 10) * math.sqrt(-2 * math.log(delta) / _variance(parts))
    return float(min(rates, key=lambda rate: (_cumulant(parts, rate) - math.log(delta)) / rate))


def _window(parts: list[Part], h: float) -> tuple[int, int]:
    """(first grid point, a power of two points) outside of which the sum has mass `TAIL` on either side (Chernoff)."""
    low, high = (sum(count * losses[end] for losses, _, count in parts) for end in (0, -1))
    for rate in np.geomspace(0.04, 3, 7) * math.sqrt(-2 * math.log(TAIL) / _variance(parts)):
        low = max(low, (math.log(TAIL) - _cumulant(parts, -rate)) / rate)
        high = min(high, (_cumulant(parts, rate) - math.log(TAIL)) / rate)
    first, last = math.floor(low / h) - 1, math.ceil(high / h) + 1
    return first, 2 ** math.ceil(math.log2(last - first + 1))


def _variance(parts: list[Part]) -> float:
    return sum(count * max(float(p @ (at - p @ at) ** 2), float(at[1] - at[0]) ** 2) for at, p, count in parts)


def _cumulant(parts: list[Part], rate: float) -> float:
    return sum(count * _log_moment(p, rate * losses) for losses, p, count in parts)


def _log_moment(masses: Array, exponents: Array) -> float:
    top = float(exponents[np.flatnonzero(masses)[[0, -1]]].max())  # exponents are monotone
    return top + math.log(float(masses @ np.exp(np.minimum(exponents - top, 0.0))))


@lru_cache(maxsize=64)
def _on_grid(release: Release, h: float, added: bool) -> tuple[int, Array]:
    """(index of the first grid point, masses under P on it and those that follow); what is missing to 1 is infinite."""
    low, high = _range(release, added)
    first, last = math.floor(low / h), math.ceil(high / h) + 1
    if last - first > MOST:
        raise _TooLarge
    p, q = _bins(release, h * np.arange(first, last + 1), added)
    grid = h * np.arange(first, last)  # lower ends
    # Solves p = a + b, q = a e^{-l} + b e^{-l-h}: the bin's masses on its two ends l and l + h.
    up = np.clip((p - np.exp(np.minimum(grid, 700.0)) * q) / -math.expm1(-h), 0.0, p)
    masses = np.zeros(len(p) + 1)
    masses[:-1] += p - up
    masses[1:] += up
    return first, masses


def _beyond(release: Release, added: bool) -> float:
    """The mass beyond the range of the loss, or without a place on the grid."""
    match release:
        case Allocated():
            pair = _ratios(release)
            return pair.added if added else pair.removed
        case Sketch():
            return BEYOND + release.failure
    return BEYOND


def _ratios(release: Allocated) -> Ratios:
    pair = likelihood_ratio(release.steps, release.release.noise_multiplier)
    if pair is None:
        raise _TooLarge
    return pair


def _range(release: Release, added: bool) -> tuple[float, float]:
    """Where the loss lies, but for `_beyond`."""
    match release:
        case Allocated():
            low, high = (math.log(max(_ratios(release).ratios[end], 1e-300)) for end in (0, -1))
            return (-high, -low) if added else (low, high)
        case Gaussian(z):
            return 0.5 / z**2 - REACH / z, 0.5 / z**2 + REACH / z
        case Sketch(draws, ratio, _):
            # L = (q·ratio/(1 + ratio) - draws·ln(1 + ratio))/2 with the row, q of 1 + ratio times χ²; -L without.
            from scipy import special  # where it is used: the accountings are loaded at every start

            halves = [special.gammaincinv(draws / 2, BEYOND / 4), special.gammainccinv(draws / 2, BEYOND / 4)]
            low, high = (
                float(one * ratio * (1 / (1 + ratio) if added else 1) - draws / 2 * math.log1p(ratio)) for one in halves
            )
            return (-high, -low) if added else (low, high)
        case Poisson(rate, Gaussian(z)):
            ends = [float(np.logaddexp(math.log1p(-rate), math.log(rate) + (x - 0.5) / z**2)) if rate < 1
                    else (x - 0.5) / z**2 for x in (-REACH * z, 1 + REACH * z)]  # fmt: skip
            return (-ends[1], -ends[0]) if added else (ends[0], ends[1])
        case PoissonReplaced(rate, Gaussian(z)):
            end = _opposed_loss(rate, z, (0.5 + REACH * z) / z)
            return -end, end
        case WithoutReplacement(n, m, Gaussian(z)):
            end = _range(Poisson(m / n, Gaussian(z)), added=False)[1]
            return -end, end
    epsilon = pure_epsilon(release)
    return -epsilon, epsilon


def _bins(release: Release, edges: Array, added: bool) -> tuple[Array, Array]:
    """The masses under P and under Q of the bins between `edges`, losses."""
    match release:
        case Allocated():
            pair = _ratios(release)
            losses = np.log(np.maximum(pair.ratios, 1e-300))
            bins = np.searchsorted(edges, -losses if added else losses, side="right") - 1
            mixed, without = (
                np.asarray(np.bincount(bins, each, len(edges) - 1), dtype=float)
                for each in (pair.ratios * pair.masses, pair.masses)
            )
            return (without, mixed) if added else (mixed, without)
        case Gaussian(z):
            return normal_masses(edges * z - 0.5 / z), normal_masses(edges * z + 0.5 / z)
        case Sketch(draws, ratio, _):
            signed = -edges[::-1] if added else edges
            half = np.maximum(signed + draws / 2 * math.log1p(ratio), 0.0) / ratio  # of χ², with the row
            mixed, without = (_chi2_masses(draws, each) for each in (half, half * (1 + ratio)))
            return (without[::-1], mixed[::-1]) if added else (mixed, without)
        case Poisson(rate, Gaussian(z)):
            # P = (1-q)N(0, z²) + qN(1, z²) and Q = N(0, z²), or the reverse with losses of the other sign.
            signed = -edges[::-1] if added else edges
            with np.errstate(divide="ignore"):  # log((e^s - 1 + q)/q), of which e^s overflows where z is small
                near = np.log(np.maximum(np.expm1(np.minimum(signed, 1.0)) + rate, 0.0))
            far = signed + np.log1p((rate - 1) * np.exp(-np.maximum(signed, 1.0)))
            x = z * (np.where(signed > 1, far, near) - math.log(rate)) + 0.5 / z  # in units of z
            without = normal_masses(x)
            mixed = (1 - rate) * without + rate * normal_masses(x - 1 / z)
            return (without[::-1], mixed[::-1]) if added else (mixed, without)
        case PoissonReplaced(rate, Gaussian(z)):
            x = 2 * z * (edges / 2 + _bent(rate, z, edges / 2))  # in units of z
            middle = (1 - rate) * normal_masses(x)
            return middle + rate * normal_masses(x - 0.5 / z), middle + rate * normal_masses(x + 0.5 / z)
        case WithoutReplacement(n, m, Gaussian(z)):
            one, zero = Poisson(m / n, Gaussian(z)), int(np.searchsorted(edges, 0.0))
            parts = _bins(one, edges[: zero + 1], added=True), _bins(one, edges[zero:], added=False)
            p, q = (np.concatenate(both) for both in zip(*parts, strict=True))
            # What neither direction has: its loss is 0 under both.
            rest = (1 - m / n) * float(normal_masses(np.array([-0.5, 0.5]) / z)[0])
            p[zero] += rest
            q[zero] += rest
            return p, q
    epsilon = pure_epsilon(release)
    # Randomised response, or half of Laplace noise: atoms at both ends. Of Laplace, e^{±L/2 - ε/2}/4 between them.
    # Randomised response is the worst ε-DP mechanism (Kairouz, Oh and Viswanath 2015, Theorem 3.1).
    worst = 0.5 if isinstance(release, Laplace) else 1 / (1 + math.exp(-epsilon))
    p, q = np.zeros(len(edges) - 1), np.zeros(len(edges) - 1)
    if isinstance(release, Laplace | BoundedRange):
        inside = np.clip(edges, -epsilon, epsilon)
        whole = 2.0 if isinstance(release, Laplace) else -math.expm1(-epsilon)
        p += np.diff(np.exp((inside - epsilon) / 2)) / whole
        q -= np.diff(np.exp((-inside - epsilon) / 2)) / whole
    if isinstance(release, BoundedRange):
        return p, q
    least = worst * math.exp(-epsilon)
    for loss, mass, other in ((epsilon, worst, least), (-epsilon, least, worst)):
        at = int(np.searchsorted(edges, loss, side="right")) - 1
        p[at] += mass
        q[at] += other
    return p, q


def _chi2_masses(degrees: int, halves: Array) -> Array:
    """Masses of χ² between twice `halves`; those above its mean from the other tail, where the digits are."""
    from scipy import special

    below, above = special.gammainc(degrees / 2, halves), special.gammaincc(degrees / 2, halves)
    masses: Array = np.where(halves[1:] < degrees / 2, np.diff(below), -np.diff(above))
    return masses


def _opposed_loss(rate: float, z: float, x: float) -> float:
    """ln of (1-q)N(0, 1) + qN(1/(2z), 1) over its mirror image, at x."""
    out = math.log1p(-rate) if rate < 1 else -math.inf
    mixed = [float(np.logaddexp(out, math.log(rate) + s * 0.5 * x / z - 0.125 / z**2)) for s in (1, -1)]
    return mixed[0] - mixed[1]


def _bent(rate: float, z: float, half: Array) -> Array:
    """arsinh((1/q - 1) e^{1/(8z²)} sinh(half)), whatever overflows on the way."""
    size = np.abs(half)
    with np.errstate(divide="ignore"):
        log = np.log(1 / rate - 1) + 0.125 / z**2 + size + np.log(-np.expm1(-2 * size)) - math.log(2)
    loss: Array = np.copysign(np.where(log > 20, log + math.log(2), np.arcsinh(np.exp(np.minimum(log, 20)))), half)
    return loss


def _deviation(release: Release) -> float:
    """The rough standard deviation of the loss of one release, infinite where it has no distribution here."""
    match release:
        case Gaussian(z):
            return 1 / z
        case Sketch(draws, ratio, _):
            return math.sqrt(draws / 2) * ratio if draws * ratio**2 < FAR else math.inf
        case Poisson(rate, Gaussian(z)):
            return min(rate * math.sqrt(math.expm1(min(z**-2, 50.0))), 1 / z + 0.5 / z**2)
        case PoissonReplaced(rate, Gaussian(z)):
            return min(2 * rate * math.sqrt(math.expm1(min(0.25 * z**-2, 50.0))), 1 / z + 0.5 / z**2)
        case Allocated(steps, Gaussian(z)):
            return min(math.sqrt(math.expm1(min(z**-2, 50.0)) / steps), 1 / z + 0.5 / z**2)
        case WithoutReplacement(n, m, Gaussian(z)):
            spread = _deviation(Poisson(m / n, Gaussian(z)))
            return spread if math.log1p(m / n * math.expm1(min(10 / z, 700.0))) < WIDEST * spread else math.inf
        case BoundedRange(epsilon):
            return epsilon / math.sqrt(3)
        case Laplace() | PureDP() | Radial() | RadialPerturbation() | WithoutReplacement():
            return pure_epsilon(release)
    return math.inf
