"""`tight`: the least ε that is known for what was released.

A draw behind a noisy test, `ledger.DrawAfterTest`, and other releases beside it.
"""

from __future__ import annotations

import math

from dpbench.errors import PrivacyError
from dpbench.privacy.accounting import loss_distribution, objective_perturbation, renyi
from dpbench.privacy.accounting.base import Accounting, smallest_scale
from dpbench.privacy.accounting.gaussian import as_gaussian, gaussian_epsilon, gaussian_mu, squared_mu
from dpbench.privacy.accounting.pure import Basic, Pure
from dpbench.privacy.ledger import (
    Allocated,
    BoundedRange,
    Counts,
    DrawAfterTest,
    Gaussian,
    LastIterate,
    LogisticPerturbation,
    ObjectivePerturbation,
    Poisson,
    PoissonReplaced,
    Sketch,
    WithoutReplacement,
    scaled,
)


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


# What a second computation on a grid may find more than ours: its error relative to ε, and the rounding of its
# transforms, which is absolute in δ: one part grows with the count (measured against dp_accounting: at most 0.45e-16),
# the other does not, and is felt at δ < 1e-11 (with this none of 700 random plans, n from 1e4 to 3e6, is over its ε).
GRID, TRANSFORM, FLOOR = 2e-5, 5e-17, 2e-14
COARSE = 600.0  # ε up to which that error holds; pure releases that would cost more take the noise of this, or basic


class Tight(Accounting):
    """Exact for Gaussian releases on all rows (Dong, Roth and Su 2022; see `gaussian`).

    Privacy-loss distributions where each release has one, with ε₀-DP selections as randomised response (Kairouz, Oh
    and Viswanath 2015, Theorem 3.1), or basic composition of pure ones where that is less; else, and where less beside
    choices of bounded range, Rényi DP (zCDP), or
    for objective perturbation the bound of `basic`, but of the logistic loss that of `objective_perturbation`; a last
    iterate counts as the Gaussian release of `last_iterate`.
    """

    name = "tight"
    least_sensitivities = True

    def rho(self, epsilon: float, delta: float) -> float:
        """ρ = μ²/2 of the exact Gaussian.

        Sound for algorithms whose every release is a Gaussian on all rows (or post-processing), and for no other: zCDP
        of another kind at that ρ costs more than ε.
        """
        return gaussian_mu(epsilon, delta) ** 2 / 2

    def epsilon_of(self, releases: Counts, delta: float) -> float | None:
        releases = _plain(releases)
        if any(isinstance(release, DrawAfterTest) for release, _ in releases):
            return epsilon_of(releases, delta, self)
        basic = Pure().epsilon_of(releases, 0.0)
        if delta == 0 or not releases:
            return basic
        if any(isinstance(release, ObjectivePerturbation) for release, _ in releases):
            return Basic().epsilon_of(releases, delta)
        if any(isinstance(release, LogisticPerturbation) for release, _ in releases):
            return objective_perturbation.epsilon_of(releases, delta)
        if all(isinstance(release, Gaussian) for release, _ in releases):
            return gaussian_epsilon(math.sqrt(squared_mu(releases)), delta)
        routes = [basic, loss_distribution.epsilon_of(releases, delta)]
        # Of choices of bounded range either may be less: few beside a Gaussian, or many.
        if routes[1] is None or any(isinstance(release, BoundedRange) for release, _ in releases):
            routes.append(renyi.epsilon_of(releases, delta))
        return min((each for each in routes if each is not None), default=None)

    def noise_scale(self, plan: Counts, after: Counts, epsilon: float, delta: float) -> float:
        plan, after = _plain(plan), _plain(after)
        everything = (*plan, *after)
        if any(isinstance(release, DrawAfterTest) for release, _ in everything):
            return self.solve(plan, after, epsilon, delta)
        if any(isinstance(release, LogisticPerturbation) for release, _ in everything):
            return objective_perturbation.noise_scale(plan, after, epsilon, delta)
        if all(isinstance(release, Gaussian) for release, _ in everything):
            left = gaussian_mu(epsilon, delta) ** 2 - squared_mu(after)
            if left <= 0:
                raise PrivacyError(f"what was released before leaves nothing of ε = {epsilon:g}")
            return math.sqrt(squared_mu(plan) / left)
        basic = None if after else Pure().epsilon_of(plan, 0.0)
        start = basic / epsilon if basic else _as_if_normal(plan, epsilon, delta)
        rounded = delta - FLOOR - TRANSFORM * sum(count for _, count in everything)
        about = (*((scaled(release, start), count) for release, count in plan), *after)
        if rounded < delta / 2 or not loss_distribution.covers(about, rounded):
            most = renyi.noise_scale(plan, after, epsilon, delta)
            return most if rounded < delta / 2 else _while_covered(plan, after, epsilon * (1 - GRID), rounded, most)
        most = min(epsilon, COARSE) if basic else epsilon
        solved = self.solve(plan, after, most * (1 - GRID), rounded, start=start, rtol=1e-4)
        return min(start, solved) if basic else solved


def _while_covered(plan: Counts, after: Counts, epsilon: float, delta: float, most: float) -> float:
    """The least noise below `most`, to 0.3 %, at which there is a loss distribution, and ε by it; `most` if none is."""

    def fits(log: float) -> bool:
        noisy = tuple((scaled(release, math.exp(log)), count) for release, count in plan)
        spent = loss_distribution.epsilon_of((*noisy, *after), delta)
        return spent is not None and spent <= epsilon

    low, high = math.log(most / 4), math.log(most)
    if not fits(high):
        return most
    for _ in range(9):
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return math.exp(high)


def _plain(releases: Counts) -> Counts:
    return tuple((as_gaussian(r) if isinstance(r, LastIterate) else r, count) for r, count in releases)


def _as_if_normal(plan: Counts, epsilon: float, delta: float) -> float:
    """A rough scale of the noise: as if the losses added up to a normal one, of variance Σ q²(e^{1/z²} - 1)."""

    def variance(scale: float) -> float:
        total = 0.0
        for release, count in plan:
            match release:
                case PoissonReplaced(rate, Gaussian(z)):
                    total += count * (2 * rate) ** 2 * math.expm1(min((2 * z * scale) ** -2, 50.0))
                case Poisson(_, Gaussian(z)) | WithoutReplacement(_, _, Gaussian(z)):
                    total += count * release.rate**2 * math.expm1(min((z * scale) ** -2, 50.0))
                case Allocated(steps, Gaussian(z)):
                    total += count / steps * math.expm1(min((z * scale) ** -2, 50.0))
                case Gaussian(z):
                    total += count * (z * scale) ** -2
                case Sketch(draws, ratio, _):
                    total += count * draws * (ratio / scale) ** 2 / 2
                case BoundedRange(epsilon):
                    total += count * (epsilon / scale) ** 2 / 3
        return total

    return smallest_scale(variance, gaussian_mu(epsilon, delta) ** 2, rtol=1e-2) if variance(1.0) else 1.0
