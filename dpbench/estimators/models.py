"""Private linear models with scikit-learn's interface.

All that the models take of the data beyond the budget is public and given, never estimated: the range of each feature
(`bounds`) and of a numeric target (`target_bounds`). Values outside are moved to the nearest end, which is a function
of one row and costs nothing. Public too are the numbers of rows and columns, their names, and the set of classes,
which is best given as `classes`. A `schema` says all of it for a table with categories, dates and missing cells.
"""

from __future__ import annotations

import math
import os
import platform
import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timezone
from importlib import metadata
from typing import Any, ClassVar, Literal, NamedTuple

import msgspec
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from dpbench import algorithms
from dpbench import schema as schemas
from dpbench.algorithms import defaults
from dpbench.algorithms.base import make_settings
from dpbench.algorithms.defaults import public_settings
from dpbench.errors import PrivacyError, UserError, nearest, positive
from dpbench.estimators.saved import Parameters, Saved, check_classes, middle_of, public
from dpbench.estimators.saved import read as read_model
from dpbench.estimators.saved import write as write_model
from dpbench.frames import unnamed
from dpbench.privacy.budget import share
from dpbench.privacy.check import together
from dpbench.privacy.data_budget import DataBudget
from dpbench.privacy.ledger import Composition, Relation, counted
from dpbench.privacy.statement import Statement, released, sentence
from dpbench.privacy.verify import spent
from dpbench.problems import Declaration, losses
from dpbench.run import row_bound as row_bounds
from dpbench.run.bind import budget_of
from dpbench.run.fit import REPRODUCIBLE, Fit, fit
from dpbench.run.job import check_delta, delta_value
from dpbench.run.row_bound import plan_of
from dpbench.schema import Lengths
from dpbench.version import __version__

AUTO = "auto"
EVERY = Lengths(np.ones(1, dtype=bool), 1, 0, 0)  # where no columns are known yet
LARGEST_EPSILON = 1e6


class ParameterError(UserError, ValueError):
    """A parameter of an estimator that is missing or does not fit."""


class PrivacyWarning(UserWarning):
    """Something that was taken from the data without being paid for."""


class Terms(NamedTuple):
    """What a fit is, by the numbers of rows, columns and classes, ε and δ alone.

    algorithm: its name. problem: that of each of the `models`, which together may spend `budget`, (ε, δ). epsilon,
    delta: of each. accounting: what sets the noise. settings: those that differ from the method's defaults. row_bound:
    how a bound on the rows is found, and what that leaves; None where rows stay as they are.
    """

    algorithm: str
    problem: Declaration
    models: int
    budget: tuple[float, float]
    epsilon: float
    delta: float
    accounting: str
    settings: dict[str, Any]
    row_bound: row_bounds.Split | None = None

    def planned(self) -> list[tuple[Composition, float]]:
        """What each of the models would release, and its δ: its plan, checked as a fit's is, without any data."""
        method, fixed = algorithms.resolve(self.algorithm)
        budget = budget_of(method, self.problem.n, self.epsilon, self.delta, defaults.RELATION, self.accounting)
        return [
            (plan_of(method, self.problem, make_settings(method, {**fixed, **self.settings}), budget), self.delta)
        ] * self.models

    @property
    def releases(self) -> Composition:
        """All that the fit will release; nothing where a method says its releases only while it runs."""
        each = [composition for composition, _ in self.planned()]
        if not all(each):
            return ()
        bound = self.row_bound.planned if self.row_bound else ()
        return tuple(entry for composition in (bound, *each) for entry in composition)


