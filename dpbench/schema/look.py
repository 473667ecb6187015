"""A first look at a table: the draft of a schema, and what a schema changes in the table.

Both are for the owner of the data. A draft marks everything that it took from the data, and none of it may enter a
private fit before it was decided. The counts of `inspect` are exact, so they must not leave with the model. A table may
come in parts, which are not kept.
"""

from __future__ import annotations

import csv
import hashlib
import math
import os
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from dpbench.errors import DataError, UserError, nearest
from dpbench.files import replacing
from dpbench.frames import RowNumbers
from dpbench.schema.cells import PLAIN, TRUTH, WRITTEN, Notation, codes, date_part, ids, numbers
from dpbench.schema.encoding import check_columns, encoding_of, notation_of
from dpbench.schema.schema import (
    BLANKS,
    MANY,
    OF_NUMBERS,
    Column,
    Label,
    Missing,
    Schema,
    Target,
    load,
    pattern_of,
    word,
)
from dpbench.schema.tables import Dialect, default_separator, kind_of, one_message, opened_text, parts

if TYPE_CHECKING:
    import pandas

CATEGORIES = 50  # more different texts in a column are a name, an identifier or free text
CLASSES = 10  # so few different whole numbers in a target are classes
READABLE = 0.95  # share of the cells that have to read as numbers, or dates, for a column to be taken for such
COUNTED = 10_000  # different texts are counted up to so many
EXACT = 2**53  # whole numbers from here on are codes: a model in float64 could not tell neighbours
LINES, SAMPLE = 100, 1 << 20  # lines, and signs, that a separator is found by
SIGNS = (",", ";", "\t", "|")
MARKS = [("", "."), (",", "."), ("", ","), (".", ","), (" ", ","), (" ", "."), ("'", ".")]  # of thousands and decimals
OF_PERSONS = (
    'if it says which person a row is of, and persons have several rows, take its entry out and put unit = "{}" at the '
    "top, so that ε protects all rows of a person"
)
AROUND = re.compile(r"([^\w\s.,+-]|USD|EUR|GBP|CHF)?\s*[+-]?[\d.,](?:[\d.,' eE+-]*[\d.,])?\s*([^\d.,]{0,16})")


def draft(
    table: pandas.DataFrame | Iterable[pandas.DataFrame], target: str, dialect: Dialect | None = None
) -> tuple[Schema, list[str]]:
    """(schema with everything from the data marked, remarks for whoever decides) of a table, whole or in parts.

    dialect: how the file is written that it comes from, where that is not as its name says.

    Raises:
        UserError: a target that is not there. DataError: a table that no model can be made of.
    """
    looks = _looks(table)
    if target not in looks:
        raise UserError(f"target: there is no column {target!r}; {nearest(target, looks)}")
    remarks: list[str] = []
    columns: dict[str, Column] = {}
    same: dict[bytes, str] = {}  # as an earlier column
    for name, look in looks.items():
        # Of equal columns one is enough: a second adds to the rows' length, and so to the noise.
        twin = same.setdefault(look.digest, name)
        if name != target:
            own = twin in (name, target)
            columns[name] = _column(name, look, remarks) if own else _dropped(f"{name}: the same as {twin}", remarks)
    if not columns or all(column.drop for column in columns.values()):
        raise DataError("no column besides the target can be used")
    written = {} if dialect is None else {"separator": dialect.separator, "encoding": dialect.encoding}
    written = {name: value for name, value in written.items() if value not in (None, "utf-8")}
    drafted = Schema(target=_target(target, looks[target], remarks), columns=_together(columns, remarks))
    return msgspec.structs.replace(drafted, **written, decide=tuple(written)), remarks


