"""What an estimator decides beside its fit: the order of classes, and what its budget is told."""

import numpy as np
import pytest

from dpbench import PrivateClassifier
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
def test_a_fit_settles_with_its_budget_what_it_released(classes):
    budget = DataBudget(5, 1e-3)
    X, y = np.linspace(0, 1, 60)[:, None], np.arange(60) % 3 % len(classes)
    model = PrivateClassifier(
        2.0, delta=1e-4, bounds=(0, 1), classes=classes, algorithm="dp-gd", settings={"T": 5}, budget=budget
    ).fit(X, y)
    (charge,) = budget.charges
    assert charge.composition == model._composition
    assert charge.releases
