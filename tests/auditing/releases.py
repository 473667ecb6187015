"""Every kind of release audited alone, against its own ledger entry: the mechanisms, and what algorithms do with them.

A mechanism releases one of two values as far apart as its sensitivity allows. The row that differs is row 0 of ROWS; in
a sample it moves the value by the whole sensitivity. A mechanism that answers until it refuses is asked until it does.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from dpbench.auditing import noise, scores
from dpbench.auditing.claims import AuditVerdict, claim, decide
from dpbench.auditing.runs import LEVEL, WHOLE, audit
from dpbench.auditing.transcript import Leak, Recorder, ReplayedTape
from dpbench.auditing.worlds import ROUNDING, Setup, shares_moved
from dpbench.errors import PrivacyError
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Relation
from dpbench.privacy.sampling import PoissonReplacedSampler

RUNS = 20_000
EPSILON = 4.0  # of the runs that the releases of algorithms are taken from
ROWS, SAMPLED = 8, 2
ADD_REMOVE = Budget(1.0, 0.01, Relation.ADD_REMOVE, "standard")
REPLACE_ONE = Budget(1.0, 0.01, Relation.REPLACE_ONE, "standard")
LINE = np.array([0.6, -0.8])  # ‖·‖₂ = 1
RIVALS = 30  # of the index that neighbours make more and less likely, in report noisy max
QUERIES = 8  # at the threshold; a neighbour moves every fourth one up and the others down
THRESHOLD = 3.0
ROUNDS = 8  # of the tree: the row is in the term of the first, hence in 4 nodes


@contextlib.contextmanager
def weakened(factor: float) -> Iterator[None]:
    """All noise of audited runs is this many times what it should be, and no test of its law says so."""
    recorder = Setup.recorder

    def planted(self: Setup, *given: Any, **named: Any) -> Recorder:
        made = recorder(self, *given, **named)
        made.releases.planted = factor
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Setup, "recorder", planted)
        patch.setattr(noise, "fault", lambda run: "")
        yield


class SingleRelease(NamedTuple):
    """One kind of release. run(mechanisms, s, wrong): released on the first (s = 1) or the second (s = 0) data set.

    epsilon: recorded as pure DP or not. wrong: the sample is twice as large as what is accounted.
    """

    name: str
    budget: Budget
    run: Callable[[Recorder, float, bool], object]
    sampled: bool = False
    pure: bool = False
    neither: float = 0.0  # the s of data without the row


class AuditedRelease(NamedTuple):
    """A line of the table: the bounds of the release as it is, with its noise halved, with its sample mistaken.

    moved: the share of what the ledger says by which a neighbour moves it. defect: of the release as it is, as seen
    without a test.
    """

    release: str
    unit: str
    correct: AuditVerdict
    halved: AuditVerdict
    mistaken: AuditVerdict | None
    moved: float
    defect: str = ""

    @property
    def sound(self) -> bool:
        """The release passes, and the audit notices what was done to it."""
        weakened = [self.halved, *([self.mistaken] if self.mistaken else [])]
        return self.correct.passed and not self.defect and not any(one.passed for one in weakened)


def _value(m: Recorder, s: float) -> np.ndarray:
    return np.tile(s * LINE, (m.k, 1))


def _matrix(m: Recorder, s: float) -> np.ndarray:
    return np.tile(s * np.diag(LINE), (m.k, 1, 1))


def _noisy_max(m: Recorder, s: float, wrong: bool) -> np.ndarray:
    up, down = np.full((m.k, RIVALS), 1 - s), np.zeros((m.k, RIVALS))
    up[:, 0] = s
    return m.noisy_argmax(up + down, sensitivity=1.0, epsilon=1.0, label="release")


def _exponential(m: Recorder, s: float, wrong: bool) -> np.ndarray:
    scores_ = np.full((m.k, RIVALS), 1 - s)
    scores_[:, 0] = s
    return m.exponential(scores_, sensitivity=1.0, epsilon=1.0, label="release")


def _noisy_max_of_magnitudes(m: Recorder, s: float, wrong: bool) -> np.ndarray:
    scores_ = np.full((m.k, RIVALS), 30.0 + 1 - s)
    scores_[:, 0] = 30.0 + s
    return m.noisy_argmax(scores_, sensitivity=1.0, epsilon=1.0, label="release", magnitude=True)


def _sparse_vector(m: Recorder, s: float, wrong: bool) -> None:
    for i in range(m.k):
        above = m.member(i).above_threshold(sensitivity=1.0, epsilon=2.0, threshold=THRESHOLD, label="release")
        for t in range(QUERIES):
            try:
                above(THRESHOLD + (s if t % 4 == 3 else 1 - s))
            except Leak:
                raise
            except PrivacyError:
                break  # it refuses to go on after the first "above"


def _tree(m: Recorder, s: float, wrong: bool) -> None:
    tree = m.tree(ROUNDS, sensitivity=1.0, rho=0.5, label="release")
    for _ in range(ROUNDS):
        tree.release(_value(m, s))


def _correlated(m: Recorder, s: float, wrong: bool) -> None:
    noise = m.correlated(6, separation=3, bands=3, sensitivity=1.0, rho=0.5, label="release")
    for t in range(6):
        noise.release(_value(m, s) if t % 3 == 0 else _value(m, 0.0))


def _single_pass(m: Recorder, s: float, wrong: bool) -> None:
    rows = m.single_pass(ROWS, label="release")
    for _ in range(ROWS):
        present = (rows.take(1) == 0).any(axis=1)
        rows.gaussian(present[:, None] * _value(m, s), sensitivity=1.0, noise_multiplier=1.0)


def _sampler(
    make: Callable[[Recorder], Any],
    twice: Callable[[np.random.Generator], np.ndarray],
    release: str,
    *,
    opposite: bool = False,
    draws: int = 1,
    **noise: float,
) -> Callable[[Recorder, float, bool], None]:
    """opposite: the row is replaced by its opposite, s = 1/2 being neither. draws: each with a release."""

    def run(m: Recorder, s: float, wrong: bool) -> None:
        sampler = make(m)
        if wrong and not isinstance(m.releases, ReplayedTape):
            sampler.rule = lambda generator: twice(generator)
        value = _value(m, 2 * s - 1 if opposite else s)
        for _ in range(draws):
            present = np.array([0 in rows for rows in sampler.draw()])
            getattr(sampler, release)(present[:, None] * value, sensitivity=_norm(release), **noise)

    return run


def _norm(release: str) -> float:
    return float(np.abs(LINE).sum()) if release == "laplace" else 1.0


def _half_of_rows(generator: np.random.Generator) -> np.ndarray:
    return np.flatnonzero(generator.random(ROWS) < 2 * SAMPLED / ROWS)


def _twice_as_many(generator: np.random.Generator) -> np.ndarray:
    return generator.choice(ROWS, 2 * SAMPLED, replace=False)


def _poisson(m: Recorder) -> Any:
    return m.poisson(ROWS, SAMPLED / ROWS, "release")


def _poisson_replaced(m: Recorder) -> PoissonReplacedSampler:
    m.releases.factor = 2.0  # as in a run of an add/remove algorithm
    return PoissonReplacedSampler(m.releases, m.budget, ROWS, SAMPLED / ROWS, "release")


def _allocation(m: Recorder) -> Any:
    return m.allocation(ROWS, ROWS // SAMPLED, "release")


def _without_replacement(m: Recorder) -> Any:
    return m.without_replacement(ROWS, SAMPLED, "release")


MECHANISMS = (
    SingleRelease(
        "Gaussian, vector",
        ADD_REMOVE,
        lambda m, s, _: m.gaussian(_value(m, s), sensitivity=1.0, rho=0.5, label="release"),
    ),
    SingleRelease(
        "Gaussian, symmetric matrix",
        ADD_REMOVE,
        lambda m, s, _: m.gaussian(_matrix(m, s), sensitivity=1.0, rho=0.5, label="release", symmetric=True),
    ),
    SingleRelease(
        "Gaussian, symmetric matrix, √2 less off the diagonal",
        Budget(1.0, 0.01, Relation.ADD_REMOVE, "tight"),
        lambda m, s, _: m.gaussian(_matrix(m, s), sensitivity=1.0, rho=0.5, label="release", symmetric=True),
    ),
    SingleRelease(
        "Laplace",
        ADD_REMOVE,
        lambda m, s, _: m.laplace(_value(m, s), sensitivity=_norm("laplace"), epsilon=1.0, label="release"),
        pure=True,
    ),
    SingleRelease(
        "radial",
        ADD_REMOVE,
        lambda m, s, _: m.radial(_value(m, s), sensitivity=1.0, epsilon=1.0, label="release"),
        pure=True,
    ),
    SingleRelease("exponential", REPLACE_ONE, _exponential, pure=True),
    SingleRelease("noisy max", REPLACE_ONE, _noisy_max, pure=True),
    SingleRelease("noisy max of magnitudes", REPLACE_ONE, _noisy_max_of_magnitudes, pure=True),
    SingleRelease("sparse vector", REPLACE_ONE, _sparse_vector, pure=True),
    SingleRelease("tree", REPLACE_ONE, _tree),
    SingleRelease("correlated noise, two epochs", REPLACE_ONE, _correlated),
    SingleRelease("single pass", REPLACE_ONE, _single_pass),
    SingleRelease(
        "Gaussian, Poisson sample",
        ADD_REMOVE,
        _sampler(_poisson, _half_of_rows, "gaussian", noise_multiplier=0.5),
        sampled=True,
    ),
    SingleRelease(
        "Gaussian, Poisson sample, a row replaced",
        REPLACE_ONE,
        _sampler(_poisson_replaced, _half_of_rows, "gaussian", opposite=True, noise_multiplier=0.25),
        sampled=True,
        neither=0.5,
    ),
    SingleRelease(
        "Gaussian, rows allocated to four batches",
        Budget(1.0, 0.01, Relation.ADD_REMOVE, "tight"),
        _sampler(_allocation, _half_of_rows, "gaussian", draws=ROWS // SAMPLED, noise_multiplier=1.0),
        sampled=True,
    ),
    SingleRelease(
        "Gaussian, sample without replacement",
        REPLACE_ONE,
        _sampler(_without_replacement, _twice_as_many, "gaussian", noise_multiplier=0.5),
        sampled=True,
    ),
    SingleRelease(
        "Laplace, sample without replacement",
        REPLACE_ONE,
        _sampler(_without_replacement, _twice_as_many, "laplace", epsilon=2.0),
        sampled=True,
        pure=True,
    ),
)

# Whose releases are audited on the pairs that show them best: every kind there is of Gaussian ones.
WITHIN = (
    "dp-gd",
    "dp-newton-hess-add",
    "dp-newton-hess-clip",
    "dp-newton-general",
    "adassp",
    "cubic-newton",
    "opt",
    "dp-cd",
    "dp-mf",
    "dp-gd-last",
    "aop",
    "o2nc-tree",
)


def table(
    *, runs: int = RUNS, seed: int = 0, mechanisms: bool = True, within: Iterable[str] = WITHIN
) -> list[AuditedRelease]:
    """Every kind of release, as it is and weakened; as many runs of each mechanism (of the sparse vector half)."""
    rows = [judged(alone, runs, seed) for alone in MECHANISMS] if mechanisms else []
    for name in within:
        correct = audit(name, EPSILON, seed=seed, papers=True)
        with weakened(0.5):
            halved = audit(name, EPSILON, seed=seed, papers=True)
        for label, verdict in correct.verdicts.items():
            if label == WHOLE and len(correct.moved) > 1:
                continue
            (what,) = correct.moved if label == WHOLE else (label,)
            share, weak = correct.moved.get(what, math.nan), halved.verdicts[label]
            rows.append(AuditedRelease(f"{what} of {name}", verdict.unit, verdict, weak, None, share, correct.defect))
    return rows


def judged(alone: SingleRelease, runs: int, seed: int = 0) -> AuditedRelease:
    """The line of one mechanism."""
    k = runs // (4 if alone.name == "sparse vector" else 2)
    correct, unit, moved, defect = _judge(alone, k, seed)
    halved = _judge(alone, k, seed, factor=0.5)[0]
    mistaken = _judge(alone, k, seed, wrong=True)[0] if alone.sampled else None
    return AuditedRelease(alone.name, unit, correct, halved, mistaken, moved, defect)


def _judge(
    alone: SingleRelease, k: int, seed: int, factor: float = 1.0, wrong: bool = False
) -> tuple[AuditVerdict, str, float, str]:
    ratios, most, defect = [], 0.0, ""
    for s in (1.0, 0.0):
        run = Recorder(k, alone.budget, (seed, int(s)), n=ROWS if alone.sampled else 0)
        run.releases.planted = factor
        alone.run(run, s, wrong)
        first, second = (run.replay() for _ in range(2))
        alone.run(first, 1.0, False)
        alone.run(second, 0.0, False)
        neither = second
        if alone.neither:
            neither = run.replay()
            alone.run(neither, alone.neither, False)
        ratios.append(scores.likelihood_ratio(run, first, second, neither))
        most, defect = max(most, *shares_moved(run, [first, second, neither]).values()), defect or noise.fault(run)
    if most > 1 + ROUNDING:
        defect = f"a neighbour moves it by {most:.3g} of what the ledger says"
    told = claim(run.ledger.of(0), alone.budget.relation, 0.0 if alone.pure else alone.budget.delta)
    return decide(ratios[0], ratios[1], told, LEVEL), told.unit, most, defect
