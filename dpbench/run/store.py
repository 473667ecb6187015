"""The parquet store: part files written once, durable, named by their digest, and read as one table.

`results/<profile>/<experiment>/runs/*.parquet` has one row per job, `…/traces/*.parquet` one per recorded
iteration. A part is written to a temporary name and renamed, so a reader, or the run after a crash, sees whole
parts or none; a job's traces land before its row, so a row's traces are always there. A bit that rots in a part shows
in its name: such a part is set aside, never read.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from dpbench import files, frames
from dpbench.errors import UserError, reason
from dpbench.run import outcomes
from dpbench.run.row import RUNS, TRACES, Point, Row, completed

if TYPE_CHECKING:
    import numpy as np
    import pandas
    import pyarrow


DIGEST = 32  # hexadecimal digits of the sha256 in a part's name
NAMED = re.compile(rf"\d+-([0-9a-f]{{{DIGEST}}})\.parquet")
# Columns of numbers that differ in every row: split byte by byte they take a sixth less.
RANDOM = ("objective", "excess", "gradient_norm")
# Columns of few different words: read as indices, a word is made and hashed once and not in each of 80,000 rows.
REPEATED = ("problem", "algorithm", "settings", "sweep", "status", "ending")
# Without these columns nobody knows whose a row is.
REQUIRED = {"runs": ("key", "status"), "traces": ("key", "iteration")}


class Damaged(Exception):
    """A part that is not what was written; the text says why."""


def write_part(folder: Path, data: pyarrow.Table) -> Path:
    """Write `data` as a new part of `folder`, on the disk, content and name, when this returns; OSError."""
    try:
        return _write_part(folder, data)
    except FileNotFoundError:
        # Another process sweeps away what looks an hour old: also this part, where the clock was set on meanwhile.
        return _write_part(folder, data)


def _write_part(folder: Path, data: pyarrow.Table) -> Path:
    import pyarrow.parquet as pq

    with files.temporary(folder / "part.parquet") as staged:
        whole = {"compression": "zstd", "compression_level": 17, "write_page_checksum": True}
        random = [name for name in RANDOM if name in data.schema.names]
        others = [name for name in data.schema.names if name not in random]
        pq.write_table(data, staged, use_byte_stream_split=random, use_dictionary=others, **whole)
        digest = hashlib.sha256(staged.read_bytes()).hexdigest()[:DIGEST]
        final = folder / f"{time.time_ns():020d}-{digest}.parquet"
        files.synchronise(staged)
        try:
            staged.replace(final)
        except FileNotFoundError:
            # NFS may send a rename twice: then the first one did it, and the second finds nothing.
            if not final.exists():
                raise
        files.synchronise(folder)
    return final


def list_parts(folder: Path) -> list[Path]:
    """The parts of a folder in the order in which they were written."""
    return sorted(folder.glob("*.parquet"))


def read_part(
    part: Path, table: str, columns: list[str], keys: list[str] | None = None, encoded: Sequence[str] = ()
) -> pyarrow.Table:
    """Those of `columns` that the part has, of all rows or of those with one of `keys`.

    encoded: columns that are read as indices into their different words.

    Raises Damaged, FileNotFoundError (another process has merged the part into a newer one), and UserError where the
    disk or its rights are at fault, since the part may then be sound.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # To open a FIFO would wait for a writer for ever.
        if not stat.S_ISREG(part.stat().st_mode):
            raise Damaged("not a regular file")
        content = part.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        # ESTALE is how NFS says that another machine has removed the file.
        if error.errno == errno.ESTALE:
            raise FileNotFoundError(part) from error
        raise UserError(f"cannot read results from {part}: {reason(error)}") from error
    named = NAMED.fullmatch(part.name)
    if named and hashlib.sha256(content).hexdigest()[:DIGEST] != named[1]:
        raise Damaged("its content does not have the digest in its name")
    buffer = pa.BufferReader(content)
    try:
        # Without pandas, unlike read_table.
        with pq.ParquetFile(buffer, page_checksum_verification=True, read_dictionary=[*encoded]) as file:
            has = file.schema_arrow.names
            lacks = [name for name in REQUIRED[table] if name not in has]
            if lacks:
                raise Damaged(f"it has no column {', '.join(lacks)}")
            wanted = list(dict.fromkeys([*(name for name in columns if name in has), *REQUIRED[table]]))
            # One thread: parts are a few megabytes, and a pool's start costs more than it saves.
            found = file.read(wanted, use_threads=False)
    except (pa.ArrowException, OSError, ValueError) as error:
        why = " ".join(str(error).split())[:200]
        # The digest fits, so the part is sound, and the fault is this process's: too little memory, for example.
        if named:
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


