"""A bound U on the length of a row: released once and paid for, or by a public rule.

Every method's noise is in proportion to U, and a row that is longer is shortened, which is a bias. So U should be
near the length that rows have: U² = intercept + groups of indicators + q, with q the mean of Σ z_j² over the columns
of numbers, z in [-1, 1]. Half of the rows or so stay as they are.

"private": q is released. A row adds to it what lies in [0, m], m the number of those columns, whatever the others are:
its mean, centred and over a public n, moves by m/n under replace-one and by m/2n under add/remove. It takes SHARE of μ²
(Gaussian; the model's releases keep the rest), or of ε where δ = 0 or where the model's releases do not compose with a
Gaussian (Laplace, by basic composition). Everything after it takes U for public, as it was released before: adaptive
composition. What was released is weighed against GUESS·m by its noise, which costs nothing.

"rule": U² = groups of indicators + 0.09 (intercept + m), at least 1. No release.

"auto", the default wherever columns have bounds and nobody gave a number: "private"; "rule" for a method whose releases
do not compose with another, as it says them only while it runs; no bound where no column is of numbers, as there rows
are as long as they may be. The statement says which: by a release, or by "a row bound by rule". "window" finds one for
rows that are centred first (`own.window`): what "auto" does for numbers with an intercept, at δ > 0, where no intervals
are asked for.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from dpbench.errors import PrivacyError, UserError
from dpbench.privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu
from dpbench.privacy.budget import Budget
from dpbench.privacy.check import compose, guarantee
from dpbench.privacy.exact_release import ExactMechanisms, SeededMechanisms
from dpbench.privacy.exact_sums import RowSensitivity, Sum
from dpbench.privacy.ledger import BoundedRange, Composition, CountedRelease, Gaussian, Laplace, Relation
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.privacy.verify import spent
from dpbench.problems.persons import OfPersons

RowBound: TypeAlias = Literal["auto", "private", "rule", "window"]
# Of what is left of (ε, δ): what each model would release, and its δ.
Planned: TypeAlias = Callable[[float, float], Sequence[tuple[Composition, float]]]
BOUND_MODES = ("auto", "private", "rule", "window")
LABEL, WINDOW = "row bound", "window"
BY_RULE = "a row bound by rule"  # what counts as public then
SHARE = 0.03  # of μ², or of ε
GUESS, SPREAD = 0.09, 0.15  # of a column's mean square before anything is released, and how far that may be off
LEAST = 0.02  # a mean square of a column is not taken to be less
BLOCK = 1 << 16  # numbers that are worked on at a time
BITS = 16  # a row's Σ z² is a multiple of 2⁻¹⁶
SMALLER = (1.0, 0.999, 0.998, 0.996, 0.99, 0.97)  # of the model's ε: exact calibrations compose to a per mille more


class Lengths(NamedTuple):
    """What the length of a row is made of, before it is divided: public.

    numbers: (d,) of bool, the columns of numbers, the indicators of missing ones too. most: what these add to ‖x‖₂² at
    most. others: what the other columns add at most, 1 a group of indicators. intercept: 1 or 0.
    """

    numbers: np.ndarray
    most: int
    others: int
    intercept: int

    @property
    def unit(self) -> float:
        """√(number of groups), which no row exceeds."""
        return math.sqrt(self.most + self.others + self.intercept)


class BoundSplit(NamedTuple):
    """What the bound's release is, None by the rule, and (ε, δ) of all that comes after it.

    choice: ε₀ of a window around the target that is chosen before it (`own.window.choose`), 0 where none is.
    """

    release: Gaussian | Laplace | None
    epsilon: float
    delta: float
    choice: float = 0.0

    @property
    def planned(self) -> Composition:
        """What is released for it, and before it."""
        window = (CountedRelease(BoundedRange(self.choice), 1, WINDOW),) if self.choice else ()
        return window + (() if self.release is None else (CountedRelease(self.release, 1, LABEL),))

    @property
    def parts(self) -> list[tuple[Composition, float, float]]:
        """The release as `privacy.check.together` takes it: with its own ε at δ = 0."""
        own = 1 / self.release.noise_multiplier if isinstance(self.release, Laplace) else math.inf
        return [(self.planned, own + self.choice, 0.0)] if self.planned else []


class ReleasedBound(NamedTuple):
    """U, and the ledger's lines on the release."""

    bound: float
    ledger: list[dict[str, Any]]


