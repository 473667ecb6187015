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
are as long as they may be. The statement says which: by a release, or by "a row bound by rule".
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from dpbench.algorithms.base import Algorithm, BaseSettings, Declaration
from dpbench.errors import PrivacyError, UserError
from dpbench.privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu
from dpbench.privacy.budget import Budget
from dpbench.privacy.check import guarantee, together
from dpbench.privacy.exact.sums import Moved, Sum
from dpbench.privacy.ledger import Composition, Entry, Gaussian, Laplace, Relation
from dpbench.privacy.verify import spent
from dpbench.run.bind import bind
from dpbench.run.draws import mechanisms_of
from dpbench.schema import Lengths, shortened

Way: TypeAlias = Literal["private", "rule"]
RowBound: TypeAlias = Literal["auto", "private", "rule"]
WAYS = ("auto", "private", "rule")
LABEL = "row bound"
BY_RULE = "a row bound by rule"  # what counts as public then
SHARE = 0.03  # of μ², or of ε
GUESS, SPREAD = 0.09, 0.15  # of a column's mean square before anything is released, and how far that may be off
LEAST = 0.02  # a mean square of a column is not taken to be less
BITS = 16  # a row's Σ z² is a multiple of 2⁻¹⁶
SMALLER = (1.0, 0.999, 0.998, 0.996, 0.99, 0.97)  # of the model's ε: exact calibrations compose to a per mille more


class Split(NamedTuple):
    """What the bound's release is, None by the rule, and (ε, δ) of all that comes after it."""

    release: Gaussian | Laplace | None
    epsilon: float
    delta: float

    @property
    def way(self) -> Way:
        """How the bound is found."""
        return "rule" if self.release is None else "private"

    @property
    def planned(self) -> Composition:
        """What is released for it."""
        return () if self.release is None else (Entry(self.release, 1, LABEL),)

    @property
    def parts(self) -> list[tuple[Composition, float, float]]:
        """The release as `privacy.check.together` takes it: with its own ε at δ = 0."""
        own = 1 / self.release.noise_multiplier if isinstance(self.release, Laplace) else math.inf
        return [(self.planned, own, 0.0)] if self.planned else []


class Released(NamedTuple):
    """U, and the ledger's lines on the release."""

    bound: float
    ledger: list[dict[str, Any]]


def by_rule(lengths: Lengths) -> float:
    """U without a release."""
    return max(1.0, math.sqrt(lengths.others + GUESS * (lengths.intercept + lengths.most)))


def asked(row_bound: Any, number: float | None) -> RowBound | None:
    """How a bound is to be found beside a schema's `number`; UserError for what says none, or says it twice."""
    if row_bound not in (None, *WAYS):
        raise UserError(
            f'row_bound must be "auto", "private", "rule" or None, got {row_bound!r}; a number is the schema\'s'
        )
    if number is not None and row_bound not in (None, "auto"):
        raise UserError("row_bound: the schema says it; leave it out")
    return None if number is not None else row_bound


def decided(
    how: RowBound | None,
    lengths: Lengths,
    epsilon: float,
    delta: float,
    relation: Relation,
    planned: Callable[[float, float], Sequence[tuple[Composition, float]]],
) -> Split | None:
    """What is done about a bound, from public numbers; None where rows are left as they are. planned: as of `split`.

    PrivacyError as of `split`, for "private" alone.
    """
    if how is None or (how != "rule" and not lengths.most):
        return None
    if how != "rule":
        try:
            return split(epsilon, delta, relation, planned)
        except PrivacyError:
            if how == "private":
                raise
    return Split(None, epsilon, delta)


def ways(epsilon: float, delta: float) -> list[Split]:
    """The splits that (ε, δ) may have, the best first."""
    found = []
    if delta > 0:
        mu = gaussian_mu(epsilon, delta)
        left = gaussian_epsilon(mu * math.sqrt(1 - SHARE), delta)
        if left > epsilon / 2:  # elsewhere δ pays for nearly all of μ, and a smaller one has an ε of next to nothing
            found = [Split(Gaussian(1 / (mu * math.sqrt(SHARE))), left * factor, delta) for factor in SMALLER]
    return [*found, Split(Laplace(1 / (SHARE * epsilon)), (1 - SHARE) * epsilon, delta)]


def split(
    epsilon: float,
    delta: float,
    relation: Relation,
    planned: Callable[[float, float], Sequence[tuple[Composition, float]]],
) -> Split:
    """The split of (ε, δ), from public numbers, before any data are touched.

    planned: (ε, δ) of all models together → (what it would release, its δ) for each. PrivacyError where both routes
    find no split that keeps to ε.
    """
    error: PrivacyError | None = None
    for way in ways(epsilon, delta):
        try:
            models = planned(way.epsilon, way.delta)
            if not all(one for one, _ in models):
                raise PrivacyError("row_bound: the method says what it releases only while it runs; give a number")
            each = {one: spent(one, d, relation).epsilon for one, d in models}
            together([*way.parts, *((one, each[one], d) for one, d in models)], epsilon, delta, relation)
        except PrivacyError as caught:
            error = caught
        else:
            return way
    raise error or PrivacyError("row_bound: no split of ε was found")


