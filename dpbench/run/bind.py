"""A run, bound: all that decides it but the noise, put together in one place and made from there.

Jobs, fits, replays of rows and of submissions all come through here, so that one rule says which rows are checked,
which δ, relation and accounting hold, and what is planned and checked before any data are touched. What a run shows on
its way, the objective at chosen iterations, is computed outside its clock.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from dpbench import algorithms
from dpbench.algorithms.base import Algorithm, BaseSettings, RunResult, batch_settings, no_trace
from dpbench.algorithms.base import Trace as Listener
from dpbench.errors import Defect, PrivacyError, UserError, positive
from dpbench.privacy.budget import Budget, Budgets
from dpbench.privacy.check import Guarantee, check, guarantee
from dpbench.privacy.disclosure import undeclared
from dpbench.privacy.exact_release import ExactMechanisms
from dpbench.privacy.ledger import Relation
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.privacy.noise import stream
from dpbench.problems import Problem, build, catalogue
from dpbench.run.job import Job, check_delta, delta_value
from dpbench.run.outcomes import StatusName
from dpbench.run.row import FILLED
from dpbench.serving.method import ServedMethod

T = TypeVar("T")


def schedule(last: int, per_decade: int = 24) -> list[int]:
    """Iterations to record in a run of `last`: every one up to 20, then evenly on a log scale, and the last.

    >>> schedule(5)
    [0, 1, 2, 3, 4, 5]
    """
    dense = range(min(20, last) + 1)
    decades = np.log10(max(last, 20) / 20)
    sparse = np.geomspace(20, max(last, 20), int(np.ceil(decades * per_decade)) + 1).round().astype(int)
    return sorted({*dense, *(int(t) for t in sparse if t <= last), last})


class Clock:
    """Wall time of the method alone: it stands still while the run is being observed."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._paused = 0.0

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start - self._paused

    def outside(self, function: Callable[[], T]) -> T:
        """Call `function` with the clock standing still."""
        begin = time.perf_counter()
        try:
            return function()
        finally:
            self._paused += time.perf_counter() - begin


class ObjectiveTrace:
    """Records F(W) at scheduled iterations; calling it at any other iteration returns at once.

    `final` marks the last iteration of a run that ends before the schedule does: it is recorded in any case. Where
    replicates end at iterations of their own, `final` is (k,), and `passes` (k,) with NaN for those that have left:
    nothing is recorded for them, nor, between scheduled iterations, for those that go on.

    next: the iteration it waits for, -1 for none: a run that works in blocks ends one there.
    points: list of (iteration, passes (k,), seconds, objective (k,)).
    """

    def __init__(self, objective: Callable[[np.ndarray], np.ndarray], iterations: list[int], clock: Clock) -> None:
        self._objective = objective
        self._wanted = iter([*iterations, -1])
        self.next = next(self._wanted)
        self._clock = clock
        self.points: list[tuple[int, np.ndarray, float, np.ndarray]] = []

    def __call__(
        self, iteration: int, W: np.ndarray, passes: float | np.ndarray, *, final: bool | np.ndarray = False
    ) -> None:
        wanted = np.ones(len(W), bool) if iteration == self.next else np.broadcast_to(final, len(W))
        if not wanted.any():
            return
        seconds = self._clock.seconds
        if iteration == self.next:
            self.next = next(self._wanted)
        values = self._clock.outside(lambda: self._objective(W))
        self.points.append((iteration, np.where(wanted, passes, np.nan), seconds, values))


Build: TypeAlias = Callable[[str], Problem]
# An objective this many times that of the start has no digit of the data in it.
DIVERGENCE_FACTOR = 1 / np.finfo(float).eps


class BatchRun(NamedTuple):
    """What came out of one batch: final iterates, the ledger, and what is known of each replicate.

    errors: why a replicate's iterates were withheld, "" where they were not. columns: those of `RunResult`, checked.
    """

    W: np.ndarray
    objective: np.ndarray
    status: list[StatusName]
    errors: list[str]
    T: Sequence[int | None]
    columns: dict[str, Any]
    mechanisms: Mechanisms
    trace: ObjectiveTrace | None
    seconds: float
    evidence: Any = None  # see RunResult


