"""Rows with fewer products: in groups of few dimensions, equal but for a few entries, and compiled loops over nonzeros.

*Groups*: rows each of which lies in a subspace of few dimensions, as one-hot columns of few categories make it. On
covertype, 10 of the 54 columns are numbers and the other 44 say which of 67 combinations of categories a row has. So
x_i = E_g v_i, where v_i (11,) has the row's numbers and a factor, and E_g (54, 11), the same for all of group g, puts
the numbers in their columns and the factor times the categories in the others. Sums over the rows become sums over
the v_i, group by group: Σ r x = Σ_g E_g Σ r v and Σ h x xᵀ = Σ_g E_g (Σ h v vᵀ) E_gᵀ. That takes a third of the time,
for gradients and Hessians of 1 to 20 replicates. The factor is what rescaling a row to the bound multiplies its
categories by; columns that are standardised too have b_j or b_j + c_j times it (`CommonEntries`). Results differ from
those of the rows as they are by rounding.

*Common entries*: x_i = s_i (b + r_i) with r_i mostly zero. Standardising one-hot columns and rescaling rows, as papers
do, leaves no zero of a mostly-zero matrix; it is still one entry b_j per column, up to a factor per row, for all rows
but those of the category. On adult 9 % of the r_ij are not 0, on covertype 21 %. Whatever s and b are,
r_i = x_i/s_i - b makes the equation true: a poor guess costs time.

*Compiled loops*, by numba (the extra `fast`) where it is installed; where it is not, NumPy does the same. Both add in
another order: results differ by rounding. Compiled once a machine, and cached beside this file.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

FEW = 128  # of them, on which it shows at less cost where nothing is usual
TRIALS = 4  # of them to start from
STEADY = 9  # columns, the most often usual ones, whose median ratio to b is the row's factor
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


BLOCK = 2048
SAMPLE = 1024  # rows by which it is seen whether it is worth a look at all
MIN_ROWS = 50_000  # rows: with fewer, a pass costs too little
FEWEST = 256  # rows a group, on average
MAX_COLUMN_SHARE = 1 / 3  # of the columns: most dimensions of a subspace
CODED = 64  # columns of categories, a bit each
MAX_UNCOMMON_SHARE = 9 / 10  # of the rows: most that differ from what is usual in a column of categories
ROUNDING = 1e-13  # relative: entries of a category are the same up to it

Pointwise = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


class Grouped:
    """The rows of a dense float64 X (n, d), group by group.

    V: (m + 1, n), the numbers of the rows and their factors. y: (n,) labels, in the same order.
    maps: (G, d, m + 1), the E_g. starts: (G + 1,), where the groups begin.
    """

    def __init__(self, V: np.ndarray, y: np.ndarray, maps: np.ndarray, starts: np.ndarray) -> None:
        self.V, self.y, self.maps, self.starts = V, y, maps, starts

    def _blocks(self, W: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
        """(group, block of V, block of y, predictions (k, b)), the last a workspace that is valid until the next."""
        models = W @ self.maps  # (G, k, m + 1)
        workspace = np.empty(len(W) * BLOCK)
        for group, first, last in zip(range(len(self.maps)), self.starts[:-1], self.starts[1:], strict=True):
            for start in range(first, last, BLOCK):
                here = slice(start, min(start + BLOCK, last))
                V, y = self.V[:, here], self.y[here]
                z = workspace[: len(W) * len(y)].reshape(len(W), len(y))
                np.matmul(models[group], V, out=z)
                yield group, V, y, z

    def sum(self, function: Pointwise, W: np.ndarray) -> np.ndarray:
        """See `Rows.sum`."""
        total = np.zeros(len(W))
        for _, _, y, z in self._blocks(W):
            total += function(z, y, z).sum(axis=1)
        return total

    def weighted_sum(self, function: Pointwise, W: np.ndarray) -> np.ndarray:
        """See `Rows.weighted_sum`."""
        sums = np.zeros((len(self.maps), len(W), len(self.V)))
        for group, V, y, z in self._blocks(W):
            sums[group] += function(z, y, z) @ V.T
        return (sums @ self.maps.swapaxes(1, 2)).sum(axis=0)

    def sum_and_weighted_sum(
        self, value: Pointwise, derivative: Pointwise, W: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """See `Rows.sum_and_weighted_sum`."""
        total, sums = np.zeros(len(W)), np.zeros((len(self.maps), len(W), len(self.V)))
        for group, V, y, z in self._blocks(W):
            total += value(z, y, np.empty_like(z)).sum(axis=1)
            sums[group] += derivative(z, y, z) @ V.T
        return total, (sums @ self.maps.swapaxes(1, 2)).sum(axis=0)

    def gram(self, function: Pointwise, W: np.ndarray) -> np.ndarray:
        """See `Rows.gram`: the products of two numbers of a row are made once for all replicates."""
        size = len(self.V)
        low, high = np.triu_indices(size)
        firsts = np.searchsorted(low, np.arange(size + 1))
        sums = np.zeros((len(self.maps), len(W), len(low)))
        workspace = np.empty((len(low), BLOCK))
        for group, V, y, z in self._blocks(W):
            products = workspace[:, : len(y)]
            for i in range(size):
                np.multiply(V[i], V[i:], out=products[firsts[i] : firsts[i + 1]])
            sums[group] += function(z, y, z) @ products.T
        total = np.zeros((len(W), W.shape[1], W.shape[1]))
        inner = np.empty((len(W), size, size))
        for E, packed in zip(self.maps, sums, strict=True):
            inner[:, low, high] = packed
            inner[:, high, low] = packed
            total += E @ inner @ E.T
        return total


def grouped(X: np.ndarray, y: np.ndarray, common: CommonEntries | None) -> Grouped | None:
    """The rows in groups; None where they are not of that kind, or too few for it to pay."""
    if common is None or len(X) < MIN_ROWS:
        return None
    # Judged on a sample, before anything of the size of all rows is made.
    sample = slice(None, None, max(1, len(X) // SAMPLE))
    rest = X[sample] * common.inverse[sample, None] - common.entry
    of_categories = (np.abs(rest) > common.slack).mean(axis=0) < MAX_UNCOMMON_SHARE
    numbers, coded = np.flatnonzero(~of_categories), np.flatnonzero(of_categories)
    if len(coded) > CODED or len(numbers) + 1 > MAX_COLUMN_SHARE * X.shape[1]:
        return None
    usually = common.entry[coded]
    inverse = common.inverse if common.entry.any() else np.zeros(len(X))
    change = np.zeros(len(coded))  # what a category adds to its column, not known before a row has it
    # Which categories a row has, a bit per column: as one 64-bit word, rows of one group are equal numbers.
    codes = np.zeros((len(X), 8), np.uint8)
    for start in range(0, len(X), BLOCK):
        here = slice(start, start + BLOCK)
        A = X[here, coded[0] : coded[-1] + 1]
        if A.shape[1] > len(coded):
            A = A[:, coded - coded[0]]
        if not common.entry.any():  # rescaling a row divided its ones by this
            largest = np.maximum(A.max(axis=1), -A.min(axis=1))
            inverse[here] = 1 / np.where(largest > 0, largest, 1.0)
        rest = A * inverse[here, None]
        rest -= usually
        if not change.all():
            largest = rest[np.abs(rest).argmax(axis=0), np.arange(len(coded))]
            new = (change == 0) & (np.abs(largest) > ROUNDING * np.abs(usually))
            change[new] = largest[new]
        within = ROUNDING * np.maximum(np.abs(usually), np.abs(change))
        has_not = np.abs(rest) <= within
        rest -= change
        has = np.abs(rest, out=rest) <= within
        # A third value in a column: it holds no category, so the rows are not of this kind.
        if not (has | has_not).all():
            return None
        packed = np.packbits(has & ~has_not, axis=1, bitorder="little")
        codes[here, : packed.shape[1]] = packed
    # Up to 64 columns of categories as one integer, which sorts quickly.
    codes = codes.view("<u8")[:, 0]
    patterns, group, counts = np.unique(codes, return_inverse=True, return_counts=True)
    # Few rows a group: the small products' overhead would outweigh the columns saved.
    if len(X) < FEWEST * len(patterns):
        return None
    order = np.argsort(group.astype(np.min_scalar_type(len(patterns))), kind="stable")
    # Rows of a group differ in their numbers and in their scale alone: these are the few dimensions of V.
    V = np.empty((len(numbers) + 1, len(X)))
    for row, column in zip(V, numbers, strict=False):
        np.take(X[:, column], order, out=row)
    np.divide(1.0, inverse[order], out=V[-1])
    maps = np.zeros((len(patterns), X.shape[1], len(V)))
    maps[:, numbers, np.arange(len(numbers))] = 1.0
    has = np.unpackbits(patterns[:, None].astype("<u8").view(np.uint8), axis=1, count=len(coded), bitorder="little")
    maps[:, coded, -1] = usually + has * change
    return Grouped(V, y[order], maps, np.concatenate([[0], np.cumsum(counts)]))


LANES = 8  # `gram` is fastest with a multiple of it: a vector of doubles


class Compiler(NamedTuple):
    """`loop`, a decorator that compiles, and `within(v, low, high)` for the loops to use."""

    loop: Callable[[Callable[..., Any]], Callable[..., Any]]
    within: Callable[[float, float, float], float]


@functools.cache
def compiler() -> Compiler | None:
    """What compiles; None without numba."""
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
    return Compiler(njit(cache=True, fastmath={"reassoc", "contract"}), within)


@functools.cache
def kernels() -> SimpleNamespace | None:
    """The functions below, compiled; None without numba."""
    tools = compiler()
    if tools is None:
        return None
    compile_loop, within = tools.loop, tools.within

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

    return SimpleNamespace(
        gram=gram,
        products=products,
        add_rows=add_rows,
        clipped_sums=clipped_sums,
        clipped_sums_of_sparse=clipped_sums_of_sparse,
        move=move,
    )