@dataclass(eq=False, repr=False)  # scikit-learn compares and shows
class _Private(BaseEstimator):
    """What the two estimators share: parameters, public scaling, the fit of one model, and the account of all."""

    _loss: ClassVar[str]
    _kind: ClassVar[Literal["PrivateClassifier", "PrivateRegressor"]]

    epsilon: float = 1.0
    delta: float | str | None = None
    _: KW_ONLY
    algorithm: str = AUTO
    schema: Any = None
    bounds: Any = None
    categories: Mapping[str, Any] | None = None
    row_bound: float | row_bounds.RowBound | None = "auto"
    fit_intercept: bool = True
    l2: float | None = None
    settings: Mapping[str, Any] | None = None
    arithmetic: Literal["bytes", "real"] | None = None
    precision: Literal["float64", "float32"] = "float64"
    timing: Literal["constant"] | None = None
    random_state: Any = None
    budget: DataBudget | None = None

    # Public scaling

    def _scale(self, low: np.ndarray, high: np.ndarray) -> None:
        self._low, self._high = low, high
        intercept = int(bool(self.fit_intercept))
        numbers = np.arange(len(low) + intercept) >= intercept
        self._lengths: Lengths | None = Lengths(numbers, len(low), 0, intercept)
        self._known_bound: float | row_bounds.Way | None = self._number
        self._unit = self._divided = self._number or self._lengths.unit
        if self._coming is not None:
            self._unit, self._lengths = 1.0, self._coming
            self._divided = self._lengths.unit

    @property
    def _coming(self) -> Lengths | None:
        """See `as_encoded`."""
        return getattr(self, "_given", None)

    @property
    def _number(self) -> float | None:
        """The rows' bound where a number is given for it; ParameterError for a row_bound that is none."""
        if self.row_bound is None or (isinstance(self.row_bound, str) and self.row_bound in row_bounds.WAYS):
            return None
        if isinstance(self.row_bound, bool) or not isinstance(self.row_bound, int | float | np.number):
            raise ParameterError(
                f'row_bound must be a number, "auto", "private", "rule" or None, got {self.row_bound!r}'
            )
        return positive("row_bound", float(self.row_bound))

    @property
    def row_bound_(self) -> float | None:
        """The length beyond which rows are shortened, each number being in [-1, 1]; None where none is."""
        check_is_fitted(self)
        if self._encoder is not None:
            return self._encoder.row_bound
        return None if self._known_bound is None else self._unit

    def _rows(self, X: np.ndarray) -> np.ndarray:
        """(n, d') rows of ‖x‖₂ ≤ 1: features from their bounds to [-1, 1], an intercept in front, over `_unit`."""
        middle, half = middle_of((self._low, self._high))
        Z = (np.clip(np.where(np.isnan(X), middle, X), self._low, self._high) - middle) / half
        if self.fit_intercept:
            Z = np.hstack([np.ones((len(Z), 1)), Z])
        Z /= self._unit
        return Z if self._known_bound is None else schemas.shortened(Z)

    def as_encoded(self, lengths: Lengths) -> Any:
        """Itself, for X that is encoded and divided before it comes, as in a plan's worlds."""
        self._given: Lengths | None = lengths
        self._lengths = lengths
        return self

    def _in_units(self, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(coefficients (k, d), intercepts (k,)) on features as given, of models W (k, d') on `_rows`.

        Of a table: on `encoded_names_`, which are numbers from their bounds to [-1, 1], and zeros and ones.
        """
        if self._encoder is not None:
            free = W[:, int(bool(self.fit_intercept)) :] / self._unit
            return free, W[:, 0] / self._unit if self.fit_intercept else np.zeros(len(W))
        middle, half = middle_of((self._low, self._high))
        slopes = W[:, int(bool(self.fit_intercept)) :] / (self._unit * half)
        start = W[:, 0] / self._unit if self.fit_intercept else np.zeros(len(W))
        return slopes, start - slopes @ middle

    # One fit

    def decide(self, rows: int, columns: int, classes: int = 1, weights: tuple[float, ...] | None = None) -> Terms:
        """What a fit on so many rows and columns would be: no data are needed to say it.

        Args:
            rows: n ≥ 2.
            columns: of the rows as they are fitted, an intercept included.
            classes: how many there are if more than two; 1 for two classes and for numbers.
            weights: of the classes, positive and public.

        Raises:
            UserError: no method is covered by its proof there, or a parameter does not fit.
        """
        epsilon, delta = self._begin(rows)
        most, l2 = max(weights or (1.0,)), self._ridge(rows, columns)

        def declared(name: str, d: int, weighted: bool) -> Declaration:
            loss = losses.get(name)
            if weighted and weights is not None:
                loss = losses.Weighted(loss, tuple(one / most for one in weights))
            # All of the objective is divided by the largest weight.
            return Declaration(rows, d, loss=loss, l2=l2 / most, row_bound=1.0)

        name, models = self.algorithm, classes
        problem = declared(self._loss, columns, weighted=classes == 1)
        if classes > 1:
            together = declared(f"softmax-{classes}", classes * columns, weighted=True)
            name = defaults.method(together, delta, self._suits) if name == AUTO else name
            if _takes(name, together):
                problem, models = together, 1
            elif weights is not None:
                raise ParameterError(
                    f"class_weight: {name} fits each class against the rest; with weights leave algorithm out"
                )
        name = defaults.method(problem, delta, self._suits) if name == AUTO else name
        method, _ = algorithms.resolve(name)
        if not method.private:
            raise ParameterError(f"algorithm: {name} is not private; dpbench.fit runs it, and says so")
        accounting = defaults.accounting(method)
        if defaults.delta(method) == 0:
            delta = 0.0

        def at(epsilon: float, delta: float) -> Terms:
            """What the models would be within so much."""
            each = share(epsilon, delta, models, gaussian=method.gaussian and accounting == "tight")
            settings = public_settings(name, problem.n, problem.d, each[0]) | self._settings()
            if flaw := method.flaw(make_settings(method, {**algorithms.resolve(name)[1], **settings}), accounting):
                raise ParameterError(f"settings: so set, {name} keeps no ε ({flaw}); dpbench.fit runs it, and says so")
            return Terms(name, problem, models, (epsilon, delta), *each, accounting, settings)

        lengths: Lengths | None = None if self._number is not None else getattr(self, "_lengths", EVERY)
        how = self.row_bound if isinstance(self.row_bound, str) and lengths is not None else None
        way = row_bounds.decided(
            how, lengths or EVERY, epsilon, delta, defaults.RELATION, lambda *left: at(*left).planned()
        )
        if way is None:
            return at(epsilon, delta)
        return at(way.epsilon, way.delta)._replace(budget=(epsilon, delta), row_bound=way)

    def _begin(self, rows: int) -> tuple[float, float]:
        """(ε, δ) of the fit; what is checked needs no data but their number."""
        if rows < 2:
            raise ParameterError("X has 1 sample: n_samples=1 protects nobody; give two rows at least")
        if self.budget is not None and not isinstance(self.budget, DataBudget):
            raise ParameterError(f"budget must be a dpbench.DataBudget or None, got {self.budget!r}")
        if self.fit_intercept not in (True, False):
            raise ParameterError(f"fit_intercept must be True or False, got {self.fit_intercept!r}")
        if self.l2 is not None and (not isinstance(self.l2, int | float | np.number) or not 0 <= self.l2 < math.inf):
            raise ParameterError(f"l2 must be a number >= 0 or None, got {self.l2!r}")
        self._settings()
        delta = check_delta("n^-2" if self.delta is None else self.delta)
        epsilon = positive("epsilon", self.epsilon)
        if epsilon > LARGEST_EPSILON:
            raise ParameterError(f"epsilon must be at most {LARGEST_EPSILON:g}, which protects nobody, got {epsilon:g}")
        return epsilon, delta_value(delta, rows)

    def _ridge(self, rows: int, columns: int) -> float:
        """l2, or what stands for None: classes that a line separates have no optimum without any."""
        if self.l2 is not None:
            return float(self.l2)
        named = None if self.algorithm == AUTO else algorithms.resolve(self.algorithm)[0]
        if self._loss == "squared" or (named is not None and "l2" not in named.needs.regularisers):
            return 0.0
        return 1 / (rows * columns)

    def _settings(self) -> dict[str, Any]:
        """Of the algorithm, those given."""
        if self.settings is not None and not isinstance(self.settings, Mapping):
            raise ParameterError(f"settings must be {{name: value}}, got {self.settings!r}")
        return dict(self.settings or {})

    def _read(self, X: Any, y: Any) -> np.ndarray:
        """(n, d') rows of ‖x‖₂ ≤ 1 of a table or an array; sets how they are made, and what the target may be."""
        self._encoder = self._declared(X, y)
        if self._encoder is None:
            if self.bounds is None:
                raise ParameterError(
                    "bounds: give the public range of the features, (low, high), numbers or one per column; it is "
                    "never taken from the data, which would reveal something about them"
                )
            self._scale(*_bounds("bounds", self.bounds, X.shape[1]))
            return self._rows(X)
        found = schemas.encode(self._encoder, X, intercept=bool(self.fit_intercept))
        self._unit = self._divided = found.unit
        lengths = schemas.lengths_of(self._encoder, intercept=bool(self.fit_intercept))
        self._lengths, self._known_bound = None if self._encoder.row_bound else lengths, self._number
        self.encoded_names_ = found.columns
        self.feature_names_in_ = np.array([n for n, c in self._encoder.columns.items() if not c.drop], dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        return found.X

    def _bounded(self, rows: np.ndarray, decided: Terms) -> tuple[np.ndarray, list[dict[str, Any]]]:
        """Rows over the bound that is found, and the ledger of that; the bound is what rows are divided by then."""
        if decided.row_bound is None:
            return rows, []
        assert self._lengths is not None  # elsewhere there is none to find
        method, _ = algorithms.resolve(decided.algorithm)
        seed = _seeds(self.random_state, 1)[0]
        found = row_bounds.release(
            rows,
            self._lengths,
            self._divided,
            decided.row_bound,
            budget_of(method, decided.problem.n, *decided.budget, defaults.RELATION, decided.accounting),
            seed=seed,
            arithmetic=self.arithmetic,
        )
        shorter = found.bound / self._divided
        self._unit = found.bound if self._coming is None else shorter
        self._known_bound = decided.row_bound.way
        if self._encoder is not None:
            self._encoder = msgspec.structs.replace(self._encoder, row_bound=found.bound)
        return schemas.shortened(rows / shorter), found.ledger

    @property
    def _table(self) -> bool:
        """Whether X is a table, whose columns are known by name."""
        return self.schema is not None or self.categories is not None or isinstance(self.bounds, Mapping)

    def _target(self, X: Any, y: Any, kind: str) -> tuple[np.ndarray, np.ndarray]:
        """What a schema makes of the target, `kind` "classes" or "bounds": see `schema.encode_target`."""
        assert self._encoder is not None
        target = self._encoder.target
        if getattr(target, kind) is None:
            raise ParameterError(f"schema: its target has no {kind}, which {type(self).__name__} needs")
        if y is None and target.name not in X.columns:
            raise ParameterError(f"y: there is no column {target.name!r} in X; give y")
        values, known = schemas.encode_target(target, X[target.name] if y is None else y)
        if len(values) != len(X):
            raise ParameterError(f"y: {len(values)} values for {len(X)} rows")
        return values, known

    def _declared(self, X: Any, y: Any) -> schemas.Schema | None:
        """The schema of a table: the one given, or one of bounds and categories by name; None for an array."""
        if not self._table:
            return None
        if self.schema is not None and not isinstance(self.schema, schemas.Schema | str | os.PathLike):
            raise ParameterError(f"schema must be a dpbench.schema.Schema or its TOML file, got {self.schema!r}")
        if not hasattr(X, "columns"):
            raise ParameterError("X: give a pandas DataFrame, whose columns the schema names")
        if self.schema is not None:
            found = schemas.load(self.schema)
            twice = [name for name in ("bounds", "categories") if getattr(self, name) is not None]
            if self._number is not None or (found.row_bound is not None and self.row_bound not in (None, "auto")):
                twice.append("row_bound")
            if twice:
                raise ParameterError(f"{twice[0]}: the schema says it; leave it out")
            found.require_decided()
            return found
        if self.categories is not None and not isinstance(self.categories, Mapping):
            raise ParameterError(f"categories must be {{column: values}}, got {self.categories!r}")
        categories = dict(self.categories or {})
        bounds = (
            self.bounds
            if isinstance(self.bounds, Mapping)
            else dict.fromkeys([name for name in X.columns if name not in categories], self.bounds)
        )
        try:
            columns = {
                str(name): schemas.Column(bounds=(float(low), float(high))) for name, (low, high) in bounds.items()
            }
            columns |= {
                str(name): schemas.Column(categories=tuple(_category(one) for one in found))
                for name, found in categories.items()
            }
            anything = schemas.Target(name="", classes=("", " "))  # y is read by what the estimator itself is given
            return schemas.Schema(target=anything, columns=columns, row_bound=self._number)
        except (TypeError, ValueError) as error:
            raise ParameterError(f"bounds, categories: {error}") from None

    def _models(
        self,
        rows: np.ndarray,
        targets: np.ndarray,
        classes: np.ndarray | None = None,
        weights: tuple[float, ...] | None = None,
    ) -> np.ndarray:
        """W (k, d'): one model per row of targets (k, n), all within the one budget; sets what was spent.

        classes: (n,) numbers of k classes, from 0, where a method that takes them together serves all models at once.
        weights: of the classes, positive and public.
        """
        decided = self.decide(len(rows), rows.shape[1], len(targets), weights)
        if decided.models < len(targets):
            assert classes is not None
            targets = classes[None]
        self.n_rows_: int = len(rows)
        name, (epsilon, delta) = decided.algorithm, decided.budget
        self.loss_ = self._loss if decided.problem.loss.outputs == 1 else f"softmax-{decided.problem.loss.outputs}"
        seeds = _seeds(self.random_state, len(targets))
        planned: Composition = ()
        if self.budget is not None:
            planned = decided.releases
            what = f"{type(self).__name__}, {name}"
            self.budget.charge(what, planned, epsilon, delta, relation=Relation.REPLACE_ONE.value)
        rows, bounding = self._bounded(rows, decided)
        fits = [
            fit(
                rows,
                y,
                algorithm=name,
                epsilon=decided.epsilon,
                delta=decided.delta,
                loss=decided.problem.loss,
                l2=decided.problem.l2,
                seed=seed,
                accounting=decided.accounting,
                relation=Relation.REPLACE_ONE.value,
                bound="rescale",  # what `_rows` made is within it but for a rounding
                arithmetic=self.arithmetic,
                precision=self.precision,
                timing=self.timing,
                **decided.settings,
            )
            for y, seed in zip(targets, seeds, strict=True)
        ]
        self._account(decided, fits, bounding)
        if planned and counted(self._composition) != counted(planned):
            raise PrivacyError(f"budget: {name} released something else than it was charged for")
        return np.stack([one.w for one in fits]).reshape(-1, rows.shape[1])

    def _suits(self, name: str) -> bool:
        """Whether a method has the arithmetic that is asked for."""
        return bool(algorithms.resolve(name)[0].exact) or self.arithmetic != "bytes"

    def _account(self, decided: Terms, fits: list[Fit], bounding: list[dict[str, Any]]) -> None:
        name, (epsilon, delta), way = decided.algorithm, decided.budget, decided.row_bound
        parts = [(one.released.composition, one.released.epsilon_planned, one.released.delta) for one in fits]
        parts = [*(way.parts if way else []), *parts]
        relation = Relation(fits[0].released.relation)
        self.algorithm_ = name
        self.settings_ = fits[0].settings
        self.delta_ = delta
        self.epsilon_ = together(parts, epsilon, delta, relation) if len(parts) > 1 else parts[0][1]
        self._composition = tuple(entry for composition, _, _ in parts for entry in composition)
        self._relation = relation
        self.ledger_ = [{"model": "all", **line} for line in bounding]
        self.ledger_ += [{"model": i, **line} for i, one in enumerate(fits) for line in one.released.ledger]
        self.guarantee_ = fits[0].guarantee
        self.arithmetic_ = fits[0].released.arithmetic
        self.public_ = ["n", *self._public(), *filter(None, [fits[0].released.counts_public])]
        if self.guarantee_ != REPRODUCIBLE:
            of = (epsilon, delta, relation.value, self.arithmetic_, self.public_)
            self.guarantee_ = sentence(*of, word_of=algorithms.not_ours(name, self.settings_))

    # The model as a file

    def statement(self) -> Statement:
        """What the release of this model is: mechanism, ε, δ, what counts as public. UserError if it is no release."""
        check_is_fitted(self)
        if self.guarantee_ == REPRODUCIBLE:
            raise ParameterError(
                "random_state: a fit with one is no release, so there is nothing to state; fit without"
            )
        versions = {"dpbench": __version__, "python": platform.python_version()}
        versions |= {name: metadata.version(name) for name in ("numpy", "dp-accounting")}
        return Statement(
            made=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            mechanism=self.algorithm_,
            settings=msgspec.to_builtins(self.settings_),
            epsilon=float(self.epsilon),
            delta=float(self.delta_),
            relation=self._relation.value,
            public=self.public_,
            arithmetic=self.arithmetic_,
            guarantee=self.guarantee_,
            rows=self.n_rows_,
            releases=released(self._composition),
            versions=versions,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model and its statement as JSON: weights, schema or bounds, no rows, no pickle.

        `dpbench.load_model` reads it, `dpbench statement FILE` shows and checks the statement. A fit with a
        random_state is no release and is not saved.
        """
        model = Saved(
            kind=self._kind,
            parameters=Parameters(
                epsilon=float(self.epsilon),
                delta=None if self.delta is None else check_delta(self.delta),
                fit_intercept=bool(self.fit_intercept),
                l2=self._ridge(self.n_rows_, self.W_.shape[1]),
                row_bound=self._known_bound,
            ),
            schema=self._encoder,
            bounds=None if self._encoder is not None else (self._low.tolist(), self._high.tolist()),
            features=[str(name) for name in getattr(self, "feature_names_in_", [])],
            unit=float(self._unit),
            loss=self.loss_,
            W=self.W_.tolist(),
            **self._own_state(),
        )
        write_model(path, model, self.statement())

    def _own_state(self) -> dict[str, Any]:
        raise NotImplementedError

    def restore(self, model: Saved, statement: Statement) -> None:
        """Become the model that `save` wrote: see `load_model`."""
        self._encoder = model.schema
        if model.bounds is not None:
            self._low, self._high = (np.array(end) for end in model.bounds)
        self._known_bound = model.parameters.row_bound
        self._unit, self.loss_, self.W_ = model.unit, model.loss, np.array(model.W)
        self.n_features_in_ = len(model.features) if model.bounds is None else len(self._low)
        if model.features:
            self.feature_names_in_ = np.array(model.features, dtype=object)
        self._composition, self._relation = statement.composition, Relation(statement.relation)
        self.algorithm_, self.settings_, self.delta_ = statement.mechanism, statement.settings, statement.delta
        self.n_rows_ = statement.rows
        self.guarantee_, self.public_, self.arithmetic_ = statement.guarantee, statement.public, statement.arithmetic
        self.epsilon_ = spent(self._composition, self.delta_, self._relation).epsilon

    @property
    def profile_(self) -> np.ndarray:
        """(m, 2): δ from 1e-4·delta_ to 1e2·delta_, and the ε that all releases compose to at each; at δ = 0 alone.

        Computed when asked for, by the independent accountant. ε is infinite where it has no bound for the whole.
        """
        check_is_fitted(self)
        deltas = [delta for delta in self.delta_ * np.logspace(-4, 2, 7) if delta < 1] if self.delta_ else [0.0]
        return np.array([(delta, spent(self._composition, delta, self._relation).epsilon) for delta in deltas])

    def _public(self) -> list[str]:
        return public(self._kind, self._encoder, self._known_bound, classes_given=False, class_weights=None)

    def _checked(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        if self._encoder is not None:
            return schemas.encode(self._encoder, X, intercept=bool(self.fit_intercept), predicting=True).X
        return self._rows(_arrays(self, X, reset=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # a refusal would tell that there is one
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateClassifier(ClassifierMixin, _Private):
    """Logistic regression under (ε, δ)-differential privacy, one row replaced by another; any number of classes.

    With more than two classes it is softmax regression, one model of all classes, by a method that takes that loss
    ("auto" does). By any other method each class has a model of its own against the rest, and the budget is split among
    them: exactly for methods that release Gaussians alone (dp-gd), else as ε/k and δ/k.

    Args:
        epsilon: the budget ε > 0 of one fit, all classes together.
        delta: δ in [0, 1), "n^-2" or "n^-1"; None takes n⁻².
        classes: the public set of labels; a label beyond counts as the first of them. None reads the set off y, and
            `guarantee_` says so.
        class_weight: {class: weight > 0}, public: what an error on a row of the class counts, 1 where it is not given.
            Noise is set for the largest weight, so the rows of other classes weigh less beside it. "balanced" would
            be counted in the data, and is refused; so are weights of single rows (`sample_weight`).
        algorithm: a name from `dpbench list algorithms`, or "auto": by a rule in n, d, the number of classes and
            whether δ > 0, never by ε (`dpbench.algorithms.defaults`; the guide "The default methods" has what it was
            measured on).
        schema: what is public of a table (`dpbench.schema`), or its TOML file. X is then a pandas DataFrame; bounds,
            categories, row_bound and classes are left out. A label outside the classes makes its row zeros.
        bounds: (low, high), the public range of the features: two numbers, or two arrays with one for each column; with
            a DataFrame also {column: (low, high)}. Values beyond are moved to the nearest end, missing ones (NaN) to
            the middle. Required: nothing is taken from the data.
        categories: {column: values}, with a DataFrame: each becomes columns of 0 and 1, which add 1 at most to a row's
            length together; any other value is none of them.
        row_bound: a bound R on the length of a row once each feature is in [-1, 1] (an intercept counts as one more);
            longer rows are shortened. A public number; "private": from the mean square length, released within ε for
            3 % of it; "rule": 0.3·√(number of features), at least 1, of tables with categories more, and no release.
            None: √(number of features), which no row exceeds. "auto": "private" wherever there are columns of numbers,
            and "rule" where the method cannot say its releases before it runs. At ε = 1, "private" gains 6 points of
            accuracy over None on the sets of the guide "The default methods".
        fit_intercept: add a column of ones.
        l2: weight of ‖w‖²/2 on the scaled rows, the intercept's w included. None: 1/(n·d) of d columns once encoded,
            about what scikit-learn's C = 1 is; without it a model of many columns gets worse at the largest ε.
        settings: of the algorithm, over those of the rule.
        arithmetic: "bytes", "real" or None; precision:
            "float64" or "float32"; timing: "constant" or None. See `dpbench.fit`. "auto" keeps to methods that have
            what is asked for.
        random_state: None draws noise from the operating system's entropy, anew for every fit. A number or RandomState
            makes the fit repeatable, and no release: `guarantee_` says so.
        budget: a `DataBudget`, which this fit is charged to before it looks at the data; fits of clones, as in
            cross-validation, are too.

    Attributes:
        classes_: the labels, sorted; coef_, intercept_: of decision_function, on features as given (within `bounds`);
            of a row longer than `row_bound_` it is divided by its length over that.
        row_bound_: the bound on the rows that was given or found; None where no row is shortened.
        epsilon_: what the releases of all models compose to, by the independent accountant: at most `epsilon`.
        delta_; guarantee_: in words; public_: what counts as public; arithmetic_: "bytes" or "real".
        profile_: (δ, ε) pairs of the same releases. ledger_: one row per
            model and kind of release. algorithm_, settings_: used.
    """

    _loss, _kind = "logistic", "PrivateClassifier"

    classes: Any = None
    class_weight: Mapping[Any, float] | None = None

    def fit(self, X: Any, y: Any = None, **others: Any) -> PrivateClassifier:
        """Fit on X (n, d) and labels y (n,) of two values or more; with a schema, y may be a column of X."""
        _refuse(others)
        if not self._table:
            X, y = _arrays(self, X, y)
        rows = self._read(X, y)
        if self.schema is not None:
            index, known = self._target(X, y, "classes")
            self.classes_ = np.array(self._encoder.target.classes)  # type: ignore[union-attr]  # `_target` looked
            rows[~known] = 0.0
        else:
            index = self._index(np.asarray(y))
        if len(self.classes_) < 2:
            raise ParameterError("y has one class: a classifier needs two or more; give them all as classes=")
        positives = range(1, 2) if len(self.classes_) == 2 else range(len(self.classes_))
        targets = np.stack([np.where(index == i, 1.0, -1.0) for i in positives])
        together = index.astype(float) if len(positives) > 1 else None
        self.W_ = self._models(rows, targets, together, self._weights())
        self.coef_, self.intercept_ = self._in_units(self.W_)
        return self

    def _weights(self) -> tuple[float, ...] | None:
        """The public weights of `classes_`, 1 where none is given."""
        if self.class_weight is None:
            return None
        if not isinstance(self.class_weight, Mapping):
            counted = '; "balanced" would be counted in the data, and reveal them' * (self.class_weight == "balanced")
            raise ParameterError(f"class_weight: give public weights, as {{class: weight}}{counted}")
        word = schemas.word if self._encoder is not None and self.schema is not None else lambda one: one
        given = {word(label): weight for label, weight in self.class_weight.items()}
        known = self.classes_.tolist()
        if unknown := [label for label in given if label not in known]:
            raise ParameterError(
                f"class_weight: there is no class {unknown[0]!r}; {nearest(str(unknown[0]), map(str, known))}"
            )
        return tuple(positive("class_weight", given.get(label, 1.0)) for label in known)

    def _index(self, y: np.ndarray) -> np.ndarray:
        """(n,) places of the labels in `classes_`, which it sets."""
        if self.classes is None:
            check_classification_targets(y)
            warnings.warn(
                "the set of classes was read off y, which no ε covers; give it as classes=",
                PrivacyWarning,
                stacklevel=4,
            )
            self.classes_, index = np.unique(y, return_inverse=True)
            return index
        try:
            given = list(self.classes)
            check_classes([one.item() if isinstance(one, np.generic) else one for one in given])
            self.classes_ = np.unique(np.asarray(given))
        except (TypeError, ValueError) as error:
            why = str(error) if isinstance(error, ValueError) else "give a list of texts, or of numbers"
            raise ParameterError(f"classes: {why}") from None
        if len({isinstance(one, str) for one in given}) > 1:
            raise ParameterError("classes: texts and numbers at once; give one kind")
        index = np.searchsorted(self.classes_, y).clip(max=len(self.classes_) - 1)
        index[self.classes_[index] != y] = 0
        return index

    def _public(self) -> list[str]:
        weights = self._weights()
        told = None if weights is None else dict(zip(self.classes_.tolist(), weights, strict=True))
        given = self.classes is not None
        return public(self._kind, self._encoder, self._known_bound, classes_given=given, class_weights=told)

    def _own_state(self) -> dict[str, Any]:
        weights = self._weights()
        return {"classes": self.classes_.tolist(), "class_weights": None if weights is None else list(weights)}

    def restore(self, model: Saved, statement: Statement) -> None:
        """Become the model that `save` wrote: see `load_model`."""
        assert model.classes is not None  # the reader looked
        self.classes_ = np.array(model.classes)
        if model.class_weights is not None:
            self.class_weight = dict(zip(model.classes, model.class_weights, strict=True))
        super().restore(model, statement)
        self.coef_, self.intercept_ = self._in_units(self.W_)

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores: (n,) of the second of two classes, (n, k) of more."""
        scores = self._checked(X) @ self.W_.T
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any) -> np.ndarray:
        """(n, k): the softmax of the scores, or their logistic function, of more than two classes over its sum.

        Not calibrated: noise and the ridge that bounds it move them, to the middle mostly, and `class_weight` to the
        heavier classes. A calibrator that is fitted to the private rows looks at them, which no ε here covers; fit
        one on public rows.
        """
        scores = self.decision_function(X)
        if self.loss_ != self._loss:
            p = np.exp(scores - scores.max(axis=1, keepdims=True))
            return p / p.sum(axis=1, keepdims=True)
        p = 0.5 * (1 + np.tanh(scores / 2))
        if scores.ndim == 1:
            return np.column_stack([1 - p, p])
        return p / np.maximum(p.sum(axis=1, keepdims=True), np.finfo(float).tiny)

    def predict(self, X: Any) -> np.ndarray:
        """(n,) labels."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateRegressor(RegressorMixin, _Private):
    """Linear least squares under (ε, δ)-differential privacy, one row replaced by another.

    Args:
        target_bounds: (low, high), the public range of the target; values beyond are moved to the nearest end.
            Required: nothing is taken from the data.
        epsilon, delta, algorithm, schema, bounds, categories, row_bound, fit_intercept: as of `PrivateClassifier`.
        l2: the ridge, on a target scaled to [-1, 1]; None: 0.
        settings, arithmetic, precision, timing, random_state, budget: as of `PrivateClassifier`.

    Attributes:
        coef_, intercept_: of predict, on features and target as given (within their bounds). The others as of
            `PrivateClassifier`.
    """

    _loss, _kind = "squared", "PrivateRegressor"

    target_bounds: tuple[float, float] | None = None

    def fit(self, X: Any, y: Any = None, **others: Any) -> PrivateRegressor:
        """Fit on X (n, d) and numbers y (n,); with a schema, y may be a column of X."""
        _refuse(others)
        if not self._table:
            X, y = _arrays(self, X, y, y_numeric=True)
        rows = self._read(X, y)
        if self.schema is not None:
            targets, known = self._target(X, y, "bounds")
            rows[~known] = 0.0
            low, high = self._encoder.target.bounds  # type: ignore[union-attr,misc]  # `_target` looked
        else:
            y = np.asarray(y)
            if y.dtype.kind not in "biuf":
                raise ParameterError("y: not numbers; PrivateClassifier takes classes")
            if self.target_bounds is None:
                raise ParameterError("target_bounds: give the public range of the target, (low, high)")
            (low,), (high,) = _bounds("target_bounds", self.target_bounds, 1)
            middle, half = middle_of((low, high))
            targets = (np.clip(np.where(np.isnan(y), middle, y), low, high) - middle) / half
        self._middle, self._half = (float(one) for one in middle_of((low, high)))
        self.W_ = self._models(rows, targets[None])
        self._in_target_units()
        return self

    def _in_target_units(self) -> None:
        slopes, start = self._in_units(self.W_)
        self.coef_: np.ndarray = slopes[0] * self._half
        self.intercept_: Any = float(start[0] * self._half + self._middle)

    def _own_state(self) -> dict[str, Any]:
        return {"target": (self._middle, self._half)}

    def restore(self, model: Saved, statement: Statement) -> None:
        """Become the model that `save` wrote: see `load_model`."""
        super().restore(model, statement)
        assert model.target is not None  # the reader looked
        self._middle, self._half = model.target
        self._in_target_units()

    def predict(self, X: Any) -> np.ndarray:
        """(n,) predictions, within `target_bounds`."""
        scores = self._checked(X) @ self.W_[0]
        return self._middle + self._half * np.clip(scores, -1, 1)


def load_model(path: str | os.PathLike[str]) -> PrivateClassifier | PrivateRegressor:
    """A model that `save` wrote, ready to predict; its statement is composed again before it is believed.

    Raises:
        UserError: the file is none that dpbench wrote, or it is damaged.
        DoesNotHold: something that it states can be computed and is not so.
    """
    model, statement, _ = read_model(path)
    kind: Any = {one.__name__: one for one in (PrivateClassifier, PrivateRegressor)}[model.kind]
    found: PrivateClassifier | PrivateRegressor = kind(**msgspec.structs.asdict(model.parameters))
    found.restore(model, statement)
    return found


def _bounds(name: str, bounds: Any, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """(low, high), each (columns,); ParameterError where they are no pair of finite numbers or arrays, low < high."""
    if isinstance(bounds, list) and bounds and all(isinstance(pair, tuple) for pair in bounds):
        raise ParameterError(
            f"{name}: a list of pairs, one per column, is read as (low, high) by nobody; give (lows, highs), or "
            "{column: (low, high)} with a DataFrame"
        )
    try:
        low, high = (np.broadcast_to(np.asarray(end, dtype=float), columns) for end in bounds)
    except (TypeError, ValueError):
        each = "two numbers" if columns == 1 else f"two numbers, or two arrays of the {columns} columns"
        raise ParameterError(f"{name} must be (low, high): {each}, got {bounds!r}") from None
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise ParameterError(f"{name}: low < high, both finite, are needed" + " in every column" * (columns > 1))
    return low, high


def _arrays(estimator: BaseEstimator, X: Any, *y: Any, **how: Any) -> Any:
    """What scikit-learn makes of arrays, float64; ParameterError in words that hold no cell, as its own may."""
    nameless = [name for name in getattr(X, "columns", ()) if isinstance(name, str) and unnamed(name)]
    if nameless:
        raise ParameterError(
            f"X: the column {nameless[0]!r} has no name of its own, as the row numbers that to_csv writes; drop it"
        )
    kinds = X.dtypes if hasattr(X, "dtypes") else [getattr(X, "dtype", None)]
    if any(getattr(kind, "kind", "") in ("M", "m") for kind in kinds):  # nanoseconds since 1970 are nobody's meaning
        raise ParameterError(
            'X: dates are no numbers; make numbers of them, or give a DataFrame and a schema with date = ["year", …]'
        )
    try:
        return validate_data(estimator, X, *y, dtype=np.float64, ensure_all_finite=False, **how)
    except (TypeError, ValueError, OverflowError) as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        odd = "complex" in said.lower(), said.startswith("Expected 2D array")
        unread = isinstance(error, OverflowError) or any(word in said for word in UNREAD)
        wrong = type(error) if isinstance(error, TypeError) else ParameterError
    if odd[0]:
        said = "X, y: Complex data not supported; give real numbers"
    elif odd[1]:
        said = "X: Expected 2D array, rows × columns. Reshape your data"
    elif unread:
        said = (
            "X, y: every cell of the argument must be a number, or a string of a number, in rows of one length; a "
            "table goes in as a DataFrame, with a schema"
        )
    raise wrong(said)  # outside the handler, so that its error, with the cell, is not kept as the context


# How errors begin that go on with a cell.
UNREAD = ("could not convert", "inhomogeneous", "must be a string or a real number", "must be a real number",
          "setting an array element", "invalid literal", "argument must be a string", "not supported for")  # fmt: skip


def _category(value: Any) -> str:
    """A category as text; ValueError for what no cell can be, being missing."""
    if value is None or value != value:
        raise ValueError(f"{value!r} is a missing cell, and no category")
    return schemas.word(value)


def _refuse(others: Mapping[str, Any]) -> None:
    """ParameterError for what `fit` is given beyond the data; a weight of None is none."""
    for name, value in others.items():
        if name == "sample_weight":
            if value is not None:
                raise ParameterError(
                    "sample_weight: the weight of a row comes from the data, and one row of a large weight would need "
                    "all the noise; public weights of classes are class_weight"
                )
        else:
            raise TypeError(f"fit() takes X and y, and no {name!r}")


def _takes(name: str, problem: Declaration) -> bool:
    """Whether the method covers the problem."""
    try:
        algorithms.resolve(name)[0].needs.check(problem, name)
    except UserError:
        return False
    return True


def _seeds(random_state: Any, k: int) -> list[int | None]:
    """One seed for each of k fits; None, for the system's entropy, where no random state is given."""
    if random_state is None:
        return [None] * k
    return [int(seed) for seed in check_random_state(random_state).randint(0, 2**31 - 1, size=k)]
