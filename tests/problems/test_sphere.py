"""The sphere family: its quadrature against samples and differences, its constants, its fresh samples."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from dpbench.algorithms import zeroth_order
from dpbench.problems.sphere import SPREAD, Sphere
from dpbench.problems.stationarity import goldstein_norm


def sphere(d=5, k=1):
    return Sphere(10**6, d, [np.random.default_rng(i) for i in range(k)])


@pytest.mark.parametrize("d", [2, 5, 20])
def test_value_and_gradient_are_means_over_samples(d):
    family, n = sphere(d), 200_000
    z = family.take(np.zeros((1, n), int))[0]
    np.testing.assert_allclose(np.linalg.norm(z, axis=1), SPREAD)
    for norm in (0.05, 0.96, 1.0, 1.45):
        x = norm * np.eye(d)[:1]
        distances = np.linalg.norm(x - z, axis=1)
        each = np.abs(distances - 1)
        assert family.value(x)[0] == pytest.approx(each.mean(), abs=5 * each.std() / n**0.5)
        slopes = np.sign(distances - 1)[:, None] * (x - z) / distances[:, None]
        np.testing.assert_allclose(family.gradient(x)[0], slopes.mean(axis=0), atol=5 / n**0.5)


def test_gradient_is_that_of_the_value():
    family, h = sphere(), 1e-3
    X = np.random.default_rng(3).standard_normal((6, 5)) * np.linspace(0.2, 1.0, 6)[:, None]
    steps = h * np.eye(5)
    found = np.stack([(family.value(X + e) - family.value(X - e)) / (2 * h) for e in steps], axis=1)
    np.testing.assert_allclose(family.gradient(X), found, atol=2e-2)  # F turns by 1/SPREAD and more near the sphere
    assert (np.linalg.norm(family.gradient(X), axis=1) <= family.lipschitz).all()


def test_start_gap_and_measure_are_those_of_the_study():
    family, start = sphere(), 1.45 * np.eye(5)[:1]
    least = minimize_scalar(lambda r: family.value(np.array([[r, 0, 0, 0, 0]]))[0], bounds=(0.8, 1.2), method="bounded")
    assert family.value(start)[0] == pytest.approx(0.453, abs=5e-4)
    assert least.fun == pytest.approx(0.037, abs=5e-4)
    assert family.value(start)[0] - least.fun <= 0.45
    generator = np.random.default_rng(0)
    assert goldstein_norm(family, start[0], 0.2, start, generator)[0] == pytest.approx(0.989, abs=2e-3)
    assert goldstein_norm(family, start[0] / 1.45, 0.2, start, generator)[0] < 1e-9


def test_estimators_are_unbiased_for_the_smoothed_gradient():
    """Far from the sphere, where F is ‖x‖ - 1 nearly: GRAD of 20,000 samples against ∇F averaged over the ball."""
    family, b, delta = sphere(k=2), 20_000, 0.1
    x = np.tile([1.3, 0.5, 0, 0, 0], (2, 1))
    coins = [np.random.default_rng(7 + i) for i in range(2)]
    U = zeroth_order.directions(coins, b, 1, 5)
    found = zeroth_order.grad(family, x, np.zeros((2, b), int), radius=delta, U=U)
    np.testing.assert_allclose(found, np.tile(family.gradient(x[:1]), (2, 1)), atol=0.08)
    y = x + 0.02 * U[:, 0, 0]
    turn = zeroth_order.diff(family, x, y, np.zeros((2, b), int), radius=delta, U=U)
    assert np.linalg.norm(turn, axis=1).max() < 0.1


def test_samples_are_fresh_and_each_replicates_own():
    family = sphere(k=2)
    one, two = family.take(np.zeros((2, 3), int)), family.take(np.zeros((2, 3), int))
    assert one.shape == (2, 3, 5)
    assert len(np.unique(np.concatenate([one, two], axis=1).reshape(12, 5), axis=0)) == 12
    assert family.take(np.zeros((2, 5000), int)).shape == (2, 5000, 5)