def own_columns(algorithm: Algorithm, columns: dict[str, Any], k: int) -> dict[str, Any]:
    """`columns`; Defect unless each is declared, under a name that is not the runner's, with a value per replicate."""
    declared = {one.name for one in algorithm.diagnostics}
    if clash := sorted(declared & FILLED):
        raise Defect(f"diagnostics: {', '.join(clash)}: columns that the runner fills; give them other names")
    if unknown := sorted(columns.keys() - declared):
        raise Defect(f"{', '.join(unknown)}: returned, but never declared; add a Diagnostic to `diagnostics`")
    if short := sorted(name for name, values in columns.items() if len(values) != k):
        raise Defect(f"{', '.join(short)}: needs a value for each of the {k} replicates")
    return columns


@dataclass(frozen=True)
class BoundRun:
    """k replicates that only have to be run.

    settings: completed, one per replicate, like budgets. start: (k, d). keys: what each replicate's noise is drawn
    from. seeds: of the jobs, where there are jobs. planted: what all noise is multiplied by; any but 1 keeps no ε.
    """

    algorithm: Algorithm
    problem: Problem
    settings: list[BaseSettings]
    budgets: list[Budget]
    start: np.ndarray
    keys: list[str]
    seeds: tuple[int, ...] = ()
    planted: float = 1.0

    def mechanisms(self, kind: type[Mechanisms] | None = None, *, noiseless: bool = False) -> Mechanisms:
        """What all replicates release through, each by noise of its own key; a served method's by the system's."""
        kind = kind or (ExactMechanisms if isinstance(self.algorithm, ServedMethod) else Mechanisms)
        budget = self.budgets[0] if len(set(self.budgets)) == 1 else Budgets(tuple(self.budgets))
        declared = self.algorithm.declared(budget.relation)
        found = kind(self.keys, budget, noiseless=noiseless, declared=declared, planted=self.planted)
        found.seeds = self.seeds
        return found

    def plan(self, mechanisms: Mechanisms) -> None:
        """Have every replicate's releases planned, and check them by both routes before the data are touched.

        Raises:
            PrivacyError: for a plan of more than the budget, or of releases that were never declared. The published
                calibrations that keep no ε (`Algorithm.flaw`) show in their rows.
        """
        bare, algorithm = self.problem.bare, self.algorithm
        alike = itertools.groupby(range(len(self.settings)), lambda i: (self.settings[i], self.budgets[i]))
        for (settings, budget), group in alike:
            members = list(group)
            algorithm.plan(bare, mechanisms.planning(members), settings)
            plan = mechanisms.ledger.planned(members[0])
            claims = bool(plan) and algorithm.private and not algorithm.flaw(settings, budget.accounting)
            # Without noise, or with a planted factor on it, there is no ε to check.
            claims = claims and not mechanisms.releases.noiseless and self.planted == 1
            if claims and (error := check(plan, budget).error or undeclared(plan, algorithm.labels)):
                raise PrivacyError(f"its plan: {error}")

    def outcome(self, mechanisms: Mechanisms, trace: Listener = no_trace) -> RunResult:
        """What the algorithm hands back of all replicates together, releasing through `mechanisms`."""
        batch = batch_settings(self.settings, self.algorithm.per_replicate)
        # A diverging iterate is a result, which its status says, and not a warning.
        with np.errstate(all="ignore"):
            outcome = self.algorithm.run(self.problem, self.start.copy(), mechanisms, batch, trace)
        return outcome if isinstance(outcome, RunResult) else RunResult(outcome)

    def run(
        self, *, traced: bool = False, noiseless: bool = False, mechanisms_class: type[Mechanisms] | None = None
    ) -> BatchRun:
        """All replicates together, each drawing its noise from its own key alone."""
        algorithm, problem, k = self.algorithm, self.problem, len(self.settings)
        mechanisms = self.mechanisms(mechanisms_class, noiseless=noiseless)
        self.plan(mechanisms)
        clock = Clock()
        iterations = algorithm.iterations(problem, self.settings[0])
        trace = ObjectiveTrace(problem.value, schedule(iterations), clock) if traced and iterations else None
        outcome = self.outcome(mechanisms, trace or no_trace)
        seconds = clock.seconds
        with np.errstate(all="ignore"):
            objective = problem.value(outcome.W)
            within = objective <= DIVERGENCE_FACTOR
            # The objective at the start costs a pass over the data, so it is taken only where a run may have diverged.
            if not within.all():
                within = objective <= DIVERGENCE_FACTOR * np.maximum(1, abs(problem.value(self.start)))
            sane = np.isfinite(outcome.W).all(axis=1) & within
        errors = list(outcome.refusals or [""] * k)
        status: list[StatusName] = [
            "refused" if error else "done" if fine else "diverged" for error, fine in zip(errors, sane, strict=True)
        ]
        T: Sequence[int | None] = outcome.T or [algorithm.iterations(problem, one) for one in self.settings]
        columns = own_columns(algorithm, outcome.columns, k)
        return BatchRun(outcome.W, objective, status, errors, T, columns, mechanisms, trace, seconds, outcome.evidence)

    def flaw(self, i: int = 0) -> str:
        """Why replicate `i` does not keep its ε by design; "" where it claims to."""
        if self.planted != 1:
            return f"planted: its noise is {self.planted:g} times what its releases say"
        return self.algorithm.flaw(self.settings[i], self.budgets[i].accounting)

    def guarantee(self, run: BatchRun, i: int = 0) -> Guarantee:
        """What both routes say of replicate `i` of `run`."""
        return guarantee(run.mechanisms.ledger, i, self.budgets[i], self.algorithm.labels)


