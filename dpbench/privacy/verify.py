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
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache, reduce
from typing import TYPE_CHECKING

import numpy as np

from dpbench.errors import PrivacyError
from dpbench.privacy.ledger import (
    ZCDP,
    Composition,
    Gaussian,
    Laplace,
    ObjectivePerturbation,
    Poisson,
    PureDP,
    Release,
    WithoutReplacement,
    describe,
)
from dpbench.privacy.relation import Relation

if TYPE_CHECKING:
    from dpbench.privacy.budget import Budget

Counts = tuple[tuple[Release, int], ...]


@dataclass(frozen=True)
class Spent:
    """ε at the δ asked, and how it was found."""

    epsilon: float
    checked_by: str

    def within(self, budget: Budget) -> bool:
        """Whether this is at most the budget's ε, up to the rounding of two computations of one number."""
        return self.epsilon <= budget.epsilon * (1 + 1e-6) + 1e-9


def spent(composition: Composition, delta: float, relation: Relation) -> Spent:
    """ε at `delta` of everything in `composition`; infinite where the releases cannot give any at that δ.

    PrivacyError for a release that is not accounted under `relation`. Cached: one computation per distinct composition.
    """
    counts: dict[Release, int] = {}
    for entry in composition:
        counts[entry.release] = counts.get(entry.release, 0) + entry.count
    return _spent(tuple(sorted(counts.items(), key=repr)), float(delta), relation)


def check(composition: Composition, budget: Budget) -> Spent:
    """`spent` of the composition; PrivacyError if it is more than the budget's ε."""
    result = spent(composition, budget.delta, budget.relation)
    if not result.within(budget):
        raise PrivacyError(
            f"the ledger composes to ε = {result.epsilon:.6g} ({result.checked_by}), "
            f"more than the {budget.epsilon:g} asked for"
        )
    return result


@lru_cache(maxsize=4096)
def _spent(counts: Counts, delta: float, relation: Relation) -> Spent:
    if not counts:
        return Spent(0.0, "nothing released")
    for release, _ in counts:
        _require(release, relation)
    perturbed = [(r, c) for r, c in counts if isinstance(r, ObjectivePerturbation)]
    if perturbed:
        return _with_objective_perturbation(perturbed, tuple(p for p in counts if p not in perturbed), delta, relation)
    gaussians = [(r, c) for r, c in counts if isinstance(r, Gaussian)]
    if len(gaussians) == len(counts) and delta > 0:
        from dp_accounting.gaussian_mechanism import get_epsilon_gaussian

        with np.errstate(divide="ignore"):  # it takes the logarithm of a difference that may round to zero
            epsilon = get_epsilon_gaussian(_composed(gaussians), delta)
        return Spent(float(epsilon), "dp_accounting exact Gaussian")
    found = [_basic(counts)]
    if delta > 0:
        pld = _pld(counts, delta)
        found.append(pld)
        if not math.isfinite(pld.epsilon):
            found.append(_rdp(counts, delta))
    best = min(found, key=lambda s: s.epsilon)
    return Spent(best.epsilon, best.checked_by + _stand_ins(counts))


def _with_objective_perturbation(perturbed: Counts, rest: Counts, delta: float, relation: Relation) -> Spent:
    left = delta - math.fsum(c * r.delta for r, c in perturbed)
    name = "tail bound of objective perturbation"
    if left < -1e-12 * delta or (rest and left <= 0):
        return Spent(math.inf, name)
    epsilon = math.fsum(
        c * (r.jacobian + 0.5 / r.noise_multiplier**2 + math.sqrt(-2 * math.log(r.delta)) / r.noise_multiplier)
        for r, c in perturbed
    )
    other = _spent(rest, left, relation)
    return Spent(epsilon + other.epsilon, f"{name} + {other.checked_by}" if rest else name)


def _require(release: Release, relation: Relation) -> None:
    needed = {Poisson: Relation.ADD_REMOVE, WithoutReplacement: Relation.REPLACE_ONE}.get(type(release), relation)
    if needed is not relation:
        raise PrivacyError(f"{describe(release)}: accounted under {needed} neighbours only, the run's are {relation}")


def _stand_ins(counts: Counts) -> str:
    notes = {
        "ε-DP selections as randomised response": any(isinstance(r, PureDP) for r, _ in counts),
        "sampled Laplace as its amplified ε": any(
            isinstance(r, WithoutReplacement) and isinstance(r.release, Laplace) for r, _ in counts
        ),
    }
    told = [note for note, present in notes.items() if present]
    return f" ({'; '.join(told)})" if told else ""


def _pure_epsilon(release: Release) -> float:
    """The ε₀ of a release that is ε₀-DP; infinite for others."""
    match release:
        case PureDP(epsilon):
            return epsilon
        case Laplace(z):
            return 1 / z
        case WithoutReplacement(n, m, Laplace(z)):
            return math.log1p(m / n * math.expm1(1 / z))
    return math.inf


def _composed(gaussians: Counts) -> float:
    """One noise multiplier for all: adaptive Gaussians compose as one (Dong, Roth and Su 2022, Corollary 3.3)."""
    return math.fsum(c / r.noise_multiplier**2 for r, c in gaussians) ** -0.5


def _basic(counts: Counts) -> Spent:
    return Spent(math.fsum(c * _pure_epsilon(r) for r, c in counts), "basic composition")


def _pld(counts: Counts, delta: float) -> Spent:
    """By privacy-loss distributions; infinite where a release has none or the grid would be too large."""
    # Tails of 1e-15 are cut to infinity at each composition.
    whole = _distribution(counts) if delta >= 1e-13 else None
    return Spent(float(whole.get_epsilon_for_delta(delta)) if whole else math.inf, "dp_accounting PLD")


