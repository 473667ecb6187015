"""From columns of a table to numbers: a first pass over the rows collects what the second one needs to write them.

Statistics (means, deviations) come from the rows in use alone, never from those held out; categories, and what is
missing, from all. Both passes see the table in frames of any number of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbench.datasets.recipes import LARGEST
from dpbench.errors import DataError, UserError, nearest
from dpbench.frames import RowNumbers

if TYPE_CHECKING:
    import pandas

CATEGORIES = 100  # more in one column are taken for a mistake: a name, a date, an identifier
CLASSES = 10  # so few whole numbers in a target may be classes: the user has to say


@dataclass
class Told:
    """What is said of a table on the way: steps in words, warnings of what used the data, and the rest."""

    steps: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass
class Moments:
    """Count, mean, sum of squared deviations and range of a stream of numbers (Chan, Golub and LeVeque 1979)."""

    count: int = 0
    mean: float = 0.0
    square: float = 0.0
    low: float = np.inf
    high: float = -np.inf

    def add(self, values: np.ndarray) -> None:
        if not len(values):
            return
        n, mean = len(values), float(values.mean())
        total, step = self.count + n, mean - self.mean
        self.square += float(((values - mean) ** 2).sum()) + step**2 * self.count * n / total
        self.mean += step * n / total
        self.count = total
        self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))

    @property
    def deviation(self) -> float:
        """0 exactly where all are equal: the rounding of a mean must not be blown up to unit variance."""
        return float(np.sqrt(self.square / self.count)) if self.high > self.low else 0.0


@dataclass
class Column:
    """What is known of a column: moments of a number, or the labels of a category; whether it only identifies rows."""

    name: str
    numeric: bool
    identifies: RowNumbers
    moments: Moments = field(default_factory=Moments)
    labels: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Labels:
    """How the target becomes y. task: "binary" or "regression"; classes: what -1 and +1 are; scale: see `Encoding`."""

    name: str
    task: str
    classes: tuple[Any, Any] | None = None
    scale: tuple[float, float, bool] = (0.0, 1.0, False)

    def write(self, column: pandas.Series) -> np.ndarray:
        """y (n,)."""
        if self.classes is not None:
            return np.where(column.to_numpy() == self.classes[1], 1.0, -1.0)
        return _scaled(column, self.scale)


@dataclass(frozen=True)
class Encoding:
    """How rows of a frame become numbers: `columns` of X, made by `write`, and y.

    scales: column → (centre, unit, cut): (value - centre)/unit, cut off at ±1 where `cut`. labels: of the categorical
    ones.
    """

    columns: list[str]
    scales: Mapping[str, tuple[float, float, bool]]
    labels: Mapping[str, list[str]]
    target: Labels

    def write(self, frame: pandas.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """X (n, d), an intercept first, and y (n,)."""
        parts = [np.ones((len(frame), 1))]
        for name in frame.columns:
            if name in self.scales:
                parts.append(_scaled(frame[name], self.scales[name])[:, None])
            elif name in self.labels:
                parts.append(_one_hot(_words(frame[name]), self.labels[name]))
        return np.hstack(parts), self.target.write(frame[self.target.name])


class Target:
    """The first pass over the target. path: for messages; bounds: public ones, of a number; task: None decides."""

    def __init__(self, path: Any, name: str, task: str | None, bounds: tuple[float, float] | None = None) -> None:
        if task not in (None, "binary", "regression"):
            raise UserError(f"task must be binary or regression, got {task!r}")
        self.path, self.name, self.task, self.bounds = path, name, task, bounds
        self.values: set[Any] = set()  # up to a few more than could be classes
        self.moments = Moments()
        self.whole = self.numeric = True

    def add(self, column: pandas.Series, used: np.ndarray) -> None:
        """Look at some rows; used: those that statistics may come from."""
        numeric = is_number(column)
        self.numeric &= numeric
        if len(self.values) <= CATEGORIES:
            self.values.update(column.unique().tolist())
        if numeric:
            values = column.to_numpy(dtype=float)
            self.whole &= bool((values == np.round(values)).all())
            self.moments.add(values[used])

    def labels(self, told: Told) -> Labels:
        """What y is to be; a message says so, too."""
        values, name = self._sorted(), self.name
        if len(values) < 2:
            raise DataError(f"{self.path}: {name} has the one value {values[0]!s}; there is nothing to predict")
        if self.task == "binary" or (self.task is None and len(values) == 2):
            if len(values) != 2:
                raise DataError(f"{self.path}: {name} has {len(values)} values, a binary target has two")
            told.steps.append(f"{name} = {values[1]!s} is +1, {values[0]!s} is -1")
            return Labels(name, "binary", (values[0], values[1]))
        if not self.numeric:
            raise DataError(
                f"{self.path}: {name} has {len(values)} classes ({some(values)}); two classes or numbers only "
                "(dpbench.PrivateClassifier takes more)"
            )
        if self.task is None and self.whole and len(values) <= CLASSES:
            raise DataError(
                f"{self.path}: {name} has {len(values)} whole values ({some(values)}): numbers or classes? As numbers: "
                "loss squared (task='regression'); as classes: dpbench.PrivateClassifier takes more than two"
            )
        if self.bounds is not None:
            low, high = self.bounds
            told.steps.append(f"{name} from [{low:g}, {high:g}] to [-1, 1]")
            return Labels(name, "regression", scale=((low + high) / 2, (high - low) / 2, True))
        mean, deviation = self.moments.mean, self.moments.deviation
        told.steps.append(f"{name} standardised (mean {mean:.4g}, deviation {deviation:.4g})")
        told.warnings.append(f"mean and deviation of {name} come from the data; give its bounds to avoid that")
        return Labels(name, "regression", scale=(mean, deviation or np.inf, False))

    def _sorted(self) -> list[Any]:
        try:
            return sorted(self.values)
        except TypeError:
            raise DataError(f"{self.path}: {self.name} mixes numbers and words; make it one or the other") from None


class Scan:
    """The first pass over a table. Raises UserError, DataError in one line that names the column.

    path: for messages. target, bounds, standardise, drop, task: as of `tables.read`.
    """

    def __init__(
        self,
        path: Any,
        target: str,
        *,
        bounds: Mapping[str, tuple[float, float]],
        standardise: bool,
        drop: Iterable[str],
        task: str | None,
    ) -> None:
        self.path, self.bounds, self.drop, self.standardise = path, dict(bounds), list(drop), standardise
        if target in self.drop:
            raise UserError(f"drop: {target} is the target; leave it in")
        for name, (low, high) in self.bounds.items():
            if not -np.inf < low < high < np.inf:
                raise UserError(f"bounds of {name}: low < high are needed, got {low:g} and {high:g}")
        self.target = Target(path, target, task, self.bounds.get(target))
        self.columns: dict[str, Column] = {}
        self.missing: dict[str, int] = {}

    def add(self, frame: pandas.DataFrame, used: np.ndarray) -> None:
        """Look at some rows; used (len(frame),): those that statistics may come from."""
        if not self.columns:
            self._start(frame)
        for name in (*self.columns, self.target.name):
            column = frame[name]
            if gaps := int(column.isna().sum()) + _infinite(column):
                self.missing[name] = self.missing.get(name, 0) + gaps
            elif name == self.target.name:
                self.target.add(column, used)
            elif self.columns[name].numeric:
                values = column.to_numpy(dtype=float)
                self.columns[name].moments.add(values[used])
                self.columns[name].identifies.add(values)
            elif len(self.columns[name].labels) <= CATEGORIES:
                self.columns[name].labels.update(np.unique(_words(column)))

    def _start(self, frame: pandas.DataFrame) -> None:
        names = list(frame.columns)
        if not frame.columns.is_unique:
            twice = some(frame.columns[frame.columns.duplicated()].unique())
            raise DataError(f"{self.path}: two columns are called {twice}; rename one")
        for name in (self.target.name, *self.bounds, *self.drop):
            if name not in names:
                hint = "; it has one column: separators known are , ; tab |" if len(names) == 1 else ""
                if all(map(_reads_as_number, names)):
                    hint = "; its first line holds numbers: put a line of names before it"
                raise UserError(f"{self.path}: there is no column {name!r}; {nearest(name, names)}{hint}")
        for name in names:
            if name in (self.target.name, *self.drop):
                continue
            self.columns[name] = Column(name, is_number(frame[name]), RowNumbers(name))
            if name in self.bounds and not self.columns[name].numeric:
                raise UserError(f"{self.path}: {name} is not a column of numbers: it takes no bounds")
        if not self.columns:
            raise DataError(f"{self.path}: no columns besides the target")

    def encoding(self, told: Told) -> Encoding:
        """What to write; a message says so, too."""
        if self.missing:
            shown = some([f"{name} ({count:,})" for name, count in self.missing.items()])
            raise DataError(
                f"{self.path}: missing or infinite (beyond {LARGEST:g}) values in {shown}; a schema says what they "
                "count as (dpbench schema)"
            )
        target = self.target.labels(told)
        scales: dict[str, tuple[float, float, bool]] = {}
        labels: dict[str, list[str]] = {}
        names, constant = ["intercept"], []
        numbers = [one.name for one in self.columns.values() if one.identifies.are and one.name not in self.bounds]
        for name, column in self.columns.items():
            if name in numbers:
                continue
            if not column.numeric:
                labels[name] = sorted(column.labels)
                if len(labels[name]) > CATEGORIES:
                    many = f"{len(labels[name]):,} categories"
                    raise DataError(f"{self.path}: column {name} has {many}; drop it (drop) or group them first")
                names += [f"{name}={label}" for label in labels[name]]
                constant += [name] if len(labels[name]) == 1 else []
                continue
            if not column.moments.deviation:
                constant.append(name)
                if self.standardise and name not in self.bounds:
                    continue  # zeros, which methods that release single coordinates cannot hide
            names.append(name)
            scales[name] = self._scale(column)
        if numbers:
            verb = "only identifies rows and is" if len(numbers) == 1 else "only identify rows and are"
            told.notes.append(f"{some(numbers)} {verb} left out; bounds keep a column")
        if len(constant) + len(numbers) == len(self.columns):
            if numbers and not constant:
                raise DataError(f"{self.path}: no columns besides the target and row numbers ({some(numbers)})")
            raise DataError(f"{self.path}: every column besides the target has one value only; there is nothing to use")
        if constant:
            told.notes.append(
                f"{some(constant)}: the same in all rows, which says nothing: left out, unless bounds are given"
            )
        if labels:
            told.warnings.append("the categories of the categorical columns are those found in the data")
        loose = [name for name in scales if name not in self.bounds]
        if loose and self.standardise:
            told.steps.append("numeric columns standardised")
            told.warnings.append(
                f"mean and deviation of {some(loose)} come from the data; give bounds that you know to avoid that"
            )
        return Encoding(names, scales, labels, target)

    def _scale(self, column: Column) -> tuple[float, float, bool]:
        if column.name in self.bounds:
            low, high = self.bounds[column.name]
            return (low + high) / 2, (high - low) / 2, True
        if self.standardise:
            return column.moments.mean, column.moments.deviation, False
        return 0.0, 1.0, False

    @property
    def public_bound(self) -> float | None:
        """√(columns read + 1), about the length of a row; None where neither bounds nor deviations set the units."""
        loose = any(
            column.numeric and column.name not in self.bounds and not column.identifies.are
            for column in self.columns.values()
        )
        return None if loose and not self.standardise else float(len(self.columns) + 1) ** 0.5


def is_number(column: pandas.Series) -> bool:
    """Whether a column holds numbers; true and false are categories."""
    import pandas as pd

    return bool(pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column))


def _infinite(column: pandas.Series) -> int:
    """How many of its numbers are infinite, or too large to be squared."""
    return int((np.abs(column.to_numpy(dtype=float, na_value=np.nan)) > LARGEST).sum()) if is_number(column) else 0


def _reads_as_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def some(names: Iterable[object]) -> str:
    """A list in words, cut after five."""
    listed = [str(name) for name in names]
    return ", ".join(listed[:5]) + (f" and {len(listed) - 5} more" if len(listed) > 5 else "")


def _scaled(column: pandas.Series, scale: tuple[float, float, bool]) -> np.ndarray:
    centre, unit, cut = scale
    values = (column.to_numpy(dtype=float) - centre) / unit
    return np.clip(values, -1, 1) if cut else values


def _words(column: pandas.Series) -> np.ndarray:
    return column.astype(str).to_numpy(dtype=str)


def _one_hot(values: np.ndarray, labels: list[str]) -> np.ndarray:
    """(n, number of labels) of 0/1; labels are sorted and hold every value."""
    coded = np.zeros((len(values), len(labels)))
    coded[np.arange(len(values)), np.searchsorted(np.array(labels), values)] = 1.0
    return coded
