"""A linear model as one SQL query: CASE, arithmetic and comparisons alone, which every dialect has.

A cell counts as the schema says, as in `schema.encode`: missing ones as the middle or as no category, numbers beyond
the bounds as the nearest end, unknown categories as none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from dpbench import files
from dpbench.errors import UserError
from dpbench.estimators.card import described
from dpbench.estimators.models import PrivateClassifier, load_model
from dpbench.schema import Column, Schema


def query(path: str | os.PathLike[str], table: str) -> str:
    """The query that adds a column `prediction`, and the scores, to a table with the model's columns.

    Scores: `score` of the second of two classes (positive where it is predicted) or of a number in its unit, `score_0`,
    `score_1`, … of more classes. UserError for a schema with dates or a row bound.
    """
    model = load_model(path)  # its statement is checked
    content, schema, statement = described(path)
    check(schema)
    W = np.asarray(model.W_) / float(content["unit"])
    intercept = bool(content["parameters"]["fit_intercept"])
    scores = [_score(schema, row, intercept) for row in W]
    if isinstance(model, PrivateClassifier):
        names = ["score"] if len(scores) == 1 else [f"score_{i}" for i in range(len(scores))]
        labels = [_text(one) if isinstance(one, str) else repr(one) for one in model.classes_.tolist()]
        prediction = _largest(names, labels)
    else:
        middle, half = (float(one) for one in content["target"])
        names = ["score"]
        cut = "CASE WHEN score < -1 THEN -1 WHEN score > 1 THEN 1 ELSE score END"
        prediction = f"{middle!r} + {half!r} * ({cut})"
    told = " ".join(f"{os.path.basename(path)}: {statement.guarantee}".split())  # a line break would end the comment
    made = ",\n".join(f"    {score} AS {name}" for score, name in zip(scores, names, strict=True))
    return (
        "\n".join(
            [
                f"-- {told}",
                f"SELECT scored.*, {prediction} AS prediction",
                "FROM (",
                "  SELECT source.*,",
                made,
                f"  FROM {_name(table)} AS source",
                ") AS scored",
            ]
        )
        + "\n"
    )


def check(schema: Schema) -> None:
    """UserError for a schema that SQL cannot say."""
    if schema.row_bound is not None:
        raise UserError("row_bound: it shortens rows, which this query cannot say; fit without one")
    for name, column in schema.columns.items():
        if column.date is not None:
            raise UserError(
                f"columns.{name}: SQL dialects differ on dates; make a column of each part, and fit with their bounds"
            )


def _score(schema: Schema, weights: np.ndarray, intercept: bool) -> str:
    """The sum of weights times encoded columns."""
    terms = [repr(float(weights[0]))] if intercept else []
    left = list(weights[int(intercept) :])
    for name, column in schema.columns.items():
        if not column.drop:
            here = [float(left.pop(0)) for _ in range(_count(column))]
            terms += _terms(f"source.{_name(name)}", column, here)
    assert not left
    return "\n      + ".join(terms)


def _count(column: Column) -> int:
    """How many columns one becomes."""
    own = len(column.categories) if column.categories and not column.ordered else 1
    return own + (column.missing == "indicator")


def _terms(cell: str, column: Column, weights: list[float]) -> Iterator[str]:
    text = f"TRIM(CAST({cell} AS VARCHAR(1000)))"
    if column.bounds is not None:
        low, high = column.bounds
        middle, half = low / 2 + high / 2, high / 2 - low / 2
        yield (
            f"{weights[0]!r} * CASE WHEN {cell} IS NULL THEN 0 WHEN {cell} <= {low!r} THEN -1 "
            f"WHEN {cell} >= {high!r} THEN 1 ELSE ({cell} - {middle!r}) / {half!r} END"
        )
        unknown = f"{cell} IS NULL"
    else:
        assert column.categories is not None
        k = len(column.categories)
        ordered = [weights[0] * (2 * i / (k - 1) - 1) for i in range(k) if column.ordered]
        worth = ordered or weights[:k]
        cases = " ".join(
            f"WHEN {_text(spelled)} THEN {value!r}"
            for label, value in zip(column.categories, worth, strict=True)
            for spelled in _spellings(label)
        )
        yield f"CASE {text} {cases} ELSE 0 END"
        known = ", ".join(_text(spelled) for label in column.categories for spelled in _spellings(label))
        unknown = f"{cell} IS NULL OR {text} NOT IN ({known})"
    if column.missing == "indicator":
        yield f"CASE WHEN {unknown} THEN {weights[-1]!r} ELSE 0 END"


def _spellings(label: str) -> list[str]:
    """How a cell of that category may be written: a whole number with a decimal point too."""
    return [label, f"{label}.0"] if label.removeprefix("-").isdecimal() else [label]


def _largest(names: list[str], labels: list[str]) -> str:
    """The label of the largest score, the first of equal ones; of one score, by its sign."""
    if len(names) == 1:
        return f"CASE WHEN score > 0 THEN {labels[1]} ELSE {labels[0]} END"
    cases = [
        f"WHEN {' AND '.join(f'{name} >= {other}' for other in names if other != name)} THEN {label}"
        for name, label in zip(names, labels, strict=True)
    ]
    return f"CASE {' '.join(cases)} END"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def export(model: str | os.PathLike[str], *, table: str = "rows", out: str | os.PathLike[str] | None = None) -> str:
    """A SQL query that predicts as a saved model does, for where there is no dpbench.

    Args:
        model: the file that an estimator saved.
        table: what the table with the model's columns is called.
        out: a file to write the query to; None writes none.

    Returns:
        The query. It adds the scores and a column `prediction`, by CASE and arithmetic alone.

    Raises:
        UserError: the file is none that dpbench wrote, or its schema has dates or a row bound, which SQL cannot say.
        DoesNotHold: its releases compose to more than it states.
    """
    return files.written(query(model, table), out)
