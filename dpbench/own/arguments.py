"""What an estimator is given, its parameters, X and y, as a fit takes them; in messages without any cell.

What is public (a shape, a type) is refused before a fit is paid for. A list, or an array of objects, has a type where
all of its cells are numbers alone, so that they are is public, and the statement says so.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import column_or_1d, validate_data

from dpbench.errors import nearest, positive
from dpbench.frames import unnamed
from dpbench.own.inputs import labels_beside, one_for_each
from dpbench.own.spec import ParameterError
from dpbench.schema import Column, Schema, Target, word
from dpbench.schema import load as load_schema
from dpbench.schema.schema import check_bounds

REPEATED = ("sklearn.model_selection", "sklearn.ensemble", "sklearn.multiclass", "sklearn.calibration",
            "sklearn.feature_selection", "sklearn.multioutput", "sklearn.semi_supervised",
            "sklearn.linear_model._ransac")  # what fits clones of an estimator to the same rows  # fmt: skip
SEEDING = ("sklearn.ensemble._bagging", "sklearn.ensemble._weight_boosting")  # what gives each clone a seed of its own


class PrivacyWarning(UserWarning):
    """Something that was taken from the data without being paid for."""


def by_schema(estimator: Any, X: Any, y: Any) -> tuple[Any, Any, Schema]:
    """X, y and the schema that somebody wrote; ParameterError where they or other parameters do not fit it."""
    if not isinstance(estimator.schema, Schema | str | os.PathLike):
        raise ParameterError(f"schema must be a dpbench.schema.Schema or its TOML file, got {estimator.schema!r}")
    schema, bound = load_schema(estimator.schema), estimator.row_bound
    twice = ["bounds"] * (estimator.bounds is not None)
    number = bound is not None and not isinstance(bound, str)
    twice += ["row_bound"] * (number or (schema.row_bound is not None and bound not in (None, "auto")))
    if twice:
        raise ParameterError(f"{twice[0]}: the schema says it; leave it out")
    schema.require_decided()
    # The schema decides what is predicted; an estimator of the other kind would misread its target.
    kind = "classes" if hasattr(estimator, "classes") else "bounds"
    if getattr(schema.target, kind) is None:
        raise ParameterError(f"schema: its target has no {kind}, which {type(estimator).__name__} needs")
    return X, labels_beside(X, y, schema.target.name), schema


def schema_of(columns: int, bounds: Any, target: Target, row_bound: Any) -> Schema:
    """The schema of an array's bounds; ParameterError in one line."""
    if isinstance(bounds, Mapping):
        raise ParameterError("bounds: give (low, high), numbers or one per column; by names they are a schema's")
    each = {f"x{i}": Column(bounds=pair) for i, pair in enumerate(bounds_of("bounds", bounds, columns))}
    try:
        return Schema(target=target, columns=each, row_bound=None if row_bound is None else float(row_bound))
    except (TypeError, ValueError) as error:
        raise ParameterError(f"bounds: {error}") from None


def bounds_of(name: str, bounds: Any, columns: int) -> list[tuple[float, float]]:
    """(low, high) of each column; ParameterError where they are no pair of finite numbers or arrays, low < high."""
    if isinstance(bounds, list) and bounds and all(isinstance(pair, tuple) for pair in bounds):
        raise ParameterError(
            f"{name}: a list of pairs, one per column, is read as (low, high) by nobody; give (lows, highs)"
        )
    try:
        low, high = (np.broadcast_to(np.asarray(end, dtype=float), columns).tolist() for end in bounds)
    except (TypeError, ValueError):
        each = "two numbers" if columns == 1 else f"two numbers, or two arrays of the {columns} columns"
        raise ParameterError(f"{name} must be (low, high): {each}, got {bounds!r}") from None
    pairs = list(zip(low, high, strict=True))
    try:
        for pair in pairs:
            check_bounds(pair)
    except ValueError as error:
        raise ParameterError(f"{name}: {error}") from None
    return pairs


def array_of(estimator: BaseEstimator, X: Any, **how: Any) -> Any:
    """X as scikit-learn makes it, of floats; ParameterError in words that hold no cell, as scikit-learn's own may."""
    nameless = [name for name in getattr(X, "columns", ()) if isinstance(name, str) and unnamed(name)]
    if nameless:
        raise ParameterError(
            f"X: the column {nameless[0]!r} has no name of its own, as the row numbers that to_csv writes; drop it"
        )
    if any(kind in ("M", "m") for kind in _kinds(X)):  # nanoseconds since 1970 are nobody's meaning
        raise ParameterError(
            'X: dates are no numbers; make numbers of them, or give a DataFrame and a schema with date = ["year", …]'
        )
    try:
        kept = (np.float64, np.float32)  # of any other type a copy is made
        return validate_data(estimator, X, dtype=kept, ensure_all_finite=False, **how)
    except (TypeError, ValueError, OverflowError) as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        odd = "complex" in said.lower(), said.startswith("Expected 2D array")
        unread = isinstance(error, OverflowError) or any(word in said for word in UNREAD)
        wrong = type(error) if isinstance(error, TypeError) else ParameterError
    if odd[0]:
        said = "X, y: Complex data not supported; give real numbers"
    elif odd[1]:
        said = "X: Expected 2D array, rows × columns. Reshape your data"
    elif unread:
        said = (
            f"X{_unreadable(X)}: every cell of the argument must be a number, or a string of a number, in rows of one "
            "length; write NaN where one is missing, or give a DataFrame with a schema"
        )
    raise wrong(said)  # outside the handler, so that its error, with the cell, is not kept as the context