SCHEMA_VERSION = 3

TABLES = {"runs": RUNS, "traces": TRACES}


class Ended:
    """What a store has of jobs: `run` makes what is not `done`, `status` and the pages count it."""

    def __init__(self, statuses: Mapping[str, str], traced: Callable[[], set[str]]) -> None:
        """statuses: of the rows, by key; traced: reads the keys that have traces, where these are asked for."""
        self.statuses, self._traced = statuses, traced

    @cached_property
    def results(self) -> set[str]:
        """The keys whose row has a result."""
        return {key for key, status in self.statuses.items() if status in outcomes.RESULTS}

    @cached_property
    def traced(self) -> set[str]:
        """The keys that have traces."""
        return self._traced()

    def done(self, key: str, trace: bool) -> bool:
        """Whether a job need not run: it has a result, and its trace if it is to have one."""
        return key in self.results and (not trace or key in self.traced)

    def counts(self, keys: Iterable[str], traced: Iterable[str] = ()) -> tuple[int, int, int]:
        """(missing, failed, beyond reach) of some keys; a result without a trace that `traced` asks for is missing."""
        ended = [*map(self.statuses.get, keys)]
        missing, beyond = ended.count(None), ended.count("out of reach")
        failed = len(ended) - missing - beyond - sum(map(ended.count, outcomes.RESULTS))
        untraced = self.results.intersection(traced).difference(self.traced) if traced else ()
        return missing + len(untraced), failed, beyond


