"""A job: one run of one algorithm on one problem at one ε with one seed, and the key that names it."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from dpbench import algorithms
from dpbench.algorithms import registry
from dpbench.algorithms.base import Algorithm, BaseSettings, make_settings
from dpbench.errors import UserError, positive
from dpbench.privacy.ledger import Relation
from dpbench.problems import catalogue, losses

registry.SERVE[:] = ["dpbench.serving.method:of_source"]  # loaded where a method is served

JSON = msgspec.json.Encoder(order="deterministic")
FLOPS = 5e9  # a core's in a second, between gradients (4e9) and eigendecompositions (2e10), seeds side by side
OVERHEAD = 1e-5  # seconds of an iteration beside its arithmetic


class Job(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One run. Make it with `make_job`, which validates; two equal jobs have equal keys on every machine.

    algorithm is a canonical name (no alias) or `/path/to/file.py:Class`, and source then the hash of that file;
    settings is canonical JSON, defaults left out; delta is a number or "n^-2", "n^-1"; timed > 0 counts
    repetitions of a run whose seconds are measured alone; trace asks for the objective along the way; relation is the
    neighbouring relation where it is not the algorithm's own.

    sweep: {setting: [values]} as JSON, or "". A sweep is all the runs in the product of these values, as one job with
    one row, which holds their excess losses alone: a tuning grid of 500 settings is kept in 2 kB. `settings` then has
    the first of the values.

    planted: what the noise of all releases is multiplied by, in a run that is wrong on purpose: verdicts are judged by
    whether they notice. Any but 1 keeps no ε, and is in the key.
    """

    problem: str
    algorithm: str
    epsilon: float
    seed: int
    settings: str = "{}"
    accounting: str = "paper"
    delta: str | float = "n^-2"
    timed: int = 0
    trace: bool = False
    source: str = ""
    relation: str = ""
    sweep: str = ""
    planted: float = 1.0

    @property
    def key(self) -> str:
        """128-bit hash of everything that decides the job's rows."""
        return keys_like(self)(self.seed, self.timed)

    @property
    def stream_key(self) -> str:
        """What its random streams are seeded from: the key of the untimed job, so timing repeats the run.

        Without the algorithm's `common_random` settings: jobs that differ in those alone draw the same numbers.
        """
        common = algorithms.get(self.algorithm).common_random
        if not common:
            return keys_like(self)(self.seed, 0)
        kept = {name: value for name, value in msgspec.json.decode(self.settings).items() if name not in common}
        return keys_like(msgspec.structs.replace(self, settings=JSON.encode(kept).decode()))(self.seed, 0)

    @property
    def start_key(self) -> str:
        """Starting points depend on problem and seed alone: every algorithm starts from the same ones."""
        return f"{self.problem}/{self.seed}"

    @property
    def neighbours(self) -> Relation:
        """The neighbouring relation of the run."""
        return Relation(self.relation) if self.relation else algorithms.get(self.algorithm).relation

    @property
    def private(self) -> bool:
        """Whether algorithm and settings claim to keep ε."""
        method = algorithms.get(self.algorithm)
        whole = method.private and self.planted == 1
        return whole and not method.flaw(self.parsed(), method.accounting(self.accounting))

    @property
    def recipe(self) -> catalogue.Recipe:
        """What the problem's name stands for."""
        return catalogue.recipe_of(self.problem)

    def at(self, problem: str, epsilon: float) -> Job:
        """The job on another problem at another ε; UserError unless that is positive."""
        return msgspec.structs.replace(self, problem=problem, epsilon=positive("epsilon", epsilon))

    def parsed(self) -> BaseSettings:
        return msgspec.json.decode(self.settings, type=algorithms.get(self.algorithm).Settings)

    @property
    def run_count(self) -> int:
        """How many runs the job stands for."""
        return math.prod(len(values) for values in self.axes.values())

    @property
    def axes(self) -> dict[str, list[Any]]:
        return msgspec.json.decode(self.sweep, type=dict[str, list[Any]]) if self.sweep else {}

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns of the problem's data, guessed where a third party's data set does not declare them."""
        spec = self.recipe.spec
        return spec.rows or 10_000, spec.columns or 100

    @property
    def cost(self) -> float:
        """The rough cost in flops (see Algorithm.work); infinite where extreme settings overflow."""
        try:
            return self.run_count * algorithms.get(self.algorithm).work(*self.size, self.parsed())
        except ArithmeticError:
            return math.inf

    @property
    def foreign(self) -> bool:
        """Whether it runs code that is not dpbench's own; nothing is imported to know."""
        settings = msgspec.json.decode(self.settings)
        swept = ({name: value} for name, values in self.axes.items() for value in values)
        return any(algorithms.not_ours(self.algorithm, settings | one) for one in [{}, *swept])

    def members(self) -> list[Job]:
        """The runs of a sweep, in the order of `itertools.product` over its values (names sorted)."""
        settings, axes = self.parsed(), self.axes
        return [
            msgspec.structs.replace(self, settings=JSON.encode(one).decode(), sweep="")
            for one in (
                msgspec.structs.replace(settings, **dict(zip(axes, values, strict=True)))
                for values in itertools.product(*axes.values())
            )
        ]

    @property
    def group(self) -> tuple[Any, ...]:
        """Jobs of one group may advance together in a batch: all but seed and what is per-replicate agree.

        With `common_random` settings the seed agrees too, so that a batch draws its noise once.
        """
        algorithm = algorithms.get(self.algorithm)
        varying = algorithm.per_replicate
        shared = {k: v for k, v in msgspec.json.decode(self.settings).items() if k not in varying}
        alone = (self.seed, self.settings, self.epsilon, self.timed) if self.timed or self.sweep else ()
        epsilon = () if "epsilon" in varying else (self.epsilon,)
        stream = (self.stream_key,) if algorithm.common_random else ()
        identity = (self.problem, self.algorithm, self.accounting, self.delta, self.trace, *stream)
        return (*identity, self.relation, self.planted, *epsilon, JSON.encode(shared), *alone)


