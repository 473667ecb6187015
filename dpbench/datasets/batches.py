"""A table too large to hold, read a batch of rows at a time (pyarrow) into arrays that lie on disk."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbench.datasets import cache, delimited, spec
from dpbench.errors import DataError, UserError, reason

if TYPE_CHECKING:
    import pandas

LARGE = 4e8  # bytes of a text file, or of a parquet file's numbers, from which it is read in batches
ROWS = 1 << 16  # of a batch of parquet
CELLS = 1 << 19  # of a batch, at most
BYTES = 1 << 24  # of a batch of text
UNSTREAMED = (".zip", ".xz")  # pandas reads these, at once

Reading = Callable[[str, float], None]  # (what is being done, share of it in [0, 1])


def is_large(path: Path, kind: str) -> bool:
    """Whether a file is read in batches; a compressed text file counts as what it holds."""
    if kind == "parquet":
        import pyarrow.parquet as pq

        try:
            found = pq.ParquetFile(path).metadata
        except (OSError, ValueError):
            return False  # the reader says what is wrong
        return bool(found.num_rows * found.num_columns * 8 >= LARGE)
    if kind != "csv":
        return False
    if spec.compression(path):
        return _holds(path, LARGE)
    return path.stat().st_size >= LARGE and path.suffix not in UNSTREAMED


def _holds(path: Path, size: float) -> bool:
    """Whether so many bytes come out of a compressed file; what is read is not kept."""
    with contextlib.suppress(OSError, EOFError), spec.opened(path) as stream:
        while size > 0 and (chunk := stream.read(BYTES)):
            size -= len(chunk)
    return size <= 0


def readable(frame: pandas.DataFrame) -> pandas.DataFrame:
    """The frame with text for names and for cells of bytes; DataError for a column of lists or the like."""
    frame = frame.rename(columns=str)
    for name, column in frame.items():
        if column.dtype == object:
            kinds = set(map(type, column))
            if kinds & {list, dict, tuple, np.ndarray}:
                raise DataError(f"column {name} holds lists or structures; drop it, or make columns of its parts")
            if bytes in kinds:
                frame[name] = column.map(lambda cell: cell.decode("utf-8", "replace") if type(cell) is bytes else cell)
    return frame


def frames(path: Path, kind: str) -> Iterator[tuple[pandas.DataFrame, float]]:
    """(rows, share of the file that is read) of a parquet or text file, in order; DataError where it is none."""
    import pyarrow as pa

    try:
        for batch, share in _parquet(path) if kind == "parquet" else _text(path):
            if batch.num_rows:
                yield readable(batch.to_pandas()), share
    except (OSError, ValueError, pa.ArrowException) as error:
        raise DataError(f"{path}: cannot be read as {kind}: {' '.join(str(error).split())[:300]}") from error


def _parquet(path: Path) -> Iterator[tuple[Any, float]]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, memory_map=True) as file:
        done, total = 0, max(1, file.metadata.num_rows)
        wide = max(1, file.metadata.num_columns)
        for batch in file.iter_batches(batch_size=max(1, min(ROWS, 8 * CELLS // wide))):
            done += batch.num_rows
            yield batch, done / total


def _text(path: Path) -> Iterator[tuple[Any, float]]:
    """Whole numbers are read as numbers with decimals: the first batch does not know what the later ones hold."""
    import pyarrow as pa
    from pyarrow import csv

    dialect, size = delimited.detect(path), path.stat().st_size
    how = {
        "read_options": csv.ReadOptions(block_size=BYTES, encoding=dialect.encoding.removesuffix("-sig")),
        "parse_options": csv.ParseOptions(delimiter=dialect.separator, newlines_in_values=False),
    }
    plain = csv.ConvertOptions(decimal_point=dialect.decimal)
    with (
        spec.opened(path) as stream,
        csv.open_csv(pa.PythonFile(stream, mode="r"), convert_options=plain, **how) as first,
    ):
        types = {field.name: pa.float64() for field in first.schema if pa.types.is_integer(field.type)}
    convert = csv.ConvertOptions(decimal_point=dialect.decimal, column_types=types)
    with (
        path.open("rb") as file,
        spec.uncompressed(path, file) as stream,
        csv.open_csv(pa.PythonFile(stream, mode="r"), convert_options=convert, **how) as reader,
    ):
        for batch in reader:
            yield batch, min(1.0, file.tell() / size)


def on_disk(rows: int, columns: int, dtype: Any) -> np.ndarray:
    """An array of zeros whose bytes lie in a file without a name in the data cache: gone when the array is.

    UserError, in one line, where the disk has no room for it.
    """
    folder = cache.root()
    shape = (rows, columns) if columns else (rows,)
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if not size:
        return np.zeros(shape, dtype)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            if hasattr(os, "posix_fallocate"):  # a full disk is an error now, not a signal later
                os.posix_fallocate(file.fileno(), 0, size)
            return np.memmap(file, dtype=dtype, mode="w+", shape=shape)
    except OSError as error:
        raise UserError(
            f"{folder}: {reason(error)} ({size / 1e9:.1f} GB are needed); set DPBENCH_DATA to a folder with room"
        ) from error
