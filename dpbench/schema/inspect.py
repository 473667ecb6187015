"""What a schema does to a table, cell by cell: for whoever owns the data, before a private fit.

The answer is exact, so it is not private: it must not leave with the model. A table may come in parts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbench.frames import RowNumbers
from dpbench.schema.draft import in_parts
from dpbench.schema.encode import check_columns, date_part, encode, encode_target, numbers, places, words
from dpbench.schema.schema import Column, Schema, Target

if TYPE_CHECKING:
    import pandas


def inspect(schema: Schema, table: pandas.DataFrame | Iterable[pandas.DataFrame]) -> list[str]:
    """One line for everything that a fit would replace, cut off or shorten; none where it takes all cells as they are.

    UserError where the columns are not those of the schema.
    """
    columns = {name: _Column(name, column) for name, column in schema.columns.items() if not column.drop}
    target, labelled = _Target(schema.target), False
    rows = longer = 0
    whole = Schema(target=schema.target, columns=schema.columns)
    for part in in_parts(table):
        check_columns(schema, list(part.columns))
        for name, one in columns.items():
            one.add(part[name])
        if schema.target.name in part.columns:
            labelled = True
            target.add(part[schema.target.name])
        if schema.row_bound is not None:
            made = encode(whole, part)
            longer += int((np.linalg.norm(made.X * made.unit, axis=1) > schema.row_bound * (1 + 1e-12)).sum())
        rows += len(part)
    found = [f"schema: {line} came from the data: decide" for line in schema.undecided]
    found += [f"{name}: {line}" for name, one in columns.items() for line in one.lines()]
    found += [f"{schema.target.name}: {line}" for line in target.lines()] if labelled else []
    return found + ([f"row_bound: {longer:,} of {rows:,} rows are shortened"] if longer else [])


class _Column:
    """Counts of one column."""

    def __init__(self, name: str, column: Column) -> None:
        self._column, self._numbers = column, RowNumbers(name)
        self._allowed = set(places(column.categories or ()))
        self._rows = self._gaps = self._strange = self._beyond = 0

    def add(self, values: Any) -> None:
        column, as_numbers, missing = self._column, numbers(values), values.isna().to_numpy()
        self._numbers.add(as_numbers)
        if column.bounds is not None:
            unknown = np.isnan(as_numbers)
            self._beyond += _beyond(as_numbers, column.bounds)
        elif column.date is not None:
            unknown = np.isnan(date_part(values, column.date[0]))
        else:
            unknown = np.array([text not in self._allowed for text in words(values)], dtype=bool)
        self._rows += len(values)
        self._gaps += int(missing.sum())
        self._strange += int((unknown & ~missing).sum())

    def lines(self) -> list[str]:
        if self._numbers.are:
            return ["looks like a row number or identifier, which only identifies rows: drop = true"]
        column, of = self._column, f"of {self._rows:,}"
        what = (
            "number" if column.bounds is not None else "date" if column.date is not None else "category of the schema"
        )
        lines = [f"{self._gaps:,} {of} cells are missing"] if self._gaps else []
        lines += [f"{self._strange:,} {of} cells are no {what}"] if self._strange else []
        if self._beyond and column.bounds is not None:
            lines.append(_said(self._beyond, self._rows, column.bounds))
        return lines


class _Target:
    """Counts of the target."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._rows = self._lost = self._beyond = 0
        self._seen: set[int] = set()

    def add(self, values: Any) -> None:
        found, known = encode_target(self._target, values)
        self._rows += len(known)
        self._lost += int((~known).sum())
        if self._target.bounds is not None:
            self._beyond += _beyond(numbers(values), self._target.bounds)
        else:
            self._seen |= set(found[known].tolist())

    def lines(self) -> list[str]:
        lines = [f"{self._lost:,} rows have no usable label; they become rows of zeros"] if self._lost else []
        if self._target.bounds is not None:
            return lines + ([_said(self._beyond, self._rows, self._target.bounds)] if self._beyond else [])
        classes = enumerate(self._target.classes or ())
        return lines + [f"no row has the class {label}" for i, label in classes if i not in self._seen]


def _beyond(values: np.ndarray, bounds: tuple[float, float]) -> int:
    return int(((values < bounds[0]) | (values > bounds[1])).sum())


def _said(beyond: int, rows: int, bounds: tuple[float, float]) -> str:
    return f"{beyond:,} of {rows:,} values lie beyond {bounds[0]:g} to {bounds[1]:g}"
