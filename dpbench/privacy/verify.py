"""The second opinion: the ε of a ledger by Google's dp_accounting, never by the formulas that set the noise.

dp_accounting's default events are those of add/remove neighbours with sensitivity 1. Our multipliers are relative to
the sensitivity in the run's own relation, so the pair of output distributions is that of the default events under
either relation. (Its RDP accountant ignores the relation for a plain Gaussian, its PLD accountant doubles the shift for
replace-one: neither may see a multiplier of the other convention.)

Three kinds of release have no event of their own. An ε-DP selection stands as randomised response, the worst ε-DP
mechanism (Kairouz, Oh and Viswanath 2015, Theorem 3.1), or as ε²/2-zCDP (Bun and Steinke 2016, Proposition 1.4); a
Laplace release on m of n rows as a selection with the amplified ε (Balle, Barthe and Gaboardi 2018, Theorem 9);
`checked_by` says so.

For Gaussian releases on m of n rows dp_accounting takes finite differences in floats, which lose all their digits when
the noise is large and many orders count (m/n above a tenth, say): `exact_differences` is the same theorem in decimal
arithmetic of enough digits, and `checked_by` says where it was needed.

Objective perturbation has no event either: its ε is recomputed from what was drawn, by a tail bound of our own. With
Δ(w) the difference of the neighbours' gradients, the noise has the privacy loss (‖Δ‖² + 2<b, Δ>)/(2σ²). For a linear
model Δ lies in the span of the rows that differ, at most two; there b is longer than σ√(2 ln(1/δ)) with probability
δ (χ² with two degrees of freedom). Hence 1/(2z²) + √(2 ln(1/δ))/z, plus the log-ratio of the Jacobians (Kifer, Smith
and Thakurta 2012, Theorem 2). Everything else must do with the δ that is left.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, Decimal, localcontext
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpbench.errors import PrivacyError
from dpbench.privacy import half_planes
from dpbench.privacy.ledger import (
    ZCDP,
    Allocated,
    BestOfRuns,
    BoundedRange,
    Composition,
    ConvexPerturbation,
    Counts,
    DrawAfterTest,
    Gaussian,
    Laplace,
    LastIterate,
    LogisticPerturbation,
    ObjectivePerturbation,
    Poisson,
    PoissonReplaced,
    PureDP,
    Radial,
    RadialPerturbation,
    Relation,
    Release,
    Sketch,
    WithoutReplacement,
    counted,
    require,
)

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution


# What of a distribution is cut to infinity at each composition. dp_accounting's own 1e-15 is felt at δ = 1e-12.
TAIL = 1e-18
LARGE = 2e4  # intervals in the standard deviation of a loss: beyond, a grid takes a second and more


@dataclass(frozen=True)
class Spent:
    """ε at the δ asked, and how it was found."""

    epsilon: float
    checked_by: str


def spent(composition: Composition, delta: float, relation: Relation) -> Spent:
    """ε at `delta` of everything in `composition`; infinite where the releases cannot give any at that δ.

    PrivacyError for a release that is not accounted under `relation`. Cached: one computation per distinct composition.
    """
    return _spent(counted(composition), float(delta), relation)


@lru_cache(maxsize=4096)
def _spent(counts: Counts, delta: float, relation: Relation) -> Spent:
    if not counts:
        return Spent(0.0, "nothing released")
    for release, _ in counts:
        require(release, relation)
    # The worst case of hidden steps is attained by one Gaussian: see `_drift`.
    counts = tuple((_drift(r) if isinstance(r, LastIterate) else r, c) for r, c in counts)
    if any(isinstance(r, LogisticPerturbation) for r, _ in counts):
        return _perturbed(counts, delta)
    for tail in TAILS:
        if mine := [(r, c) for r, c in counts if isinstance(r, tail.kind)]:
            rest = tuple((r, c) for r, c in counts if not isinstance(r, tail.kind))
            return _with_tail(tail, mine, rest, delta, relation)
    # Gaussians compose to one Gaussian, whose ε(δ) is known exactly: no bound is needed.
    gaussians = [(r, c) for r, c in counts if isinstance(r, Gaussian)]
    if len(gaussians) == len(counts) and delta > 0:
        from dp_accounting.gaussian_mechanism import get_epsilon_gaussian

        # It takes the logarithm of a difference that may round to zero.
        with np.errstate(divide="ignore"):
            epsilon = get_epsilon_gaussian(_composed(gaussians), delta)
        return Spent(float(epsilon), "dp_accounting exact Gaussian")
    routes = [_basic(counts)]
    if delta > 0:
        pld = _pld(counts, delta)
        routes.append(pld)
        # Rényi DP where the privacy-loss distribution does not fit on its grid, or where many choices add up.
        known = not any(isinstance(r, Sketch) for r, _ in counts)  # to it
        if known and (not math.isfinite(pld.epsilon) or any(isinstance(r, BoundedRange) for r, _ in counts)):
            routes.append(_rdp(counts, delta))
    best = min(routes, key=lambda s: s.epsilon)
    return Spent(best.epsilon, best.checked_by + _stand_ins(counts))


class Tail(NamedTuple):
    """How a kind of release that has a δ of its own is composed.

    taken: of δ by one of them. epsilon: of one, where it has so much of δ beside.
    """

    kind: type[Release]
    name: str
    taken: Callable[[Any], float]
    epsilon: Callable[[Any, float], float]


def _with_tail(
    tail: Tail, mine: Sequence[tuple[Release, int]], rest: Counts, delta: float, relation: Relation
) -> Spent:
    """Basic composition: what `mine` take of δ is taken off before the `rest` is composed at what is left."""
    left = delta - math.fsum(c * tail.taken(r) for r, c in mine)
    if left < -1e-12 * delta:
        return Spent(math.inf, tail.name)
    # With nothing beside them, the δ that is left lowers their own ε.
    share = 0.0 if rest else max(left, 0.0) / sum(c for _, c in mine)
    epsilon = math.fsum(c * tail.epsilon(r, share) for r, c in mine)
    other = _spent(rest, max(left, 0.0), relation)  # at δ = 0 what is pure has its ε
    return Spent(epsilon + other.epsilon, f"{tail.name} + {other.checked_by}" if rest else tail.name)


def _tail_bound(release: ObjectivePerturbation, _: float) -> float:
    """See the module."""
    z = release.noise_multiplier
    return release.jacobian + 0.5 / z**2 + math.sqrt(-2 * math.log(release.delta)) / z


def _worst_draw(release: DrawAfterTest, delta: float) -> float:
    """ε at `delta`, at least `failure`, of a Laplace release and after it a draw that is (ε₀, leak)-DP.

    e^{ε₀} = e^{ε₁}(e^{ε₁} + leak). The worst such draw has four outcomes, two of them on one side alone (Kairouz,
    Oh and Viswanath 2015, Theorem 3.1). Where both neighbours are at distance 0 the noisy distance tells nothing, and
    `failure` is all; elsewhere a draw after every noisy distance is no better than one after some. The loss of Laplace
    noise is test with probability 1/2, -test with e^{-test}/2, and has the density e^{(loss - test)/2}/4 between.
    """
    draw = 2 * release.exponent + math.log1p(release.leak * math.exp(-release.exponent))
    test, within = release.test, (1 - release.leak)
    middle = np.linspace(-test, test, 4001)
    weight = np.exp((middle - test) / 2) / 4 * (middle[1] - middle[0])
    weight[[0, -1]] /= 2
    losses = np.concatenate([[test, -test], middle])
    masses = np.concatenate([[0.5, 0.5 * math.exp(-test)], weight])
    high = within / (1 + math.exp(-draw))

    def beyond(epsilon: float) -> float:
        """Of the hockey-stick divergence, what is more than the leak."""
        both = (high * -np.expm1(np.minimum(epsilon - losses - draw, 0.0))) + (
            high * math.exp(-draw) * -np.expm1(np.minimum(epsilon - losses + draw, 0.0))
        )
        return float(masses @ both)

    low, top = 0.0, test + draw
    if beyond(low) <= delta - release.leak:
        return 0.0
    # Bisection, whose upper end is returned: an ε that holds, to the last digit.
    for _ in range(100):
        middle_epsilon = (low + top) / 2
        low, top = (low, middle_epsilon) if beyond(middle_epsilon) <= delta - release.leak else (middle_epsilon, top)
    return top


TAILS = (
    Tail(
        DrawAfterTest,
        "worst pair of a draw behind a test",
        lambda r: max(r.failure, r.leak),
        lambda r, beside: _worst_draw(r, max(r.failure, r.leak) + beside),
    ),
    Tail(ObjectivePerturbation, "tail bound of objective perturbation", lambda r: r.delta, _tail_bound),
)


def _drift(release: LastIterate) -> Gaussian:
    """On a quadratic, where the bound is attained: how far T steps drift apart over the noise they add up to."""
    fading = release.contraction ** np.arange(release.steps)
    return Gaussian(float(release.noise_multiplier * np.linalg.norm(fading) / fading.sum()))


def _perturbed(counts: Counts, delta: float) -> Spent:
    """Objective perturbation with gradient and Jacobian together, and Gaussian releases beside it: `half_planes`.

    Of several, basic composition: each at an equal share of δ and with an equal share of μ², as the Gaussians together
    are as many equal ones (Dong, Roth and Su 2022, Corollary 3.3). What else there is counts at δ = 0.
    """
    events = [(r, c) for r, c in counts if isinstance(r, LogisticPerturbation)]
    gaussians = [(r, c) for r, c in counts if isinstance(r, Gaussian)]
    rest = tuple((r, c) for r, c in counts if not isinstance(r, Gaussian | LogisticPerturbation))
    convex = any(isinstance(r, ConvexPerturbation) for r, _ in events)
    name = f"tail of {'a convex' if convex else 'the logistic'} loss by half-planes"
    beside, runs = _basic(rest), sum(c for _, c in events)
    name += f", each of {runs} at its share of δ" if runs > 1 else ""
    if math.isinf(beside.epsilon):
        return Spent(math.inf, name)
    # μ² of all Gaussians in `runs` equal parts.
    mu = 1 / _composed(gaussians) / math.sqrt(runs) if gaussians else 0.0
    epsilon = math.fsum(c * half_planes.epsilon_of(event, mu, delta / runs) for event, c in events)
    return Spent(epsilon + beside.epsilon, f"{name} + {beside.checked_by}" if rest else name)


def _stand_ins(counts: Counts) -> str:
    notes = []
    if any(isinstance(r, PureDP | Radial | RadialPerturbation) for r, _ in counts):
        notes.append("ε-DP selections as randomised response")
    if any(isinstance(r, WithoutReplacement) and isinstance(r.release, Laplace) for r, _ in counts):
        notes.append("sampled Laplace as its amplified ε")
    return f" ({'; '.join(notes)})" if notes else ""


def _pure_epsilon(release: Release) -> float:
    """The ε₀ of a release that is ε₀-DP; infinite for others."""
    match release:
        case PureDP(epsilon) | BoundedRange(epsilon):
            return epsilon
        case Laplace(z) | Radial(z):
            return 1 / z
        case RadialPerturbation():
            return _radially_perturbed(release)
        case WithoutReplacement(n, m, Laplace(z)):
            # Beyond 700, where e^ε₀ overflows, the rest is below its last digit.
            return math.log1p(m / n * math.expm1(1 / z)) if z > 1 / 700 else 1 / z + math.log(m / n)
        case BestOfRuns(base, "geometric", _):  # Papernot and Steinke (2022): (2 + η)ε, η = 1
            return (2 + 1) * math.fsum(c * _pure_epsilon(r) for r, c in base)
    return math.inf


def _radially_perturbed(release: RadialPerturbation) -> float:
    """The largest log-ratio of the densities, over p in steps of 1/4000 (see `half_planes` for the same at δ)."""
    rows = 2 if release.relation is Relation.REPLACE_ONE else 1
    pull = 1 / (rows * release.noise_multiplier)  # R/s
    p = np.linspace(0, 1, 4001)
    bent = 4 * p * (1 - p) if release.logistic else np.ones_like(p)
    return float(np.max(np.log1p(release.curvature * bent) + pull * p) + (rows - 1) * pull)


def _composed(gaussians: Sequence[tuple[Gaussian, int]]) -> float:
    """One noise multiplier for all: adaptive Gaussians compose as one (Dong, Roth and Su 2022, Corollary 3.3)."""
    return float(math.fsum(c / r.noise_multiplier**2 for r, c in gaussians) ** -0.5)


def _basic(counts: Counts) -> Spent:
    return Spent(math.fsum(c * _pure_epsilon(r) for r, c in counts), "basic composition")


def _pld(counts: Counts, delta: float) -> Spent:
    """By privacy-loss distributions; infinite where a release has none or the grid would be too large."""
    whole = _distribution(counts) if delta >= 1e-13 else None
    # Beyond losses of 709 its quotient of masses overflows, to an infinite ε: too high, so safe.
    with np.errstate(over="ignore"):
        return Spent(float(whole.get_epsilon_for_delta(delta)) if whole else math.inf, "dp_accounting PLD")


@lru_cache(maxsize=4)
def _distribution(counts: Counts) -> PrivacyLossDistribution | None:
    """The privacy-loss distribution of all releases together, None where there is none."""
    from dp_accounting.pld import privacy_loss_distribution as pld
    from dp_accounting.pld.common import DifferentialPrivacyParameters
    from dp_accounting.privacy_accountant import NeighboringRelation

    gaussians = tuple((r, c) for r, c in counts if isinstance(r, Gaussian))
    counts = tuple((r, c) for r, c in counts if not isinstance(r, Gaussian))
    if gaussians:
        counts = (*counts, (Gaussian(_composed(gaussians)), 1))
    deviations = [_deviation(r) for r, _ in counts]
    if all(isinstance(r, BoundedRange) for r, _ in counts):
        return None  # alone they compose better by Rényi DP
    # A distribution for each of many kinds takes long to compose; `_spent` then takes Rényi DP.
    if math.inf in deviations or len(counts) > 50:
        return None
    step, spread = _grid(counts, deviations), _total(counts, deviations)
    # Losses lie within ten deviations of their mean; one of a rare row may be far out.
    mean = math.fsum(count * _mean(r, each) for (r, count), each in zip(counts, deviations, strict=True))
    if max(20 * spread, mean, *(_top(r) for r, _ in counts)) / step > 4e7:
        return None
    parts, grid = [], {"value_discretization_interval": step}
    replaced = {"neighboring_relation": NeighboringRelation.REPLACE_ONE}
    for release, count in counts:
        match release:
            case Gaussian(z):
                one = pld.from_gaussian_mechanism(z, **grid)
            case Poisson(rate, Gaussian(z)):
                one = pld.from_gaussian_mechanism(z, sampling_prob=rate, **grid)
            case PoissonReplaced(rate, Gaussian(z)):
                # Its sensitivity is a row's against none, half of a replaced one's, which dp_accounting counts by.
                one = pld.from_gaussian_mechanism(2 * z, sampling_prob=rate, **grid, **replaced)
            case WithoutReplacement(n, m, Gaussian(z)):
                one = _fixed_size(m / n, z, step)
            case Allocated(steps, Gaussian(z)):
                one = _allocated(steps, z, step)
            case Sketch():
                one = _sketched(release, step)
            case Laplace(z):
                one = pld.from_laplace_mechanism(z, **grid)
            case BoundedRange(epsilon):
                one = _ranged(epsilon, step)
            case _:
                # What is ε₀-DP stands as randomised response, its worst case.
                guarantee = DifferentialPrivacyParameters(_on_grid(_pure_epsilon(release), step), 0)
                one = pld.from_privacy_parameters(guarantee, **grid)
        parts.append(one.self_compose(count, TAIL))
    return reduce(lambda a, b: a.compose(b, TAIL), parts)


def _fixed_size(rate: float, noise_multiplier: float, step: float) -> PrivacyLossDistribution:
    """One Gaussian release on a sample of fixed size, replace-one, from dp_accounting's profiles of a Poisson sample.

    Zhu, Dong and Wang (2022), Theorem 11: that of the row removed where e^ε ≥ 1, of the row added where it is less. The
    pair of this profile is its own reverse, so one distribution serves both directions.
    """
    from dp_accounting.pld.privacy_loss_mechanism import AdjacencyType, GaussianPrivacyLoss

    removed, added = (
        GaussianPrivacyLoss(noise_multiplier, sampling_prob=rate, adjacency_type=kind)
        for kind in (AdjacencyType.REMOVE, AdjacencyType.ADD)
    )
    # Beyond it the mass of the row removed is below dp_accounting's own cut.
    last = math.ceil(removed.connect_dots_bounds().epsilon_upper / step)
    steps = np.arange(-last, last + 1)
    below, above = (part * step for part in (steps[:last], steps[last:]))
    deltas = np.concatenate([added.get_delta_for_epsilon(below), removed.get_delta_for_epsilon(above)])
    return _of_profiles(last, step, deltas)


def _allocated(steps: int, noise_multiplier: float, step: float) -> PrivacyLossDistribution:
    """An epoch of `steps` Gaussian releases of which a row is in one: S/t against 1, S a sum of t lognormals of mean 1.

    Of each a grid keeps E(Y - k)⁺, the price of a call (Black and Scholes 1973), at its points k: its masses are second
    differences of these prices, or of the puts'. dp_accounting adds up the t of them.
    """
    from dp_accounting.pld.common import self_convolve
    from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism
    from scipy.stats import norm

    s = 1 / noise_multiplier
    h = math.sqrt(math.expm1(min(s * s, 50.0))) / 40 * min(1.0, math.sqrt(steps / 64))
    first, last = math.floor(math.exp(-s * s / 2 - 12 * s) / h), math.ceil(math.exp(min(s * s / 2 + 7.8 * s, 50.0)) / h)
    if s > 1 / 0.75:  # the grid would be too large, and a mixture of Gaussian releases on all rows is no worse than one
        return from_gaussian_mechanism(noise_multiplier, value_discretization_interval=step)
    k = h * np.arange(first - 1, last + 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        d = -np.log(k) / s - s / 2  # P(Y > k) = Φ(d)
    call = np.where(k > 0, norm.cdf(d + s) - k * norm.cdf(d), 1 - k)
    put = np.where(k > 0, k * norm.cdf(-d) - norm.cdf(-d - s), 0.0)
    masses = np.where(k[2:] <= 1, np.diff(put, 2), np.diff(call, 2))[: last - first + 1] / h
    masses[-1] = -np.diff(call)[last - first] / h  # beyond it Y counts as it
    # In 80 bits: in 64 the noise of the transform is felt at small δ.
    start, total = self_convolve(np.maximum(masses, 0.0).astype(np.longdouble), steps, 1e-16)
    total = np.maximum(np.array(total), 0.0)
    ratios = (first + (start + np.arange(len(total), dtype=np.longdouble)) / steps) * h
    reach = math.log(float(ratios[-1]))
    grid = math.ceil(max(reach, -math.log(max(float(ratios[0]), math.exp(-reach)))) / step)
    x = np.arange(-grid, grid + 1) * step
    # δ of S/t removed, (S/t - e^x)⁺, and added, (1 - e^x S/t)⁺, from the sums above e^x and below e^-x.
    above, below = np.searchsorted(ratios, np.exp(x)), np.searchsorted(ratios, np.exp(-x))
    (mass, mean), (mass_above, mean_above) = (
        [np.append(0.0, np.cumsum(each[::way]))[::way] for each in (total, ratios * total)] for way in (1, -1)
    )
    removed = call[last - first + 1] + mean_above[above] - np.exp(x) * mass_above[above]
    added = mass[below] - np.exp(x) * mean[below]
    return _of_profiles(grid, step, np.asarray(removed, float), np.asarray(added, float))


def _sketched(release: Sketch, step: float) -> PrivacyLossDistribution:
    """Where χ² with a row's ratio, or without it, is beyond the value at which the log-ratio of densities is ±x."""
    from scipy.stats import chi2

    law, wider = chi2(release.draws), chi2(release.draws, scale=1 + release.ratio)
    constant = release.draws * math.log1p(release.ratio) / 2
    slope = release.ratio / (1 + release.ratio) / 2
    last = math.ceil(max(slope * wider.isf(TAIL) - constant, constant - slope * law.ppf(TAIL)) / step)
    x = np.arange(-last, last + 1) * step
    above, below = (constant + x) / slope, (constant - x) / slope
    removed = wider.sf(above) - np.exp(x) * law.sf(above)
    added = law.cdf(below) - np.exp(x) * wider.cdf(below)
    return _of_profiles(last, step, *(np.minimum(d + release.failure, 1.0) for d in (removed, added)))


