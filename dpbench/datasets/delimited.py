"""What a text table looks like inside: its separator, decimal mark and encoding, found from its first lines."""

from __future__ import annotations

import codecs
import csv
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict

from dpbench.datasets.spec import opened
from dpbench.errors import DataError

SAMPLE = 1 << 20  # bytes that are looked at
LINES = 100
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
BOMS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
WITH_COMMA = re.compile(r"\s*[+-]?\d+,\d+(?:[eE][+-]?\d+)?\s*")
WITH_POINT = re.compile(r"\s*[+-]?\d*\.\d+(?:[eE][+-]?\d+)?\s*")


@dataclass(frozen=True)
class Dialect:
    """How to read a text table: what `pandas.read_csv` calls sep, decimal and encoding."""

    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"

    @property
    def told(self) -> str:
        """What is not the usual comma, point and UTF-8, in words; "" where all is."""
        parts = [f"separator {SEPARATORS[self.separator]}"] if self.separator != "," else []
        parts += ["decimal comma"] if self.decimal == "," else []
        parts += [self.encoding] if self.encoding not in ("utf-8", "utf-8-sig") else []
        return ", ".join(parts)

    @property
    def reading(self) -> Reading:
        """What `pandas.read_csv` takes for a line to be cut into fields."""
        return Reading(sep=self.separator, encoding=self.encoding)


class Reading(TypedDict):
    """Arguments of `pandas.read_csv`."""

    sep: str
    encoding: str


def whole(path: Path) -> Dialect:
    """As `detect`, Latin-1 too where a byte beyond the first lines is not UTF-8: all of the file is looked at."""
    found = detect(path)
    if found.encoding == "latin-1":
        return found
    decoder = codecs.getincrementaldecoder(found.encoding)()
    try:
        with opened(path) as stream:
            while chunk := stream.read(SAMPLE):
                decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return replace(found, encoding="latin-1")
    except (OSError, EOFError) as error:
        raise DataError(f"{path}: cannot be read: {' '.join(str(error).split())}") from error
    return found


def detect(path: Path) -> Dialect:
    """The dialect of a text table, compressed or not; DataError where the file cannot be opened.

    The separator is the one that cuts all of the first lines into the same number (> 1) of fields, the most of them;
    a decimal comma is one in a column of numbers that the comma does not separate. Text that is not UTF-8 is taken for
    Latin-1, in which every byte has a meaning.
    """
    try:
        with opened(path) as stream:
            sample = stream.read(SAMPLE)
    except (OSError, EOFError) as error:
        raise DataError(f"{path}: cannot be read: {' '.join(str(error).split())}") from error
    encoding = next((name for mark, name in BOMS.items() if sample.startswith(mark)), "utf-8")
    try:
        text = sample.decode(encoding)
    except UnicodeDecodeError as error:
        cut = encoding == "utf-8" and error.start > len(sample) - 4 and len(sample) == SAMPLE
        encoding = encoding if cut else "latin-1"
        text = sample.decode(encoding, errors="ignore")
    lines = [line for line in text.splitlines() if line.strip()]
    lines = (lines[:-1] if len(sample) == SAMPLE else lines)[:LINES] or lines
    separator, rows = ",", [[line] for line in lines]
    for candidate in SEPARATORS:
        split = list(csv.reader(lines, delimiter=candidate))
        if split and len({len(row) for row in split}) == 1 and len(split[0]) > len(rows[0]):
            separator, rows = candidate, split
    return Dialect(separator, _decimal(separator, rows), encoding)


def _decimal(separator: str, rows: list[list[str]]) -> str:
    if separator == ",":
        return "."
    cells = [cell for row in rows[1:] for cell in row]
    comma = sum(bool(WITH_COMMA.fullmatch(cell)) for cell in cells)
    return "," if comma > sum(bool(WITH_POINT.fullmatch(cell)) for cell in cells) else "."
