"""What an estimator decides beside its fit: the order of classes, and what its budget is told."""

import numpy as np
import pytest

from dpbench import PrivateClassifier, PrivateRegressor
from dpbench.estimators import models
from dpbench.privacy.data_budget import DataBudget


def test_the_second_of_two_classes_has_the_positive_scores():
    model = PrivateClassifier(bounds=(0, 1), fit_intercept=False)
    model.classes_, model.W_, model.loss_ = np.array(["a", "b"]), np.array([[2.0]]), "logistic"
    model._encoder, model.n_features_in_ = None, 1
    model._scale(np.zeros(1), np.ones(1))
    X = [[0.0], [1.0]]  # -1 and 1 on the scale of W
    assert model.predict(X).tolist() == ["a", "b"]
    p = 1 / (1 + np.exp(-2.0))
    np.testing.assert_allclose(model.predict_proba(X), [[p, 1 - p], [1 - p, p]])


def test_classes_are_sorted_and_a_label_beyond_is_the_first():
    model = PrivateClassifier(classes=["c", "a", "e"])
    assert model._index(np.array(["e", "d", "zz", "c", "a", "0"])).tolist() == [2, 0, 0, 1, 0, 0]
    assert model.classes_.tolist() == ["a", "c", "e"]


@pytest.mark.parametrize("classes", [[0, 1], [0, 1, 2]])
def test_a_fit_is_charged_for_what_it_releases(classes):
    budget = DataBudget.create(None, epsilon=5, delta=1e-3)
    X, y = np.linspace(0, 1, 60)[:, None], np.arange(60) % 3 % len(classes)
    model = PrivateClassifier(
        2.0, delta=1e-4, bounds=(0, 1), classes=classes, algorithm="dp-gd", settings={"T": 5}, budget=budget
    ).fit(X, y)
    (charge,) = budget.charges
    assert charge.composition == model._composition
    assert charge.releases


@pytest.mark.parametrize("how", [{"row_bound": None}, {"row_bound": 0.5}, {"row_bound": "rule"}])
@pytest.mark.parametrize("kind", [PrivateClassifier, PrivateRegressor])
def test_what_is_fitted_of_a_row_does_not_depend_on_other_rows(monkeypatch, kind, how):
    """The released vector may depend on every row; what the method is given of one row on that row alone."""
    given = []

    def spy(rows, y, **settings):
        given.append((rows.copy(), y.copy()))
        raise InterruptedError

    monkeypatch.setattr(models, "fit", spy)
    model = kind(
        bounds=(0, 1), **how, **({"classes": [0, 1]} if kind is PrivateClassifier else {"target_bounds": (0, 1)})
    )
    rng = np.random.default_rng(0)
    X, y = 0.4 + 0.2 * rng.random((20, 3)), np.resize([0.0, 1.0], 20)
    for first in (X[0], np.zeros(3), np.full(3, 1e9), np.full(3, np.nan)):
        with pytest.raises(InterruptedError):
            model.fit(np.vstack([first, X[1:]]), y)
    for rows, targets in given[1:]:
        np.testing.assert_array_equal(rows[1:], given[0][0][1:])
        np.testing.assert_array_equal(targets, given[0][1])
    assert any((rows[0] != given[0][0][0]).any() for rows, _ in given)
