"""A table and its schema before any fit: a draft of what is public, and what a fit would change."""

from __future__ import annotations

import os
from pathlib import Path

from dpbench import schema as schemas
from dpbench.errors import UserError
from dpbench.files import replacing
from dpbench.schema import Schema
from dpbench.schema.look import dialect_of
from dpbench.schema.tables import parts


def draft_schema(
    data: str | os.PathLike[str], target: str, *, out: str | os.PathLike[str] | None = None
) -> tuple[Schema, list[str]]:
    """A first schema of a csv, tsv or parquet file, and remarks for whoever decides: see `dpbench.schema.draft`.

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
    drafted, remarks = schemas.draft(parts(data, dialect := dialect_of(Path(data))), target, dialect)
    if out is not None:
        # Half a schema would pass for a whole one.
        with replacing(Path(out)) as staged:
            os.chmod(staged, 0o600)  # it tells of the data until it is decided
            staged.write_text(drafted.toml(), encoding="utf-8")
    return drafted, remarks


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
    return schemas.inspect(schema_of := schemas.load(schema), parts(data, schema_of))