@lru_cache(maxsize=4)
def _distribution(counts: Counts):
    """The privacy-loss distribution of all releases together, None where there is none."""
    from dp_accounting.pld import privacy_loss_distribution as pld
    from dp_accounting.pld.common import DifferentialPrivacyParameters

    gaussians = tuple((r, c) for r, c in counts if isinstance(r, Gaussian))
    counts = tuple((r, c) for r, c in counts if not isinstance(r, Gaussian))
    if gaussians:
        counts = (*counts, (Gaussian(_composed(gaussians)), 1))
    deviations = [_deviation(r) for r, _ in counts]
    if None in deviations or len(counts) > 50:
        return None
    total = math.sqrt(math.fsum(c * s * s for (_, c), s in zip(counts, deviations, strict=True)))
    step = _grid(counts, deviations)
    if total / step > 2e6:
        return None
    parts = []
    for release, count in counts:
        match release:
            case Gaussian(z):
                one = pld.from_gaussian_mechanism(z, value_discretization_interval=step)
            case Poisson(rate, Gaussian(z)):
                one = pld.from_gaussian_mechanism(z, sampling_prob=rate, value_discretization_interval=step)
            case Laplace(z):
                one = pld.from_laplace_mechanism(z, value_discretization_interval=step)
            case _:
                guarantee = DifferentialPrivacyParameters(_on_grid(_pure_epsilon(release), step), 0)
                one = pld.from_privacy_parameters(guarantee, value_discretization_interval=step)
        parts.append(one.self_compose(count))
    return reduce(lambda a, b: a.compose(b), parts)


def _deviation(release: Release) -> float | None:
    """The rough standard deviation of the privacy loss of one release, None where it has no PLD here."""
    match release:
        case Gaussian(z):
            return 1 / z
        case Poisson(rate, Gaussian(z)):
            return min(rate * math.sqrt(math.expm1(min(z**-2, 50.0))), 1 / z + 0.5 / z**2)
    epsilon = _pure_epsilon(release)
    return epsilon if math.isfinite(epsilon) else None


def _grid(counts: Counts, deviations: list[float]) -> float:
    """The interval of the grid; the relative error of ε is about (interval/deviation)²/10, measured: 1e-4.

    Both privacy losses of randomised response, ±ε₀, are rounded up to the grid: off it, that would add up to a drift of
    one interval each time. So the least ε₀ lies on it exactly, and the others are enlarged to lie on it (`_on_grid`).
    """
    step = min(1e-3, min(deviations) / 32)
    pure = {_pure_epsilon(r) for r, _ in counts if isinstance(r, PureDP | WithoutReplacement)}
    if not pure:
        return step
    epsilon = min(pure)
    k = next(k for k in itertools.count(math.ceil(epsilon / step)) if (epsilon / (epsilon / k)).is_integer())
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
    if any(isinstance(r, Poisson) for r, _ in counts):
        orders = (*(a / 10 for a in range(11, 110)), *range(11, 65), *map(int, np.geomspace(70, 2**14, 60)))
    curve = sum(c * _curve(r, orders) for r, c in counts)
    epsilon = float(compute_epsilon(orders, curve, delta)[0])
    if sampled:
        sharp = sum(c * (exact_differences(r, orders) if r in sampled else _curve(r, orders)) for r, c in counts)
        exact = float(compute_epsilon(orders, sharp, delta)[0])
        if exact < epsilon * (1 - 1e-7):
            return Spent(exact, "RDP of sampling without replacement in exact arithmetic")
    return Spent(epsilon, "dp_accounting RDP")


@lru_cache(maxsize=1024)
def _curve(release: Release, orders: tuple[float, ...]) -> np.ndarray:
    import dp_accounting as dp
    from dp_accounting.rdp import RdpAccountant

    relation = dp.NeighboringRelation.ADD_OR_REMOVE_ONE
    match release:
        case Gaussian(z):
            event = dp.GaussianDpEvent(z)
        case Laplace(z):
            event = dp.LaplaceDpEvent(z)
        case ZCDP(rho):
            event = dp.ZCDpEvent(rho)
        case Poisson(rate, Gaussian(z)):
            event = dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(z))
        case WithoutReplacement(n, m, Gaussian(z)):
            relation = dp.NeighboringRelation.REPLACE_ONE
            event = dp.SampledWithoutReplacementDpEvent(n, m, dp.GaussianDpEvent(z))
        case _:
            event = dp.ZCDpEvent(_pure_epsilon(release) ** 2 / 2)
    curve = RdpAccountant(list(orders), relation).compose(event).rdp
    if isinstance(release, WithoutReplacement) and isinstance(release.release, Gaussian):
        # Sampling never costs privacy: the divergence is quasi-convex (van Erven and Harremoës 2014, Theorem 13).
        curve = np.minimum(curve, _curve(release.release, orders))
    return curve


@lru_cache(maxsize=1024)
def exact_differences(release: WithoutReplacement, orders: tuple[int, ...]) -> np.ndarray:
    """The Rényi curve of a Gaussian release on m of n rows at integer `orders`, replace-one.

    Wang, Balle and Kasiviswanathan (2019), Theorem 27, from finite differences of e^{(j-1)ε(j)} = e^{j(j-1)/(2σ²)} at
    j = 0 in decimal arithmetic; never above the curve without sampling.
    """
    sigma, last = release.release.noise_multiplier, max(orders) + 1
    with localcontext() as context:
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
