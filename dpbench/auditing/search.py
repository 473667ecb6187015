"""What an audit looks at: the cases and sizes of a method, and the neighbours that move its releases most.

`neighbours` argues from the constants which pair is the worst; an author of a method may not have, and a sensitivity
may be wrong on other pairs only. The values that noise hides are known on both worlds, so a run of two replicates and
its replays give the loss of one of `candidates` to the last digit, without statistics.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dpbench.algorithms.base import Algorithm, AuditCase
from dpbench.auditing import worlds
from dpbench.auditing.neighbours import BENT, CLIPPED, Extreme, Neighbours, declared, signs
from dpbench.auditing.transcript import Leak, Recorder
from dpbench.auditing.worlds import SHORT, SPREAD, STEPS, Setup, within
from dpbench.errors import UserError
from dpbench.privacy.ledger import Relation
from dpbench.problems import Declaration, Problem, losses

ROWS, COLUMNS, ITERATIONS = (4, 50, 500), (2, 30, 100), (STEPS, 30, 100)  # of the sizes at which a method is looked at
ODD = (53, 3, 30)  # rows that no block divides, so that the last one is short
PENALISED = (8, 3, STEPS, 0.1)  # with the weight of every regulariser that a method has
REPLICATES = 2
DRAWS = 1024  # of public randomness
RUNGS = tuple(2.0**-i for i in range(1, 9)) + tuple(4.0**-i for i in range(5, 12))
MORE = 0.01  # by which another pair has to move more than the one that was thought out


def setups_of(
    algorithm: Algorithm,
    fixed: Mapping[str, Any],
    epsilon: float,
    case: AuditCase | None = None,
    papers: bool = False,
    loss: str = "",
) -> tuple[list[Setup], list[Setup], list[Setup]]:
    """What is inspected and tested, what is inspected alone, and what of that under the terms of the method's paper."""

    def setup(one: AuditCase, papers: bool = papers) -> Setup:
        one = _with_loss(algorithm, one, loss) if loss else one
        return Setup(algorithm, one, fixed, epsilon, papers)

    if case:
        return [setup(case)], [], []
    cases = [algorithm.audit_case, *algorithm.canaries]
    cases = [one for one in cases if all(one.settings.get(key, value) == value for key, value in fixed.items())]
    setups, further = [setup(one) for one in cases], [setup(algorithm.inspection_case())]
    others = []
    for one in [*setups, *further] if not papers else []:
        with contextlib.suppress(UserError):  # a calibration with a flaw makes no claim to look at
            other = setup(one.case, True)
            others += [other] if other.budget != one.budget else []
    return setups, further, others


def _with_loss(algorithm: Algorithm, case: AuditCase, loss: str) -> AuditCase:
    """The case with another loss, and a step where that has none of its own: noise does not follow it."""
    algorithm.needs.check(Declaration(case.n, 1, loss=loss), algorithm.name, rows=False)  # in the words of a fit
    settings = dict(case.settings)
    if losses.get(loss).smoothness == math.inf and "step" in algorithm.Settings.__struct_fields__:
        settings.setdefault("step", 1.0)
    return replace(case, loss=loss, settings=settings)


def sizes(*, thorough: bool = False) -> list[tuple[Any, ...]]:
    """(rows, columns, steps) of the grid, all 27 or the 9 in which every pair of two of the three occurs once.

    And two beside it: rows in no blocks, and, with a weight, a problem with regularisers.
    """
    places = itertools.product(range(3), repeat=3)
    grid = [(ROWS[i], COLUMNS[j], ITERATIONS[t]) for i, j, t in places if thorough or (i + j + t) % 3 == 0]
    return [*grid, ODD, PENALISED]


def at_sizes(setups: list[Setup], grid: list[tuple[Any, ...]], farthest: Collection[str], seed: int) -> None:
    """Leak where a run of another size moves further, or gives away more, than it says: what is wrong there alone."""
    for n, d, T, *weight in grid:
        for setup in setups:
            try:
                resized = setup.resized(n, d, T, *weight)
            except UserError:  # by public numbers: the method is not for this size, so it does no harm there
                continue
            try:
                within(resized.inspect(seed, few=True))
                if (n, d, T) == ODD:
                    _in_sparse(resized, seed)
                if setup is setups[0]:
                    at_size(resized, farthest, seed, many=T == STEPS)  # of long runs each is seconds
            except Leak as leak:
                how = "".join(f", with regularisers of weight {one:g}" for one in weight)
                raise Leak(f"n = {n}, d = {d}, T = {T}{how}: {leak}") from leak


