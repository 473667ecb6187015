"""Everything that comes out of a run, and where two runs that released the same differ in it, to the last bit.

Equal numbers are not enough: -0.0 equals 0.0, a NaN has 51 bits to hide a label in, and a subclass of `str` or of an
array carries attributes. So types have to be the same, numbers have the same bytes, and objects are compared by all
that they hold.
"""

from __future__ import annotations

import pickle
import struct
import types
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

import msgspec
import numpy as np

from dpbench.privacy.ledger import Composition

PLAIN = (int, str, bytes, bool, type(None))
NUMBERS = (np.bool_, np.integer, np.floating)


class Returned(NamedTuple):
    """What a run gives away beside its releases.

    settings: as completed on the data. W: final iterates. outcome: all else that `run` returned. hooks: the columns,
    and what the other methods and attributes of the algorithm say once it has run. trace: calls of the trace. ledger:
    of each replicate.
    """

    settings: Any
    W: np.ndarray
    outcome: dict[str, Any]
    hooks: dict[str, Any]
    trace: list[tuple[Any, ...]]
    ledger: list[Composition]


class Listener:
    """A trace that wants every iteration, and writes down what it is told."""

    def __init__(self) -> None:
        self.next = 0
        self.calls: list[tuple[Any, ...]] = []

    def __call__(self, iteration: int, W: np.ndarray, passes: Any, *, final: Any = False) -> None:
        self.next = iteration + 1
        self.calls.append((iteration, *(np.array(each, subok=True) for each in (W, passes, final))))


def difference(one: Any, other: Any, where: str = "", seen: frozenset[int] = frozenset()) -> str:
    """The first place, in words, in which two values differ in type or in a bit; "" where they are the same."""
    if type(one) is not type(other):
        return f"{where} (its type)"
    if id(one) in seen:
        return ""
    if isinstance(one, np.ndarray | np.generic):
        return _of_arrays(one, other, where, seen) or _of_objects(one, other, where, seen)
    if isinstance(one, float):
        return where if struct.pack("d", one) != struct.pack("d", other) else _of_objects(one, other, where, seen)
    if isinstance(one, PLAIN):
        return where if one != other else _of_objects(one, other, where, seen)
    seen |= {id(one)}
    if isinstance(one, Mapping):
        pairs = [(list(one), list(other), where)]
        pairs += [(one[a], other[b], _below(where, a)) for a, b in zip(one, other, strict=False)]
        return _first(pairs, seen) or _of_objects(one, other, where, seen)
    if isinstance(one, AbstractSet):
        one, other = sorted(one, key=repr), sorted(other, key=repr)
    if isinstance(one, list | tuple):
        if len(one) != len(other):
            return where
        return _first([(a, b, where) for a, b in zip(one, other, strict=True)], seen) or _of_objects(
            one, other, where, seen
        )
    return "" if one is other else _of_objects(one, other, where, seen)


def _of_arrays(one: Any, other: Any, where: str, seen: frozenset[int]) -> str:
    if (one.dtype, one.shape, one.strides) != (other.dtype, other.shape, other.strides):
        return where
    if one.dtype.hasobject:
        return difference(one.tolist(), other.tolist(), where, seen)
    return where if one.tobytes() != other.tobytes() else ""


def _of_objects(one: Any, other: Any, where: str, seen: frozenset[int]) -> str:
    """In what an object holds beside its value."""
    held = [(a, b, _below(where, name)) for name, a, b in _held(one, other)]
    if held or isinstance(one, (*PLAIN, float, np.ndarray, np.generic, list, tuple, Mapping)):
        return _first(held, seen)
    if isinstance(one, np.random.Generator):
        return difference(one.bit_generator.state, other.bit_generator.state, where, seen)
    try:
        return where if pickle.dumps(one) != pickle.dumps(other) else ""
    except Exception:
        return f"{where} (it cannot be compared)"


def _held(one: Any, other: Any) -> list[tuple[str, Any, Any]]:
    if isinstance(one, types.FunctionType):
        names = ["__code__", "__defaults__", "__kwdefaults__", "__dict__"]
        cells = [[cell.cell_contents for cell in each.__closure__ or ()] for each in (one, other)]
        return [(name, getattr(one, name), getattr(other, name)) for name in names] + [("closure", *cells)]
    if isinstance(one, types.CodeType):
        return [("code", one.co_code, other.co_code), ("constants", one.co_consts, other.co_consts)]
    if isinstance(one, types.MethodType):
        return [("self", one.__self__, other.__self__), ("function", one.__func__, other.__func__)]
    if isinstance(one, msgspec.Struct):
        return [("", msgspec.structs.asdict(one), msgspec.structs.asdict(other))]
    slots = [name for kind in type(one).__mro__ for name in _names(vars(kind).get("__slots__", ()))]
    found = [(name, getattr(one, name, None), getattr(other, name, None)) for name in slots if name != "__dict__"]
    if hasattr(one, "__dict__"):
        found.append(("", vars(one), vars(other)))
    return found


def _names(slots: Any) -> list[str]:
    return [slots] if isinstance(slots, str) else list(slots)


def _below(where: str, name: Any) -> str:
    return ".".join(filter(None, [where, str(name)]))


def _first(pairs: list[tuple[Any, Any, str]], seen: frozenset[int]) -> str:
    return next((found for a, b, place in pairs if (found := difference(a, b, place, seen))), "")


def no_numbers(columns: Mapping[str, Any], names: AbstractSet[str]) -> str:
    """The first of `names` whose column holds anything but plain numbers, "" where there is none."""
    plain = {type(None), bool, int, float}
    for name in sorted(names & columns.keys()):
        for value in columns[name].tolist() if type(columns[name]) is np.ndarray else list(columns[name]):
            if type(value) not in plain and not (isinstance(value, np.generic) and type(value).__module__ == "numpy"
                                                 and isinstance(value, NUMBERS)):  # fmt: skip
                return name
    return ""