def draft_schema(
    data: str | os.PathLike[str], target: str, *, out: str | os.PathLike[str] | None = None
) -> tuple[Schema, list[str]]:
    """A first schema of a csv, tsv or parquet file, and remarks for whoever decides: see `draft`.

    Args:
        data: the file, compressed or not; a large one is read in parts.
        target: the column to predict.
        out: a file that is not there yet, to write the schema to; None writes none.

    Returns:
        The schema, in which everything that was taken from the data is marked, and one line for each remark.

    Raises:
        UserError, DataError: one line on a file or column that does not fit.
    """
    if out is not None and Path(out).exists():
        raise UserError(f"out: {out} is there already; remove it or give another name")
    drafted, remarks = draft(parts(data, dialect := dialect_of(data)), target, dialect)
    if out is not None:
        # Half a schema would pass for a whole one.
        with replacing(Path(out)) as staged:
            os.chmod(staged, 0o600)  # it tells of the data until it is decided
            staged.write_text(drafted.toml(), encoding="utf-8")
    return drafted, remarks


def dialect_of(source: str | os.PathLike[str]) -> Dialect | None:
    """How a text file is written: its separator, where that is not as its name says, and its encoding. None of parquet.

    The separator is the one that cuts all of the first lines into the same number (> 1) of fields, the most of them.
    """
    if kind_of(source) == "parquet":
        return None
    with one_message(source := Path(source)):
        return _dialect(source)


def _dialect(source: Path) -> Dialect:
    with opened_text(source, "latin-1") as (text, _):
        start = text.read(2)
    encodings = ["utf-16"] if start in ("\xff\xfe", "\xfe\xff") else ["utf-8", "latin-1"]
    encoding = next(one for one in encodings if one != "utf-8" or _decodes(source, one))
    with opened_text(source, encoding) as (text, _):
        lines = [line for line in text.read(SAMPLE).splitlines() if line.strip()][:LINES]
    best, most = (usual := default_separator(source)), 1
    for sign in dict.fromkeys([usual, *SIGNS]):
        widths = {len(row) for row in csv.reader(lines, delimiter=sign)}
        if len(widths) == 1 and (width := widths.pop()) > most:
            best, most = sign, width
    return Dialect(None if best == usual else best, encoding)


def _decodes(source: Path, encoding: str) -> bool:
    with opened_text(source, encoding, "strict") as (text, _):
        try:
            while text.read(SAMPLE):
                pass
        except UnicodeDecodeError:
            return False
    return True


def _looks(table: pandas.DataFrame | Iterable[pandas.DataFrame]) -> dict[str, _Look]:
    looks: dict[str, _Look] = {}
    for part in in_parts(table):
        if not part.columns.is_unique:
            raise UserError(f"two columns are called {part.columns[part.columns.duplicated()][0]}; rename one")
        for name in part.columns:
            looks.setdefault(str(name), _Look(str(name))).add(part[name])
    return looks


def in_parts(table: Any) -> Iterable[pandas.DataFrame]:
    """The parts of a table; of a whole one, itself."""
    if isinstance(table, str | os.PathLike):
        raise UserError("table must be a DataFrame; dpbench.draft_schema and check_data take the name of a file")
    return [table] if hasattr(table, "columns") else table


