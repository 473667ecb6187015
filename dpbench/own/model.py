"""A fitted model: what it predicts, what its release was, and the file that holds both.

Nothing of a file is believed that can be computed: the plan is made again from what was asked for, and the statement
must be the one that this plan makes. Of a method that is not dpbench's nothing is imported or run, so its file is held
to less, and says so.
"""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from functools import cached_property
from importlib import metadata
from typing import Any, TypeAlias

import msgspec
import numpy as np

from dpbench import algorithms
from dpbench.algorithms import rules
from dpbench.errors import PrivacyError, UserError
from dpbench.own import intervals
from dpbench.own import row_bound as row_bounds
from dpbench.own import statement as statements
from dpbench.own import window as windows
from dpbench.own.engine import Fitted
from dpbench.own.spec import GROUPS, FitPlan, Spec, of_encoding, plan
from dpbench.own.statement import DoesNotHold, Statement, leaves, number_of, sentence
from dpbench.privacy.ledger import Composition, Release, listed, plain
from dpbench.schema import Schema
from dpbench.schema.encoding import Encoding, encoding_of
from dpbench.version import __version__

CLASSES_READ = "the set of classes in y"  # they were not given
CALIBRATED = 1e-3  # relative, of the noise of one plan by two versions of the libraries
Label: TypeAlias = str | int | float | bool


