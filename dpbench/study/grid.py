"""A grid: which problems, algorithms, budgets, settings and seeds an experiment's artefacts ask for; read from TOML.

A grid file is a list of blocks, each a cross product (`GridEntry` has its keys):

    [define]                  # values by name: "@newton" stands for one, and in a list for its elements
    newton = ["dp-newton-hess-clip", "dp-newton-qu-clip"]
    [default]                 # keys of every block that does not say otherwise; settings are merged one by one
    epsilon = [1]
    [profiles.full]           # the same for one profile, over those of all: define, default
    default.seeds = 15
    [[blocks]]                # in every profile
    artefacts = ["fig2"]
    problems = ["a1a"]                                     # "a1a:logistic,apart=5,fold={0..4}" is five problems
    algorithms = ["@newton", "dp-gd"]
    settings.T = [3, 10, 30]
    quick = { settings.T = [3] }                           # what is otherwise in one profile
    also = [{ seeds = 1, settings.T = "best", timed = 3 }] # further blocks: this one with changes
    [[full]]                  # in this profile only

An artefact whose block asks for "best" needs the rows it is the best of: the blocks that try values of those settings
are taken along (`serving`), and need not name it.
"""

from __future__ import annotations

import itertools
import os
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Literal, TypeVar

import msgspec

from dpbench.errors import UserError, nearest
from dpbench.files import read_toml

BEST = "best"  # a setting's value in a grid: the one with the lowest mean excess among the rows that exist


class GridEntry(msgspec.Struct, frozen=True, eq=False, forbid_unknown_fields=True):
    """One block of a grid: the cross product of problems, algorithms, epsilon, settings and seeds.

    artefacts: which figures and tables use these rows, beside those that are tuned on them.
    settings: name → value or list of values; "best" takes the tuned value from the rows already there;
        { logspace = [a, b, count] } is count values from 10^a to 10^b, to 4 digits.
    sweep: settings whose values run as one job with one row that keeps their excess losses alone (see `job.Job`).
    relation: the neighbouring relation of the runs; the algorithm's own where it is left out.
    held_out: "best" settings are chosen on one half of the seeds, so that the other half can score them (see `tuning`).
    planted: what the noise is multiplied by, for runs that are wrong on purpose (see `run.jobs.Job`); "best" settings
        are those of the right runs.
    timed: repetitions whose seconds are measured alone; 0 for runs that go to the pool in batches.
    timed_if: time a configuration (all its seeds) only if every one of its untimed runs ended so: by their `ending`,
        or by their `status` where the method has no word of its own.
    """

    problems: list[str]
    algorithms: list[str]
    epsilon: list[float]
    seeds: int
    artefacts: list[str] = []
    settings: dict[str, Any] = {}
    accounting: str = "paper"
    delta: str | float | None = None
    relation: str | None = None
    timed: int = 0
    timed_if: str = ""
    trace: bool = False
    sweep: list[str] = []
    held_out: bool = False
    planted: tuple[float, ...] = (1.0,)

    @property
    def terms(self) -> dict[str, Any]:
        """Under which accounting, δ and relation its jobs are, as `job.make_job` takes them."""
        return {"accounting": self.accounting, "delta": self.delta, "relation": self.relation}

    @property
    def split(self) -> Literal["none", "halves"]:
        """How "best" settings are chosen and scored: see `tuner.choose`."""
        return "halves" if self.held_out else "none"

    def __post_init__(self) -> None:
        if self.timed_if and not self.timed:
            raise ValueError("timed_if needs timed >= 1")
        if self.planted != (1.0,) and self.timed:
            raise ValueError("planted: runs that are wrong on purpose are not timed")
        for name in self.sweep:
            if not isinstance(self.settings.get(name), list | dict):
                raise ValueError(f"sweep: the values of {name} must be a list")
        for name, value in self.settings.items():
            if isinstance(value, dict) and not (set(value) == {"logspace"} and len(value["logspace"]) == 3):
                raise ValueError(f"settings: {name} must be a value, a list or {{ logspace = [a, b, count] }}")

    def values(self, name: str) -> list[Any]:
        """The values of a setting."""
        value = self.settings[name]
        if isinstance(value, dict):
            low, high, count = value["logspace"]
            exponents = (low + (high - low) * i / (count - 1) for i in range(count))
            return [float(f"{10.0**x:.4g}") for x in exponents]  # 4 digits: the same numbers, and keys, everywhere
        return value if isinstance(value, list) else [value]

    @property
    def swept(self) -> dict[str, list[Any]]:
        return {name: self.values(name) for name in self.sweep}

    @property
    def tuned(self) -> list[str]:
        return [name for name, value in self.settings.items() if value == BEST]

    @property
    def combinations(self) -> Iterator[tuple[str, str, float]]:
        """(problem, algorithm, ε) of the block."""
        return itertools.product(self.problems, self.algorithms, self.epsilon)

    @property
    def waits(self) -> bool:
        """Whether its jobs depend on the rows of other blocks."""
        return bool(self.tuned or self.timed_if)

    def tunes(self, other: GridEntry) -> bool:
        """Whether `other`'s "best" settings are looked for among this block's rows of the same (problem, algorithm)."""
        tuned = set(other.tuned)
        return (
            bool(tuned)
            # Rows that wait for others, repeat others by the clock or are wrong on purpose are no candidates.
            and not (self.waits or self.timed or self.planted != (1.0,))
            and self._rest(tuned) == other._rest(tuned)
            and tuned <= set(self.settings)
        )

    def within(self, other: GridEntry) -> bool:
        """Whether all of its runs are among the other block's; artefacts and traces are no matter."""
        how = ("terms", "timed_if", "sweep", "held_out")
        return (
            all(getattr(self, name) == getattr(other, name) for name in how)
            and {*self.combinations} <= {*other.combinations}
            and self.seeds <= other.seeds
            and self.timed <= other.timed
            and (self.timed > 0) == (other.timed > 0)
            and {*self.planted} <= {*other.planted}
            and self.settings.keys() == other.settings.keys()
            and all(self._among(other, name) for name in self.settings)
        )

    def _among(self, other: GridEntry, name: str) -> bool:
        own, there = self.values(name), other.values(name)  # a sweep is one run: all of its values or none
        return own == there if name in self.sweep else all(value in there for value in own)

    def _rest(self, tuned: set[str]) -> tuple[Any, ...]:
        fixed = {name: value for name, value in self.settings.items() if name not in tuned}
        return self.terms, fixed