class Store:
    """The results of one experiment under one profile."""

    def __init__(
        self, root: str | os.PathLike[str], profile: str, experiment: str, *, folder: Path | None = None
    ) -> None:
        """folder: where the rows lie if not in root/profile/experiment."""
        self.experiment = experiment
        self.folder = folder or Path(root) / profile / experiment

    def write(self, runs: Sequence[Row], traces: Sequence[Point]) -> None:
        """Add one batch's rows: durable when this returns. Raises UserError if the folder cannot be written."""
        for row in runs:
            row.experiment = self.experiment
        if traces:
            self._write_part("traces", [msgspec.structs.asdict(point) for point in traces])
        if runs:
            self._write_part("runs", [row.record() for row in runs])

    def prepare(self) -> None:
        """Make the folders, so that one that cannot be written is named before hours of work; UserError if so."""
        for table in TABLES:
            with self.explained(self.folder / table):
                (self.folder / table).mkdir(parents=True, exist_ok=True)
                tempfile.TemporaryFile(dir=self.folder / table).close()
                files.sweep(self.folder / table)

    @staticmethod
    @contextlib.contextmanager
    def explained(folder: Path) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise UserError(
                f"cannot write results to {folder}: {reason(error)}; what was finished before is kept"
            ) from error

    def runs(self) -> pandas.DataFrame:
        """All rows, one per key: one with a result beats one without, a later part an earlier one.

        Raises UserError where results of one key were made on different data.
        """
        frame = self._read("runs")
        frame = frame.assign(_ended=outcomes.has_result(frame["status"]))
        one_data(frame[frame["_ended"] & frame.duplicated("key", keep=False)], "key", self.folder / "runs")
        frame = frame.sort_values("_ended", kind="stable").drop_duplicates("key", keep="last")
        return frame.drop(columns="_ended").sort_index().reset_index(drop=True)

    def rows(self, begin: str) -> list[Row]:
        """Those of `runs` whose key begins so."""
        runs = self.runs()
        return [Row.read(record) for record in frames.mappings(runs[runs["key"].str.startswith(begin)])]

    def traces(self, keys: Iterable[str] | None = None) -> pandas.DataFrame:
        """All recorded iterations, or those of `keys`; one row per (key, iteration)."""
        frame = self._read("traces", None if keys is None else list(keys))
        return frame.drop_duplicates(["key", "iteration"], keep="last").reset_index(drop=True)

    def traced(self) -> set[str]:
        """Keys that have traces."""
        chunks = self._table("traces", columns=["key"], encoded=["key"])["key"].chunks
        # Of a column that holds every key hundreds of times its words are enough; `unique` would load pyarrow.compute.
        return set().union(*(chunk.dictionary.to_pylist() for chunk in chunks))

    def ended(self) -> Ended:
        """What there is of jobs."""
        return Ended(dict(zip(*self.lists("key", "status"), strict=True)), self.traced)

    def lists(self, *names: str) -> list[list[Any]]:
        """These columns alone, a list each, in the order and of the rows that `runs` has; None where there is none."""
        table = self._table("runs", columns=list(dict.fromkeys(["key", "status", *names])), encoded=REPEATED)
        lists = {name: _as_list(table[name]) for name in table.column_names}
        # Not in arrow, whose arrays of strings load pandas.
        if {"algorithm", "settings"} <= lists.keys():
            lists["settings"] = _whole(lists["algorithm"], lists["settings"])
        keys, statuses = lists["key"], lists["status"]
        if len(set(keys)) == len(keys):
            return [lists[name] for name in names]
        last = {key: row for row, key in enumerate(keys)}
        sound = {key: row for row, key in enumerate(keys) if statuses[row] in outcomes.RESULTS}
        kept = sorted((last | sound).values())
        return [[lists[name][row] for row in kept] for name in names]

    def commands(self) -> list[str]:
        """The commands that made rows here, as they were typed; those made from Python have none."""
        path = self.folder / "commands.txt"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def remember(self, command: str) -> None:
        """Keep a command among `commands`."""
        if command not in (known := self.commands()):
            files.write(self.folder / "commands.txt", "".join(f"{line}\n" for line in [*known, command]))

    def compact(self, drop: Collection[str] = ()) -> None:
        """Merge the parts into one file per table. A crash in between leaves duplicates, which reading drops.

        drop: the keys whose rows go; what another process has just written stays.
        """
        for table, read in (("traces", self.traces), ("runs", self.runs)):
            merged = list_parts(self.folder / table)
            if len(merged) < (1 if drop else 2):
                continue
            frame = read().sort_values("key" if table == "runs" else ["key", "iteration"])
            frame = frame[~frame["key"].isin(drop)]
            self._write_part(table, frame)
            for part in merged:
                part.unlink(missing_ok=True)

    def _read(self, table: str, keys: list[str] | None = None) -> pandas.DataFrame:
        found: pandas.DataFrame = _completed(self._table(table, keys)).to_pandas()
        return found

    def _table(
        self, table: str, keys: list[str] | None = None, columns: list[str] | None = None, encoded: Sequence[str] = ()
    ) -> pyarrow.Table:
        import pyarrow as pa

        schema = _schema(table, columns, encoded)
        for _ in range(100):
            found = [pa.Table.from_batches([], schema)]
            try:
                for part in list_parts(self.folder / table) if keys is None or keys else []:
                    try:
                        found.append(_conform(read_part(part, table, schema.names, keys, encoded), schema))
                    except Damaged as error:
                        set_aside(part, error)
                return pa.concat_tables(found)
            except FileNotFoundError:
                # Another process has just merged this part into a newer one, so the folder is listed again.
                continue
        raise UserError(f"cannot read results from {self.folder / table}: its files keep disappearing")

    def _write_part(self, table: str, rows: list[dict[str, Any]] | pandas.DataFrame) -> None:
        import pyarrow as pa

        schema = _schema(table)
        if isinstance(rows, list):
            data = pa.Table.from_pylist(rows, schema)
        else:
            data = pa.Table.from_pandas(rows, schema, preserve_index=False)
        folder = self.folder / table
        with self.explained(folder):
            write_part(folder, data)


