"""A table read by its public schema, for a comparison: as the estimators read it, with the rows held out apart."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpbench import schema as schemas
from dpbench.datasets import batches, tables
from dpbench.datasets.tables import Table
from dpbench.errors import DataError, UserError
from dpbench.schema import Schema, read_table
from dpbench.schema.encoding import encoding_of, target_values
from dpbench.schema.tables import parts

if TYPE_CHECKING:
    import pandas


def read(
    data: str | os.PathLike[str],
    schema: Any,
    *,
    target: str | None = None,
    holdout: float,
    precision: str,
    reading: dict[str, Any],
    progress: batches.Reading = lambda what, share: None,
) -> Table:
    """The rows of `data` as the schema makes numbers of them; nothing is taken from the data.

    A large file is read in batches, twice, into arrays that lie on disk. target: the column to predict, which has to
    be the schema's; None for that. reading: arguments of `tables.read`, which a schema takes the place of. Raises
    UserError, DataError.
    """
    for name, empty in (("row_bound", None), ("bounds", {}), ("drop", []), ("standardise", True)):
        if reading.get(name, empty) != empty:
            raise UserError(f"{name}: the schema says it; leave it out")
    found = schemas.load(schema)
    found.require_decided()
    what = found.target
    if target is not None and target != what.name:
        raise UserError(f"target: the schema's is {what.name}, got {target}")
    if what.classes is not None and len(what.classes) > 2:
        many = f"{what.name} has {len(what.classes)} classes"
        raise UserError(f"{many}; compare takes two (dpbench.PrivateClassifier takes more)")
    unit = 1.0 if what.bounds is None else (what.bounds[1] - what.bounds[0]) / 2
    kind = tables.large(data)
    notes: list[str] = []
    if kind is None:
        rows = _rows(data, found, read_table(data, found))
        used = tables.used_rows(len(rows.kept), holdout)
        of_use, apart = ((rows.X[which], rows.y[which]) for which in (used & rows.kept, ~used & rows.kept))
        left_out = int((~rows.kept).sum())
    else:
        notes.append(f"{data}: read in batches; its rows lie on disk as {precision}")
        of_use, apart, left_out, rows = _from_batches(data, found, holdout, precision, progress)
    if left_out:  # rows of zeros move no model, and there is nothing to judge by
        notes.append(f"{left_out:,} rows without a usable label or cell, zeros in a fit, are left out")
    table = Table(
        *of_use,
        "regression" if what.classes is None else "binary",
        rows.columns,
        [],
        "by its schema",
        apart if len(apart[1]) else None,
        unit,
        None if what.classes is None else (schemas.word(what.classes[0]), schemas.word(what.classes[1])),
        notes,
    )
    return table if kind is not None else tables.rounded(table, precision)


class _Rows(NamedTuple):
    """X (n, d), y (n,): numbers in [-1, 1], or -1 and +1; kept: the rows with something to learn or to judge by."""

    X: np.ndarray
    y: np.ndarray
    kept: np.ndarray
    columns: list[str]


def _rows(data: str | os.PathLike[str], schema: Schema, frame: pandas.DataFrame) -> _Rows:
    target = schema.target
    if target.name not in frame.columns:
        raise DataError(f"{data}: there is no column {target.name!r}, the schema's target")
    values, known = target_values(target, frame[target.name])
    encoding = encoding_of(schema, intercept=True)
    X = encoding.rows(frame, fitting=True)
    if target.classes is not None:
        values = np.where(values == 1, 1.0, -1.0)
    return _Rows(X, values.astype(np.float64), known & X.any(axis=1), encoding.names)


Arrays = tuple[np.ndarray, np.ndarray]


def _from_batches(
    data: str | os.PathLike[str],
    schema: Schema,
    holdout: float,
    precision: str,
    progress: batches.Reading,
) -> tuple[Arrays, Arrays, int, _Rows]:
    """((X, y) in use, (X, y) held out, how many rows are left out, the last batch): one pass counts, one writes."""
    draw, counts, first = np.random.default_rng(tables.SPLIT), np.zeros(2, dtype=int), None
    for frame in parts(data, schema, lambda share: progress("first pass", share)):
        if first is None:
            first = _rows(data, schema, frame.head(1))
        used = draw.random(len(frame)) >= holdout
        counts += [int(used.sum()), int((~used).sum())]
    if first is None:
        raise DataError(f"{data}: no rows")
    d = len(first.columns)
    places = [(batches.on_disk(n, d, precision), batches.on_disk(n, 0, np.float64)) for n in counts.tolist()]
    draw, done, left_out, rows = np.random.default_rng(tables.SPLIT), [0, 0], 0, first
    for frame in parts(data, schema, lambda share: progress("second pass", share)):
        used = draw.random(len(frame)) >= holdout
        rows = _rows(data, schema, frame)
        left_out += int((~rows.kept).sum())
        for i, which in enumerate((used & rows.kept, ~used & rows.kept)):
            (X, y), start, n = places[i], done[i], int(which.sum())
            X[start : start + n] = rows.X[which] * (tables.WITHIN if precision == "float32" else 1.0)
            y[start : start + n] = rows.y[which]
            done[i] += n
    of_use, apart = ((X[:n], y[:n]) for (X, y), n in zip(places, done, strict=True))
    return of_use, apart, left_out, rows
