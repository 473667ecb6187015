"""A threshold test chosen on some of the runs and judged on the others.

A trade-off f is refuted where, whatever the rates (α, f(α)) of the test, so few errors of both kinds are improbable.
The two counts are independent, so their p-values p, q are; by Fisher (1925), P[pq ≤ t] ≤ t(1 - ln t). Two limits that
hold together would each need half of the level, and half as many runs again.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import bdtr, betainccinv

from dpbench.auditing.claims import Claim, PureClaim

EVERY = 4  # run chooses the threshold
CANDIDATES = 400
CAUTION = 100  # thresholds are compared at the level over this: the best of many promises most by chance at the ends
DIGITS = 9  # scores that differ by rounding are one score
TAILS = np.concatenate([np.geomspace(1.0, 1e-12, 600), [0.0]])  # p-values of the one count at which both are compared
LOSSES = 0.0, 100.0  # between which a bound is looked for


class Verdict(NamedTuple):
    """The lower bound on the privacy loss that the test proves, the claim for a test like it, and the test's rates."""

    bound: float
    claim: float
    false_positives: float
    false_negatives: float
    runs: int

    @property
    def passed(self) -> bool:
        return not self.bound > self.claim


class Errors(NamedTuple):
    """How many of how many runs on either data set were taken for the other."""

    positives: int
    of_second: int
    negatives: int
    of_first: int

    def improbable(self, trade_off: Any) -> tuple[float, float]:
        """The most probable that so few are under `trade_off`, as a p-value, and the α of it.

        Between two α of a grid no more than p at the lower and q at the upper.
        """
        if self.positives == self.of_second or self.negatives == self.of_first:
            return 1.0, 1.0
        alpha = _rates(self.positives, self.of_second)
        q = bdtr(self.negatives, self.of_first, np.clip(trade_off(alpha), 0.0, 1.0))
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


def decide(first: np.ndarray, second: np.ndarray, claim: Claim, level: float, every: int = EVERY) -> Verdict:
    """Scores of runs on the two data sets, larger ones speaking for `first`: one test against the claim.

    The bound exceeds the true privacy loss with probability at most `level`. The threshold that promises most on every
    fourth run (`every`) is judged on the others.
    """
    first, second = np.round(first, DIGITS), np.round(second, DIGITS)
    best = _best(first[::every], second[::every], claim, level / CAUTION)
    one, other = (np.delete(each, np.s_[::every]) for each in (first, second))
    seen = Errors(int((other >= best).sum()), len(other), int((one < best).sum()), len(one))
    low, high = LOSSES
    if seen.improbable(claim.of(low))[0] > level:
        high = low
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (middle, high) if seen.improbable(claim.of(middle))[0] <= level else (low, middle)
    probable, likely = seen.improbable(claim)
    told = float(claim.at(np.array(seen.improbable(claim.of(low))[1])))  # refuted, it is below the bound there
    if probable > level and told < low:
        told = float(claim.at(np.array(likely)))
    return Verdict(low, told, seen.positives / len(other), seen.negatives / len(one), len(one) + len(other))


def least_runs(claim: Claim, level: float, every: int = EVERY) -> int:
    """The fewest runs, half on either data set, with which a test that never errs has a bound above the claim.

    With fewer no loss however large can be noticed.
    """
    judged = 10
    while judged < 1e12 and Errors(0, judged, 0, judged).improbable(claim)[0] > level:
        judged = math.ceil(1.05 * judged)
    return runs_of(judged, every)


def reach(runs: int, delta: float, level: float, every: int = EVERY) -> float:
    """The largest ε that so many runs can refute, by a test that never errs; 0 where they can refute none."""
    low, high = 0.0, 50.0
    if least_runs(PureClaim(low, delta), level, every) > runs:
        return 0.0
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (middle, high) if least_runs(PureClaim(middle, delta), level, every) <= runs else (low, middle)
    return low


def runs_of(judged: int, every: int = EVERY) -> int:
    """How many runs it takes, half on either data set, to judge by so many of each."""
    return 2 * math.ceil(judged * every / (every - 1))


def promise(first: np.ndarray, second: np.ndarray, claim: Claim) -> float:
    """How far the best threshold is above the claim, by rates without limits: to choose by, not to judge by."""
    first, second = np.sort(first), np.sort(second)
    thresholds = np.concatenate([first, second])
    alpha = (len(second) - np.searchsorted(second, thresholds, side="left") + 2) / (len(second) + 4)
    beta = (np.searchsorted(first, thresholds, side="left") + 2) / (len(first) + 4)
    return float(np.max(_above(claim, alpha, beta)))


def _best(first: np.ndarray, second: np.ndarray, claim: Claim, level: float) -> float:
    pooled = np.unique(np.concatenate([first, second]))
    thresholds = pooled[np.linspace(0, len(pooled) - 1, min(CANDIDATES, len(pooled))).astype(int)]
    alpha, beta = _limits(first, second, thresholds, level)
    hopes = np.where((alpha < 1) & (beta < 1), _above(claim, alpha, beta), -np.inf)  # constant tests prove nothing
    return float(thresholds[np.argmax(hopes)])


def _above(claim: Claim, alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
    return np.nan_to_num(claim.bound(alpha, beta) - claim.at(alpha), nan=-np.inf, posinf=np.inf, neginf=-1e300)


def _limits(
    first: np.ndarray, second: np.ndarray, thresholds: np.ndarray, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Upper confidence limits of both error rates of "score ≥ threshold means first"."""
    positives = len(second) - np.searchsorted(np.sort(second), thresholds, side="left")
    negatives = np.searchsorted(np.sort(first), thresholds, side="left")
    return _upper(positives, len(second), level / 2), _upper(negatives, len(first), level / 2)


def _upper(count: Any, n: int, level: float) -> np.ndarray:
    """Clopper and Pearson (1934): the rate at which so few of n are seen with probability `level`."""
    return np.where(count == n, 1.0, betainccinv(count + 1, np.maximum(n - count, 1), level))
