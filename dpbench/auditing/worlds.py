"""Runs of an algorithm on neighbours, each world built from scratch: settings completed on it, a start of its own."""

from __future__ import annotations

import contextlib
import copy
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpbench.algorithms import rules as policy
from dpbench.algorithms.base import Algorithm, AuditCase, make_settings
from dpbench.auditing import noise, scores, transcript
from dpbench.auditing.neighbours import MOST_ROWS, Neighbours, drawn, neighbours, probes
from dpbench.auditing.transcript import Leak, Listener, Recorder, Returned, rate
from dpbench.errors import UserError, in_words
from dpbench.privacy import ledger
from dpbench.privacy.check import guarantee
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.privacy.noise import stream
from dpbench.problems import Problem
from dpbench.run.bind import BoundRun, bind, budget_of

STEPS = 4
INSPECTED = 4  # replicates of every pair that is inspected
SPREAD = 4.0  # of where an inspected run starts: far enough for gradients of nearly full length
ROUNDING = 1e-6
SHORT = 0.1  # of the bound: the length of rows beside one at it
LEAST = 0.01  # of what the ledger says: a release that no pair moves by so much has not been audited
COMPUTED_ON = "what it computes on"  # of a method that hides its noise there
# What the runner reads off a method beside its runs: a class says it, so it is the same on all data.
SAID = ("name", "title", "version", "counts_public", "unpaid", "diagnostics", "discloses", "private", "stops_early")


