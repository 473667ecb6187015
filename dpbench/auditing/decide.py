"""A threshold test chosen on half of the runs and judged on the other half."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import beta as beta_law

from dpbench.auditing.claims import Claim

CANDIDATES = 400
CAUTION = 100  # thresholds are compared at the level over this: the best of many promises most by chance at the ends
DIGITS = 9  # scores that differ by rounding are one score


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


def decide(first: np.ndarray, second: np.ndarray, claim: Claim, level: float) -> Verdict:
    """Scores of runs on the two data sets, larger ones speaking for `first`: one test against the claim.

    The bound exceeds the true privacy loss with probability at most `level`: each of the two error rates is below its
    Clopper-Pearson limit with probability 1 - level/2. The threshold that promises most on the even runs is judged on
    the odd ones.
    """
    first, second = np.round(first, DIGITS), np.round(second, DIGITS)
    best = np.array([_best(first[::2], second[::2], claim, level / CAUTION)])
    alpha, beta = _limits(first[1::2], second[1::2], best, level)
    return Verdict(
        float(claim.bound(alpha, beta)[0]),
        float(claim.at(alpha)[0]),
        float((second[1::2] >= best).mean()),
        float((first[1::2] < best).mean()),
        len(first[1::2]) + len(second[1::2]),
    )


def least_runs(claim: Claim, level: float) -> int:
    """The fewest runs, half on either data set, with which a test that never errs has a bound above the claim.

    With fewer no loss however large can be noticed.
    """
    judged = 10
    while judged < 1e12:
        alpha = beta = _upper(np.zeros(1), judged, level / 2)
        if claim.bound(alpha, beta)[0] > claim.at(alpha)[0]:
            break
        judged = math.ceil(1.05 * judged)
    return 4 * judged


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
    return float(thresholds[np.argmax(_above(claim, *_limits(first, second, thresholds, level)))])


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
    return np.where(count == n, 1.0, beta_law.isf(level, count + 1, np.maximum(n - count, 1)))
