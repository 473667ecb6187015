"""What a run may spend, under which neighbouring relation, and the accounting that its noise is calibrated by.

One budget for several runs on the same rows; `check.compose` is what they cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from dpbench.errors import PrivacyError, UserError, positive
from dpbench.privacy import accounting as accountings
from dpbench.privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu
from dpbench.privacy.ledger import Composition, Counts, Relation, counted, require


@dataclass(frozen=True)
class Budget:
    """(ε, δ) under `relation`, and the name of the `accounting` that turns it into noise (`privacy.accounting`).

    UserError for a value out of range.
    """

    epsilon: float
    delta: float
    relation: Relation
    accounting: str

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        if not 0 <= self.delta < 1:
            raise UserError(f"delta must be in [0, 1), got {self.delta}")
        if not isinstance(self.relation, Relation):
            raise UserError(f"relation must be a Relation, got {self.relation!r}")
        # At δ = 0 Gaussian noise gives no ε at all; at δ > 0 a pure accounting would waste δ silently.
        if self.mode.pure != (self.delta == 0):
            raise UserError(
                f"delta: accounting {self.accounting} needs "
                f"{'delta = 0' if self.mode.pure else 'delta > 0'}, got {self.delta:g}"
            )

    @property
    def mode(self) -> accountings.Accounting:
        """The accounting itself."""
        return accountings.get(self.accounting)

    @property
    def least_sensitivities(self) -> bool:
        """Whether algorithms use the least sensitivities that are proved, not those of their papers."""
        return self.mode.least_sensitivities

    @cached_property
    def rho(self) -> float:
        """The ρ that Gaussian releases of Σ 1/(2z²) = ρ may spend; PrivacyError where the accounting has none."""
        return self.mode.rho(self.epsilon, self.delta)

    def noise_scale(self, plan: Counts, share: float = 1.0, after: Counts = ()) -> float:
        """The smallest z at which `plan` with z times its noise may cost (share·ε, share·δ), all together.

        plan: (release, count) each at the noise that z multiplies, e.g. ((Poisson(rate, Gaussian(1.0)), steps),).
        after: releases made before, as they are, which count towards the share too. Shares add up (basic composition).
        """
        if not 0 < share <= 1:
            raise PrivacyError(f"share must be in (0, 1], got {share}")
        for release, count in (*plan, *after):
            # A multiplier relative to another relation's sensitivity would calibrate the wrong noise.
            require(release, self.relation)
            if count < 1:
                raise UserError(f"steps must be at least 1, got {count}")
        return _noise_scale(self.mode, tuple(plan), tuple(after), share * self.epsilon, share * self.delta)

    def epsilon_of(self, composition: Composition) -> float | None:
        """The ε that this accounting gives for all of `composition`; None where it does not cover it."""
        return self.mode.epsilon_of(counted(composition), self.delta)


@lru_cache(maxsize=1024)
def _noise_scale(mode: accountings.Accounting, plan: Counts, after: Counts, epsilon: float, delta: float) -> float:
    return mode.noise_scale(plan, after, epsilon, delta)


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

    @property
    def least_sensitivities(self) -> bool:
        """See `Budget.least_sensitivities`."""
        return self.each[0].least_sensitivities

    @cached_property
    def rho(self) -> np.ndarray:
        """(k,) zCDP budgets, see `Budget.rho`."""
        return np.array([one.rho for one in self.each])


def share(epsilon: float, delta: float, runs: int, *, gaussian: bool) -> tuple[float, float]:
    """(ε', δ') of each of `runs` runs that are (ε, δ)-DP together.

    Basic composition: (ε/k, δ/k), for any runs. gaussian: every run releases Gaussians on all rows alone, calibrated
    exactly: k runs of μ' are √k·μ'-Gaussian DP (Dong, Roth and Su 2022, Corollary 3.3), so each gets μ/√k, at δ.

    >>> share(1.0, 1e-6, 4, gaussian=False)
    (0.25, 2.5e-07)
    """
    if runs == 1:
        return epsilon, delta
    if not gaussian or delta == 0:
        return epsilon / runs, delta / runs
    return gaussian_epsilon(gaussian_mu(epsilon, delta) / math.sqrt(runs), delta), delta
