"""From a table and its schema to rows of ‖x‖₂ ≤ 1: functions of one row and of public constants, nothing else.

No cell can make a run fail: what is missing, unreadable or not in the schema counts as the schema says, so that whether
a fit runs, and what it says, depends on public things alone. `inspect` tells the owner of the data what would be
replaced, before.

The length of a row: a number in [-1, 1] adds 1 at most to ‖x‖₂², and so does a group of indicator columns, of which one
at most is 1; a missing number is 0 in its own column and 1 in its indicator, so that the two together add 1 at most.
The intercept adds 1. So no row is longer than the square root of their number, by which all are divided.
"""

from __future__ import annotations

import datetime
import inspect
import math
import re
import sys
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpbench.errors import UserError, nearest
from dpbench.schema.schema import Column, Schema, Target

if TYPE_CHECKING:
    import pandas


class Lengths(NamedTuple):
    """What the length of a row is made of, before it is divided: public.

    numbers: (d,) of bool, the columns of numbers, the indicators of missing ones too. most: what these add to ‖x‖₂² at
    most. others: what the other columns add at most, 1 a group of indicators. intercept: 1 or 0.
    """

    numbers: np.ndarray
    most: int
    others: int
    intercept: int

    @property
    def unit(self) -> float:
        """√(number of groups), which no row exceeds."""
        return math.sqrt(self.most + self.others + self.intercept)


class Encoded(NamedTuple):
    """X (n, d), ‖x‖₂ ≤ 1, an intercept first if there is one; columns: d names; unit: what rows were divided by."""

    X: np.ndarray
    columns: list[str]
    unit: float


def encode(schema: Schema, frame: pandas.DataFrame, *, intercept: bool = True, predicting: bool = False) -> Encoded:
    """Rows of `frame` as numbers; UserError where its columns are not those of the schema.

    predicting: keep rows that `missing = "drop"` would set to zeros, their missing cells in the middle.
    """
    check_columns(schema, list(frame.columns))
    parts: list[np.ndarray] = [np.ones((len(frame), 1))] if intercept else []
    names = ["intercept"] if intercept else []
    dropped = np.zeros(len(frame), dtype=bool)
    for name, column in schema.columns.items():
        if column.drop:
            continue
        found, labels, known = _columns(name, column, frame[name])
        parts.append(found)
        names += labels
        if column.missing == "drop" and not predicting:
            dropped |= ~known
    X = np.hstack(parts)
    X[dropped] = 0.0
    unit = lengths_of(schema, intercept=intercept).unit if schema.row_bound is None else schema.row_bound
    X /= unit
    if schema.row_bound is not None:
        X = shortened(X)
    return Encoded(X, names, unit)


def lengths_of(schema: Schema, *, intercept: bool = True) -> Lengths:
    """What the length of a row of `encode` is made of."""
    numbers, most, others = [False] * bool(intercept), 0, 0
    for column in schema.columns.values():
        if column.drop:
            continue
        numeric = column.categories is None or column.ordered
        groups = len(column.date) if column.date is not None else 1
        width = groups if numeric else len(column.categories or ())
        numbers += [numeric] * (width + (column.missing == "indicator"))
        most, others = most + groups * numeric, others + groups * (not numeric)
    return Lengths(np.array(numbers), most, others, int(intercept))


def shortened(X: np.ndarray) -> np.ndarray:
    """Rows (n, d) longer than 1 brought to that length."""
    return np.asarray(X / np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None])


def encoded_as(schema: Schema, *, intercept: bool = True) -> Encoded:
    """What `encode` makes of a table without rows: the columns, and what rows are divided by."""
    import pandas as pd

    empty = pd.DataFrame({name: [None] for name in schema.columns}, dtype=object)
    found = encode(schema, empty, intercept=intercept)
    return found._replace(X=found.X[:0])


def encode_target(target: Target, column: Any) -> tuple[np.ndarray, np.ndarray]:
    """(values (n,), known (n,) of bool): the index of a class, or a number in [-1, 1]; 0 where it is not known.

    The rows that are not known have to be set to zero: `Target` says what that means.
    """
    if target.classes is not None:
        index: dict[Any, int] = {word(label): i for i, label in enumerate(target.classes)}
        values = np.array([index.get(word, -1) for word in words(column)], dtype=np.int64)
        return np.maximum(values, 0), values >= 0
    assert target.bounds is not None
    scaled, known = _scaled(numbers(column), target.bounds)
    return scaled, known


def check_columns(schema: Schema, names: list[Any]) -> None:
    """UserError unless every column of the schema is there, once, and every other one is the target."""
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise UserError(f"two columns are called {min(map(str, twice))}; rename one")
    for name, column in schema.columns.items():
        if name not in names and not column.drop:
            raise UserError(f"there is no column {name!r}, which the schema has; {nearest(name, map(str, names))}")
    strangers = [name for name in names if name not in schema.columns and name != schema.target.name]
    if strangers:
        shown = ", ".join(map(repr, strangers[:5])) + (" …" if len(strangers) > 5 else "")
        raise UserError(f"the schema does not have the column {shown}: give bounds, categories or date, or drop = true")