def bind(
    algorithm: Algorithm,
    problem: Problem,
    settings: Sequence[BaseSettings],
    budgets: Sequence[Budget],
    start: np.ndarray,
    keys: Sequence[str],
    seeds: Sequence[int] = (),
    planted: float = 1.0,
) -> BoundRun:
    """One run of each of `settings`, completed; UserError for a problem that the method's guarantee does not cover."""
    if getattr(problem, "weighted", False) and not algorithm.persons:
        raise UserError(f"{algorithm.name}: not derived for several rows of one person; take one of sums over all rows")
    complete: list[BaseSettings] = []
    for one, group in itertools.groupby(settings):
        complete += [algorithm.complete(problem, one)] * len(list(group))
    found = BoundRun(algorithm, problem, complete, list(budgets), start, list(keys), tuple(seeds), planted)
    algorithm.needs.check(problem, algorithm.name, rows=not algorithm.flaw(complete[0], budgets[0].accounting))
    return found


def bind_jobs(jobs: Sequence[Job], build: Build = build) -> BoundRun:
    """Jobs of one group; build: what gives the problem of a name."""
    first = jobs[0]
    algorithm, problem = algorithms.get(first.algorithm), build(first.problem)
    budgets = [budget_of(algorithm, problem.n, j.epsilon, j.delta, j.neighbours, j.accounting) for j in jobs]
    start = np.stack([catalogue.draw(first.recipe.start, problem.d, stream(job.start_key, "init")) for job in jobs])
    keys, seeds = [job.stream_key for job in jobs], [job.seed for job in jobs]
    return bind(algorithm, problem, [job.parsed() for job in jobs], budgets, start, keys, seeds, first.planted)


def budget_of(
    algorithm: Algorithm,
    n: int,
    epsilon: float,
    delta: float | str | None = None,
    relation: Relation | str | None = None,
    accounting: str = "paper",
) -> Budget:
    """What a run may spend on n rows; None takes the algorithm's own δ and relation. UserError for what cannot be."""
    return Budget(
        epsilon=positive("epsilon", epsilon),
        delta=delta_value(check_delta(algorithm.delta if delta is None else delta), n),
        relation=algorithm.relation if relation is None else algorithm.under(relation),
        accounting=algorithm.accounting(accounting),
    )
