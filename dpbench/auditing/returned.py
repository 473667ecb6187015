"""Everything that comes out of a run, and where two runs that released the same differ in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np

from dpbench.privacy.ledger import Composition


class Returned(NamedTuple):
    """What a run gives away beside its releases: settings, final iterates, what `Outcome` holds, calls of the trace."""

    settings: Any
    W: np.ndarray
    T: Any
    withheld: list[bool]
    columns: dict[str, Any]
    evidence: Any
    trace: list[tuple[Any, ...]]
    ledger: list[Composition]


class Listener:
    """A trace that wants every iteration, and writes down what it is told."""

    def __init__(self) -> None:
        self.next = 0
        self.calls: list[tuple[Any, ...]] = []

    def __call__(self, iteration: int, W: np.ndarray, passes: Any, *, final: Any = False) -> None:
        self.next = iteration + 1
        self.calls.append((iteration, np.array(W), np.array(passes), np.array(final)))


def difference(one: Any, other: Any, where: str = "") -> str:
    """The first place, in words, in which two values differ; "" where they do not. Numbers have to be equal exactly."""
    if hasattr(one, "__dict__") or isinstance(one, Returned | msgspec.Struct):
        if type(one) is not type(other):
            return where
        one, other = _fields(one), _fields(other)
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return "" if _equal(one, other) else where
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        if list(one) != list(other):
            return where
        pairs = [(one[key], other[key], f"{where}.{key}" if where else str(key)) for key in one]
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        pairs = [(a, b, where) for a, b in zip(one, other, strict=True)]
    else:
        return "" if one == other or (one != one and other != other) else where
    return next((found for a, b, place in pairs if (found := difference(a, b, place))), "")


def _fields(value: Any) -> Any:
    if isinstance(value, Returned):
        return value._asdict()
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.asdict(value)
    return dict(vars(value)) if hasattr(value, "__dict__") else value


def _equal(one: Any, other: Any) -> bool:
    one, other = np.asarray(one), np.asarray(other)
    numbers = one.dtype.kind == "f" and other.dtype.kind == "f"
    return one.shape == other.shape and bool(np.array_equal(one, other, equal_nan=numbers))


def without(returned: Returned, names: set[str]) -> Returned:
    """The same without the columns `names`."""
    return returned._replace(columns={name: one for name, one in returned.columns.items() if name not in names})
