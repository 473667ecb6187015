"""Two routes for every number, and all of a run's privacy.

The accountings' own ε of what a run released is held against `verify`'s. Besides one (ε, δ) a run has a profile ε(δ)
and a trade-off curve (f-DP): f(α) is the least rate of false negatives of a test that distinguishes neighbours by all
that was released with a rate α of false positives (Dong, Roth and Su 2022). Gaussian releases alone: f = G_μ, exactly,
μ² = Σ 1/z². Others: by the profile, (ε, δ)-DP being f(α) ≥ max(0, 1 - δ - e^ε α, e^{-ε}(1 - δ - α)) (their
Proposition 3); a lower bound, as close as the profile's points.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpbench.errors import PrivacyError, UserError
from dpbench.privacy.accounting.gaussian import as_gaussian, squared_mu
from dpbench.privacy.accounting.tight import Tight
from dpbench.privacy.budget import Budget
from dpbench.privacy.disclosure import undeclared
from dpbench.privacy.ledger import Composition, Gaussian, LastIterate, Ledger, ObjectivePerturbation, Relation, counted
from dpbench.privacy.verify import spent

ROUNDING = 1e-6  # of two computations of one number
BELOW = 0.02  # how far the second route may be below the first's least ε: the errors of two grids
TWO_PROOFS = 0.4  # the same where both are bounds by different proofs: objective perturbation
ABOVE = 0.5  # how far it may be above: it takes Rényi bounds where its grid would be too large
OF_DELTA = 0.2  # of the budget's δ: where ε is not above δ, a share of δ is as much of ε
ABSOLUTE = 1e-4  # of the budget's ε, where both are next to nothing
EMPTY = "nothing was released: the ledger of a private run is never empty"


def at_most(spent: float, epsilon: float) -> bool:
    """Whether ε `spent` is at most the ε `asked` for, but for rounding; not so if it is no number."""
    return spent <= epsilon * (1 + ROUNDING) + 1e-9


@dataclass(frozen=True)
class Checked:
    """What a run's releases cost by both routes.

    epsilon, checked_by: of the second (`verify`). accounted: by the budget's own accounting, None where it has no
    theorem for them. error: "" or one line on why a private run has failed.
    """

    epsilon: float
    checked_by: str
    accounted: float | None
    error: str


@lru_cache(maxsize=4096)
def check(composition: Composition, budget: Budget) -> Checked:
    """Both routes' ε of `composition`, and whether they agree and are within the budget.

    A run that released nothing has failed: what it returns used the data some other way, or not at all. The second may
    not be above the budget's ε; nor below the least ε that the accountings know for these releases
    (`tight`): then one of the two is wrong; nor far above that, or above what the budget's own accounting claims.
    PrivacyError for a release that is not accounted under the budget's relation.
    """
    result = spent(composition, budget.delta, budget.relation)
    accounted, least = budget.epsilon_of(composition), Tight().epsilon_of(counted(composition), budget.delta)
    slack = ABSOLUTE * budget.epsilon + OF_DELTA * budget.delta
    error = ""
    if not composition:
        error = EMPTY
    elif not at_most(result.epsilon, budget.epsilon):
        error = f"the ledger composes to ε = {result.epsilon:.6g}, more than the {budget.epsilon:g} asked for"
    elif disagreement := _disagreement(composition, result.epsilon, least, accounted, slack):
        error = f"two computations of ε disagree: {result.epsilon:.6g} by {result.checked_by}, {disagreement}"
    return Checked(result.epsilon, result.checked_by, accounted, error)


@dataclass(frozen=True)
class Guarantee:
    """What is known of one run's privacy.

    planned: ε of all that it could have released; this is guaranteed, and `error` is about it. realised: ε of what it
    did release, which is less where it stopped early; when it stops depends on the data, so this is a diagnostic.
    checked_by, accounted, error: as of `Checked`, of what was planned.
    """

    planned: float
    realised: float
    checked_by: str
    accounted: float | None
    error: str


def guarantee(ledger: Ledger, i: int, budget: Budget, labels: Collection[str]) -> Guarantee:
    """Both routes' ε of what replicate `i` planned, and what it realised; `labels`: those its algorithm declared."""
    released = ledger.of(i)
    planned, realised = check(ledger.planned(i), budget), spent(released, budget.delta, budget.relation).epsilon
    error = planned.error if released else EMPTY
    # A run that released nothing, or under another label, has no guarantee whatever its ε is.
    error = error or undeclared(released, labels) or exact_release(ledger, i)
    if not error and (beyond := ledger.unplanned(i)):
        error = f"{', '.join(beyond)}: released more often, or at other noise, than was planned"
    return Guarantee(planned.epsilon, realised, planned.checked_by, planned.accounted, error)