def plan_of(method: Algorithm, problem: Declaration, settings: BaseSettings, budget: Budget) -> Composition:
    """What a run would release, checked as a fit's plan is, without any data."""
    bound = bind(method, problem, [settings], [budget], np.zeros((1, problem.d)), ["plan"])  # type: ignore[arg-type]  # nothing is run, so what is declared is enough
    mechanisms = bound.mechanisms()
    bound.plan(mechanisms)
    return mechanisms.ledger.planned(0)


def release(
    X: np.ndarray,
    lengths: Lengths,
    unit: float,
    way: Split,
    budget: Budget,
    *,
    seed: int | None = None,
    arithmetic: str | None = None,
) -> Released:
    """U of rows X (n, d) that were divided by `unit`; budget: all of the fit's, which a release is checked against.

    seed, arithmetic: as of `dpbench.fit`; None is for the bytes, of a release without a seed. Raises
    PrivacyError where what was drawn is not what was planned.
    """
    if way.release is None:
        return Released(by_rule(lengths), [])
    Z = X[:, lengths.numbers] * unit
    seen, std, ledger = noisy_mean(Z, lengths.most, way.release, budget, seed, arithmetic)
    return Released(bound_of(seen, std, lengths), ledger)


def noisy_mean(
    Z: np.ndarray,
    m: int,
    planned: Gaussian | Laplace,
    budget: Budget,
    seed: int | None,
    arithmetic: str | None,
) -> tuple[float, float, list[dict[str, Any]]]:
    """(the mean of Σ z² ≤ m over rows Z with noise, that noise's standard deviation, the ledger): see `release`."""
    exact = arithmetic == "bytes" or (arithmetic is None and seed is None)
    kind = mechanisms_of(exact, seed)
    mechanisms = kind([secrets.token_hex(32) if seed is None else f"{LABEL}/{budget}/{seed}"], budget)
    mechanisms.plan(LABEL, planned, 1)
    value, z = centred(Z, m, exact), planned.noise_multiplier
    sensitivity = m / len(Z) / (1 if budget.relation is Relation.REPLACE_ONE else 2)
    if isinstance(planned, Gaussian):
        found = mechanisms.gaussian(value, sensitivity=sensitivity, noise_multiplier=z, label=LABEL)
    else:
        found = mechanisms.laplace(value, sensitivity=sensitivity, epsilon=1 / z, label=LABEL)
    if error := guarantee(mechanisms.ledger, 0, budget, (LABEL,)).error:
        raise PrivacyError(f"{LABEL}: {error}")
    std = sensitivity * z * (1.0 if isinstance(planned, Gaussian) else math.sqrt(2))
    return float(found[0]) + m / 2, std, mechanisms.ledger.summary()


class Bounded(NamedTuple):
    """Rows over their bound, and what it cost of all of `budget`, by `way`."""

    X: np.ndarray
    bound: float
    budget: Budget
    way: Split
    ledger: list[dict[str, Any]]


def bounded(
    X: np.ndarray,
    lengths: Lengths,
    how: RowBound | None,
    budget_of: Callable[..., Budget],
    planned: Callable[[Budget], Composition],
    of: tuple[Any, ...],
    **drawn: Any,
) -> Bounded | None:
    """Rows X (n, d) of a schema without a bound, brought to that of `how`; None where they stay as they are.

    budget_of: the budget of (ε, δ); of: those of the whole fit. planned: what a model within a budget would release.
    drawn: as of `release`.
    """
    whole = budget_of(*of)
    at = whole.epsilon, whole.delta, whole.relation
    way = decided(how, lengths, *at, lambda *left: [(planned(budget_of(*left)), left[1])])
    if way is None:
        return None
    bound, ledger = release(X, lengths, lengths.unit, way, whole, **drawn)
    return Bounded(shortened(X * (lengths.unit / bound)), bound, whole, way, ledger)


def bound_of(found: float, std: float, lengths: Lengths) -> float:
    """U of a released mean with noise of that deviation."""
    m = lengths.most
    told = (SPREAD * m) ** 2 / ((SPREAD * m) ** 2 + std**2)
    q = min(max(told * min(max(found, 0.0), m) + (1 - told) * GUESS * m, LEAST * m), m)
    return math.sqrt(lengths.intercept + lengths.others + q)


def centred(Z: np.ndarray, m: int, exact: bool) -> Any:
    """(1,): the mean of Σ z² - m/2, each on the grid: a sum of integers where the arithmetic is of those."""
    n, top = len(Z), m << BITS
    lengths = np.fmin(np.fmax((Z**2).sum(axis=1), 0.0), m)  # of a row with no number, too
    rows = np.rint(lengths * 2**BITS).astype(np.int64)
    total = np.array([int(rows.sum()) - n * (top // 2)])
    unit = 2.0**-BITS / n
    if not exact:
        return total * unit
    return Sum(total, unit, Moved((top // 2) ** 2, top**2, top // 2), within=float(n * top))