class Setup:
    """What all runs of an algorithm on one case share.

    papers: under the relation, the accounting and the δ of its paper; else what estimators and `auto` run it under,
    replace-one neighbours where it can and the best accounting it has. public: seeds of the public randomness (`Tape`)
    of replicates 0, 1, …, over and over; () draws it in every run. pair: the data sets to distinguish.
    """

    public: Sequence[int] = ()

    def __init__(
        self, algorithm: Algorithm, case: AuditCase, fixed: Mapping[str, Any], epsilon: float,
        papers: bool = False,
    ) -> None:  # fmt: skip
        self.algorithm, self.case, self.fixed, self.epsilon, self.papers = algorithm, case, fixed, epsilon, papers
        relation, terms = algorithm.relation, (case.accounting, algorithm.delta)
        if not papers:
            terms = policy.accounting(algorithm), policy.delta(algorithm)
            with contextlib.suppress(UserError):
                algorithm.under(policy.RELATION)
                relation = policy.RELATION
        self.budget = budget_of(algorithm, case.n, epsilon, terms[1], relation, terms[0])
        steps = {"T": STEPS} if "T" in algorithm.Settings.__struct_fields__ else {}
        self.settings = make_settings(algorithm, {**steps, **case.settings, **fixed})
        self.pair = (drawn if case.drawn else neighbours)(algorithm, case, self.relation)
        if flaw := self.bound(self.pair.first).flaw():
            raise UserError(f"{algorithm.name}: nothing to audit: {flaw}")
        for problem in self.pair[1:3]:
            algorithm.needs.check(problem, algorithm.name)

    @property
    def relation(self) -> ledger.Relation:
        return self.budget.relation

    def bound(self, problem: Problem, start: np.ndarray | None = None) -> BoundRun:
        """Runs on `problem` from start (k, d), by default one from 0; UserError for what the proof does not cover."""
        start = np.zeros((1, problem.d)) if start is None else start
        k = len(start)
        return bind(self.algorithm, problem, [self.settings] * k, [self.budget] * k, start, [""] * k)

    def sharpest(self, seed: Any) -> Setup:
        """This, or the same on the pair of which one row does not bend, where that moves a canary's releases more."""
        if not (self.case.bend and self.case.label) or self.relation is self.algorithm.relation:
            return self
        other = self.on(neighbours(self.algorithm, self.case, self.relation, gone=True))
        mine, its = (
            shares_moved(*one.compared(one.pair, seed, INSPECTED)).get(self.case.label, 0.0) for one in (self, other)
        )
        return other if its > mine else self

    def placed(self, seed: int) -> Setup:
        """The same with the row that differs where the seed says; with hidden noise, where it moves the model most."""
        n, farthest = self.pair.first.n, 0.0
        if self.case.best_coins:  # these are looked for at row 0
            return self
        pair = self.pair.at(int(np.random.default_rng(seed).integers(n)))
        for row in np.linspace(0, n - 1, min(n, MOST_ROWS)).astype(int):
            other = self.pair.at(int(row))
            run = self.recorder(INSPECTED, seed, row=other.row, keyed=True)
            came = self.run(other.first, run)
            # Where all noise is released, the row's place does not change how well runs are told apart.
            if not hides(run):
                break
            replay = run.replay(fresh=False)
            far = _largest_difference(came, self.run(other.second, replay), run, replay)
            # By more than rounding, so that the choice is the same on every machine.
            if far > 1.01 * farthest:
                pair, farthest = other, far
        return self.on(pair)

    def refuses(self, seed: Any) -> bool:
        """Whether a run on either data set ends without iterates that are fit to be released."""
        return any(self.run(one, self.recorder(1, seed, row=self.pair.row)).refused for one in self.pair[:2])

    def resized(self, n: int, d: int, T: int, weight: float = 0.0) -> Setup:
        """The same case with so many rows, columns and steps; UserError where the method refuses that.

        The row that differs is the last. weight: of the regularisers that the method has and the case has not.
        """
        settings = dict(self.case.settings) | ({"T": T} if "T" in self.algorithm.Settings.__struct_fields__ else {})
        background = self.case.background
        if isinstance(background, tuple):
            background = tuple(np.resize(background, d).tolist())
        has = self.algorithm.needs.regularisers
        l1, l2 = (getattr(self.case, name) or weight * (name in has) for name in ("l1", "l2"))
        case = replace(self.case, n=n, d=d, settings=settings, background=background, l1=l1, l2=l2)
        other = Setup(self.algorithm, case, self.fixed, self.epsilon, self.papers)
        return other.on(other.pair.at(n - 1))

    def sound(self, run: Recorder) -> None:
        """Leak where the ledger is beyond the budget or noise is not what the ledger says."""
        for i in {run.ledger.of(i): i for i in range(run.k)}.values():
            if error := guarantee(run.ledger, i, self.budget, self.algorithm.labels).error:
                raise Leak(error)
        if fault := noise.fault(run):
            raise Leak(fault)

    def on(self, pair: Neighbours) -> Setup:
        other = copy.copy(self)
        other.pair = pair
        return other

    def recorder(self, k: int, seed: Any, *, row: int = 0, keyed: bool = False) -> Recorder:
        """What k runs release through, of data whose `row` differs."""
        public = np.resize(self.public, k).tolist() if len(self.public) else ()
        return Recorder(
            k, self.budget, seed, declared=self.algorithm.declared(self.relation), public=public, row=row,
            n=self.pair.first.n, keyed=keyed,
        )  # fmt: skip

    def run(self, problem: Problem, mechanisms: Mechanisms, start: np.ndarray | None = None) -> Returned:
        """All that comes out of a run on `problem` from `start` (k, d), by default 0; Leak where it raises."""
        try:
            return self._run(problem, mechanisms, start)
        except Leak:
            raise
        except (Exception, SystemExit) as error:
            raise Leak(f"it raises {in_words(error)}") from error

    def _run(self, problem: Problem, mechanisms: Mechanisms, start: np.ndarray | None) -> Returned:
        algorithm, k, listener = self.algorithm, mechanisms.k, Listener()
        bound = self.bound(problem, np.zeros((k, problem.d)) if start is None else start)
        bound.plan(mechanisms)
        outcome, settings = bound.outcome(mechanisms, listener), bound.settings[0]
        columns, small = dict(outcome.columns), k <= INSPECTED
        if small:  # it costs more than the run, and does not depend on the number of replicates
            generators = [stream(str(i), "measure") for i in range(k)]
            with np.errstate(all="ignore"):
                columns |= algorithm.measure(problem, outcome, settings, generators)
        of_data = {one.name for one in algorithm.diagnostics if one.of_data}
        if fault := transcript.no_numbers(columns, of_data):
            raise Leak(f"{fault}: a diagnostic that depends on the data has to be one number per replicate")
        visible = {
            "settings": settings,
            **{name: value for name, value in vars(outcome).items() if name not in ("W", "columns")},
            "iterations": algorithm.iterations(problem, settings),
            "columns": {name: values for name, values in columns.items() if name not in of_data},
            "public": algorithm.public(settings),
            **{name: getattr(algorithm, name) for name in SAID},
        }
        iterates = [outcome.W, *(W for _, W, *_ in listener.calls)]
        seen = list(transcript.facts(visible | {"trace": [(t, *rest) for t, _, *rest in listener.calls]}))
        hidden = list(transcript.facts({"W": iterates}))
        books = [mechanisms.ledger.of(i) for i in range(k)]
        bare = transcript.without_numbers(hidden, "W")
        return Returned(np.array(outcome.W), [*seen, *hidden], [*seen, *bare], books, any(outcome.refusals or ()))

    def replay(
        self, problem: Problem, run: Recorder, first: Returned, start: Any = None, *, held: bool = True
    ) -> Recorder:
        """The same runs on `problem`; Leak unless all that comes out is what came out of `first`."""
        hidden, made = hides(run), list[tuple[Recorder, Returned]]()
        # With other hidden noise as well, so that nothing but iterates holds it; and what does not, is released.
        for fresh in (False, True) if hidden else (True,):
            replay = run.replay(held=held, fresh=fresh)
            try:
                again = self.run(problem, replay, start)
            except Leak as leak:
                words = str(leak)
                raise Leak(f"on a neighbour {words}" if words.startswith("it raises") else words) from leak
            # The replay fixes all releases, so whatever differs now was taken from the rows without noise.
            where = transcript.difference(*((one.visible if hidden else one.facts) for one in (first, again)))
            if where := where or ("ledger" if first.ledger != again.ledger else ""):
                raise Leak(f"on a neighbour it returns something else after the same releases: {where}")
            made.append((replay, again))
        (replay, again), (other, _) = made[0], made[-1]
        if hidden:
            replay.moves = _largest_difference(first, again, run, replay) > 0
            replay.behind = _labels_that_differ(replay, other)
        # Ending earlier is seen by anyone, whatever the values were.
        if any(len(tape) != len(replay.tape.get(key, [])) for key, tape in run.tape.items()):
            raise Leak("on a neighbour it ends before it has released as much")
        return replay

    def compared(self, pair: Neighbours, seed: Any, k: int, start: Any = None) -> tuple[Recorder, list[Recorder]]:
        """k runs on the first of `pair`, replayed on the first, on the second, and where the row is not in a sample."""
        run = self.recorder(k, seed, row=pair.row, keyed=k <= INSPECTED)
        came = self.run(pair.first, run, start)
        return run, self.replays(pair, run, came, start)

    def replays(
        self, pair: Neighbours, run: Recorder, came: Returned, start: Any = None, *, on: Problem | None = None
    ) -> list[Recorder]:
        """Those of `run`, which was on the first: on the first, on the second, and where the row is not in a sample.

        on: the data set of the pair that it was on, of which the row may be missing without any other difference.
        """
        # A run is its own replay, unless the row that differs has to be in each of its samples.
        known: dict[int, Recorder] = {} if sampled(run) else {id(on or pair.first): run}
        three = [*pair[:2], pair.neither if sampled(run) and (on or replaced_by_none(run)) else pair.second]
        for problem in three:
            if id(problem) not in known:
                known[id(problem)] = self.replay(problem, run, came, start)
        return [known[id(problem)] for problem in three]

    def inspect(self, seed: Any, *, few: bool = False) -> dict[str, float]:
        """What a neighbour moves of what the ledger says, by label, at most, over the case's pair or `probes`.

        few: over fewer of these, with a look at ledger and noise, which tests do not see at this size. Leak where
        something that is not released distinguishes the neighbours.
        """
        most: dict[str, float] = {}
        sound: Recorder | None = None
        for run, replays in self._inspected(seed, few):
            if few and run is not sound:
                self.sound(sound := run)
            if hides(run):
                raise_shares(most, {COMPUTED_ON: float(any(one.moves for one in replays[1:]))})
            raise_shares(most, shares_moved(run, replays))
        return most

    def _inspected(self, seed: Any, few: bool) -> Iterator[tuple[Recorder, list[Recorder]]]:
        """A run on the first of each pair, and its replays on the pair."""
        if not few:  # of one replicate, as a fit is
            yield self.compared(self.pair, seed, 1)
        if self.case.steepest:
            # Removing is the other direction of the same relation, and may move a release more.
            back = self.pair.turned()
            none = Neighbours(self.pair.first, self.pair.neither, self.pair.neither, self.pair.row)
            # Beside short rows the one at the bound is the longest: whatever reads the largest norm moves with it.
            short = neighbours(self.algorithm, self.case, self.relation, others=SHORT)
            others = [none.at(short.first.n - 1), short.at(1)] if not self.algorithm.counts_public else []
            for pair in (self.pair, *([] if few else [back.at(0), *others])):
                yield self.compared(pair, seed, INSPECTED)
            return
        pairs = probes(self.algorithm, self.case, self.relation)[:: 4 if few else 1]
        first = pairs[0].first
        # Not from 0, where many gradients are alike.
        start = np.random.default_rng(0).standard_normal((INSPECTED, first.d)) * SPREAD
        run = self.recorder(INSPECTED, seed, keyed=True)
        came = self.run(first, run, start)  # of which all the others differ in one row
        for pair in pairs:
            run.releases.row = pair.row
            yield run, self.replays(pair, run, came, start)
            if sampled(run):
                self.replay(pair.second, run, came, start, held=False)
        if not few:
            yield self.compared(pairs[-1].turned(), seed, INSPECTED, start)