class Model(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, dict=True):
    """A linear model of a table, or of an array whose columns are those of the schema in order.

    Args:
        spec: what was asked for, with the method that was chosen. loss: of W, by its name.
        schema: somebody's, or of an array (positional) made of its bounds. features: the names of the array's columns,
            if they had any; typed: it had a type of numbers. intercept: whether rows have a column of ones in front.
        labels: of the classes, with their types; None of a number. classes_read: they were read off y.
        bound: on the length of rows, where one was found. window: around the target, where there is one.
        W: (scores, d), a score a row. intervals: of its weights, where they were asked for.
    """

    spec: Spec
    loss: str
    schema: Schema
    positional: bool
    intercept: bool
    labels: tuple[Label, ...] | None
    classes_read: bool
    bound: float | None
    W: list[list[float]]
    features: list[str] = []
    typed: bool = True
    window: windows.Window | None = None
    intervals: intervals.Intervals | None = None

    def __post_init__(self) -> None:
        # A file may be edited: whatever follows from the schema is computed, and not believed.
        bare = encoding_of(self.schema, intercept=self.intercept, positional=self.positional)
        k = len(self.labels or ())
        if any(getattr(self.spec, name) != value for name, value in of_encoding(bare, self.spec.n, k).items()):
            raise ValueError("its spec is not that of its schema")
        if self.positional and any(one.bounds is None for one in self.schema.columns.values()):
            raise ValueError("arrays have columns of numbers alone")
        if self.features and (not self.positional or len(self.features) != len(self.schema.columns)):
            raise ValueError("its features are not the columns of its schema")
        numbers = self.schema.target.classes is None
        losses = ("squared",) if numbers else ("logistic", *[f"softmax-{k}"] * (k > 2))
        if numbers != (self.labels is None) or self.spec.loss != losses[0] or self.loss not in losses:
            raise ValueError("its target, labels and loss do not fit")
        if self.labels != self.schema.target.classes:
            raise ValueError("its classes are not those of its schema")
        if self.spec.relation != rules.RELATION.value:
            raise ValueError("its release is private when one row is replaced; it says other neighbours")
        if self.classes_read and (numbers or not self.positional):
            raise ValueError("its classes were not read off y")
        outputs = 1 if k <= 2 else k
        if len(self.W) != outputs or any(len(row) != self.spec.d for row in self.W):
            raise ValueError(f"its weights are not {outputs} × {self.spec.d}, as its classes and columns ask for")
        if not all(math.isfinite(weight) for row in self.W for weight in row):
            raise ValueError("a weight is not finite")
        if self.window is not None and (self.bound != self.window.bound or len(self.window.middles) != self.spec.d):
            raise ValueError("its window is not that of its columns and its row bound")
        if (self.intervals is None) == self.spec.intervals:
            raise ValueError("its intervals are not what was asked for")
        if self.intervals and len(self.intervals.centres) not in (0, len(self.compared)):
            raise ValueError("its intervals are not those of its columns")
        if self.bound is not None and not self._possible(self.bound):
            raise ValueError(f"its row bound, {self.bound:g}, is none that can be found")
        if self.spec.unit != (self.schema.unit or (self.spec.unit and GROUPS)):
            raise ValueError("its unit is not that of its schema")
        if not self.positional:
            self.schema.require_decided()

    def _possible(self, bound: float) -> bool:
        """Whether a bound is by the rule, or one that a release can have."""
        lengths = self.spec.lengths
        if self.window is not None and not self.window.intercept:
            return 0 < bound <= lengths.unit
        if math.isclose(bound, row_bounds.by_rule(lengths), rel_tol=1e-9):
            return True
        least, most = (row_bounds.bound_of(end, 0.0, lengths) for end in (0.0, math.inf))
        return least * (1 - 1e-9) <= bound <= most * (1 + 1e-9)

    @cached_property
    def encoding(self) -> Encoding:
        """What makes rows, over the bound that was found."""
        bare = encoding_of(self.schema, intercept=self.intercept, positional=self.positional)
        return bare if self.bound is None or self.window is not None else replace(bare, bound=self.bound)

    @cached_property
    def plan(self) -> FitPlan:
        """The plan of its fit, made again."""
        return plan(self.spec)

    @cached_property
    def weights(self) -> np.ndarray:
        """W as an array."""
        return np.array(self.W)

    def scores(self, X: Any) -> np.ndarray:
        """(n, scores) of a table or an array."""
        rows = self.encoding.rows(X)
        if self.window is None:
            return rows @ self.weights.T
        rows = self.window.rows(rows, self.encoding.unit, self.spec.lengths.numbers)
        return self.window.predictions(rows @ self.weights.T)

    @property
    def compared(self) -> dict[int, str]:
        """See `own.intervals`."""
        return intervals.compared(self.encoding, windowed=self.window is not None)

    @property
    def interval_notes(self) -> list[str]:
        """What the intervals cover, a line each."""
        if self.intervals is None:
            return []
        drawn = "persons" if self.spec.unit else "rows"
        return intervals.words(
            self.intervals, self.bound or self.encoding.bound, self.spec.lengths.unit, drawn, self.labels or ()
        )

    def interval_table(self) -> list[dict[str, Any]]:
        """name, estimate, low and high of each slope, on features (of tables: `encoding.names`) and target as given."""
        if self.intervals is None:
            return []
        low, high = self.schema.target.bounds or (-1.0, 1.0)
        return intervals.table(self.intervals, self.compared, self.scales * (high / 2 - low / 2))

    @property
    def scales(self) -> np.ndarray:
        """(d,): what a weight is multiplied by, as `in_units` does."""
        scale = 1 / self.encoding.unit if self.window is None else self.window.half / self.window.bound
        scales = np.full(self.spec.d, scale)
        if self.positional:
            step: Any = self.encoding.steps[0]
            scales[int(self.intercept) :] /= step.high / 2 - step.low / 2
        return scales

    def in_units(self) -> tuple[np.ndarray, np.ndarray]:
        """(coefficients (scores, columns), intercepts (scores,)) of `scores`, for rows that are not shortened.

        Of arrays: on features as given, within their bounds. Of tables: on `encoding.names`, where a number is in
        [-1, 1] and a category is 0 or 1.
        """
        free, first = self.weights / self.encoding.unit, int(self.intercept)
        if self.window is not None:
            free = self.window.half * self.weights / self.window.bound
            middle = free @ np.array(self.window.middles)
            free[:, 0] *= self.window.intercept
            free[:, 0] += self.window.middle + self.window.half * self.window.mean - middle
        slopes, start = free[:, first:], free[:, 0] if first else np.zeros(len(free))
        if self.positional:
            step: Any = self.encoding.steps[0]
            slopes = slopes / (step.high / 2 - step.low / 2)
            start = start - slopes @ (step.high / 2 + step.low / 2)
        return slopes, start

    def public(self, method: Sequence[str]) -> list[str]:
        """What counts as public; method: what the method and the row bound take for it."""
        weights = dict(zip(self.labels or (), self.spec.class_weights or (), strict=False))
        more = ["row_bound"] * (self.schema.row_bound is not None and self.positional)
        more += [f"class weights ({', '.join(f'{k}: {v:g}' for k, v in weights.items())})"] * bool(weights)
        more += method
        size = number_of(self.spec.unit)
        types = ["the column types"] * (not (self.positional and self.typed))  # found by looking at all rows
        if not self.positional:
            return [size, "the schema", *types, *more]
        target = "target_bounds" if self.labels is None else CLASSES_READ if self.classes_read else "classes"
        return [size, "the columns", *types, "bounds", target, *more]

    def statement(self, made: str, releases: Composition, plan: FitPlan, charge: str = "") -> Statement:
        """Of a plan and what was released by it. No other code makes a statement.

        made: when, in UTC. charge: the mark of a `DataBudget`.
        """
        whole, public, settings = plan.whole, self.public(plan.public), msgspec.to_builtins(plan.settings)
        of = (whole.epsilon, whole.delta, whole.relation.value, plan.arithmetic, public)
        versions = {"dpbench": __version__, "python": platform.python_version()}
        versions |= {name: metadata.version(name) for name in ("numpy", "dp-accounting")}
        return Statement(
            made=made, mechanism=plan.name, settings=settings, epsilon=whole.epsilon, delta=whole.delta,
            relation=whole.relation.value, public=public, arithmetic=plan.arithmetic, rows=self.spec.n,
            guarantee=sentence(*of, word_of=algorithms.not_ours(plan.name, settings), unit=self.spec.unit),
            releases=listed(releases), versions=versions, charge=charge, unit=self.spec.unit,
        )  # fmt: skip


