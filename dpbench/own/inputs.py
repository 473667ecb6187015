"""(X, y) of a fit as a caller gives them: checked, or repaired row by row where nothing may be revealed about them.

A refusal that depends on the data reveals something about them: that a row is long, that a class is missing. So a
release refuses shapes and types alone, which are public, and repairs the rest by a rule that looks at one row at a
time.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any, Literal

import numpy as np

from dpbench import algorithms, datasets
from dpbench.algorithms.base import make_settings
from dpbench.datasets.recipes import BLOCK, LARGEST, LARGEST_SINGLE, WITHIN, all_within, row_norms
from dpbench.errors import DataError, UserError
from dpbench.own.spec import GROUPS, ParameterError
from dpbench.problems import Declaration, Problem, losses
from dpbench.problems.exact import ExactProblem
from dpbench.problems.persons import OfPersons, Persons, PersonsProblem
from dpbench.problems.risk import LARGEST_ITERATE
from dpbench.schema.cells import ids, numbers

Labels = Literal["binary", "real"]
LARGEST_LABEL = 1e100  # a number beyond is moved to it
LARGEST_OF_BOUNDED = 1e9  # where the slope has a bound: all the same to it, and values leave a minimiser its digits


def problem_of(
    X: Any,
    y: Any,
    *,
    declared: Declaration,
    method: str,
    check: bool,
    release: bool,
    exact: bool,
    precision: str,
    steady: bool,
    owned: bool = False,
    of_persons: OfPersons | None = None,
) -> Problem:
    """The problem that a fit runs on.

    declared: with the bound on the rows that the method's proof asks for. check: raises DataError for data that do not
    fit; else long rows are scaled and the rest is repaired, see `repaired`. release: iterates that leave float64's
    range stop the run. exact: rows on a grid, sums as integers. steady: in steps that are the same for all data.
    owned: X may be written to, so that no copy of it is needed. of_persons: what the rows weigh, with a unit.
    """
    norm, most = declared.row_bound_norm, declared.row_bound
    needed = (norm, most) if math.isfinite(most) else None
    labels: Labels = "binary" if declared.loss.binary else "real"
    # A refusal that depends on a cell reveals it, so a release repairs each value by itself.
    if check:
        X, y = checked(method, needed, precision, X, y, labels)
    else:
        X, y = repaired(X, y, labels, loss=declared.loss, single=precision == "float32", entries=not exact)
    given = {**declared.objective, "name": declared.name, "row_bound_norm": norm, "row_bound": most}
    problem: Problem
    if of_persons is not None:
        problem = PersonsProblem(X, y, of_persons, **given)
    elif exact:
        problem = ExactProblem(X, y, steady=steady, owned=owned, **given)
    else:
        X = X if check or needed is None else _shortened(X, needed)
        problem = Problem(X, y, **given, rows_checked=needed is not None)
    if release:
        problem.limit = LARGEST_ITERATE
    return problem


def labels_beside(X: Any, y: Any, target: str) -> Any:
    """y, or the target's column of the table X; ParameterError where there is none, or it has another length."""
    if not hasattr(X, "columns"):
        raise ParameterError("X: give a pandas DataFrame, whose columns the schema names")
    if y is None and target not in X.columns:
        raise ParameterError(f"y: there is no column {target!r} in X; give y")
    y = X[target] if y is None else y
    one_for_each("y", "label", y, X)
    return y


def cell_by_cell(values: Any) -> Any:
    """X or y as an array, or as the sparse matrix that it is; NaN for what is no number in a list, or among objects.

    What type NumPy gives these hangs on single cells, so it must not decide that a fit is refused. A type that an array
    or a column was given is public.
    """
    if hasattr(values, "tocsr"):
        return values
    array = None
    with contextlib.suppress(ValueError):  # rows of a list that differ in length
        array = values if np.ma.isMaskedArray(values) else np.asarray(values)
    if array is not None and array.dtype.kind in ("biufcMm" if hasattr(values, "dtype") else "biuf"):
        return array
    if isinstance(values, np.ndarray) and values.dtype.kind != "O":
        return values
    try:
        array = np.array(values, dtype=object)
    except ValueError:  # arrays of several shapes in one list
        return np.empty(0)
    return numbers(array.ravel()).reshape(array.shape)


