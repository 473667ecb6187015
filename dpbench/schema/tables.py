"""A csv, tsv or parquet file as tables, a part at a time: what a cell is depends on this cell and the schema alone.

A reader that finds types looks at all rows: where one row holds a word, "01" stays "01" in all others, and where none
does it becomes 1. So one row would change how the others are read, and no ε covers that. Here the cells of categories,
dates and classes stay text. Only columns of numbers are typed by pandas, and `cells.number` reads each text that
pandas takes for a number as pandas does, so these columns may be typed either way. Separator, decimal mark and encoding
are the schema's.

A quote that is not closed would swallow the rows that follow it. So quotes must stand at both ends of a field and be
doubled within it: then a row that breaks the rule is refused, in words that do not say where, and any other row ends
where its line does.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np

from dpbench.errors import DataError, UserError, reason
from dpbench.schema.cells import Notation
from dpbench.schema.encoding import check_names, encoding_of, notation_of, target_cells
from dpbench.schema.schema import Column, Schema, Target, load

if TYPE_CHECKING:
    import pandas

ROWS = 1 << 16  # of a part, at most
CELLS = 1 << 20  # of a part, about
SEPARATORS = {".csv": ",", ".tsv": "\t"}
PARQUET = (".parquet", ".pq")
OPENERS: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": gzip.open, b"BZ": bz2.open, b"\xfd7": lzma.open,
    b"PK": lambda file: _of_archive(zipfile.ZipFile(file)),
}  # fmt: skip
INDEX = re.compile(r"__index_level_\d+__")  # what pandas calls row numbers in a parquet file
QUOTE = ord('"')
MARK = "="  # before an id as it is read, so that none is a word for a missing cell
BROKEN = (
    "a row has too many fields, or a quote that is not closed, not at the ends of a field or not doubled within it; "
    "mend the file (where it is would reveal something of the data)"
)


@dataclass(frozen=True)
class Dialect:
    """How a text table is written: see `Schema`."""

    separator: str | None = None
    encoding: str = "utf-8"


def read_table(data: str | os.PathLike[str], schema: str | os.PathLike[str] | Schema) -> pandas.DataFrame:
    """The rows of a file as a schema reads them: the table that a private model is fitted to.

    Its target has the type of what a model predicts, classes as in the schema or numbers: so scikit-learn scores it.
    Of a table that you read by `pandas.read_csv`, the types of the columns depend on all rows, and no ε covers that.

    Args:
        data: a csv, tsv or parquet file, compressed or not.
        schema: what is public of it, or the TOML file that says so.

    Raises:
        UserError, DataError: one line on a file or a column that does not fit. It tells nothing of a cell.
    """
    import pandas as pd

    found = load(schema)
    frames = list(parts(data, found))
    table = frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)
    if (name := found.target.name) in table:
        table[name] = target_cells(found.target, table[name])
    return table


def parts(
    source: str | os.PathLike[str], how: Schema | Dialect | None, progress: Callable[[float], None] = lambda share: None
) -> Iterator[pandas.DataFrame]:
    """The rows of a file, some at a time; an index goes on from part to part.

    Args:
        source: a csv, tsv or parquet file, compressed or not.
        how: a schema, whose columns and target alone are read; or how the file is written, to read all columns, those
            of a text file as text. None: as its name says.
        progress: called with the share of the file that is read.

    Raises:
        UserError, DataError: one line, which tells nothing of a cell.
    """
    kind, path = kind_of(source), Path(source)
    empty = True
    for part in _parquet(path, how, progress) if kind == "parquet" else _text(path, how, progress):
        if len(part):
            empty = False
            yield part
    if empty:
        raise DataError(f"{path}: no rows")


def kind_of(source: str | os.PathLike[str]) -> Literal["text", "parquet"]:
    """The kind of a file, by its name; UserError where it is none that can be read."""
    if not isinstance(source, str | os.PathLike):
        raise UserError("data: give the name of a file; dpbench.schema.draft and inspect take a DataFrame")
    path = Path(source)
    if not path.is_file():
        raise UserError(f"{path}: {'is a folder; name a file in it' if path.is_dir() else 'there is no such file'}")
    suffixes = [suffix for suffix in map(str.lower, path.suffixes) if suffix in (*PARQUET, *SEPARATORS)]
    if not suffixes:
        raise UserError(f"{path}: give a csv, tsv or parquet file, compressed or not")
    return "parquet" if suffixes[-1] in PARQUET else "text"


def default_separator(path: Path) -> str:
    """What separates the fields of a file of this name, where its schema does not say it."""
    return next((sign for suffix, sign in SEPARATORS.items() if suffix in map(str.lower, path.suffixes)), ",")


def _of_archive(archive: zipfile.ZipFile) -> IO[bytes]:
    return archive.open(archive.namelist()[0])


@contextmanager
def opened_text(
    path: Path, encoding: str, errors: str = "replace"
) -> Iterator[tuple[io.TextIOWrapper, Callable[[], float]]]:
    """(the text of a file, compressed or not, the share that is read so far).

    errors: what becomes of bytes that are no text of this encoding: a sign that says so, as of Python's codecs.
    """
    with path.open("rb") as file:
        magic, size = file.read(2), max(1, path.stat().st_size)
        file.seek(0)
        with OPENERS.get(magic, nullcontext)(file) as stream:
            text = io.TextIOWrapper(stream, "utf-8-sig" if encoding == "utf-8" else encoding, errors, newline="")
            yield text, lambda: min(1.0, file.tell() / size)


def _text(path: Path, how: Schema | Dialect | None, progress: Callable[[float], None]) -> Iterator[pandas.DataFrame]:
    import pandas as pd

    separator = (how.separator if how else None) or default_separator(path)
    encoding = how.encoding if how else "utf-8"
    names = names_of(path, separator, encoding)
    kept, texts, decimal = names, names, "."
    if isinstance(how, Schema):
        kept = _columns(path, how, names)
        texts, decimal = _texts(how, kept)
    # Text stays text: a type that pandas finds depends on every row of the file.
    unit = how.unit if isinstance(how, Schema) else None
    dtype = {names.index(name): str for name in texts if name != unit}
    given: dict[str, Any] = {"low_memory": False}
    if unit is not None:  # "NA" and "nan" are ids like others
        given["converters"] = {names.index(unit): MARK.__add__}
    # Faster parsers of pandas round the last digit another way than Python.
    if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1):  # since then the default, and no other is left
        given["float_precision"] = "round_trip"  # as Python's float reads a text
    with one_message(path), opened_text(path, encoding) as (text, share):
        stream: Any = _Framed(text, separator)
        reader = pd.read_csv(
            stream, sep=separator, decimal=decimal, header=0, names=list(range(len(names))), dtype=dtype,
            chunksize=max(1, min(ROWS, CELLS // len(names))), index_col=False, skip_blank_lines=False, **given
        )  # fmt: skip
        while (part := _strictly(lambda: next(reader, None), stream)) is not None:
            progress(share())
            part = part.set_axis(names, axis=1)[kept]
            if unit is not None:
                part[unit] = part[unit].str[len(MARK) :]
            yield part


def _strictly(read: Callable[[], Any], stream: _Framed) -> Any:
    """What `read` returns; an error where rows have more fields than there are names, of which pandas only warns."""
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            return read()
        except ValueError:
            raise (stream.failed or ValueError("a row that is none")) from None


def names_of(path: Path, separator: str, encoding: str) -> list[str]:
    """The names of a text table's columns, those that are empty as pandas calls them."""
    import pandas as pd

    with one_message(path), opened_text(path, encoding) as (text, _):
        stream: Any = _Framed(text, separator)
        try:
            first = pd.read_csv(stream, sep=separator, header=None, nrows=1, dtype=str, keep_default_na=False)
        except pd.errors.EmptyDataError:
            raise DataError(f"{path}: no rows") from None
    return [name or f"Unnamed: {i}" for i, name in enumerate(first.iloc[0].fillna("").tolist())]