Grid = dict[str, list[GridEntry]]  # profile → blocks


def serving(artefact: str, blocks: list[GridEntry]) -> list[GridEntry]:
    """The blocks that an artefact needs: those that name it, and those that tune these."""
    tried: dict[tuple[str, str], list[GridEntry]] = defaultdict(list)
    for block in blocks:
        for pair in itertools.product(block.problems, block.algorithms):
            tried[pair].append(block)
    own = [block for block in blocks if artefact in block.artefacts]
    pairs = [(one, pair) for one in own if one.tuned for pair in itertools.product(one.problems, one.algorithms)]
    needed = {*own, *(block for one, pair in pairs for block in tried[pair] if block.tunes(one))}
    return [block for block in blocks if block in needed]


Table = dict[str, Any]
S = TypeVar("S", bound=msgspec.Struct)


class Shared(msgspec.Struct, forbid_unknown_fields=True):
    """What the blocks of a file, or of one profile, have in common."""

    define: Table = {}
    default: Table = {}


def load_grid(source: str | os.PathLike[str]) -> Grid:
    """Read a TOML grid; every mistake is one line with the path of the offending key."""
    file = read_toml(source)
    try:
        common = Shared(_table(file.pop("define", {}), "$.define"), _table(file.pop("default", {}), "$.default"))
        shared = _table(file.pop("profiles", {}), "$.profiles")
        profiles = {name: _converted(each, Shared, f"$.profiles.{name}") for name, each in shared.items()}
        names = list(profiles or file)  # a file without [profiles] has [[profile]] blocks alone
        for name, blocks in file.items():
            if not isinstance(blocks, list):
                raise ValueError(f"Expected `array` of blocks, got `{type(blocks).__name__}` - at `$.{name}`")
            if name not in (*names, "blocks"):
                raise ValueError(f"{name} is not in [profiles]: {nearest(name, names)} - at `$.{name}`")
        listed = [("blocks", file.pop("blocks", [])), *file.items()]
        names = [name for name in names if name != "blocks"]
        return {name: list(_blocks(name, names, common, profiles.get(name, Shared()), listed)) for name in names}
    except ValueError as error:
        raise UserError(f"grid file {source}: {error}") from None


