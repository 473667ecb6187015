"""Columns that only identify rows: row numbers and identifiers, which no model should be fitted to."""

from __future__ import annotations

import numpy as np

FEW = 20  # with fewer rows, ascending whole numbers may be anything


class RowNumbers:
    """Whether a column, whose cells come in parts, only identifies rows. Its memory does not grow with them.

    It does if it has no name of its own, as what pandas' `to_csv` writes; or if its cells are n, n + 1, n + 2, … in the
    order of the rows; or, from `FEW` rows on, if they are whole numbers that ascend throughout, or consecutive ones in
    any order, which is decided by their sum and their sum of squares.

    >>> import numpy as np
    >>> column = RowNumbers("id")
    >>> column.add(np.arange(100.0, 103.0)), column.are
    (None, True)
    """

    def __init__(self, name: str) -> None:
        self._unnamed = unnamed(name)
        self._rows = self._sum = self._squares = 0
        self._whole = self._next = self._ascends = True
        self._low, self._last, self._high = 0, 0, 0

    def add(self, values: np.ndarray) -> None:
        """values: the next cells as numbers, NaN where they are none."""
        if not len(values) or not self._whole:
            return
        self._whole = bool((np.abs(values) < 2**53).all() and (values == np.round(values)).all())
        if not self._whole:
            return
        whole = values.astype(np.int64)
        steps = np.diff(whole, prepend=whole[0] - 1 if not self._rows else self._last)
        self._next, self._ascends = self._next and bool((steps == 1).all()), self._ascends and bool((steps > 0).all())
        self._low = min(self._low, int(whole.min())) if self._rows else int(whole.min())
        self._high = max(self._high, int(whole.max())) if self._rows else int(whole.max())
        self._last = int(whole[-1])
        self._rows += len(whole)
        modular = whole.view(np.uint64)  # sums modulo 2⁶⁴, which do not overflow
        self._sum = (self._sum + int(modular.sum())) % 2**64
        self._squares = (self._squares + int((modular * modular).sum())) % 2**64

    @property
    def are(self) -> bool:
        """So far."""
        if self._unnamed or not self._whole or self._rows < 3:
            return self._unnamed
        return self._next or (self._rows >= FEW and (self._ascends or self._permuted))

    @property
    def _permuted(self) -> bool:
        """Whether all numbers from the least to the greatest are there once."""
        n, low = self._rows, self._low
        total = n * low + n * (n - 1) // 2
        squares = n * low * low + low * n * (n - 1) + (n - 1) * n * (2 * n - 1) // 6
        sums = (total % 2**64, squares % 2**64)
        return self._high - low + 1 == n and (self._sum, self._squares) == sums


def unnamed(name: str) -> bool:
    """What pandas calls a column whose header is empty, as that of the row numbers which `to_csv` writes."""
    return not name.strip() or name.startswith("Unnamed: ")