def identity(job: Job) -> dict[str, Any]:
    """All that a job's key is a hash of, but for its seed and the number of a timed repetition."""
    algorithm, recipe = algorithms.get(job.algorithm), job.recipe
    return {
        "problem": job.problem,
        "data_version": recipe.spec.version,
        "algorithm": algorithm.name,
        "algorithm_version": algorithm.version,
        "epsilon": job.epsilon,
        "settings": msgspec.json.decode(job.settings),
        "accounting": job.accounting,
        "delta": job.delta,
        **({"problem_version": recipe.version} if recipe.version > 1 else {}),
        **({"loss_version": version} if (version := losses.get(recipe.loss).version) > 1 else {}),
        **({"revision": revision} if (revision := algorithm.revisions.get(job.accounting, 1)) > 1 else {}),
        **({"source": job.source} if job.source else {}),
        **({"relation": job.relation} if job.relation else {}),
        **({"served": True} if job.algorithm.startswith(registry.SERVED) else {}),
        **({"sweep": job.axes} if job.sweep else {}),
        **({"planted": job.planted} if job.planted != 1 else {}),
    }


def job_of(content: dict[str, Any], *, seed: int, timed: int = 0, trace: bool = False) -> Job:
    """The job of an `identity`, which may be of other versions than those here: then it has another key.

    Raises UserError for a method that is not known here, KeyError or ValidationError for what is no identity.
    """
    algorithms.get(content["algorithm"])
    kept = {name: content[name] for name in Job.__struct_fields__ if name in content}
    kept |= {name: JSON.encode(content[name]).decode() for name in ("settings", "sweep") if name in content}
    return msgspec.convert(kept | {"seed": seed, "timed": timed, "trace": trace}, Job)