class _Look:
    """What is to be known of one column, from its parts."""

    def __init__(self, name: str) -> None:
        self.row_numbers, self._hash = RowNumbers(name), hashlib.blake2b(digest_size=16)
        self.there = self.gaps = 0  # cells with a value, and without
        self.as_numbers = self.as_dates = 0  # of those there, how many read so
        self.low, self.high = math.inf, -math.inf  # of finite numbers
        self.first, self.last = math.inf, -math.inf  # years
        self.whole = True  # all finite numbers are
        self.labels: set[str] = set()
        self.notation: Notation | None = None  # decided by the first part that has cells
        self.order: str | None = None
        self.nested = False

    def add(self, values: pandas.Series) -> None:
        """values: the next cells, text or typed."""
        import pandas as pd

        typed = pd.api.types.is_numeric_dtype(values) or pd.api.types.is_datetime64_any_dtype(values)
        if values.dtype == object:
            kinds = set(map(type, values))
            self.nested = self.nested or bool(kinds & {list, dict, tuple, set, np.ndarray})
            values = values.map(_as_text) if kinds - {str} else values
        there = values.notna().to_numpy()
        self.there, self.gaps = self.there + int(there.sum()), self.gaps + int((~there).sum())
        # Columns are compared by their hash: a second copy of one is found without keeping cells.
        self._hash.update(pd.util.hash_pandas_object(values, index=False).to_numpy().tobytes())
        different = values[there].drop_duplicates()
        # The first part decides: a notation that changed on the way would read one column in two ways.
        if self.notation is None and len(different):
            texts = [] if typed else [word(cell) for cell in different.head(COUNTED).tolist()]
            self.notation, self.order = _notation(texts), _order(texts)
        # Beyond that it is no column of categories, and its texts need not be kept.
        if len(self.labels) <= COUNTED:
            self.labels |= {word(cell) for cell in different.head(COUNTED + 1).tolist()}
        cells = numbers(values, self.notation or PLAIN)
        self.row_numbers.add(cells)
        self.as_numbers += int((~np.isnan(cells[there])).sum())
        finite = cells[np.isfinite(cells)]
        if len(finite):
            self.low, self.high = min(self.low, float(finite.min())), max(self.high, float(finite.max()))
            self.whole = self.whole and bool((finite == np.round(finite)).all())
        if pd.api.types.is_datetime64_any_dtype(values) or not typed:
            years = date_part(values, "year", self.order)
            years = years[~np.isnan(years)]
            self.as_dates += len(years)
            if len(years):
                self.first, self.last = min(self.first, float(years.min())), max(self.last, float(years.max()))

    @property
    def digest(self) -> bytes:
        """Of all cells in their order."""
        return self._hash.digest()

    def are(self, readable: int) -> bool:
        """Whether so many cells make the column one of this kind."""
        return bool(self.there) and readable / self.there >= READABLE

    @property
    def truth(self) -> bool:
        """Whether its cells are true and false, however they are written."""
        return bool(self.labels) and self.labels <= set(TRUTH)

    @property
    def code(self) -> bool:
        """Whether its numbers are codes: with zeros in front, or too long for a number."""
        numeric = self.whole and self.low <= self.high
        # 007 is a name: as a number it would lose what distinguishes it.
        zeros = any(re.fullmatch(r"0\d+", text) for text in self.labels)
        return numeric and (zeros or max(abs(self.low), abs(self.high)) >= EXACT)

    @property
    def bounds(self) -> tuple[float, float]:
        """(low, high) of the finite numbers, apart even where all are equal."""
        if self.low > self.high:  # there is no number
            return 0.0, 1.0
        return (self.low, self.high) if self.low / 2 < self.high / 2 else (self.low - 0.5, self.low + 0.5)

    @property
    def different(self) -> str:
        """How many different texts there are."""
        return f"{len(self.labels):,}" if len(self.labels) <= COUNTED else f"more than {COUNTED:,}"

    @property
    def written(self) -> dict[str, Any]:
        """What of the notation is not the usual one."""
        notation = self.notation or PLAIN
        return {name: getattr(notation, name) for name in OF_NUMBERS if getattr(notation, name) != getattr(PLAIN, name)}


def _as_text(cell: Any) -> Any:
    """An object of any kind, as text; what is missing as it is."""
    return cell if isinstance(cell, str) or cell is None or cell != cell else str(cell)