def _ranged(epsilon: float, step: float) -> PrivacyLossDistribution:
    """One choice of bounded range: of pairs with two losses, t and t - ε, the largest δ over t at every x.

    δ(x) = (1 - e^{(x-ε)/2})²/(1 - e^{-ε}) within ±ε; below, what it is for all that is ε-DP, 1 - e^x.
    """
    last = math.ceil(epsilon / step)
    x = np.arange(-last, last + 1) * step
    inside = np.expm1((np.clip(x, -epsilon, epsilon) - epsilon) / 2) ** 2 / -math.expm1(-epsilon)
    return _of_profiles(last, step, np.where(x < -epsilon, -np.expm1(x), inside))


def _of_profiles(last: int, step: float, *profiles: np.ndarray) -> PrivacyLossDistribution:
    """The least pairs on the grid from -last·step to last·step that dominate profiles of δ there: one, or one a way."""
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    return PrivacyLossDistribution(*(_pmf(deltas, last, step) for deltas in profiles))


def _pmf(deltas: np.ndarray, last: int, step: float) -> Any:
    from dp_accounting.pld import pld_pmf

    # As pld_pmf.create_pmf_pessimistic_connect_dots, which takes a dictionary of a million points.
    rise = np.diff(deltas)
    masses = np.append(1 - deltas[0], rise / np.expm1(-step)) + np.append(rise / np.expm1(step), 0.0)
    return pld_pmf.DensePLDPmf(step, -last, np.maximum(masses, 0.0), deltas[-1], pessimistic_estimate=True)


