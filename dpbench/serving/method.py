"""A served method as an `Algorithm`: what it says of itself, its plan, and its runs come from a process without rows.

Nothing of its code is imported here, and what it says of itself can only raise the noise.
"""

from __future__ import annotations

import copy
import functools
from typing import Any

import msgspec
import numpy as np

from dpbench.algorithms import registry, rules
from dpbench.algorithms.base import Algorithm, BaseSettings, RunResult
from dpbench.errors import UserError
from dpbench.privacy import accounting
from dpbench.privacy.budget import Budget
from dpbench.privacy.exact_release import ExactMechanisms
from dpbench.privacy.ledger import release_of
from dpbench.problems import Declaration
from dpbench.problems.exact import ExactProblem
from dpbench.serving import process, wire

NUMBER = int | float | None  # what a setting takes that takes "1"


class NotAnAlgorithm(UserError):
    """What was asked to be served is no method that releases through mechanisms."""


class ServedMethod(Algorithm):
    """The method of `code`, as it describes itself. fixed: the settings that its name fixes."""

    exact = "sums"
    labels = frozenset()  # of an instance: those that it says

    def __init__(self, code: process.MethodCode) -> None:
        told = process.ask(code, wire.DescribeMethod(reference=code.called), wire.DescribedMethod | wire.NoMethod)
        if isinstance(told, wire.NoMethod):
            raise NotAnAlgorithm(f"{code.reference}: {told.why}")
        if not told.private:
            raise UserError(f"{told.name}: it is not private; what is served are methods that release through noise")
        if not told.needs.covered:
            raise UserError(f"{told.name}: needs: there is no loss that its proof covers")
        # Rows go by names: a file of that name would write its runs among the built-in method's.
        if code.source and registry.taken(told.name):
            raise UserError(f"{code.reference}: the name {told.name} is taken; give the class another `name`")
        self.code, self.fixed = code, told.fixed
        ours = code.reference in registry.names(plugins=False) and not code.source
        for mode in () if ours else (*told.accountings, told.paper_accounting):
            if flaw := accounting.get(mode).flaw:
                raise UserError(f"{code.reference}: accounting {mode}: {flaw}")
        # A stranger's δ is one of ours: with .9, say, any noise would do for its ε.
        delta = told.delta if ours or told.delta == 0 else rules.DELTA
        fields = [(one.name, NUMBER if one.number else Any, _default(one.default)) for one in told.settings]
        settings = msgspec.defstruct("Settings", fields, bases=(BaseSettings,), frozen=True)
        vars(self).update(
            name=told.name, title=told.title, relation=told.relation, either=told.either, needs=told.needs,
            accountings=tuple(told.accountings), paper_accounting=told.paper_accounting, delta=delta,
            labels=frozenset(told.labels), Settings=settings,
        )  # fmt: skip

    def batch_size(self, n: int, d: int) -> int:
        """One run is one process."""
        return 1

    def public_settings(self, n: int, d: int, epsilon: float) -> dict[str, Any]:
        """See `Algorithm.public_settings`; on the first loss that it covers."""
        problem = Declaration(n, d, loss=self.needs.covered[0], row_bound=1.0)
        delta = 0.0 if rules.delta(self) == 0 else 1 / n**2
        budget = Budget(epsilon, delta, self.relation, rules.accounting(self))
        made = _prepared(self.code, wire.encoded(self._run_method(problem, budget, None))).settings
        return {name: value for name, value in made.items() if name not in self.fixed}

    def plan(self, problem: Declaration, mechanisms: Any, settings: Any) -> None:
        """See `Algorithm.plan`; what it says, which its run then keeps to."""
        given = self._run_method(problem, mechanisms.budget, msgspec.to_builtins(settings))
        for one in _prepared(self.code, wire.encoded(given)).plan.entries:
            mechanisms.plan(one.label, release_of(one.release), one.count)

    def run(self, problem: Any, W: np.ndarray, mechanisms: Any, settings: Any, trace: Any) -> RunResult:
        """See `Algorithm.run`; of one replicate, which releases by `ExactMechanisms`. evidence: the `ServedRun`."""
        # Floating-point noise leaks through its low bits (Mironov 2012), so only exact releases are served.
        if len(W) != 1 or not isinstance(mechanisms, ExactMechanisms):
            raise UserError(f"{self.name}: it is served, one run at a time, by exact releases")
        given = self._run_method(problem, mechanisms.budget, msgspec.structs.asdict(settings))
        given = msgspec.structs.replace(given, key=mechanisms.releases.run_keys[0], start=wire.numbers(W))
        made = process.serve(self.code, given, exact_rows(problem), mechanisms)
        return RunResult(made.W, evidence=made)

    def _run_method(self, problem: Declaration, budget: Budget, settings: dict[str, Any] | None) -> wire.RunMethod:
        declared = problem.objective | {"loss": problem.loss.name} | _rows(problem)
        return wire.RunMethod(
            reference=self.code.called, n=problem.n, d=problem.d, declared=declared, budget=budget, settings=settings
        )


@functools.lru_cache(maxsize=256)
def _prepared(code: process.MethodCode, given: bytes) -> wire.PreparedRun:
    """What a run would be: asked once for all seeds."""
    made: wire.PreparedRun = process.ask(code, wire.decoded(given, wire.RunMethod), wire.PreparedRun)
    return made


@functools.lru_cache(maxsize=4)
def exact_rows(problem: Any) -> ExactProblem:
    """The problem on the grid of exact sums, with steady solvers; the same where it is so already."""
    if isinstance(problem, ExactProblem) and (problem.steady or problem.is_sparse):
        return problem
    steady = not problem.is_sparse
    return ExactProblem(problem.X, problem.y, **problem.objective, **_rows(problem), steady=steady)


def _rows(problem: Declaration) -> dict[str, Any]:
    """The bound that is declared of rows, or 1."""
    bound = problem.row_bound if np.isfinite(problem.row_bound) else 1.0
    return {"row_bound": bound, "row_bound_norm": problem.row_bound_norm}


def _default(told: Any) -> Any:
    """A default as a struct takes it: lists and tables are copied for each."""
    return msgspec.field(default_factory=lambda: copy.deepcopy(told)) if isinstance(told, list | dict) else told


@functools.lru_cache(maxsize=256)
def of_source(*code: Any) -> ServedMethod:
    """The served method of a name, or of a class, the text of its file and its name: what `registry` asks for."""
    return ServedMethod(process.MethodCode(*code))
