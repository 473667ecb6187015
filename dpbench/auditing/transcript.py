"""Everything a run released, what it would have released had the data been others, and all else that comes out of it.

`Recorder` writes down what a run releases; its `replay` answers every release of a run on other data with what was
recorded, and writes down the value that noise would have hidden. Both decorate the seam below the mechanisms
(`Releases`): the code that draws and adds noise is the audited one. A replay draws noise of its own: what a run returns
may depend on what was released, never on the noise alone.

`facts` are compared to the last bit: -0.0 equals 0.0, a NaN has 51 bits to hide a label in, and a subclass of `str` or
of an array carries attributes.
"""

from __future__ import annotations

import copy
import itertools
import pickle
import struct
import types
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np

from dpbench.errors import PrivacyError
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Composition, Relation, Release, Sampled
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.privacy.noise import Array, Noise, Releases
from dpbench.privacy.sampling import AllocationSampler, PoissonSampler


class Leak(PrivacyError):
    """What a run did next, or returned, depends on more of the data than it released."""


@dataclass
class RecordedRelease:
    """One release of one or all replicates: `value` before and `output` after the noise of `scale`, (k, …).

    kind, group: see `Releases.publish`; of rounds with correlated noise, the independent releases. sample: the rows
    that the value was computed from, where these were drawn.
    """

    kind: str
    label: str
    event: Release | None
    value: np.ndarray
    output: np.ndarray
    scale: Any
    group: Hashable = None
    sample: list[Array] | None = None


def _generators(seed: Any, count: int) -> list[np.random.Generator]:
    return [np.random.Generator(np.random.PCG64DXSM(child)) for child in np.random.SeedSequence(seed).spawn(count)]


class Tape(Releases):
    """The seam of k replicates, with everything published written down.

    published: per replicate that advances alone, and under None what all release together. answer: (kind, value, scale)
    → what is released instead, for worlds that share nothing. public: of each replicate, the seed of its coins and of
    the order of a single pass; () draws these like all else. row, n: the row that differs, and how many there are.
    keyed: noise comes from the streams of replicates' keys, as in a run; else all of them share one generator, which
    thousands of replicates would take long to seed. fresh: of a replay, noise is of a stream of its own.
    """

    answer: Callable[[str, np.ndarray, Any], np.ndarray] | None = None

    def __init__(
        self, k: int, seed: Any, *, factor: float = 1.0, public: Sequence[int] = (), row: int = 0, n: int = 0,
        keyed: bool = False, fresh: bool = False,
    ) -> None:  # fmt: skip
        super().__init__([f"{'replay' if fresh else 'audit'}/{seed}/{i}" for i in range(k)], factor=factor)
        self.seed, self.row, self.n, self.keyed, self.public = seed, row, n, keyed, public
        noise, sampling, coins = _generators(seed, 3)
        if fresh:
            self.noise = [np.random.Generator(np.random.PCG64DXSM(np.random.SeedSequence(seed, spawn_key=(6,))))] * k
        elif not keyed:
            self.noise = [noise] * k
        self.sampling, self.coins = [sampling] * k, [coins] * k
        if len(public):
            self.sampling, self.coins = map(list, zip(*(_generators(one, 2) for one in public), strict=True))
        self._given = {id(one): one for one in [*self.noise, *self.sampling]} if keyed else {}
        self.published: dict[int | None, list[RecordedRelease]] = {}
        # What it is, the law and the noise over its scale, of every `draw` that is not for something published.
        self.hidden: list[tuple[str, str, Array]] = []
        self._publishing = False
        # Of every release on a sample: its label and event, whether the row was in it, and how often each row was.
        self.present: list[tuple[str, Release | None, Array, Array]] = []
        self._sample: list[Array] = []
        self.drawn: dict[int | None, list[list[Array]]] = {}  # every sample, per replicate that advances alone
        self._rounds: dict[Hashable, list[tuple[np.ndarray, np.ndarray]]] = {}  # values and what was released of each

    def sample(self, rule: Any, least: Any) -> Any:
        self._look_at(self.sampling)
        self._sample = super().sample(rule, least)
        self.drawn.setdefault(self.key, []).append(self._sample)
        return self._sample

    def noisy(self, value: Array, scale: Array, noise: Noise) -> Array:
        self._look_at(self.noise)
        return super().noisy(value, scale, noise)

    def _look_at(self, generators: list[np.random.Generator]) -> None:
        # Their numbers do not show it: in pairs they may be independent, and somebody may know them all.
        if self._given and any(id(one) not in self._given for one in generators):
            raise Leak("it draws from another generator than it was given")

    def hidden_noise(self, shape: tuple[int, ...], scale: Array, noise: Noise, what: str) -> Array:
        drawn = super().hidden_noise(shape, scale, noise, what)
        if not self._publishing:
            self.hidden.append((what, noise.name, drawn / column(scale, len(shape))))
        return drawn

    @property
    def key(self) -> int | None:
        return None if self.members is None else self.members[0]

    def publish(
        self, kind: str, label: str, event: Release | None, value: Any, scale: Any, release: Any, group: Any = None,
        mix: Any = (),
    ) -> Any:  # fmt: skip
        if kind != "normal" or group is None:
            return self._write(kind, label, event, value, scale, release, group)
        rounds = self._rounds.setdefault(group, [])
        true, released = (sum((w * rounds[t - 1][i] for t, w in mix), np.zeros(value.shape)) for i in (0, 1))
        independent = self._write(kind, label, event, value + true, scale, lambda: release() + released, None)
        rounds.append((value, independent - released))
        return independent - released

    def _write(
        self, kind: str, label: str, event: Release | None, value: Any, scale: Any, release: Any, group: Any
    ) -> Any:
        value, sample = np.array(value, dtype=float), None
        if isinstance(event, Sampled):
            sample = self._sample
            present = np.array([self.row in rows for rows in self._sample])
            counts = np.bincount(np.concatenate(self._sample).astype(int), minlength=self.n)
            self.present.append((label, event, present, counts))
        self._publishing = True
        output = self.answer(kind, value, scale) if self.answer else release()
        self._publishing = False
        self.published.setdefault(self.key, []).append(
            RecordedRelease(kind, label, event, value, np.array(output), scale, group, sample)
        )
        return output


