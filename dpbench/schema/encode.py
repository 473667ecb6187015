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
from dpbench.schema.encoding import encoding_of, target_values
from dpbench.schema.schema import BLANKS, Label, Schema, Target, word

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
    encoding = encoding_of(schema, intercept=intercept)
    return Encoded(encoding.rows(frame, fitting=not predicting), encoding.names, encoding.unit)


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
    return target_values(target, column)


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


BOOLEAN = {"True": ("true", "TRUE", "1", "t"), "False": ("false", "FALSE", "0", "f")}  # how databases write them


def spellings(label: Label, categories: Sequence[Label]) -> list[str]:
    """How a cell of a category may be written as text, here as where a database has made text of all cells.

    Whole numbers with a decimal point too, truth values as databases write them; none that is another category's.

    >>> spellings("1", ["1", "2"]), spellings("True", ["True", "1"])
    (['1', '1.0'], ['True', 'true', 'TRUE', 't'])
    """
    text, others = word(label), {word(one) for one in categories}
    more = [f"{text}.0"] if text.removeprefix("-").isdecimal() else [*BOOLEAN.get(text, ())]
    return [text, *(one for one in more if one not in others)]


def places(categories: Sequence[Label]) -> dict[str, int]:
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
        [
            f"FINER = re.compile({FINER.pattern!r})",
            f"BLANKS = {BLANKS!r}",
            *(inspect.getsource(one).rstrip() for one in functions),
        ]
    )