def _notation(texts: list[str]) -> Notation:
    """The notation that most of the texts are numbers in; of those as good, the first of `MARKS`."""
    if not texts or sum(not math.isnan(one) for one in numbers(texts)) >= READABLE * len(texts):
        return PLAIN
    around = [match.groups() for text in texts if (match := AROUND.fullmatch(text.strip(BLANKS)))]
    if len(around) < READABLE * len(texts):
        return PLAIN
    ends = [Counter((one or "").strip(BLANKS) for one in side) for side in zip(*around, strict=True)]
    # The most frequent sign; cells without it are numbers of the same notation.
    prefix, suffix = (next((text for text, _ in end.most_common() if text), "") for end in ends)
    # "1,234" and "1.234" read in two ways: the one that reads most cells is proposed, to be decided.
    tried = [Notation(prefix, suffix, *marks) for marks in MARKS]
    counts = [int((~np.isnan(numbers(texts, one))).sum()) for one in tried]
    best = max(range(len(tried)), key=counts.__getitem__)
    return tried[best] if counts[best] >= READABLE * len(texts) else PLAIN


def _order(texts: list[str]) -> str | None:
    """The order of day, month and year in which most of the texts are dates; None of ISO dates, and of none."""
    stripped = [text.strip(BLANKS) for text in texts]
    orders = [order for order, written in WRITTEN.items() if any(map(written.fullmatch, stripped))]
    if not orders:  # as in most columns, whose texts are not parsed for it
        return None
    # ISO first: it is the only one that needs no word in the schema.
    counts = {order: int((~np.isnan(date_part(texts, "year", order))).sum()) for order in (None, *orders)}
    return max(counts, key=counts.__getitem__)


def _dropped(why: str, remarks: list[str]) -> Column:
    remarks.append(f"{why}; dropped")
    return Column(drop=True, decide=("drop",))


def _column(name: str, look: _Look, remarks: list[str]) -> Column:
    missing: Missing = "indicator" if look.gaps else "middle"
    more: dict[str, Any] = {"missing": missing}
    decide = ("missing",) if look.gaps else ()
    if look.nested:
        return _dropped(f"{name}: lists or structures, of whose parts columns can be made", remarks)
    if not look.labels:
        return _dropped(f"{name}: empty", remarks)
    # An identifier tells rows apart and nothing else, so a model could only learn rows by heart.
    if look.row_numbers.are:
        return _dropped(f"{name}: a row number or identifier", remarks)
    if len(look.labels) == 1 and not look.gaps:
        return _dropped(f"{name}: the same in all rows", remarks)
    if look.truth:
        return Column(categories=(False, True), decide=("categories", *decide), **more)
    many, numeric = len(look.labels) > CATEGORIES, look.are(look.as_numbers) and not look.code
    named = look.whole and name.lower().endswith("id") if numeric else not look.are(look.as_dates)
    if named and many and (len(look.labels) < look.there or len(look.labels) > COUNTED):  # some come twice, or may do
        remarks.append(f"{name}: {OF_PERSONS.format(name)}")
    if numeric:
        if look.written:
            remarks.append(f"{name}: numbers written with {_listed(look.written)}")
        return Column(bounds=look.bounds, decide=("bounds", *look.written, *decide), **look.written, **more)
    # 20200131 reads as both: what reads as a number is a number.
    if look.are(look.as_dates) and not look.are(look.as_numbers):
        remarks.append(f"{name}: dates; their year and month are taken")
        if look.order in ("dmy", "mdy"):
            first = "day" if look.order == "dmy" else "month"
            remarks.append(f'{name}: read with the {first} first; order = "dmy" or "mdy" says which is')
        years = math.floor(look.first), math.ceil(look.last)
        years = years if years[0] < years[1] else (years[0] - 1, years[1])
        order: dict[str, Any] = {"order": look.order} if look.order else {}
        return Column(date=("year", "month"), years=years, decide=("years", *order, *decide), **order, **more)
    if many:
        what = "codes" if look.code else "texts"
        return _dropped(f"{name}: {look.different} different {what}, group them first to keep them", remarks)
    return Column(categories=tuple(sorted(look.labels)), decide=("categories", *decide), **more)


