"""A table read by its public schema, for a comparison: as the estimators read it, with the rows held out apart."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from dpbench import schema as schemas
from dpbench.datasets import tables
from dpbench.datasets.tables import Table
from dpbench.errors import DataError, UserError


def read(
    data: str | os.PathLike[str], schema: Any, *, holdout: float, precision: str, reading: dict[str, Any]
) -> Table:
    """The rows of `data` as the schema makes numbers of them; nothing is taken from the data.

    reading: arguments of `tables.read`, which a schema takes the place of. Raises UserError, DataError.
    """
    for name, empty in (("row_bound", None), ("bounds", {}), ("drop", []), ("standardise", True)):
        if reading.get(name, empty) != empty:
            raise UserError(f"{name}: the schema says it; leave it out")
    found = schemas.load(schema)
    found.require_decided()
    frame = tables.frame_of(data)
    target = found.target
    if target.name not in frame.columns:
        raise DataError(f"{data}: there is no column {target.name!r}, the schema's target")
    values, known = schemas.encode_target(target, frame[target.name])
    X, columns, _ = schemas.encode(found, frame)
    unit, classes = 1.0, None
    if target.classes is not None:
        if len(target.classes) > 2:
            many = f"{target.name} has {len(target.classes)} classes"
            raise UserError(f"{many}; compare takes two (dpbench.PrivateClassifier takes more)")
        values, classes = np.where(values == 1, 1.0, -1.0), (target.classes[0], target.classes[1])
    elif target.bounds is not None:
        unit = (target.bounds[1] - target.bounds[0]) / 2
    kept = known & X.any(axis=1)  # rows of zeros move no model, and there is nothing to judge by
    notes = (
        [f"{(~kept).sum():,} rows without a usable label or cell, zeros in a fit, are left out"]
        if not kept.all()
        else []
    )
    X, y = X[kept], values[kept].astype(np.float64)
    used = tables.used_rows(len(frame), holdout)[kept]
    table = Table(
        X[used],
        y[used],
        "regression" if classes is None else "binary",
        columns,
        [],
        "by its schema",
        (X[~used], y[~used]) if not used.all() else None,
        unit,
        classes,
        notes,
    )
    return tables.rounded(table, precision)