def mechanisms_of(exact: bool, seed: int | None) -> type[Mechanisms]:
    """The class that a fit releases through. exact: for the bytes; seed: None draws from the system's entropy."""
    if exact:
        return ExactMechanisms if seed is None else SeededMechanisms
    return Mechanisms


class Releasing(NamedTuple):
    """How a fit releases what it finds before its models.

    budget: all of the fit's, which a release is checked against. seed, arithmetic: as of `dpbench.fit`; None is for the
    bytes, of a release without a seed. of_persons: what the rows weigh, with a unit.
    """

    budget: Budget
    seed: int | None = None
    arithmetic: str | None = None
    of_persons: OfPersons | None = None

    @property
    def exact(self) -> bool:
        """Whether it is for the bytes."""
        without_seed = self.arithmetic is None and self.seed is None
        return without_seed or self.arithmetic == "bytes" or self.of_persons is not None

    def mechanisms(self, name: str) -> Mechanisms:
        """What is released through; name: of its stream, with a seed."""
        key = secrets.token_hex(32) if self.seed is None else f"{name}/{self.budget}/{self.seed}"
        return mechanisms_of(self.exact, self.seed)([key], self.budget)


def parse_mode(row_bound: Any, number: float | None) -> Any:
    """How a bound is to be found beside a schema's `number`; UserError for what says it twice. `own.spec` checks it."""
    if number is not None and row_bound not in (None, "auto"):
        raise UserError("row_bound: the schema says it; leave it out")
    return None if number is not None else row_bound


def by_rule(lengths: Lengths) -> float:
    """U without a release."""
    return max(1.0, math.sqrt(lengths.others + GUESS * (lengths.intercept + lengths.most)))


def choose_split(how: RowBound | None, lengths: Lengths, budget: Budget, planned: Planned) -> BoundSplit | None:
    """What is done about a bound, from public numbers; None where rows are left as they are.

    planned: as of `first_within`. PrivacyError as of that, for "private" alone.
    """
    if how is None or (how != "rule" and not lengths.most):
        return None
    if how != "rule":
        try:
            return first_within(candidate_splits(budget.epsilon, budget.delta), budget, planned)
        except PrivacyError:
            if how == "private":
                raise
    return BoundSplit(None, budget.epsilon, budget.delta)


def candidate_splits(epsilon: float, delta: float) -> list[BoundSplit]:
    """Ways to share (ε, δ) between the bound's release and the model's, in the order to try them; the last is Laplace.

    Gaussian: the bound takes SHARE of μ², the model keeps the rest (Gaussian DP: μ² adds up).
    """
    laplace = BoundSplit(Laplace(1 / (SHARE * epsilon)), (1 - SHARE) * epsilon, delta)
    if delta == 0:
        return [laplace]
    mu = gaussian_mu(epsilon, delta)
    model_epsilon = gaussian_epsilon(mu * math.sqrt(1 - SHARE), delta)
    # Where δ alone pays for nearly all of μ, the model would be left with next to no ε: Laplace shares ε itself.
    if model_epsilon <= epsilon / 2:
        return [laplace]
    bound_release = Gaussian(1 / (mu * math.sqrt(SHARE)))
    return [*(BoundSplit(bound_release, model_epsilon * factor, delta) for factor in SMALLER), laplace]


def first_within(ways: Iterable[Any], budget: Budget, planned: Planned) -> Any:
    """The first split that keeps to the budget with the models' releases, from public numbers, before data are touched.

    planned: (ε, δ) of all models together → (what it would release, its δ) for each. PrivacyError where both routes
    find no split that keeps to ε.
    """
    error: PrivacyError | None = None
    for way in ways:
        try:
            models = planned(way.epsilon, way.delta)
            if not all(one for one, _ in models):
                raise PrivacyError("row_bound: the method says what it releases only while it runs; give a number")
            each = {one: spent(one, d, budget.relation).epsilon for one, d in models}
            compose([*way.parts, *((one, each[one], d) for one, d in models)], budget)
        except PrivacyError as caught:
            error = caught
        else:
            return way
    raise error or PrivacyError("row_bound: no split of ε was found")


