"""Rows that are usual but for a few entries: x_i = s_i (b + r_i) with r_i mostly zero.

Standardising one-hot columns and rescaling rows, as papers do, leaves no zero of a mostly-zero matrix; it is still one
entry b_j per column, up to a factor per row, for all rows but those of the category. On adult 9 % of the r_ij are
not 0, on covertype 21 %. Whatever s and b are, r_i = x_i/s_i - b makes the equation true: a poor guess costs time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

SAMPLE = 1024  # rows that b is found on
FEW = 128  # of them, on which it shows at less cost where nothing is usual
TRIALS = 4  # of them to start from
STEADY = 9  # columns, the most often usual ones, whose median ratio to b is the row's factor
WITHIN, EXTREME = 100.0, 1e100  # of a row's own size; factors
ROUNDING = 1e-13  # of b_j: what a difference from it may be by rounding alone; summands below it leave no trace


class Usual(NamedTuple):
    """inverse (n,): 1/s_i; entry (d,): b; slack (d,): r_ij up to this, in size, is rounding and counts as 0."""

    inverse: np.ndarray
    entry: np.ndarray
    slack: np.ndarray

    @classmethod
    def zeros(cls, n: int, d: int) -> Usual:
        """Of rows whose usual entry is 0: r is X."""
        return cls(np.ones(n), np.zeros(d), np.zeros(d))


def usual_entries(X: np.ndarray, share: float) -> Usual | None:
    """What is usual in X (n, d); None if more than this share of the r_ij of a sample of rows is not 0."""
    sample = np.array(X[:: max(1, len(X) // SAMPLE)])
    few = sample[:: max(1, len(sample) // FEW)]
    with np.errstate(all="ignore"):  # extreme entries: what is no number is not usual
        for first in sample[:: -(-len(sample) // TRIALS)]:  # a row may have nothing usual about it
            if not len(_usual_from(first, few, 1 / 4)[1]):
                continue
            entry, steady = _usual_from(first, sample, 1 / 2)
            slack = ROUNDING * np.abs(entry)
            if len(steady):
                rest = sample * _inverse(sample, entry, steady)[:, None] - entry
                if np.count_nonzero(~(np.abs(rest) <= slack)) <= share * rest.size:
                    return Usual(_inverse(X, entry, steady), entry, slack)
    return None


def _usual_from(entry: np.ndarray, sample: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
    """(b, the columns that the factors are found on) for s = 1 in a row that is usual but for a few entries.

    least: the share of the rows that have what is usual in a column.
    """
    steady = np.flatnonzero(entry)
    for _ in range(2):  # those few are not b's
        if len(steady):
            ratios = sample * _inverse(sample, entry, steady)[:, None]
            found, often = _most_frequent(ratios)
            entry = np.where(often >= least, found, 0.0)
            order = np.argsort(np.where(entry == 0, 0.0, -often), kind="stable")
            steady = order[: min(STEADY, np.count_nonzero(entry))]
    return entry, steady


def _inverse(X: np.ndarray, entry: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """(n,) 1/s_i, s_i the median of x_ij/b_j over these columns, and 1 where that is no factor.

    |s_i b| stays near the size of the row: far above it x_i would be the difference of two large numbers.
    """
    size = np.maximum(X.max(axis=1), -X.min(axis=1)) * (WITHIN / np.abs(entry).max())
    inverse = 1 / np.clip(np.median(X[:, columns] / entry[columns], axis=1), -size, size)
    return np.where((np.abs(inverse) > 1 / EXTREME) & (np.abs(inverse) < EXTREME), inverse, 1.0)


def _most_frequent(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each column, the value that most entries have, up to rounding, and the share that have it."""
    ordered = np.sort(columns.T)  # a line for each column
    lines, places = np.arange(len(ordered)), np.arange(len(columns))
    other = ~(np.diff(ordered) <= 1e-11 * np.abs(ordered[:, 1:]))
    begins = np.maximum.accumulate(np.pad(np.where(other, places[1:], 0), ((0, 0), (1, 0))), axis=1)
    sizes = places - begins + 1
    last = sizes.argmax(axis=1)
    longest = sizes[lines, last]
    return ordered[lines, last - longest // 2], longest / len(columns)
