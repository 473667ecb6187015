"""scikit-learn's faces of `own.spec.plan` and `own.engine.execute`: parameters in, a `Model` out.

All that the models take of the data beyond the budget is public and given, never estimated: the range of each feature
(`bounds`) and of a numeric target (`target_bounds`). Values outside are moved to the nearest end, which is a function
of one row and costs nothing. Public too are the numbers of rows and columns, their names, and the set of classes,
which is best given as `classes`. A `schema` says all of it for a table with categories, dates and missing cells.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from dpbench import algorithms
from dpbench.algorithms import rules
from dpbench.errors import names_arguments, positive
from dpbench.own import arguments, intervals
from dpbench.own import model as models
from dpbench.own import row_bound as row_bounds
from dpbench.own.engine import execute, rows_of
from dpbench.own.fit import REPRODUCIBLE
from dpbench.own.inputs import labels_beside, one_for_each, persons_of
from dpbench.own.model import Model
from dpbench.own.spec import GROUPS, FitPlan, ParameterError, Spec, of_encoding, plan
from dpbench.own.statement import Statement
from dpbench.privacy.data_budget import DataBudget
from dpbench.privacy.ledger import Composition, Relation
from dpbench.privacy.verify import spent
from dpbench.schema import Schema, Target
from dpbench.schema import load as load_schema
from dpbench.schema.cells import codes
from dpbench.schema.encoding import check_columns, encoding_of, target_cells


@dataclass(eq=False, repr=False)  # scikit-learn compares and shows
class _Private(BaseEstimator):
    """What the two estimators share: parameters, how X and y are read, and what is shown of a fitted `Model`."""

    _loss: ClassVar[str]

    epsilon: float = 1.0
    delta: float | str | None = None
    _: KW_ONLY
    algorithm: str = "auto"
    schema: Any = None
    bounds: Any = None
    row_bound: float | row_bounds.RowBound | None = "auto"
    fit_intercept: bool = True
    l2: float | None = None
    settings: Mapping[str, Any] | None = None
    arithmetic: Literal["bytes", "real"] | None = None
    precision: Literal["float64", "float32"] = "float64"
    timing: Literal["constant"] | None = None
    random_state: Any = None
    budget: DataBudget | None = None
    unit: bool = False
    intervals: bool = False

    # What a fit is

    def plan(self, rows: int, schema: Schema | None = None) -> FitPlan:
        """What a fit to so many rows would release, and with what noise: no data are needed to say it.

        Args:
            rows: n, public; with a unit the number of persons.
            schema: of the table; None takes that of the estimator.

        Raises:
            UserError: no method is covered by its proof there, or a parameter does not fit.
        """
        return self._plan(rows, load_schema(self.schema if schema is None else schema), positional=False)

    def _plan(self, rows: int, schema: Schema, *, positional: bool) -> FitPlan:
        for name in ("fit_intercept", "unit", "intervals"):
            if not isinstance(getattr(self, name), bool | np.bool_):  # without what was given: it may be ids
                ids = "; ids are groups= of fit, a column is a schema's unit" * (name == "unit")
                raise ParameterError(f"{name} must be True or False{ids}")
        labels = schema.target.classes or ()
        encoding = encoding_of(schema, intercept=bool(self.fit_intercept), positional=positional)
        settings = {} if self.settings is None else self.settings
        if not isinstance(settings, Mapping):
            raise ParameterError(f"settings must be {{name: value}}, got {self.settings!r}")
        how = None if schema.row_bound is not None else self._row_bound
        if self.intervals:
            settings = {**settings, "intervals": True}
            how = None if how == "auto" else how  # slopes of shortened rows are others than those of the features
        return plan(Spec(
            **of_encoding(encoding, rows, len(labels)), loss=self._loss, epsilon=_plain(self.epsilon),
            delta=_plain(self.delta), algorithm=self.algorithm, settings={k: _plain(v) for k, v in settings.items()},
            class_weights=arguments.weights_of(getattr(self, "class_weight", None), labels), row_bound=how,
            l2=_plain(self.l2), arithmetic=self.arithmetic, precision=self.precision, timing=self.timing,
            reproducible=self.random_state is not None, relation=rules.RELATION.value,
            unit=schema.unit or (GROUPS if self.unit else ""),
        ))  # fmt: skip

    @property
    def _row_bound(self) -> Any:
        """How a bound is to be found; UserError for a number that is none."""
        given = self.row_bound
        if isinstance(given, bool) or not isinstance(given, int | float | np.number):
            return given  # what is none of the words is refused by the plan
        positive("row_bound", float(given))
        return None

    def _target(self, y: Any) -> tuple[Target, bool]:
        """(the target of arrays, whether its classes were read off y)."""
        raise NotImplementedError

    # One fit

    def fit(self, X: Any, y: Any = None, *, groups: Any = None, **others: Any) -> Any:
        """Fit on X (n, d) and y (n,); with a schema, y may be a column of X. groups: (n,) ids, see `unit`."""
        for name, value in others.items():
            if name != "sample_weight":
                raise TypeError(f"fit() takes X and y, and no {name!r}")
            if value is not None:
                raise ParameterError(
                    "sample_weight: the weight of a row comes from the data, and one row of a large weight would need "
                    "all the noise; public weights of classes are class_weight"
                )
        if self.budget is not None and not isinstance(self.budget, DataBudget):
            raise ParameterError(f"budget must be a dpbench.DataBudget or None, got {self.budget!r}")
        if self.unit is True and y is not None:
            one_for_each("y", "label", y, X)
        X, y, schema, of_rows = self._read(X, y)
        unit, persons = persons_of(X, groups, schema.unit, asked=self.unit is True)
        size = persons.count if persons else len(y)
        plan, charge = self._plan(size, schema, positional=of_rows["positional"]), ""
        encoding = encoding_of(schema, intercept=bool(self.fit_intercept), positional=of_rows["positional"])
        if encoding.named:
            check_columns(encoding, X)  # names and types are public, so that a mistake in them is refused unpaid
        seed = None if self.random_state is None else int(check_random_state(self.random_state).randint(2**31 - 1))
        if self.budget is not None:  # before a cell is read: what a cell says must not decide whether it is paid for
            whole, what = plan.whole, f"{type(self).__name__}, {plan.name}"
            charge = self.budget.charge(
                what, plan.releases, whole.epsilon, whole.delta, relation=whole.relation.value, unit=unit
            )
        arguments.warn_of_clones(tuple(schema.columns), seeded=self.random_state is not None, charged=bool(charge))
        rows, labels = rows_of(plan, encoding, schema.target, X, y)
        fitted = execute(plan, rows, labels, unit=encoding.unit, seed=seed, persons=persons)
        model = models.model_of(fitted, schema=schema, labels=schema.target.classes,
                                intercept=bool(self.fit_intercept), **of_rows)  # fmt: skip
        stated = model.statement(models.now(), fitted.releases, plan, charge)
        self.plan_, self.ledger_ = plan, fitted.ledger
        return self.become(model, stated, fitted.releases, fitted.epsilon)

    def become(self, model: Model, stated: Statement, releases: Composition, epsilon: float) -> Any:
        """Show that model: what scikit-learn expects are views of it and of its statement."""
        self.model_, self.statement_, self.releases_, self.epsilon_ = model, stated, releases, epsilon
        self.algorithm_, self.settings_, self.delta_ = stated.mechanism, stated.settings, stated.delta
        self.public_, self.arithmetic_, self.guarantee_ = stated.public, stated.arithmetic, stated.guarantee
        # A seed that is known gives the noise away, so no ε holds.
        if model.spec.reproducible:
            self.guarantee_ = REPRODUCIBLE
        elif self.budget is not None:
            total, fits = self.budget.epsilon_spent, len(self.budget.charges)
            more = f"{fits} fits charged to its budget cost ε = {total:.4g} at δ = {self.budget.delta:.3g} together"
            self.guarantee_ += f"; {more}" * (fits > 1)
        self.coef_: Any
        self.intercept_: Any
        self.coef_, self.intercept_ = model.in_units()
        self.n_features_in_ = len(model.schema.columns) if model.positional else len(model.encoding.columns)
        if not model.positional:
            self.encoded_names_ = model.encoding.names
        if model.intervals is not None:
            import pandas as pd

            self.intervals_notes_, lines = model.interval_notes, model.interval_table()
            self.intervals_ = pd.DataFrame(lines) if lines else intervals.NONE
        if names := model.features or ([] if model.positional else model.encoding.columns):
            self.feature_names_in_ = np.array(names, dtype=object)
        return self

    def _read(self, X: Any, y: Any) -> tuple[Any, Any, Schema, dict[str, Any]]:
        """(X, y, schema, how a model says that they were read)."""
        if self.schema is not None:
            return *arguments.by_schema(self, X, y), {"positional": False, "classes_read": False}
        if self.bounds is None:
            raise ParameterError(
                "bounds: give the public range of the features, (low, high), numbers or one per column; it is never "
                "taken from the data, which would reveal something about them"
            )
        typed = arguments.typed_numbers(X)
        X = arguments.array_of(self, X)
        y = arguments.labels_of(y, X)
        # Every estimator goes on by a schema, also where bounds were given.
        target, read = self._target(y)
        row_bound = self.row_bound if self._row_bound is None else None
        schema = arguments.schema_of(X.shape[1], self.bounds, target, row_bound)
        features = [str(name) for name in getattr(self, "feature_names_in_", [])]
        return X, y, schema, {"positional": True, "classes_read": read, "features": features, "typed": typed}

    # The model as a file, and what is shown of it

    def statement(self) -> Statement:
        """What the release of this model is: mechanism, ε, δ, what counts as public. UserError if it is no release."""
        check_is_fitted(self)
        if self.model_.spec.reproducible:
            raise ParameterError(
                "random_state: a fit with one is no release, so there is nothing to state; fit without"
            )
        return self.statement_

    @names_arguments
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model and its statement as JSON: weights, schema or bounds, no rows, no pickle.

        `dpbench.load_model` reads it, `dpbench model statement FILE` shows and checks the statement. A fit with a
        random_state is no release and is not saved.
        """
        stated = self.statement()  # refuses what is not fitted, or no release
        models.save(path, self.model_, stated)

    @property
    def row_bound_(self) -> float | None:
        """The length beyond which rows are shortened, each number being in [-1, 1], in a window less its column's mean.

        None where no row is shortened.
        """
        check_is_fitted(self)
        return self.model_.bound or self.model_.encoding.bound

    @property
    def loss_(self) -> str:
        """The loss of the model, by its name."""
        check_is_fitted(self)
        return self.model_.loss

    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        if self.model_.positional:
            X = arguments.array_of(self, X, reset=False)
        return self.model_.scores(X)

    def _as_read(self, X: Any, y: Any) -> np.ndarray:
        """(n,) the labels of rows X as a fit reads them: "2,618.56" is a number where the schema says so."""
        import pandas as pd

        check_is_fitted(self)
        target, positional = self.model_.schema.target, self.model_.positional
        cells = target_cells(target, arguments.labels_of(y, X) if positional else labels_beside(X, y, target.name))
        # A score is no release, so it may refuse what a fit has to repair in silence.
        if without := int((pd.isna(cells) if target.classes else ~np.isfinite(cells)).sum()):
            what, where = "label" if target.classes else "finite number", f" in {target.name}" * bool(target.name)
            told = f"{without:,} of {len(cells):,} have none{where}"
            raise ParameterError(f"y: a row that is scored needs a {what}; leave out those without: {told}")
        if target.classes and (codes(cells, target.classes) < 0).all():
            raise ParameterError(f"y: no label is one of the classes {', '.join(map(repr, target.classes))}")
        return cells

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
        classes: the public set of labels, which keep their types; the row of any other label becomes zeros and moves
            no model. None reads the set off y, and `guarantee_` says so.
        class_weight: {class: weight > 0}, public: what an error on a row of the class counts, 1 where it is not given.
            Noise is set for the largest weight, so the rows of other classes weigh less beside it. "balanced" would
            be counted in the data, and is refused; so are weights of single rows (`sample_weight`).
        algorithm: a name from `dpbench list algorithms`, or "auto": by a rule in n, d, the number of classes and
            whether δ > 0, never by ε (`dpbench.algorithms.rules`; the guide "The default methods" has what it was
            measured on).
        schema: what is public of a table (`dpbench.schema`), or its TOML file. X is then a pandas DataFrame; bounds,
            row_bound and classes are left out.
        bounds: (low, high), the public range of features that are all numbers: two numbers, or two arrays with one for
            each column. Values beyond are moved to the nearest end, missing ones (NaN) to the middle. Required without
            a schema: nothing is taken from the data.
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
        arithmetic: "bytes", "real" or None; precision: "float64" or "float32"; timing: "constant" or None. See
            `dpbench.fit`. "auto" keeps to methods that have what is asked for.
        random_state: None draws noise from the operating system's entropy, anew for every fit. A number or RandomState
            makes the fit repeatable, and no release: `guarantee_` says so.
        budget: a `DataBudget`, which this fit is charged to before it looks at the data; fits of clones, as in
            cross-validation, are too.
        unit: whether a person may have several rows, all of which are protected together; `fit` then takes whose they
            are as groups=, (n,) texts or whole numbers. A schema's `unit`, a column of X, says the same and goes with
            the rows through scikit-learn's searches, so it is to be preferred. Each of a person's m rows counts 1/m;
            the number of persons is public instead of n, and a row of an empty id moves no model. "auto" keeps to
            methods whose releases are sums over all rows (`dpbench.problems.persons`).
        intervals: whether to release what 95 % intervals of the coefficients need, of two classes by dp-gd-average with
            45 % of ρ: the model is then what it would be at about two thirds of ε. row_bound "auto" is then None, since
            slopes of shortened rows are others than those of the features.

    Attributes:
        classes_: the labels, sorted; coef_, intercept_: of decision_function, on features as given (within `bounds`);
            of a row longer than `row_bound_` it is divided by its length over that.
        row_bound_: the bound on the rows that was given or found; None where no row is shortened.
        epsilon_: what the releases of all models compose to, by the independent accountant: at most `epsilon`.
        delta_; guarantee_: in words; public_: what counts as public; arithmetic_: "bytes" or "real".
        releases_: as `dpbench.privacy.check.profile` takes them, which has their ε at any δ. ledger_: one row per model
            and kind of release. algorithm_, settings_: used.
        intervals_: with `intervals`, a DataFrame of name, estimate, low and high of each coefficient, or one line that
            there are none. The estimate is one step of Newton's method from the model, and not the coefficient in
            `coef_`, which predicts. intervals_notes_: what they cover, and what public marks say that they do not.
    """

    _loss = "logistic"

    classes: Any = None
    class_weight: Mapping[Any, float] | None = None

    def _target(self, y: Any) -> tuple[Target, bool]:
        if self.classes is None:
            y = arguments.typed(y)
            if y.dtype.kind == "f" and not np.isfinite(y).all():
                raise ParameterError("y: a label is missing or infinite; with classes= its row is left out")
            check_classification_targets(y)
            warnings.warn(
                "the set of classes was read off y, which no ε covers; give it as classes=",
                arguments.PrivacyWarning,
                stacklevel=4,
            )
            if len(labels := np.unique(y)) < 2:
                raise ParameterError("y has one class: a classifier needs two or more; give them all as classes=")
            return Target(name="", classes=arguments.sorted_labels(labels)), True
        try:
            if isinstance(self.classes, str):
                raise TypeError("a text is a list of its letters")
            given = list(self.classes)
        except TypeError:
            raise ParameterError("classes: give a list of texts, or of numbers") from None
        return Target(name="", classes=arguments.sorted_labels(given)), False

    def become(self, model: Model, *of: Any) -> Any:
        self.classes_ = arguments.typed(model.labels)
        return super().become(model, *of)

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores: (n,) of the second of two classes, (n, k) of more."""
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any) -> np.ndarray:
        """(n, k): the softmax of the scores, or their logistic function, of more than two classes over its sum.

        Not calibrated: noise and the ridge that bounds it move them, to the middle mostly, and `class_weight` to the
        heavier classes. A calibrator that is fitted to the private rows looks at them, which no ε here covers; fit
        one on public rows.
        """
        return models.probabilities(self._scores(X), together=self.loss_ != self._loss)

    def predict(self, X: Any) -> np.ndarray:
        """(n,) labels, of the type that the classes have."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy of `predict` on rows (n, d) or a table, with the target (n,) as a fit takes it."""
        known = self.model_.schema.target.classes or ()
        labels = (codes(one, known) for one in (self._as_read(X, y), self.predict(X)))  # any other label is an error
        return float(accuracy_score(*labels, sample_weight=sample_weight))


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateRegressor(RegressorMixin, _Private):
    """Linear least squares under (ε, δ)-differential privacy, one row replaced by another.

    Args:
        target_bounds: (low, high), the public range of the target; values beyond are moved to the nearest end.
            Required: nothing is taken from the data.
        epsilon, delta, algorithm, schema, bounds, row_bound, fit_intercept: as of `PrivateClassifier`.
            row_bound "window", which "auto" takes for `dp-gd-average` and `boosted-ssp` with an intercept at δ > 0: a
            window around the target, its mean and those of the columns are released first, so that bounds which are
            ten times too wide cost little (`dpbench.own.window`); below 379 rows at ε = 0.3, or 106 at 1 (512 and 144
            without columns of numbers), the median is predicted for all. "private" is better where few rows have
            bounds that are the target's own range.
        l2: the ridge, on a target whose window, or bounds, are scaled to [-1, 1]; None: 0.
        settings, arithmetic, precision, timing, random_state, budget, unit: as of `PrivateClassifier`.
        intervals: as of `PrivateClassifier`, by boosted-ssp for 13 % of ρ; that row_bound is None makes them up to 1.8
            times as wide.

    Attributes:
        coef_, intercept_: of predict, on features and target as given (within their bounds). The others as of
            `PrivateClassifier`.
    """

    _loss = "squared"

    target_bounds: tuple[float, float] | None = None

    def _target(self, y: Any) -> tuple[Target, bool]:
        if y.dtype.kind not in "biufO":  # of objects each cell is looked at by itself
            raise ParameterError("y: not numbers; PrivateClassifier takes classes")
        if self.target_bounds is None:
            raise ParameterError("target_bounds: give the public range of the target, (low, high)")
        (bounds,) = arguments.bounds_of("target_bounds", self.target_bounds, 1)
        return Target(name="", bounds=bounds), False

    def become(self, model: Model, *of: Any) -> Any:
        super().become(model, *of)
        low, high = model.schema.target.bounds  # type: ignore[misc]  # of a number it has them
        half = high / 2 - low / 2
        self.coef_, self.intercept_ = self.coef_[0] * half, float(self.intercept_[0] * half + low / 2 + high / 2)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """(n,) predictions, within the bounds of the target."""
        scores = self._scores(X)[:, 0]
        low, high = self.model_.schema.target.bounds  # type: ignore[misc]  # of a number it has them
        return low / 2 + high / 2 + (high / 2 - low / 2) * np.clip(scores, -1, 1)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The R² of `predict` on rows (n, d) or a table, with the target (n,) as a fit takes it."""
        return super().score(X, self._as_read(X, y), sample_weight)


def load_model(path: str | os.PathLike[str]) -> PrivateClassifier | PrivateRegressor:
    """A model that `save` wrote, ready to predict; its statement is made again before it is believed.

    Raises:
        UserError: the file is none that dpbench wrote, or it is damaged.
        DoesNotHold: something that it states can be computed and is not so.
    """
    model, stated, _ = models.load(path)
    spec = model.spec
    kind: Any = PrivateRegressor if model.labels is None else PrivateClassifier
    served = stated.mechanism.startswith(algorithms.SERVED)
    ours = not served and algorithms.not_ours(stated.mechanism, stated.settings) is None  # else nothing is imported
    l2 = model.plan.ridge if ours and model.intervals is None else spec.l2  # intervals go with the default alone
    found: Any = kind(spec.epsilon, spec.delta, algorithm=spec.algorithm, l2=l2, fit_intercept=model.intercept,
                      settings=spec.settings or None, arithmetic=spec.arithmetic, precision=spec.precision,
                      timing=spec.timing)  # fmt: skip
    found.row_bound = model.schema.row_bound if model.positional and model.schema.row_bound else spec.row_bound
    found.unit = bool(spec.unit) and model.schema.unit is None
    if not model.positional:
        found.schema = model.schema
    if model.intervals is not None:
        found.intervals = True
    if spec.class_weights is not None:
        found.class_weight = dict(zip(model.labels or (), spec.class_weights, strict=True))
    relation = Relation(stated.relation)
    epsilon = spent(stated.composition, stated.delta, relation).epsilon
    found.become(model, stated, stated.composition, epsilon)
    return found


def _plain(value: Any) -> Any:
    """A number of NumPy's as Python's; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value
