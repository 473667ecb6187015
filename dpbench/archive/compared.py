"""What a row of an archive says beside the same run made again: every column and the trace, but a closed list."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator, Mapping
from itertools import repeat
from typing import Any

import msgspec
import numpy as np

from dpbench.archive.content import Traced
from dpbench.run.row import BUILT_IN, Point, Row

AGREE = 1e-6  # relative: what another summation order may change
SINGLE = 1e-4  # relative, of numbers that are kept in single precision
SAME_EPSILON = 2e-3  # relative, of two computations of one ε: their grids
CHAOTIC = 100.0  # what a run moves by when its start does, times this, covers the rounding of another processor
# The columns of a row in which a second run is not compared, and why not. Every other column is compared, also one that
# comes tomorrow: this is a list of exceptions.
NOT_COMPARED = {
    "key": "it is the hash of the identity, which is made anew",
    "experiment": "it is that of the manifest",
    "seconds": "times are of the machine: a timed run is `not checked` unless they are accepted",
    "code_version": "of the author's dpbench, not of the reader's",
    "environment": "of the author's machine",
    "traceback": "it is in no archive",
}
# What rows made before version 0.3 do not say, where it is this: a foreign method's row must say that it is one.
LATER = {"code": BUILT_IN}
ACCEPTABLE = ("seconds",)  # columns of NOT_COMPARED that figures and tables are drawn from
EPSILONS = ("epsilon_planned", "epsilon_realised", "epsilon_accounted")
# Differences of losses, whose rounding is that of the objective.
IN_LOSS = ("objective", "excess", "gradient_norm", "lambda_min", "measured", "measured_error", "bound", "diagnostics",
           "held_loss", "held_loss_se", "held_gain", "held_gain_se", "held_loss_gain", "held_loss_gain_se")  # fmt: skip
PLACE = re.compile(r" \([\w.]+\.py:\d+\)$")  # at the end of an error: the line moves from version to version


def row_differences(stated: Row, again: Row) -> Iterator[tuple[str, str]]:
    """(column, what is wrong) of every compared column that differs; "" for what the row does not have at all."""
    scale = _size(again)
    for name in again.__struct_fields__:
        if name in NOT_COMPARED:
            continue
        there, here = (_plain(name, getattr(row, name, None)) for row in (stated, again))
        if there is None and LATER.get(name, there) == here:
            continue
        relative = SAME_EPSILON if name in EPSILONS else SINGLE if name == "values" else AGREE
        if same(there, here, scale if name in IN_LOSS else 0.0, relative):
            continue
        why = f": {again.error}" if name == "status" and again.error else ""
        told = f"its row says {name} = {shown(there)}, run again it is {shown(here)}{why}"
        yield name, "" if _lacks(there, here) else told


def _plain(name: str, value: Any) -> Any:
    """A column's value as JSON has it; an error without its line of code, which moves from version to version."""
    if name == "error":
        return PLACE.sub("", value or "")
    if name == "notes" and str(value).startswith("{"):  # JSON: its numbers agree up to rounding
        with contextlib.suppress(msgspec.DecodeError):
            return msgspec.json.decode(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    return msgspec.to_builtins(dict(value)) if isinstance(value, Mapping) else value


def as_far(stated: Row, again: Row, nudged: Row, column: str) -> bool:
    """Whether `nudged`, the run with its start moved in the last digits, differs as much in a column as the row does.

    Such a run is chaotic: another processor's rounding gives other numbers, which nobody can confirm or deny.
    """
    there, here, beside = (_flat(_plain(column, getattr(row, column, None))) for row in (stated, again, nudged))
    if not len(there) == len(here) == len(beside):
        return False
    # A gap of 0 is no chaos, and an infinite move would excuse any row.
    gap, own = (float(np.max(np.abs(one - here), initial=0.0)) for one in (there, beside))
    return 0 < gap <= CHAOTIC * own < math.inf


def _flat(value: Any) -> np.ndarray:
    """The numbers of a column in their order; none for words."""
    if isinstance(value, Mapping):
        value = [value[name] for name in sorted(value)]
    if isinstance(value, list | tuple):
        return np.concatenate([_flat(each) for each in value]) if value else np.empty(0)
    return np.array([value], dtype=float) if _number(value) else np.empty(0)


def trace_differences(stated: Traced, points: list[Point], again: Row) -> Iterator[tuple[str, str]]:
    """The same of the recorded iterations, but for their seconds."""
    for name in stated.__struct_fields__:
        there, here = getattr(stated, name), [getattr(point, name) for point in points]
        if name not in NOT_COMPARED and not same(there, here, _size(again) if name == "excess" else 0.0):
            yield f"trace: {name}", f"{name} of its trace is not that of the run"


def _size(row: Row) -> float:
    """Of its objective, which losses are differences of; 0 where that is not finite: else all numbers would agree."""
    return abs(row.objective) if row.objective is not None and math.isfinite(row.objective) else 0.0


def same(there: Any, here: Any, scale: float = 0.0, relative: float = AGREE) -> bool:
    """Whether two values of a column agree: numbers up to rounding, all else exactly; an empty text is nothing.

    scale: the size of what a number is a difference of, 0 for none. An archive holds finite numbers alone, so what is
    not finite is nothing too.
    """
    if isinstance(here, Mapping) and isinstance(there, Mapping):
        return there.keys() == here.keys() and all(same(there[name], here[name], scale, relative) for name in here)
    if isinstance(here, list | tuple) and isinstance(there, list | tuple):
        return len(there) == len(here) and all(map(same, there, here, repeat(scale), repeat(relative)))
    there, here = (None if each == "" or _endless(each) else each for each in (there, here))
    if _number(here) and _number(there) and float in (type(there), type(here)):
        # The absolute 1e-12 is for losses alone, which come down to 0 at an optimum.
        return bool(abs(there - here) <= relative * max(abs(there), abs(here), scale) + 1e-12 * bool(scale))
    # By type too: True == 1 in Python, but not in a row.
    return type(there) is type(here) and bool(there == here)


def _endless(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _lacks(there: Any, here: Any) -> bool:
    """Whether an older row has not got what one of today has; what both have agrees."""
    if isinstance(there, Mapping) and isinstance(here, Mapping):
        return there.keys() < here.keys() and all(same(there[name], here[name]) for name in there)
    return there is None or there == ""


def shown(value: Any) -> str:
    """A value of a column for a line of text."""
    return "nothing" if value is None else f"{value:.9g}" if isinstance(value, float) else ascii(value)[:80]
