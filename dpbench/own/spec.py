"""What a fit is, from public numbers alone: `Spec` is asked for, `FitPlan` is what will be done.

`plan` is the only place that refuses a fit, chooses a method, splits a budget and composes its releases. Its result is
shown, charged to a `DataBudget`, run (`own.engine`), written in the statement and, when a model is read, made again and
compared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np

from dpbench import algorithms
from dpbench.algorithms import rules
from dpbench.algorithms.base import Algorithm, BaseSettings, make_settings
from dpbench.algorithms.rules import public_settings
from dpbench.datasets.recipes import PRECISIONS
from dpbench.errors import UserError, positive
from dpbench.own import row_bound as row_bounds
from dpbench.own import window as windows
from dpbench.privacy.budget import Budget, share
from dpbench.privacy.check import compose
from dpbench.privacy.ledger import BoundedRange, Composition, CountedRelease, Gaussian, Laplace, PureDP, Relation
from dpbench.privacy.verify import spent
from dpbench.problems import Declaration, losses
from dpbench.run.bind import bind, budget_of
from dpbench.run.job import check_delta, delta_value
from dpbench.schema.encoding import Encoding
from dpbench.serving.method import ServedMethod

Split: TypeAlias = row_bounds.BoundSplit | windows.WindowSplit
LARGEST_EPSILON = 1e6
INTERVALS = {"boosted-ssp": "squared", "dp-gd-average": "logistic"}  # methods that have them, of which loss
GROUPS = "groups"  # the unit of arrays
CHOICES: dict[str, tuple[tuple[str | None, ...], str]] = {
    "arithmetic": (("bytes", "real", None), '"bytes" or "real"'),
    "precision": (PRECISIONS, " or ".join(PRECISIONS)),
    "timing": (("constant", None), '"constant" or None'),
    "row_bound": ((None, *row_bounds.BOUND_MODES), 'a number, "auto", "private", "rule", "window" or None'),
}


class ParameterError(UserError, ValueError):
    """A parameter of a fit that is missing or does not fit."""


class Spec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is asked for; every field is public.

    Args:
        n, d: rows, and columns of a row as it is fitted.
        intercept, numbers, most, others: what makes the length of a row, see `row_bound.Lengths`.
        loss: a name or a `losses.Loss`, of one model. classes: k of a target of classes, 0 of numbers or of arrays
            whose labels are as the loss takes them. class_weights: one for each class, or none.
        algorithm, settings: of the method, settings over those of its rule. rule: whether its public rule sets the
            others, as for the estimators; else they are as published.
        row_bound: "auto", "private", "rule", "window", or None where there is nothing to find.
        epsilon, delta, relation, accounting: the budget of the whole fit.
        l1, l2, w2: weights of the regularisers; l2 None: 1/(n·d) for classes, 0 for numbers.
        arithmetic, precision, timing: as of `dpbench.fit`. reproducible: drawn from a seed, so no release.
        unit: what tells whose a row is, a column's name or "groups"; n is then the number of persons. "": each row is
            one's own.
    """

    n: int
    d: int
    loss: Any
    classes: int = 0
    intercept: bool = False
    numbers: tuple[bool, ...] = ()
    most: int = 0
    others: int = 0
    epsilon: float = 1.0
    delta: float | str | None = None
    relation: str | None = rules.RELATION.value
    accounting: str | None = None
    algorithm: str = "auto"
    settings: dict[str, Any] = {}
    rule: bool = True
    row_bound: str | None = None
    l1: float = 0.0
    l2: float | None = None
    w2: float = 0.0
    class_weights: tuple[float, ...] | None = None
    arithmetic: str | None = None
    precision: str = "float64"
    timing: str | None = None
    reproducible: bool = False
    unit: str = ""
    trusted: bool = False  # whether a method that is not dpbench's own runs where the rows are

    @property
    def lengths(self) -> row_bounds.Lengths:
        """What the length of a row is made of."""
        return row_bounds.Lengths(np.array(self.numbers, bool), self.most, self.others, int(self.intercept))

    @property
    def intervals(self) -> bool:
        """Whether intervals are asked for, in the words that a setting takes."""
        return str(self.settings.get("intervals", False)).lower() == "true"