class ReplayedTape(Tape):
    """Answers every release with what was recorded, and writes down the value.

    held: every sample holds the row that differs. Of a Poisson sample the other rows are those recorded: they tell
    nothing of that row, and an adversary may know them. The rows of a sample of fixed size tell whether it is one, so
    there they are the first. Else samples are those recorded, and without the row in them no value may be moved.
    """

    def __init__(self, recorded: Tape, *, held: bool, fresh: bool) -> None:
        super().__init__(
            recorded.k, recorded.seed, factor=recorded.factor, public=recorded.public, row=recorded.row, n=recorded.n,
            keyed=recorded.keyed, fresh=fresh,
        )  # fmt: skip
        self._recorded, self._held = recorded, held

    def sample(self, rule: Any, least: Any) -> Any:
        mine = self.drawn.setdefault(self.key, [])
        theirs = self._recorded.drawn.get(self.key, [])
        known = theirs[len(mine)] if len(mine) < len(theirs) else [least] * len(self.sampling)
        if self._held:
            poisson = isinstance(getattr(rule, "__self__", None), PoissonSampler | AllocationSampler)
            first = np.append(least[:-1], self.row) if self.row not in least else least
            known = [np.union1d([self.row], rows) if poisson else first.copy() for rows in known]
        mine.append(known)
        return mine[-1]

    def _write(
        self, kind: str, label: str, event: Release | None, value: Any, scale: Any, release: Any, group: Any
    ) -> Any:
        mine = self.published.setdefault(self.key, [])
        theirs = self._recorded.published.get(self.key, [])
        value = np.array(value, dtype=float)
        one = theirs[len(mine)] if len(mine) < len(theirs) else None
        if one is None or (one.label, one.kind, one.value.shape) != (label, kind, value.shape):
            raise Leak(f"on a neighbour it releases something else after the same releases: {label}")
        if one.event != event or not np.array_equal(np.asarray(one.scale), np.asarray(scale), equal_nan=True):
            raise Leak(f"on a neighbour it adds noise of another scale after the same releases: {label}")
        if one.sample is not None and not self._held:
            moved = ~((value == one.value) | (np.isnan(value) & np.isnan(one.value)))
            present = np.array([self.row in rows for rows in one.sample])
            if moved.reshape(len(value), -1).any(axis=1)[~present].any():
                raise Leak(f"{label}: a row moves it that is not in its sample")
        mine.append(RecordedRelease(one.kind, label, one.event, value, one.output, one.scale, one.group, one.sample))
        return one.output.copy()


