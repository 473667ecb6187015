"""The audit of an algorithm as it is implemented: whole runs on two neighbours, told apart by all they release."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from dpbench import algorithms
from dpbench.algorithms.audit_case import AuditCase
from dpbench.algorithms.base import Algorithm, BatchSettings, Outcome, make_settings
from dpbench.audit import scores
from dpbench.audit.claims import claim, joint
from dpbench.audit.decide import Verdict, decide
from dpbench.audit.neighbours import Neighbours, neighbours
from dpbench.audit.transcript import Leak, Recorder, Replay
from dpbench.errors import UserError
from dpbench.jobs import delta_value
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Poisson, WithoutReplacement
from dpbench.trace import no_trace

LEVEL = 0.01
RUNS = 20_000
WHOLE, LAST = "whole run", "last iterate"


class Audit(NamedTuple):
    """verdicts: of the whole run, and of each label of its releases alone. leak: how it gave away unreleased data."""

    algorithm: str
    epsilon: float
    delta: float
    verdicts: dict[str, Verdict]
    units: dict[str, str]
    leak: str = ""

    @property
    def passed(self) -> bool:
        return not self.leak and all(verdict.passed for verdict in self.verdicts.values())


def audit(
    name: str,
    epsilon: float,
    *,
    runs: int = RUNS,
    seed: int = 0,
    level: float = LEVEL,
    factor: float = 1.0,
    case: AuditCase | None = None,
) -> Audit:
    """Audit the algorithm `name` at `epsilon` on `runs` runs, half of them on either of two neighbours.

    level: the probability of a false alarm, shared by all tests of this audit. factor: what all noise is multiplied by,
    for mutants. UserError for an algorithm that claims nothing.
    """
    algorithm, fixed = algorithms.resolve(name)
    if not algorithm.private:
        raise UserError(f"algo: {name} is not private: it makes no claim to audit")
    if runs < 40:
        raise UserError(f"runs must be at least 40, got {runs}")
    case = case or algorithm.audit_case()
    pair = neighbours(algorithm, case)
    setup = _Setup(algorithm, case, pair, fixed, epsilon, factor)
    with threadpool_limits(1):
        try:
            worlds = [setup.world(problem, runs // 2, (seed, i)) for i, problem in enumerate(pair[:2])]
        except Leak as leak:
            return Audit(name, epsilon, setup.budget.delta, {}, {}, str(leak))
    compositions = list({run.ledger.of(i) for run, _ in worlds for i in range(run.k)})
    everything = joint(compositions)
    first, second = (found for _, found in worlds)
    tests = sorted(first.keys() & second.keys(), key=lambda label: (label not in (WHOLE, LAST), label))
    verdicts, units = {}, {}
    for label in tests:
        mine = tuple(e for e in everything if label in (WHOLE, LAST, e.label))
        told = claim(mine, algorithm.relation, setup.budget.delta)
        verdicts[label] = decide(first[label], second[label], told, level / len(tests))
        units[label] = told.unit
    return Audit(name, epsilon, setup.budget.delta, verdicts, units)


class _Setup:
    """What all runs of an audit share."""

    def __init__(self, algorithm: Algorithm, case: AuditCase, pair: Neighbours, fixed, epsilon: float, factor: float):
        self.algorithm, self.case, self.pair, self.factor = algorithm, case, pair, factor
        self.budget = Budget(
            epsilon, delta_value(algorithm.delta, case.n), algorithm.relation, algorithm.accounting(case.accounting)
        )
        values = {"T": 2} if "T" in algorithm.Settings.__struct_fields__ else {}
        parsed = make_settings(algorithm, {**values, **case.settings, **fixed})
        for problem in pair:
            algorithm.needs.check(problem, algorithm.name)
        self.settings = algorithm.complete(pair.first, parsed)
        if flaw := algorithm.flaw(self.settings):
            raise UserError(f"{algorithm.name}: nothing to audit: {flaw}")

    def world(self, problem, k: int, seed) -> tuple[Recorder, dict[str, np.ndarray]]:
        """k runs on `problem`, and their scores by test."""
        run = Recorder(k, self.budget, seed, factor=self.factor)
        W = self._run(problem, run)
        told = {one.label for tape in run.tape.values() for one in tape}
        if told < {entry.label for entry in run.ledger.of(0)}:
            return run, {LAST: _along_difference(self.pair, W)}
        replays = []
        for other in self.pair[: 3 if self._sampled(run) else 2]:
            replay = Replay(run, seed)
            if not np.allclose(self._run(other, replay), W, rtol=1e-6, atol=1e-9, equal_nan=True):
                raise Leak("on a neighbour it returns something else after the same releases")
            replays.append(replay)
        replays += [replays[-1]] * (3 - len(replays))
        found = scores.by_label(run, *replays)
        return run, {WHOLE: scores.likelihood_ratio(run, *replays)} | (found if len(run.ledger.of(0)) > 1 else {})

    @staticmethod
    def _sampled(run: Recorder) -> bool:
        return any(isinstance(entry.release, Poisson | WithoutReplacement) for entry in run.ledger.of(0))

    def _run(self, problem, mechanisms) -> np.ndarray:
        k = mechanisms.k
        W = np.zeros((k, problem.d))
        batch = BatchSettings([self.settings] * k, self.algorithm.per_replicate)
        with np.errstate(all="ignore"):
            outcome = self.algorithm.run(problem, W, mechanisms, batch, no_trace)
        return outcome.W if isinstance(outcome, Outcome) else outcome


def _along_difference(pair: Neighbours, W: np.ndarray) -> np.ndarray:
    """Final iterates along the difference of the neighbours' gradients: a step goes against the gradient."""
    at = np.zeros((1, pair.first.d))
    return W @ (pair.second.data_gradient(at) - pair.first.data_gradient(at))[0]