def _listed(written: Mapping[str, str]) -> str:
    return ", ".join(f'{name} = "{value}"' for name, value in written.items())


def _together(columns: dict[str, Column], remarks: list[str]) -> dict[str, Column]:
    """Many columns of one name but for a number are neighbours, and one decision: numbers with the bounds of all."""
    # One entry of the file has one notation: columns that differ in it stay apart.
    kinds = {name: (pattern_of(name), one if one.bounds is None else notation_of(one)) for name, one in columns.items()}
    families = defaultdict(list)
    for name, kind in kinds.items():
        families[repr(kind)].append(name)
    together: dict[str, Column] = {}
    for name, one in columns.items():
        names = families[repr(kinds[name])]
        if name in together or len(names) < MANY:
            together.setdefault(name, one)
            continue
        some = [columns[name] for name in names]
        if ends := [one.bounds for one in some if one.bounds is not None]:
            missing: Missing = "indicator" if any(one.missing == "indicator" for one in some) else "middle"
            decide = (*(each for each in one.decide if each != "missing"), *["missing"] * (missing == "indicator"))
            bounds = min(low for low, _ in ends), max(high for _, high in ends)
            one = msgspec.structs.replace(one, bounds=bounds, missing=missing, decide=decide)
            remarks.append(f"{names[0]} to {names[-1]}: {len(names)} columns under one pattern, with the bounds of all")
        together |= dict.fromkeys(names, one)
    return together


def _target(name: str, look: _Look, remarks: list[str]) -> Target:
    numeric = look.are(look.as_numbers) and not look.code
    if len(look.labels) < 2:
        raise DataError(f"{name} has fewer than two different values; there is nothing to predict")
    if look.gaps:
        remarks.append(f"{name}: {look.gaps:,} rows without it; each becomes a row of zeros, which moves no model")
    if look.truth:
        return Target(name=name, classes=(False, True), decide=("classes",))
    if numeric and not (look.whole and len(look.labels) <= CLASSES and not look.written):
        return Target(name=name, bounds=look.bounds, decide=("bounds", *look.written), **look.written)
    if len(look.labels) > CATEGORIES:
        raise DataError(f"{name} has {look.different} different texts, too many for classes")
    classes: list[Label] = sorted(look.labels)
    if numeric and all(re.fullmatch(r"-?\d+", text) for text in look.labels):
        # Classes keep their type: whole numbers are predicted as numbers, not as texts.
        classes = sorted(map(int, look.labels))
    return Target(name=name, classes=tuple(classes), decide=("classes",))


# What a schema changes in a table