def _deviation(release: Release) -> float:
    """The rough standard deviation of the privacy loss of one release, infinite where it has no PLD here."""
    match release:
        case Gaussian(z):
            return 1 / z
        case Sketch(draws, ratio, _):
            # Four times its mean loss; beyond it ε is in the thousands, and the grid too large.
            return math.sqrt(draws / 2) * math.log1p(ratio) if draws * ratio**2 < 1e4 else math.inf
        case Poisson(rate, Gaussian(z)):
            return min(rate * math.sqrt(math.expm1(min(z**-2, 50.0))), 1 / z + 0.5 / z**2)
        case PoissonReplaced(rate, Gaussian(z)):
            return min(2 * rate * math.sqrt(math.expm1(min(0.25 / z**2, 50.0))), 1 / z + 0.5 / z**2)
        case Allocated(steps, Gaussian(z)):
            return min(math.sqrt(math.expm1(min(z**-2, 50.0)) / steps), 1 / z + 0.5 / z**2)
        case WithoutReplacement(n, m, Gaussian(z)):
            spread = _deviation(Poisson(m / n, Gaussian(z)))
            top = math.log1p(m / n * math.expm1(min(10 / z, 700.0)))  # of the loss, about
            return spread if top < 4000 * spread else math.inf  # else the grid would be too large
    epsilon = _pure_epsilon(release)
    return epsilon if epsilon < 700 else math.inf  # dp_accounting takes e^ε