class Keys:
    """The keys of the jobs of one `identity`, by seed and number of the timed repetition: hashes of canonical JSON.

    whole: that JSON, with the seed 0.
    """

    __slots__ = ("_head", "_known", "_tail", "whole")

    def __init__(self, content: dict[str, Any]) -> None:
        self.whole = JSON.encode(content | {"seed": 0})
        self._known: dict[tuple[tuple[int, ...], tuple[int, ...]], list[str]] = {}
        before, seed, after = self.whole.partition(b'"seed":')
        self._head, self._tail = hashlib.blake2b(before + seed, digest_size=16), after[1:-1]

    def __call__(self, seed: int, timed: int = 0) -> str:
        return self.of([seed], [timed])[0]

    def of(self, seeds: Iterable[int], repetitions: Iterable[int]) -> list[str]:
        """The key of each (seed, repetition), the seeds outermost; nobody writes to the list."""
        asked = (*seeds,), (*repetitions,)
        if asked not in self._known:
            self._known[asked] = self._of(*asked)
        return self._known[asked]

    def _of(self, seeds: tuple[int, ...], repetitions: tuple[int, ...]) -> list[str]:
        copy, keys = self._head.copy, []
        # "timed" is the last of the names, so it can be appended to the hashed head.
        ends = [self._tail + (b',"timed":%d}' % timed if timed else b"}") for timed in repetitions]
        for end in [seed + end for seed in _digits(seeds) for end in ends]:
            whole = copy()
            whole.update(end)
            keys.append(whole.hexdigest())
        return keys


@functools.lru_cache(maxsize=1000)
def _digits(seeds: tuple[int, ...]) -> list[bytes]:
    return [b"%d" % seed for seed in seeds]


def keys_like(job: Job) -> Keys:
    """The keys of the job with other seeds and repetitions than its own."""
    return _keys_like(msgspec.structs.replace(job, seed=0, timed=0, trace=False))


@functools.lru_cache(maxsize=20_000)
def _keys_like(job: Job) -> Keys:
    return Keys(identity(job))


@dataclass
class JobSeries:
    """The runs of a job under each of some seeds and, for each, under each number of a timed repetition.

    Half a million runs can be planned and counted by their keys alone: the jobs are made where they are asked for.
    like: what makes the keys; series of another `like.whole` have no key in common.
    """

    job: Job
    seeds: range
    repetitions: Sequence[int]
    like: Keys = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        self.like = keys_like(self.job)

    @property
    def keys(self) -> list[str]:
        """The keys of `jobs`."""
        return self.like.of(self.seeds, self.repetitions)

    @property
    def jobs(self) -> list[Job]:
        """A job for each (seed, repetition)."""
        runs = itertools.product(self.seeds, self.repetitions)
        return [msgspec.structs.replace(self.job, seed=seed, timed=timed) for seed, timed in runs]


def make_job(
    *,
    problem: str,
    algorithm: str,
    epsilon: float,
    seed: int,
    settings: dict[str, Any] | None = None,
    accounting: str = "paper",
    delta: str | float | None = None,
    timed: int = 0,
    trace: bool = False,
    relation: str | None = None,
    sweep: dict[str, list[Any]] | None = None,
    planted: float = 1.0,
) -> Job:
    """A validated Job; every mistake is a UserError that names the argument. `relation` None: the algorithm's own."""
    if not 0 <= planted < math.inf:
        raise UserError(f"planted must be a number from 0 on, which the noise is multiplied by, got {planted!r}")
    source = algorithms.reference(algorithm)[1]
    # Python's own json carries NaN as far as the error message of its setting; msgspec's would write null.
    asked = json.dumps([settings or {}, sweep or {}])
    template = _template(algorithm, source, asked, accounting, delta, relation, bool(timed or trace))
    how = {"seed": seed, "timed": timed, "trace": trace, "planted": float(planted)}
    return msgspec.structs.replace(template.at(problem, epsilon), **how)


