"""A user's file of rows as (X, y): csv, parquet or svmlight; categories one-hot, rows within ‖x‖₂ ≤ 1.

What is computed from the data on the way (means, deviations, categories, a largest norm) is not released privately:
each such step leaves a warning. Bounds given by the user (`bounds`, `row_bound`) use no data.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbench.errors import DataError, UserError, nearest

from .recipes import clip_rows, row_norms

if TYPE_CHECKING:
    import pandas

CATEGORIES = 100  # more in one column are taken for a mistake: a name, a date, an identifier
DENSE = 5e7  # entries of an svmlight file up to which it is made dense


@dataclass(frozen=True)
class Table:
    """Rows ready for `fit`: X (n, d), y (n,), task "binary" or "regression", and how they came about.

    columns: the d column names. warnings: what used the data on the way. recipe: the steps, in words.
    """

    X: Any
    y: np.ndarray
    task: str
    columns: list[str]
    warnings: list[str]
    recipe: str


def read(
    path: str | os.PathLike,
    target: str | None = None,
    *,
    row_bound: float | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    standardise: bool = True,
    drop: Iterable[str] = (),
    task: str | None = None,
) -> Table:
    """Read a table; an intercept is added.

    Args:
        path: .csv, .tsv, .parquet, or .svm, .svmlight, .libsvm (compressed or not).
        target: the column to predict; None for svmlight, whose labels come first.
        row_bound: R > 0: rows are divided by R, those then longer than 1 by their length. None: the square root of the
            number of columns read, a public number, where columns are standardised or bounded; else the largest norm.
        bounds: column → (low, high): public bounds; values are moved to [-1, 1], and cut off there.
        standardise: numeric columns without bounds to mean 0 and variance 1 (not for sparse svmlight).
        drop: columns to leave out.
        task: "binary" or "regression"; None decides by the target: two different values are a binary one.

    Raises:
        UserError, DataError: one line that names the column or argument and the fix.
    """
    path = Path(path)
    if row_bound is not None and not 0 < row_bound < np.inf:
        raise UserError(f"row_bound must be a positive number, got {row_bound:g}")
    if not path.is_file():
        raise UserError(f"{path}: there is no such file")
    kind = _kind(path)
    if kind == "svmlight":
        if target is not None or bounds or drop:
            raise UserError(f"{path}: an svmlight file has its labels in front; target, bounds and drop are for tables")
        return _from_svmlight(path, row_bound, task)
    frame = _frame(path, kind)
    if target is None:
        raise UserError(f"{path}: name the column to predict with target; its columns are {_some(frame.columns)}")
    return _from_frame(path, frame, target, row_bound, dict(bounds or {}), standardise, list(drop), task)


def _kind(path: Path) -> str:
    suffixes = [s for s in path.suffixes if s not in (".gz", ".bz2", ".xz", ".zip")]
    kinds = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet"}
    kinds |= dict.fromkeys((".svm", ".svmlight", ".libsvm"), "svmlight")
    last = suffixes[-1].lower() if suffixes else ""
    if last not in kinds:
        raise UserError(f"{path}: unknown kind of file {last!r}; known: {', '.join(kinds)}")
    return kinds[last]


def _frame(path: Path, kind: str) -> pandas.DataFrame:
    import pandas as pd

    try:
        frame = pd.read_parquet(path) if kind == "parquet" else pd.read_csv(path, sep="\t" if kind == "tsv" else ",")
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as {kind}: {' '.join(str(error).split())}") from error
    if frame.empty:
        raise DataError(f"{path}: no rows")
    return frame.rename(columns=str)


def _from_frame(path, frame, target, row_bound, bounds, standardise, drop, task) -> Table:
    import pandas as pd

    for name in (target, *bounds, *drop):
        if name not in frame.columns:
            raise UserError(f"{path}: there is no column {name!r}; {nearest(name, list(frame.columns))}")
    frame = frame.drop(columns=drop)
    _check_missing(path, frame)
    steps, warnings = [], []
    y, task = _target(path, frame.pop(target), bounds.pop(target, None), task, steps, warnings)
    if frame.columns.empty:
        raise DataError(f"{path}: no columns besides the target")
    parts, names, loose = [np.ones((len(frame), 1))], ["intercept"], []
    for name, column in frame.items():
        if pd.api.types.is_bool_dtype(column) or not pd.api.types.is_numeric_dtype(column):
            labels, coded = _one_hot(path, name, column.astype(str))
            parts.append(coded)
            names += [f"{name}={label}" for label in labels]
            continue
        values = column.to_numpy(dtype=float)
        if name in bounds:
            values = _within(values, bounds[name], name)
        elif standardise:
            spread = values.std()
            values = (values - values.mean()) / spread if spread > 0 else np.zeros(len(values))
            loose.append(name)
        else:
            loose.append(name)
        parts.append(values[:, None])
        names.append(name)
    if len(names) > 1 + sum(part.shape[1] == 1 for part in parts[1:]):
        warnings.append("the categories of the categorical columns are those found in the data")
    if loose and standardise:
        steps.append("numeric columns standardised")
        warnings.append(
            f"mean and deviation of {_some(loose)} come from the data; give bounds you know (bounds) to avoid that"
        )
    public = None if loose and not standardise else (len(frame.columns) + 1) ** 0.5
    X = _bounded(np.hstack(parts), row_bound, public, steps, warnings)
    return Table(X, y, task, names, warnings, "; ".join(steps))


def _from_svmlight(path, row_bound, task) -> Table:
    from scipy.sparse import csr_array, hstack
    from sklearn.datasets import load_svmlight_file

    try:
        X, labels = load_svmlight_file(str(path), dtype=np.float64)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as svmlight: {' '.join(str(error).split())}") from error
    import pandas as pd

    if not X.shape[0]:
        raise DataError(f"{path}: no rows")
    steps, warnings = [], []
    y, task = _target(path, pd.Series(labels, name="the label"), None, task, steps, warnings)
    X = csr_array(hstack([np.ones((X.shape[0], 1)), X]))
    if not np.isfinite(X.data).all():
        raise DataError(f"{path}: NaN or infinite values; drop or fill them first")
    names = ["intercept", *(str(j) for j in range(1, X.shape[1]))]
    if X.shape[0] * X.shape[1] <= DENSE:
        X = X.toarray()
    return Table(_bounded(X, row_bound, None, steps, warnings), y, task, names, warnings, "; ".join(steps))


def _check_missing(path: Path, frame) -> None:
    counts = {name: int(column.isna().sum()) for name, column in frame.items() if column.isna().any()}
    for name, column in frame.select_dtypes("number").items():
        infinite = int(np.isinf(column.to_numpy(dtype=float)).sum())
        if infinite:
            counts[name] = counts.get(name, 0) + infinite
    if counts:
        shown = _some([f"{name} ({count:,})" for name, count in counts.items()])
        raise DataError(f"{path}: missing or infinite values in {shown}; drop or fill them first")


def _target(path, column, bounds, task, steps, warnings) -> tuple[np.ndarray, str]:
    import pandas as pd

    if task not in (None, "binary", "regression"):
        raise UserError(f"task must be binary or regression, got {task!r}")
    values = sorted(column.unique())
    if len(values) < 2:
        raise DataError(f"{path}: {column.name} has the one value {values[0]!s}; there is nothing to predict")
    numeric = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    if task == "binary" or (task is None and len(values) == 2):
        if len(values) != 2:
            raise DataError(f"{path}: {column.name} has {len(values)} values, a binary target has two")
        steps.append(f"{column.name} = {values[1]!s} is +1, {values[0]!s} is -1")
        return np.where(column.to_numpy() == values[1], 1.0, -1.0), "binary"
    if not numeric:
        raise DataError(
            f"{path}: {column.name} has {len(values)} classes ({_some(values)}); two classes or numbers only"
        )
    y = column.to_numpy(dtype=float)
    if bounds is not None:
        steps.append(f"{column.name} from [{bounds[0]:g}, {bounds[1]:g}] to [-1, 1]")
        return _within(y, bounds, column.name), "regression"
    steps.append(f"{column.name} standardised (mean {y.mean():.4g}, deviation {y.std():.4g})")
    warnings.append(f"mean and deviation of {column.name} come from the data; give its bounds (bounds) to avoid that")
    return (y - y.mean()) / y.std(), "regression"


def _within(values: np.ndarray, bounds: tuple[float, float], name: str) -> np.ndarray:
    low, high = bounds
    if not -np.inf < low < high < np.inf:
        raise UserError(f"bounds of {name}: low < high are needed, got {low:g} and {high:g}")
    return np.clip(2 * (values - low) / (high - low) - 1, -1, 1)


def _one_hot(path, name, column) -> tuple[list[str], np.ndarray]:
    labels, index = np.unique(column.to_numpy(dtype=str), return_inverse=True)
    if len(labels) > CATEGORIES:
        raise DataError(f"{path}: column {name} has {len(labels):,} categories; drop it (drop) or group them first")
    coded = np.zeros((len(column), len(labels)))
    coded[np.arange(len(column)), index] = 1.0
    return list(labels), coded


def _bounded(X, row_bound: float | None, public: float | None, steps: list[str], warnings: list[str]):
    """X/R with rows beyond 1 divided by their norm."""
    R = row_bound or public
    if R is None:
        R = float(_norms(X).max())
        warnings.append(
            f"the bound on the rows, {R:.4g}, is the largest norm in the data; give one you know (row_bound)"
        )
    X = X / R
    norms = _norms(X)
    longer = int(np.sum(norms > 1 + 1e-12))
    steps.append(f"rows divided by {R:.4g}" + (f", {longer:,} of {len(norms):,} shortened to 1" if longer else ""))
    if hasattr(X, "tocsr"):
        from scipy.sparse import csr_array

        return csr_array(X.multiply(1 / np.maximum(norms, 1.0)[:, None]))
    return clip_rows(X)


def _norms(X) -> np.ndarray:
    if hasattr(X, "tocsr"):
        return np.sqrt(np.asarray(X.power(2).sum(axis=1)).ravel())
    return row_norms(X)


def _some(names: Iterable) -> str:
    listed = [str(name) for name in names]
    return ", ".join(listed[:5]) + (f" and {len(listed) - 5} more" if len(listed) > 5 else "")