def _mean(release: Release, deviation: float) -> float:
    """About the mean loss: half its variance, as of a normal one; of a sample at most its share of that on all rows."""
    match release:
        case Poisson(rate, Gaussian(z)) | PoissonReplaced(rate, Gaussian(z)):
            most = rate / 2 / z**2  # relative entropy is convex
        case WithoutReplacement(n, m, Gaussian(z)):
            most = m / n / 2 / z**2
        case _:
            most = math.inf
    return min(deviation**2 / 2, most)


def _top(release: Release) -> float:
    """About the largest loss of a Gaussian release, on all rows or on a Poisson sample; 0 for others."""
    match release:
        case Gaussian(z):
            return 10 / z + 0.5 / z**2
        case Poisson(rate, Gaussian(z)) | PoissonReplaced(rate, Gaussian(z)):
            return 10 / z + 0.5 / z**2 + math.log(rate)
    return 0.0


def _total(counts: Counts, deviations: list[float]) -> float:
    """The rough standard deviation of all losses together."""
    return math.sqrt(math.fsum(c * s * s for (_, c), s in zip(counts, deviations, strict=True)))


def _grid(counts: Counts, deviations: list[float]) -> float:
    """The interval of the grid; the relative error of ε is about (interval/deviation)²/10, measured: 1e-4.

    A release of deviation s adds as much as an error of `interval`·min(s, interval) in the variance of its loss: of c
    releases it is small beside their `total` where the interval is total/32√c, which is deviation/32 if all are alike.

    Both privacy losses of randomised response, ±ε₀, are rounded up to the grid: off it, that would add up to a drift of
    one interval each time. So the least ε₀ lies on it exactly, and the others are enlarged to lie on it (`_on_grid`).
    Of Laplace releases alone the least ε₀ does, too: half of their mass is there, and off the grid a few of them cost
    up to 1e-3 more than the noise was set for.
    """
    step = min(1e-3, min(deviations) / 32)
    # What is next to nothing beside the others may lie in one interval.
    if _total(counts, deviations) > LARGE * step:
        step = min(1e-3, max(step, _total(counts, deviations) / 32 / math.sqrt(sum(c for _, c in counts))))
    bounded = [(r, e) for r, _ in counts if math.isfinite(e := _pure_epsilon(r)) and not isinstance(r, BoundedRange)]
    pure = [e for r, e in bounded if not isinstance(r, Laplace)]
    if not (on_it := pure or [e for _, e in bounded if e > step]):
        return step
    epsilon = min(on_it)
    near = epsilon * (1 + 1e-12)  # ε₀ itself, as floats divide and multiply
    k = next(k for k in itertools.count(math.ceil(epsilon / step)) if _on_grid(epsilon, epsilon / k) <= near)
    return epsilon / k


