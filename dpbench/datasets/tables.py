"""A user's file of rows as (X, y): csv, parquet or svmlight; categories one-hot, rows within ‖x‖₂ ≤ 1.

What is computed from the data on the way (means, deviations, categories, a largest norm) is not released privately:
each such step leaves a warning. Bounds given by the user (`bounds`, `row_bound`) use no data.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbench.datasets import batches, delimited
from dpbench.datasets.encoding import Labels, Scan, Target, Told, some
from dpbench.datasets.recipes import LARGEST, clip_rows, row_norms
from dpbench.errors import DataError, UserError, positive

if TYPE_CHECKING:
    import pandas

DENSE = 5e7  # entries of an svmlight file up to which it is made dense
WIDEST = 1_000_000  # columns of an svmlight file
PRECISIONS = ("float64", "float32")
WITHIN = 1 - 2.0**-22  # times a row of ‖x‖ ≤ 1: so much is lost that rounding to float32 cannot take it beyond 1
SPLIT = 20260101  # seeds the choice of the rows held out: their positions decide, nothing in them


@dataclass(frozen=True)
class Table:
    """Rows ready for `fit`: X (n, d), y (n,), task "binary" or "regression", and how they came about.

    columns: the d column names. warnings: what used the data on the way. recipe: the steps, in words. held_out: (X, y)
    of the rows kept apart, made by the same steps; None without. unit: what 1 of y is in the file's own unit. classes:
    what -1 and +1 of a binary target are in the file. notes: what else there is to say (how the file was read, columns
    that say nothing).
    """

    X: Any
    y: np.ndarray
    task: str
    columns: list[str]
    warnings: list[str]
    recipe: str
    held_out: tuple[Any, np.ndarray] | None = None
    unit: float = 1.0
    classes: tuple[str, str] | None = None
    notes: list[str] = field(default_factory=list)


def read(
    path: str | os.PathLike[str],
    target: str | None = None,
    *,
    row_bound: float | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    standardise: bool = True,
    drop: Iterable[str] = (),
    task: str | None = None,
    holdout: float = 0.0,
    precision: str = "float64",
    progress: batches.Reading = lambda what, share: None,
) -> Table:
    """Read a table; an intercept is added. A large one is read in batches, twice, into arrays that lie on disk.

    Args:
        path: .csv, .tsv, .parquet, or .svm, .svmlight, .libsvm (compressed or not). Separator, decimal mark and
            encoding of a text table are found from its first lines.
        target: the column to predict; None for svmlight, whose labels come first.
        row_bound: R > 0: rows are divided by R, those then longer than 1 by their length. None: the square root of the
            number of columns read, a public number, where columns are standardised or bounded; else the largest norm.
        bounds: column → (low, high): public bounds; values are moved to [-1, 1], and cut off there.
        standardise: numeric columns without bounds to mean 0 and variance 1 (not for sparse svmlight).
        drop: columns to leave out.
        task: "binary" or "regression"; None decides by the target: two different values are a binary one.
        holdout: the share of rows kept apart, in [0, 1): each with that probability, by its position in the file
            alone, so that the choice is public. Nothing is computed from them.
        precision: "float64" or "float32", of X: half the bytes, and rows that round beyond ‖x‖₂ = 1 are kept within.
        progress: called with what is being done and the share of it, while a large file is read.

    Raises:
        UserError, DataError: one line that names the column or argument and the fix.
    """
    path = Path(path)
    if row_bound is not None:
        positive("row_bound", row_bound)
    if not 0 <= holdout < 1:
        raise UserError(f"holdout must be a share of the rows in [0, 1), got {holdout:g}")
    if not path.is_file():
        raise UserError(f"{path}: {'is a folder; name a file in it' if path.is_dir() else 'there is no such file'}")
    if precision not in PRECISIONS:
        raise UserError(f"precision must be float64 or float32, got {precision!r}")
    kind = _kind(path)
    if kind == "svmlight":
        if target is not None or bounds or drop:
            raise UserError(f"{path}: an svmlight file has its labels in front; target, bounds and drop are for tables")
        return rounded(_from_svmlight(path, row_bound, task, holdout), precision)
    large = batches.is_large(path, kind)
    if large and target is not None:
        scan = Scan(path, target, bounds=bounds or {}, standardise=standardise, drop=drop, task=task)
        return _from_batches(path, kind, scan, row_bound, holdout, precision, progress)
    frame, dialect = _frame(path, kind)
    if target is None:
        raise UserError(f"{path}: name the column to predict with target; its columns are {some(frame.columns)}")
    scan = Scan(path, target, bounds=bounds or {}, standardise=standardise, drop=drop, task=task)
    table = rounded(_from_frame(frame, scan, row_bound, holdout), precision)
    return replace(table, notes=[f"{path}: read with {dialect}", *table.notes]) if dialect else table


def used_rows(n: int, holdout: float) -> np.ndarray:
    """(n,) of bool: the rows that are not held out."""
    return np.random.default_rng(SPLIT).random(n) >= holdout


def _kind(path: Path) -> str:
    suffixes = [s for s in path.suffixes if s not in (".gz", ".bz2", ".xz", ".zip")]
    kinds = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet"}
    kinds |= dict.fromkeys((".svm", ".svmlight", ".libsvm"), "svmlight")
    last = suffixes[-1].lower() if suffixes else ""
    if last not in kinds:
        raise UserError(f"{path}: unknown kind of file {last!r}; known: {', '.join(kinds)}")
    return kinds[last]


def large(source: str | os.PathLike[str]) -> str | None:
    """The kind of a file that is read in batches, "csv" or "parquet"; None for any other."""
    path = Path(source)
    kind = _kind(path) if path.is_file() else ""
    return kind if kind and batches.is_large(path, kind) else None


def frame_of(source: str | os.PathLike[str]) -> pandas.DataFrame:
    """The rows of a csv, tsv or parquet file as they are; UserError, DataError in one line."""
    path = Path(source)
    return _frame(path, _known(path))[0]


def _known(path: Path) -> str:
    """ "csv" or "parquet"; UserError for any other file, and where there is none."""
    if not path.is_file():
        raise UserError(f"{path}: {'is a folder; name a file in it' if path.is_dir() else 'there is no such file'}")
    kind = _kind(path)
    if kind == "svmlight":
        raise UserError(f"{path}: an svmlight file has no named columns; give a csv, tsv or parquet file")
    return kind


def frames_of(source: str | os.PathLike[str]) -> Iterator[pandas.DataFrame]:
    """The rows of a csv, tsv or parquet file as they are, some at a time; UserError, DataError in one line.

    A .zip or .xz is read at once.
    """
    path = Path(source)
    kind = _known(path)
    if kind == "parquet":
        parts: Iterator[pandas.DataFrame] = (frame for frame, _ in batches.frames(path, kind))
    elif path.suffix in batches.UNSTREAMED:
        parts = iter([_frame(path, kind)[0]])
    else:
        parts = _texts(path)
    empty = True
    try:
        for part in parts:
            empty = False
            yield part
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path}: cannot be read as {kind}: {' '.join(str(error).split())}") from error
    if empty:
        raise DataError(f"{path}: no rows")


def _texts(path: Path) -> Iterator[pandas.DataFrame]:
    """The rows of a text table, each part read as pandas reads a whole one."""
    import pandas as pd

    dialect = delimited.whole(path)
    how = dialect.reading
    names = pd.read_csv(path, header=None, nrows=1, dtype=str, **how).iloc[0]
    rows = max(1, batches.CELLS // len(names))
    with pd.read_csv(path, decimal=dialect.decimal, chunksize=rows, index_col=False, **how) as reader:
        while (part := _strictly(lambda: next(reader, None))) is not None:
            if len(part):
                yield batches.readable(_named(part, names))


def _frame(path: Path, kind: str) -> tuple[pandas.DataFrame, str]:
    """The rows of a file, and how it was read where that is not the usual way."""
    import pandas as pd

    told = ""
    try:
        if kind == "parquet":
            frame = pd.read_parquet(path)
        else:
            dialect = delimited.detect(path)
            told = "" if path.suffix == ".tsv" and dialect.separator == "\t" else dialect.told
            try:
                frame = _text(path, dialect)
            except UnicodeDecodeError:  # beyond the lines that were looked at
                told = ", ".join(filter(None, [told, "latin-1"]))
                frame = _text(path, delimited.Dialect(dialect.separator, dialect.decimal, "latin-1"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as {kind}: {' '.join(str(error).split())}") from error
    if frame.empty:
        raise DataError(f"{path}: no rows")
    return batches.readable(frame), told


def _text(path: Path, dialect: delimited.Dialect) -> pandas.DataFrame:
    """The rows under the names in the file: pandas would call a second `label` label.1, and use it to predict label."""
    import pandas as pd

    frame = _strictly(lambda: pd.read_csv(path, decimal=dialect.decimal, index_col=False, **dialect.reading))
    return _named(frame, pd.read_csv(path, header=None, nrows=1, dtype=str, **dialect.reading).iloc[0])


def _strictly(read: Callable[[], Any]) -> Any:
    """What `read` returns; ValueError where rows have more fields than there are names, of which pandas only warns."""
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            return read()
        except pd.errors.ParserWarning:
            raise ValueError("its rows have more fields than its first line has names") from None


def _named(frame: pandas.DataFrame, names: pandas.Series) -> pandas.DataFrame:
    """The rows under the names in the file."""
    return frame.set_axis(names.where(names.notna(), frame.columns), axis=1)


def _from_frame(frame: pandas.DataFrame, scan: Scan, row_bound: float | None, holdout: float) -> Table:
    told, used = Told(), used_rows(len(frame), holdout)
    scan.add(frame, used)
    encoding = scan.encoding(told)
    X, y = encoding.write(frame)
    X = _bounded(X, used, row_bound or scan.public_bound, told)
    return _table(X, y, used, encoding.target, encoding.columns, told)


def _from_batches(
    path: Path,
    kind: str,
    scan: Scan,
    row_bound: float | None,
    holdout: float,
    precision: str,
    progress: batches.Reading,
) -> Table:
    """Two passes: what `Scan` needs to know, then the rows, each where it belongs."""
    told = Told(notes=[f"{path}: read in batches; its rows lie on disk as {precision}"])
    draw, rows, used = np.random.default_rng(SPLIT), 0, 0
    for frame, share in batches.frames(path, kind):
        kept = draw.random(len(frame)) >= holdout
        scan.add(frame, kept)
        rows, used = rows + len(frame), used + int(kept.sum())
        progress("first pass", share)
    if not rows:
        raise DataError(f"{path}: no rows")
    encoding = scan.encoding(told)
    R = row_bound or scan.public_bound
    if R is None:
        raise UserError(
            f"{path}: give row_bound, or bounds for every column: a file this large is not searched for one"
        )
    d = len(encoding.columns)
    X, y = batches.on_disk(used, d, precision), batches.on_disk(used, 0, np.float64)
    Z, z = batches.on_disk(rows - used, d, precision), batches.on_disk(rows - used, 0, np.float64)
    draw, done, apart, longer = np.random.default_rng(SPLIT), 0, 0, 0
    for frame, share in batches.frames(path, kind):
        kept = draw.random(len(frame)) >= holdout
        A, b = encoding.write(frame)
        A /= R
        longer += int(np.sum(row_norms(A)[kept] > 1 + 1e-12))
        clip_rows(A)
        if precision == "float32":
            A *= WITHIN
        n, m = int(kept.sum()), int((~kept).sum())
        X[done : done + n], y[done : done + n] = A[kept], b[kept]
        Z[apart : apart + m], z[apart : apart + m] = A[~kept], b[~kept]
        done, apart = done + n, apart + m
        progress("second pass", share)
    told.steps.append(_divided(R, longer, used))
    return _assembled(X, y, (Z, z) if rows > used else None, encoding.target, encoding.columns, told)


def rounded(table: Table, precision: str) -> Table:
    """The table with X in the precision asked for, its rows still within 1."""
    if precision == "float64":
        return table
    held_out = None if table.held_out is None else ((table.held_out[0] * WITHIN).astype(precision), table.held_out[1])
    return replace(table, X=(table.X * WITHIN).astype(precision), held_out=held_out)


def _from_svmlight(path: Path, row_bound: float | None, task: str | None, holdout: float) -> Table:
    import pandas as pd
    from scipy.sparse import csr_array, hstack
    from sklearn.datasets import load_svmlight_file

    try:
        X, labels = load_svmlight_file(str(path), dtype=np.float64)
    except OverflowError as error:
        raise DataError(f"{path}: an index is beyond {WIDEST:,}; number the columns from 1 without gaps") from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as svmlight: {' '.join(str(error).split())}") from error
    if not X.shape[0]:
        raise DataError(f"{path}: no rows")
    if X.shape[1] > WIDEST:  # a model has a number for every column that there could be
        raise DataError(
            f"{path}: its largest index is {X.shape[1]:,}, beyond {WIDEST:,}; number the columns from 1 without gaps"
        )
    if not (np.abs(X.data) <= LARGEST).all():
        raise DataError(f"{path}: NaN or infinite values; drop or fill them first")
    told = Told()
    used, target, column = used_rows(X.shape[0], holdout), Target(path, "the label", task), pd.Series(labels)
    target.add(column, used)
    found = target.labels(told)
    X = csr_array(hstack([csr_array(np.ones((X.shape[0], 1))), X]))
    if X.shape[0] * X.shape[1] <= DENSE:
        X = X.toarray()
    X = _bounded(X, used, row_bound, told)
    names = ["intercept", *(str(j) for j in range(1, X.shape[1]))]
    return _table(X, found.write(column), used, found, names, told)


def _table(X: Any, y: np.ndarray, used: np.ndarray, target: Labels, columns: list[str], told: Told) -> Table:
    """The rows in use, and those held out."""
    if used.all():
        return _assembled(X, y, None, target, columns, told)
    return _assembled(X[used], y[used], (X[~used], y[~used]), target, columns, told)


def _assembled(
    X: Any, y: np.ndarray, held_out: tuple[Any, np.ndarray] | None, target: Labels, columns: list[str], told: Told
) -> Table:
    classes = None if target.classes is None else (str(target.classes[0]), str(target.classes[1]))
    recipe, unit = "; ".join(told.steps), target.scale[1]
    return Table(X, y, target.task, columns, told.warnings, recipe, held_out, unit, classes, told.notes)


def _bounded(X: Any, used: np.ndarray, R: float | None, told: Told) -> Any:
    """X/R with rows beyond 1 divided by their norm; R None: the largest norm of the `used` rows."""
    if R is None:
        R = float(row_norms(X)[used].max(initial=0)) or 1.0
        told.warnings.append(
            f"the bound on the rows, {R:.4g}, is the largest norm in the data; give one you know (row_bound)"
        )
    X = X / R
    norms = row_norms(X)
    longer = int(np.sum(norms[used] > 1 + 1e-12))
    told.steps.append(_divided(R, longer, int(used.sum())))
    if hasattr(X, "tocsr"):
        from scipy.sparse import csr_array

        return csr_array(X.multiply(1 / np.maximum(norms, 1.0)[:, None]))
    return clip_rows(X)


def _divided(R: float, longer: int, rows: int) -> str:
    return f"rows divided by {R:.4g}" + (f", {longer:,} of {rows:,} shortened to 1" if longer else "")
