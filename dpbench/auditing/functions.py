"""The audits that a user asks for: of a method by its name, and of other people's code by what it returns alone.

A few runs on each of `pairs` choose one; fresh runs on that one are distinguished by a score that was learnt on others.
"""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from dpbench import algorithms
from dpbench.algorithms import rules
from dpbench.algorithms.base import AuditCase, make_settings
from dpbench.algorithms.library import LibrarySolver
from dpbench.auditing import runs as audits
from dpbench.auditing.claims import BEST, PureClaim, decide_by_best, least_runs, promise
from dpbench.auditing.neighbours import probes
from dpbench.auditing.runs import LEVEL, Audit
from dpbench.auditing.scores import aligned, candidates
from dpbench.auditing.search import COLUMNS, ITERATIONS, ROWS
from dpbench.auditing.worlds import STEPS
from dpbench.errors import PrivacyError, UserError, at_least, in_words, positive, several
from dpbench.privacy.ledger import Relation
from dpbench.problems import Problem
from dpbench.run.bind import bind, budget_of
from dpbench.run.execute import one_thread
from dpbench.run.job import delta_value
from dpbench.schema import Column, Schema, load, word
from dpbench.serving import process
from dpbench.serving.method import NotAnAlgorithm, ServedMethod

RUNS = 4_000
PILOTS = ((16, 6), (150, 1))  # runs on either data set of every pair still tried, and how many go on
OUTPUT = "what it returns"
# Fewer than of methods in process, as each is run twice:
SERVED_AT = tuple(zip(ROWS, COLUMNS, ITERATIONS, strict=True))
# Of estimators:
OTHERS = 3  # persons beside the one
SIZES = ((1, 1), (2, 1), (5, 2), (100, 5), (100, 1))  # m in either world
WIDE = 2  # columns of arrays, where the bounds say no number of them
DELTA = 0.01  # n⁻² of four persons would hide what is looked for
FACE = ("fit", "get_params", "epsilon", "delta", "schema", "bounds", "unit")


@dataclass(frozen=True)
class AuditTarget:
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


class Pair(NamedTuple):
    """Two neighbouring data sets, and in words what differs."""

    first: tuple[np.ndarray, np.ndarray]
    second: tuple[np.ndarray, np.ndarray]
    words: str