def _on_grid(epsilon: float, step: float) -> float:
    """The least multiple of `step`, as floats divide, that is not below epsilon: ε₀-DP is ε-DP for every ε ≥ ε₀."""
    multiples = (k * step for k in itertools.count(math.ceil(epsilon / step)))
    return next(each for each in multiples if each >= epsilon and (each / step).is_integer())


# Integers, because sampling without replacement has no others; beyond 256 its sharp bound is not available.
_ORDERS = (*range(2, 33), *range(36, 65, 4), *range(72, 129, 8), *range(144, 257, 16))
# Where nothing is sampled, orders are cheap: 1 % apart.
_MANY_ORDERS = tuple(1 + np.geomspace(0.02, 1e5, 1600))


def _rdp(counts: Counts, delta: float) -> Spent:
    """By Rényi DP, which knows every release."""
    from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon

    sampled = [r for r, _ in counts if isinstance(r, WithoutReplacement) and isinstance(r.release, Gaussian)]
    orders = _ORDERS if sampled else _MANY_ORDERS
    # dp_accounting tries all pairs of orders there, in Python.
    if any(isinstance(r, BestOfRuns) for r, _ in counts):
        orders = _MANY_ORDERS[::5]
    if any(isinstance(r, Poisson | PoissonReplaced) for r, _ in counts) and not sampled:
        orders = (*(a / 10 for a in range(11, 110)), *range(11, 65), *map(int, np.geomspace(70, 2**14, 60)))
    curve = sum(c * _curve(r, orders) for r, c in counts)
    epsilon, best = map(float, compute_epsilon(orders, curve, delta))
    # Between the best order's neighbours: 1 % of an order costs 1e-5 of ε, which two routes would differ by.
    if orders is _MANY_ORDERS and math.isfinite(epsilon):
        near = tuple(1 + (best - 1) * np.geomspace(0.99, 1.01, 41))
        closer = compute_epsilon(near, sum(c * _curve(r, near) for r, c in counts), delta)[0]
        epsilon = min(epsilon, float(closer))
    if sampled:
        sharp = sum(c * (exact_differences(r, orders) if r in sampled else _curve(r, orders)) for r, c in counts)
        exact = float(compute_epsilon(orders, sharp, delta)[0])
        # Only where floats lost digits; both are upper bounds, so the lower one holds.
        if exact < epsilon * (1 - 1e-7):
            return Spent(exact, "RDP of sampling without replacement in exact arithmetic")
    return Spent(epsilon, "dp_accounting RDP")


