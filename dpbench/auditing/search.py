"""The pair of neighbours that moves an algorithm's releases most, looked for instead of thought out.

`neighbours` argues from the constants which pair is the worst; an author of a method may not have, and a sensitivity
may be wrong on other pairs only. Here rows lie at a corner or on an axis of what is allowed; what differs is the label,
the row, or both; the others pull nowhere, along with it, against it or across it; and the loss is the steepest, the
most curved, or the one declared. The values that noise hides are known on both worlds, so a run of two replicates and
its replays give the loss of a pair to the last digit, without statistics.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dpbench.algorithms.base import Algorithm, AuditCase
from dpbench.auditing.neighbours import CLIPPED, Extreme, Neighbours, declared, signs
from dpbench.auditing.transcript import Leak
from dpbench.auditing.worlds import ROUNDING, SPREAD, Setup, hides, moved_in_all, moved_in_each, shares_moved
from dpbench.errors import UserError
from dpbench.privacy.ledger import Relation
from dpbench.problems import Problem, losses

REPLICATES = 2
DRAWS = 1024  # of public randomness
MORE = 0.01  # by which another pair has to move more than the one that was thought out


class Candidate(NamedTuple):
    """words: what it is. far: whether it has to start away from 0, where the loss as it is has gradients of length."""

    words: str
    pair: Neighbours
    far: bool


def searched(setup: Setup, seed: object) -> tuple[Setup, str, dict[str, float]]:
    """`setup` on the pair that moves a whole run most, that pair in words, and by label the most any pair moved.

    The words are "" where no pair beats the setup's own. Leak where one moves a release further than the ledger says.
    """
    run = setup.recorder(REPLICATES, seed)
    setup.run(setup.pair.first, run)
    if hides(run):
        return setup, "", {}
    run, replays = setup.compared(setup.pair, seed, REPLICATES)
    best, words, most = setup, "", shares_moved(run, replays)
    share = moved_in_all(run, replays)
    for i, candidate in enumerate(candidates(setup.algorithm, setup.case, setup.relation)):
        other = setup.on(candidate.pair.at(i % candidate.pair.first.n))
        try:
            for problem in other.pair[:3]:
                setup.algorithm.needs.check(problem, setup.algorithm.name)
        except UserError:
            continue
        at = np.random.default_rng(0).standard_normal((REPLICATES, setup.case.d)) * SPREAD if candidate.far else None
        run, replays = other.compared(other.pair, seed, REPLICATES, at)
        for label, mine in shares_moved(run, replays).items():
            most[label] = max(most.get(label, 0.0), mine)
            if mine > 1 + ROUNDING:
                raise Leak(f"{label}: a neighbour moves it by {mine:.3g} of what the ledger says ({candidate.words})")
        if not candidate.far and (now := moved_in_all(run, replays)) > share + MORE:
            best, words, share = other, candidate.words, now
    return best, words, most


def with_best_coins(setup: Setup, seed: object) -> Setup:
    """`setup` with the public randomness of all its runs fixed, where its case asks for it (`AuditCase.best_coins`).

    A guarantee holds for every draw of it, so for the one of DRAWS with which the pair moves most in a run.
    """
    if not setup.case.best_coins:
        return setup
    best = setup.on(setup.pair)
    best.public = range(DRAWS)
    run, replays = best.compared(setup.pair, seed, DRAWS)
    best.public = [int(np.nanargmax(moved_in_each(run, replays)))]
    return best


def candidates(algorithm: Algorithm, case: AuditCase, relation: Relation) -> Iterator[Candidate]:
    """Pairs within what `algorithm` declares. Where columns count as public, a row differs in its sign alone."""
    name, kind, bound = declared(algorithm, case)
    corner = np.where(np.arange(case.d) % 2, -1.0, 1.0)
    corner *= bound / np.linalg.norm(corner, ord=2 if kind == "l2" else 1) * (1 - 1e-15)
    axis, other_axis = (bound * np.eye(1, case.d, j)[0] for j in (0, 1))
    across = corner * np.where(np.arange(case.d) < case.d // 2, 1.0, -1.0) if case.d % 2 == 0 else None
    shared = {"the others pull nowhere": np.zeros(case.d), "the others along it": corner, "against it": -corner}
    if across is not None:
        shared["across it"] = across
    places = [("at a corner", corner, across, words, rows) for words, rows in shared.items()]
    places.append(("on an axis", axis, other_axis if case.d > 1 else None, "the others pull nowhere", np.zeros(case.d)))
    declares = losses.get(name)
    bounded = declares.lipschitz < math.inf
    size = 1.0 if bounded else CLIPPED
    slopes: list[tuple[str, losses.Loss, bool]] = [("the loss as it is", declares, True)]
    if bounded:
        slopes.append(("steepest", Extreme(declares), False))
    if bounded and declares.smoothness < math.inf:
        slopes.append(("most curved", Extreme(declares, 1.0), False))
    for slope, loss, far in slopes:
        shift = 2.0 if far and bounded and not signs(declares) else 0.0
        options = {"loss": loss, "l1": case.l1, "l2": case.l2, "row_bound": bound, "row_bound_norm": kind}
        problem = partial(_problem, case.n, size, shift, options)
        for where, row, turned, around, others in places:
            gone = problem(np.zeros(case.d), 1.0 if far else 0.0, others)
            differing: dict[str, tuple[np.ndarray, float, np.ndarray | None, float]]
            if relation is Relation.ADD_REMOVE:
                differing = {f"there with label {label:+g} or not": (row, label, None, 0.0) for label in (1.0, -1.0)}
            else:
                differing = {"with either label": (row, 1.0, row, -1.0), "or its opposite": (row, 1.0, -row, 1.0)}
                if turned is not None and not algorithm.counts_public:
                    differing["or one across it"] = (row, 1.0, turned, 1.0)
                    differing["or one across it with the other label"] = (row, 1.0, turned, -1.0)
            for difference, (one, label, instead, other) in differing.items():
                second = gone if instead is None else problem(instead, other, others)
                pair = Neighbours(problem(one, label, others), second, gone)
                yield Candidate(f"{slope}, {around}, a row {where} {difference}", pair, far)


def _problem(
    n: int, size: float, shift: float, options: dict[str, Any], row: np.ndarray, label: float, others: np.ndarray
) -> Problem:
    """`row` with `label` times `size`, plus `shift`, and n - 1 of `others` with label 1."""
    X, y = np.tile(others, (n, 1)), np.ones(n)
    X[0], y[0] = row, label
    return Problem(X, y * size + shift, **options)
