"""What an experiment is: a grid per profile, the artefacts drawn from its rows, and the claims they test."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any

import msgspec

from dpbench import datasets, toml
from dpbench.errors import UserError, nearest
from dpbench.jobs import Job, make_job
from dpbench.problems import catalogue

if TYPE_CHECKING:
    import pandas

    from dpbench.results import Store

BEST = "best"  # a setting's value in a grid: the one with the lowest mean excess among the rows at hand


class GridEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One block of a grid: the cross product of problems, algorithms, epsilon, settings and seeds.

    artefacts: which figures and tables use these rows.
    settings: name → value or list of values; "best" takes the tuned value from the rows already there;
        { logspace = [a, b, count] } is count values from 10^a to 10^b, to 4 digits.
    sweep: settings whose values run as one job with one row that keeps their excess losses alone (see `jobs.Job`).
    relation: the neighbouring relation of the runs; the algorithm's own where it is left out.
    timed: repetitions whose seconds are measured alone; 0 for runs that go to the pool in batches.
    timed_if: time a cell (all seeds of one setting) only if every one of its untimed runs ended with this status.
    """

    artefacts: list[str]
    problems: list[str]
    algorithms: list[str]
    epsilon: list[float]
    seeds: int
    settings: dict[str, Any] = {}
    accounting: str = "paper"
    delta: str | float | None = None
    relation: str | None = None
    timed: int = 0
    timed_if: str = ""
    trace: bool = False
    sweep: list[str] = []

    def __post_init__(self):
        if self.timed_if and not self.timed:
            raise ValueError("timed_if needs timed >= 1")
        for name in self.sweep:
            if not isinstance(self.settings.get(name), list | dict):
                raise ValueError(f"sweep: the values of {name} must be a list")
        for name, value in self.settings.items():
            if isinstance(value, dict) and not (set(value) == {"logspace"} and len(value["logspace"]) == 3):
                raise ValueError(f"settings: {name} must be a value, a list or {{ logspace = [a, b, count] }}")

    def values(self, name: str) -> list:
        """The values of a setting."""
        value = self.settings[name]
        if isinstance(value, dict):
            low, high, count = value["logspace"]
            exponents = (low + (high - low) * i / (count - 1) for i in range(count))
            return [float(f"{10.0**x:.4g}") for x in exponents]  # 4 digits: the same numbers, and keys, everywhere
        return value if isinstance(value, list) else [value]

    @property
    def swept(self) -> dict[str, list]:
        return {name: self.values(name) for name in self.sweep}

    @property
    def tuned(self) -> list[str]:
        return [name for name, value in self.settings.items() if value == BEST]

    @property
    def cells(self) -> Iterator[tuple[str, str, float]]:
        """(problem, algorithm, ε) of the block."""
        return itertools.product(self.problems, self.algorithms, self.epsilon)

    @property
    def waits(self) -> bool:
        """Whether its jobs depend on the rows of other blocks."""
        return bool(self.tuned or self.timed_if)


Grid = dict[str, list[GridEntry]]  # profile → blocks


def load_grid(source: str | os.PathLike) -> Grid:
    """Read a TOML grid; every mistake is one line with the path of the offending key."""
    try:
        return msgspec.convert(toml.read(source), Grid)
    except msgspec.ValidationError as error:
        raise UserError(f"grid file {source}: {error}") from None


@dataclass(frozen=True)
class Artefact:
    """A figure or table. `render(context)` returns what `report.output` can save (see report/)."""

    name: str
    title: str
    render: Callable[[Any], Any]


@dataclass(frozen=True)
class Claim:
    """A claim of the paper: `check(context)` returns a `Verdict`."""

    name: str
    text: str
    check: Callable[[Any], Verdict]


@dataclass(frozen=True)
class Verdict:
    """held: True, False, or None when the rows do not suffice; numbers: what was compared, in words and digits."""

    held: bool | None
    numbers: str

    @property
    def word(self) -> str:
        return {True: "held", False: "not held", None: "not enough data"}[self.held]


