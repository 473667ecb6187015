"""What a schema does to a table, cell by cell: for whoever owns the data, before a private fit.

The answer is exact, so it is not private: it must not leave with the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpbench.schema.draft import is_row_number
from dpbench.schema.encode import check_columns, date_part, encode, encode_target, numbers, words
from dpbench.schema.schema import Column, Schema

if TYPE_CHECKING:
    import pandas


def inspect(schema: Schema, frame: pandas.DataFrame) -> list[str]:
    """One line for everything that a fit would replace, cut off or shorten; none where it takes all cells as they are.

    UserError where the columns are not those of the schema.
    """
    check_columns(schema, list(frame.columns))
    found = [f"schema: {line} came from the data: decide" for line in schema.undecided]
    for name, column in schema.columns.items():
        if not column.drop:
            found += [f"{name}: {line}" for line in _column(name, column, frame[name])]
    if schema.target.name in frame.columns:
        values, known = encode_target(schema.target, frame[schema.target.name])
        if lost := int((~known).sum()):
            found.append(f"{schema.target.name}: {lost:,} rows have no usable label; they become rows of zeros")
        if schema.target.bounds is not None:
            found += _beyond(schema.target.name, numbers(frame[schema.target.name]), schema.target.bounds)
        elif schema.target.classes is not None:
            seen = set(values[known].tolist())
            empty = [label for i, label in enumerate(schema.target.classes) if i not in seen]
            found += [f"{schema.target.name}: no row has the class {label}" for label in empty]
    if schema.row_bound is not None:
        whole = encode(Schema(target=schema.target, columns=schema.columns), frame)
        longer = int((np.linalg.norm(whole.X * whole.unit, axis=1) > schema.row_bound * (1 + 1e-12)).sum())
        found += [f"row_bound: {longer:,} of {len(frame):,} rows are shortened"] if longer else []
    return found


def _column(name: str, column: Column, values: Any) -> list[str]:
    if is_row_number(name, values):
        return ["looks like a row number, which only identifies rows: drop = true"]
    if column.bounds is not None:
        as_numbers = numbers(values)
        return _unknown(np.isnan(as_numbers), values, "number") + _beyond("", as_numbers, column.bounds)
    if column.date is not None:
        return _unknown(np.isnan(date_part(values, column.date[0])), values, "date")
    allowed = set(column.categories or ())
    return _unknown(np.array([text not in allowed for text in words(values)]), values, "category of the schema")


def _unknown(unknown: np.ndarray, values: Any, what: str) -> list[str]:
    missing = values.isna().to_numpy()
    gaps, strange = int(missing.sum()), int((unknown & ~missing).sum())
    lines = [f"{gaps:,} of {len(values):,} cells are missing"] if gaps else []
    return lines + ([f"{strange:,} of {len(values):,} cells are no {what}"] if strange else [])


def _beyond(name: str, values: np.ndarray, bounds: tuple[float, float]) -> list[str]:
    beyond = int(((values < bounds[0]) | (values > bounds[1])).sum())
    where = f"{name}: " if name else ""
    return [f"{where}{beyond:,} of {len(values):,} values lie beyond {bounds[0]:g} to {bounds[1]:g}"] if beyond else []