@dataclass(frozen=True)
class FitPlan:
    """What will be done. No data were needed to say it.

    Attributes:
        spec, name, method: what was asked for, and the method that was chosen.
        problem, models, settings, each: the declaration, settings and budget of every one of the `models`.
        asked: the settings before the method completed them.
        whole: the budget that they share.
        bound: how the bound on the rows is found, and at what cost; None where there is none to find.
        releases: of the bound and of all models; () of a method that says them only while it runs.
        epsilon: what they compose to by the second accountant; NaN where they are not known.
        exact: whether the guarantee is for the bytes released.
        flaw: why there is no guarantee, "" where there is one.
        foreign: the method whose code is not dpbench's, or None.
    """

    spec: Spec
    name: str
    method: Algorithm
    problem: Declaration
    models: int
    settings: BaseSettings
    asked: BaseSettings
    whole: Budget
    each: Budget
    bound: Split | None
    releases: Composition
    epsilon: float
    exact: bool
    flaw: str
    foreign: str | None

    @property
    def served(self) -> bool:
        """Whether the method runs in a process without rows."""
        return isinstance(self.method, ServedMethod)

    @property
    def windowed(self) -> bool:
        """Whether a window around the target is found."""
        return self.bound is not None and self.bound.choice > 0

    @property
    def arithmetic(self) -> str:
        """ "bytes" or "real", see `dpbench.fit`."""
        return "bytes" if self.exact else "real"

    @property
    def ridge(self) -> float:
        """The l2 of the fit, which stands for None."""
        weights = self.spec.class_weights
        return self.problem.l2 * (max(weights) if weights else 1.0) if self.spec.l2 is None else self.spec.l2

    @property
    def public(self) -> list[str]:
        """What the method and the row bound take from the data and count as public."""
        rule = self.bound is not None and self.bound.release is None
        return [one for one in (row_bounds.BY_RULE * rule, self.method.public(self.settings)) if one]

    def lines(self) -> list[str]:
        """The releases in words, one line for each kind."""
        first = len(self.bound.planned) if self.bound else 0
        one = (len(self.releases) - first) // self.models  # every model makes the same
        lines = [line(entry) for entry in self.releases[: first + one]]
        if self.models == 1:
            return lines
        return lines[:first] + [f"each of {self.models} models: {line}" for line in lines[first:]]


def line(entry: CountedRelease) -> str:
    """A release in words."""
    return f"{entry.count} × {entry.label}: {entry.release}"


class OneModel(NamedTuple):
    """One of the models of a plan: settings as completed and as asked, and what the method's plan releases."""

    problem: Declaration
    settings: BaseSettings
    asked: BaseSettings
    budget: Budget
    releases: Composition
    exact: bool
    flaw: str


def plan(spec: Spec) -> FitPlan:
    """The plan of a fit; UserError or PrivacyError, in one line, for what cannot be.

    First comes the bound on the rows, or the window around the target; the models share what it leaves of (ε, δ).
    """
    _check(spec)
    name, loss, columns, models = _problem(spec)
    method, fixed = algorithms.resolve(name)
    if spec.rule and not method.private:
        raise UserError(f"algorithm: {name} is not private; dpbench.fit runs it, and says so")
    whole = _whole(spec, name, method)
    how = _before_the_models(spec, name, loss, whole)
    within = windows.settings(name, spec.n, columns) if how == "window" else {}
    clustered = {"intervals": "clustered"} if spec.intervals and spec.unit and losses.get(loss).binary else {}

    # The split tries several budgets, and each accountant's search takes tens of milliseconds.
    @cache
    def at(epsilon: float, delta: float) -> OneModel:
        """Each model, where all may spend (ε, δ)."""
        parts = share(epsilon, delta, models, gaussian=method.gaussian and whole.accounting == "tight")
        given = public_settings(name, spec.n, columns, parts[0]) if spec.rule else {}
        settings = make_settings(method, {**fixed, **given, **within, **spec.settings, **clustered})
        return _model(spec, loss, columns, method, settings, replace(whole, epsilon=parts[0], delta=parts[1]))

    if how == "auto" and not spec.rule and at(whole.epsilon, whole.delta).flaw:
        how = None  # a method without noise has nothing to gain
    split = _split(spec, name, loss, how, whole, lambda *left: [(at(*left).releases, left[1])] * models)
    model = at(whole.epsilon, whole.delta) if split is None else at(split.epsilon, split.delta)
    # `dpbench.fit` may run a method without a guarantee, and says so; an estimator has no place for one.
    if model.flaw and spec.rule:
        raise UserError(f"settings: so set, {name} keeps no ε ({model.flaw}); dpbench.fit runs it, and says so")
    first, epsilon = split.planned if split else (), math.nan
    releases = first + model.releases * models if model.releases else ()
    if isinstance(split, windows.WindowSplit) and split.alone:
        if spec.intervals:
            raise ParameterError("intervals: of so few rows the median alone is released; leave row_bound or them out")
        releases, epsilon = first, compose(split.parts, whole)
    elif releases and not model.flaw:
        own = spent(model.releases, model.budget.delta, whole.relation).epsilon
        parts = [*(split.parts if split else []), *[(model.releases, own, model.budget.delta)] * models]
        epsilon = compose(parts, whole) if len(parts) > 1 else own
    stranger = algorithms.not_ours(name, msgspec.structs.asdict(model.settings))
    return FitPlan(
        spec, name, method, model.problem, models, model.settings, model.asked, whole, model.budget, split,
        releases=releases, epsilon=epsilon, exact=model.exact, flaw=model.flaw,
        foreign=None if stranger is None else algorithms.resolve(stranger)[0].name,
    )  # fmt: skip