def one_data(runs: pandas.DataFrame, by: str, where: Path) -> None:
    """UserError, naming the first, if rows with one value of the column `by` were made on different data."""
    digests = runs.dropna(subset=["data_sha256"]).groupby(by, sort=False)["data_sha256"].unique()
    mixed = digests[digests.map(len) > 1]
    if not mixed.empty:
        rows = runs[runs[by] == mixed.index[0]]
        counts = rows["data_sha256"].value_counts()
        told = ", ".join(f"{number} on {digest[:12]}…{digest[64:]}" for digest, number in counts.items())
        read = ((part.name, read_part(part, "runs", ["data_sha256"])) for part in list_parts(where))
        rare = [name for name, part in read if counts.index[-1] in part["data_sha256"].to_pylist()]
        raise UserError(
            f"{where}: rows of {by} {mixed.index[0]} were made on different data (sha256: {told}); "
            f"move the foreign part out of the folder: the last of these is in {', '.join(rare) or 'no part here'}"
        )


def _completed(table: pyarrow.Table) -> pyarrow.Table:
    """The table with the settings as today's algorithms name them, where it has both columns."""
    import pyarrow as pa

    if not {"algorithm", "settings"} <= {*table.column_names}:
        return table
    written = table["settings"].to_pylist()
    names = table["algorithm"].to_pylist()
    whole = _whole(names, written)
    if whole == written:
        return table
    return table.set_column(table.column_names.index("settings"), "settings", pa.array(whole, pa.string()))


def _whole(algorithms: list[str], settings: list[str | None]) -> list[str | None]:
    # There are a hundred times as many rows as pairs.
    whole = {pair: pair[1] and completed(*pair) for pair in set(zip(algorithms, settings, strict=True))}
    if all(text == pair[1] for pair, text in whole.items()):
        return settings
    return [whole[pair] for pair in zip(algorithms, settings, strict=True)]


def _as_list(column: pyarrow.ChunkedArray) -> list[Any]:
    """Python values; arrays for lists of numbers."""
    import numpy as np

    found: list[Any] = []
    encoded, lists = hasattr(column.type, "index_type"), hasattr(column.type, "value_type")
    for chunk in column.chunks:
        # From the buffers: arrow's own ways load pandas or, of an encoded column, look up each word by itself.
        if chunk.null_count == len(chunk):
            found += [None] * len(chunk)
        elif encoded:
            words = np.array([*chunk.dictionary.to_pylist(), None], dtype=object)
            indices = np.frombuffer(chunk.indices.buffers()[1] or b"", np.int32)[chunk.offset :][: len(chunk)]
            found += words[np.where(_present(chunk.indices), indices, -1)].tolist()
        elif lists and not chunk.values.null_count:
            numbers = np.frombuffer(chunk.values.buffers()[1] or b"", np.float32)[chunk.values.offset :]
            ends, present = chunk.offsets.to_pylist(), _present(chunk).tolist()
            found += [
                numbers[low:high] if one else None for low, high, one in zip(ends, ends[1:], present, strict=False)
            ]
        elif lists:
            found += [None if each is None else np.array(each, np.float32) for each in chunk.to_pylist()]
        else:
            found += chunk.to_pylist()
    return found


def _present(chunk: pyarrow.Array) -> np.ndarray:
    """(len,) Which values are not null; to ask for them loads pyarrow.compute."""
    import numpy as np

    bits = chunk.buffers()[0]
    if bits is None:
        return np.ones(len(chunk), dtype=bool)
    return np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")[chunk.offset :][: len(chunk)].astype(bool)


def _schema(table: str, columns: list[str] | None = None, encoded: Sequence[str] = ()) -> pyarrow.Schema:
    import pyarrow as pa

    types = {"string": pa.string(), "double": pa.float64(), "int64": pa.int64(), "bool": pa.bool_(),
             "list": pa.list_(pa.float32()), "word": pa.dictionary(pa.int32(), pa.string())}  # fmt: skip
    kinds = TABLES[table] | dict.fromkeys(encoded, "word")
    return pa.schema(
        [(name, types[kinds[name]]) for name in TABLES[table] if columns is None or name in columns],
        metadata={"dpbench_schema": str(SCHEMA_VERSION)},
    )


def _conform(read: pyarrow.Table, schema: pyarrow.Schema) -> pyarrow.Table:
    """Give an older part today's order, and the columns that came later (as nulls)."""
    import pyarrow as pa

    known = set(read.column_names)
    columns = [read[field.name] if field.name in known else pa.nulls(len(read), field.type) for field in schema]
    # What has its type already is left alone: to cast loads pyarrow.compute.
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.table(columns, schema=schema)
