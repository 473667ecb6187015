"""A first schema of a table, to be decided by somebody who knows what the columns mean.

Everything that it takes from the data is marked: bounds are the smallest and largest value found, categories those
found. None of it may enter a private fit before it was decided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpbench.errors import DataError, UserError, nearest
from dpbench.schema.encode import date_part, numbers, words
from dpbench.schema.schema import Column, Missing, Schema, Target

if TYPE_CHECKING:
    import pandas

CATEGORIES = 50  # more different texts in a column are a name, an identifier or free text
CLASSES = 10  # so few different whole numbers in a target are classes
READABLE = 0.95  # share of the cells that have to read as numbers, or dates, for a column to be taken for such


def draft(frame: pandas.DataFrame, target: str) -> tuple[Schema, list[str]]:
    """(schema with everything from the data marked, remarks for whoever decides).

    UserError for a target that is not there; DataError for a table that no model can be made of.
    """
    if target not in frame.columns:
        raise UserError(f"there is no column {target!r}; {nearest(target, map(str, frame.columns))}")
    remarks: list[str] = []
    columns = {str(name): _column(str(name), frame[name], remarks) for name in frame.columns if name != target}
    if not columns or all(column.drop for column in columns.values()):
        raise DataError("no column besides the target can be used")
    return Schema(target=_target(target, frame[target], remarks), columns=columns), remarks


def _column(name: str, values: Any, remarks: list[str]) -> Column:
    gaps = bool(values.isna().any())
    missing: Missing = "indicator" if gaps else "middle"
    decided = ("missing",) if gaps else ()
    if is_row_number(name, values):
        remarks.append(f"{name}: a row number; dropped")
        return Column(drop=True, decide=("drop",))
    if is_date(values):
        remarks.append(f"{name}: dates; their year and month are taken")
        first, last = _range(date_part(values, "year"))
        return Column(
            date=("year", "month"),
            years=(int(np.floor(first)), int(np.ceil(last))),
            decide=("years", *decided),
            missing=missing,
        )
    as_numbers = numbers(values)
    if _share(~np.isnan(as_numbers), values) >= READABLE:
        low, high = _range(as_numbers)
        return Column(bounds=(low, high), decide=("bounds", *decided), missing=missing)
    labels = sorted({text for text in words(values) if text is not None})
    if len(labels) > CATEGORIES:
        remarks.append(f"{name}: {len(labels):,} different texts; dropped, or group them first")
        return Column(drop=True, decide=("drop",))
    if not labels:
        remarks.append(f"{name}: empty; dropped")
        return Column(drop=True, decide=("drop",))
    return Column(categories=tuple(labels), decide=("categories", *decided), missing=missing)


def _target(name: str, values: Any, remarks: list[str]) -> Target:
    labels = {text for text in words(values) if text is not None}
    as_numbers = numbers(values)
    known = as_numbers[np.isfinite(as_numbers)]
    numeric = _share(~np.isnan(as_numbers), values) >= READABLE
    if len(labels) < 2:
        raise DataError(f"{name} has fewer than two different values; there is nothing to predict")
    if gaps := int(values.isna().sum()):
        remarks.append(f"{name}: {gaps:,} rows without it; each becomes a row of zeros, which moves no model")
    whole = bool((known == np.round(known)).all())
    if not numeric or (whole and len(labels) <= CLASSES):
        if len(labels) > CATEGORIES:
            raise DataError(f"{name} has {len(labels):,} different texts, too many for classes")
        order = sorted(labels, key=float) if numeric else sorted(labels)
        return Target(name=name, classes=tuple(order), decide=("classes",))
    low, high = _range(as_numbers)
    return Target(name=name, bounds=(low, high), decide=("bounds",))


def is_row_number(name: str, values: Any) -> bool:
    """A column without a name of its own, or 0, 1, 2, … or 1, 2, 3, … in the order of the rows."""
    found = numbers(values)
    counted = np.arange(len(found))
    return unnamed(name) or (len(found) > 2 and any(np.array_equal(found, counted + first) for first in (0, 1)))


def unnamed(name: str) -> bool:
    """What pandas calls a column whose header is empty, as that of the row numbers which `to_csv` writes."""
    return not name.strip() or name.startswith("Unnamed: ")


def is_date(values: Any) -> bool:
    """Dates, or text that reads as one (ISO 8601)."""
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(values):
        return True
    if pd.api.types.is_numeric_dtype(values):
        return False
    return _share(~np.isnan(date_part(values, "year")), values) >= READABLE


def _share(readable: np.ndarray, values: Any) -> float:
    """Of the cells that are there."""
    there = int(values.notna().sum())
    return float(readable[values.notna().to_numpy()].sum()) / there if there else 0.0


def _range(values: np.ndarray) -> tuple[float, float]:
    """(low, high) of the finite ones, apart even where all are equal."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    return (low, high) if low < high else (low - 0.5, low + 0.5)
