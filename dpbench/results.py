"""The parquet store: part files written once, atomically, read as one table.

`results/<profile>/<experiment>/runs/*.parquet` has one row per job, `…/traces/*.parquet` one per recorded
iteration. A part is written to a temporary name and renamed, so a reader, or the run after a crash, sees whole
parts or none; a job's traces land before its row, so a row's traces are always there.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from dpbench.errors import UserError, reason

if TYPE_CHECKING:
    import pandas
    import pyarrow

SCHEMA_VERSION = 1
STALE = 3600.0  # seconds: older temporary files belong to no running process

RUNS = {
    "experiment": "string",
    "problem": "string",
    "algorithm": "string",
    "epsilon": "double",
    "delta": "double",
    "seed": "int64",
    "settings": "string",
    "T": "int64",
    "sweep": "string",  # the settings of a sweep and their values, null for a single run
    "objective": "double",
    "excess": "double",
    "gradient_norm": "double",
    "accuracy": "double",
    "seconds": "double",
    "status": "string",
    "error": "string",
    "epsilon_spent": "double",
    "epsilon_accounted": "double",
    "checked_by": "string",
    "relation": "string",
    "accounting": "string",
    "private": "bool",
    "timed": "int64",
    "iterations": "int64",
    "gradient_evaluations": "int64",
    "hessian_evaluations": "int64",
    "lambda_min": "double",
    "support_correct": "int64",  # non-zeros of w that w* has too, and that it has not (l1 problems)
    "support_wrong": "int64",
    "measured": "double",  # what the algorithm's `measure` says, its error, and the bound of its theorem
    "measured_error": "double",
    "bound": "double",
    "notes": "string",
    "values": "list",  # a sweep's excess losses; what else a run or a probe measures as a vector
    "key": "string",
    "code_version": "string",
    "data_sha256": "string",
    "environment": "string",
}
TRACES = {"key": "string", "iteration": "int64", "passes": "double", "seconds": "double", "excess": "double"}
TABLES = {"runs": RUNS, "traces": TRACES}


class Store:
    """The results of one experiment under one profile."""

    def __init__(self, root: str | os.PathLike, profile: str, experiment: str):
        self.experiment = experiment
        self.folder = Path(root) / profile / experiment

    def write(self, runs: list[dict], traces: list[dict]) -> None:
        """Add one batch's rows: durable when this returns. Raises UserError if the folder cannot be written."""
        for row in runs:
            row["experiment"] = self.experiment
        if traces:
            self._write_part("traces", traces)
        if runs:
            self._write_part("runs", runs)

    def prepare(self) -> None:
        """Make the folders, so that one that cannot be written is named before hours of work; UserError if so."""
        for table in TABLES:
            with self._explained(self.folder / table):
                (self.folder / table).mkdir(parents=True, exist_ok=True)
                tempfile.TemporaryFile(dir=self.folder / table).close()
                _sweep(self.folder / table)

    @staticmethod
    @contextlib.contextmanager
    def _explained(folder: Path):
        try:
            yield
        except OSError as error:
            raise UserError(
                f"cannot write results to {folder}: {reason(error)}; what was finished before is kept"
            ) from error

    def runs(self) -> pandas.DataFrame:
        """All rows, one per key: a finished row beats a failed one, a later part an earlier one."""
        frame = self._read("runs")
        frame = frame.assign(_failed=frame["status"].eq("failed"))
        frame = frame.sort_values("_failed", ascending=False, kind="stable").drop_duplicates("key", keep="last")
        return frame.drop(columns="_failed").sort_index().reset_index(drop=True)

    def traces(self, keys: Iterable[str] | None = None) -> pandas.DataFrame:
        """All recorded iterations, or those of `keys`; one row per (key, iteration)."""
        frame = self._read("traces", None if keys is None else list(keys))
        return frame.drop_duplicates(["key", "iteration"], keep="last").reset_index(drop=True)

    def finished(self) -> set[str]:
        """Keys of the jobs that need not run again (everything but failures)."""
        return {key for key, status in self.statuses().items() if status != "failed"}

    def traced(self) -> set[str]:
        """Keys that have traces."""
        return set(self._read("traces")["key"])

    def statuses(self) -> dict[str, str]:
        """key → status."""
        frame = self.runs()
        return dict(zip(frame["key"], frame["status"], strict=True))

    def compact(self) -> None:
        """Merge the parts into one file per table. A crash in between leaves duplicates, which reading drops."""
        for table, read in (("traces", self.traces), ("runs", self.runs)):
            parts = self._parts(table)
            if len(parts) < 2:
                continue
            frame = read().sort_values("key" if table == "runs" else ["key", "iteration"])
            self._write_part(table, frame)
            for part in parts:
                part.unlink(missing_ok=True)

    def _parts(self, table: str) -> list[Path]:
        return sorted((self.folder / table).glob("*.parquet"))

    def _read(self, table: str, keys: list[str] | None = None) -> pandas.DataFrame:
        import pyarrow as pa

        filters = None if keys is None else [("key", "in", keys)]
        for _ in range(100):
            parts = self._parts(table) if keys is None or keys else []
            try:
                return pa.concat_tables([_schema(table).empty_table(), *_tables(table, parts, filters)]).to_pandas()
            except FileNotFoundError:
                continue  # another process has just merged a part into a newer one: list them again
        raise UserError(f"cannot read results from {self.folder / table}: its files keep disappearing")

    def _write_part(self, table: str, rows: list[dict] | pandas.DataFrame) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = _schema(table)
        if isinstance(rows, list):
            unknown = sorted({name for row in rows for name in row} - set(schema.names))
            if unknown:
                raise ValueError(f"columns {', '.join(unknown)} are not in the {table} schema")
            data = pa.Table.from_pylist(rows, schema)
        else:
            data = pa.Table.from_pandas(rows, schema, preserve_index=False)
        folder = self.folder / table
        final = folder / f"{time.time_ns():020d}-{uuid.uuid4().hex[:8]}.parquet"
        temporary = final.with_suffix(".tmp")
        with self._explained(folder):
            folder.mkdir(parents=True, exist_ok=True)
            try:
                pq.write_table(data, temporary, compression="zstd", compression_level=9)
                os.replace(temporary, final)
            except OSError:
                with contextlib.suppress(OSError):
                    temporary.unlink(missing_ok=True)
                raise