def _in_sparse(setup: Setup, seed: int) -> None:
    """Leak where a run on sparse matrices, whose sums are other code, moves further than it says."""
    sparse = setup.on(setup.pair.in_sparse())
    try:
        sparse.run(sparse.pair.first, sparse.recorder(1, seed))
    except Leak as leak:
        if leak.__cause__ is None:
            raise
        return  # a method that takes no sparse matrix does no harm on one
    run, replays = sparse.compared(sparse.pair, seed, REPLICATES)
    within(worlds.shares_moved(run, replays), " (rows in a sparse matrix)")


class Candidate(NamedTuple):
    """words: what it is. far: whether it has to start away from 0, where the loss as it is has gradients of length.

    many: whether it is for many rows.
    """

    words: str
    pair: Neighbours
    far: bool
    many: bool = False


class SearchedPair(NamedTuple):
    """setup: on the pair that moves a whole run most. words: that pair; "" where none beats the setup's own.

    moved: by label, the most any pair moved. farthest: by label, which pair that was.
    """

    setup: Setup
    words: str
    moved: dict[str, float]
    farthest: dict[str, str]


def searched(setup: Setup, seed: object) -> SearchedPair:
    """The pair that moves a run of `setup` most. Leak where one moves a release further than the ledger says."""
    run, replays = setup.compared(setup.pair, seed, REPLICATES)
    best, words, most, farthest = setup, "", worlds.shares_moved(run, replays), dict[str, str]()
    # Where noise is hidden, final iterates choose the pair (`placed`).
    share = math.inf if worlds.hides(run) else worlds.moved_in_all(run, replays)
    for i, candidate in enumerate(candidates(setup.algorithm, setup.case, setup.relation)):
        tried = _tried(setup, candidate, i, seed)
        if tried is None:
            continue
        other, run, replays = tried
        for label, mine in worlds.shares_moved(run, replays).items():
            if mine > most.get(label, 0.0):
                most[label], farthest[label] = mine, candidate.words
        if share < math.inf and not candidate.far and (now := worlds.moved_in_all(run, replays)) > share + MORE:
            best, words, share = other, candidate.words, now
    return SearchedPair(best, words, most, farthest)


def at_size(setup: Setup, farthest: Collection[str], seed: object, *, many: bool) -> None:
    """Leak where a pair of these words moves a release further than the ledger says; many: or one for many rows."""
    for i, candidate in enumerate(candidates(setup.algorithm, setup.case, setup.relation)):
        if candidate.words in farthest or (many and candidate.many):
            _tried(setup, candidate, i, seed)


def _tried(setup: Setup, candidate: Candidate, row: int, seed: object) -> tuple[Setup, Recorder, list[Recorder]] | None:
    """A run and its replays on a pair, the row at `row` modulo n; None where the method is not for that pair."""
    other = setup.on(candidate.pair.at(row % candidate.pair.first.n))
    try:
        for problem in other.pair[:3]:
            setup.algorithm.needs.check(problem, setup.algorithm.name)
    except UserError:
        return None
    # Steps do not mind that no function is steepest and curved at once, but there is nothing for a solver to find.
    if getattr(candidate.pair.first.loss, "curvature", 0.0) and other.refuses(seed):
        return None
    at = np.random.default_rng(0).standard_normal((REPLICATES, setup.case.d)) * SPREAD if candidate.far else None
    run, replays = other.compared(other.pair, seed, REPLICATES, at)
    within(worlds.shares_moved(run, replays), f" ({candidate.words})")
    return other, run, replays


def with_best_coins(setup: Setup, seed: object) -> Setup:
    """`setup` with the public randomness of all its runs fixed, where its case asks for it (`AuditCase.best_coins`).

    A guarantee holds for every draw of it, so for the one of DRAWS with which the pair moves most in a run.
    """
    if not setup.case.best_coins:
        return setup
    best = setup.on(setup.pair)
    best.public = range(DRAWS)
    run, replays = best.compared(setup.pair, seed, DRAWS)
    best.public = [int(np.nanargmax(worlds.moved_in_each(run, replays)))]
    return best


