"""Private linear models with scikit-learn's interface.

All that the models take of the data beyond the budget is public and given, never estimated: the range of each feature
(`bounds`) and of a numeric target (`target_bounds`). Values outside are moved to the nearest end, which is a function
of one row and costs nothing. Public too are the numbers of rows and columns, their names, and the set of classes,
which is best given as `classes`.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from dpbench import algorithms
from dpbench.algorithms.rules import public_settings
from dpbench.errors import UserError, positive
from dpbench.policy import auto, terms
from dpbench.privacy.check import together
from dpbench.privacy.relation import Relation
from dpbench.privacy.split import share
from dpbench.privacy.verify import spent
from dpbench.problems import Declaration
from dpbench.run.fit import HOLDS, REPRODUCIBLE, Fit, fit
from dpbench.run.jobs import check_delta, delta_value

AUTO = "auto"
SELECTION = "sklearn.model_selection._validation"  # where scikit-learn fits clones of an estimator


class ParameterError(UserError, ValueError):
    """A parameter of an estimator that is missing or does not fit."""


class PrivacyWarning(UserWarning):
    """Something that costs privacy beyond the ε of one fit."""


@dataclass(eq=False, repr=False)  # scikit-learn compares and shows
class _Private(BaseEstimator):
    """What the two estimators share: parameters, public scaling, the fit of one model, and the account of all."""

    _loss: ClassVar[str]

    epsilon: float = 1.0
    delta: float | str | None = None
    _: KW_ONLY
    algorithm: str = AUTO
    bounds: Any = None
    row_bound: float | None = None
    fit_intercept: bool = True
    l2: float = 0.0
    settings: Mapping[str, Any] | None = None
    arithmetic: Literal["bytes", "real"] | None = None
    release_noise: Literal["numpy", "opendp"] | None = None
    precision: Literal["float64", "float32"] = "float64"
    random_state: Any = None

    # Public scaling

    def _scale(self, low: np.ndarray, high: np.ndarray) -> None:
        self._low, self._high = low, high
        self._unit = math.sqrt(len(low) + bool(self.fit_intercept))
        if self.row_bound is not None:
            self._unit = positive("row_bound", self.row_bound)

    def _rows(self, X: np.ndarray) -> np.ndarray:
        """(n, d') rows of ‖x‖₂ ≤ 1: features from their bounds to [-1, 1], an intercept in front, over `_unit`."""
        middle, half = (self._low + self._high) / 2, (self._high - self._low) / 2
        Z = (np.clip(np.where(np.isnan(X), middle, X), self._low, self._high) - middle) / half
        if self.fit_intercept:
            Z = np.hstack([np.ones((len(Z), 1)), Z])
        Z /= self._unit
        if self.row_bound is not None:
            Z /= np.maximum(1.0, np.linalg.norm(Z, axis=1))[:, None]
        return Z

    def _in_units(self, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(coefficients (k, d), intercepts (k,)) on features as given, of models W (k, d') on `_rows`."""
        middle, half = (self._low + self._high) / 2, (self._high - self._low) / 2
        slopes = W[:, int(bool(self.fit_intercept)) :] / (self._unit * half)
        start = W[:, 0] / self._unit if self.fit_intercept else np.zeros(len(W))
        return slopes, start - slopes @ middle

    # One fit

    def _begin(self, X: np.ndarray) -> tuple[float, float]:
        """Checks what needs no target; (ε, δ)."""
        if self.bounds is None:
            raise ParameterError(
                "bounds: give the public range of the features, (low, high), numbers or one per column; it is never "
                "taken from the data, which would tell of them"
            )
        self._scale(*_bounds("bounds", self.bounds, X.shape[1]))
        if _selecting():
            warnings.warn(
                f"every fit is a release: k fits on the same rows, as in cross-validation, cost up to k·ε, not the "
                f"ε = {self.epsilon:g} of one",
                PrivacyWarning,
                stacklevel=3,
            )
        if X.shape[0] < 2:
            raise ParameterError("X has 1 sample: n_samples=1 leaves nobody to hide among")
        delta = check_delta("n^-2" if self.delta is None else self.delta)
        return positive("epsilon", self.epsilon), delta_value(delta, X.shape[0])

    def _models(self, X: np.ndarray, targets: np.ndarray, classes: np.ndarray | None = None) -> np.ndarray:
        """W (k, d'): one model per row of targets (k, n), all within the one budget; sets what was spent.

        classes: (n,) numbers of k classes, from 0, where a method that takes them together serves all models at once.
        """
        epsilon, delta = self._begin(X)
        rows, k, loss = self._rows(X), len(targets), self._loss
        n, d = rows.shape
        declared = Declaration(n, d, loss=loss, l2=self.l2, row_bound=1.0)
        name = self.algorithm
        if classes is not None:
            together = Declaration(n, k * d, loss=f"softmax-{k}", l2=self.l2, row_bound=1.0)
            name = auto.method(together, delta, self._suits) if name == AUTO else name
            if _takes(name, together):
                declared, targets, loss = together, classes[None], together.loss.name
        name = auto.method(declared, delta, self._suits) if name == AUTO else name
        self.loss_ = loss
        method, _ = algorithms.resolve(name)
        if not method.private:
            raise ParameterError(f"algorithm: {name} is not private; dpbench.fit runs it, and says so")
        accounting = terms.accounting(method)
        if terms.delta(method) == 0:
            delta = 0.0
        one = share(epsilon, delta, len(targets), gaussian=method.gaussian and accounting == "tight")
        chosen = public_settings(name, declared.n, declared.d, one[0]) | dict(self.settings or {})
        seeds = _seeds(self.random_state, len(targets))
        fits = [
            fit(
                rows,
                y,
                algorithm=name,
                epsilon=one[0],
                delta=one[1],
                loss=loss,
                l2=self.l2,
                seed=seed,
                accounting=accounting,
                relation=Relation.REPLACE_ONE.value,
                bound="rescale",  # what `_rows` made is within it but for a rounding
                arithmetic=self.arithmetic,
                release_noise=self.release_noise,
                precision=self.precision,
                **chosen,
            )
            for y, seed in zip(targets, seeds, strict=True)
        ]
        self._account(name, fits, epsilon, delta)
        return np.stack([one.w for one in fits]).reshape(-1, d)

    def _suits(self, name: str) -> bool:
        """Whether a method has the arithmetic, and takes the noise, that are asked for."""
        method = algorithms.resolve(name)[0]
        if self.release_noise == "opendp" and any("perturbation" in one.mechanism for one in method.discloses):
            return False  # it computes on with its noise
        return method.exact or self.arithmetic != "bytes"

    def _account(self, name: str, fits: list[Fit], epsilon: float, delta: float) -> None:
        parts = [(one.released.composition, one.released.epsilon_planned, one.released.delta) for one in fits]
        relation = Relation(fits[0].released.relation)
        self.algorithm_ = name
        self.settings_ = fits[0].settings
        self.delta_ = delta
        self.epsilon_ = together(parts, epsilon, delta, relation) if len(fits) > 1 else parts[0][1]
        self._composition = tuple(entry for composition, _, _ in parts for entry in composition)
        self._relation = relation
        self.ledger_ = [{"model": i, **line} for i, one in enumerate(fits) for line in one.released.ledger]
        self.guarantee_ = fits[0].guarantee
        if fits[0].guarantee != REPRODUCIBLE:
            public = ["n", *self._public(), *filter(None, [fits[0].released.counts_public])]
            self.guarantee_ = (
                f"(ε = {epsilon:g}, δ = {delta:.3g})-DP under {relation.value} neighbours, "
                f"{HOLDS[fits[0].released.arithmetic]}; counts as public: {', '.join(public)}"
            )

    @property
    def profile_(self) -> np.ndarray:
        """(m, 2): δ from 1e-4·delta_ to 1e2·delta_, and the ε that all releases compose to at each; at δ = 0 alone.

        Computed when asked for, by the independent accountant. ε is infinite where it has no bound for the whole.
        """
        check_is_fitted(self)
        deltas = [delta for delta in self.delta_ * np.logspace(-4, 2, 7) if delta < 1] if self.delta_ else [0.0]
        return np.array([(delta, spent(self._composition, delta, self._relation).epsilon) for delta in deltas])

    def _public(self) -> list[str]:
        return ["the columns", "bounds", "that no label is missing"]  # which scikit-learn refuses

    def _checked(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return self._rows(validate_data(self, X, dtype=np.float64, reset=False, ensure_all_finite=False))

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
        algorithm: a name from `dpbench list algorithms`, or "auto": by a rule in n, d, the number of classes and
            whether δ > 0, never by ε (`dpbench.policy.auto`; the guide "The default methods" has what it was measured
            on).
        bounds: (low, high), the public range of the features: two numbers, or two arrays with one for each column.
            Values beyond are moved to the nearest end, missing ones (NaN) to the middle. Required: nothing is taken
            from the data.
        row_bound: a public bound R on the length of a row once each feature is in [-1, 1] (an intercept counts as one
            more); longer rows are shortened. None: √(number of features), which no row exceeds.
        fit_intercept: add a column of ones.
        l2: weight of ‖w‖²/2 on the scaled rows, the intercept's w included.
        settings: of the algorithm, over those of the rule.
        arithmetic: "bytes", "real" or None; release_noise: "numpy", "opendp" (extra `release`) or None; precision:
            "float64" or "float32". See `dpbench.fit`. "auto" keeps to methods that have what is asked for.
        random_state: None draws noise from the operating system's entropy, anew for every fit. A number or RandomState
            makes the fit repeatable, and no release: `guarantee_` says so.

    Attributes:
        classes_: the labels, sorted; coef_, intercept_: of decision_function, on features as given (within `bounds`).
        epsilon_: what the releases of all models compose to, by the independent accountant: at most `epsilon`.
        delta_, guarantee_: in words. profile_: (δ, ε) pairs of the same releases. ledger_: one row per
            model and kind of release. algorithm_, settings_: used.
    """

    _loss = "logistic"

    classes: Any = None

    def fit(self, X: Any, y: Any) -> PrivateClassifier:
        """Fit on X (n, d) and labels y (n,) of two values or more."""
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=False)
        if self.classes is None:
            check_classification_targets(y)
            self.classes_, index = np.unique(y, return_inverse=True)
        else:
            self.classes_ = np.unique(np.asarray(self.classes))
            index = np.searchsorted(self.classes_, y).clip(max=len(self.classes_) - 1)
            index[self.classes_[index] != y] = 0
        if len(self.classes_) < 2:
            raise ParameterError("y has one class: a classifier needs two or more; give them all as classes=")
        positives = range(1, 2) if len(self.classes_) == 2 else range(len(self.classes_))
        targets = np.stack([np.where(index == i, 1.0, -1.0) for i in positives])
        self.W_ = self._models(X, targets, index.astype(float) if len(positives) > 1 else None)
        self.coef_, self.intercept_ = self._in_units(self.W_)
        return self

    def _public(self) -> list[str]:
        return [*super()._public(), "classes" if self.classes is not None else "the set of classes in y"]

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores: (n,) of the second of two classes, (n, k) of more."""
        scores = self._checked(X) @ self.W_.T
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any) -> np.ndarray:
        """(n, k): the softmax of the scores, or their logistic function, of more than two classes over its sum."""
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
        epsilon, delta, algorithm, bounds, row_bound, fit_intercept: as of `PrivateClassifier`.
        l2: the ridge, on a target scaled to [-1, 1].
        settings, arithmetic, release_noise, precision, random_state: as of `PrivateClassifier`.

    Attributes:
        coef_, intercept_: of predict, on features and target as given (within their bounds). The others as of
            `PrivateClassifier`.
    """

    _loss = "squared"

    target_bounds: tuple[float, float] | None = None

    def fit(self, X: Any, y: Any) -> PrivateRegressor:
        """Fit on X (n, d) and numbers y (n,)."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_all_finite=False)
        if y.dtype.kind not in "biuf":
            raise ParameterError("y: not numbers; PrivateClassifier takes classes")
        if self.target_bounds is None:
            raise ParameterError("target_bounds: give the public range of the target, (low, high)")
        (low,), (high,) = _bounds("target_bounds", self.target_bounds, 1)
        self._middle, self._half = (low + high) / 2, (high - low) / 2
        self.W_ = self._models(
            X, ((np.clip(np.where(np.isnan(y), self._middle, y), low, high) - self._middle) / self._half)[None]
        )
        slopes, start = self._in_units(self.W_)
        self.coef_, self.intercept_ = slopes[0] * self._half, float(start[0] * self._half + self._middle)
        return self

    def _public(self) -> list[str]:
        return [*super()._public(), "target_bounds"]

    def predict(self, X: Any) -> np.ndarray:
        """(n,) predictions, within `target_bounds`."""
        scores = self._checked(X) @ self.W_[0]
        return self._middle + self._half * np.clip(scores, -1, 1)


def _bounds(name: str, bounds: Any, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """(low, high), each (columns,); ParameterError where they are no pair of finite numbers or arrays, low < high."""
    try:
        low, high = (np.broadcast_to(np.asarray(end, dtype=float), columns) for end in bounds)
    except (TypeError, ValueError):
        each = "two numbers" if columns == 1 else f"two numbers, or two arrays of the {columns} columns"
        raise ParameterError(f"{name} must be (low, high): {each}, got {bounds!r}") from None
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise ParameterError(f"{name}: low < high, both finite, are needed" + " in every column" * (columns > 1))
    return low, high


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


def _selecting() -> bool:
    """Whether scikit-learn's model selection is fitting: cross_val_score, GridSearchCV, … in any process of theirs."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__") != SELECTION:
        frame = frame.f_back
    return frame is not None
