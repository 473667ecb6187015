"""Rows with fewer products: equal but for a few entries, and compiled loops over nonzeros.

*Common entries*: x_i = s_i (b + r_i) with r_i mostly zero. Standardising one-hot columns and rescaling rows, as papers
do, leaves no zero of a mostly-zero matrix; it is still one entry b_j per column, up to a factor per row, for all rows
but those of the category. On adult 9 % of the r_ij are not 0, on covertype 21 %. Whatever s and b are,
r_i = x_i/s_i - b makes the equation true: a poor guess costs time.

*Compiled loops*, by numba (the extra `fast`) where it is installed; where it is not, NumPy does the same. Both add in
another order: results differ by rounding. Compiled once a machine, and cached beside this file.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

SAMPLE = 1024  # rows by which it is seen whether it is worth a look at all
FEW = 128  # of them, on which it shows at less cost where nothing is usual
TRIALS = 4  # of them to start from
STEADY = 9  # columns, the most often usual ones, whose median ratio to b is the row's factor
ROUNDING = 1e-13  # relative: entries are the same up to it
WITHIN, EXTREME = 100.0, 1e100  # of a row's own size; factors


class CommonEntries(NamedTuple):
    """inverse (n,): 1/s_i; entry (d,): b; slack (d,): r_ij up to this, in size, is rounding and counts as 0."""

    inverse: np.ndarray
    entry: np.ndarray
    slack: np.ndarray

    @classmethod
    def zeros(cls, n: int, d: int) -> CommonEntries:
        """Of rows whose usual entry is 0: r is X."""
        return cls(np.ones(n), np.zeros(d), np.zeros(d))


def find_common_entries(X: np.ndarray, share: float) -> CommonEntries | None:
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
                    return CommonEntries(_inverse(X, entry, steady), entry, slack)
    return None


def _usual_from(entry: np.ndarray, sample: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
    """(b, the columns that the factors are found on) for s = 1 in a row that is usual but for a few entries.

    least: the share of the rows that have what is usual in a column.
    """
    steady = np.flatnonzero(entry)
    for _ in range(2):  # those few are not b's
        if len(steady):
            # Each row's factor first, then what is most frequent in a column of the rows so scaled.
            ratios = sample * _inverse(sample, entry, steady)[:, None]
            ratio, often = _most_frequent(ratios)
            entry = np.where(often >= least, ratio, 0.0)
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


LANES = 8  # `gram` is fastest with a multiple of it: a vector of doubles


T = TypeVar("T")
Loop: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]  # a decorator that compiles
Within: TypeAlias = Callable[[float, float, float], float]  # for the loops to use


def compiled(make: Callable[[Loop, Within], T]) -> Callable[[], T | None]:
    """What `make` has of what compiles, made when it is first asked for; None without numba."""

    @functools.cache
    def made() -> T | None:
        try:
            from numba import njit
        except ImportError:
            return None

        @njit(cache=True, inline="always")
        def within(v: float, low: float, high: float) -> float:
            """v clipped to [low, high], by selections that become vector instructions and keep a NaN."""
            v = low if v < low else v
            return high if v > high else v

        # NaN and inf keep their meaning.
        return make(njit(cache=True, fastmath={"reassoc", "contract"}), within)

    return made


@compiled
def kernels(compile_loop: Loop, within: Within) -> SimpleNamespace:
    """The functions below, compiled; None without numba."""

    @compile_loop
    def gram(
        A: np.ndarray, inverse: np.ndarray, common: np.ndarray, slack: np.ndarray, h: np.ndarray, total: np.ndarray
    ) -> None:
        """total (e, e, K) += Σ_i h_ik r_i r_iᵀ, lower triangle, for r_i = inverse_i a_i - usual, mostly 0.

        A (b, d). Entries of r up to `slack` count as 0. e = d, or d + 1: then each r_i has a 1 behind it.
        """
        b, d = A.shape
        where, entry = np.empty(d + 1, np.int64), np.empty(d + 1)
        for i in range(b):
            m = 0
            for j in range(d):  # without a branch
                r = A[i, j] * inverse[i] - common[j]
                where[m], entry[m] = j, r
                m += not abs(r) <= slack[j]
            if len(total) > d:
                where[m], entry[m] = d, 1.0
                m += 1
            # `where` rises, so q ≤ p is the lower triangle; the replicates lie last, in line.
            for p in range(m):
                row = total[where[p]]
                for q in range(p + 1):
                    x, sums = entry[p] * entry[q], row[where[q]]
                    for k in range(h.shape[1]):
                        sums[k] += h[i, k] * x

    @compile_loop
    def products(
        data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, first: int, W: np.ndarray, z: np.ndarray
    ) -> None:
        """z[i] = x_i W for the CSR rows from `first` on: W (d, k), z (b, k)."""
        for i in range(len(z)):
            sums = z[i]
            sums[:] = 0.0
            for c in range(indptr[first + i], indptr[first + i + 1]):
                x, w = data[c], W[indices[c]]
                for k in range(len(sums)):
                    sums[k] += x * w[k]

    @compile_loop
    def add_rows(
        data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, first: int, r: np.ndarray, total: np.ndarray
    ) -> None:
        """total (d, k) += Σ_i x_iᵀ r_i over the same rows: r (b, k)."""
        for i in range(len(r)):
            residuals = r[i]
            for c in range(indptr[first + i], indptr[first + i + 1]):
                x, sums = data[c], total[indices[c]]
                for k in range(len(residuals)):
                    sums[k] += x * residuals[k]

    @compile_loop
    def clipped_sums(A: np.ndarray, r: np.ndarray, clip: np.ndarray, share: np.ndarray, total: np.ndarray) -> None:
        """total[i, j] = Σ_l clip(r_il a_jl, ±clip_i share_j): A (d, n), r (k, n), total (k, d)."""
        d, n = A.shape
        size = max(1, 32_768 // n)  # 256 kB of r stay in the second-level cache while all of A goes by
        for first in range(0, len(r), size):
            for j in range(d):
                for i in range(first, min(first + size, len(r))):
                    high = clip[i] * share[j]
                    low, s = -high, 0.0
                    for l in range(n):
                        s += within(r[i, l] * A[j, l], low, high)
                    total[i, j] = s

    @compile_loop
    def clipped_sums_of_sparse(
        data: np.ndarray,
        indices: np.ndarray,
        indptr: np.ndarray,
        r: np.ndarray,
        clip: np.ndarray,
        share: np.ndarray,
        total: np.ndarray,
    ) -> None:
        """The same for a CSC matrix; r (n, k) and total (d, k) have the replicates last, to go through them in line."""
        k = len(clip)
        for j in range(len(share)):
            sums = total[j]
            sums[:] = 0.0
            for c in range(indptr[j], indptr[j + 1]):
                x, residuals = data[c], r[indices[c]]
                for i in range(k):
                    high = clip[i] * share[j]
                    sums[i] += within(residuals[i] * x, -high, high)

    @compile_loop
    def move(z: np.ndarray, x: np.ndarray, change: np.ndarray) -> None:
        """z (k, n) += change_i x_l."""
        for i in range(len(z)):
            for l in range(z.shape[1]):
                z[i, l] += change[i] * x[l]

    loops = (gram, products, add_rows, clipped_sums, clipped_sums_of_sparse, move)
    return SimpleNamespace(**{loop.__name__: loop for loop in loops})
