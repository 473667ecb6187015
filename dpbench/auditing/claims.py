"""What a ledger claims, as a trade-off: no test of false-positive rate α has a false-negative rate below f(α).

Releases that are all Gaussian on all rows: f of N(0, 1) against N(μ, 1), μ² = Σ 1/z² = 2ρ (Dong, Roth and Su 2022,
Corollary 3.3). Pure ε-DP ones: basic composition at δ = 0. Others: every (ε, δ) that `verify` composes the ledger to
bounds 1-f-δ by e^ε α both ways (Wasserman and Zhou 2010).

A trade-off f is refuted where, whatever the rates (α, f(α)) of the test, so few errors of both kinds are improbable.
The two counts are independent, so their p-values p, q are; by Fisher (1925), P[pq ≤ t] ≤ t(1 - ln t).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.special import bdtr, betainccinv, ndtr, ndtri

from dpbench.auditing.scores import candidates
from dpbench.privacy import ledger
from dpbench.privacy.check import mu, of_points
from dpbench.privacy.verify import spent

DELTAS = np.concatenate([[0], np.geomspace(1e-4, 0.05, 8), np.linspace(0.08, 0.9, 16)])


class GaussianClaim:
    """A trade-off f and the `unit` its tests are reported in: that of N(0, 1) against N(μ, 1)."""

    unit = "μ"

    def __init__(self, mu: float) -> None:
        self.mu = mu

    def __call__(self, alpha: np.ndarray) -> np.ndarray:
        """f(α), the smallest false-negative rate."""
        return ndtr(-ndtri(alpha) - self.mu)

    def of(self, loss: float) -> AuditClaim:
        """The trade-off of this `loss`, in the unit of this claim."""
        return GaussianClaim(loss)

    def bound(self, alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """The privacy loss that rates of at most α and β prove."""
        with np.errstate(all="ignore"):
            return -ndtri(alpha) - ndtri(beta)

    def at(self, alpha: np.ndarray) -> np.ndarray:
        """What is claimed of a test of false-positive rate α, in the same unit."""
        return np.full(np.shape(alpha), self.mu)


class PureClaim:
    """(ε, δ)-DP at one δ, by default ε-DP."""

    unit = "ε"

    def __init__(self, epsilon: float, delta: float = 0.0) -> None:
        self.epsilon, self.delta = epsilon, delta

    def __call__(self, alpha: np.ndarray) -> np.ndarray:
        return of_points(self.epsilon, self.delta, alpha)

    def of(self, loss: float) -> AuditClaim:
        return PureClaim(loss, self.delta)

    def bound(self, alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
        left = 1 - self.delta
        with np.errstate(all="ignore"):
            ratios = np.log((left - beta) / alpha), np.log((left - alpha) / beta)
        return np.fmax(np.fmax(*ratios), 0.0) if self.delta else np.maximum(*ratios)

    def at(self, alpha: np.ndarray) -> np.ndarray:
        return np.full(np.shape(alpha), self.epsilon)


class CurveClaim(GaussianClaim):
    """All of a list of (ε, δ); in the unit of the Gaussian."""

    def __init__(self, points: list[tuple[float, float]]) -> None:
        self.epsilon, self.delta = np.array([p for p in points if math.isfinite(p[0])]).T

    def __call__(self, alpha: np.ndarray) -> np.ndarray:
        return of_points(self.epsilon, self.delta, alpha)

    def at(self, alpha: np.ndarray) -> np.ndarray:
        return self.bound(alpha, self(alpha))


AuditClaim: TypeAlias = GaussianClaim | PureClaim


@lru_cache(maxsize=256)
def claim(composition: ledger.Composition, relation: ledger.Relation, delta: float) -> AuditClaim:
    """What `composition` claims under `relation`; of a run with δ = 0, its ε there."""
    # The Gaussian trade-off is exact, so it refutes more than any list of (ε, δ).
    plain = mu(tuple(entry._replace(release=_on_line(entry.release)) for entry in composition))
    if plain is not None:
        return GaussianClaim(plain)
    if delta == 0:
        return PureClaim(spent(composition, 0.0, relation).epsilon)
    return CurveClaim([(spent(composition, float(delta), relation).epsilon, float(delta)) for delta in DELTAS])


def joint(compositions: list[ledger.Composition]) -> ledger.Composition:
    """What holds for runs that release one or another of these: the most of everything any of them releases."""
    most: dict[tuple[ledger.Release, str], int] = defaultdict(int)
    for composition in compositions:
        for release, count, label in composition:
            most[release, label] = max(most[release, label], count)
    return tuple(ledger.CountedRelease(release, count, label) for (release, label), count in most.items())


def _on_line(release: ledger.Release) -> ledger.Release:
    """On the audit's neighbours, whose gradients differ by a constant, so that a linear term is a Gaussian release."""
    match release:
        case ledger.ObjectivePerturbation(z, _, _) | ledger.LogisticPerturbation(z, _):
            return ledger.Gaussian(z)
        case ledger.WithoutReplacement(n, m, one) if n == m:
            return one
    return release


