"""Probabilities of several classes: the factor of their scores comes from what was released, and helps."""

from unittest import mock

import numpy as np
import pytest
from sklearn import datasets
from sklearn.model_selection import train_test_split

from dpbench import PrivateClassifier
from dpbench.algorithms.gradient_descent import TailGradient
from dpbench.own import engine
from dpbench.own.engine import calibration_factor, tail_slope

K, D = 7, 40


def weights(size, seed=0):
    W = np.random.default_rng(seed).standard_normal((K, D))
    return W * np.sqrt(size / (W * W).sum())


def known(W, right, std=0.0):
    """The tail's gradient that normal scores have where they are right once multiplied by `right`."""
    z = np.random.default_rng(0).standard_normal((engine.DRAWS, K)) * np.sqrt((W * W).sum() / W.size)
    fall = engine._mean_score(right, z) - engine._mean_score(1.0, z)
    return TailGradient(-fall * W.ravel() / (W * W).sum(), std, 0.0, 100)


@pytest.mark.parametrize("right", [0.5, 1.0, 1.5, 3.0])
def test_scores_are_multiplied_by_what_the_loss_along_them_asks_for(right):
    W = weights(200.0)
    assert calibration_factor(W, known(W, right)) == pytest.approx(right, rel=0.15)


def test_where_noise_is_all_there_is_the_public_guess_stands():
    W = weights(200.0)
    assert calibration_factor(W, known(W, 0.5, std=100.0)) == pytest.approx(2.0, rel=0.05)
    assert calibration_factor(np.zeros((K, D)), TailGradient(np.zeros(K * D), 1.0, 1.0, 5)) == 1.0


def test_noise_that_is_in_the_gradients_and_in_the_iterates_is_taken_off():
    """Descent on a flat loss: <g, W> is of noise alone, and its mean is what is added, to three standard errors."""
    rng, T, step, std = np.random.default_rng(1), 20, 0.7, 0.3
    found = []
    for _ in range(400):
        noise = rng.standard_normal((T, K * D)) * std
        iterates = -step * np.cumsum(noise, axis=0)
        W, mean = iterates[T // 2 :].mean(axis=0), noise[T // 2 :].mean(axis=0)
        found.append(tail_slope(W.reshape(K, D), TailGradient(mean, std, step, T - T // 2)))
    sums, own = np.array(found).T
    assert abs(sums.mean()) < 3 * sums.std() / 20 < own.mean() / 10


def test_seven_classes_say_how_often_they_are_right():
    X, y = datasets.load_digits(return_X_y=True)
    X, y = X[y < 7], y[y < 7]
    Xs, Xt, ys, yt = train_test_split(X, y, random_state=3)
    found = []
    for rule in (lambda *_: 1.0, calibration_factor):
        model = PrivateClassifier(3.0, bounds=(0, 16), classes=list(range(7)), random_state=0)
        with mock.patch.object(engine, "calibration_factor", rule):
            p = model.fit(Xs, ys).predict_proba(Xt)
        sure, right, bins = p.max(axis=1), p.argmax(axis=1) == yt, (p.max(axis=1) * 15).astype(int)
        error = sum(abs((right[bins == b] - sure[bins == b]).sum()) for b in range(16)) / len(p)
        found.append((right.mean(), error))
    assert found[0][0] == found[1][0]  # no prediction changes
    assert found[1][1] < 0.1 < 0.25 < found[0][1]


def test_two_classes_and_models_against_the_rest_are_left_as_they_are():
    X, y = datasets.load_iris(return_X_y=True)
    with mock.patch.object(engine, "calibration_factor", side_effect=AssertionError):
        PrivateClassifier(bounds=(0, 8), classes=[0, 1], random_state=0).fit(X[y < 2], y[y < 2])
        PrivateClassifier(bounds=(0, 8), classes=[0, 1, 2], algorithm="dp-gd", random_state=0).fit(X, y)