def inspect(schema: Schema, table: pandas.DataFrame | Iterable[pandas.DataFrame]) -> list[str]:
    """One line for everything that a fit would replace, cut off or shorten; none where it takes all cells as they are.

    UserError where the columns are not those of the schema.
    """
    used = {name: column for name, column in schema.columns.items() if not column.drop}
    numbered = {name: RowNumbers(name) for name in used}
    counts: dict[str, Counter[str]] = {name: Counter() for name in used}
    target, of_target, seen, longer, nobody = schema.target, Counter[str](), set[int](), 0, 0
    written, persons = set[int](), set[int]()  # hashes, which are small
    encoding = encoding_of(schema, intercept=True)
    # Lengths before shortening, of which those beyond the bound are counted.
    whole = replace(encoding, bound=None)
    for part in in_parts(table):
        check_columns(encoding, part)
        for name, column in used.items():
            counts[name].update(_changes(column, part[name], numbered[name]))
        if target.name in part.columns:
            of_target.update(_changes(target, part[target.name], RowNumbers(target.name)))
            seen |= set(codes(part[target.name], target.classes or ()).tolist())
        if schema.unit in part.columns:
            each_id = ids(str(schema.unit), part[schema.unit])
            nobody += int((each_id == "").sum())
            written |= set(map(hash, each_id))
            alike = (unicodedata.normalize("NFKC", one).strip() for one in each_id)
            persons |= {hash(one.lstrip("0") or one[:1]) for one in alike}
        if schema.row_bound is not None:
            lengths = np.linalg.norm(whole.rows(part) * whole.unit, axis=1)
            longer += int((lengths > schema.row_bound * (1 + 1e-12)).sum())
    rows = counts[next(iter(used))]["rows"]
    lines = [f"schema: {line} came from the data: decide" for line in schema.undecided]
    for name, column in used.items():
        lines += [f"{name}: {line}" for line in _remarks_of(column, counts[name], numbered[name])]
    # How many rows each person has, and which ids are alike, stays out of a list that is easily passed on.
    lines += [f"{schema.unit}: {nobody:,} rows without an id; they are nobody's, and move no model"] * bool(nobody)
    lines += [
        f"{schema.unit}: some ids differ in Unicode form or leading zeros alone, and count as several persons; where "
        "they are one, write each id in one way"
    ] * (len(persons) < len(written))
    if lost := of_target["gaps"] + of_target["strange"]:
        lines.append(f"{target.name}: {lost:,} rows have no usable label; they become rows of zeros")
    if of_target["beyond"]:
        lines.append(f"{target.name}: {_beyond(target, of_target)}")
    if of_target:
        missed = [label for i, label in enumerate(target.classes or ()) if i not in seen]
        lines += [f"{target.name}: no row has the class {word(label)}" for label in missed]
    return lines + ([f"row_bound: {longer:,} of {rows:,} rows are shortened"] if longer else [])


def check_data(data: str | os.PathLike[str], schema: str | os.PathLike[str] | Schema) -> list[str]:
    """One line for everything in a table that a private fit would replace, cut off or shorten.

    Args:
        data: a csv, tsv or parquet file, compressed or not; a large one is read in parts.
        schema: what is public of it, or the TOML file that says so.

    Returns:
        Lines with exact counts, so not private; none where every cell is as the schema says.

    Raises:
        UserError, DataError: one line on a file, schema or column that does not fit.
    """
    return inspect(schema_of := load(schema), parts(data, schema_of))


def _changes(one: Column | Target, values: Any, numbered: RowNumbers) -> dict[str, int]:
    """How many rows there are, and cells that are missing, that cannot be read, and that lie beyond the bounds."""
    as_numbers, missing = numbers(values, notation_of(one)), values.isna().to_numpy()
    numbered.add(as_numbers)
    low, high = one.bounds or (-math.inf, math.inf)
    if one.bounds is not None:
        unknown = np.isnan(as_numbers)
    elif isinstance(one, Column) and one.date is not None:
        unknown = np.isnan(date_part(values, one.date[0], one.order))
    else:
        unknown = codes(values, (one.categories if isinstance(one, Column) else one.classes) or ()) < 0
    beyond = (as_numbers < low) | (as_numbers > high)
    return {"rows": len(values), "gaps": int(missing.sum()), "strange": int((unknown & ~missing).sum()),
            "beyond": int(beyond.sum())}  # fmt: skip


def _remarks_of(column: Column, counts: Mapping[str, int], numbered: RowNumbers) -> list[str]:
    if numbered.are:
        return ["looks like a row number or identifier, which only identifies rows: drop = true"]
    of = f"of {counts['rows']:,} cells are"
    what = "number" if column.bounds is not None else "date" if column.date is not None else "category of the schema"
    lines = [f"{counts['gaps']:,} {of} missing"] if counts["gaps"] else []
    lines += [f"{counts['strange']:,} {of} no {what}"] if counts["strange"] else []
    return lines + ([_beyond(column, counts)] if counts["beyond"] else [])


def _beyond(one: Column | Target, counts: Mapping[str, int]) -> str:
    low, high = one.bounds or (-math.inf, math.inf)
    return f"{counts['beyond']:,} of {counts['rows']:,} values lie beyond {low:g} to {high:g}"