@functools.lru_cache(maxsize=10_000)
def _template(
    algorithm: str,
    source: str,
    asked: str,
    accounting: str,
    delta: str | float | None,
    relation: str | None,
    followed: bool,
) -> Job:
    """All of a job but its problem, ε and seed: a grid asks for the same settings at hundreds of these.

    asked: settings and sweep as JSON; followed: whether the job is timed or traced.
    """
    method, fixed = algorithms.resolve(algorithm)
    settings, sweep = json.loads(asked)
    clash = sorted(set(fixed) & set(settings))
    if clash:
        raise UserError(f"{algorithm} already fixes {', '.join(clash)}; use {method.name} to set it")
    if sweep and followed:
        raise UserError(f"sweep: a sweep of {algorithm} over {', '.join(sweep)} is neither timed nor traced")
    given = {**fixed, **settings}
    axes = _axes(method, given, sweep)
    parsed = make_settings(method, given | {name: values[0] for name, values in axes.items()})
    delta = check_delta(method.delta if delta is None else delta)
    _check_pair(method, accounting, delta)
    if relation is None or method.under(relation) is method.relation:
        relation = ""
    return Job(
        problem="",
        algorithm=algorithms.reference(algorithm)[0],
        epsilon=1.0,
        seed=0,
        settings=JSON.encode(parsed).decode(),
        accounting=accounting,
        delta=delta,
        source=source,
        relation=relation,
        sweep=JSON.encode(axes).decode() if axes else "",
    )


def _axes(method: Algorithm, given: dict[str, Any], sweep: dict[str, Any]) -> dict[str, list[Any]]:
    """The values of a sweep, each validated as a setting; UserError for an empty list or a setting that cannot vary."""
    axes: dict[str, list[Any]] = {}
    first = given | {name: values[0] for name, values in sweep.items() if isinstance(values, list) and values}
    for name, values in sorted(sweep.items()):
        if name not in method.per_replicate:
            known = ", ".join(sorted(method.per_replicate)) or "none"
            raise UserError(f"{method.name}: setting {name} cannot be swept; those that can: {known}")
        if not isinstance(values, list) or not values:
            raise UserError(f"{method.name}: a sweep over {name} needs a list of values, got {values!r}")
        axes[name] = [getattr(make_settings(method, first | {name: value}), name) for value in values]
    return axes


def check_delta(delta: str | float) -> str | float:
    """δ as "n^-2", "n^-1" or a number in [0, 1), or a UserError."""
    if isinstance(delta, str) and delta in ("n^-2", "n^-1"):
        return delta
    try:
        value = float(delta)
    except (TypeError, ValueError):
        raise UserError(f"delta must be a number in [0, 1), n^-2 or n^-1, got {delta!r}") from None
    if not 0 <= value < 1:
        raise UserError(f"delta must be in [0, 1), got {value:g}")
    return value


def _check_pair(method: Algorithm, accounting: str, delta: str | float) -> None:
    """Pure DP has δ = 0 and every other accounting δ > 0; UserError where the two clash."""
    pure = method.accounting(accounting) == "pure"
    if pure and delta != 0:
        raise UserError(f"delta: {method.name} with accounting {accounting} is pure DP and needs delta 0, got {delta}")
    if not pure and delta == 0:
        raise UserError(f"delta: {method.name} with accounting {accounting} needs delta > 0")


def delta_value(delta: str | float, n: int) -> float:
    """The number behind a δ rule on a data set of n rows.

    >>> delta_value("n^-2", 100)
    0.0001
    """
    return {"n^-2": float(n) ** -2, "n^-1": 1.0 / n}[delta] if isinstance(delta, str) else delta


def work(job: Job) -> float:
    """The job's rough cost in flops; 1 where it overflows, as the run itself will say so."""
    return job.cost if math.isfinite(job.cost) else 1.0


def seconds(work: float, iterations: float, cores: int) -> float:
    """A rough time, to the order of magnitude, before anything has run."""
    return (work / FLOPS + iterations * OVERHEAD) / max(cores, 1)