@lru_cache(maxsize=1024)
def _curve(release: Release, orders: tuple[float, ...]) -> np.ndarray:
    import dp_accounting as dp
    from dp_accounting import dp_event
    from dp_accounting.rdp import RdpAccountant

    relation = dp.NeighboringRelation.ADD_OR_REMOVE_ONE
    match release:
        case Poisson(rate, inner):
            event = dp.PoissonSampledDpEvent(rate, _plain_event(inner))
        case PoissonReplaced(rate, Gaussian(z)):
            return _opposite_rows(rate, 2 * z, orders)
        case BoundedRange(epsilon):
            return _two_losses(epsilon, orders)
        case WithoutReplacement(n, m, Gaussian() as inner):
            relation = dp.NeighboringRelation.REPLACE_ONE
            event = dp.SampledWithoutReplacementDpEvent(n, m, _plain_event(inner))
        case WithoutReplacement():
            event = dp.ZCDpEvent(_pure_epsilon(release) ** 2 / 2)
        case BestOfRuns(base, law, mean):
            parts = [dp.SelfComposedDpEvent(_plain_event(r), c) for r, c in base]
            shape = math.inf if law == "poisson" else 1.0
            event = dp_event.RepeatAndSelectDpEvent(dp.ComposedDpEvent(parts), mean, shape)
        case _:
            event = _plain_event(release)
    curve: np.ndarray = RdpAccountant(list(orders), relation).compose(event).rdp
    if isinstance(release, WithoutReplacement) and isinstance(release.release, Gaussian):
        # Sampling never costs privacy: the divergence is quasi-convex (van Erven and Harremoës 2014, Theorem 13).
        curve = np.minimum(curve, _curve(release.release, orders))
    return curve


