"""The trust-region subproblem against brute force and its optimality conditions, hard case included."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbench.algorithms.nonconvex import solve


def value(H, g, s):
    return s @ g + 0.5 * np.einsum("...i,ij,...j->...", s, H, s)


def residuals(H, g, radius, step):
    """Of (H + λI)s = -g, H + λI ⪰ 0, ‖s‖ ≤ r, λ ≥ 0, λ(r - ‖s‖) = 0."""
    shifted = H + step.multiplier * np.eye(len(g))
    norm = np.linalg.norm(step.s)
    return {
        "stationarity": np.linalg.norm(shifted @ step.s + g),
        "curvature": max(0.0, -np.linalg.eigvalsh(shifted)[0]),
        "radius": max(0.0, norm - radius),
        "sign": max(0.0, -step.multiplier),
        "complementarity": step.multiplier * abs(radius - norm),
    }


def random_case(generator, d, kind):
    """(H, g, radius) of a kind, in a random basis, ‖H‖ and ‖g‖ about 1."""
    basis = np.linalg.qr(generator.standard_normal((d, d)))[0]
    values = np.sort(generator.uniform(-1, 1, d))
    g = generator.standard_normal(d) / np.sqrt(d)
    radius = generator.uniform(0.01, 3)
    if kind == "convex":
        values = np.abs(values) + 0.1
    elif kind == "hard":
        values[0], g[0] = -1.1, 0.0
        radius = np.linalg.norm(g[1:] / (values[1:] - values[0])) + generator.uniform(0.01, 2)
    elif kind == "nearly hard":
        values[0], g[0] = -1.1, 10.0 ** generator.uniform(-18, -6)
        radius = np.linalg.norm(g[1:] / (values[1:] - values[0])) + generator.uniform(0.01, 2)
    elif kind == "repeated":
        values[: d // 2 + 1] = values[0]
    elif kind == "singular":
        values -= values[0]
        g[0] = 0.0
    elif kind == "no gradient":
        g[:] = 0
    H = (basis * values) @ basis.T
    return (H + H.T) / 2, basis @ g, radius


KINDS = ("any", "convex", "hard", "nearly hard", "repeated", "singular", "no gradient")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 2, 3, 54])
def test_optimality_conditions_hold_to_1e_10(d, kind):
    for seed in range(10):
        H, g, radius = random_case(np.random.default_rng(seed), d, kind)
        step = solve(H, g, radius)
        assert max(residuals(H, g, radius, step).values()) <= 1e-10
        assert step.smallest == pytest.approx(np.linalg.eigvalsh(H)[0], abs=1e-12)


@pytest.mark.thorough
@given(seed=st.integers(0, 2**32 - 1), d=st.sampled_from([2, 3]), kind=st.sampled_from(KINDS))
@settings(max_examples=150, deadline=None)
def test_no_point_of_the_ball_is_better(seed, d, kind):
    """Brute force: a grid of directions and radii, then projected gradient descent from the best of it."""
    generator = np.random.default_rng(seed)
    H, g, radius = random_case(generator, d, kind)
    points = generator.standard_normal((4000, d))
    points *= radius * (generator.random(4000) ** 0.2 / np.linalg.norm(points, axis=1))[:, None]
    points[::2] *= radius / np.linalg.norm(points[::2], axis=1, keepdims=True)
    best = points[np.argsort(value(H, g, points))[:3]]
    for _ in range(500):
        best = best - 0.4 * (best @ H + g)
        best *= np.minimum(1, radius / np.maximum(np.linalg.norm(best, axis=1, keepdims=True), 1e-300))
    least = value(H, g, best).min()
    assert value(H, g, solve(H, g, radius).s) <= least + 1e-12
    assert value(H, g, solve(H, g, radius).s) >= least - 1e-3  # and brute force comes near it


def test_inside_the_ball_it_is_a_newton_step_without_multiplier():
    H, g = np.diag([1.0, 2.0]), np.array([0.1, 0.2])
    step = solve(H, g, 1.0)
    np.testing.assert_allclose(step.s, [-0.1, -0.1])
    assert step.multiplier == 0


def test_the_hard_case_goes_to_the_boundary_along_the_first_eigenvector():
    H, g = np.diag([-1.0, 1.0]), np.array([0.0, 1.0])
    step = solve(H, g, 1.0)
    np.testing.assert_allclose(np.abs(step.s), [np.sqrt(3) / 2, 0.5])
    assert step.multiplier == 1.0