def compose(runs: Sequence[tuple[Composition, float, float]], budget: Budget) -> float:
    """ε of several runs on the same rows at their budget's δ, the least that two theorems give.

    Args:
        runs: (what was released, ε, δ) of each run.
        budget: of all runs.

    Raises:
        PrivacyError: where both theorems give more than the budget's ε.
    """
    releases = tuple(entry for composition, _, _ in runs for entry in composition)
    total = spent(releases, budget.delta, budget.relation).epsilon
    # Basic composition (Dwork and Roth 2014, Theorem 3.16) can be less for few runs: each run's own ε may come of a
    # bound that the joint ledger's accountant has not. It holds at the sum of their δ, so only where that fits.
    if math.fsum(run_delta for _, _, run_delta in runs) <= budget.delta * (1 + ROUNDING):
        total = min(total, math.fsum(run_epsilon for _, run_epsilon, _ in runs))
    if not at_most(total, budget.epsilon):
        raise PrivacyError(f"{len(runs)} runs compose to ε = {total:.6g}, more than the {budget.epsilon:g} asked for")
    return total


def exact_release(ledger: Ledger, i: int) -> str:
    """One line if replicate `i` released something without noise, "" if not."""
    label = ledger.exact.get(i)
    return f"{label}: released without noise (a sensitivity of 0 hides nothing)" if label else ""


def _disagreement(
    composition: Composition, second: float, least: float | None, accounted: float | None, slack: float
) -> str:
    two_proofs = any(isinstance(entry.release, ObjectivePerturbation) for entry in composition)
    if least is not None and second < least * (1 - (TWO_PROOFS if two_proofs else BELOW)) - slack:
        return f"{least:.6g} by our own"
    for epsilon, name in ((least, "our own"), (accounted, "the accounting that set the noise")):
        if epsilon is not None and second > epsilon * (1 + ABOVE) + slack:
            return f"{epsilon:.6g} by {name}"
    return ""


Curve: TypeAlias = NDArray[np.float64]

# Where a trade-off that is not Gaussian is taken from its profile.
DELTAS = (0.0, *np.geomspace(1e-10, 1e-3, 15), *np.geomspace(2e-3, 0.1, 18), *np.linspace(0.12, 0.95, 28))


def profile(composition: Composition, relation: Relation, deltas: Sequence[float] | Curve) -> Curve:
    """ε at each of `deltas`, in [0, 1), by the independent accountant (`verify`); infinite where there is none."""
    points = [float(delta) for delta in deltas]
    for delta in points:
        if not 0 <= delta < 1:
            raise UserError(f"deltas: each must be in [0, 1), got {delta:g}")
    curve = np.array([spent(composition, delta, relation).epsilon for delta in points])
    # A larger δ never costs more; accountants with an error of their own may say so.
    order = np.argsort(points)
    curve[order] = np.minimum.accumulate(curve[order])
    return curve


def mu(composition: Composition) -> float | None:
    """μ where everything in `composition` is Gaussian on all rows, None where it is not."""
    parts = tuple((as_gaussian(r) if isinstance(r, LastIterate) else r, count) for r, count, _ in composition)
    gaussian = parts and all(isinstance(release, Gaussian) for release, _ in parts)
    return math.sqrt(squared_mu(parts)) if gaussian else None


def trade_off(composition: Composition, relation: Relation, alphas: Sequence[float] | Curve) -> Curve:
    """f(α) at each of `alphas`, in [0, 1]: see the module."""
    from scipy.stats import norm

    levels = np.asarray(alphas, dtype=float)
    if not ((levels >= 0) & (levels <= 1)).all():
        raise UserError("alphas: each must be in [0, 1]")
    if (gaussian := mu(composition)) is not None:
        return np.asarray(norm.cdf(norm.isf(levels) - gaussian))
    deltas = np.array(DELTAS)
    epsilons = profile(composition, relation, deltas)
    known = np.isfinite(epsilons) & (epsilons < 700)
    return of_points(epsilons[known], deltas[known], levels)


def of_points(epsilon: float | Curve, delta: float | Curve, alpha: Curve) -> Curve:
    """f(α) of all that the pairs (ε, δ) say together, one pair or several."""
    alpha = np.asarray(alpha)[..., None]
    lines = np.maximum(1 - delta - np.exp(epsilon) * alpha, np.exp(np.negative(epsilon)) * (1 - delta - alpha))
    return np.asarray(np.maximum(0.0, lines).max(axis=-1, initial=0.0))