def one_for_each(name: str, what: str, values: Any, X: Any) -> None:
    """ParameterError where values are not (n,), n the rows of X; it tells no n, which with a unit is not public.

    Each cell of a list is one value: to look for its shape would raise, and tell n, where a cell is a list itself.
    """
    shapes = [(len(one),) if isinstance(one, list | tuple) else np.shape(one) for one in (values, X)]
    if shapes[0] != shapes[1][:1]:
        raise ParameterError(f"{name}: give one {what} for each row of X")


def persons_of(X: Any, groups: Any, unit: str | None, *, asked: bool) -> tuple[str, Persons | None]:
    """(what tells whose the rows of X are, "" where each is one's own; whose they are).

    unit: the schema's column, None without one. asked: whether `groups` are asked for. ParameterError where ids are
    missing as a whole, or are too many, in words that hold no number of rows: that is not public.
    """
    if unit is not None:
        if groups is not None:
            raise ParameterError(f"groups: the schema has a unit, the column {unit!r}; leave groups out")
        if unit not in getattr(X, "columns", ()):
            raise ParameterError(f"X: there is no column {unit!r}, the schema's unit")
        one_for_each(unit, "id", X[unit], X)  # two columns of one name are a table
        return unit, Persons.of(ids(unit, X[unit]))
    if not asked:
        if groups is not None:
            raise ParameterError("groups: they tell whose a row is with unit=True; without it leave them out")
        return "", None
    if groups is None:
        raise ParameterError(
            "groups: unit=True needs the id of each row's person, fit(X, y, groups=ids); scikit-learn's searches and "
            "cross_val_score pass on none, but a schema's unit is a column of X and goes with the rows"
        )
    one_for_each("groups", "id", groups, X)
    return GROUPS, Persons.of(ids(GROUPS, groups))


def checked(
    method: str, needed: tuple[str, float] | None, precision: str, X: Any, y: Any, labels: Labels
) -> tuple[Any, np.ndarray]:
    """(X, y) as the solvers take them: finite, of this precision, within the bound. Raises DataError."""
    X, y = datasets.check_arrays(X, y, labels=labels, single=precision == "float32")
    X = _bounded_rows(X, needed, method)
    if precision == "float32":
        _refuse_sparse(X)
        X = _still_within(X.astype(np.float32, copy=False), needed)
    return X, y


def repaired(
    X: Any, y: Any, labels: Labels, *, loss: str | losses.Loss, single: bool, entries: bool = True
) -> tuple[Any, np.ndarray]:
    """(X, y) of the right shapes and types, every value repaired by itself; DataError for shapes and types alone.

    Entries of X that are NaN or infinite become 0, and those beyond ±1e150 (in float32, ±1e15) are moved there: their
    squares have to be finite, and a run that stopped at one would tell of it. Labels of a loss with two classes become
    -1 or +1, by whether they are positive; numbers are moved into ±1e100 (in float32, ±1e15), of a loss with a
    bounded slope into ±1e9, and to 0 where they are NaN; those of phase loss below 0 become 0, and those of several
    classes the nearest class below. entries: False leaves X to `on_grid`, which makes any row fit.
    """
    X, y = datasets.as_arrays(X, y, single=single, as_given=single and labels == "binary")
    if single:
        _refuse_sparse(X)
        with np.errstate(over="ignore"):  # a warning would tell of it
            X = X.astype(np.float32, copy=False)
    values = X.data if hasattr(X, "tocsr") else X
    most = LARGEST_SINGLE if single else LARGEST
    if entries and not all((np.abs(values[i : i + BLOCK]) <= most).all() for i in range(0, len(values), BLOCK)):
        values = np.clip(np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0), -most, most)
        X = type(X)((values, X.indices, X.indptr), shape=X.shape) if hasattr(X, "tocsr") else values
    if labels == "binary":
        signs = np.empty(y.shape, np.float32 if single else np.float64)
        for start in range(0, len(y), BLOCK):  # no temporary of the size of y
            signs[start : start + BLOCK] = np.where(y[start : start + BLOCK] > 0, 1, -1)
        return X, signs
    kind = losses.get(loss)
    largest = LARGEST_OF_BOUNDED if kind.outputs == 1 and math.isfinite(kind.lipschitz) else LARGEST_LABEL
    largest = min(largest, most)  # in float32 a longer one is infinite, and a warning would tell of it
    y = np.clip(np.nan_to_num(y, nan=0.0), -largest, largest)
    if kind.outputs > 1:
        y = np.clip(np.floor(y), 0, kind.outputs - 1)
    return X, np.maximum(y, 0.0) if kind.name == "phase" else y


