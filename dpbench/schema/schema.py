"""The declaration: types that refuse what does not fit, and the TOML file that they are read from and written to."""

from __future__ import annotations

import datetime
import json
import math
import os
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from dpbench.errors import UserError, nearest
from dpbench.files import read_toml

DATE_PARTS = {"year": (1900, 2100), "month": (1, 12), "day": (1, 31), "weekday": (0, 6), "hour": (0, 23)}  # and ranges
Missing: TypeAlias = Literal["middle", "indicator", "drop"]
NAMED = ("bounds", "categories", "date", "drop")


class Column(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """One column: exactly one of `bounds`, `categories`, `date` and `drop`.

    bounds: (low, high) of a number; values beyond are moved to the nearest end.
    categories: the values it may have, as text; one column of 0 and 1 for each, all 0 for any other value. With
    ordered, one number from -1 (the first) to 1 (the last) instead.
    date: the parts to take of a date, of "year", "month", "day", "weekday", "hour"; years: the range of "year".
    drop: leave it out.
    missing: "middle": a missing or unreadable cell counts as the middle of the bounds, or as no category;
    "indicator": the same, and one more column says that it is missing; "drop": the row becomes a row of zeros, which
    moves no model (the number of rows stays what it is, under either relation).
    decide: what of this a draft took from the data; no private fit accepts a schema in which any is left.
    """

    bounds: tuple[float, float] | None = None
    categories: tuple[str, ...] | None = None
    ordered: bool = False
    date: tuple[str, ...] | None = None
    years: tuple[int, int] | None = None
    drop: bool = False
    missing: Missing = "middle"
    decide: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        given = [name for name in NAMED if getattr(self, name) not in (None, False)]
        if len(given) != 1:
            raise ValueError(f"give one of {', '.join(NAMED)}, got {' and '.join(given) or 'none'}")
        if self.bounds is not None:
            check_bounds(self.bounds)
        if self.categories is not None and (not self.categories or len(set(self.categories)) < len(self.categories)):
            raise ValueError("categories must be different, one at least")
        if self.ordered and (self.categories is None or len(self.categories) < 2):
            raise ValueError("ordered is for two categories or more")
        if self.date is not None and (not self.date or len(set(self.date)) < len(self.date)):
            raise ValueError(f"date must be different parts of {', '.join(DATE_PARTS)}")
        for part in self.date or ():
            if part not in DATE_PARTS:
                raise ValueError(f"date: unknown part {part!r}; {nearest(part, DATE_PARTS)}")
        if self.years is not None and (self.date is None or "year" not in self.date):
            raise ValueError('years is the range of the part "year" of a date')
        if self.years is not None:
            check_bounds(self.years)

    @property
    def parts(self) -> list[tuple[str, tuple[float, float]]]:
        """Of a date: (part, its range)."""
        ranges: dict[str, tuple[float, float]] = dict(DATE_PARTS)
        if self.years is not None:
            ranges["year"] = self.years
        return [(part, ranges[part]) for part in self.date or ()]


class Target(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """What to predict: `classes`, as text, or `bounds` of a number.

    A row whose label is missing, unreadable or none of the classes becomes a row of zeros: it moves no model, and the
    number of rows stays what it is.
    """

    name: str
    classes: tuple[str | int | float | bool, ...] | None = None
    bounds: tuple[float, float] | None = None
    decide: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.classes is None) == (self.bounds is None):
            raise ValueError("give classes or bounds, one of the two")
        if self.classes is not None and (len(self.classes) < 2 or len(set(self.classes)) < len(self.classes)):
            raise ValueError("give two classes or more, all of them different")
        if self.bounds is not None:
            check_bounds(self.bounds)


class Schema(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """Everything that is public of a table beside its number of rows.

    columns: by name, in the order of the model's features. row_bound: a public bound R on the length of a row once
    each number is in [-1, 1]; longer rows are shortened. None: √(number of groups), which no row exceeds.
    """

    target: Target
    columns: dict[str, Column]
    row_bound: float | None = None

    def __post_init__(self) -> None:
        if self.target.name in self.columns:
            raise ValueError(f"columns.{self.target.name} is the target; leave it out of the columns")
        if all(column.drop for column in self.columns.values()):
            raise ValueError("columns: every column is dropped; there is nothing to use")
        if self.row_bound is not None and not 0 < self.row_bound < math.inf:
            raise ValueError(f"row_bound must be positive and finite, got {self.row_bound:g}")

    @property
    def undecided(self) -> list[str]:
        """What a draft took from the data and nobody has decided: "columns.age: bounds", …."""
        found = [f"columns.{name}: {', '.join(one.decide)}" for name, one in self.columns.items() if one.decide]
        return found + ([f"target: {', '.join(self.target.decide)}"] if self.target.decide else [])

    def require_decided(self) -> None:
        """UserError while anything is undecided: a private fit must not use it."""
        if left := self.undecided:
            more = f" and {len(left) - 3} more" if len(left) > 3 else ""
            raise UserError(
                f"schema: {'; '.join(left[:3])}{more} came from the data; set what the meaning of the columns says "
                "and remove their decide"
            )

    def toml(self) -> str:
        """The file that `load` reads back, with a comment beside everything that is to be decided."""
        lines = ["# What is public of this table. Decide by what the columns mean, never by what is in them.", ""]
        if self.row_bound is not None:
            lines += [f"row_bound = {self.row_bound!r}", ""]
        lines += ["[target]", *_lines(self.target)]
        for name, column in self.columns.items():
            lines += ["", f"[columns.{json.dumps(name, ensure_ascii=False)}]", *_lines(column)]
        return "\n".join(lines) + "\n"


def _lines(one: Column | Target) -> list[str]:
    found = []
    for name, value in msgspec.to_builtins(one).items():
        mark = "  # decide: found in the data" if name in one.decide else ""
        found.append(f"{name} = {json.dumps(value, ensure_ascii=False)}{mark}")
    return found


def check_bounds(bounds: tuple[float, float]) -> None:
    """ValueError unless low < high, both finite."""
    low, high = bounds
    if not -math.inf < low < high < math.inf:
        raise ValueError(f"bounds must be low < high, both finite, got {low:g} and {high:g}")


def load(source: str | os.PathLike[str] | Schema) -> Schema:
    """A schema, from its TOML file if it is not one already; UserError in one line that names the key.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "s.toml"
    >>> _ = file.write_text('[target]\\nname = "y"\\nclasses = ["no", "yes"]\\n[columns.age]\\nbounds = [0, 120]\\n')
    >>> load(file).columns["age"].bounds
    (0.0, 120.0)
    """
    if isinstance(source, Schema):
        return source
    content = _texts(read_toml(source))
    columns = content.get("columns")
    for name, column in columns.items() if isinstance(columns, dict) else ():
        _converted(column, Column, f"{source}: columns.{name}")  # msgspec does not say which of the columns
    return _converted(content, Schema, f"{source}")


T = TypeVar("T")


def _converted(content: Any, kind: type[T], where: str) -> T:
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise UserError(f"{where}: {_told(error)}") from None


def _texts(content: Any) -> Any:
    """Dates as text: TOML has types of its own for them, which only categories could mean."""
    if isinstance(content, dict):
        return {name: _texts(value) for name, value in content.items()}
    if isinstance(content, list):
        return [_texts(value) for value in content]
    return content.isoformat() if isinstance(content, datetime.date | datetime.time) else content


WORDS = {"`str`": "text", "`float`": "a number", "`int`": "a whole number", "`array`": "a list",
         "`object`": "a table", "`bool`": "true or false"}  # fmt: skip


def _told(error: msgspec.ValidationError) -> str:
    """In a user's words: "columns.age: bounds must be …" instead of types and paths of a decoder."""
    text, _, path = str(error).partition(" - at `$")
    for name, word in WORDS.items():
        text = text.replace(name, word)
    where = path.rstrip("`").replace("[...]", "").strip(".")
    return f"{where}: {text[:1].lower()}{text[1:]}" if where else text