def _whole(spec: Spec, name: str, method: Algorithm) -> Budget:
    """The budget of the whole fit."""
    accounting = rules.accounting(method) if spec.accounting is None else spec.accounting
    delta = rules.delta(method) if spec.delta is None and spec.rule else spec.delta
    if spec.rule and method.accounting(accounting) == "pure":
        delta = 0.0  # (ε, 0) is (ε, δ) too
    elif spec.rule and delta == 0:
        others = [one for one in algorithms.names(plugins=False) if _pure(one)]
        raise ParameterError(f'delta: {name} needs delta > 0; at 0 take "auto", or one of {", ".join(others)}')
    return budget_of(method, spec.n, spec.epsilon, delta, spec.relation, accounting)


def _before_the_models(spec: Spec, name: str, loss: Any, whole: Budget) -> Any:
    """What is found before them: `row_bound` as asked for, of "auto" a window where there can be one."""
    window = name in windows.METHODS and losses.get(loss).name == "squared" and spec.rule and not spec.l1
    window = window and windows.suits(spec.lengths, whole)
    if spec.row_bound == "window" and not window:
        raise ParameterError(
            f'row_bound: "window" is for PrivateRegressor by {" or ".join(windows.METHODS)}, with an intercept, at '
            "delta > 0 and ε <= 100; leave it out"
        )
    if not spec.intervals:
        return "window" if spec.row_bound == "auto" and window else spec.row_bound
    if INTERVALS.get(name) != losses.get(loss).name or not spec.rule or spec.l2 or spec.class_weights:
        raise ParameterError(
            "intervals: they are derived for numbers by boosted-ssp and two classes by dp-gd-average, of at most 1,500 "
            "columns, at delta > 0, without ridge or class weights; leave algorithm, l2 and class_weight out"
        )
    return spec.row_bound  # the coverage of intervals was counted with the private bound


def _split(spec: Spec, name: str, loss: Any, how: Any, whole: Budget, planned: row_bounds.Planned) -> Split | None:
    """How (ε, δ) is shared by what is found first and the models; `planned`: their releases at what is left."""
    if how == "window":
        return windows.split(spec.n, spec.lengths, whole, planned)
    choice = windows.BESIDE * whole.epsilon  # of a window alone
    robust = name == "objpert" and how == "auto" and losses.get(loss).family in windows.ROBUST
    robust = robust and spec.n * choice >= windows.FEW and windows.suits(spec.lengths, whole)
    left = replace(whole, epsilon=whole.epsilon - choice * robust)
    split = row_bounds.choose_split(how, spec.lengths, left, planned)
    return split and split._replace(choice=choice * robust)


def _model(spec: Spec, loss: Any, columns: int, method: Algorithm, settings: BaseSettings, budget: Budget) -> OneModel:
    """One model at these settings within this budget, with the releases that its method plans."""
    problem = _declared(spec, loss, columns, method, settings)
    flaw = "" if method.private else f"{method.name} looks at the data without paying"
    flaw = flaw or method.flaw(settings, budget.accounting)
    if spec.unit:
        _check_unit(spec, method, problem, settings, flaw)
    exact = _exact(spec, method, problem, settings, budget, flaw)
    bound = bind(method, problem, [settings], [budget], np.zeros((1, problem.d)), ["plan"])  # type: ignore[arg-type]  # nothing is run, so what is declared is enough
    mechanisms = bound.mechanisms()
    bound.plan(mechanisms)
    planned = mechanisms.ledger.planned(0)
    if spec.unit and not (planned and all(isinstance(entry.release, OF_ALL) for entry in planned)):
        raise UserError(f"unit: {method.name} takes some of the rows at a time, where a person has several; {ABLE}")
    return OneModel(problem, bound.settings[0], settings, budget, planned, exact, flaw)


