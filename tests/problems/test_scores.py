"""Scores on rows held out, each by a second route."""

import numpy as np
import pytest

from dpbench.problems import losses
from dpbench.problems.scores import calibration_error, constant, held_out_scores, rare_scores


def test_scores_of_a_rare_class_by_their_definitions():
    from sklearn.metrics import average_precision_score, balanced_accuracy_score, log_loss

    generator = np.random.default_rng(0)
    X = generator.normal(size=(4000, 2))
    y = np.where(X[:, 0] + generator.logistic(size=4000) > 5, 1.0, -1.0)  # 2 %
    w, loss, mean = np.array([0.8, 0.1]), losses.get("logistic"), -0.95
    found = {name: float(value[0]) for name, value in held_out_scores(loss, X, y, w[None], w, mean).items()}
    z = X @ w
    p = 1 / (1 + np.exp(-z))
    assert found["held_balanced"] == pytest.approx(balanced_accuracy_score(y > 0, z > 0))
    assert found["held_precision"] == pytest.approx(average_precision_score(y > 0, z))
    assert found["held_loss_gain"] == pytest.approx(log_loss(y > 0, np.full(4000, 0.025)) - log_loss(y > 0, p))
    flipped = held_out_scores(loss, -X, -y, w[None], w, -mean)  # the rarer class, whatever its sign
    assert flipped["held_precision"][0] == pytest.approx(found["held_precision"])


def test_of_two_classes_of_one_size_the_precision_is_that_of_the_positive_one():
    from sklearn.metrics import average_precision_score

    z, y = np.array([3.0, 2.0, 1.0, 0.0]), np.array([1.0, -1.0, -1.0, 1.0])
    precision = rare_scores(losses.get("logistic"), z, y)["held_precision"]
    assert precision == average_precision_score(y > 0, z) != average_precision_score(y < 0, -z)


def test_the_calibration_error_is_zero_where_probabilities_are_true_and_their_distance_where_not():
    generator = np.random.default_rng(0)
    z = generator.normal(size=200_000)
    positive = generator.random(200_000) < 1 / (1 + np.exp(-z))
    assert calibration_error(z, positive) < 0.01
    assert calibration_error(np.full(1000, np.log(9)), np.arange(1000) < 500) == pytest.approx(0.4)


@pytest.mark.parametrize("mean", [-0.9, 0.0, 0.4])
def test_the_constant_answer_is_the_best_one(mean):
    loss = losses.get("logistic")
    y = np.where(np.arange(1000) < 500 * (1 + mean), 1.0, -1.0)
    z = constant(loss, float(y.mean()))
    values = [loss.value(np.full((1, 1000), one), y, np.empty((1, 1000))).mean() for one in (z, z + 0.1, z - 0.1)]
    assert values[0] == min(values)


@pytest.mark.parametrize(("loss", "mean", "expected"), [
    ("sigmoid", 0.2, 1.0), ("sigmoid", 0.0, 1.0), ("sigmoid", -0.2, -1.0), ("logistic", 1.0, 1.0),
    ("logistic", -1.0, -1.0), ("squared", -0.3, -0.3), ("pseudo-huber", 7.0, 7.0),
])  # fmt: skip
def test_the_constant_answer_is_a_label_where_no_odds_are_and_a_mean_of_numbers(loss, mean, expected):
    assert constant(losses.get(loss), mean) == expected


def test_numbers_that_are_all_the_same_leave_the_gain_in_their_own_unit():
    found = held_out_scores(losses.get("squared"), np.ones((2, 1)), np.full(2, 2.0), np.ones((1, 1)), np.zeros(1), 2.0)
    assert found["held_gain"] == [-1.0]  # nothing varies, so that R² has no denominator


@pytest.mark.parametrize(("mean", "usual"), [(-0.2, -1.0), (0.0, 1.0), (1e-9, 1.0)])
def test_the_gain_is_over_the_class_that_the_rows_in_use_have_more_of(mean, usual):
    """Whatever the rows held out have more of; of two classes of one size it is the positive one."""
    X, y = np.array([[1.0], [2.0], [-1.0], [-3.0], [4.0]]), np.array([1.0, -1.0, -1.0, -1.0, -1.0])
    found = held_out_scores(losses.get("logistic"), X, y, np.ones((1, 1)), np.ones(1), mean)
    assert found["held_accuracy"] == [0.6]
    assert found["held_gain"] == pytest.approx([0.6 - (y == usual).mean()])
