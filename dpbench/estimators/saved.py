"""A fitted linear model as a file, read by one reader that believes nothing of it which it can compute.

What such a file holds is typed, and has to fit itself: the weights to the schema, the classes and the loss. What its
statement says has to fit the model and, of dpbench's own methods, the method. `privacy.statement` checks the rest.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np

from dpbench import algorithms
from dpbench import schema as schemas
from dpbench.algorithms import defaults
from dpbench.algorithms.base import Algorithm, BaseSettings, make_settings
from dpbench.errors import PrivacyError, UserError
from dpbench.privacy import statement as statements
from dpbench.privacy.budget import share
from dpbench.privacy.disclosure import undeclared
from dpbench.privacy.ledger import Composition, Relation, Release
from dpbench.privacy.plain import plain
from dpbench.privacy.statement import DoesNotHold, Statement
from dpbench.problems import losses
from dpbench.problems.regularisers import Declaration
from dpbench.run import row_bound as row_bounds
from dpbench.run.bind import budget_of
from dpbench.schema import Column, Lengths, Schema, Target
from dpbench.version import __version__

CLASSIFIER, REGRESSOR = "PrivateClassifier", "PrivateRegressor"
CLASSES_READ = "the set of classes in y"  # they were not given
CALIBRATED = 1e-3  # relative, of the noise of one plan by two versions of the libraries
Label: TypeAlias = str | int | float | bool


class Parameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Of the estimator: those that say what the model is, or what its release was to cost."""

    epsilon: float
    delta: float | str | None
    fit_intercept: bool
    l2: float
    row_bound: float | row_bounds.Way | None


