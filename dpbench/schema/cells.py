"""What a cell is: a number, a category, a part of a date. Each function looks at one cell at a time.

No row changes how another one is read, and no cell raises: an error would tell that the cell is there.
"""

from __future__ import annotations

import datetime
import math
import numbers as abstract
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbench.errors import UserError
from dpbench.schema.schema import BLANKS, Label, word

if TYPE_CHECKING:
    import pandas

BOOLEAN = {"True": ("true", "TRUE", "1", "t"), "False": ("false", "FALSE", "0", "f")}  # as databases write them
TRUTH = {"True": 1.0, "TRUE": 1.0, "true": 1.0, "False": 0.0, "FALSE": 0.0, "false": 0.0}  # what pandas reads so
INFINITE = ("inf", "infinity", "nan")  # what Python and pandas read as a number beside digits


@dataclass(frozen=True)
class Notation:
    """How a number is written as text: "$1,234.5" with the prefix "$" and thousands ",", which cells may leave out."""

    prefix: str = ""
    suffix: str = ""
    thousands: str = ""
    decimal: str = "."

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """A text that is a number, its digits with their signs apart from what stands around them."""
        digits = r"\d+"
        if self.thousands:
            digits = rf"(?:\d{{1,3}}(?:{re.escape(self.thousands)}\d{{3}})+|\d+)"
        mark = re.escape(self.decimal)
        number = rf"(?:{digits}(?:{mark}\d*)?|{mark}\d+)(?:[eE][+-]?\d+)?"
        around = [rf"(?:{re.escape(text.strip(BLANKS))})?[ \t]*" for text in (self.prefix, self.suffix)]
        return re.compile(rf"([+-]?)[ \t]*{around[0]}([+-]?{number})[ \t]*{around[1]}", re.ASCII)

    def number(self, text: str) -> float:
        """The number that a text is, NaN where it is none.

        >>> Notation(prefix="$", thousands=",").number("-$12,345.67"), Notation(decimal=",").number("1.5")
        (-12345.67, nan)
        """
        match = self.pattern.fullmatch(text)
        if match is None:
            return math.nan
        sign, digits = match.groups()
        # One sign, before the prefix or behind it: with two, as "-$-5", nobody knows what is meant.
        if sign and digits[:1] in "+-":
            return math.nan
        plain = digits.replace(self.thousands, "") if self.thousands else digits
        return float(sign + plain.replace(self.decimal, "."))


PLAIN = Notation()


def scaled(cells: np.ndarray, low: Any, high: Any) -> tuple[np.ndarray, np.ndarray]:
    """(values (n, w) moved from [low, high] to [-1, 1] and 0 where they are NaN, whether they are not)."""
    # NaN is the one cell without a value; an infinite one lies beyond the bounds, at their end.
    known = ~np.isnan(cells)
    middle, half = low / 2 + high / 2, high / 2 - low / 2  # the halves first: high - low may overflow
    with np.errstate(over="ignore", invalid="ignore"):  # of an infinite cell, or one far beyond its bounds
        units = (cells - middle) / half
    np.clip(units, -1, 1, out=units)
    units[~known] = 0.0
    return units, known


def ids(name: str, values: Any) -> np.ndarray:
    """(n,) the text of each cell that tells whose its row is, "" where there is none.

    Of text the text without blanks around it, a whole number of it without its ".0"; of whole numbers their digits. So
    one person is not taken for two; two whose ids differ in that alone are protected together. UserError for a column
    of other numbers: a gap makes floats of whole numbers, and long ones that differ would be one.
    """
    import pandas as pd

    column = pd.Series(_cells(values))
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_integer_dtype(column):
        raise UserError(f"{name}: its ids are numbers with decimal points or gaps; read them as text or whole numbers")
    return np.array([_id(cell) for cell in column.astype(object)], dtype=object)


def _id(cell: Any) -> str:
    import pandas as pd

    try:
        if cell is None or cell is pd.NA or cell != cell:
            return ""
        return re.sub(r"^(\d+)\.0*$", r"\1", (cell if isinstance(cell, str) else word(cell)).strip())
    except Exception:  # of a cell of any kind, which would say that the cell is there
        return ""


def is_time(values: Any) -> bool:
    """Whether a column's type is one of dates or of spans of time."""
    import pandas as pd

    return bool(pd.api.types.is_datetime64_any_dtype(values) or pd.api.types.is_timedelta64_dtype(values))


def numbers(values: Any, notation: Notation = PLAIN) -> np.ndarray:
    """(n,) float64: what each cell reads as, NaN where it is no number; an infinite one is a number."""
    import pandas as pd

    column = pd.Series(_cells(values))
    # A cast of dates to numbers would work, and mean nothing.
    if is_time(column):
        return np.full(len(column), np.nan)  # nanoseconds since 1970 are nobody's meaning
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_complex_dtype(column):
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return _each(column, lambda cell: number(cell, notation), math.nan)


def _each(column: Any, read: Callable[[Any], float], missing: float) -> np.ndarray:
    """(n,) float64: `read` of each cell by itself.

    A column of one type has few different cells as a rule, and each is read once. One of objects is not looked through
    for equal ones: that takes True for an earlier 1, so one row would change another.
    """
    import pandas as pd

    if column.dtype == object:
        return np.array([read(cell) for cell in column.tolist()], dtype=np.float64)
    which, different = pd.factorize(column)
    numbers = np.array([*map(read, different.tolist()), missing], dtype=np.float64)
    return numbers[which]