def typed_numbers(X: Any) -> bool:
    """Whether an array, or each column of a table, has a type of numbers: no cell decides that it can be read."""
    return all(kind in tuple("biuf") for kind in _kinds(X))


def _kinds(X: Any) -> list[str]:
    """The kind of NumPy's type of each column of a table, or of an array; "" of what has none, as a list."""
    kinds = X.dtypes if hasattr(X, "dtypes") else [getattr(X, "dtype", None)]
    return [getattr(kind, "kind", "") for kind in kinds]


def _unreadable(X: Any) -> str:
    """Which column has a cell that is no number, as "[:, 2]" of X; "" where rows differ in length."""
    names, cells = getattr(X, "columns", None), None
    with contextlib.suppress(ValueError):
        cells = np.array(X, dtype=object)
    for j, column in enumerate(cells.T if cells is not None and cells.ndim == 2 else []):
        try:
            column.astype(float)
        except (TypeError, ValueError, OverflowError):
            return f"[:, {j}]" if names is None else f"[{names[j]!r}]"
    return ""


# How errors begin that go on with a cell.
UNREAD = ("could not convert", "inhomogeneous", "must be a string or a real number", "must be a real number",
          "setting an array element", "invalid literal", "argument must be a string", "not supported for")  # fmt: skip


def labels_of(y: Any, X: Any) -> np.ndarray:
    """(n,) labels of the rows of X, one type for each cell where they are a list; ParameterError for other shapes."""
    if y is None:
        raise ParameterError("requires y to be passed, but the target y is None")
    if isinstance(y, list | tuple):  # NumPy would choose one type by looking at all of them
        given, y = y, np.empty(len(y), dtype=object)
        y[:] = given
    try:
        found = column_or_1d(y, warn=True)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"y: {str(error).splitlines()[0]}") from None
    one_for_each("y", "label", found, X)
    return np.asarray(found)


def sorted_labels(labels: Any) -> tuple[Any, ...]:
    """Labels in order, with their types; ParameterError for what can be none."""
    found = [one.item() if isinstance(one, np.generic) else one for one in labels]
    for one in found:
        if not isinstance(one, str | int | float) or one != one or one in (np.inf, -np.inf):
            raise ParameterError(f"classes: {one!r} can be no class; give texts or finite numbers")
    if len({isinstance(one, str) for one in found}) > 1:
        raise ParameterError("classes: texts and numbers at once; give one kind")
    if len(set(found)) < max(2, len(found)):
        raise ParameterError("classes: give two classes or more, all of them different")
    return tuple(sorted(found))


def typed(labels: Any) -> np.ndarray:
    """Labels as an array of their own type, objects where they have several."""
    found = np.array(list(labels))
    return found if found.tolist() == list(labels) else np.array(list(labels), dtype=object)


def weights_of(class_weight: Any, labels: tuple[Any, ...]) -> tuple[float, ...] | None:
    """The public weights of the classes, 1 where none is given."""
    if class_weight is None:
        return None
    if not isinstance(class_weight, Mapping):
        counted = '; "balanced" would be counted in the data, and reveal them' * (class_weight == "balanced")
        raise ParameterError(f"class_weight: give public weights, as {{class: weight}}{counted}")
    given, known = ({word(label): weight for label, weight in class_weight.items()}, [word(one) for one in labels])
    if unknown := [label for label in class_weight if word(label) not in known]:
        raise ParameterError(f"class_weight: there is no class {unknown[0]!r}; {nearest(word(unknown[0]), known)}")
    return tuple(float(positive("class_weight", given.get(label, 1.0))) for label in known)


_WARNED: set[tuple[str, ...]] = set()  # (message, columns), so that many clones are one warning
_SEVERAL = (
    "several fits to the same rows: each states the ε of one, and together they cost more; give budget=, a "
    "dpbench.DataBudget, which counts and limits it"
)
_SEEDED = (
    "several fits to the same rows, none of them a release: their ensemble gives each a seed, and its bootstrap "
    "repeats rows, which no ε of one fit counts; average fits of your own, without random_state and with one budget="
)


def warn_of_clones(columns: tuple[str, ...], *, seeded: bool, charged: bool) -> None:
    """PrivacyWarning where scikit-learn fits clones to the same rows, which cost more than one fit states.

    Args:
        columns: of the rows; the same ones are warned of once.
        seeded: whether the fit has a random_state. The user's own, he knows that it is no release; an ensemble's is
            put over it without a word.
        charged: whether a budget counts the fits.
    """
    frame: Any = inspect.currentframe()
    while frame is not None:
        module, told = str(frame.f_globals.get("__name__")), ""
        if module.startswith(SEEDING):
            told = _SEEDED
        elif module.startswith(REPEATED) and not seeded and not charged:
            told = _SEVERAL
        if told:
            if (told, *columns) not in _WARNED:
                _WARNED.add((told, *columns))
                warnings.warn(told, PrivacyWarning, stacklevel=3)
            return
        frame = frame.f_back