def raise_shares(most: dict[str, float], shares: Mapping[str, float]) -> None:
    """Raise each of `most` to that of its label in `shares`, where that is larger."""
    most.update({label: max(most.get(label, 0.0), share) for label, share in shares.items()})


def _largest_difference(result: Returned, result_neighbour: Returned, run: Recorder, replay: Recorder) -> float:
    """The largest entry of |difference| of two runs with the same noise, over final iterates and unnoised values."""
    pairs = [(result.W, result_neighbour.W)]
    for key, tape in run.tape.items():
        # Not strict: a run that stops earlier on the neighbour is reported by `Setup.replay`, not here.
        pairs += [(a.value, b.value) for a, b in zip(tape, replay.tape.get(key, []), strict=False)]
    return max(float(np.nanmax(np.abs(np.subtract(a, b)), initial=0.0)) for a, b in pairs)


def _labels_that_differ(one: Recorder, other: Recorder) -> frozenset[str]:
    """The labels of the releases whose values are not the same in both."""
    pairs = ((a, b) for key, tape in one.tape.items() for a, b in zip(tape, other.tape[key], strict=True))
    return frozenset(a.label for a, b in pairs if not np.array_equal(a.value, b.value, equal_nan=True))


def sampled(run: Recorder) -> bool:
    """Whether a row is in some releases with a probability below 1."""
    return any(rate(entry.release) < 1 for entry in run.ledger.of(0))