def probabilities(scores: np.ndarray, *, together: bool) -> np.ndarray:
    """(n, k) of the scores (n, 1) of the second of two classes, or of (n, k): their logistic function, over its sum.

    together: the scores are of one softmax model, whose probabilities they are up to a constant.
    """
    if together:
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(p / p.sum(axis=1, keepdims=True))
    p = 0.5 * (1 + np.tanh(scores / 2))
    if p.shape[1] == 1:
        return np.hstack([1 - p, p])
    return np.asarray(p / np.maximum(p.sum(axis=1, keepdims=True), np.finfo(float).tiny))


def model_of(fitted: Fitted, **of_rows: Any) -> Model:
    """What is kept of a fit; of_rows: how its rows were read, as of `Model`."""
    plan = fitted.plan
    loss = f"softmax-{plan.problem.loss.outputs}" if plan.problem.loss.outputs > 1 else plan.spec.loss
    spec = msgspec.structs.replace(plan.spec, algorithm=plan.name)
    step_intervals = None
    if fitted.step is not None:
        encoding = encoding_of(of_rows["schema"], intercept=of_rows["intercept"], positional=of_rows["positional"])
        columns = intervals.compared(encoding, windowed=fitted.window is not None)
        step_intervals = intervals.of(fitted.step, columns, spec.n)
    return Model(spec=spec, loss=loss, bound=fitted.bound, window=fitted.window, W=fitted.W.tolist(),
                 intervals=step_intervals, **of_rows)  # fmt: skip


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def save(path: str | os.PathLike[str], model: Model, statement: Statement) -> None:
    """Write model and statement as JSON; refused where `load` would refuse it."""
    check_model(model, statement)
    content = msgspec.to_builtins(model)
    if model.intervals is None:  # so that a file is what it was before there were any
        del content["intervals"]
    statements.write(path, content, statement)


def load(path: str | os.PathLike[str]) -> tuple[Model, Statement, list[str]]:
    """(model, its statement, a line for each thing that was computed again) of a file that `save` wrote.

    Raises:
        UserError: the file is none that dpbench wrote, or it is damaged.
        DoesNotHold: the statement does not fit the model, or what it says can be computed and is not so.
    """
    content, statement = statements.read(path)
    # Earlier versions also fitted tables whose bounds were given by name, and said which those are.
    if content.pop("written", not content.get("positional")) == content.get("positional"):
        raise UserError(f"{path}: it is of a table without a schema, which this version does not read; fit by a schema")
    try:
        model = msgspec.convert(content, Model)
    except (msgspec.ValidationError, UserError, ArithmeticError) as error:
        raise UserError(f"{path}: not a model that dpbench saved ({error})") from None
    try:
        return model, statement, check_model(model, statement)
    except UserError as error:
        raise type(error)(f"{path}: {error}") from None


def statement(model: str | os.PathLike[str]) -> tuple[Statement, list[str]]:
    """The release statement of a model that an estimator saved, and one line for each thing that was computed again.

    Args:
        model: the file.

    Raises:
        UserError: the file is none that dpbench wrote, or it is damaged.
        DoesNotHold: something that it states can be computed and is not so.
    """
    return load(model)[1:]