def _opposite_rows(rate: float, sigma: float, orders: tuple[float, ...]) -> np.ndarray:
    """The Rényi curve of (1-q)N(0, σ²) + qN(±1, σ²), which dp_accounting has as a loss distribution only."""
    from scipy.special import logsumexp
    from scipy.stats import norm

    if sigma < 0.1:  # too many points, and sampling never costs privacy, see `_curve`
        return np.array(orders) * 2 / sigma**2
    # Singularities lie about πσ² off the real line: the trapezoid rule's error is of order e^{-2π²σ²/step}.
    step = min(sigma / 6, sigma**2 / 3)
    x = np.arange(-12 * sigma, 12 * sigma + 2 * max(orders), step)
    with np.errstate(divide="ignore"):
        out, here, there = (norm.logpdf(x, m, sigma) + np.log(w) for m, w in ((0, 1 - rate), (1, rate), (-1, rate)))
    P, Q = np.logaddexp(out, here), np.logaddexp(out, there)
    return np.array([max(0.0, logsumexp(a * (P - Q) + Q) + np.log(step)) / (a - 1) for a in orders])


def _two_losses(epsilon: float, orders: tuple[float, ...]) -> np.ndarray:
    """The largest Rényi curve of losses in [t - ε, t], over t: a mechanism's of bounded range ε.

    Under Q the likelihood ratio has mean 1, and E_Q of its convex power α is largest where it takes both ends alone.
    """
    from scipy.special import expit

    a = np.array(orders)[:, None]

    def curves(s: np.ndarray) -> np.ndarray:
        """At t = ε/(1 + e^-s): the larger the order, the nearer is t to ε, where the curve ends at 0."""
        t, left = epsilon * expit(s), epsilon * expit(-s)
        log_high = np.log(-np.expm1(-left)) - t - np.log(-np.expm1(-epsilon))  # of Q at t
        log_low = np.log(-np.expm1(-t)) - np.log(-np.expm1(-epsilon))
        return np.asarray(np.logaddexp(log_high + a * t, log_low - a * left))

    # About the best place once more, and again: the curve is flat there, so that what is left is 1e-7 of it.
    best = np.zeros_like(a)
    for width, count in ((28.0, 225), (0.25, 41), (0.0125, 41)):
        near = best + np.linspace(-width, width, count)
        found = curves(near)
        best = np.take_along_axis(near, found.argmax(axis=1)[:, None], axis=1)
    return np.asarray(np.maximum(found, 0.0).max(axis=1) / (a[:, 0] - 1))