def _shortened(X: Any, needed: tuple[str, float]) -> Any:
    """Finite rows X, scaled to within the bound."""
    # The squares of what is kept have to be finite, or a norm would be infinite and the row zero.
    largest = np.sqrt(np.finfo(X.dtype).max) / X.shape[1]
    values = X.data if hasattr(X, "tocsr") else X
    if len(values) and not np.abs(values).max() <= largest:  # so that norms are finite
        values = np.clip(values, -largest, largest)
        X = type(X)((values, X.indices, X.indptr), shape=X.shape) if hasattr(X, "tocsr") else values
    X = _bounded_rows(X, needed)
    return _still_within(X, needed) if X.dtype == np.float32 else X


def _refuse_sparse(X: Any) -> None:
    if hasattr(X, "tocsr"):
        raise UserError("precision: sparse rows are kept as float64; leave precision out")


def _still_within(X: np.ndarray, needed: tuple[str, float] | None) -> np.ndarray:
    """float32 rows X, those that their rounding took beyond the bound kept within it."""
    if needed is None or all_within(X, 2 if needed[0] == "l2" else 1, needed[1]):
        return X
    norms = row_norms(X, 2 if needed[0] == "l2" else 1)
    beyond = norms > needed[1]
    if not beyond.any():
        return X
    factors = np.where(beyond, needed[1] * WITHIN / np.maximum(norms, needed[1]), 1)
    return np.asarray(X * factors[:, None].astype(X.dtype))


def _bounded_rows(X: Any, needed: tuple[str, float] | None, refusing: str = "") -> Any:
    """X, or X with the rows beyond what a method needs scaled down to it; DataError, which names it, if `refusing`."""
    if needed is None:
        return X
    kind, limit = needed
    order = 2 if kind == "l2" else 1
    if all_within(X, order, limit):
        return X
    norms = row_norms(X, order)
    slack = 1e-12 if X.dtype == np.float64 else 1e-6  # a row divided by its norm has norm 1 up to rounding
    if norms.max(initial=0) <= limit * (1 + slack):
        return X
    if refusing:
        mark = "₂" if order == 2 else "₁"
        raise DataError(
            f"X: {np.sum(norms > limit):,} of {len(norms):,} rows have ‖x‖{mark} > {limit:g} (largest "
            f"{norms.max():.4g}), beyond what {refusing}'s proof covers; scale the columns by public constants, or "
            'pass bound="rescale" to divide each such row by its norm'
        )
    factors = limit / np.maximum(norms, limit)
    return X.multiply(factors[:, None]).tocsr() if hasattr(X, "tocsr") else X * factors[:, None].astype(X.dtype)


def check_rows(X: Any, y: Any, *, algorithm: str = "dp-gd", loss: str = "logistic", **settings: Any) -> list[str]:
    """One line for everything in (X, y) that a release by `fit` would repair in silence, because a message would reveal
    something about the data.

    Args:
        X, y: as of `fit`, in memory.
        algorithm: whose bound on the rows counts, with these settings.
        loss: what labels are, as of `fit`.
        **settings: of the algorithm, as of `fit`.

    Returns:
        Lines with exact counts and values, so not private; none where nothing would be changed.

    Raises:
        UserError: for an unknown algorithm or loss. DataError: for shapes that do not fit each other.
    """
    method, fixed = algorithms.resolve(algorithm)
    needed, kind = method.row_bound(losses.get(loss), make_settings(method, {**fixed, **settings})), losses.get(loss)
    labels: Labels = "binary" if kind.binary else "real"
    try:
        X, y = datasets.as_arrays(X, y)
    except DataError as error:
        return [str(error)]
    # Beside what a release would make of them, so that a cell which is no number hides nothing else.
    fixed, moved = repaired(X, y, labels, loss=loss, single=False)

    def check_labels() -> None:
        datasets.check_arrays(np.zeros((len(y), 1)), y, labels=labels)
        kind.check_labels(y)
        if beyond := np.count_nonzero(moved != y):
            raise DataError(f"y: {beyond:,} of {len(y):,} labels are beyond ±{np.abs(moved).max():g}, and moved there")

    lines = []
    for check in (
        lambda: datasets.check_arrays(X, np.zeros(len(y)), labels="real"),
        check_labels,
        lambda: _bounded_rows(fixed, needed, method.name),
    ):
        try:
            check()
        except DataError as error:
            lines.append(str(error))
    return lines