def check_model(model: Model, stated: Statement) -> list[str]:
    """What holds of a statement, a line each; DoesNotHold for what does not."""
    stranger = algorithms.not_ours(stated.mechanism, stated.settings)
    wrong = statements.check_statement(stated, word_of=stranger)
    if stated.mechanism.startswith(algorithms.SERVED):
        stranger = stated.mechanism  # nothing of its code is run to read a model
    # A method of a plug-in cannot be planned again, as its code may be another by now.
    if model.spec.algorithm != stated.mechanism:
        raise DoesNotHold(f"it states {stated.mechanism}, and its model was fitted by {model.spec.algorithm}")
    if stranger is not None:
        right: dict[str, Any] = {"epsilon": model.spec.epsilon, "rows": model.spec.n, "unit": model.spec.unit}
        least = model.public([])
        if stated.public[: len(least)] != least:
            raise DoesNotHold(f"it counts {', '.join(least)} as public, but states {', '.join(stated.public)}")
    else:
        plan = _plan(model, stated)
        again = model.statement(stated.made, stated.composition, plan, stated.charge)
        names = ("settings", "epsilon", "delta", "relation", "public", "arithmetic", "guarantee", "rows", "unit")
        right = {name: getattr(again, name) for name in names}
    for name, value in right.items():
        if getattr(stated, name) != value:
            raise DoesNotHold(f"it states {name} {getattr(stated, name)!r}, where its plan makes {value!r}")
    if stranger is not None:
        return wrong
    if not plan.releases:
        return [*wrong, f"{stated.mechanism} makes releases of these kinds"]
    # Calibrations of two machines differ in their last digits, counts and kinds never.
    if not alike(plan.releases, stated.composition):
        # The rules of another version may be others; that it is one is a word of the file.
        if stated.versions.get("dpbench") == __version__:
            raise DoesNotHold(f"{stated.mechanism} plans other releases for its settings, n, ε, δ and classes")
        return wrong
    return [*wrong, "its releases are those of its plan: method, settings, n, columns, classes, ε and δ"]


def _plan(model: Model, stated: Statement) -> FitPlan:
    """The plan of a model's own method; DoesNotHold where there is none, or it does not fit the weights."""
    try:
        plan = model.plan
    except (UserError, PrivacyError, ArithmeticError, TypeError, AttributeError) as error:
        raise DoesNotHold(f"{stated.mechanism} has no such fit: {error}") from None
    if plan.spec.reproducible:
        raise DoesNotHold("it was fitted with a random_state, so it is no release")
    if (plan.problem.loss.outputs > 1) != (model.loss not in ("logistic", "squared")):
        raise DoesNotHold(f"its loss is {model.loss}, which its plan does not fit")
    if (model.bound is None) != (plan.bound is None) or (model.window is not None) != plan.windowed:
        raise DoesNotHold("its row bound is not that of its plan")
    if model.window is not None and model.window.intercept is isinstance(plan.bound, windows.WindowSplit):
        raise DoesNotHold("its window is not that of its plan")
    undeclared = {entry.label for entry in stated.composition} - plan.method.labels - {*windows.LABELS}
    if undeclared:
        raise DoesNotHold(f"{stated.mechanism}: it does not release {min(undeclared)}")
    bounding = sum(entry.count for entry in stated.composition if entry.label in windows.LABELS)
    if bounding != sum(entry.count for entry in (plan.bound.planned if plan.bound else ())):
        raise DoesNotHold("its row bound is not that of its releases")
    return plan


def alike(planned: Composition, stated: Composition) -> bool:
    """Whether two lists of releases are the same but for the digits of a calibration."""

    def counts(composition: Composition) -> list[tuple[str, int, list[tuple[str, Any]]]]:
        added: dict[tuple[Release, str], int] = {}
        for release, count, label in composition:
            added[release, label] = added.get((release, label), 0) + count
        return sorted([(label, n, list(leaves(plain(one)))) for (one, label), n in added.items()], key=repr)

    ours, theirs = counts(planned), counts(stated)
    return len(ours) == len(theirs) and all(
        a[:2] == b[:2] and len(a[2]) == len(b[2]) and all(map(_equal, a[2], b[2]))
        for a, b in zip(ours, theirs, strict=True)
    )


def _equal(one: tuple[str, Any], other: tuple[str, Any]) -> bool:
    (name, a), (there, b) = one, other
    return name == there and (math.isclose(a, b, rel_tol=CALIBRATED) if type(a) is type(b) is float else a == b)