def _plain_event(release: Release) -> Any:
    """The event of a release on all rows."""
    import dp_accounting as dp

    match release:
        case Gaussian(z):
            return dp.GaussianDpEvent(z)
        case Laplace(z):
            return dp.LaplaceDpEvent(z)
        case ZCDP(rho):
            return dp.ZCDpEvent(rho)
        case LastIterate():
            return dp.GaussianDpEvent(_drift(release).noise_multiplier)
        case PureDP() | Radial() | RadialPerturbation():
            return dp.ZCDpEvent(_pure_epsilon(release) ** 2 / 2)
    raise PrivacyError(f"{release}: not known within a random number of runs")


@lru_cache(maxsize=1024)
def exact_differences(release: WithoutReplacement, orders: tuple[int, ...]) -> np.ndarray:
    """The Rényi curve of a Gaussian release on m of n rows at integer `orders`, replace-one.

    Wang, Balle and Kasiviswanathan (2019), Theorem 27, from finite differences of e^{(j-1)ε(j)} = e^{j(j-1)/(2σ²)} at
    j = 0 in decimal arithmetic; never above the curve without sampling.
    """
    sigma, last = release.release.noise_multiplier, max(orders) + 1
    with localcontext() as context:
        context.Emax = MAX_EMAX  # e^{j(j-1)/(2σ²)} with small σ
        # The largest of the cancelling terms over their sum is about (2σ)^j: that many digits are lost.
        context.prec = 60 + math.ceil(last * max(0.0, math.log10(2 * sigma)))
        growth = (1 / Decimal(sigma) ** 2).exp()
        row, factor = [Decimal(1)], Decimal(1)
        for _ in range(last):
            row.append(row[-1] * factor)
            factor *= growth
        log_difference = []
        for _ in range(last + 1):
            log_difference.append(_log(row[0]))
            row = [b - a for a, b in itertools.pairwise(row)]
    terms = [0.0, -math.inf]  # ln of the j-th summand, without (m/n)^j C(α, j)
    for j in range(2, last):
        sharp = math.log(4) + (log_difference[j // 2 * 2] + log_difference[(j + 1) // 2 * 2]) / 2
        terms.append(min(sharp, math.log(2) + j * (j - 1) / (2 * sigma**2)))
    log_rate = math.log(release.m / release.n)
    curve = [
        np.logaddexp.reduce([terms[j] + j * log_rate + math.log(math.comb(a, j)) for j in range(a + 1)]) / (a - 1)
        for a in orders
    ]
    return np.minimum(curve, np.array(orders) / (2 * sigma**2))


def _log(x: Decimal) -> float:
    """ln x in double precision; Decimal.ln would take milliseconds at a thousand digits."""
    return math.log(float(x.scaleb(-x.adjusted()))) + x.adjusted() * math.log(10) if x > 0 else -math.inf