def number(cell: Any, notation: Notation = PLAIN) -> float:
    """A cell as a number, NaN where it is none.

    >>> number(" 1.5"), number(True), number("true"), number("1_000"), number("1e400")
    (1.5, 1.0, 1.0, nan, inf)
    """
    try:
        if isinstance(cell, bytes):
            cell = cell.decode()
        if isinstance(cell, str):
            text = cell.strip(BLANKS)
            if text in TRUTH:
                return TRUTH[text]
            if notation != PLAIN and text.lower().strip("+-") not in INFINITE:
                return notation.number(text)
            # Python reads 1_000 and the digits of other scripts as well, which pandas does not
            return float(text) if text.isascii() and "_" not in text else math.nan
        if isinstance(cell, abstract.Real | Decimal | np.bool_):
            return float(cell)
    except OverflowError:  # a whole number beyond float64
        return math.inf if cell > 0 else -math.inf
    except Exception:  # of a cell of any kind, which would say that the cell is there
        return math.nan
    return math.nan


def spellings(label: Label, labels: Sequence[Label]) -> list[str]:
    """How a cell of a label may be written as text; none is another label's.

    Whole numbers with a decimal point too, truth values as databases write them; beside a 0 a 1 is also true.

    >>> spellings("1", ["1", "2"]), spellings("True", ["True", "1"]), spellings(0, [0, 1])
    (['1', '1.0'], ['True', 'true', 'TRUE', 't'], ['0', '0.0', 'False', 'FALSE', 'false'])
    """
    text, others = word(label), {word(one) for one in labels}
    more = [f"{text}.0"] if text.removeprefix("-").isdecimal() else [*BOOLEAN.get(text, ())]
    if {"0", "1"} <= others:  # as a column of numbers takes truth values
        more += [truth for truth, value in TRUTH.items() if text == f"{value:g}"]
    return [text, *(one for one in more if one not in others)]


def codes(values: Any, labels: Sequence[Label]) -> np.ndarray:
    """(n,) places of cells in `labels`, -1 for any other cell."""
    import pandas as pd

    # Labels are compared as texts, as a csv has no types.
    places = {text: i for i, label in enumerate(labels) for text in spellings(label, labels)}
    column = pd.Series(_cells(values))
    return _each(column, lambda cell: _place(cell, places), -1).astype(np.int64)


def _cells(values: Any) -> Any:
    """A list or a mixed array as objects: NumPy and pandas would choose one type by looking at all cells."""
    if isinstance(values, list | tuple):
        return np.fromiter(values, dtype=object, count=len(values))
    if isinstance(values, np.ma.MaskedArray) and values.dtype.kind in "biu":  # one gap would make floats of all
        cells = values.data.astype(object)
        cells[np.ma.getmaskarray(values)] = None
        return cells
    return values


def _place(cell: Any, places: Mapping[str, int]) -> int:
    import pandas as pd

    try:
        return -1 if cell is None or cell is pd.NA or cell != cell else places.get(word(cell), -1)
    except Exception:  # of a cell of any kind, which would say that the cell is there
        return -1


def date_part(values: Any, part: str, order: str | None = None) -> np.ndarray:
    """(n,) float64: a part of each date, NaN where the cell is none. order: see `Column`."""
    import pandas as pd

    column = pd.Series(_cells(values))
    if pd.api.types.is_datetime64_any_dtype(column):
        return _part(column, part)
    which: Any = slice(None)
    if column.dtype != object:
        which, different = pd.factorize(column)
        column = pd.Series([*different.tolist(), None], dtype=object)
    text = pd.Series([_date(cell, order) for cell in column.tolist()], dtype=object)
    parts = _part(pd.to_datetime(text, errors="coerce", format="ISO8601", utc=True), part)
    return np.asarray(parts[which])


def _part(dates: pandas.Series, part: str) -> np.ndarray:
    values = getattr(dates.dt, {"weekday": "day_of_week"}.get(part, part))
    return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))


FINER = re.compile(r"([.,]\d{6})\d+")  # than a microsecond
MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
          "december")  # fmt: skip
MONTH = {word: str(i) for i, name in enumerate(MONTHS, 1) for word in (name, name[:3])}
PARTS = {"d": r"(?P<d>\d{1,2})", "m": r"(?P<m>\d{1,2}|[A-Za-z]{3,9})", "y": r"(?P<y>\d{4})"}
WRITTEN = {
    order: re.compile("(?:[./ -]|, )".join(PARTS[part] for part in order) + r"(?P<time>[ T].*)?", re.ASCII)
    for order in ("dmy", "mdy", "ymd")
}


def _date(cell: Any, order: str | None) -> str | None:
    """Text is a date, and what parquet and Arrow make of one; a number would be read as nanoseconds.

    To the microsecond: of one cell in nanoseconds pandas makes a column of them, which has no year before 1677 nor
    after 2262, so that 9999-12-31 would be missing in all other rows.
    """
    text = cell.isoformat() if isinstance(cell, datetime.date) else cell.strip(BLANKS) if isinstance(cell, str) else ""
    if order is not None and (match := WRITTEN[order].fullmatch(text)):
        month = MONTH.get(match["m"].lower(), match["m"])  # what is no month stays, and is no date
        text = f"{match['y']}-{month:0>2}-{match['d']:0>2}{match['time'] or ''}"
    return FINER.sub(r"\1", text) if text.isascii() and text[:1].isdigit() else None