def replaced_by_none(run: Recorder) -> bool:
    """Whether a release is accounted for a row that is in the sample or is not."""
    kinds = ledger.Poisson | ledger.Allocated | ledger.PoissonReplaced
    return any(isinstance(entry.release, kinds) for entry in run.ledger.of(0))


def hides(run: Recorder) -> bool:
    """Whether some release of the ledger is noise on what is computed on, and not published."""
    told = {one.label for tape in run.tape.values() for one in tape}
    return told < {entry.label for entry in run.ledger.of(0)}


def shares_moved(run: Recorder, replays: Sequence[Recorder]) -> dict[str, float]:
    """How far apart the values of a label's releases are on neighbours, over what the ledger says: at most 1 if sound.

    Gaussian releases: the root of the sum of (distance/σ)² over that of 1/z²; ε-DP ones: the sum of their losses over
    that of ε. The largest over the replicates; of a sample, with the row in it. Not of what hidden noise is in: there
    the theorem of that noise bounds more than the last value.
    """
    return {label: float(np.nanmax(_shares(*one))) for label, one in _losses(run, replays).items()}


def within(shares: dict[str, float], words: str = "") -> dict[str, float]:
    """`shares`; Leak where one is above 1."""
    for label, share in shares.items():
        if share > 1 + ROUNDING:
            raise Leak(f"{label}: a neighbour moves it by {share:.3g} of what the ledger says{words}")
    return shares


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
    behind = frozenset().union(*(one.behind for one in replays))
    sums: dict[str, np.ndarray] = defaultdict(lambda: np.zeros((2, run.k)))
    for members, one, (a, b, c) in scores.releases(run, *replays):
        if one.label in behind or one.kind == "threshold":
            continue
        b = c if isinstance(one.event, ledger.Poisson | ledger.Allocated) else b
        scale, squared = transcript.column(one.scale), False
        with np.errstate(all="ignore"):
            if one.kind.startswith("argmax"):
                line = (a - b) / scale
                loss = np.maximum(line.max(axis=1), 0) + np.maximum(-line.min(axis=1), 0)
            elif one.kind == "depth":  # what a neighbour lacks altogether, its δ covers
                loss = np.abs(scores.depth_loss(one, [a, b]))
                loss = np.where(loss < scores.LACKED, loss, 0.0)
            else:
                squared = one.kind in scores.NORMAL
                loss = (1 + squared) * -scores.log_density(one, scores.flat(one, a), scores.flat(one, b), scale)
        sums[one.label][0 if squared else 1, members] += loss
    for label, members, (_, queries, others, _) in scores.sparse_vectors(run, *replays):
        if label not in behind:
            np.add.at(sums[label][1], members, np.abs(queries - others).max(axis=1))
    books = [run.ledger.of(i) for i in range(run.k)]  # one object for equal replicates
    once = {id(one): {label: _claimed(one, label) for label in sums} for one in books}
    return {label: (losses, np.array([once[id(one)][label] for one in books]).T) for label, losses in sums.items()}


def _claimed(composition: ledger.Composition, label: str) -> tuple[float, float]:
    """Σ 1/z² of the Gaussian and Σ ε of the ε-DP releases of a label."""
    squares = pure = 0.0
    for entry in composition:
        # The transcripts have a row in every step of an epoch that it is allocated to one of.
        steps = entry.release.steps if isinstance(entry.release, ledger.Allocated) else 1
        match scores.base(entry.release) if entry.label == label else None:
            case ledger.Gaussian(z):
                squares += steps * entry.count / z**2
            case ledger.Laplace(z) | ledger.Radial(z):
                pure += entry.count / z
            case ledger.PureDP(epsilon) | ledger.BoundedRange(epsilon):
                pure += entry.count * epsilon
            case ledger.DrawAfterTest(test, exponent, _, leak):
                pure += entry.count * (test + 2 * exponent + leak)
    return squares, pure
