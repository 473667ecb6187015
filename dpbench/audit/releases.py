"""Every kind of release audited alone, against its own ledger entry: the mechanisms, and what algorithms do with them.

A mechanism releases one of two values as far apart as its sensitivity allows. The row that differs is row 0 of ROWS; in
a sample it moves the value by the whole sensitivity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dpbench.algorithms.audit_case import AuditCase
from dpbench.audit import scores
from dpbench.audit.claims import claim
from dpbench.audit.decide import Verdict, decide
from dpbench.audit.runs import LEVEL, audit
from dpbench.audit.transcript import Recorder, Replay
from dpbench.errors import UserError
from dpbench.privacy.budget import Budget
from dpbench.privacy.relation import Relation

RUNS = 20_000
EPSILON = 4.0  # of the runs that the releases of algorithms are taken from
ROWS, SAMPLED = 8, 2
ADD_REMOVE = Budget(1.0, 0.01, Relation.ADD_REMOVE, "standard")
REPLACE_ONE = Budget(1.0, 0.01, Relation.REPLACE_ONE, "standard")
LINE = np.array([0.6, -0.8])  # ‖·‖₂ = 1
RIVALS = 30  # of the index that neighbours make more and less likely, in report noisy max
QUERIES = 5  # at the threshold; a neighbour moves the last one up and the others down


class Alone(NamedTuple):
    """One kind of release. run(mechanisms, s, wrong): released on the first (s = 1) or the second (s = 0) data set.

    epsilon: recorded as pure DP or not. wrong: the sample is twice as large as what is accounted.
    """

    name: str
    budget: Budget
    run: Callable[[Recorder, float, bool], object]
    sampled: bool = False
    pure: bool = False


class Row(NamedTuple):
    """A line of the table: the bounds of the release as it is, with its noise halved, with its sample mistaken."""

    release: str
    unit: str
    correct: Verdict
    halved: Verdict
    mistaken: Verdict | None

    @property
    def sound(self) -> bool:
        """The release passes, and the audit notices what was done to it."""
        return self.correct.passed and not self.halved.passed and not (self.mistaken and self.mistaken.passed)


def _value(m, s):
    return np.tile(s * LINE, (m.k, 1))


def _matrix(m, s):
    return np.tile(s * np.diag(LINE), (m.k, 1, 1))


def _noisy_max(m, s, wrong):
    up, down = np.full((m.k, RIVALS), 1 - s), np.zeros((m.k, RIVALS))
    up[:, 0] = s
    return m.noisy_argmax(up + down, sensitivity=1.0, epsilon=1.0, label="release")


def _noisy_max_of_magnitudes(m, s, wrong):
    scores_ = np.full((m.k, RIVALS), 30.0 + 1 - s)
    scores_[:, 0] = 30.0 + s
    return m.noisy_argmax(scores_, sensitivity=1.0, epsilon=1.0, label="release", magnitude=True)


def _sparse_vector(m, s, wrong):
    for i in range(m.k):
        above = m.member(i).above_threshold(sensitivity=1.0, epsilon=2.0, label="release")
        for t in range(QUERIES):
            if above(s if t == QUERIES - 1 else 1 - s):
                break


def _tree(m, s, wrong):
    tree = m.tree(4, sensitivity=1.0, rho=0.5, label="release")
    for _ in range(4):
        tree.release(_value(m, s))


def _single_pass(m, s, wrong):
    rows = m.single_pass(ROWS, label="release")
    for _ in range(ROWS):
        present = (rows.take(1) == 0).any(axis=1)
        rows.gaussian(present[:, None] * _value(m, s), sensitivity=1.0, noise_multiplier=1.0)


def _sampler(make: Callable, twice: Callable, release: str, **noise):
    def run(m, s, wrong):
        sampler = make(m)
        if wrong and not isinstance(m, Replay):
            sampler._sample = twice
        present = np.array([0 in rows for rows in sampler.draw()])
        getattr(sampler, release)(present[:, None] * _value(m, s), sensitivity=_norm(release), **noise)

    return run


def _norm(release: str) -> float:
    return float(np.abs(LINE).sum()) if release == "laplace" else 1.0


def _half_of_rows(generator):
    return np.flatnonzero(generator.random(ROWS) < 2 * SAMPLED / ROWS)


def _twice_as_many(generator):
    return generator.choice(ROWS, 2 * SAMPLED, replace=False)


def _poisson(m):
    return m.poisson(ROWS, SAMPLED / ROWS, "release")


def _without_replacement(m):
    return m.without_replacement(ROWS, SAMPLED, "release")


MECHANISMS = (
    Alone(
        "Gaussian, vector",
        ADD_REMOVE,
        lambda m, s, _: m.gaussian(_value(m, s), sensitivity=1.0, rho=0.5, label="release"),
    ),
    Alone(
        "Gaussian, symmetric matrix",
        ADD_REMOVE,
        lambda m, s, _: m.gaussian(_matrix(m, s), sensitivity=1.0, rho=0.5, label="release", symmetric=True),
    ),
    Alone(
        "Laplace",
        ADD_REMOVE,
        lambda m, s, _: m.laplace(_value(m, s), sensitivity=_norm("laplace"), epsilon=1.0, label="release"),
        pure=True,
    ),
    Alone("noisy max", REPLACE_ONE, _noisy_max, pure=True),
    Alone("noisy max of magnitudes", REPLACE_ONE, _noisy_max_of_magnitudes, pure=True),
    Alone("sparse vector", REPLACE_ONE, _sparse_vector, pure=True),
    Alone("tree", REPLACE_ONE, _tree),
    Alone("single pass", REPLACE_ONE, _single_pass),
    Alone(
        "Gaussian, Poisson sample",
        ADD_REMOVE,
        _sampler(_poisson, _half_of_rows, "gaussian", noise_multiplier=0.5),
        sampled=True,
    ),
    Alone(
        "Gaussian, sample without replacement",
        REPLACE_ONE,
        _sampler(_without_replacement, _twice_as_many, "gaussian", noise_multiplier=0.5),
        sampled=True,
    ),
    Alone(
        "Laplace, sample without replacement",
        REPLACE_ONE,
        _sampler(_without_replacement, _twice_as_many, "laplace", epsilon=2.0),
        sampled=True,
        pure=True,
    ),
)

NEWTON = {"T": 1, "modification": "add", "lambda0": 0.5}
WITHIN = (
    ("gradient of dp-gd", "dp-gd", "whole run", AuditCase({"T": 1})),
    ("trace of dp-newton", "dp-newton", "trace", AuditCase({"T": 1, "gamma": 0.9}, steepest=False)),
    ("direction of dp-newton", "dp-newton", "direction", AuditCase(NEWTON, d=1, steepest=False)),
    ("direction of dp-newton-general", "dp-newton-general", "direction", AuditCase(NEWTON, d=1, steepest=False)),
    ("output and linear term of aop", "aop", "last iterate", None),
)


def table(*, runs: int = RUNS, seed: int = 0) -> list[Row]:
    """Every kind of release, as it is and weakened; as many runs of each (of the sparse vector half)."""
    if runs < 400:
        raise UserError(f"runs must be at least 400, got {runs}")
    rows = []
    for alone in MECHANISMS:
        k = runs // (4 if alone.name == "sparse vector" else 2)
        ways = ((1.0, False), (0.5, False), (1.0, True))[: 2 + alone.sampled]
        verdicts = [_judge(alone, k, seed, *how) for how in ways]
        rows.append(Row(alone.name, verdicts[0][1], *(v for v, _ in verdicts), *([] if alone.sampled else [None])))
    for name, algorithm, label, case in WITHIN:
        correct, halved = (
            audit(algorithm, EPSILON, runs=runs, seed=seed, factor=factor, case=case) for factor in (1.0, 0.5)
        )
        rows.append(Row(name, correct.units[label], correct.verdicts[label], halved.verdicts[label], None))
    return rows


def _judge(alone: Alone, k: int, seed: int, factor: float, wrong: bool) -> tuple[Verdict, str]:
    found = []
    for s in (1.0, 0.0):
        run = Recorder(k, alone.budget, (seed, int(s)), factor=factor)
        alone.run(run, s, wrong)
        replays = []
        for t in (1.0, 0.0):
            replay = Replay(run, (seed, int(s)))
            alone.run(replay, t, False)
            replays.append(replay)
        found.append(scores.likelihood_ratio(run, *replays, replays[1]))
    told = claim(run.ledger.of(0), alone.budget.relation, 0.0 if alone.pure else alone.budget.delta)
    return decide(*found, told, LEVEL), told.unit
