"""From a table to rows of ‖x‖₂ ≤ 1: a list of steps, each a function of one row and of public constants.

`encoding_of` makes an `Encoding` from a schema; `Encoding.rows` runs its steps, and an export walks the same steps, so
no cell is read in two ways. No cell makes a run fail: a cell that is missing, unreadable or not in the schema counts as
the schema says, so what a fit does depends on public values alone.

The length of a row: a number in [-1, 1] adds at most 1 to ‖x‖₂², a group of indicators adds 1, and a missing number is
0 in its own column and 1 in its indicator, so the two together add at most 1. The intercept adds 1. So no row is longer
than the square root of the number of these groups, by which all rows are divided.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dpbench.errors import UserError, nearest
from dpbench.schema.cells import Notation, codes, date_part, is_time, numbers, scaled
from dpbench.schema.schema import Column, Label, Schema, Target

if TYPE_CHECKING:
    import pandas

BLOCK = 1 << 16  # numbers of an array that are encoded at a time: they stay in a processor's cache
FRAME = 1 << 18  # of a table, where pandas takes as long for a column of few cells as for one of thousands


@dataclass(frozen=True, eq=False)
class Numbers:
    """Columns of numbers, each moved from its bounds to [-1, 1]; 0 where a cell is no number.

    columns: names of a table's columns, or places in an array's. low, high: (w,) bounds. written: w notations.
    """

    columns: tuple[Any, ...]
    low: np.ndarray
    high: np.ndarray
    written: tuple[Notation, ...]
    numeric = True

    @property
    def names(self) -> list[str]:
        """The w names of what the step makes."""
        return [str(column) for column in self.columns]

    def run(self, table: Any) -> tuple[np.ndarray, np.ndarray]:
        """(values (n, w), whether each cell is a number (n, w))."""
        if isinstance(table, np.ndarray):
            every = self.columns == tuple(range(table.shape[1]))
            cells = np.asarray(table if every else table[:, list(self.columns)], np.float64)
        else:
            cells = np.empty((len(table), len(self.columns)))
            for j, (name, notation) in enumerate(zip(self.columns, self.written, strict=True)):
                cells[:, j] = numbers(table[name], notation)
        return scaled(cells, self.low, self.high)


@dataclass(frozen=True, eq=False)
class DatePart:
    """A part of a date, moved from its range to [-1, 1]; 0 where the cell is no date."""

    column: str
    part: str
    low: float
    high: float
    order: str | None = None  # of day, month and year in texts that are not 2020-12-31: "dmy"
    numeric = True

    @property
    def names(self) -> list[str]:
        """The one name of what the step makes."""
        return [f"{self.column} ({self.part})"]

    def run(self, table: pandas.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """(values (n, 1), whether each cell is a date (n, 1))."""
        return scaled(date_part(table[self.column], self.part, self.order)[:, None], self.low, self.high)


@dataclass(frozen=True, eq=False)
class Categories:
    """The unit vector of a cell's category; zeros where the cell is none of `labels`."""

    column: str
    labels: tuple[Label, ...]
    numeric = False

    @property
    def names(self) -> list[str]:
        """The names of what the step makes, one for each category."""
        return [f"{self.column}={label}" for label in self.labels]

    def run(self, table: pandas.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """(values (n, w), whether each cell is a category (n, 1))."""
        each = codes(table[self.column], self.labels)[:, None] == np.arange(len(self.labels))
        return each.astype(float), each.any(axis=1, keepdims=True)


@dataclass(frozen=True)
class Missing:
    """1 where the step before, which has the one column, knows no value."""

    column: str

    @property
    def names(self) -> list[str]:
        """The one name of what the step makes."""
        return [f"{self.column} missing"]


Step: TypeAlias = Numbers | DatePart | Categories | Missing


@dataclass(frozen=True, eq=False)
class Encoding:
    """How rows are made: `steps` in the order of the columns of X.

    intercept: whether the first column is 1. bound: R at most √(groups), by which rows are divided, longer ones
    shortened; None: √(groups), and no row is longer. dropped: columns without whose cells a row is zeros in a fit.
    named: whether X is a table, whose columns have names. unused: columns that a table may have beside those used.
    """

    steps: tuple[Step, ...]
    intercept: bool
    bound: float | None = None
    dropped: frozenset[Any] = frozenset()
    named: bool = True
    unused: frozenset[str] = frozenset()

    @cached_property
    def names(self) -> list[str]:
        """The d names of the columns of X."""
        return ["intercept"] * self.intercept + [name for step in self.steps for name in step.names]

    @cached_property
    def columns(self) -> list[Any]:
        """The table's columns that are used, in the schema's order."""
        used = [step.columns if isinstance(step, Numbers) else (step.column,) for step in self.steps]
        return list(dict.fromkeys(name for names in used for name in names))

    @cached_property
    def numbers(self) -> np.ndarray:
        """(d,) of bool: the columns of numbers; the indicator of a missing number is one of them."""
        flags, before = [False] * self.intercept, False
        for step in self.steps:
            before = before if isinstance(step, Missing) else step.numeric
            flags += [before] * len(step.names)
        return np.array(flags)

    @property
    def groups(self) -> tuple[int, int]:
        """(what numbers add at most to ‖x‖₂², what all other columns add), before rows are divided."""
        most = sum(len(step.names) for step in self.steps if not isinstance(step, Missing) and step.numeric)
        others = sum(isinstance(step, Categories) for step in self.steps)
        return most, self.intercept + others

    @property
    def unit(self) -> float:
        """What rows are divided by."""
        return math.sqrt(sum(self.groups)) if self.bound is None else self.bound

    def rows(self, table: Any, *, fitting: bool = False, dtype: Any = np.float64) -> np.ndarray:
        """Rows (n, d) of ‖x‖₂ ≤ 1.

        Args:
            table: a DataFrame, or an array (n, columns) of an encoding by places.
            fitting: whether rows without a cell of a column of `dropped` become zeros; where a model predicts, such
                cells count as the middle.
            dtype: float64, or float32, to which the numbers are rounded at the end.

        Raises:
            UserError: where its columns, which are public, are not those of the schema; for nothing else.
        """
        if self.named:
            check_columns(self, table)
        n, d = len(table), len(self.names)
        X = np.empty((n, d), dtype)
        # As many rows as keep a block in the cache, whatever the number of columns.
        some = max(1, (FRAME if self.named else BLOCK) // d)
        workspace = np.empty((min(n, some), d))
        for start in range(0, n, some):
            rows = slice(start, start + some)
            block = workspace[: len(X[rows])]
            self._write(table.iloc[rows] if self.named else table[rows], block, fitting)
            X[rows] = block
        return X

    def _write(self, table: Any, X: np.ndarray, fitting: bool) -> None:
        """Rows of `table` into X."""
        X[:, : self.intercept] = 1.0
        at, zero = int(self.intercept), np.zeros(len(X), bool)
        known = np.ones((len(X), 1), bool)
        for step in self.steps:
            if isinstance(step, Missing):
                # What the step before did not know; its own columns are 0 there.
                part = ~known
            else:
                part, known = step.run(table)
                if fitting and self.dropped:
                    names = step.columns if isinstance(step, Numbers) else (step.column,)
                    zero |= (~known & np.isin(names, list(self.dropped))).any(axis=1)
            X[:, at : at + part.shape[1]] = part
            at += part.shape[1]
        # Not left out: the number of rows is public, and a row of zeros moves no model.
        X[zero] = 0.0
        X /= self.unit
        if self.bound is not None:
            # After all are divided by the bound, so that only rows beyond it are shortened.
            X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]


def encoding_of(schema: Schema, *, intercept: bool, positional: bool = False) -> Encoding:
    """The encoding that a schema says; columns of numbers that stand together are one step.

    Args:
        schema: columns and target.
        intercept: whether X starts with a column of 1.
        positional: whether X is an array, whose columns are the schema's by their places.
    """
    steps: list[Step] = []
    together: dict[Any, Column] = {}  # columns of numbers since the last step of another kind

    def join() -> None:
        if together:
            low, high = np.array([column.bounds for column in together.values()], float).T
            steps.append(
                Numbers(tuple(together), low, high, tuple(notation_of(column) for column in together.values()))
            )
            together.clear()

    for place, (name, column) in enumerate(schema.columns.items()):
        if column.drop:
            continue
        # Columns of numbers side by side are one step, which is one call of NumPy and one node of a graph.
        alone = column.bounds is None or column.missing == "indicator"  # an indicator is of the one step before it
        if alone:
            join()
        if column.bounds is not None:
            together[place if positional else name] = column
        elif column.date is not None:
            steps += [DatePart(name, part, *ends, column.order) for part, ends in column.parts]
        else:
            assert column.categories is not None
            steps.append(Categories(name, column.categories))
        if alone:
            join()
        if column.missing == "indicator":
            steps.append(Missing(name))
    join()
    every = {place if positional else name: column for place, (name, column) in enumerate(schema.columns.items())}
    dropped = frozenset(name for name, column in every.items() if column.missing == "drop" and not column.drop)
    unused = frozenset([schema.target.name, *(name for name, column in schema.columns.items() if column.drop)])
    if schema.unit is not None:
        unused |= {schema.unit}
    return Encoding(tuple(steps), intercept, schema.row_bound, dropped, not positional, unused)


def notation_of(one: Column | Target) -> Notation:
    """How the numbers of a column or of the target are written as text."""
    return Notation(one.prefix, one.suffix, one.thousands, one.decimal)


def check_columns(encoding: Encoding, table: pandas.DataFrame) -> None:
    """UserError unless `check_names` takes the table's columns, and none of numbers has a type of dates."""
    if not hasattr(table, "columns"):
        raise UserError("X: give a pandas DataFrame, whose columns the schema names")
    check_names(encoding, list(table.columns))
    for step in encoding.steps:
        for name in step.columns if isinstance(step, Numbers) else ():
            if is_time(table[name]):  # the type of a column is public; each of its cells would count as missing
                raise UserError(
                    f'columns.{name}: dates have no bounds; give date = ["year", …], or make numbers of them before'
                )


def check_names(encoding: Encoding, there: list[Any]) -> None:
    """UserError unless every column is there, once, and no other but the target and those to drop."""
    if len(set(there)) < len(there):
        raise UserError(f"two columns are called {min(str(one) for one in there if there.count(one) > 1)}; rename one")
    for name in encoding.columns:
        if name not in there and name in map(str, there):
            raise UserError(f"the name of column {name} in X is no text: X.columns = X.columns.astype(str)")
        if name not in there:
            raise UserError(f"there is no column {name!r}, which the schema has; {nearest(name, map(str, there))}")
    allowed = {*encoding.columns, *encoding.unused}
    # An unnamed column more could be the target under another name, so it is no oversight to pass by.
    if more := [name for name in there if name not in allowed]:
        shown = ", ".join(map(repr, more[:5])) + (" …" if len(more) > 5 else "")
        raise UserError(f"the schema does not have the column {shown}: give bounds, categories or date, or drop = true")


def target_cells(target: Target, values: Any) -> np.ndarray:
    """(n,) the cells as a model predicts them: classes of the schema's type, numbers; an unknown label as it is.

    What a cell becomes depends on it alone; where all labels are known, they are an array of their type.
    """
    if target.classes is None:
        return numbers(values, notation_of(target))
    places = codes(values, target.classes)
    labels, typed = np.fromiter(target.classes, dtype=object), np.array(target.classes)
    unknown = places < 0
    if not unknown.any() and typed.tolist() == labels.tolist():
        labels = typed
    found: np.ndarray = labels[places]
    found[unknown] = np.asarray(values, dtype=object)[unknown]
    return found


def target_values(target: Target, values: Any) -> tuple[np.ndarray, np.ndarray]:
    """(values (n,), known (n,) of bool): the place of a class, or a number in [-1, 1]; 0 where it is not known.

    The row of an unknown label has to be set to zeros: it moves no model, and the number of rows stays what it is.
    """
    if target.classes is not None:
        indices = codes(values, target.classes)
        return np.maximum(indices, 0), indices >= 0
    assert target.bounds is not None
    cells, known = scaled(numbers(values, notation_of(target))[:, None], *target.bounds)
    return cells[:, 0], known[:, 0]
