"""A start from a sample of the rows changes how long a minimiser takes, and not where it is."""

from __future__ import annotations

import numpy as np
import pytest

from dpbench.algorithms import aop, sampled_start
from dpbench.problems import Problem
from dpbench.problems.kernels import Rows

N, D, GAMMA = 6_000, 5, 1e-12


def problem(rng: np.random.Generator, loss: str = "logistic") -> Problem:
    X = rng.standard_normal((N, D)) / np.sqrt(D)
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(N) > 0, 1.0, -1.0)
    order = np.argsort(y)  # a sample of the first rows would have one label
    return Problem(X[order], y[order], loss=loss, l2=1e-3)


@pytest.mark.parametrize("loss", ["logistic", "squared", "pseudo-huber"])
def test_it_is_the_same_minimiser_with_no_hessian_of_all_rows(loss, monkeypatch):
    rng = np.random.default_rng(0)
    p, b, W = problem(rng, loss), 1e-3 * rng.standard_normal((2, D)), np.zeros((2, D))
    plain, norms, _ = aop.minimise(p, W, b, 1e-3, GAMMA)
    assert (norms <= GAMMA).all()
    monkeypatch.setattr(sampled_start, "MANY", N)
    monkeypatch.setattr(sampled_start, "LEAST", 1_000)
    sizes = []
    hessian = Problem.data_hessian
    monkeypatch.setattr(Problem, "data_hessian", lambda self, *a, **k: sizes.append(self.n) or hessian(self, *a, **k))
    found, norms, evaluations = aop.minimise(p, W, b, 1e-3, GAMMA)
    assert (norms <= GAMMA).all()
    assert set(sizes) == {N // 6}
    assert (evaluations > 0).all()
    np.testing.assert_allclose(found, plain, rtol=1e-7)


@pytest.mark.parametrize("many", [N, 2 * N])  # with the start, and without it
@pytest.mark.parametrize("narrow", [0, D])
def test_of_float32_rows_the_norm_that_the_noise_rests_on_is_that_of_float64(many, narrow, monkeypatch):
    monkeypatch.setattr(sampled_start, "MANY", many)
    monkeypatch.setattr(sampled_start, "LEAST", 1_000)
    monkeypatch.setattr(sampled_start, "NARROW", narrow)
    rng = np.random.default_rng(0)
    wide = problem(rng)
    single = Problem(wide.X.astype(np.float32), wide.y.astype(np.float32), l2=1e-3)
    wide = Problem(single.X.astype(float), wide.y, l2=1e-3)
    b = 1e-3 * rng.standard_normal((1, D))
    w, norms, _ = single.nearly(aop.minimise, np.zeros((1, D)), b, 1e-3, GAMMA)
    assert norms[0] <= GAMMA
    assert single.rough is None
    assert np.linalg.norm(wide.gradient(w) + 1e-3 * w + b) <= 2 * GAMMA  # in float32: 1e-9


def test_a_sample_that_says_nothing_of_the_rest_costs_time_alone(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)) / np.sqrt(D)
    X[3::6] *= 1e-3  # the rows of the sample
    p = Problem(X, np.where(X[:, 0] > 0.1 * rng.standard_normal(N), 1.0, -1.0), l2=1e-3)
    b, W = np.zeros((1, D)), np.zeros((1, D))
    plain, _, _ = aop.minimise(p, W, b, 0.0, GAMMA)
    monkeypatch.setattr(sampled_start, "MANY", N)
    monkeypatch.setattr(sampled_start, "LEAST", 1_000)
    found, norms, _ = aop.minimise(p, W, b, 0.0, GAMMA)
    assert (norms <= GAMMA).all()
    np.testing.assert_allclose(found, plain, rtol=1e-7)


def test_with_float32_rows_few_gradients_are_in_float64(monkeypatch):
    monkeypatch.setattr(sampled_start, "MANY", N)
    monkeypatch.setattr(sampled_start, "LEAST", 1_000)
    wide = problem(np.random.default_rng(0))
    single = Problem(wide.X.astype(np.float32), wide.y.astype(np.float32), l2=1e-3)
    taken = []
    summed = Rows.weighted_sum
    monkeypatch.setattr(Rows, "weighted_sum", lambda self, *a: taken.append((self.n, self.single)) or summed(self, *a))
    _, norms, _ = single.nearly(aop.minimise, np.zeros((1, D)), np.zeros((1, D)), 1e-3, GAMMA)
    assert norms[0] <= GAMMA
    assert taken.count((N, False)) <= 2 < taken.count((N, True))
