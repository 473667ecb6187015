"""The Goldstein measure against closed forms, certificates and itself with more samples.

The kinks family: its closed forms against differences and samples, its fresh samples, and that its gradient turns
within an epoch.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbench.algorithms import zeroth_order
from dpbench.problems import Problem
from dpbench.problems.stationarity import SPREAD, Kinks, goldstein_norm, in_ball, min_norm_point


def family_of_kinks(d=3, k=1):
    return Kinks(10**6, d, [np.random.default_rng(i) for i in range(k)])


def test_the_kinks_gradient_is_that_of_the_value_and_keeps_the_lipschitz_bound():
    family, h = family_of_kinks(), 1e-7
    X = np.random.default_rng(4).uniform(-0.1, 0.1, (200, 3))
    steps = h * np.eye(3)
    found = np.stack([(family.value(X + e) - family.value(X - e)) / (2 * h) for e in steps], axis=1)
    np.testing.assert_allclose(family.gradient(X), found, atol=1e-6)
    assert np.linalg.norm(family.gradient(X), axis=1).max() + SPREAD <= family.lipschitz
    start = np.array([[*family.start, 0.0]])
    assert family.value(start)[0] - family.value(np.array([[0.03, 0, 0]]))[0] <= 0.02


@pytest.mark.parametrize("d", [2, 5])
def test_the_kinks_smoothed_gradient_is_the_mean_over_the_ball(d):
    """Lemma 2.2: also what GRAD of many samples gives, and √d/δ-Lipschitz, but for another radius of the oracle."""
    family, n, delta = family_of_kinks(d), 100_000, 0.1
    rng, x = np.random.default_rng(5), np.array([0.04, -0.02, *np.zeros(d - 2)])
    ball = family.gradient(x + delta * in_ball(rng, n, d))
    smoothed = family.smoothed(x[None], delta)[0]
    np.testing.assert_allclose(smoothed, ball.mean(axis=0), atol=5 / n**0.5)
    U = zeroth_order.directions([rng], n, 1, d)
    rows = np.zeros((1, n), int)
    grads = {
        factor: zeroth_order.grad(family, x[None], rows, radius=factor * delta, U=U)[0] for factor in (1, 3, 1 / 3)
    }
    np.testing.assert_allclose(grads[1], smoothed, atol=0.02)
    assert all(np.linalg.norm(grads[factor] - smoothed) > 0.05 for factor in (3, 1 / 3))
    y = x + 0.02 * U[0, 0]
    turn = zeroth_order.diff(family, x[None], y, rows, radius=delta, U=U)[0]
    np.testing.assert_allclose(turn, smoothed - family.smoothed(y, delta)[0], atol=0.005)
    along = np.zeros((401, d))
    along[:, 0] = np.linspace(-0.1, 0.1, 401)
    turn = np.linalg.norm(np.diff(family.smoothed(along, delta), axis=0), axis=1).max() / np.diff(along[:, 0]).min()
    assert 0.3 * np.sqrt(d) / delta < turn <= np.sqrt(d) / delta


def test_samples_are_fresh_and_each_replicates_own():
    family = family_of_kinks(5, 2)
    one, two = family.take(np.zeros((2, 3), int)), family.take(np.zeros((2, 3), int))
    assert one.shape == (2, 3, 5)
    np.testing.assert_allclose(np.linalg.norm(one, axis=2), SPREAD)
    assert len(np.unique(np.concatenate([one, two], axis=1).reshape(12, 5), axis=0)) == 12
    assert family.take(np.zeros((2, 5000), int)).shape == (2, 5000, 5)


@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(1, 12), st.sampled_from([1e-6, 1.0, 1e6]))
@settings(max_examples=80, deadline=None)
def test_min_norm_point_has_its_certificate(seed, n, d, scale):
    """p is the point of least norm exactly if <g, p> ≥ ‖p‖² for every g (and p is in the hull, by construction)."""
    rng = np.random.default_rng(seed)
    G = scale * (rng.standard_normal((n, d)) + rng.normal(0, 2, d))
    p = min_norm_point(G)
    assert (G @ p).min() >= p @ p - 1e-9 * scale**2 * d
    assert np.linalg.norm(p) <= np.linalg.norm(G, axis=1).min() * (1 + 1e-9)


def test_known_hulls():
    np.testing.assert_allclose(min_norm_point(np.array([[1.0, 1.0], [1.0, -1.0]])), [1, 0], atol=1e-12)
    np.testing.assert_allclose(min_norm_point(np.array([[2.0, 1.0]])), [2, 1])
    np.testing.assert_allclose(min_norm_point(np.array([[1.0, 0], [-1, 1], [-1, -1]])), 0, atol=1e-10)
    np.testing.assert_allclose(min_norm_point(np.array([[0.0, 2], [1, 1], [3, 0]])), [1, 1], atol=1e-12)
    np.testing.assert_array_equal(min_norm_point(np.zeros((3, 2))), 0)


def quadratic(centre):
    """F = ‖w - centre‖²/2: the gradients in a ball of radius r around w fill the one around w - centre."""
    d = len(centre)
    X = np.sqrt(d) * np.eye(d)
    return Problem(X, X @ centre, loss="squared")


@pytest.mark.parametrize(("distance", "expected"), [(1.0, 0.5), (0.7, 0.2), (0.3, 0.0)])
def test_a_quadratic_has_its_closed_form(distance, expected):
    problem = quadratic(np.zeros(2))
    w = np.array([distance, 0.0])
    value, error = goldstein_norm(problem, w, 0.5, w[None], np.random.default_rng(0), samples=4000)
    assert expected <= value + 1e-9
    assert value == pytest.approx(expected, abs=5e-3)
    assert error < 0.02


def test_more_samples_give_the_same_value_within_its_error():
    problem, w = quadratic(np.zeros(3)), np.array([1.0, 0.5, 0.0])
    settled, last = goldstein_norm(problem, w, 0.5, w[None], np.random.default_rng(1), samples=50_000)
    assert settled == pytest.approx(np.sqrt(1.25) - 0.5, abs=0.01)
    for seed in range(5):
        value, error = goldstein_norm(problem, w, 0.5, w[None], np.random.default_rng(seed), samples=400)
        assert settled < value < settled + 4 * error + 0.01
        assert last < error


def test_points_outside_the_ball_do_not_count():
    problem, w = quadratic(np.zeros(2)), np.array([1.0, 0.0])
    far = np.array([[-1.0, 0.0]])  # its gradient would put 0 in the hull
    value, _ = goldstein_norm(problem, w, 0.1, np.vstack([w, far]), np.random.default_rng(2))
    assert value > 0.85


def test_the_ball_is_filled_uniformly():
    v = in_ball(np.random.default_rng(3), 20_000, 3)
    radii = np.linalg.norm(v, axis=1)
    assert radii.max() <= 1
    assert np.mean(radii < 0.5) == pytest.approx(0.125, abs=0.01)
