"""The audit of other people's code: any callable (X, y, epsilon, rng) → vector, seen by what it returns alone.

Pairs of neighbours are searched: rows at the corners of what the target declares, alone and among others, with either
label. A few runs on each choose the pair; fresh runs on that one are distinguished by a score that was learnt on other
runs, and bound ε from below. An exception is an output like any other, and so is the length of the vector.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from dpbench import algorithms
from dpbench.algorithms.base import make_settings
from dpbench.algorithms.library import LibrarySolver
from dpbench.auditing.claims import PureClaim
from dpbench.auditing.decide import decide, least_runs, promise
from dpbench.auditing.learned import candidates
from dpbench.auditing.runs import LEVEL, Audit
from dpbench.auditing.worlds import STEPS
from dpbench.errors import UserError, at_least, positive
from dpbench.privacy.relation import Relation
from dpbench.problems import Problem
from dpbench.run.bound import bind, budget_of
from dpbench.run.jobs import delta_value

RUNS = 4_000
PILOTS = ((16, 6), (150, 1))  # runs on either data set of every pair still tried, and how many go on
OUTPUT = "what it returns"


@dataclass(frozen=True)
class Target:
    """A callable and what is promised for it.

    function: (X (n, d), y (n,), epsilon, rng) → vector; rng is a `numpy.random.Generator` for all its randomness.
    relation: of the neighbours that ε is for. Under add/remove the two data sets differ in their number of rows.
    delta: of the (ε, δ) promised.
    low, high: what an entry of X may be, or arrays (d,).
    row_norm: a bound on ‖x‖₂ that holds too, inf for none.
    labels: the two values that y is at its extremes; further ones are labels that one row alone may have.
    sizes: numbers of rows to try. d: columns.
    """

    function: Callable[[np.ndarray, np.ndarray, float, np.random.Generator], Any]
    name: str = ""
    relation: Relation = Relation.REPLACE_ONE
    delta: float = 0.0
    low: Any = -1.0
    high: Any = 1.0
    row_norm: float = np.inf
    labels: tuple[float, ...] = (-1.0, 1.0)
    sizes: tuple[int, ...] = (4, 20)
    d: int = 1
    pairs: tuple[Pair, ...] = field(default=(), repr=False)

    @property
    def called(self) -> str:
        """`name`, or that of the function."""
        return self.name or getattr(self.function, "__name__", "callable")


class Pair(NamedTuple):
    """Two neighbouring data sets, and in words what differs."""

    first: tuple[np.ndarray, np.ndarray]
    second: tuple[np.ndarray, np.ndarray]
    words: str


def audit_callable(
    target: Target | Callable[..., Any], epsilon: float, *, runs: int | None = None, seed: int = 0, level: float = LEVEL
) -> Audit:
    """A lower bound on the ε of `target` against the `epsilon` it is asked for; see `Target` for what is assumed.

    runs: of the test, half on either data set; None takes 4,000 or what the claim needs, up to ten times as many.
    """
    target = target if isinstance(target, Target) else Target(target)
    name = target.called
    if not callable(target.function):
        raise UserError(f"{name} cannot be called; an audit takes a function (X, y, epsilon, rng) → vector")
    epsilon = positive("epsilon", epsilon)
    if runs is not None:
        at_least("runs", runs, 40)
    told = PureClaim(epsilon, target.delta)
    runs = runs or max(RUNS, min(10 * RUNS, 2 * least_runs(told, level, every=2)))
    seeds = np.random.SeedSequence(seed)
    left = list(target.pairs or pairs(target))
    silent = True
    for k, kept in PILOTS:
        if len(left) > kept:
            hopes = []
            for pair in left:
                first, second = (_outputs(target, data, epsilon, k, seeds.spawn(1)[0]) for data in pair[:2])
                silent &= not any(map(len, (*first, *second)))
                scored = candidates(*_aligned(first, second))
                hopes.append(max(promise(one, other, told) for one, other in scored))
            left = [left[i] for i in np.argsort(hopes, kind="stable")[::-1][:kept]]
    (best,) = left
    first, second = (_outputs(target, data, epsilon, runs // 2, seeds.spawn(1)[0]) for data in best[:2])
    if silent and not any(map(len, (*first, *second))):
        defect = f"no call returned a number{_why(target, best.first, epsilon)}; nothing was audited"
        return Audit(name, epsilon, target.delta, 0, {}, {}, defect=defect, pair=best.words)
    tried = candidates(*_aligned(first, second))  # learnt on every fourth run, chosen by the other even ones
    one, other = max(tried, key=lambda scores: promise(scores[0][2::4], scores[1][2::4], told))
    verdict = decide(one, other, told, level, every=2)
    least = needed if (needed := least_runs(told, level, every=2)) > runs else 0
    return Audit(name, epsilon, target.delta, runs, {OUTPUT: verdict}, {OUTPUT: "ε"}, least=least, pair=best.words)


def of_solver(name: str) -> Target | None:
    """The target of a method whose noise another library draws (`algorithms.library`), None for any other name.

    Six rows of which one pulls, with label 1 or -1; both labels are in either world. Four steps, where it has a T.
    """
    solver = algorithms.resolve(name)[0] if name != "all" else None
    if not isinstance(solver, LibrarySolver):
        return None
    settings = {"T": STEPS} if "T" in solver.Settings.__struct_fields__ else {}
    X, y = np.eye(1, 6).T, np.resize([1.0, -1.0], 6)
    loss, given = solver.needs.covered[0], make_settings(solver, settings)
    delta = delta_value(solver.delta, len(y))

    def function(X: np.ndarray, y: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
        problem = Problem(X, y, loss=loss, row_bound=1.0, row_bound_norm="l2")
        budget, key = budget_of(solver, problem.n, epsilon, delta), str(rng.integers(2**62))
        return bind(solver, problem, [given], [budget], np.zeros((1, problem.d)), [key]).run().W[0]

    pair = Pair((X, y), (X, np.append(-1.0, y[1:])), "one row of norm 1 and five at 0; its label 1 or -1")
    return Target(function, name, solver.relation, delta, pairs=(pair,))


def pairs(target: Target) -> Iterator[Pair]:
    """Pairs of neighbours within what the target declares: one row at a corner, the others at one or between."""
    low, high = (np.broadcast_to(np.asarray(each, dtype=float), target.d) for each in (target.low, target.high))
    turns = np.where(np.arange(target.d) % 2, high, low)
    corners = {"low": low, "high": high, "turns": turns} if target.d > 1 else {"low": low, "high": high}
    corners["middle"] = np.clip(np.zeros(target.d), low, high)
    corners = {name: x / max(1.0, np.linalg.norm(x) / target.row_norm) for name, x in corners.items()}
    points = [(f"x {name}, y {y:g}", x, y) for (name, x), y in itertools.product(corners.items(), target.labels[:2])]
    known = np.array(target.labels[:2])
    for n, (where, others) in itertools.product(target.sizes, corners.items()):
        X, y = np.tile(others, (n - 1, 1)), np.resize(known, n - 1)
        if target.relation is Relation.ADD_REMOVE:
            for words, x, label in points:
                yield Pair(
                    (np.vstack([X, x]), np.append(y, label)),
                    (X, y),
                    f"{n} rows at x {where}, with and without the one at {words}",
                )
        else:
            for (words, x, label), (instead, x_, label_) in itertools.combinations(points, 2):
                if not np.array_equal(x, x_) or label != label_:
                    one, other = (np.vstack([X, row]) for row in (x, x_))
                    told = f"{n} rows at x {where}, of which one at {words} or at {instead}"
                    yield Pair((one, np.append(y, label)), (other, np.append(y, label_)), told)
        for third in target.labels[2:]:
            with_it = np.vstack([X, others]), np.append(y, third)
            without = (X, y) if target.relation is Relation.ADD_REMOVE else (with_it[0], np.append(y, known[0]))
            yield Pair(with_it, without, f"{n} rows at x {where}, with and without the label {third:g}")


def _outputs(target: Target, data: Any, epsilon: float, k: int, seed: np.random.SeedSequence) -> list[np.ndarray]:
    X, y = data
    found = []
    for child in seed.spawn(k):
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                one = target.function(X.copy(), y.copy(), epsilon, np.random.default_rng(child))
            found.append(np.atleast_1d(np.asarray(one, dtype=float)).ravel())
        except Exception:
            found.append(np.zeros(0))  # it tells the worlds apart as well as a number does
    return found


def _why(target: Target, data: Any, epsilon: float) -> str:
    """What one more call raises, in words; "" if it does not."""
    try:
        target.function(data[0].copy(), data[1].copy(), epsilon, np.random.default_rng(0))
    except Exception as error:
        return f" ({type(error).__name__}: {' '.join(str(error).split())[:200]})"
    return ""


def _aligned(first: list[np.ndarray], second: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """(k, m + 1): the vectors, what is missing as NaN, and how long each is."""
    width = max(len(one) for one in (*first, *second))
    return tuple(  # type: ignore[return-value]
        np.array([np.append(np.pad(one, (0, width - len(one)), constant_values=np.nan), len(one)) for one in each])
        for each in (first, second)
    )