EVERY = 4  # run chooses the threshold
BEST = 2  # the same, where a score is chosen as well
CANDIDATES = 400
CAUTION = 100  # thresholds are compared at the level over this: the best of many promises most by chance at the ends
DIGITS = 9  # scores that differ by rounding are one score
TAILS = np.concatenate([np.geomspace(1.0, 1e-12, 600), [0.0]])  # p-values of the one count at which both are compared


class AuditVerdict(NamedTuple):
    """The lower bound on the privacy loss that the test proves, the claim for a test like it, and the test's rates.

    unit: of the two, "μ" or "ε".
    """

    bound: float
    claim: float
    false_positives: float
    false_negatives: float
    runs: int
    unit: str

    @property
    def passed(self) -> bool:
        return not self.bound > self.claim


class ErrorRates(NamedTuple):
    """How many of how many runs on either data set were taken for the other."""

    positives: int
    of_second: int
    negatives: int
    of_first: int

    def improbable(self, trade_off: Any) -> tuple[float, float]:
        """The most probable that so few are under `trade_off`, as a p-value, and the α of it.

        Between two α of a grid no more than p at the lower and q at the upper.
        """
        # Where all runs on one data set were misjudged, no count of the other errors proves anything.
        if self.positives == self.of_second or self.negatives == self.of_first:
            return 1.0, 1.0
        alpha = _rates(self.positives, self.of_second)
        q = bdtr(self.negatives, self.of_first, np.clip(trade_off(alpha), 0.0, 1.0))
        # From above: p at the lower α of an interval and q at the upper, so no α between has more.
        joint = TAILS[:-1] * q[1:]
        most = int(np.argmax(joint))
        return fisher(float(joint[most])), float(alpha[most])


@lru_cache(maxsize=64)
def _rates(count: int, n: int) -> np.ndarray:
    """The rates at which no more than `count` of n are as probable as `TAILS`."""
    return np.asarray(betainccinv(count + 1, n - count, TAILS))


def fisher(product: float) -> float:
    """The p-value of a product of two independent ones."""
    return product * (1 - math.log(product)) if 0 < product < 1 else product


def decide(first: np.ndarray, second: np.ndarray, claim: AuditClaim, level: float, every: int = EVERY) -> AuditVerdict:
    """Scores of runs on the two data sets, larger ones speaking for `first`: one test against the claim.

    The bound exceeds the true privacy loss with probability at most `level`. The threshold that promises most on every
    fourth run (`every`) is judged on the others.
    """
    # Scores that differ by rounding alone would tell the worlds' arithmetic, not the noise.
    first, second = np.round(first, DIGITS), np.round(second, DIGITS)
    # Chosen and judged on other runs: else the best of many thresholds would refute by chance.
    best = _best(first[::every], second[::every], claim, level / CAUTION)
    one, other = (np.delete(each, np.s_[::every]) for each in (first, second))
    seen = ErrorRates(int((other >= best).sum()), len(other), int((one < best).sum()), len(one))
    # So few errors are the less probable the smaller the loss.
    low = _largest(lambda loss: seen.improbable(claim.of(loss))[0] <= level, 100.0, 1e-4)
    # First whether the claim itself is refuted: the bound is of another trade-off, at another rate.
    probable, likely = seen.improbable(claim)
    told = float(claim.at(np.array(seen.improbable(claim.of(low))[1])))  # refuted, it is below the bound there
    if probable > level and told < low:
        told = float(claim.at(np.array(likely)))
    rates = seen.positives / len(other), seen.negatives / len(one)
    return AuditVerdict(low, told, *rates, len(one) + len(other), claim.unit)