def _tables(table: str, parts: list[Path], filters) -> Iterator[pyarrow.Table]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    for part in parts:
        try:
            read = pq.read_table(part, filters=filters)
        except FileNotFoundError:
            raise
        except (pa.ArrowInvalid, OSError) as error:
            if getattr(error, "errno", None):  # the part may be sound, and the disk or its rights are not
                raise UserError(f"cannot read results from {part}: {reason(error)}") from error
            broken = part.with_suffix(".broken")
            with contextlib.suppress(OSError):
                part.rename(broken)
            print(f"warning: {part} is not readable, set aside as {broken.name} ({error})", file=sys.stderr)
            continue
        yield _conform(read, table)


def _sweep(folder: Path) -> None:
    """Remove what writers left that were killed."""
    for leftover in folder.glob("*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - leftover.stat().st_mtime > STALE:
                leftover.unlink()


def _schema(table: str) -> pyarrow.Schema:
    import pyarrow as pa

    types = {"string": pa.string(), "double": pa.float64(), "int64": pa.int64(), "bool": pa.bool_(),
             "list": pa.list_(pa.float32())}  # fmt: skip
    return pa.schema(
        [(name, types[kind]) for name, kind in TABLES[table].items()],
        metadata={"dpbench_schema": str(SCHEMA_VERSION)},
    )


def _conform(read: pyarrow.Table, table: str) -> pyarrow.Table:
    """Give an older part the columns that came later (as nulls), in today's order."""
    import pyarrow as pa

    schema = _schema(table)
    columns = [
        read[field.name].cast(field.type) if field.name in read.column_names else pa.nulls(len(read), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