def _blocks(profile: str, names: list[str], common: Shared, own: Shared, listed: list[Any]) -> Iterator[GridEntry]:
    """The blocks of one profile, those of all profiles first."""
    define = common.define | own.define
    for key, blocks in listed:
        for i, block in enumerate(blocks if key in ("blocks", profile) else ()):
            path = f"$.{key}[{i}]"
            try:
                parts = [_defined(_table(part, path), define) for part in (common.default, own.default, block)]
            except ValueError as error:
                raise ValueError(f"{error} - at `{path}`") from None
            for one in _variants(_merged(*parts), profile, names, path):
                made = _converted(one, GridEntry, path)
                yield msgspec.structs.replace(made, problems=[each for name in made.problems for each in _ranged(name)])


def _ranged(name: str) -> list[str]:
    """The names that a problem with one "{a..b}" stands for; of any other, itself.

    >>> _ranged("adult:logistic,apart=5,fold={0..2}")[1:]
    ['adult:logistic,apart=5,fold=1', 'adult:logistic,apart=5,fold=2']
    """
    matched = re.fullmatch(r"(.*)\{(\d+)\.\.(\d+)\}(.*)", name)
    if not matched:
        return [name]
    before, first, last, after = matched.groups()
    return [f"{before}{each}{after}" for each in range(int(first), int(last) + 1)]


def _converted(value: Any, kind: type[S], path: str) -> S:
    """The value as a struct; ValueError with the whole path of what is wrong in it."""
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, ValueError) as error:
        told = str(error)
        raise ValueError(told.replace("`$", f"`{path}") if "`$" in told else f"{told} - at `{path}`") from None


def _variants(block: Table, profile: str, names: list[str], path: str) -> Iterator[Table]:
    """The block as it is in a profile, and what its `also` makes of it."""
    changes = {name: _table(block.get(name, {}), f"{path}.{name}") for name in names}
    block = _merged({key: value for key, value in block.items() if key not in names}, changes[profile])
    also = block.pop("also", [])
    yield block
    for i, change in enumerate(also if isinstance(also, list) else [also]):
        at = f"{path}.also[{i}]"
        yield from _variants(_merged(block, _table(change, at)), profile, names, at)


def _merged(*tables: Table) -> Table:
    """Later tables over earlier ones, and so for their settings."""
    merged: Table = {}
    for table in tables:
        settings = merged.get("settings", {}), table.get("settings", {})
        merged |= table
        if all(isinstance(each, dict) for each in settings) and any(settings):
            merged["settings"] = settings[0] | settings[1]
    return merged


def _defined(value: Any, define: Table) -> Any:
    """The value with every "@name" put in; a list in a list is spliced."""
    if isinstance(value, str) and value.startswith("@"):
        if value[1:] not in define:
            raise ValueError(f"{value} is not in [define]: {nearest(value[1:], define)}")
        return _defined(define[value[1:]], define)
    if isinstance(value, dict):
        return {key: _defined(each, define) for key, each in value.items()}
    if isinstance(value, list):
        parts = [_defined(each, define) for each in value]
        return [one for each in parts for one in (each if isinstance(each, list) else [each])]
    return value


def _table(value: Any, path: str) -> Table:
    if not isinstance(value, dict):
        raise ValueError(f"Expected `object`, got `{type(value).__name__}` - at `{path}`")
    return value