def _pure(name: str) -> bool:
    """Whether a method has (ε, 0)."""
    method, _ = algorithms.resolve(name)
    return method.private and method.accounting(rules.accounting(method)) == "pure"


def of_encoding(encoding: Encoding, rows: int, classes: int) -> dict[str, Any]:
    """The fields of a spec that follow from an `Encoding`, rows and classes."""
    most, others = encoding.groups
    intercept = bool(encoding.intercept)
    return {"n": rows, "d": len(encoding.names), "numbers": tuple(encoding.numbers.tolist()), "most": most,
            "others": others - intercept, "intercept": intercept, "classes": classes}  # fmt: skip


def _check(spec: Spec) -> None:
    """ParameterError for a field that no method could take."""
    if spec.n < 2:
        few = f"unit: {spec.n} person in all:" if spec.unit else f"X has {spec.n} sample: n_samples={spec.n}"
        raise ParameterError(f"{few} protects nobody; give two {'persons' if spec.unit else 'rows'} at least")
    if positive("epsilon", spec.epsilon) > LARGEST_EPSILON and spec.rule:
        raise ParameterError(
            f"epsilon must be at most {LARGEST_EPSILON:g}, which protects nobody, got {spec.epsilon:g}"
        )
    for name, (allowed, words) in CHOICES.items():
        value = getattr(spec, name)
        if not (isinstance(value, str | None) and value in allowed):
            raise ParameterError(f"{name} must be {words}, got {value!r}")
    if spec.class_weights is not None and not (
        spec.class_weights and all(0 < w < math.inf for w in spec.class_weights)
    ):
        raise ParameterError("class_weight: give a positive number for each class")
    if spec.l2 is not None and not (isinstance(spec.l2, int | float | np.number) and 0 <= spec.l2 < math.inf):
        raise ParameterError(f"l2 must be a number >= 0 or None, got {spec.l2!r}")


def _declared(spec: Spec, loss: Any, d: int, method: Algorithm | None, settings: Any) -> Declaration:
    """The problem of one model, with the bound on the rows that the method's own proof asks for.

    Noise is scaled by that bound, never by the rows that exist. method: None for the problem that one is chosen for.
    """
    kind, most = losses.get(loss), 1.0
    if spec.class_weights is not None:
        most = max(spec.class_weights)  # all of the objective is divided by it
        kind = losses.Weighted(kind, tuple(one / most for one in spec.class_weights))
    # Asked with the completed settings: dp-cd and dp-gcd have a bound with the public scales alone.
    norm, bound = (method.row_bound(kind, settings) if method else None) or ("l2", math.inf if method else 1.0)
    ridged = kind.name != "squared" and (method is None or "l2" in method.needs.regularisers)
    # Classes that a line separates have no optimum without a ridge.
    l2 = spec.l2 if spec.l2 is not None else ridged / (spec.n * spec.d)
    return Declaration(spec.n, d, loss=kind, l1=spec.l1, l2=l2 / most, w2=spec.w2, row_bound=bound,
                       row_bound_norm=norm, name="own data")  # fmt: skip


def _problem(spec: Spec) -> tuple[str, Any, int, int]:
    """(method, loss and columns of each model, how many models)."""
    delta = delta_value(check_delta("n^-2" if spec.delta is None else spec.delta), spec.n)
    k = spec.classes
    loss, d = (f"softmax-{k}", spec.d * k) if k > 2 else (spec.loss, spec.d * losses.get(spec.loss).outputs)
    name = spec.algorithm
    if name == "auto":
        name = _chosen(spec, loss, d, delta)
    foreign = isinstance(name, str) and not name.startswith(algorithms.SERVED) and algorithms.not_ours(name, {})
    if foreign and not spec.trusted:
        name = algorithms.SERVED + name
    # One softmax model moves by √2 for a row, k models by √k times as much as one.
    if k <= 2 or not algorithms.resolve(name)[0].needs.missing_for(losses.get(loss)):
        return name, loss, d, 1
    if spec.class_weights is not None:
        raise UserError(f"class_weight: {name} fits each class against the rest; with weights leave algorithm out")
    return name, "logistic", spec.d, k