def candidates(algorithm: Algorithm, case: AuditCase, relation: Relation) -> Iterator[Candidate]:
    """Pairs within what `algorithm` declares. Where columns count as public, a row differs in its sign alone."""
    said, public, there = declared(algorithm, case), algorithm.counts_public, relation is Relation.ADD_REMOVE
    corner, declares, bounded = said.corner(), said.loss, said.bounded
    axis, other_axis = (said.bound * np.eye(1, case.d, j)[0] for j in (0, 1))
    across = corner * np.where(np.arange(case.d) < case.d // 2, 1.0, -1.0) if case.d % 2 == 0 else None
    steepest, nowhere = Extreme(declares) if bounded else declares, np.zeros(case.d)

    def pairs(
        loss: losses.Loss, row: np.ndarray, others: np.ndarray, differing: Mapping[str, tuple[Any, ...]],
        *, size: float = 1.0 if bounded else CLIPPED, shift: float = 0.0, its: float = 1.0, absent: float = 0.0,
    ) -> Iterator[tuple[str, Neighbours]]:  # fmt: skip
        """By words, the label of `row`, and what it is replaced by with which label: nothing where that is left out."""

        def problem(row: np.ndarray, label: float) -> Problem:
            """`row` with `label` times `size`, plus `shift`, and n - 1 of `others` with the label `its` times that."""
            X, y = np.tile(others, (case.n, 1)), np.full(case.n, its)
            # Others that are curved point to and fro: a method that weighs rows by their labels starts among them.
            X[1::2] *= -1.0 if its == BENT else 1.0
            X[0], y[0] = row, label
            return said.problem(X, y * size + shift, loss)

        gone = problem(nowhere, absent)
        for words, (label, *instead) in differing.items():
            yield words, Neighbours(problem(row, label), problem(*instead) if instead else gone, gone)

    shared = {"the others pull nowhere": nowhere, "the others along it": corner, "against it": -corner}
    if across is not None:
        shared["across it"] = across
    places = [("at a corner", corner, across, words, rows) for words, rows in shared.items()]
    places.append(("on an axis", axis, other_axis if case.d > 1 else None, "the others pull nowhere", nowhere))
    slopes: list[tuple[str, losses.Loss, bool]] = [("the loss as it is", declares, True)]
    if bounded:
        slopes.append(("steepest", steepest, False))
    if bounded and declares.smoothness < math.inf:
        slopes.append(("most curved", Extreme(declares, 1.0), False))
        slopes.append(("curved for one label", Extreme(declares, 1.0, sided=True), False))
    differing: dict[str, tuple[Any, ...]]
    for slope, loss, far in slopes:
        shift = 2.0 if far and bounded and not signs(declares) else 0.0
        for where, row, turned, around, others in places:
            differing = {"with either label": (1.0, row, -1.0), "or its opposite": (1.0, -row, 1.0)}
            # Both rows of these bend alike; one that bends and one that does not are further apart in curvature.
            if not far:
                differing["or one that pulls nowhere"] = (1.0, row, 0.0)
            if turned is not None and not public:
                differing["or one across it"] = (1.0, turned, 1.0)
                differing["or one across it with the other label"] = (1.0, turned, -1.0)
            if there:
                differing = {f"there with label {label:+g} or not": (label,) for label in (1.0, -1.0)}
            for words, pair in pairs(loss, row, others, differing, shift=shift, absent=1.0 if far else 0.0):
                yield Candidate(f"{slope}, {around}, a row {where} {words}", pair, far)
    # At the bound a row is clipped hardest, and what is clipped wrongly may be longest in between.
    for rung in RUNGS:
        row, size = rung * corner if bounded and not public else corner, 1.0 if bounded else rung * CLIPPED
        for _, pair in pairs(steepest, row, nowhere, {"": (1.0,) if there else (1.0, row, -1.0)}, size=size):
            of = "the bound" if bounded else f"a label of {CLIPPED:g}"
            yield Candidate(f"a row at {rung:.2g} of {of}", pair, False)
    # What a row does by how the others count: as curved as they may be, short beside it, or of labels smaller than its.
    beside = {"short": (SHORT * corner, 1.0), "short, against it": (SHORT * corner, -1.0)}
    if not bounded:
        beside = {"with small labels": (corner, SHORT)}
    elif declares.smoothness < math.inf:
        beside["curved"] = corner, BENT
    differing = {"with either label": (1.0, axis, -1.0 if bounded else SHORT)}
    if case.d > 1 and not public:
        differing["or one on another axis"] = (1.0, other_axis, 1.0)
    for around, (others, its) in beside.items():
        for words, pair in pairs(steepest, axis, others, {"there or not": (1.0,)} if there else differing, its=its):
            yield Candidate(f"the others {around}, a row on an axis {words}", pair, False, many=True)
