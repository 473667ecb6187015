"""A file of rows as a comparison takes it: read by its schema, as the estimators read it, a share of the rows held out.

Without a schema one is drafted, and everything in it is taken for decided: that uses the data, and is a warning.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from dpbench import schema as schemas
from dpbench.datasets import cache
from dpbench.datasets.recipes import PRECISIONS, WITHIN
from dpbench.errors import DataError, UserError, reason, silent
from dpbench.schema import Schema, Target, word
from dpbench.schema.cells import ids
from dpbench.schema.encoding import encoding_of, target_values
from dpbench.schema.look import draft_schema
from dpbench.schema.tables import parts

LARGE = 4e8  # bytes of rows from which their arrays lie on disk
SPLIT = 20260101  # seeds the choice of the rows held out: their positions decide, nothing in them
DRAFTED = (
    "bounds, categories and classes are those found in the data; write a schema (dpbench schema) to say what is public"
)

Arrays = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class OwnTable:
    """Rows ready to compare on: X (n, d) of ‖x‖₂ ≤ 1 and y (n,), -1 and +1 or numbers in [-1, 1].

    columns: the d column names. held_out: (X, y) of the rows kept apart. unit: what 1 of y is in the file's own unit.
    classes: what -1 and +1 are in the file; None of a number. warnings: what used the data on the way. notes: what else
    there is to say. whose: (n,) from 0, equal for rows of one person; then of each in `held_out` there is one row.
    """

    X: np.ndarray
    y: np.ndarray
    columns: list[str]
    held_out: Arrays
    unit: float
    classes: tuple[str, str] | None
    warnings: list[str]
    notes: list[str]
    whose: np.ndarray | None = None

    @property
    def task(self) -> Literal["binary", "regression"]:
        """What there is to predict."""
        return "regression" if self.classes is None else "binary"


def read(
    data: str | os.PathLike[str],
    target: str | None,
    schema: str | os.PathLike[str] | Schema | None,
    *,
    task: str | None = None,
    holdout: float,
    precision: str,
    progress: Callable[[str, float], None] = silent,
) -> OwnTable:
    """The rows of a file as its schema makes numbers of them.

    Args:
        data: a csv, tsv or parquet file, compressed or not. It is read twice, in parts.
        target: the column to predict, which has to be the schema's; None for that.
        schema: what is public of it, or the TOML file that says so; None drafts one.
        task: "binary" or "regression", where the loss takes only that.
        holdout: the share of rows kept apart, chosen by their positions alone.
        precision: "float64" or "float32", of X; a row that would round beyond 1 is kept within.
        progress: called with what is being done and the share of it, where the file is large.

    Raises:
        UserError, DataError: one line.
    """
    if precision not in PRECISIONS:
        raise UserError(f"precision must be float64 or float32, got {precision!r}")
    notes: list[str] = []
    warnings: list[str] = []
    if schema is not None:
        described = schemas.load(schema)
        described.require_decided()
        if target is not None and target != described.target.name:
            raise UserError(f"target: the schema's is {described.target.name}, got {target}")
    elif target is None:
        raise UserError("target: name the column to predict, or give a schema")
    else:
        drafted, notes = draft_schema(data, target)
        described, warnings = _decided(drafted, task), [DRAFTED]
    _check_task(described.target, task)
    if Path(data).stat().st_size < LARGE / 8:
        progress = silent  # it would be a flash
    persons = None if described.unit is None else _persons(data, described, holdout)
    of_use, apart, left_out, whose = _arrays(data, described, holdout, precision, progress, persons)
    if whose is not None:
        notes.append(
            f"all rows of each {described.unit} are in use and weigh 1/m, or one row of it, drawn by its place, is "
            "held out, so that each counts once"
        )
    if left_out:  # rows of zeros move no model, and there is nothing to judge by
        notes.append(f"{left_out:,} rows without a usable label or cell, zeros in a fit, are left out")
    if isinstance(of_use[0], np.memmap):
        notes.append(f"{os.fspath(data)}: its rows lie on disk as {precision}")
    classes, bounds = described.target.classes, described.target.bounds
    return OwnTable(
        *of_use,
        encoding_of(described, intercept=True).names,
        apart,
        1.0 if bounds is None else (bounds[1] - bounds[0]) / 2,
        None if classes is None else (word(classes[0]), word(classes[1])),
        warnings,
        notes,
        whose,
    )


def _decided(drafted: Schema, task: str | None) -> Schema:
    """A draft as if somebody had decided that all it found is public; classes that are numbers as such for `task`."""
    target = msgspec.structs.replace(drafted.target, decide=())
    if task == "regression" and target.classes is not None:
        values = [one for one in target.classes if isinstance(one, int | float) and not isinstance(one, bool)]
        if len(values) == len(target.classes):
            target = Target(name=target.name, bounds=(float(min(values)), float(max(values))))
    columns = {name: msgspec.structs.replace(one, decide=()) for name, one in drafted.columns.items()}
    return msgspec.structs.replace(drafted, target=target, columns=columns, decide=())


def _check_task(target: Target, task: str | None) -> None:
    if target.classes is not None and task == "regression":
        raise UserError(f"loss: it is for numbers, and {target.name} has {len(target.classes)} classes")
    if target.classes is None and task == "binary":
        raise UserError(f"loss: it is for two classes, and {target.name} is a number; name its classes in a schema")
    if target.classes is not None and len(target.classes) > 2:
        raise UserError(
            f"{target.name} has {len(target.classes)} classes; compare takes two (dpbench.PrivateClassifier takes "
            "more), or numbers by --loss squared"
        )


class _Persons(NamedTuple):
    """Of all rows: whose (n,) they are, whether (n,) they are in use, and whether (n,) they are held out."""

    whose: np.ndarray
    used: np.ndarray
    apart: np.ndarray


def _persons(data: str | os.PathLike[str], schema: Schema, holdout: float) -> _Persons:
    """A share `holdout` of the persons, drawn by places, is held out with one row each; nobody's rows are nowhere."""
    names = np.concatenate([ids(str(schema.unit), part[schema.unit]) for part in parts(data, schema)])
    draw = np.random.default_rng(SPLIT)
    place = draw.permutation(len(names))
    different, first, whose = np.unique(names[place], return_index=True, return_inverse=True)
    whose[place] = whose.copy()
    apart = np.isin(np.arange(len(names)), place[first])
    # Drawn by the place of a row of each, so that no id has a say.
    held = np.empty(len(different), dtype=bool)
    held[np.argsort(place[first])] = draw.random(len(different)) < holdout
    known = (different != "")[whose]
    return _Persons(whose, known & ~held[whose], known & held[whose] & apart)


