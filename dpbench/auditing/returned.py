"""Everything that comes out of a run, and where two runs that released the same differ in it, to the last bit.

Equal numbers are not enough: -0.0 equals 0.0, a NaN has 51 bits to hide a label in, and a subclass of `str` or of an
array carries attributes. So types have to be the same, numbers have the same bytes, and objects are compared by all
that they hold.
"""

from __future__ import annotations

import itertools
import pickle
import struct
import types
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

import msgspec
import numpy as np

from dpbench.privacy.ledger import Composition

PLAIN = (int, str, bytes, bool, type(None))
NUMBERS = (np.bool_, np.integer, np.floating)


class Returned(NamedTuple):
    """What a run gives away beside its releases.

    W: final iterates. facts: of all that it returned, and what the other methods and attributes of the algorithm say
    once it has run. visible: of these, what may be known of a run whose iterates are hidden. ledger: of each replicate.
    """

    W: np.ndarray
    facts: list[Fact]
    visible: list[Fact]
    ledger: list[Composition]


class Listener:
    """A trace that wants every iteration, and writes down what it receives."""

    def __init__(self) -> None:
        self.next = 0
        self.calls: list[tuple[Any, ...]] = []

    def __call__(self, iteration: int, W: np.ndarray, passes: Any, *, final: Any = False) -> None:
        self.next = iteration + 1
        self.calls.append((iteration, *(np.array(each, subok=True) for each in (W, passes, final))))


class Fact(NamedTuple):
    """One thing that a value holds: where it is, of which type, and its bytes or what else it equals."""

    where: str
    kind: type
    content: Any


def facts(value: Any, where: str = "", inside: tuple[int, ...] = ()) -> Iterator[Fact]:
    """All that `value` holds, in order; taken at once, as the value may be written over later."""
    if id(value) in inside:
        yield Fact(where, type(value), "itself")
        return
    inside = (*inside, id(value))
    if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
        yield Fact(where, type(value), (value.dtype.str, value.shape, value.strides, value.tobytes()))
    elif isinstance(value, np.ndarray):
        yield Fact(where, type(value), (value.dtype.str, value.shape))
        yield from facts(value.tolist(), where, inside)
    elif isinstance(value, float):
        yield Fact(where, type(value), struct.pack("d", value))
    elif isinstance(value, PLAIN):
        yield Fact(where, type(value), value)
    elif isinstance(value, Mapping):
        yield Fact(where, type(value), len(value))
        for key, one in value.items():
            yield from facts(key, where, inside)
            yield from facts(one, _below(where, key), inside)
    elif isinstance(value, AbstractSet | list | tuple):
        yield Fact(where, type(value), len(value))
        for one in sorted(value, key=repr) if isinstance(value, AbstractSet) else value:
            yield from facts(one, where, inside)
    elif isinstance(value, type | types.ModuleType | types.BuiltinFunctionType):
        yield Fact(where, type(value), value)
        return
    yield from _held(value, where, inside)


def _held(value: Any, where: str, inside: tuple[int, ...]) -> Iterator[Fact]:
    """What an object holds beside what it is equal by."""
    parts: list[tuple[str, Any]] = []
    if isinstance(value, types.FunctionType):
        parts = [(name, getattr(value, name)) for name in ("__code__", "__defaults__", "__kwdefaults__", "__dict__")]
        parts.append(("closure", [cell.cell_contents for cell in value.__closure__ or ()]))
    elif isinstance(value, types.CodeType):
        parts = [("code", value.co_code), ("constants", value.co_consts), ("names", value.co_names)]
    elif isinstance(value, types.MethodType):
        parts = [("self", value.__self__), ("function", value.__func__)]
    elif isinstance(value, np.random.Generator):
        parts = [("state", value.bit_generator.state)]
    elif isinstance(value, msgspec.Struct):
        parts = [(name, getattr(value, name)) for name in value.__struct_fields__]
    else:
        slots = [name for kind in type(value).__mro__ for name in _names(vars(kind).get("__slots__", ()))]
        parts = [(name, getattr(value, name)) for name in slots if name != "__dict__" and hasattr(value, name)]
        parts += vars(value).items() if hasattr(value, "__dict__") else []
    for name, part in parts:
        yield from facts(part, _below(where, name), inside)
    basic = (*PLAIN, float, np.ndarray, np.generic, Mapping, AbstractSet, list, tuple)
    if not parts and not isinstance(value, basic):
        try:
            yield Fact(where, type(value), pickle.dumps(value))
        except Exception:
            yield Fact(f"{where} (it cannot be compared)", type(value), object())


def difference(one: Iterable[Fact], other: Iterable[Fact]) -> str:
    """The first place, in words, in which two lists of facts differ in type or in a bit; "" where they are the same."""
    for a, b in itertools.zip_longest(one, other):
        if a is None or b is None:
            return (a or b).where
        if a.where == b.where and a.kind is not b.kind:
            return f"{a.where} (its type)"
        if a != b:
            return a.where
    return ""


def _names(slots: Any) -> list[str]:
    return [slots] if isinstance(slots, str) else list(slots)


def _below(where: str, name: Any) -> str:
    return ".".join(filter(None, [where, str(name)]))


def no_numbers(columns: Mapping[str, Any], names: AbstractSet[str]) -> str:
    """The first of `names` whose column holds anything but plain numbers, "" where there is none."""
    plain = {type(None), bool, int, float}
    for name in sorted(names & columns.keys()):
        for value in columns[name].tolist() if type(columns[name]) is np.ndarray else list(columns[name]):
            if type(value) not in plain and not (isinstance(value, np.generic) and type(value).__module__ == "numpy"
                                                 and isinstance(value, NUMBERS)):  # fmt: skip
                return name
    return ""