@dataclass(frozen=True)
class Experiment:
    """One paper: its grid file, the data sets it uses, its artefacts and claims.

    comparisons: published means beside ours: `comparisons(context)` yields `report.compare.Comparison`s.
    """

    name: str
    title: str
    citation: str
    package: str
    artefacts: tuple[Artefact, ...]
    claims: tuple[Claim, ...] = ()
    synthetic: tuple[str, ...] = field(default=())
    comparisons: Callable[[Any], Iterable[Any]] | None = None

    def grid(self, config: str | os.PathLike | None = None) -> Grid:
        return load_grid(config or resources.files(self.package) / "grid.toml")

    def published(self) -> dict[str, Any]:
        """The paper's own values, as data."""
        return toml.read(resources.files(self.package) / "published.toml")

    def published_text(self) -> str:
        """The file behind `published`, comments and all; "" where the paper publishes none."""
        source = resources.files(self.package) / "published.toml"
        return source.read_text(encoding="utf-8") if source.is_file() else ""

    def blocks(self, profile: str, artefact: str | None = None, config=None) -> list[GridEntry]:
        """The grid's blocks under a profile, or those that one artefact needs (tuning blocks included)."""
        grid = self.grid(config)
        if profile not in grid:
            raise UserError(f"unknown profile {profile!r}: {nearest(profile, grid)}")
        known = {one.name for one in self.artefacts}
        if artefact is not None and artefact not in known:
            raise UserError(f"{self.name} has no artefact {artefact!r}: {nearest(artefact, known)}")
        blocks = grid[profile]
        for block in blocks:
            wrong = sorted(set(block.artefacts) - known)
            if wrong:
                raise UserError(f"{self.name} has no artefact {wrong[0]!r}: {nearest(wrong[0], known)}")
        return [block for block in blocks if artefact is None or artefact in block.artefacts]

    def problems(self, profile: str = "full") -> list[str]:
        """Every problem of the grid, in the order the grid names them."""
        return list(dict.fromkeys(p for block in self.blocks(profile) for p in block.problems))


@dataclass
class Plan:
    """The jobs of some blocks, the problems whose data are not at hand, and what waits for rows of other blocks.

    Rows of a job may be there although its data are not: reports read them, and only `runnable` jobs can run.
    """

    jobs: list[Job] = field(default_factory=list)
    missing_data: dict[str, str] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)

    @property
    def runnable(self) -> list[Job]:
        return [job for job in self.jobs if job.problem not in self.missing_data]


def plan(blocks: list[GridEntry], store: Store | None) -> Plan:
    """Jobs of the blocks. Those with "best" settings or `timed_if` look up other runs' rows in the store, or wait."""
    result = Plan()
    runs, statuses = None, {}
    seen: dict[str, Job] = {}
    for block in blocks:
        for problem in block.problems:
            dataset = catalogue.dataset_of(problem)
            if not datasets.available(dataset):
                result.missing_data[problem] = dataset
        if block.waits and runs is None and store is not None:
            runs = store.runs()
            statuses = dict(zip(runs["key"], runs["status"], strict=True))
        for problem, algorithm, epsilon in block.cells:
            for settings in _settings(block, problem, algorithm, epsilon, runs):
                if settings is None:
                    if problem not in result.missing_data:
                        result.waiting.append(f"{algorithm} on {problem} at ε = {epsilon:g} ({', '.join(block.tuned)})")
                    continue
                jobs = list(_repeat(block, problem, algorithm, epsilon, settings))
                if block.timed_if:
                    ended = {statuses.get(msgspec.structs.replace(job, timed=0).key) for job in jobs}
                    if None in ended and problem not in result.missing_data:
                        result.waiting.append(f"{algorithm} on {problem} at ε = {epsilon:g} (its untimed runs)")
                    if ended != {block.timed_if}:
                        continue
                for job in jobs:
                    held = seen.get(job.key)
                    if held is None or (job.trace and not held.trace):
                        seen[job.key] = job
    result.jobs = list(seen.values())
    return result


def _repeat(block, problem, algorithm, epsilon, settings) -> Iterator[Job]:
    for seed, repetition in itertools.product(range(block.seeds), range(1, block.timed + 1) or [0]):
        yield make_job(
            problem=problem,
            algorithm=algorithm,
            epsilon=epsilon,
            seed=seed,
            settings=settings,
            accounting=block.accounting,
            delta=block.delta,
            relation=block.relation,
            timed=repetition,
            trace=block.trace,
            sweep=block.swept,
        )


def _settings(block, problem, algorithm, epsilon, runs) -> Iterator[dict[str, Any] | None]:
    from dpbench.experiments.tuning import best_settings

    lists = {name: block.values(name) for name in block.settings if name not in (*block.tuned, *block.sweep)}
    for values in itertools.product(*lists.values()):
        settings = dict(zip(lists, values, strict=True))
        if not block.tuned:
            yield settings
            continue
        best = None
        if runs is not None:
            best = best_settings(
                runs, problem, algorithm, epsilon, settings, block.tuned, block.accounting, block.delta, block.relation
            )
        yield None if best is None else settings | best


def select(frame: pandas.DataFrame, **equal: Any) -> pandas.DataFrame:
    """Rows whose columns equal the given values (a list: any of them)."""
    for column, value in equal.items():
        frame = frame[frame[column].isin(value if isinstance(value, list | tuple | set) else [value])]
    return frame
