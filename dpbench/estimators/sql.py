"""A linear model as one SQL query: CASE, arithmetic and comparisons, and SQRT where rows have a bound (SQL:2003).

A cell counts as the schema says, as in `schema.encode`: missing ones as the middle or as no category, numbers beyond
the bounds as the nearest end, unknown categories as none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import numpy as np

from dpbench.errors import UserError
from dpbench.estimators.saved import REGRESSOR, Saved, read
from dpbench.schema import Column, Schema, places


def query(path: str | os.PathLike[str], table: str) -> str:
    """The query that adds a column `prediction`, and the scores, to a table with the model's columns.

    Scores: `score` of the second of two classes (positive where it is predicted) or of a number (-1 to 1 within its
    bounds); `score_0`, `score_1`, … of more classes. Of a model with a row bound also `row_length`, the row's over the
    bound, by which the scores of a longer row are divided. Where the model has a column of such a name, it is `score_`
    and so on. UserError for a schema with dates, and for a table without a name.
    """
    if not table.strip():
        raise UserError("table: give the name of the table with the model's columns")
    model, statement, _ = read(path)
    schema = model.described
    check(schema)
    W, intercept = np.array(model.W) / model.unit, model.parameters.fit_intercept
    taken = {name.casefold() for name in (*schema.columns, schema.target.name)}
    names = _free([f"score_{i}" for i in range(len(W))] if len(W) > 1 else ["score"], taken)
    (prediction,) = _free(["prediction"], taken)
    (length,) = _free(["row_length"], taken)
    source, shorter = _name(table), "{}"
    if schema.row_bound is not None:
        found = _length(schema, model.unit, intercept)
        source = f"(\n    SELECT {found} AS {length},\n      source.*\n    FROM {source} AS source\n  )"
        shorter = f"({{}})\n      / CASE WHEN source.{length} > 1 THEN source.{length} ELSE 1 END"
    made = ",\n".join(
        f"    {shorter.format(_score(schema, row, intercept))} AS {name}" for name, row in zip(names, W, strict=True)
    )
    told = " ".join(f"{os.path.basename(path)}: {statement.guarantee}".split())  # a line break would end the comment
    lines = [
        f"-- {told}",
        f"SELECT scored.*, {_predicted(model, names)} AS {prediction}",
        "FROM (",
        "  SELECT",
        f"{made},",
        "    source.*",  # after the scores: where the table has their names too, theirs come first
        f"  FROM {source} AS source",
        ") AS scored",
    ]
    return "\n".join(lines) + "\n"


def _free(names: Sequence[str], taken: set[str]) -> list[str]:
    """The names, with underscores behind until none is a column of the model."""
    while taken & {name.casefold() for name in names}:
        names = [f"{name}_" for name in names]
    return list(names)


def _predicted(model: Saved, names: list[str]) -> str:
    if model.kind == REGRESSOR:
        assert model.target is not None
        middle, half = model.target
        score = names[0]
        return f"{middle!r} + {half!r} * (CASE WHEN {score} < -1 THEN -1 WHEN {score} > 1 THEN 1 ELSE {score} END)"
    return _largest(names, [_label(one) for one in model.classes or ()])


def _label(label: str | int | float | bool) -> str:
    if isinstance(label, bool):
        return "TRUE" if label else "FALSE"
    return _text(label) if isinstance(label, str) else repr(label)


def check(schema: Schema) -> None:
    """UserError for a schema that SQL cannot say."""
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
    if column.bounds is not None:
        yield f"{weights[0]!r} * {_number(cell, column, ('0', '-1', '1'), '{}')}"
    else:
        worth = [weights[0] * place for place in _places(column)] if column.ordered else weights
        yield _category(cell, column, worth, "0")
    if column.missing == "indicator":
        known = [] if column.bounds is not None else places(column.categories or ())
        unread = f" OR {_trimmed(cell)} NOT IN ({', '.join(map(_text, known))})" if known else ""
        yield f"CASE WHEN {cell} IS NULL{unread} THEN {weights[-1]!r} ELSE 0 END"


def _length(schema: Schema, unit: float, intercept: bool) -> str:
    """The length of an encoded row over the bound: where a cell is unknown, its indicator alone counts."""
    squares = ["1"] * intercept
    for name, column in schema.columns.items():
        if not column.drop:
            cell, unknown = f"source.{_name(name)}", str(int(column.missing == "indicator"))
            if column.bounds is not None:
                squares.append(_number(cell, column, (unknown, "1", "1"), "{0} * {0}"))
            else:
                assert column.categories is not None
                worth = [place**2 for place in _places(column)] if column.ordered else [1.0] * len(column.categories)
                squares.append(_category(cell, column, worth, unknown))
    return "SQRT(" + "\n      + ".join(squares) + f") / {unit!r}"


def _number(cell: str, column: Column, ends: tuple[str, str, str], of: str) -> str:
    """What a number comes to: `ends` where it is missing, at the least, at the most; else `of` its place in [-1, 1]."""
    assert column.bounds is not None
    low, high = column.bounds
    middle, half = low / 2 + high / 2, high / 2 - low / 2
    return (
        f"CASE WHEN {cell} IS NULL THEN {ends[0]} WHEN {cell} <= {low!r} THEN {ends[1]} "
        f"WHEN {cell} >= {high!r} THEN {ends[2]} ELSE {of.format(f'(({cell} - {middle!r}) / {half!r})')} END"
    )


def _category(cell: str, column: Column, worth: Sequence[float], unknown: str) -> str:
    """What a category comes to: `worth` of each, `unknown` of any other text."""
    known = places(column.categories or ())
    cases = " ".join(f"WHEN {_text(spelled)} THEN {worth[i]!r}" for spelled, i in known.items())
    return f"CASE {_trimmed(cell)} {cases} ELSE {unknown} END"


def _places(column: Column) -> list[float]:
    """Of ordered categories, from -1 to 1."""
    k = len(column.categories or ())
    return [2 * i / (k - 1) - 1 for i in range(k)]


def _trimmed(cell: str) -> str:
    return f"TRIM(CAST({cell} AS VARCHAR(1000)))"


def _largest(names: list[str], labels: list[str]) -> str:
    """The label of the largest score, the first of equal ones; of one score, by its sign."""
    if len(names) == 1:
        return f"CASE WHEN {names[0]} > 0 THEN {labels[1]} ELSE {labels[0]} END"
    cases = [
        f"WHEN {' AND '.join(f'{name} >= {other}' for other in names if other != name)} THEN {label}"
        for name, label in zip(names, labels, strict=True)
    ]
    return f"CASE {' '.join(cases)} END"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