def release(X: np.ndarray, lengths: Lengths, unit: float, way: BoundSplit, how: Releasing) -> ReleasedBound:
    """U of rows X (n, d) that were divided by `unit`; with a unit the mean is over persons of their means.

    Raises PrivacyError where what was drawn is not what was planned.
    """
    if way.release is None:
        return ReleasedBound(by_rule(lengths), [])
    seen, std, ledger = noisy_mean(X[:, _places(lengths.numbers)], lengths.most, way.release, how, unit)
    return ReleasedBound(bound_of(seen, std, lengths), ledger)


def noisy_mean(
    Z: np.ndarray, m: int, planned: Gaussian | Laplace, how: Releasing, unit: float = 1.0
) -> tuple[float, float, list[dict[str, Any]]]:
    """(the mean of Σ z² ≤ m over rows z of `unit`·Z with noise, its standard deviation, the ledger): see `release`."""
    mechanisms = how.mechanisms(LABEL)
    mechanisms.plan(LABEL, planned, 1)
    value, z = centred_mean(Z, m, how.exact, unit, how.of_persons), planned.noise_multiplier
    # Centred, a row's part is within ±m/2: m under replace-one, half of that where a row comes or goes.
    n = len(Z) if how.of_persons is None else how.of_persons.number
    sensitivity = m / n / (1 if how.budget.relation is Relation.REPLACE_ONE else 2)
    if isinstance(planned, Gaussian):
        noisy = mechanisms.gaussian(value, sensitivity=sensitivity, noise_multiplier=z, label=LABEL)
    else:
        noisy = mechanisms.laplace(value, sensitivity=sensitivity, epsilon=1 / z, label=LABEL)
    # Before the bound is used: a release that is not what was planned must not reach the fit.
    if error := guarantee(mechanisms.ledger, 0, how.budget, (LABEL,)).error:
        raise PrivacyError(f"{LABEL}: {error}")
    std = sensitivity * z * (1.0 if isinstance(planned, Gaussian) else math.sqrt(2))
    return float(noisy[0]) + m / 2, std, mechanisms.ledger.summary()


def shortened(X: np.ndarray, factor: float) -> np.ndarray:
    """Rows X (n, d) times `factor`, in place; those longer than 1 then are brought to that length."""
    some = max(1, BLOCK // max(1, X.shape[1]))
    for start in range(0, len(X), some):  # a block stays in a processor's cache
        rows = X[start : start + some]
        norms = factor * np.sqrt(np.einsum("ij,ij->i", rows, rows))
        rows *= (factor / np.maximum(1.0, norms))[:, None]
    return X


def bound_of(mean: float, std: float, lengths: Lengths) -> float:
    """U of a released mean with noise of that deviation."""
    m = lengths.most
    # Shrunk towards the guess by how much of what was seen is noise: as of two normal laws.
    told = (SPREAD * m) ** 2 / ((SPREAD * m) ** 2 + std**2)
    q = min(max(told * min(max(mean, 0.0), m) + (1 - told) * GUESS * m, LEAST * m), m)
    return math.sqrt(lengths.intercept + lengths.others + q)


def centred_mean(Z: np.ndarray, m: int, exact: bool, factor: float = 1.0, of_persons: OfPersons | None = None) -> Any:
    """(1,): the mean of Σ z² - m/2 over rows z of `factor`·Z, each on the grid; a sum of integers if exact."""
    weights, bits, n, _ = of_persons or OfPersons.once(len(Z))
    top, whole = m << BITS, 0
    some = max(1, BLOCK // max(1, Z.shape[1]))
    for start in range(0, len(Z), some):
        rows = Z[start : start + some] * factor
        # fmin and fmax take the bound for a row with no number: it moves the mean no further than any other.
        lengths = np.fmin(np.fmax(np.einsum("ij,ij->i", rows, rows), 0.0), m)  # of a row with no number, too
        whole += int(weights[start : start + some] @ np.rint(lengths * 2**BITS).astype(np.int64))
    total = np.array([whole - (n << bits) * (top // 2)])
    unit = 2.0**-BITS / n
    if not exact:
        return total * unit
    return Sum(total, unit, RowSensitivity((top // 2) ** 2, top**2, top // 2), within=float(n * top)).finer(bits)


def _places(columns: np.ndarray) -> slice | np.ndarray:
    """The columns of a mask, as a slice where they stand together, which copies nothing."""
    places = np.flatnonzero(columns)
    together = len(places) and places[-1] - places[0] == len(places) - 1
    return slice(int(places[0]), int(places[-1]) + 1) if together else places
