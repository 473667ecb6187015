"""The declaration: types that refuse what does not fit, and the TOML file that they are read from and written to."""

from __future__ import annotations

import codecs
import datetime
import itertools
import json
import math
import os
import re
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from dpbench.errors import UserError, nearest
from dpbench.files import read_toml

DATE_PARTS = {"year": (1900, 2100), "month": (1, 12), "day": (1, 31), "weekday": (0, 6), "hour": (0, 23)}  # and ranges
Missing: TypeAlias = Literal["middle", "indicator", "drop"]
Thousands: TypeAlias = Literal["", ",", ".", " ", "'", "_"]
Label: TypeAlias = bool | int | float | str
BLANKS = "\t\n\f\r "  # cut off a text, and no others: RE2's \s, so that an ONNX graph cuts the same
OF_NUMBERS = ("prefix", "suffix", "thousands", "decimal")
MANY = 8  # so many columns that are alike, of one name but for a number, are one entry of a file
NAMED = ("bounds", "categories", "date", "drop")


class Column(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """One column: exactly one of `bounds`, `categories`, `date` and `drop`.

    bounds: (low, high) of a number; values beyond are moved to the nearest end.
    prefix, suffix, thousands, decimal: how its numbers are written as text: "$" before and "%" behind them, where there
    are any, the sign between groups of three digits, and the decimal mark.
    categories: the values it may have, text, whole numbers or truth values; one column of 0 and 1 for each, all 0 for
    any other value.
    date: the parts to take of a date, of "year", "month", "day", "weekday", "hour"; years: the range of "year"; order:
    "dmy", "mdy" or "ymd", how dates are written that are not 2020-12-31; a month may be a word, 31-Dec-2020.
    drop: leave it out.
    missing: "middle": a missing or unreadable cell counts as the middle of the bounds, or as no category;
    "indicator": the same, and one more column says that it is missing; "drop": the row becomes a row of zeros, which
    moves no model (the number of rows stays what it is, under either relation).
    decide: what of this a draft took from the data; no private fit accepts a schema in which any is left.
    """

    bounds: tuple[float, float] | None = None
    prefix: str = ""
    suffix: str = ""
    thousands: Thousands = ""
    decimal: Literal[".", ","] = "."
    categories: tuple[Label, ...] | None = None
    date: tuple[str, ...] | None = None
    years: tuple[int, int] | None = None
    order: Literal["dmy", "mdy", "ymd"] | None = None
    drop: bool = False
    missing: Missing = "middle"
    decide: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        given = [name for name in NAMED if getattr(self, name) not in (None, False)]
        if len(given) != 1:
            raise ValueError(f"give one of {', '.join(NAMED)}, got {' and '.join(given) or 'none'}")
        if self.bounds is not None:
            check_bounds(self.bounds)
        check_notation(self)
        if self.categories is not None:
            if not self.categories:
                raise ValueError("give one category at least")
            check_labels("categories", self.categories)
        if self.date is not None and (not self.date or len(set(self.date)) < len(self.date)):
            raise ValueError(f"date must be different parts of {', '.join(DATE_PARTS)}")
        for part in self.date or ():
            if part not in DATE_PARTS:
                raise ValueError(f"date: unknown part {part!r}; {nearest(part, DATE_PARTS)}")
        if self.years is not None and (self.date is None or "year" not in self.date):
            raise ValueError('years is the range of the part "year" of a date')
        if self.years is not None:
            check_bounds(self.years)
        if self.order is not None and self.date is None:
            raise ValueError("order is for dates")

    @property
    def parts(self) -> list[tuple[str, tuple[float, float]]]:
        """Of a date: (part, its range)."""
        ranges = DATE_PARTS if self.years is None else DATE_PARTS | {"year": self.years}
        return [(part, ranges[part]) for part in self.date or ()]


class Target(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """What to predict: `classes`, text, whole numbers or truth values, which predictions keep; or `bounds` of a number.

    prefix, suffix, thousands, decimal: as of a column.

    A row whose label is missing, unreadable or none of the classes becomes a row of zeros: it moves no model, and the
    number of rows stays what it is.
    """

    name: str
    classes: tuple[Label, ...] | None = None
    bounds: tuple[float, float] | None = None
    prefix: str = ""
    suffix: str = ""
    thousands: Thousands = ""
    decimal: Literal[".", ","] = "."
    decide: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_notation(self)
        if (self.classes is None) == (self.bounds is None):
            raise ValueError("give classes or bounds, one of the two")
        if self.classes is not None:
            if len(self.classes) < 2:
                raise ValueError("give two classes or more, all of them different")
            check_labels("classes", self.classes)
        if self.bounds is not None:
            check_bounds(self.bounds)


class Schema(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """Everything that is public of a table beside its number of rows.

    columns: by name, in the order of the model's features. row_bound: a public bound R on the length of a row once
    each number is in [-1, 1]; longer rows are shortened. None: √(number of groups), which no row exceeds.
    unit: the column that tells whose a row is, where one person may have several: then all rows of one person are
    protected together, and the number of persons is public instead of that of rows. Its cells are read as text; it is
    no feature, and a row in which it is empty is nobody's and moves no model. None: each row is one's own.
    separator, encoding: how a text file of the table is written: the sign between fields (None: a comma, in a .tsv a
    tab), and "utf-8", "latin-1" or another encoding that Python knows.
    """

    target: Target
    columns: dict[str, Column]
    row_bound: float | None = None
    unit: str | None = None
    separator: str | None = None
    encoding: str = "utf-8"
    decide: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if odd := [name for name in self.columns if not isinstance(name, str)]:
            raise ValueError(f"columns: the name {odd[0]!r} is no text; X.columns.astype(str) are texts")
        # A target among the columns would be predicted by itself.
        if self.target.name in self.columns:
            raise ValueError(f"columns.{self.target.name} is the target; leave it out of the columns")
        # An id is no feature, and what a model predicts tells nothing of whose a row is.
        if self.unit is not None and (not self.unit or self.unit in (*self.columns, self.target.name)):
            raise ValueError("unit must be a column beside the target and the columns, which tells whose a row is")
        if all(column.drop for column in self.columns.values()):
            raise ValueError("columns: every column is dropped; there is nothing to use")
        if self.row_bound is not None and not 0 < self.row_bound < math.inf:
            raise ValueError(f"row_bound must be positive and finite, got {self.row_bound:g}")
        if self.separator is not None and (len(self.separator) != 1 or self.separator in '"\r\n'):
            raise ValueError('separator must be one sign, as ";" or "\\t"')
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise ValueError(f'encoding: unknown {self.encoding!r}; "utf-8", "latin-1" or "utf-16" as a rule') from None

    def groups(self) -> list[tuple[str, list[str], Column]]:
        """(name or pattern, names, column), many neighbours of one name but for a number and alike in one."""
        groups: list[tuple[str, list[str], Column]] = []
        taken = set(self.columns)
        # 0 and False are equal, and not the same category: the text of a column tells them apart.
        kinds = itertools.groupby(self.columns.items(), key=lambda item: (pattern_of(item[0]), repr(item[1])))
        for (pattern, _), items in kinds:
            members = list(items)
            if len(members) < MANY:
                groups += [(name, [name], one) for name, one in members]
                continue
            while pattern in taken:  # a file has each key once, and two stars match what one does
                pattern = pattern.replace("*", "**", 1)
            taken.add(pattern)
            groups.append((pattern, [name for name, _ in members], members[0][1]))
        return groups

    @property
    def undecided(self) -> list[str]:
        """What a draft took from the data and nobody has decided: "columns.age: bounds", …."""
        undecided = [f"the file: {', '.join(self.decide)}"] if self.decide else []
        undecided += [f"columns.{name}: {', '.join(one.decide)}" for name, _, one in self.groups() if one.decide]
        return undecided + ([f"target: {', '.join(self.target.decide)}"] if self.target.decide else [])

    def require_decided(self) -> None:
        """UserError while anything is undecided: a private fit must not use it."""
        # Bounds and categories that came from the data would be a release that nobody pays for.
        if left := self.undecided:
            more = f" and {len(left) - 3} more" if len(left) > 3 else ""
            raise UserError(
                f"schema: {'; '.join(left[:3])}{more} came from the data; set what the meaning of the columns says "
                "and remove their decide"
            )

    def toml(self) -> str:
        """The file that `load` reads back, with a comment beside everything that is to be decided."""
        lines = ["# What is public of this table. Decide by what the columns mean, never by what is in them.", ""]
        if head := _lines(self, ("separator", "encoding", "row_bound", "unit", "decide")):
            lines += [*head, ""]
        lines += ["[target]", *_lines(self.target)]
        for name, names, column in self.groups():
            lines += ["", f"[columns.{json.dumps(name, ensure_ascii=False)}]"]
            lines += [f"names = {json.dumps(names, ensure_ascii=False)}"] * (len(names) > 1)
            lines += _lines(column)
        return "\n".join(lines) + "\n"


def _lines(one: Column | Target | Schema, names: tuple[str, ...] = ()) -> list[str]:
    lines = []
    for name, value in msgspec.to_builtins(one).items():
        if names and name not in names:
            continue
        mark = "  # decide: found in the data" if name in one.decide else ""
        lines.append(f"{name} = {json.dumps(value, ensure_ascii=False)}{mark}")
    return lines


def check_bounds(bounds: tuple[float, float]) -> None:
    """ValueError unless low < high, both finite."""
    low, high = bounds
    if not -math.inf < low / 2 < high / 2 < math.inf:  # the halves: of two subnormal numbers there may be no middle
        raise ValueError(f"bounds must be low < high, both finite, got {low:g} and {high:g}")


def check_notation(one: Column | Target) -> None:
    """ValueError unless the way in which numbers are written belongs to numbers, and can be read in one way."""
    for name in OF_NUMBERS:
        if getattr(one, name) not in ("", ".") and one.bounds is None:
            raise ValueError(f"{name} is for numbers, which have bounds")
    # "1,234" would have two values.
    if one.thousands == one.decimal:
        raise ValueError(f'thousands and decimal are both "{one.decimal}"; give another of the two')


def check_labels(name: str, labels: Sequence[Label]) -> None:
    """ValueError unless the labels differ as texts, as which cells may be written, and numbers are finite."""
    if odd := [label for label in labels if isinstance(label, float) and not math.isfinite(label)]:
        raise ValueError(f"{name}: {odd[0]} is none")
    texts = list(map(word, labels))
    if twice := [text for text in texts if texts.count(text) > 1]:
        raise ValueError(f"{name} must be different, two are {twice[0]}")


def word(value: Any) -> str:
    """A label or a cell as text; whole numbers without a decimal point.

    >>> word(1.0), word(True), word(" yes "), word(b"no")
    ('1', 'True', 'yes', 'no')
    """
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return (value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)).strip(BLANKS)


def pattern_of(name: str) -> str:
    """The name with a star for its last number; itself where it has none.

    >>> pattern_of("gene_12_a"), pattern_of("age")
    ('gene_*_a', 'age')
    """
    match = re.fullmatch(r"(.*\D|)\d+(\D*)", name, re.DOTALL)
    return f"{match[1]}*{match[2]}" if match else name


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
    if isinstance(columns, dict):
        content["columns"] = columns = _expanded(columns, f"{source}")
    for name, column in columns.items() if isinstance(columns, dict) else ():
        _converted(column, Column, f"{source}: columns.{name}")  # msgspec does not say which of the columns
    return _converted(content, Schema, f"{source}")


def _expanded(columns: dict[str, Any], where: str) -> dict[str, Any]:
    """The columns, an entry for each of the names of a pattern, as [columns."gene_*"]."""
    expanded: dict[str, Any] = {}
    for key, column in columns.items():
        names = [key]
        if isinstance(column, dict) and "names" in column:
            column = dict(column)
            names = column.pop("names")
            if "*" not in key:
                raise UserError(f'{where}: columns.{key}: names are for a pattern, as [columns."gene_*"]')
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise UserError(f"{where}: columns.{key}: names must be a list of text")
            # A name that does not fit its pattern is likely a slip, so it needs its own entry.
            shape = re.compile(".*".join(map(re.escape, key.split("*"))), re.DOTALL)
            if odd := [name for name in names if not shape.fullmatch(name)]:
                raise UserError(
                    f"{where}: columns.{key}: {odd[0]} is none of this pattern; give it an entry of its own"
                )
        for name in names:
            if name in expanded:
                raise UserError(f"{where}: columns.{name} has two entries; leave one out")
            expanded[name] = column
    return expanded


T = TypeVar("T")


def _converted(content: Any, kind: type[T], where: str) -> T:
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise UserError(f"{where}: {_in_users_words(error)}") from None


def _texts(content: Any) -> Any:
    """Dates as text: TOML has types of its own for them, which only categories could mean."""
    if isinstance(content, dict):
        return {name: _texts(value) for name, value in content.items()}
    if isinstance(content, list):
        return [_texts(value) for value in content]
    return content.isoformat() if isinstance(content, datetime.date | datetime.time) else content


WORDS = {"`str`": "text", "`float`": "a number", "`int`": "a whole number", "`array`": "a list",
         "`object`": "a table", "`bool`": "true or false"}  # fmt: skip


def _in_users_words(error: msgspec.ValidationError) -> str:
    """In a user's words: "columns.age: bounds must be …" instead of types and paths of a decoder."""
    text, _, path = str(error).removeprefix("Object ").partition(" - at `$")
    for name, word in WORDS.items():
        text = text.replace(name, word)
    where = path.rstrip("`").replace("[...]", "").strip(".")
    return f"{where}: {text[:1].lower()}{text[1:]}" if where else text