def decide_by_best(first: np.ndarray, second: np.ndarray, claim: AuditClaim, level: float) -> AuditVerdict:
    """`decide` of vectors (k, m), by that of several scores which promises most.

    Learnt on every fourth run, chosen by the other even ones, and judged on the odd ones.
    """
    tried = candidates(first, second)
    one, other = max(tried, key=lambda scores: promise(scores[0][2::4], scores[1][2::4], claim))
    return decide(one, other, claim, level, every=BEST)


def least_runs(claim: AuditClaim, level: float, every: int = EVERY) -> int:
    """The fewest runs, half on either data set, with which a test that never errs has a bound above the claim.

    With fewer no loss however large can be noticed.
    """
    judged = 10
    while judged < 1e12 and ErrorRates(0, judged, 0, judged).improbable(claim)[0] > level:
        # Steps of 5 % are near enough: whoever asks takes more runs than the least.
        judged = math.ceil(1.05 * judged)
    return runs_of(judged, every)


def reach(runs: int, delta: float, level: float, every: int = EVERY) -> float:
    """The largest ε that so many runs can refute, by a test that never errs; 0 where they can refute none."""
    return _largest(lambda epsilon: least_runs(PureClaim(epsilon, delta), level, every) <= runs, 50.0, 1e-3)


def _largest(holds: Callable[[float], bool], high: float, step: float) -> float:
    """The largest loss for which something holds that holds for all smaller ones, by halving; 0 where for none."""
    low, high = 0.0, high if holds(0.0) else 0.0
    while high - low > step:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def runs_of(judged: int, every: int = EVERY) -> int:
    """How many runs it takes, half on either data set, to judge by so many of each."""
    return 2 * math.ceil(judged * every / (every - 1))


def promise(first: np.ndarray, second: np.ndarray, claim: AuditClaim) -> float:
    """How far the best threshold is above the claim, by rates without limits: to choose by, not to judge by."""
    first, second = np.sort(first), np.sort(second)
    thresholds = np.concatenate([first, second])
    # Two added successes and failures: rates of 0 would promise an infinite loss.
    alpha = (len(second) - np.searchsorted(second, thresholds, side="left") + 2) / (len(second) + 4)
    beta = (np.searchsorted(first, thresholds, side="left") + 2) / (len(first) + 4)
    return float(np.max(_above(claim, alpha, beta)))


def _best(first: np.ndarray, second: np.ndarray, claim: AuditClaim, level: float) -> float:
    """The t that promises most for "score ≥ t means first", by upper confidence limits of both of its error rates."""
    pooled = np.unique(np.concatenate([first, second]))
    thresholds = pooled[np.linspace(0, len(pooled) - 1, min(CANDIDATES, len(pooled))).astype(int)]
    positives = len(second) - np.searchsorted(np.sort(second), thresholds, side="left")
    negatives = np.searchsorted(np.sort(first), thresholds, side="left")
    alpha, beta = _upper(positives, len(second), level / 2), _upper(negatives, len(first), level / 2)
    hopes = np.where((alpha < 1) & (beta < 1), _above(claim, alpha, beta), -np.inf)  # constant tests prove nothing
    return float(thresholds[np.argmax(hopes)])


def _above(claim: AuditClaim, alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
    return np.nan_to_num(claim.bound(alpha, beta) - claim.at(alpha), nan=-np.inf, posinf=np.inf, neginf=-1e300)


def _upper(count: Any, n: int, level: float) -> np.ndarray:
    """Clopper and Pearson (1934): the rate at which so few of n are seen with probability `level`."""
    return np.where(count == n, 1.0, betainccinv(count + 1, np.maximum(n - count, 1), level))