class Recorder(Mechanisms):
    """Mechanisms for k replicates, with the `tape` of what was released.

    declared: the relation of the sensitivities handed over, by default the budget's. All else: of `Tape`.
    Of a replay, moves: whether what is computed on, and hidden, differs. behind: the labels of what is released of
    values that hidden noise changes.
    """

    releases: Tape
    moves = False
    behind: AbstractSet[str] = frozenset()

    def __init__(self, k: int, budget: Any, seed: Any, *, declared: Relation | None = None, **tape: Any) -> None:
        factor = 2.0 if declared not in (None, budget.relation) else 1.0
        super().__init__([], budget, declared=declared, releases=Tape(k, seed, factor=factor, **tape))

    def inner(self, keys: Sequence[str], budget: Budget, declared: Relation) -> Mechanisms:
        """Not on the tape: what these release is known to nobody."""
        return Mechanisms(keys, budget, declared=declared, planted=self.releases.planted)

    def replay(self, *, held: bool = True, fresh: bool = True) -> Recorder:
        """For the same run on other data: every release is answered from this one, and its value written down.

        fresh: whether noise is drawn anew. Only what is computed on, and not released, has to be the same again.
        """
        other = copy.copy(self)
        other.releases = ReplayedTape(self.releases, held=held, fresh=fresh)
        return other

    @property
    def tape(self) -> dict[int | None, list[RecordedRelease]]:
        """Per replicate that advances alone, and under None what all release together."""
        return self.releases.published


def rate(event: Release | None) -> float:
    """The probability that the row that differs is in the sample of a release."""
    return event.rate if isinstance(event, Sampled) else 1.0


def column(scale: Any, axes: int = 2) -> Array:
    """Scales to divide an array of so many axes by; zero noise on nothing to hide is no evidence."""
    scale = np.asarray(scale, dtype=float)
    return np.maximum(scale.reshape((-1,) + (1,) * (axes - 1)) if scale.ndim else scale, np.finfo(float).tiny)


PLAIN = (int, str, bytes, bool, type(None))
NUMBERS = (np.bool_, np.integer, np.floating)


class Returned(NamedTuple):
    """What a run gives away beside its releases.

    W: final iterates. facts: of all that it returned, and what the other methods and attributes of the algorithm say
    once it has run. visible: of these, what may be known of a run whose iterates are hidden. ledger: of each replicate.
    refused: whether some replicate's iterates are not fit to be released.
    """

    W: np.ndarray
    facts: list[Fact]
    visible: list[Fact]
    ledger: list[Composition]
    refused: bool = False


class Listener:
    """A trace that wants every iteration, and writes down what it receives."""

    def __init__(self) -> None:
        self.next = 0
        self.calls: list[tuple[Any, ...]] = []

    def __call__(self, iteration: int, W: np.ndarray, passes: Any, *, final: Any = False) -> None:
        self.next = iteration + 1
        self.calls.append((iteration, *(np.array(each, subok=True) for each in (W, passes, final))))


def without_numbers(held: Iterable[Fact], where: str) -> Iterator[Fact]:
    """Of float arrays that hidden noise is in, all but these: types, layout, attributes, what is not finite."""
    for fact in held:
        content = fact.content
        if fact.where == where and isinstance(content, tuple) and content[0] == np.dtype(float).str:
            numbers = np.frombuffer(content[-1], float)
            content = (*content[:-1], np.where(np.isfinite(numbers), 0.0, numbers).tobytes())
        yield fact._replace(content=content)


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
    for name in sorted(names & columns.keys()):
        values = columns[name].tolist() if type(columns[name]) is np.ndarray else columns[name]
        others = [kind for kind in map(type, values) if kind not in (type(None), bool, int, float)]
        # A subclass of somebody's own has room for more than a number.
        if not all(kind.__module__ == "numpy" and issubclass(kind, NUMBERS) for kind in others):
            return name
    return ""