def _columns(path: Path, schema: Schema, names: list[str]) -> list[str]:
    """Those that a schema uses, with its target, by the file's order; UserError where they are not the schema's."""
    encoding = encoding_of(schema, intercept=False)
    try:
        check_names(encoding, names)
    except UserError as error:
        alone = "; its first line is one name: write separator = … in the first line of the schema" * (len(names) == 1)
        raise UserError(f"{path}: {error}{alone}") from None
    if schema.unit is not None and schema.unit not in names:
        raise UserError(f"{path}: there is no column {schema.unit!r}, the schema's unit")
    return [name for name in names if name in {*encoding.columns, schema.target.name, schema.unit}]


def _texts(schema: Schema, names: list[str]) -> tuple[list[str], str]:
    """(the columns whose cells stay text, the decimal mark of the others, which pandas may read)."""
    every: dict[str, Column | Target] = {**schema.columns, schema.target.name: schema.target}
    written = {name: notation_of(every[name]) for name in names if name in every and every[name].bounds is not None}
    decimal = "." if Notation() in written.values() else ","
    return [name for name in names if written.get(name) != Notation(decimal=decimal)], decimal


class _Framed:
    """A text as pandas reads it, whose quotes stand at both ends of a field and are doubled within it.

    Then all that follows a row has the meaning that it would have after any other row: each opens with the k-th quote
    for an even k, so a row of an odd number of quotes leaves an odd number in the file, and is refused.
    """

    def __init__(self, stream: IO[str], separator: str) -> None:
        self._stream, self._ends = stream, np.array([*map(ord, (separator, "\n", "\r")), QUOTE])
        self._tail, self._quotes = "\n", 0
        self.failed: Exception | None = None

    def __iter__(self) -> Iterator[str]:
        return iter(lambda: self.read(1 << 18), "")

    def read(self, size: int = -1) -> str:
        """The next signs of the text; ValueError where a quote is out of its place."""
        try:
            text = self._stream.read(size)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:  # of which pandas says only that it failed
            self.failed = error
            raise
        signs = self._tail + (text or "\n")
        if '"' in signs:
            codes = np.frombuffer(signs.encode("utf-32-le", "surrogatepass"), np.uint32)
            places = 1 + np.flatnonzero(codes[1:-1] == QUOTE)  # each with a sign before and behind it
            # Counted over the whole file: where a row leaves a quote open, the count is odd at the end.
            opens = (self._quotes + np.arange(len(places))) % 2 == 0
            beside = codes[np.where(opens, places - 1, places + 1)]
            self._quotes += len(places)
            if not np.isin(beside, self._ends).all():
                raise ValueError("a quote inside of a field")
        if not text and self._quotes % 2:
            raise ValueError("a quote that is not closed")
        self._tail = signs[-2:]
        return text