def _arrays(
    data: str | os.PathLike[str],
    schema: Schema,
    holdout: float,
    precision: str,
    progress: Callable[[str, float], None],
    persons: _Persons | None = None,
) -> tuple[Arrays, Arrays, int, np.ndarray | None]:
    """((X, y) in use, (X, y) held out, how many rows are left out, whose are in use): one pass counts, one writes."""
    target, encoding = schema.target, encoding_of(schema, intercept=True)
    # Positions decide what is held out, so both passes draw the same rows, and no cell has a say.
    draw, counts = np.random.default_rng(SPLIT), np.zeros(2, dtype=int)

    def sides(part: Any) -> tuple[np.ndarray, np.ndarray]:
        if persons is not None:
            return persons.used[part.index], persons.apart[part.index]
        used = draw.random(len(part)) >= holdout
        return used, ~used

    for part in parts(data, schema, lambda share: progress("first pass", share)):
        if target.name not in part.columns:
            raise DataError(f"{data}: there is no column {target.name!r}, the schema's target")
        counts += [int(side.sum()) for side in sides(part)]
    places = [(_room((n, len(encoding.names)), precision), _room((n,), "float64")) for n in counts.tolist()]
    draw, done, left_out, whose = np.random.default_rng(SPLIT), [0, 0], 0, list[np.ndarray]()
    for part in parts(data, schema, lambda share: progress("second pass", share)):
        used, held = sides(part)
        y, known = target_values(target, part[target.name])
        rows = encoding.rows(part, fitting=True) * (WITHIN if precision == "float32" else 1.0)
        y = y if target.classes is None else np.where(y == 1, 1.0, -1.0)
        # A row of zeros has the score 0 by any model, so it would say nothing of a method.
        kept = known & rows.any(axis=1)
        left_out += int(((used | held) & ~kept).sum())
        if persons is not None:
            whose.append(persons.whose[part.index[used & kept]])
        for i, which in enumerate((used & kept, held & kept)):
            n = int(which.sum())
            for place, values in zip(places[i], (rows, y), strict=True):
                place[done[i] : done[i] + n] = values[which]
            done[i] += n
    of_use, apart = ((X[:n], y[:n]) for (X, y), n in zip(places, done, strict=True))
    return of_use, apart, left_out, np.unique(np.concatenate(whose), return_inverse=True)[1] if whose else None


def _room(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array of zeros; a large one lies in a file without a name in the data cache, gone when the array is.

    UserError, in one line, where the disk has no room for it.
    """
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if size < LARGE or not size:
        return np.zeros(shape, dtype)
    folder = cache.root()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            if hasattr(os, "posix_fallocate"):  # a full disk is an error now, not a signal later
                os.posix_fallocate(file.fileno(), 0, size)
            return np.memmap(file, dtype=dtype, mode="w+", shape=shape)
    except OSError as error:
        raise UserError(
            f"{folder}: {reason(error)} ({size / 1e9:.1f} GB are needed); set DPBENCH_DATA to a folder with room"
        ) from error