class Saved(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A model without its statement.

    kind: the estimator. schema: of a table; `bounds`, (lows, highs), of arrays: one of the two. A schema whose target
    has no name was made of bounds and categories by column name. features: names of the columns, none of arrays without
    names. unit: what rows are divided by. loss: by its name. W: a model per row, on encoded rows of ‖x‖₂ ≤ 1. classes,
    class_weights: of a classifier, the latter in the order of the former. target: (middle, half) of a number's bounds.
    """

    kind: Literal["PrivateClassifier", "PrivateRegressor"]
    parameters: Parameters
    schema: Schema | None
    bounds: tuple[list[float], list[float]] | None
    features: list[str]
    unit: float
    loss: str
    W: list[list[float]]
    classes: list[Label] | None = None
    class_weights: list[float] | None = None
    target: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if (self.schema is None) == (self.bounds is None):
            raise ValueError("it needs a schema or bounds, one of the two")
        if self.schema is not None:
            self.schema.require_decided()
        columns, unit = self._columns()
        if not math.isclose(self.unit, unit, rel_tol=1e-9):
            raise ValueError(f"its unit is {self.unit:g}, where its columns make {unit:g}")
        outputs = self._outputs()
        if len(self.W) != outputs or any(len(row) != columns for row in self.W):
            raise ValueError(f"its weights are not {outputs} × {columns}, as its classes and columns ask for")
        if not all(math.isfinite(weight) for row in self.W for weight in row):
            raise ValueError("a weight is not finite")

    def _columns(self) -> tuple[int, float]:
        """(number of encoded columns, what rows are divided by); ValueError for bounds or names that misfit."""
        given = self.parameters.row_bound
        if self.schema is not None:
            names = [name for name, column in self.schema.columns.items() if not column.drop]
            if self.features != names:
                raise ValueError("its features are not the columns of its schema")
            found = schemas.encoded_as(self.schema, intercept=self.parameters.fit_intercept)
            bound = self.schema.row_bound
            if given is not None and bound != (
                self._bound(schemas.lengths_of(self.schema, intercept=self.parameters.fit_intercept))
                if isinstance(given, str)
                else given
            ):
                raise ValueError("its row_bound is not that of its schema")
            return len(found.columns), found.unit
        assert self.bounds is not None
        lows, highs = self.bounds
        if len(lows) != len(highs) or not lows:
            raise ValueError("its bounds are not as many lows as highs")
        if not all(
            math.isfinite(low) and math.isfinite(high) and low < high for low, high in zip(lows, highs, strict=True)
        ):
            raise ValueError("its bounds are not low < high, both finite")
        if self.features and len(self.features) != len(lows):
            raise ValueError(f"it names {len(self.features)} features, and has bounds of {len(lows)}")
        if not (given is None or isinstance(given, str) or 0 < given < math.inf):
            raise ValueError("its row_bound is not positive and finite")
        columns = len(lows) + self.parameters.fit_intercept
        if isinstance(given, str):
            lengths = Lengths(np.ones(columns, bool), len(lows), 0, columns - len(lows))
            return columns, self._bound(lengths) or lengths.unit
        return columns, math.sqrt(columns) if given is None else given

    def _bound(self, lengths: Lengths) -> float | None:
        """The rows' bound that a row_bound in words amounts to: what was released is the file's, within its range."""
        if self.parameters.row_bound == "rule":
            return row_bounds.by_rule(lengths)
        if not lengths.most:
            return None  # nothing to release
        least, most = (row_bounds.bound_of(end, 0.0, lengths) for end in (0.0, math.inf))
        if not least * (1 - 1e-9) <= self.unit <= most * (1 + 1e-9):
            raise ValueError(f"its row_bound, {self.unit:g}, is none that can be released")
        return self.unit

    @property
    def numbers(self) -> bool:
        """Whether there are columns of numbers, whose mean square a private row_bound releases."""
        if self.schema is None:
            return True
        return schemas.lengths_of(self.schema, intercept=self.parameters.fit_intercept).most > 0

    def _outputs(self) -> int:
        """How many models there are; ValueError for classes, a target or a loss that misfit."""
        named = None if self.schema is None or not self.schema.target.name else self.schema.target
        if self.kind == REGRESSOR:
            if self.target is None or self.classes is not None or self.class_weights is not None:
                raise ValueError("a regressor has target bounds and no classes")
            middle, half = self.target
            if not (math.isfinite(middle) and 0 < half < math.inf):
                raise ValueError("its target is not a middle and half a range")
            if named is not None and (named.bounds is None or middle_of(named.bounds) != self.target):
                raise ValueError("its target is not that of its schema")
            if self.loss != "squared":
                raise ValueError(f"a regressor has squared loss, not {self.loss}")
            return 1
        if self.classes is None or self.target is not None:
            raise ValueError("a classifier has classes and no target bounds")
        check_classes(self.classes)
        if named is not None and list(named.classes or ()) != self.classes:
            raise ValueError("its classes are not those of its schema")
        weights, k = self.class_weights, len(self.classes)
        if weights is not None and (len(weights) != k or not all(0 < one < math.inf for one in weights)):
            raise ValueError("its class weights are not a positive number for each class")
        if self.loss not in ("logistic", *[f"softmax-{k}"] * (k > 2)):
            raise ValueError(f"its loss is {self.loss}, which {k} classes do not have")
        return 1 if k == 2 else k

    @property
    def public(self) -> list[list[str]]:
        """What counts as public beside n and what the method takes: the lists that it may be.

        Whether classes were given or read off the labels the file alone knows. Older files do not name a row bound.
        """
        weights = None if self.class_weights is None else dict(zip(self.classes or (), self.class_weights, strict=True))
        given = (True,) if self.kind == REGRESSOR or self.named else (True, False)
        bounds = (self.parameters.row_bound, None)
        return [
            public(self.kind, self.schema, bound, classes_given=one, class_weights=weights)
            for one, bound in itertools.product(given, bounds)
        ]

    @property
    def named(self) -> bool:
        """Whether the schema is one that somebody wrote."""
        return self.schema is not None and bool(self.schema.target.name)

    @property
    def described(self) -> Schema:
        """What is public of its table; of arrays, columns of numbers within the bounds."""
        if self.schema is not None and self.named:
            return self.schema
        target = (
            Target(name="the target", classes=tuple(map(str, self.classes)))
            if self.classes is not None
            else Target(name="the target", bounds=ends_of(*(self.target or (0.0, 1.0))))
        )
        if self.schema is not None:
            return msgspec.structs.replace(self.schema, target=target)
        assert self.bounds is not None
        names = self.features or [f"x{i}" for i in range(len(self.bounds[0]))]
        columns = {name: Column(bounds=(low, high)) for name, low, high in zip(names, *self.bounds, strict=True)}
        bound = None if self.parameters.row_bound is None else self.unit
        return Schema(target=target, columns=columns, row_bound=bound)


def middle_of(bounds: tuple[Any, Any]) -> tuple[Any, Any]:
    """(middle, half of the range), of numbers or arrays; the halves first, as a sum may overflow."""
    return bounds[0] / 2 + bounds[1] / 2, bounds[1] / 2 - bounds[0] / 2


def ends_of(middle: float, half: float) -> tuple[float, float]:
    """The inverse of `middle_of`, but for rounding."""
    return middle - half, middle + half


def check_classes(classes: Sequence[Any]) -> None:
    """ValueError unless they are two or more different texts, numbers or truth values."""
    odd = [
        one for one in classes if not isinstance(one, str | int | float) or one != one or one in (math.inf, -math.inf)
    ]
    if odd:
        raise ValueError(f"{odd[0]!r} can be no class; give texts or finite numbers")
    if len(set(classes)) < max(2, len(classes)):
        raise ValueError("give two classes or more, all of them different")


def public(
    kind: str,
    schema: Schema | None,
    row_bound: float | row_bounds.Way | None,
    *,
    classes_given: bool,
    class_weights: dict[Any, float] | None,
) -> list[str]:
    """What an estimator takes for public beside n; schema, row_bound: as of `Saved` and its `Parameters`."""
    told = ", ".join(f"{label}: {weight:g}" for label, weight in (class_weights or {}).items())
    more = [row_bounds.BY_RULE if row_bound == "rule" else "row_bound"] * (row_bound not in (None, "private"))
    more += [f"class weights ({told})"] * (class_weights is not None)
    if schema is not None and schema.target.name:
        return ["the schema", *more]
    categories = schema is not None and any(column.categories for column in schema.columns.values())
    found = ["the columns", "bounds", *["categories"] * categories, "that no label is missing"]
    if kind == REGRESSOR:
        return [*found, "target_bounds", *more]
    return [*found, "classes" if classes_given else CLASSES_READ, *more]


def write(path: str | os.PathLike[str], model: Saved, statement: Statement) -> None:
    """The file of a model, once it was found to be one that `read` takes; UserError otherwise."""
    _fit_together(model, statement)
    statements.write(path, msgspec.to_builtins(model), statement)


def read(path: str | os.PathLike[str]) -> tuple[Saved, Statement, list[str]]:
    """(model, its statement, what was checked of it) of a file that `write` made.

    Raises:
        UserError: the file is none that dpbench wrote, or it is damaged.
        DoesNotHold: the statement does not fit the model, or what it says can be computed and is not so.
    """
    content, statement = statements.read(path)
    try:
        model = msgspec.convert(content, Saved)
    except (msgspec.ValidationError, UserError) as error:
        raise UserError(f"{path}: not a model that dpbench saved ({error})") from None
    try:
        return model, statement, _fit_together(model, statement)
    except DoesNotHold as error:
        raise DoesNotHold(f"{path}: {error}") from None


def _fit_together(model: Saved, statement: Statement) -> list[str]:
    """What holds of the statement, a line each; DoesNotHold."""
    stranger = algorithms.not_ours(statement.mechanism, statement.settings)
    found = statements.checked(statement, word_of=stranger)
    given = model.parameters
    if statement.relation != Relation.REPLACE_ONE.value:
        raise DoesNotHold("an estimator's release is private when one row is replaced; it states other neighbours")
    if statement.epsilon != given.epsilon:
        raise DoesNotHold(f"it states ε = {statement.epsilon:g}, and its model was fitted for {given.epsilon:g}")
    rules = {None: float(statement.rows) ** -2, "n^-2": float(statement.rows) ** -2, "n^-1": 1 / statement.rows}
    delta = given.delta if isinstance(given.delta, float) else rules.get(given.delta, math.nan)
    if statement.delta and not math.isclose(statement.delta, delta, rel_tol=1e-12):  # a method of pure DP has 0
        raise DoesNotHold(f"it states δ = {statement.delta:.3g}, and its model was fitted for {delta:.3g}")
    taken = ["n"]
    if stranger is None:
        method, settings = _method(statement)
        bounding = [entry.count for entry in statement.composition if entry.label == row_bounds.LABEL]
        if bounding != [1] * (model.parameters.row_bound == "private" and model.numbers):
            raise DoesNotHold(
                f"its row_bound is {model.parameters.row_bound!r}, and its releases are not those of that"
            )
        if undone := undeclared(statement.composition, {*method.labels, *[row_bounds.LABEL] * bool(bounding)}):
            raise DoesNotHold(f"{statement.mechanism}: {undone}")
        _covered(model, statement, method, settings)
        if flaw := method.flaw(settings, defaults.accounting(method)):
            raise DoesNotHold(f"{statement.mechanism}, as it was set, keeps no ε: {flaw}")
        why = method.inexact(losses.get(model.loss), Relation.REPLACE_ONE, settings)
        if statement.arithmetic == "bytes" and why:
            raise DoesNotHold(f"{statement.mechanism} has no guarantee for the bytes released: {why}")
        taken += filter(None, [method.public(settings)])
        found.append(f"{statement.mechanism} makes releases of these kinds")
        found += _following(model, statement, method, settings)
    for least in model.public:
        right = [taken[0], *least, *taken[1:]]
        if statement.public[: len(right)] == right and (stranger is not None or statement.public == right):
            return [*found, "its model counts as public no more than it states"]
    raise DoesNotHold(f"it counts {', '.join(right)} as public, but states {', '.join(statement.public)}")


def _covered(model: Saved, statement: Statement, method: Algorithm, settings: BaseSettings) -> None:
    """DoesNotHold where the method's proof is not about the model's loss and ridge."""
    norm, bound = method.row_bound(losses.get(model.loss), settings) or ("l2", math.inf)
    l2, d = model.parameters.l2, len(model.W[0])
    try:
        method.needs.check(
            Declaration(statement.rows, d, loss=model.loss, l2=l2, row_bound=bound, row_bound_norm=norm),
            statement.mechanism,
        )
    except UserError as error:
        raise DoesNotHold(str(error)) from None


def _following(model: Saved, statement: Statement, method: Algorithm, settings: BaseSettings) -> list[str]:
    """The line that says that its releases are those that are planned; DoesNotHold where they are not.

    None of a model of another version, whose rules may have been others: that it says so is a word of the file.
    """
    try:
        plans = _plans(model, statement, method, settings)
        wrong = "plans other releases for its settings, n, ε, δ and classes"
    except (UserError, PrivacyError, ArithmeticError) as error:
        plans, wrong = [()], f"has no such fit: {error}"
    if any(_alike(plan, statement.composition) for plan in plans):
        return ["its releases follow from its settings, n, columns, classes, ε and δ"]
    if plans and statement.versions.get("dpbench") == __version__:
        raise DoesNotHold(f"{statement.mechanism} {wrong}")
    return []


def _plans(model: Saved, statement: Statement, method: Algorithm, settings: BaseSettings) -> list[Composition]:
    """What the fit of such a model may have released, as of `Terms`; none where a method says it while it runs."""
    loss, most = losses.get(model.loss), max(model.class_weights or [1.0])
    accounting, l2 = defaults.accounting(method), model.parameters.l2 / most
    models = 1 if loss.outputs > 1 else len(model.W)
    if model.class_weights is not None:
        loss = losses.Weighted(loss, tuple(one / most for one in model.class_weights))
    problem = Declaration(statement.rows, len(model.W[0]) * loss.outputs, loss=loss, l2=l2, row_bound=1.0)

    def plan(epsilon: float, delta: float) -> Composition:
        each = share(epsilon, delta, models, gaussian=method.gaussian and accounting == "tight")
        budget = budget_of(method, statement.rows, *each, Relation.REPLACE_ONE, accounting)
        return row_bounds.plan_of(method, problem, settings, budget) * models

    starts: list[tuple[Composition, float, float]] = [((), statement.epsilon, statement.delta)]
    if model.parameters.row_bound == "private" and model.numbers:
        ways = row_bounds.ways(statement.epsilon, statement.delta)
        starts = [(way.planned, way.epsilon, way.delta) for way in ways]
    found, refused = [], None
    for first, epsilon, delta in starts:
        try:
            found += [(*first, *planned)] if (planned := plan(epsilon, delta)) else []
        except PrivacyError as error:
            refused = error
    if refused and not found:
        raise refused
    return found


def _alike(planned: Composition, stated: Composition) -> bool:
    """Whether two lists of releases are the same but for the digits of a calibration."""

    def counts(composition: Composition) -> list[tuple[str, int, list[tuple[str, Any]]]]:
        added: dict[tuple[Release, str], int] = {}
        for release, count, label in composition:
            added[release, label] = added.get((release, label), 0) + count
        found = [(label, n, list(_leaves(plain(release)))) for (release, label), n in added.items()]
        return sorted(found, key=lambda one: (*one[:2], [(name, isinstance(v, str), v) for name, v in one[2]]))

    ours, theirs = counts(planned), counts(stated)
    return len(ours) == len(theirs) and all(
        a[:2] == b[:2] and len(a[2]) == len(b[2]) and all(map(_equal, a[2], b[2]))
        for a, b in zip(ours, theirs, strict=True)
    )


def _leaves(data: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The values in plain data, each with its name."""
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from _leaves(value, f"{name}/{key}")
    else:
        yield name, data


def _equal(one: tuple[str, Any], other: tuple[str, Any]) -> bool:
    (name, a), (there, b) = one, other
    return name == there and (math.isclose(a, b, rel_tol=CALIBRATED) if type(a) is type(b) is float else a == b)


def _method(statement: Statement) -> tuple[Any, BaseSettings]:
    """dpbench's own method of that name, and its settings; DoesNotHold where there is none that is private."""
    try:
        method, fixed = algorithms.resolve(statement.mechanism)
        settings = make_settings(method, fixed | statement.settings)
    except UserError as error:
        raise DoesNotHold(f"its mechanism cannot be: {error}") from None
    if not method.private:
        raise DoesNotHold(f"{statement.mechanism} is not private")
    return method, settings


def statement(model: str | os.PathLike[str]) -> tuple[Statement, list[str]]:
    """The release statement of a model that an estimator saved, and one line for each thing that was computed again.

    Args:
        model: the file.

    Returns:
        The statement, see `dpbench.privacy.statement`, and what holds.

    Raises:
        UserError: the file is none that dpbench wrote, or it is damaged.
        DoesNotHold: something that it states can be computed and is not so.
    """
    _, found, holds = read(model)
    return found, holds