def _chosen(spec: Spec, loss: Any, d: int, delta: float) -> str:
    """The method of "auto"; of more than two classes one model of all, or one of each where no rule has that."""

    squared = losses.get(loss).name == "squared"

    def suits(name: str) -> bool:
        one = algorithms.resolve(name)[0]
        if spec.intervals and (name not in INTERVALS or (squared and INTERVALS[name] != "squared")):
            return False
        return one.persons if spec.unit else bool(one.exact) or spec.arithmetic != "bytes"

    try:
        return rules.method(_declared(spec, loss, d, None, None), delta, suits)
    except UserError:
        if spec.classes <= 2 or spec.class_weights is not None:
            raise
    return rules.method(_declared(spec, "logistic", spec.d, None, None), delta, suits)


OF_ALL = (Gaussian, Laplace, PureDP, BoundedRange)  # what is released of sums over all rows
ABLE = "leave algorithm out, or take a method whose releases are sums over all rows"


def _check_unit(spec: Spec, method: Algorithm, problem: Declaration, settings: Any, flaw: str) -> None:
    """UserError where no derivation says what a fit of several rows a person releases: see `problems.persons`."""
    if not (method.persons and type(method).__module__.startswith("dpbench.algorithms.")):
        able = [name for name in algorithms.names(plugins=False) if algorithms.resolve(name)[0].persons]
        able = [name for name in able if not algorithms.resolve(name)[0].needs.missing_for(problem.loss)]
        raise UserError(
            f"unit: {method.name} is not derived for several rows of one person; leave algorithm out, or take one of: "
            f"{', '.join(able)}"
        )
    if spec.timing:
        raise ParameterError(
            "timing: with a unit the time follows the number of rows, which is not public; leave it out"
        )
    if spec.arithmetic == "real":
        raise ParameterError('arithmetic: with a unit sums are of whole numbers, so it is "bytes"; leave it out')
    # Add/remove: with the rows of a person all rows behind them change places, as there.
    why = flaw or method.inexact(problem.loss, Relation.ADD_REMOVE, settings)
    if why or (why := method.public(settings) and f"it takes {method.public(settings)} from the rows"):
        raise UserError(f"unit: {method.name} so set is not derived for several rows of one person: {why}; {ABLE}")


def _exact(spec: Spec, method: Algorithm, problem: Declaration, settings: Any, budget: Budget, flaw: str) -> bool:
    """Whether the fit computes with integers, so that its guarantee is for the bytes; UserError where it cannot."""
    why = "it has none at all" if flaw else method.inexact(problem.loss, budget.relation, settings)
    if not why and not math.isfinite(problem.row_bound):
        why = "it declares no bound on the rows, which a grid of integers needs"
    # Who asked for bytes is told which methods have them; without the word the fit is in real arithmetic.
    if spec.arithmetic == "bytes" and why:
        others = [algorithms.resolve(name)[0] for name in algorithms.names(plugins=False)]
        able = [
            one.name for one in others
            if not one.inexact(problem.loss, budget.relation) and not one.needs.missing_for(problem.loss)
        ]  # fmt: skip
        raise UserError(
            f"arithmetic: {method.name} on {problem.loss.name} loss has no guarantee for bytes: {why}; "
            f"for 'bytes' use one of: {', '.join(dict.fromkeys(able))}"
        )
    served = isinstance(method, ServedMethod)
    if served and (why or spec.arithmetic == "real"):
        raise UserError(f"algorithm: {method.name} is served, and releases bytes alone: {why or 'arithmetic is real'}")
    asked = bool(spec.unit) or spec.arithmetic == "bytes"  # a seeded fit of persons has no other path
    exact = served or asked or (spec.arithmetic is None and not why and not spec.reproducible)
    if spec.timing and not exact:
        raise UserError(f"timing: with these arguments {method.name} has no constant time; it takes arithmetic='bytes'")
    if spec.timing and method.exact == "minimiser" and spec.l1:
        raise UserError(f"timing: with l1 the solver of {method.name} takes as long as the data ask; use dp-gd-average")
    return exact
