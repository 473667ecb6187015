"""A first schema of a table, to be decided by somebody who knows what the columns mean.

Everything that it takes from the data is marked: bounds are the smallest and largest value found, categories those
found. None of it may enter a private fit before it was decided. A table may come in parts, which are not kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbench.errors import DataError, UserError, nearest
from dpbench.frames import RowNumbers
from dpbench.schema.encode import date_part, numbers, words
from dpbench.schema.schema import Column, Missing, Schema, Target

if TYPE_CHECKING:
    import pandas

CATEGORIES = 50  # more different texts in a column are a name, an identifier or free text
CLASSES = 10  # so few different whole numbers in a target are classes
READABLE = 0.95  # share of the cells that have to read as numbers, or dates, for a column to be taken for such
COUNTED = 10_000  # different texts are counted up to so many


def draft(table: pandas.DataFrame | Iterable[pandas.DataFrame], target: str) -> tuple[Schema, list[str]]:
    """(schema with everything from the data marked, remarks for whoever decides) of a table, whole or in parts.

    UserError for a target that is not there; DataError for a table that no model can be made of.
    """
    found = _looked(table)
    if target not in found:
        raise UserError(f"there is no column {target!r}; {nearest(target, found)}")
    remarks: list[str] = []
    columns = {name: _column(name, one, remarks) for name, one in found.items() if name != target}
    if not columns or all(column.drop for column in columns.values()):
        raise DataError("no column besides the target can be used")
    return Schema(target=_target(target, found[target], remarks), columns=columns), remarks


def _looked(table: pandas.DataFrame | Iterable[pandas.DataFrame]) -> dict[str, _Look]:
    found: dict[str, _Look] = {}
    for part in in_parts(table):
        if not part.columns.is_unique:
            raise UserError(f"two columns are called {part.columns[part.columns.duplicated()][0]}; rename one")
        for name in part.columns:
            found.setdefault(str(name), _Look(str(name))).add(part[name])
    return found


def in_parts(table: Any) -> Iterable[pandas.DataFrame]:
    """The parts of a table; of a whole one, itself."""
    return [table] if hasattr(table, "columns") else table


class _Look:
    """What is to be known of one column, from its parts."""

    def __init__(self, name: str) -> None:
        self.row_numbers = RowNumbers(name)
        self.there = self.gaps = 0  # cells with a value, and without
        self.as_numbers = self.as_dates = 0  # of those there, how many read so
        self.low, self.high = math.inf, -math.inf  # of finite numbers
        self.first, self.last = math.inf, -math.inf  # years
        self.whole = True  # all finite numbers are
        self.labels: set[str] = set()

    def add(self, values: Any) -> None:
        import pandas as pd

        there = values.notna().to_numpy()
        self.there, self.gaps = self.there + int(there.sum()), self.gaps + int((~there).sum())
        found = numbers(values)
        self.row_numbers.add(found)
        self.as_numbers += int((~np.isnan(found[there])).sum())
        finite = found[np.isfinite(found)]
        if len(finite):
            self.low, self.high = min(self.low, float(finite.min())), max(self.high, float(finite.max()))
            self.whole = self.whole and bool((finite == np.round(finite)).all())
        dates = pd.api.types.is_datetime64_any_dtype(values)
        if dates or not pd.api.types.is_numeric_dtype(values):
            years = date_part(values, "year")
            years = years[~np.isnan(years)]
            self.as_dates += int(there.sum()) if dates else len(years)
            if len(years):
                self.first, self.last = min(self.first, float(years.min())), max(self.last, float(years.max()))
        if len(self.labels) <= COUNTED:
            different = values.dropna().drop_duplicates().head(COUNTED + 1)
            self.labels |= {text for text in words(different) if text is not None}

    def share(self, readable: int) -> float:
        """Of the cells that are there."""
        return readable / self.there if self.there else 0.0

    @property
    def bounds(self) -> tuple[float, float]:
        """(low, high) of the finite numbers, apart even where all are equal."""
        return _apart(self.low, self.high)

    @property
    def different(self) -> str:
        """How many different texts there are."""
        return f"{len(self.labels):,}" if len(self.labels) <= COUNTED else f"more than {COUNTED:,}"


def _column(name: str, found: _Look, remarks: list[str]) -> Column:
    missing: Missing = "indicator" if found.gaps else "middle"
    decided = ("missing",) if found.gaps else ()
    if found.row_numbers.are:
        remarks.append(f"{name}: a row number or identifier; dropped")
        return Column(drop=True, decide=("drop",))
    if found.share(found.as_dates) >= READABLE:
        remarks.append(f"{name}: dates; their year and month are taken")
        first, last = _apart(found.first, found.last)
        return Column(
            date=("year", "month"),
            years=(math.floor(first), math.ceil(last)),
            decide=("years", *decided),
            missing=missing,
        )
    if found.share(found.as_numbers) >= READABLE:
        return Column(bounds=found.bounds, decide=("bounds", *decided), missing=missing)
    if len(found.labels) > CATEGORIES:
        remarks.append(f"{name}: {found.different} different texts; dropped, or group them first")
        return Column(drop=True, decide=("drop",))
    if not found.labels:
        remarks.append(f"{name}: empty; dropped")
        return Column(drop=True, decide=("drop",))
    return Column(categories=tuple(sorted(found.labels)), decide=("categories", *decided), missing=missing)


def _target(name: str, found: _Look, remarks: list[str]) -> Target:
    numeric = found.share(found.as_numbers) >= READABLE
    if len(found.labels) < 2:
        raise DataError(f"{name} has fewer than two different values; there is nothing to predict")
    if found.gaps:
        remarks.append(f"{name}: {found.gaps:,} rows without it; each becomes a row of zeros, which moves no model")
    if not numeric or (found.whole and len(found.labels) <= CLASSES):
        if len(found.labels) > CATEGORIES:
            raise DataError(f"{name} has {found.different} different texts, too many for classes")
        order = sorted(found.labels, key=float) if numeric else sorted(found.labels)
        return Target(name=name, classes=tuple(order), decide=("classes",))
    return Target(name=name, bounds=found.bounds, decide=("bounds",))


def _apart(low: float, high: float) -> tuple[float, float]:
    if low > high:  # there is no number
        return 0.0, 1.0
    return (low, high) if low < high else (low - 0.5, low + 0.5)