@contextmanager
def one_message(path: Path) -> Iterator[None]:
    """One line for all that pandas may say of the rows, which names places and cells."""
    import pandas as pd

    try:
        yield
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, lzma.LZMAError) as error:
        what = reason(error) if isinstance(error, OSError) else " ".join(str(error).split())
        raise DataError(f"{path}: cannot be read: {what}") from None
    except (ValueError, pd.errors.ParserWarning):
        raise DataError(f"{path}: {BROKEN}") from None


def _parquet(path: Path, how: Schema | Dialect | None, progress: Callable[[float], None]) -> Iterator[pandas.DataFrame]:
    """Its columns have types, which are public: whoever wrote the file chose them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, memory_map=True) as file:
            names = [name for name in file.schema_arrow.names if not INDEX.fullmatch(name)]
            # A schema reads its own columns alone; a draft looks at all of them.
            kept = _columns(path, how, names) if isinstance(how, Schema) else names
            for name in kept:
                if pa.types.is_nested(file.schema_arrow.field(name).type):
                    raise UserError(f"{path}: column {name} holds lists or structures; make columns of its parts")
            rows = max(1, min(ROWS, CELLS // max(1, len(kept))))
            start = 0
            for batch in file.iter_batches(batch_size=rows, columns=kept):
                # whole numbers beside a gap stay whole: as floats, large ones would be others
                part = batch.to_pandas(integer_object_nulls=True, ignore_metadata=True)
                part.index = range(start, start := start + len(part))
                progress(start / max(1, file.metadata.num_rows))
                yield part
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path}: cannot be read as parquet: {' '.join(str(error).split())[:200]}") from None