def _columns(name: str, column: Column, values: Any) -> tuple[np.ndarray, list[str], np.ndarray]:
    """The columns (n, ·) that one becomes, their names, and which cells are known."""
    if column.bounds is not None:
        if _is_time(values):  # the type of a column is public, as its name is; each cell would count as missing
            raise UserError(
                f'columns.{name}: dates have no bounds; give date = ["year", …], or make numbers of them before'
            )
        scaled, known = _scaled(numbers(values), column.bounds)
        found, labels = [scaled], [name]
    elif column.date is not None:
        found, labels = [], []
        for part, bounds in column.parts:
            scaled, known = _scaled(date_part(values, part), bounds)  # a date has all its parts or none
            found.append(scaled)
            labels.append(f"{name} ({part})")
    else:
        assert column.categories is not None
        index: dict[Any, int] = places(column.categories)
        k = len(column.categories)
        codes = np.array([index.get(word, -1) for word in words(values)], dtype=np.int64)
        known = codes >= 0
        if column.ordered:
            found = [np.where(known, 2 * codes / (k - 1) - 1, 0.0)]
            labels = [name]
        else:
            found = [(codes == i).astype(float) for i in range(k)]
            labels = [f"{name}={label}" for label in column.categories]
    if column.missing == "indicator":
        found.append((~known).astype(float))
        labels.append(f"{name} missing")
    return np.column_stack(found), labels, known


def _is_time(values: Any) -> bool:
    import pandas as pd

    return bool(pd.api.types.is_datetime64_any_dtype(values) or pd.api.types.is_timedelta64_dtype(values))


def _scaled(values: np.ndarray, bounds: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """(values from `bounds` to [-1, 1] and 0 where they are no number, whether they are one)."""
    low, high = bounds
    known = ~np.isnan(values)
    inside = np.clip(np.where(known, values, (low + high) / 2), low, high)
    middle, half = low / 2 + high / 2, high / 2 - low / 2  # the halves first: high - low may overflow
    return np.where(known, np.clip((inside - middle) / half, -1, 1), 0.0), known


def numbers(values: Any) -> np.ndarray:
    """(n,) float64: what a cell reads as, NaN where it is no number; an infinite one is a number."""
    import pandas as pd

    column = pd.Series(values)
    if pd.api.types.is_bool_dtype(column):
        column = column.astype(float)
    elif pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column):
        return np.full(len(column), np.nan)  # nanoseconds since 1970 are nobody's meaning
    if column.dtype == object:
        column = pd.Series([_plain(cell) for cell in column.tolist()], dtype=object)
    return np.asarray(pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan))


def _plain(cell: Any) -> Any:
    """A cell that pandas reads as it would alone, None for any other.

    One complex number in a column leaves what is no number in other rows unset, so that they would hold what was in
    memory before; one whole number beyond float64 is an error for all.
    """
    if isinstance(cell, int) and abs(cell) > sys.float_info.max:
        return math.inf if cell > 0 else -math.inf
    return cell if isinstance(cell, str | bytes | int | float | np.integer | np.floating | np.bool_ | Decimal) else None


def words(values: Any) -> list[str | None]:
    """(n,) cells as text, None where missing; whole numbers without a decimal point: 1.0 and "1" are one category.

    None for a cell that cannot be text, as a whole number of 5,000 digits.
    """
    import pandas as pd

    column = pd.Series(values)
    missing = column.isna().to_numpy()
    return [None if gone else _told(value) for value, gone in zip(column.tolist(), missing, strict=True)]


def _told(cell: Any) -> str | None:
    try:
        return word(cell)
    except Exception:  # of an object of any kind, which would say that the cell is there
        return None


def word(value: Any) -> str:
    """A cell as text.

    >>> word(1.0), word(True), word(" yes "), word(b"no")
    ('1', 'True', 'yes', 'no')
    """
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace").strip()
    return str(value).strip()


BOOLEAN = {"True": ("true", "TRUE", "1", "t"), "False": ("false", "FALSE", "0", "f")}  # how databases write them


def spellings(label: str, categories: Sequence[str]) -> list[str]:
    """How a cell of a category may be written as text, here as where a database has made text of all cells.

    Whole numbers with a decimal point too, truth values as databases write them; none that is another category's.

    >>> spellings("1", ["1", "2"]), spellings("True", ["True", "1"])
    (['1', '1.0'], ['True', 'true', 'TRUE', 't'])
    """
    more = [f"{label}.0"] if label.removeprefix("-").isdecimal() else [*BOOLEAN.get(label, ())]
    return [label, *(one for one in more if one not in categories)]


def places(categories: Sequence[str]) -> dict[str, int]:
    """{text: the number of its category} of all `spellings`."""
    return {spelled: i for i, label in enumerate(categories) for spelled in spellings(label, categories)}


def date_part(values: Any, part: str) -> np.ndarray:
    """(n,) float64: a part of each date, NaN where the cell is none."""
    import pandas as pd

    column = pd.Series(values)
    if not pd.api.types.is_datetime64_any_dtype(column):
        text = pd.Series([_date(cell) for cell in column.tolist()], dtype=object)
        column = pd.to_datetime(text, errors="coerce", format="ISO8601", utc=True)
    found = getattr(column.dt, {"weekday": "day_of_week"}.get(part, part))
    return np.asarray(found.to_numpy(dtype=np.float64, na_value=np.nan))


FINER = re.compile(r"([.,]\d{6})\d+")  # than a microsecond


def _date(cell: Any) -> str | None:
    """Text is a date, and what parquet and Arrow make of one; a number would be read as nanoseconds.

    To the microsecond: of one cell in nanoseconds pandas makes a column of them, which has no year before 1677 nor
    after 2262, so that 9999-12-31 would be missing in all other rows.
    """
    text = cell.isoformat() if isinstance(cell, datetime.date) else cell.strip() if isinstance(cell, str) else ""
    return FINER.sub(r"\1", text) if text.isascii() and text[:1].isdigit() else None


def reading() -> str:
    """The source of `words`, `numbers` and `date_part` with what they call, for where there is no dpbench.

    It needs datetime, math, re, sys, Decimal, Any and NumPy by these names.
    """
    functions = (word, words, _told, numbers, _plain, date_part, _date)
    return "\n\n\n".join(
        [f"FINER = re.compile({FINER.pattern!r})", *(inspect.getsource(one).rstrip() for one in functions)]
    )
