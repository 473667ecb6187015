"""Rows in groups, each of which lies in a subspace of few dimensions, as one-hot columns of few categories make it.

On covertype, 10 of the 54 columns are numbers and the other 44 say which of 67 combinations of categories a row has.
So x_i = E_g v_i, where v_i (11,) has the row's numbers and a factor, and E_g (54, 11), the same for all of group g,
puts the numbers in their columns and the factor times the categories in the others. Sums over the rows become sums over
the v_i, group by group: Σ r x = Σ_g E_g Σ r v and Σ h x xᵀ = Σ_g E_g (Σ h v vᵀ) E_gᵀ. That takes a third of the time,
for gradients and Hessians of 1 to 20 replicates.

The factor is what rescaling a row to the bound multiplies its categories by; columns that are standardised too have b_j
or b_j + c_j times it (`usual`). Results differ from those of the rows as they are by rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from dpbench.problems.usual import Usual

BLOCK = 2048
SAMPLE = 1024  # rows by which it is seen whether it is worth a look at all
LEAST = 50_000  # rows: with fewer, a pass costs too little
FEWEST = 256  # rows a group, on average
WORTH = 1 / 3  # of the columns: most dimensions of a subspace
CODED = 64  # columns of categories, a bit each
SOME = 9 / 10  # of the rows: most that differ from what is usual in a column of categories
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


def grouped(X: np.ndarray, y: np.ndarray, usual: Usual | None) -> Grouped | None:
    """The rows in groups; None where they are not of that kind, or too few for it to pay."""
    if usual is None or len(X) < LEAST:
        return None
    sample = slice(None, None, max(1, len(X) // SAMPLE))
    rest = X[sample] * usual.inverse[sample, None] - usual.entry
    of_categories = (np.abs(rest) > usual.slack).mean(axis=0) < SOME
    numbers, coded = np.flatnonzero(~of_categories), np.flatnonzero(of_categories)
    if len(coded) > CODED or len(numbers) + 1 > WORTH * X.shape[1]:
        return None
    usually = usual.entry[coded]
    inverse = usual.inverse if usual.entry.any() else np.zeros(len(X))
    change = np.zeros(len(coded))  # what a category adds to its column, not known before a row has it
    codes = np.zeros((len(X), 8), np.uint8)
    for start in range(0, len(X), BLOCK):
        here = slice(start, start + BLOCK)
        A = X[here, coded[0] : coded[-1] + 1]
        if A.shape[1] > len(coded):
            A = A[:, coded - coded[0]]
        if not usual.entry.any():  # rescaling a row divided its ones by this
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
        if not (has | has_not).all():
            return None
        packed = np.packbits(has & ~has_not, axis=1, bitorder="little")
        codes[here, : packed.shape[1]] = packed
    codes = codes.view("<u8")[:, 0]
    found, group, counts = np.unique(codes, return_inverse=True, return_counts=True)
    if len(X) < FEWEST * len(found):
        return None
    order = np.argsort(group.astype(np.min_scalar_type(len(found))), kind="stable")
    V = np.empty((len(numbers) + 1, len(X)))
    for row, column in zip(V, numbers, strict=False):
        np.take(X[:, column], order, out=row)
    np.divide(1.0, inverse[order], out=V[-1])
    maps = np.zeros((len(found), X.shape[1], len(V)))
    maps[:, numbers, np.arange(len(numbers))] = 1.0
    has = np.unpackbits(found[:, None].astype("<u8").view(np.uint8), axis=1, count=len(coded), bitorder="little")
    maps[:, coded, -1] = usually + has * change
    return Grouped(V, y[order], maps, np.concatenate([[0], np.cumsum(counts)]))
