"""The audit of an algorithm as it is implemented: whole runs on two neighbours, told apart by all they release."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.stats import norm
from threadpoolctl import threadpool_limits

from dpbench import algorithms
from dpbench.algorithms.audit_case import AuditCase
from dpbench.algorithms.base import Algorithm, BatchSettings, Outcome, make_settings
from dpbench.audit import scores
from dpbench.audit.claims import claim, joint
from dpbench.audit.decide import Verdict, decide
from dpbench.audit.neighbours import Neighbours, neighbours
from dpbench.audit.transcript import Leak, Recorder, Replay
from dpbench.errors import PrivacyError, UserError
from dpbench.jobs import delta_value
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Poisson, WithoutReplacement
from dpbench.privacy.verify import check
from dpbench.trace import no_trace

LEVEL = 0.01
EXCESS = 0.6  # of the loss over the claim with halved noise, which doubles μ, on the least telling of the cases
PURE_RUNS = 20_000  # two Laplace releases in two dimensions: 1 run in 16 has the largest loss
MOST_RUNS = 200_000
WHOLE, LAST = "whole run", "last iterate"


class Audit(NamedTuple):
    """verdicts: of the whole run, and of each label of its releases alone.

    defect: what is wrong before any test: it gave away data it did not release, or its ledger composes to more than ε.
    """

    algorithm: str
    epsilon: float
    delta: float
    runs: int
    verdicts: dict[str, Verdict]
    units: dict[str, str]
    defect: str = ""

    @property
    def passed(self) -> bool:
        return not self.defect and all(verdict.passed for verdict in self.verdicts.values())


def audit(
    name: str,
    epsilon: float,
    *,
    runs: int | None = None,
    seed: int = 0,
    level: float = LEVEL,
    factor: float = 1.0,
    case: AuditCase | None = None,
) -> Audit:
    """Audit the algorithm `name` at `epsilon` on `runs` runs, half of them on either of two neighbours.

    runs: None takes as many as it needs to notice that all noise is halved. level: the probability of a false alarm,
    shared by all tests of this audit. factor: what all noise is multiplied by, for mutants. case: instead of the
    algorithm's own. UserError for an algorithm that claims nothing.

    Where every bound is tight, an audit of a sound algorithm fails with a probability of at most `level`; that of m
    audits, at most m times that. In fact it is far less: both error rates have to be underestimated, each beyond its
    limit at level/2, or one by more; for one tight Gaussian release that is 1.4e-4 at 0.01, hence 1 % for 80 audits.
    A seed decides all: the same audit gives the same answer.
    """
    algorithm, fixed = algorithms.resolve(name)
    if not algorithm.private:
        raise UserError(f"algo: {name} is not private: it makes no claim to audit")
    if runs is not None and runs < 40:
        raise UserError(f"runs must be at least 40, got {runs}")
    case = case or algorithm.audit_case()
    pair = neighbours(algorithm, case)
    setup = _Setup(algorithm, case, pair, fixed, epsilon, factor)
    with threadpool_limits(1):
        try:
            runs = runs or setup.enough(level)
            worlds = [setup.world(problem, runs // 2, (seed, i)) for i, problem in enumerate(pair[:2])]
        except Leak as leak:
            return Audit(name, epsilon, setup.budget.delta, 0, {}, {}, str(leak))
    compositions = list({run.ledger.of(i) for run, _ in worlds for i in range(run.k)})
    try:
        for composition in compositions:
            check(composition, setup.budget)
    except PrivacyError as error:
        return Audit(name, epsilon, setup.budget.delta, runs, {}, {}, str(error))
    everything = joint(compositions)
    first, second = (found for _, found in worlds)
    tests = sorted(first.keys() & second.keys(), key=lambda label: (label not in (WHOLE, LAST), label))
    verdicts, units = {}, {}
    for label in tests:
        mine = tuple(e for e in everything if label in (WHOLE, LAST, e.label))
        told = claim(mine, algorithm.relation, setup.budget.delta)
        verdicts[label] = decide(first[label], second[label], told, level / len(tests))
        units[label] = told.unit
    return Audit(name, epsilon, setup.budget.delta, runs, verdicts, units)


def auditable() -> list[str]:
    """The names of all private algorithms; of names for the same settings, the one that says most."""
    distinct = {}
    for name in algorithms.names():
        algorithm, fixed = algorithms.resolve(name)
        defaults = make_settings(algorithm, fixed)
        if algorithm.private and not algorithm.flaw(defaults, algorithm.accounting(algorithm.audit_case().accounting)):
            distinct[algorithms.display_name(algorithm.name, defaults)] = None
    return list(distinct)


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
        if flaw := algorithm.flaw(self.settings, self.budget.accounting):
            raise UserError(f"{algorithm.name}: nothing to audit: {flaw}")

    def enough(self, level: float) -> int:
        """Runs after which a loss of (1 + excess)μ is seen to be more than the claimed μ, by the normal approximation.

        The thresholds of best power for a loss of 2m have error rates Φ(-m) both; each is estimated on n runs with a
        standard error of s = √(Φ(-m)Φ(m)/n)/φ(m) on the scale of Φ⁻¹, of which the limits take z for both rates and a
        power of 99 % takes 2.33 √2.
        """
        run, found = self.world(self.pair.first, 2, 0)
        whole, excess = run.ledger.of(0), EXCESS
        parts = [whole]
        if any(isinstance(entry.release, WithoutReplacement) for entry in whole):
            # Composed, these have no tight bound: count on the releases of one label, of which each doubles μ and more.
            parts, excess = [tuple(e for e in whole if e.label == label) for label in {e.label for e in whole}], 1.0
        told = [claim(part, self.algorithm.relation, self.budget.delta) for part in parts]
        if told[0].unit == "ε":
            return PURE_RUNS
        mu = max(float(one.at(0.3)) for one in told)
        m, z = (1 + excess) * mu / 2, norm.isf(level / 2 / len(found))
        spread = math.sqrt(norm.cdf(-m) * norm.cdf(m)) / norm.pdf(m)
        judged = ((2 * z + 2.33 * math.sqrt(2)) * spread / (excess * mu)) ** 2
        return min(MOST_RUNS, 4 * math.ceil(judged))

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
