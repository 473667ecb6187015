"""What a run may spend, under which neighbouring relation, and how its releases are composed and converted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from dpbench.errors import PrivacyError, UserError, nearest
from dpbench.privacy import gaussian, subsampled, zcdp
from dpbench.privacy.laplace import advanced_composition, advanced_composition_epsilon0, amplified
from dpbench.privacy.ledger import (
    ZCDP,
    Composition,
    Entry,
    Gaussian,
    Laplace,
    ObjectivePerturbation,
    Poisson,
    PureDP,
    WithoutReplacement,
)
from dpbench.privacy.relation import Relation
from dpbench.privacy.verify import spent

ACCOUNTINGS = (*zcdp.CONVERSIONS, "tight", "rdp", "poisson", "advanced", "basic", "pure")
WITHOUT_RHO = ("rdp", "poisson", "advanced", "basic", "pure")


@dataclass(frozen=True)
class Budget:
    """(ε, δ) under `relation`, and the `accounting` that turns it into noise.

    accounting: "text", "bs16", "cks20" or "standard" (ρ-zCDP with that conversion), "tight" (exact Gaussian for
    full-batch releases, privacy-loss distributions or RDP for others), "rdp" (Rényi DP of Gaussians, sampled or not),
    "poisson" (the same with one row at a time taken for a Poisson sample, see `one_row_multiplier`), "advanced"
    (advanced composition of pure-DP releases), "basic" (ε and δ of objective and output perturbation added up) or
    "pure" (basic composition, δ = 0).
    UserError for a value out of range.
    """

    epsilon: float
    delta: float
    relation: Relation
    accounting: str

    def __post_init__(self) -> None:
        if not 0 < self.epsilon < math.inf:
            raise UserError(f"epsilon must be positive and finite, got {self.epsilon}")
        if not 0 <= self.delta < 1:
            raise UserError(f"delta must be in [0, 1), got {self.delta}")
        if not isinstance(self.relation, Relation):
            raise UserError(f"relation must be a Relation, got {self.relation!r}")
        if self.accounting not in ACCOUNTINGS:
            raise UserError(f"unknown accounting {self.accounting!r}; {nearest(self.accounting, ACCOUNTINGS)}")
        if (self.accounting == "pure") != (self.delta == 0):
            raise UserError(
                f"delta: accounting {self.accounting} needs "
                f"{'delta = 0' if self.accounting == 'pure' else 'delta > 0'}, got {self.delta:g}"
            )

    @cached_property
    def rho(self) -> float:
        """The zCDP budget under `accounting`; for "tight", ρ = μ²/2 of the exact Gaussian.

        With "tight" it is sound for algorithms whose every release is a Gaussian on all rows (or post-processing), and
        for no other: zCDP of another kind at that ρ costs more than ε.
        """
        if self.accounting in WITHOUT_RHO:
            raise PrivacyError(f"a budget with accounting {self.accounting} has no rho: compose its ε another way")
        if self.accounting == "tight":
            return gaussian.gaussian_mu(self.epsilon, self.delta) ** 2 / 2
        return zcdp.rho(self.epsilon, self.delta, self.accounting)

    def poisson_multiplier(self, rate: float, steps: int, share: float = 1.0) -> float:
        """Noise multiplier for `steps` Poisson-sampled Gaussian releases that may cost (share·ε, share·δ) together.

        Shares add up by basic composition. RDP (Mironov, Talwar and Zhang 2019); with "tight", a privacy-loss
        distribution.
        """
        self._require(Relation.ADD_REMOVE, "Poisson sampling")
        epsilon, delta = self._share(share)
        if self.accounting == "tight":
            return _tight_poisson_multiplier(epsilon, delta, float(rate), int(steps))
        return subsampled.poisson_noise_multiplier(epsilon, delta, rate, steps)

    def without_replacement_multiplier(
        self, n: int, m: int, steps: int, share: float = 1.0, after: tuple[tuple[float, int], ...] = ()
    ) -> float:
        """The same for Gaussian releases on m of n rows without replacement, replace-one; by RDP in every mode.

        after: (noise multiplier, count) of such releases made before, which count towards the share too.
        """
        self._require(Relation.REPLACE_ONE, "sampling without replacement")
        return subsampled.without_replacement_noise_multiplier(*self._share(share), n, m, steps, after)

    def one_row_multiplier(self, n: int, steps: int) -> float:
        """Noise multiplier, relative to the replace-one sensitivity 2C, for `steps` releases on one uniform row of n.

        "rdp": that of sampling without replacement, m = 1. "poisson": std = z·C, z for Poisson samples of rate 1/n
        under add/remove, as it is often implemented; exactly one row is drawn, so that guarantee is not for what runs.
        """
        if self.accounting == "poisson":
            return subsampled.poisson_noise_multiplier(*self._share(1.0), 1 / n, steps) / 2
        return self.without_replacement_multiplier(n, 1, steps)

    def gaussian_multiplier(self, steps: int) -> float:
        """Noise multiplier of each of `steps` Gaussian releases on all rows: by RDP, or exactly ("tight")."""
        if self.accounting == "rdp":
            return math.sqrt(steps) * subsampled.gaussian_noise_multiplier(*self._share(1.0))
        return math.sqrt(steps / (2 * self.rho))

    def laplace_epsilon(self, steps: int, selection: float = 1.0) -> float:
        """ε' of `steps` Laplace releases at ε' and as many pure-DP selections, which all together are (ε, δ)-DP.

        "advanced": advanced composition of 2·steps ε'-DP releases (greedy_coordinate's eq. 2), whatever the selections
        cost. "tight": privacy-loss distributions with selections at selection·ε'.
        """
        if self.accounting == "advanced":
            return advanced_composition_epsilon0(self.epsilon, 2 * steps, self.delta)
        if self.accounting == "tight":
            from dpbench.privacy import tight

            return tight.laplace_epsilon(self.epsilon, self.delta, steps, selection)
        raise PrivacyError(f"accounting {self.accounting} does not compose pure-DP releases to a given epsilon")

    def epsilon_of(self, composition: Composition) -> float | None:
        """The ε that this accounting's own composition gives, where it has one; else None.

        zCDP modes: Σρ converted, for Gaussian and ρ-zCDP releases, with ε₀-DP ones among them at ε₀²/2 (Bun and Steinke
        2016, Proposition 1.4). tight: the exact Gaussian, for Gaussians alone. rdp: for Gaussians on samples of one
        kind, all Poisson, all without replacement or all on every row; poisson: one row without replacement counted as
        a Poisson sample, its noise relative to C instead of 2C. advanced: where all releases have one pure ε₀.
        basic: (1 + √(2 ln(1/δ)))/z for noise on objective or output, and the Jacobian's share (Iyengar et al. 2019,
        Theorem 1). pure: Σε₀.
        """
        releases = [(e.release, e.count) for e in composition]
        if self.accounting == "basic":
            return self._basic_epsilon(releases)
        if self.accounting == "poisson":
            releases = [(_as_poisson(r), c) for r, c in releases]
        if self.accounting in ("rdp", "poisson"):
            return self._rdp_epsilon(releases)
        if self.accounting == "advanced":
            return self._advanced_epsilon(releases)
        if self.accounting == "pure":
            epsilons = [_pure_epsilon(r) for r, _ in releases]
            return None if None in epsilons else sum(c * e for e, (_, c) in zip(epsilons, releases, strict=True))
        gaussians = [isinstance(r, Gaussian) for r, _ in releases]
        if self.accounting == "tight" and all(gaussians):
            return gaussian.gaussian_epsilon(math.sqrt(2 * sum(c * _rho(r) for r, c in releases)), self.delta)
        rhos = [_rho(r) for r, _ in releases]
        if self.accounting == "tight" or None in rhos or not any(isinstance(r, Gaussian | ZCDP) for r, _ in releases):
            return None
        total = sum(c * rho for rho, (_, c) in zip(rhos, releases, strict=True))
        return zcdp.epsilon(total, self.delta, self.accounting)

    def _basic_epsilon(self, releases: list) -> float | None:
        if not all(isinstance(r, Gaussian | ObjectivePerturbation) for r, _ in releases):
            return None
        left = self.delta - sum(c * r.delta for r, c in releases if isinstance(r, ObjectivePerturbation))
        outputs = sum(c for r, c in releases if isinstance(r, Gaussian))
        total = 0.0
        for release, count in releases:
            objective = isinstance(release, ObjectivePerturbation)
            delta = release.delta if objective else left / outputs
            if delta <= 0:
                return math.inf
            noise = (1 + math.sqrt(-2 * math.log(delta))) / release.noise_multiplier
            total += count * (noise + (release.jacobian if objective else 0.0))
        return total

    def _rdp_epsilon(self, releases: list) -> float | None:
        if releases and all(isinstance(r, Poisson) for r, _ in releases):
            orders = subsampled.POISSON_ORDERS
            curves = [subsampled.poisson_cumulant(r.release.noise_multiplier, r.rate, orders) for r, _ in releases]
        elif releases and all(
            isinstance(r, WithoutReplacement) and isinstance(r.release, Gaussian) for r, _ in releases
        ):
            orders = subsampled.WITHOUT_REPLACEMENT_ORDERS
            curves = [
                subsampled.without_replacement_cumulant(r.release.noise_multiplier, r.n, r.m, orders)
                for r, _ in releases
            ]
        elif releases and all(isinstance(r, Gaussian) for r, _ in releases):
            orders = subsampled.POISSON_ORDERS
            curves = [subsampled.gaussian_cumulant(r.noise_multiplier, orders) for r, _ in releases]
        else:
            return None
        total = sum(c * curve for curve, (_, c) in zip(curves, releases, strict=True))
        return subsampled.rdp_epsilon(orders, total, self.delta)

    def _advanced_epsilon(self, releases: list) -> float | None:
        epsilons = [_pure_epsilon(r) for r, _ in releases]
        if not releases or None in epsilons or max(epsilons) > min(epsilons) * (1 + 1e-12):
            return None
        return advanced_composition(epsilons[0], sum(c for _, c in releases), self.delta)

    def _share(self, share: float) -> tuple[float, float]:
        if not 0 < share <= 1:
            raise PrivacyError(f"share must be in (0, 1], got {share}")
        if self.accounting == "pure":
            raise PrivacyError("a pure-DP budget has no Gaussian noise multiplier")
        return share * self.epsilon, share * self.delta

    def _require(self, relation: Relation, what: str) -> None:
        if self.relation is not relation:
            raise PrivacyError(f"{what} is accounted under {relation} neighbours only, the run's are {self.relation}")


@lru_cache(maxsize=1024)
def _tight_poisson_multiplier(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """By privacy-loss distributions, to 1e-4: a fraction of a second to a few seconds."""

    def cost(z: float) -> float:
        return spent((Entry(Poisson(rate, Gaussian(z)), steps, ""),), delta, Relation.ADD_REMOVE).epsilon

    by_rdp = subsampled.poisson_noise_multiplier(epsilon, delta, rate, steps)
    return subsampled.smallest_multiplier(cost, epsilon, start=by_rdp, rtol=1e-4)


def _pure_epsilon(release: object) -> float | None:
    match release:
        case PureDP(epsilon):
            return epsilon
        case Laplace(z):
            return 1 / z
        case WithoutReplacement(n, m, Laplace(z)):
            return float(amplified(1 / z, n, m))
    return None


def _as_poisson(release: object) -> object:
    match release:
        case WithoutReplacement(n, 1, Gaussian(z)):
            return Poisson(1 / n, Gaussian(2 * z))
    return release


def _rho(release: object) -> float | None:
    match release:
        case Gaussian(z):
            return 0.5 / z**2
        case ZCDP(rho):
            return rho
        case Laplace() | PureDP():
            return _pure_epsilon(release) ** 2 / 2
    return None


@dataclass(frozen=True)
class Budgets:
    """The budgets of a batch whose replicates differ in ε alone: `rho` has one value per replicate.

    For algorithms with "epsilon" among their `per_replicate`; everything they hand to `mechanisms` may be (k,)-shaped.
    """

    each: tuple[Budget, ...]

    def __post_init__(self) -> None:
        if len({(one.delta, one.relation, one.accounting) for one in self.each}) != 1:
            raise PrivacyError("the budgets of one batch may differ in epsilon alone")

    def __getitem__(self, i: int) -> Budget:
        return self.each[i]

    @property
    def relation(self) -> Relation:
        return self.each[0].relation

    @cached_property
    def rho(self) -> np.ndarray:
        """(k,) zCDP budgets, see `Budget.rho`."""
        return np.array([one.rho for one in self.each])