def audit_callable(
    target: AuditTarget | Callable[..., Any], epsilon: float, *, runs: int | None = None, seed: int = 0
) -> Audit:
    """A lower bound on the ε of `target` against the `epsilon` it is asked for; see `AuditTarget` for what is assumed.

    runs: of the test, half on either data set; None takes 4,000 or what the claim needs, up to ten times as many.
    """
    target = target if isinstance(target, AuditTarget) else AuditTarget(target)
    name = target.name or getattr(target.function, "__name__", "callable")
    if not callable(target.function):
        raise UserError(f"{name} cannot be called; an audit takes a function (X, y, epsilon, rng) → vector")
    epsilon = positive("epsilon", epsilon)
    if runs is not None:
        at_least("runs", runs, 40)
    told = PureClaim(epsilon, target.delta)
    # Fewer than least_runs cannot refute at all; more than ten times RUNS takes too long for a default.
    runs = runs or max(RUNS, min(10 * RUNS, 2 * least_runs(told, LEVEL, BEST)))
    seeds = np.random.SeedSequence(seed)
    left = list(target.pairs or pairs(target))
    errors: list[str] = []
    for k, kept in PILOTS:
        if len(left) > kept:
            hopes = []
            for pair in left:
                first, second = (_outputs(target, data, epsilon, k, seeds.spawn(1)[0], errors) for data in pair[:2])
                scored = candidates(*aligned(first, second))
                hopes.append(max(promise(one, other, told) for one, other in scored))
            left = [left[i] for i in np.argsort(hopes, kind="stable")[::-1][:kept]]
    (best,) = left
    first, second = (_outputs(target, data, epsilon, runs // 2, seeds.spawn(1)[0], errors) for data in best[:2])
    # A callable that raises on every call, or returns None, would pass the test, with nothing having been audited.
    if not any(np.isfinite(one).any() for one in (*first, *second)):
        defect = f"no call returned a number{errors[-1] if errors else ''}; nothing was audited"
        return Audit(name, epsilon, target.delta, 0, {}, defect=defect, pair=best.words)
    verdict = decide_by_best(*aligned(first, second), told, LEVEL)
    least = needed if (needed := least_runs(told, LEVEL, BEST)) > runs else 0
    return Audit(name, epsilon, target.delta, runs, {OUTPUT: verdict}, least=least, pair=best.words)


def of_solver(name: str) -> AuditTarget | None:
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
    return AuditTarget(function, name, solver.relation, delta, pairs=(pair,))


def of_estimator(estimator: Any) -> AuditTarget | None:
    """The target of an estimator of dpbench's, None for anything else; UserError for one whose bounds are missing.

    All rows of one person are others, however many, where it protects persons. Two worlds of four persons: three have
    one row each, in the middle of the bounds, where it does not pull. Of the fourth all rows lie at the upper end with
    the last label in one world, and in the other as many or fewer rows with the first: m = 1, 2, 5 and 100 against 1, 2
    or 5. A fit that protects single rows shows the five of a person (ε = 8.8 and 8.6 were measured for a claim of 1),
    one of persons may not. An estimator without a unit is tried at m = 1 alone.
    """
    if isinstance(estimator, type) or not all(hasattr(estimator, name) for name in FACE):
        return None
    table = estimator.schema is not None
    if not table and (estimator.bounds is None or isinstance(estimator.bounds, dict)):
        raise UserError("an audit of an estimator takes one with a schema, or with bounds of an array")
    schema = load(estimator.schema) if table else None
    unit = (schema.unit if schema else None) or ("groups" if estimator.unit else None)
    ends = _ends_of_schema(schema) if schema else _ends_of_array(estimator)
    labels = _labels(estimator, schema)
    delta = estimator.delta if isinstance(estimator.delta, float) else DELTA
    released: list[str] = []

    def function(X: np.ndarray, y: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
        given = estimator.get_params(deep=False) | {"epsilon": epsilon, "delta": delta, "budget": None}
        ids, places = X[:, 0].astype(int), X[:, 1].astype(int)
        rows = np.stack([ends[place] for place in places])
        named: dict[str, Any] = {} if table or unit is None else {"groups": ids}
        if schema is not None:
            rows = _frame(schema, rows, ids)
        of = rows, np.array([labels[int(one)] for one in y], dtype=object if schema else None)
        if not released:  # a seed alone would take the fit to other arithmetic than a release has
            released.append(type(estimator)(**given | {"random_state": None}).fit(*of, **named).arithmetic_)
        given |= {"random_state": int(rng.integers(2**31 - 1)), "arithmetic": released[0]}
        model = type(estimator)(**given).fit(*of, **named)
        return np.append(np.ravel(model.coef_), model.intercept_)

    pairs = tuple(_pair(m, k, unit) for m, k in (SIZES if unit else SIZES[:1]))
    return AuditTarget(function, type(estimator).__name__, delta=delta, pairs=pairs)


def _pair(m: int, k: int, unit: str | None) -> Pair:
    """Rows are (person, 0 for the middle or 1 for the upper end), labels the place of one among two."""
    worlds = []
    for size, label in ((m, 1.0), (k, 0.0)):
        X = np.vstack([np.tile([0.0, 1.0], (size, 1)), [[1.0 + i, 0.0] for i in range(OTHERS)]])
        worlds.append((X, np.append(np.full(size, label), np.arange(OTHERS) % 2)))
    what = f"all rows of one {unit}, {m} or {k}" if unit else "one row"
    where = f"at the upper ends with the last label, or with the first; {OTHERS} others"
    return Pair(worlds[0], worlds[1], f"{what}, {where}")


def _ends_of_array(estimator: Any) -> list[np.ndarray]:
    """[a row in the middle, a row at the upper ends] of the public bounds."""
    low, high = (np.atleast_1d(np.asarray(end, dtype=float)) for end in estimator.bounds)
    wide = WIDE if max(len(low), len(high)) == 1 else max(len(low), len(high))
    return [np.broadcast_to(end, wide) for end in (low / 2 + high / 2, high)]


def _ends_of_schema(schema: Schema) -> list[np.ndarray]:
    def end(column: Column, upper: bool) -> Any:
        if column.bounds is not None:
            return column.bounds[1] if upper else column.bounds[0] / 2 + column.bounds[1] / 2
        # Of no category the columns are 0; a date that is missing counts as the middle.
        return word(column.categories[-1]) if upper and column.categories else None

    columns = [one for one in schema.columns.values() if not one.drop]
    return [np.array([end(one, upper) for one in columns], dtype=object) for upper in (False, True)]


def _frame(schema: Schema, rows: np.ndarray, ids: np.ndarray) -> Any:
    import pandas as pd

    names = [name for name, one in schema.columns.items() if not one.drop]
    frame = pd.DataFrame({name: pd.Series(rows[:, j], dtype=object) for j, name in enumerate(names)})
    return frame if schema.unit is None else frame.assign(**{schema.unit: ids})


def _labels(estimator: Any, schema: Schema | None) -> list[Any]:
    """[the first, the last] label of the target."""
    ends: Any = (schema.target.classes or schema.target.bounds) if schema else None
    ends = ends or getattr(estimator, "classes", None) or getattr(estimator, "target_bounds", None)
    if ends is None:
        raise UserError("an audit of an estimator takes one with classes, or with target_bounds")
    return [ends[0], ends[-1]]


def pairs(target: AuditTarget) -> Iterator[Pair]:
    """Pairs of neighbours within what the target declares: one row at a corner, the others at one or between."""
    low, high = (np.broadcast_to(np.asarray(each, dtype=float), target.d) for each in (target.low, target.high))
    turns = np.where(np.arange(target.d) % 2, high, low)
    corners = {"low": low, "high": high, "turns": turns} if target.d > 1 else {"low": low, "high": high}
    # Zero where it is admitted: others at 0 do not pull, so the one row is seen best.
    corners["middle"] = np.clip(np.zeros(target.d), low, high)
    corners = {name: x / max(1.0, np.linalg.norm(x) / target.row_norm) for name, x in corners.items()}
    points = [(f"x {name}, y {y:g}", x, y) for (name, x), y in itertools.product(corners.items(), target.labels[:2])]
    # Further labels belong to one row alone, so they are not among the others.
    known = np.array(target.labels[:2])
    for n, (where, others) in itertools.product(target.sizes, corners.items()):
        X, y = np.tile(others, (n - 1, 1)), np.resize(known, n - 1)
        if target.relation is Relation.ADD_REMOVE:
            for words, x, label in points:
                told = f"{n} rows at x {where}, with and without the one at {words}"
                yield Pair((np.vstack([X, x]), np.append(y, label)), (X, y), told)
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


def _outputs(
    target: AuditTarget, data: Any, epsilon: float, k: int, seed: np.random.SeedSequence, errors: list[str]
) -> list[np.ndarray]:
    """What k calls return, nothing of those that raise; `errors` gets the words of the last of these."""
    X, y = data
    found = []
    for child in seed.spawn(k):
        try:
            # Thousands of calls would print the same warning thousands of times.
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                one = target.function(X.copy(), y.copy(), epsilon, np.random.default_rng(child))
            found.append(np.atleast_1d(np.asarray(one, dtype=float)).ravel())
        except (Exception, SystemExit) as error:
            errors[:] = [f" ({in_words(error)})"]
            found.append(np.zeros(0))  # it tells the worlds apart as well as a number does
    return found


def audit_served(name: str, epsilon: float, *, seed: int = 0, loss: str = "") -> Audit:
    """Serve the method `name` on drawn rows at each of `SERVED_AT`, and repeat each run without rows.

    Privacy is the server's, by construction. This shows whether it can be served, within its plan and its ε, and
    whether what it returns follows from what was released to it. A size that the method itself refuses is listed; one
    at least has to be run. UserError for what is no method.
    """
    method, fixed = algorithms.resolve(algorithms.SERVED + name)
    assert isinstance(method, ServedMethod)
    done = Audit(name, epsilon, 0.0, 0, {}, code=process.isolation())
    lines, why, steps = dict[str, str](), "", "T" in method.Settings.__struct_fields__
    for n, d, T in SERVED_AT:
        size = f"n = {n}, d = {d}" + (f", T = {T}" if steps else "")
        try:
            case = AuditCase(fixed | ({"T": T} if steps else {}), loss=loss, n=n, d=d)
            delta, lines[size] = _served(method, case, epsilon, seed)
            done = done._replace(delta=delta, runs=done.runs + 1)
        except PrivacyError as error:
            return done._replace(defect=f"{size}: {error}", served=lines)
        except UserError as error:
            why = lines[size] = str(error)
    return done._replace(defect="" if done.runs else why, served=lines)


def _served(method: ServedMethod, case: AuditCase, epsilon: float, seed: int) -> tuple[float, str]:
    """(δ, the result of one run in words); PrivacyError where it does not keep its ε, or its word."""
    accounting, weight = rules.accounting(method), 0.01 * ("l2" in method.needs.regularisers)
    problem = probes(method, replace(case, l2=weight), rules.RELATION)[0].first  # rows of all lengths within the bound
    budget = budget_of(method, problem.n, epsilon, None, method.under(rules.RELATION), accounting)
    settings = [make_settings(method, case.settings)]
    bound = bind(method, problem, settings, [budget], np.zeros((1, problem.d)), [f"audit/{seed}"])
    with one_thread():
        run = bound.run()
    if error := bound.guarantee(run).error:
        raise PrivacyError(error)
    if differs := process.repeat(method.code, run.evidence):
        raise PrivacyError(f"it {differs}: a clock, a file, or randomness that is not mechanisms.coins")
    return budget.delta, f"{len(run.evidence.transcript)} requests, ε = {bound.guarantee(run).planned:.4g}, repeated"


def audit(
    algorithm: str | AuditTarget | Callable[..., Any] = "all",
    epsilon: float | Iterable[float] = 1.0,
    *,
    runs: int | None = None,
    seed: int = 0,
    loss: str = "",
    in_process: bool = False,
    thorough: bool = False,
) -> list[Audit]:
    """Compute empirical lower bounds on an algorithm's ε and compare them with its ledger's claims; a pass proves
    nothing.

    Args:
        algorithm: a name, "file.py:Class", or "all" private ones; or somebody else's learner, (X, y, epsilon, rng) →
            vector or an `dpbench.auditing.functions.AuditTarget`, itself or as "file.py:name"; or an estimator of
            dpbench's, of which with a unit all rows of one person differ (`of_estimator`).
        epsilon: the ε > 0 that is claimed: one or several.
        runs: half of them on either of two neighbours, at least 40; None takes enough for bounds near the claim, for
            "all" enough to notice halved noise.
        seed: of all random numbers, >= 0.
        loss: on which one algorithm is audited, one of an installed package too; "" for that of its own case.
        in_process: of a method that is not dpbench's own, run it beside the rows all the same, as trusted code, and
            look for what it gives away. By default it runs where no rows are, and privacy is the server's
            (`audit_served`).
        thorough: inspect it at every size of n = 4, 50, 500 rows, d = 2, 30, 100 columns and T = 4, 30, 100 steps; by
            default at nine of these 27, in which every two values occur together.

    Returns:
        An `Audit` per ε, of "all" per algorithm and ε.

    Raises:
        UserError: for an algorithm that is not known or not private, and for any argument out of its range.
    """
    at_least("seed", seed, 0)
    epsilons = [positive("epsilon", each) for each in several(epsilon)]
    if isinstance(algorithm, str) and algorithm != "all" and not in_process:
        with contextlib.suppress(NotAnAlgorithm):  # somebody's function is audited by what it returns
            if algorithms.not_ours(algorithm, {}) is not None:
                return [audit_served(algorithm, each, seed=seed, loss=loss) for each in epsilons]
    learner: Any = algorithm if not isinstance(algorithm, str) else audits.learner(algorithm) or of_solver(algorithm)
    learner = of_estimator(learner) or learner
    if loss and (algorithm == "all" or learner is not None):
        raise UserError("loss: goes with one algorithm of dpbench's own kind")
    if learner is not None or not isinstance(algorithm, str):  # None is neither: it is refused as no function
        return [audit_callable(learner, each, runs=runs, seed=seed) for each in epsilons]
    names, near = (audits.auditable(), False) if algorithm == "all" else ([algorithm], True)
    return [
        audits.audit(name, each, runs=runs, seed=seed, near=near, loss=loss, thorough=thorough,
                     clean=near and each == epsilons[0])
        for name in names for each in epsilons
    ]  # fmt: skip
