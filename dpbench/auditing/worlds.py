"""Runs of an algorithm on neighbours, each world built from scratch: settings completed on it, a start of its own."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpbench.algorithms.base import Algorithm, AuditCase, Outcome, batch_settings, make_settings
from dpbench.auditing import returned, scores
from dpbench.auditing.neighbours import Neighbours, neighbours, probes
from dpbench.auditing.returned import Listener, Returned
from dpbench.auditing.transcript import Leak, Recorder, Replay
from dpbench.errors import UserError
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import BoundedRange, Composition, Gaussian, Laplace, Poisson, PureDP, Radial
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.privacy.relation import Relation
from dpbench.problems import Problem
from dpbench.run.jobs import delta_value

STEPS = 4
INSPECTED = 8  # replicates of every pair that is inspected
SPREAD = 4.0  # of where an inspected run starts: far enough for gradients of nearly full length
ROUNDING = 1e-6


class Setup:
    """What all runs of an algorithm on one case share.

    public: seeds of the public randomness (`Tape`) of replicates 0, 1, …, over and over; () draws it in every run.
    """

    public: Sequence[int] = ()

    def __init__(
        self, algorithm: Algorithm, case: AuditCase, fixed: Mapping[str, Any], epsilon: float, factor: float
    ) -> None:
        self.algorithm, self.case, self.factor = algorithm, case, factor
        self.budget = Budget(
            epsilon, delta_value(algorithm.delta, case.n), algorithm.relation, algorithm.accounting(case.accounting)
        )
        steps = {"T": STEPS} if "T" in algorithm.Settings.__struct_fields__ else {}
        self.settings = make_settings(algorithm, {**steps, **case.settings, **fixed})
        self.pair = neighbours(algorithm, case)
        for problem in self.pair:
            algorithm.needs.check(problem, algorithm.name)
        if flaw := algorithm.flaw(algorithm.complete(self.pair.first, self.settings), self.budget.accounting):
            raise UserError(f"{algorithm.name}: nothing to audit: {flaw}")

    def recorder(self, k: int, seed: Any) -> Recorder:
        """What k runs release through."""
        public = np.resize(self.public, k).tolist() if len(self.public) else ()
        return Recorder(k, self.budget, seed, factor=self.factor, public=public)

    def run(self, problem: Problem, mechanisms: Mechanisms, start: np.ndarray | None = None) -> Returned:
        """All that comes out of a run on `problem` from `start` (k, d), by default 0."""
        algorithm, k, listener = self.algorithm, mechanisms.k, Listener()
        settings = algorithm.complete(problem, self.settings)
        batch = batch_settings([settings] * k, algorithm.per_replicate)
        W = np.zeros((k, problem.d)) if start is None else start.copy()
        with np.errstate(all="ignore"):
            outcome = algorithm.run(problem, W, mechanisms, batch, listener)
        if not isinstance(outcome, Outcome):
            outcome = Outcome(outcome)
        ledger = [mechanisms.ledger.of(i) for i in range(k)]
        withheld = [bool(why) for why in outcome.withheld or ()]
        return Returned(
            settings, outcome.W, outcome.T, withheld, outcome.columns, outcome.evidence, listener.calls, ledger
        )

    def replay(self, problem: Problem, run: Recorder, seed: Any, first: Returned, start: Any = None) -> Replay:
        """The same runs on `problem`; Leak unless all that comes out is what came out of `first`."""
        replay = Replay(run, seed)
        of_data = {one.name for one in self.algorithm.diagnostics if one.of_data}
        again = returned.without(self.run(problem, replay, start), of_data)
        first = returned.without(first, of_data)
        if hides(run):  # what is computed on is not released, so the rest has to be equal
            again, first = (one._replace(W=np.zeros(0), trace=[]) for one in (again, first))
        where = returned.difference(first._replace(ledger=[])._asdict(), again._replace(ledger=[])._asdict())
        if where := where or ("ledger" if first.ledger != again.ledger else ""):
            raise Leak(f"on a neighbour it returns something else after the same releases: {where}")
        if any(len(tape) != len(replay.tape.get(key, [])) for key, tape in run.tape.items()):
            raise Leak("on a neighbour it ends before it has released as much")
        return replay

    def compared(self, pair: Neighbours, seed: Any, k: int, start: Any = None) -> tuple[Recorder, list[Replay]]:
        """k runs on the first of `pair`, replayed on the first, on the second, and where the row is not in a sample."""
        run = self.recorder(k, seed)
        came = self.run(pair.first, run, start)
        third = pair.neither if self.algorithm.relation is Relation.ADD_REMOVE else pair.second
        one, other = (self.replay(problem, run, seed, came, start) for problem in pair[:2])
        return run, [one, other, other if third is pair.second else self.replay(third, run, seed, came, start)]

    def inspect(self, seed: Any) -> dict[str, float]:
        """What a neighbour moves of what the ledger says, by label, at most, over the case's pair and `probes`.

        Leak where something that is not released tells the neighbours apart.
        """
        rows = probes(self.algorithm, self.case) if not self.case.steepest else []
        most: dict[str, float] = defaultdict(float)
        for pair, turned in itertools.product([self.pair, *rows], (False, True)):
            first, second, neither = pair
            if turned:
                first, second = second, first
            start = np.random.default_rng(0).standard_normal((INSPECTED, first.d)) * SPREAD if rows else None
            run, replays = self.compared(Neighbours(first, second, neither), seed, INSPECTED, start)
            for label, share in ({} if hides(run) else moved(run, replays)).items():
                most[label] = max(most[label], share)
        return dict(most)


def hides(run: Recorder) -> bool:
    """Whether some release of the ledger is noise on what is computed on, and not published."""
    told = {one.label for tape in run.tape.values() for one in tape}
    return told < {entry.label for entry in run.ledger.of(0)}


def moved(run: Recorder, replays: Sequence[Recorder]) -> dict[str, float]:
    """How far apart the values of a label's releases are on neighbours, over what the ledger says: at most 1 if sound.

    Gaussian releases: the root of the sum of (distance/σ)² over that of 1/z²; ε-DP ones: the sum of their losses over
    that of ε. The largest over the replicates; of a sample, with the row in it.
    """
    return {label: float(np.nanmax(_shares(*one))) for label, one in _losses(run, replays).items()}


def moved_in_all(run: Recorder, replays: Sequence[Recorder]) -> float:
    """The same of the releases of all labels together."""
    return float(np.nanmax(moved_in_each(run, replays)))


def moved_in_each(run: Recorder, replays: Sequence[Recorder]) -> np.ndarray:
    """(k,) the same, of each replicate."""
    losses, claimed = zip(*_losses(run, replays).values(), strict=True)
    each: np.ndarray = np.fmax(*_shares(np.sum(losses, axis=0), np.sum(claimed, axis=0)))
    return each


def _shares(losses: np.ndarray, claimed: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        ratio = np.where(losses > 0, losses / claimed, 0.0)
    ratio[0] = np.sqrt(ratio[0])
    return ratio


def _losses(run: Recorder, replays: Sequence[Recorder]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Of each label (2, k): Σ (distance/σ)² and the sum of pure losses, as moved and as the ledger has them."""
    first, second, neither = replays
    found: dict[str, np.ndarray] = defaultdict(lambda: np.zeros((2, run.k)))
    thresholds: dict[tuple, float] = defaultdict(float)
    for key, tape in run.tape.items():
        members = np.arange(run.k) if key is None else np.array([key])
        for i, one in enumerate(tape):
            a, b, c = (replay.tape[key][i].value for replay in (first, second, neither))
            b = c if isinstance(one.event, Poisson) else b
            scale, label = scores.column(one.scale), one.label
            with np.errstate(all="ignore"):
                if one.kind == "threshold":
                    loss = abs(float(a[0] - b[0])) / float(one.scale)
                    thresholds[key, label, one.group] = max(thresholds[key, label, one.group], loss)
                elif one.kind.startswith("argmax"):
                    line = (a - b) / scale
                    found[label][1, members] += np.maximum(line.max(axis=1), 0) + np.maximum(-line.min(axis=1), 0)
                elif one.kind == "radial":
                    found[label][1, members] += np.linalg.norm(a - b, axis=1) / np.ravel(one.scale)
                elif one.kind == "laplace":
                    found[label][1, members] += (np.abs(scores.flat(one, a - b)) / scale).sum(axis=1)
                else:
                    found[label][0, members] += ((scores.flat(one, a - b) / scale) ** 2).sum(axis=1)
    for (key, label, _), loss in thresholds.items():
        found[label][1, key] += loss
    ledger = [run.ledger.of(i) for i in range(run.k)]  # one object for equal replicates
    once = {id(one): {label: _claimed(one, label) for label in found} for one in ledger}
    return {label: (losses, np.array([once[id(one)][label] for one in ledger]).T) for label, losses in found.items()}


def _claimed(composition: Composition, label: str) -> tuple[float, float]:
    """Σ 1/z² of the Gaussian and Σ ε of the ε-DP releases of a label."""
    squares = pure = 0.0
    for entry in composition:
        match scores.base(entry.release) if entry.label == label else None:
            case Gaussian(z):
                squares += entry.count / z**2
            case Laplace(z):
                pure += entry.count / z
            case Radial(z):
                pure += entry.count / z
            case PureDP(epsilon) | BoundedRange(epsilon):
                pure += entry.count * epsilon
    return squares, pure
