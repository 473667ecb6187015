"""An estimator as a target of an audit: all rows of one person are others, however many, where it protects persons.

Two worlds of four persons. Three have one row each, in the middle of the bounds, where it does not pull. Of the fourth
all rows lie at the upper end with the last label in one world, and in the other as many or fewer rows with the first:
m = 1, 2, 5 and 100 against 1, 2 or 5. A fit that protects single rows shows the five of a person (ε = 8.8 and 8.6 were
measured for a claim of 1), one of persons may not. An estimator without a unit is tried at m = 1 alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dpbench.errors import UserError
from dpbench.schema import Column, Schema, load, word

OTHERS = 3  # persons beside the one
SIZES = ((1, 1), (2, 1), (5, 2), (100, 5), (100, 1))  # m in either world
COLUMNS = 2  # of arrays, where the bounds say no number of them
DELTA = 0.01  # n⁻² of four persons would hide what is looked for
FACE = ("fit", "get_params", "epsilon", "delta", "schema", "bounds", "unit")


class Worlds(NamedTuple):
    """function: as of an `AuditTarget`, on rows of (person, place). pairs: (first, second, what differs)."""

    function: Callable[..., np.ndarray]
    delta: float
    pairs: list[tuple[Any, Any, str]]


def worlds_of(estimator: Any) -> Worlds | None:
    """What an audit of it runs on, None for what is no estimator of dpbench's; UserError where bounds are missing."""
    if isinstance(estimator, type) or not all(hasattr(estimator, name) for name in FACE):
        return None
    table = estimator.schema is not None
    if not table and (estimator.bounds is None or isinstance(estimator.bounds, dict)):
        raise UserError("an audit of an estimator takes one with a schema, or with bounds of an array")
    schema = load(estimator.schema) if table else None
    unit = (schema.unit if schema else None) or ("groups" if estimator.unit else None)
    ends = _ends_of_schema(schema) if schema else _ends_of_array(estimator)
    labels = _labels(estimator, schema)
    delta = estimator.delta if isinstance(estimator.delta, float) else DELTA

    def function(X: np.ndarray, y: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
        given = estimator.get_params(deep=False) | {"epsilon": epsilon, "delta": delta, "budget": None}
        model = type(estimator)(**given | {"random_state": int(rng.integers(2**31 - 1))})
        ids, places = X[:, 0].astype(int), X[:, 1].astype(int)
        rows = np.stack([ends[place] for place in places])
        named: dict[str, Any] = {} if table or unit is None else {"groups": ids}
        if schema is not None:
            rows = _frame(schema, rows, ids)
        model.fit(rows, np.array([labels[int(one)] for one in y], dtype=object if schema else None), **named)
        return np.append(np.ravel(model.coef_), model.intercept_)

    return Worlds(function, delta, [_pair(m, k, unit) for m, k in (SIZES if unit else SIZES[:1])])


def _pair(m: int, k: int, unit: str | None) -> tuple[Any, Any, str]:
    """Rows are (person, 0 for the middle or 1 for the upper end), labels the place of one among two."""
    worlds = []
    for size, label in ((m, 1.0), (k, 0.0)):
        X = np.vstack([np.tile([0.0, 1.0], (size, 1)), [[1.0 + i, 0.0] for i in range(OTHERS)]])
        worlds.append((X, np.append(np.full(size, label), np.arange(OTHERS) % 2)))
    what = f"all rows of one {unit}, {m} or {k}" if unit else "one row"
    where = f"at the upper ends with the last label, or with the first; {OTHERS} others"
    return worlds[0], worlds[1], f"{what}, {where}"


def _ends_of_array(estimator: Any) -> list[np.ndarray]:
    """[a row in the middle, a row at the upper ends] of the public bounds."""
    low, high = (np.atleast_1d(np.asarray(end, dtype=float)) for end in estimator.bounds)
    wide = COLUMNS if max(len(low), len(high)) == 1 else max(len(low), len(high))
    return [np.broadcast_to(end, wide) for end in (low / 2 + high / 2, high)]


def _ends_of_schema(schema: Schema) -> list[np.ndarray]:
    def end(column: Column, upper: bool) -> Any:
        if column.bounds is not None:
            return column.bounds[1] if upper else column.bounds[0] / 2 + column.bounds[1] / 2
        # Of no category the columns are 0; a date that is missing counts as the middle.
        return word(column.categories[-1]) if upper and column.categories else None

    columns = [one for one in schema.columns.values() if not one.drop]
    return [np.array([end(one, upper) for one in columns], dtype=object) for upper in (False, True)]


def _frame(schema: Schema, rows: np.ndarray, ids: np.ndarray) -> Any:
    import pandas as pd

    names = [name for name, one in schema.columns.items() if not one.drop]
    frame = pd.DataFrame({name: pd.Series(rows[:, j], dtype=object) for j, name in enumerate(names)})
    return frame if schema.unit is None else frame.assign(**{schema.unit: ids})


def _labels(estimator: Any, schema: Schema | None) -> list[Any]:
    """[the first, the last] label of the target."""
    ends: Any = (schema.target.classes or schema.target.bounds) if schema else None
    ends = ends or getattr(estimator, "classes", None) or getattr(estimator, "target_bounds", None)
    if ends is None:
        raise UserError("an audit of an estimator takes one with classes, or with target_bounds")
    return [ends[0], ends[-1]]
