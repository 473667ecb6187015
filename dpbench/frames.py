"""The rows and groups of a table under types, and columns that only identify rows.

The rows and the groups of a table under types: a NamedTuple has the columns that its reader takes, and their types.

Only pandas knows what a cell is, and only when it runs: each row is checked against the NamedTuple as it is read.

Columns that only identify rows: row numbers and identifiers, which no model should be fitted to.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec
import numpy as np

if TYPE_CHECKING:
    import pandas


Line = TypeVar("Line", bound=NamedTuple)


def records(frame: pandas.DataFrame, kind: type[Line]) -> list[Line]:
    """The rows of a table, each with the columns that `kind` names; a text that is missing is None.

    Raises msgspec.ValidationError where a cell has another type than `kind` says.

    >>> import pandas as pd
    >>> class Cell(NamedTuple):
    ...     problem: str
    ...     epsilon: float
    >>> records(pd.DataFrame({"epsilon": [1, 0.5], "problem": ["adult", "covertype"], "seed": [0, 0]}), Cell)
    [Cell(problem='adult', epsilon=1.0), Cell(problem='covertype', epsilon=0.5)]
    """
    columns = frame[[*kind._fields]]
    texts = columns.select_dtypes(exclude=["number", "bool"]).astype(object)
    rows = columns.assign(**texts.where(texts.notna(), None)).to_dict("split")["data"]
    return [msgspec.convert(row, kind) for row in rows]


def mappings(frame: pandas.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table as {column: cell}."""
    names = [str(name) for name in frame.columns]
    return [dict(zip(names, row, strict=True)) for row in frame.to_dict("split")["data"]]


def groups(frame: pandas.DataFrame, kind: type[Line], *, sort: bool = False) -> Iterator[tuple[Line, pandas.DataFrame]]:
    """The groups of rows that share the columns of `kind`: (these columns, the rows), as they stand or sorted."""
    import pandas as pd

    parts = list(frame.groupby([*kind._fields], sort=sort))
    keys = pd.DataFrame([key for key, _ in parts], columns=[*kind._fields])
    return zip(records(keys, kind), (part for _, part in parts), strict=True)


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
