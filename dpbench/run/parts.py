"""One part of a results table on disk: a parquet file that is named by its digest, written whole and durable.

A bit that rots in the file, in whatever place, shows in the name: such a part is set aside, never read.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import re
import stat
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from dpbench import files
from dpbench.errors import UserError, reason

if TYPE_CHECKING:
    import pyarrow

DIGEST = 32  # hexadecimal digits of the sha256 in a part's name
NAMED = re.compile(rf"\d+-([0-9a-f]{{{DIGEST}}})\.parquet")
RANDOM = ("objective", "excess", "gradient_norm")  # columns of numbers that differ in every row
REQUIRED = {"runs": ("key", "status"), "traces": ("key", "iteration")}  # columns without which a row is nobody's


class Damaged(Exception):
    """A part that is not what was written; the text says why."""


def write(folder: Path, data: pyarrow.Table) -> Path:
    """Write `data` as a new part of `folder`, on the disk, content and name, when this returns; OSError."""
    try:
        return _write(folder, data)
    except FileNotFoundError:  # swept away half-written, after the clock was set on by an hour
        return _write(folder, data)


def _write(folder: Path, data: pyarrow.Table) -> Path:
    import pyarrow.parquet as pq

    with files.temporary(folder / "part.parquet") as staged:
        whole = {"compression": "zstd", "compression_level": 17, "write_page_checksum": True}
        random = [name for name in RANDOM if name in data.schema.names]  # byte by byte they take a sixth less
        others = [name for name in data.schema.names if name not in random]
        pq.write_table(data, staged, use_byte_stream_split=random, use_dictionary=others, **whole)
        digest = hashlib.sha256(staged.read_bytes()).hexdigest()[:DIGEST]
        final = folder / f"{time.time_ns():020d}-{digest}.parquet"
        files.synchronise(staged)
        try:
            staged.replace(final)
        except FileNotFoundError:
            if not final.exists():  # a rename that NFS sent twice was done at first
                raise
        files.synchronise(folder)
    return final


def listed(folder: Path) -> list[Path]:
    """The parts of a folder in the order in which they were written."""
    return sorted(folder.glob("*.parquet"))


def read(part: Path, table: str, columns: list[str], keys: list[str] | None = None) -> pyarrow.Table:
    """Those of `columns` that the part has, of all rows or of those with one of `keys`.

    Raises Damaged, FileNotFoundError (another process has merged the part into a newer one), and UserError where the
    disk or its rights are at fault, since the part may then be sound.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if not stat.S_ISREG(part.stat().st_mode):  # opening a FIFO would wait for a writer
            raise Damaged("not a regular file")
        content = part.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno == errno.ESTALE:  # how NFS says that another machine has removed it
            raise FileNotFoundError(part) from error
        raise UserError(f"cannot read results from {part}: {reason(error)}") from error
    named = NAMED.fullmatch(part.name)
    if named and hashlib.sha256(content).hexdigest()[:DIGEST] != named[1]:
        raise Damaged("its content does not have the digest in its name")
    buffer = pa.BufferReader(content)
    try:
        with pq.ParquetFile(buffer, page_checksum_verification=True) as file:  # without pandas, unlike read_table
            has = file.schema_arrow.names
            lacks = [name for name in REQUIRED[table] if name not in has]
            if lacks:
                raise Damaged(f"it has no column {', '.join(lacks)}")
            wanted = list(dict.fromkeys([*(name for name in columns if name in has), *REQUIRED[table]]))
            found = file.read(wanted)
    except (pa.ArrowException, OSError, ValueError) as error:
        why = " ".join(str(error).split())[:200]
        if named:  # it is what was written, so the fault is this process's: no room for a thread, say
            raise UserError(f"cannot read results from {part}: {why}") from error
        raise Damaged(why) from error
    empty = [name for name in REQUIRED[table] if found[name].null_count]
    if empty:
        raise Damaged(f"rows without {', '.join(empty)}")
    if keys is not None:
        import pyarrow.compute as pc

        found = found.filter(pc.is_in(found["key"], pa.array(keys, found["key"].type)))
    return found.select([name for name in wanted if name in columns])


def set_aside(part: Path, why: Damaged) -> None:
    """Rename a damaged part, so that nobody reads it, and say so."""
    broken = part.with_suffix(".broken")
    with contextlib.suppress(OSError):
        part.rename(broken)
    print(f"warning: {part} is not readable, set aside as {broken.name} ({why})", file=sys.stderr)
