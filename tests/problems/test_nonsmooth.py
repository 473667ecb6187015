"""The losses with kinks against their formulas and finite differences."""

import numpy as np
import pytest

from dpbench import fit
from dpbench.datasets import drawn
from dpbench.errors import DataError, UserError
from dpbench.problems import Problem, build, losses

FORMULAS = {
    "ramp": lambda z, y: np.minimum(1, np.maximum(0, 1 - y * z)),
    "phase": lambda z, y: np.abs(np.abs(z) - y),
}


def problem(loss, n=50, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.random(n) if loss == "phase" else rng.choice([-1.0, 1.0], n)
    return Problem(X, y, loss=loss, row_bound=1.0)


@pytest.mark.parametrize("loss", FORMULAS)
def test_value_is_the_formula_and_gradient_its_slope(loss):
    p = problem(loss)
    rng = np.random.default_rng(1)
    W, V = rng.standard_normal((2, 200, p.d))
    expected = FORMULAS[loss](p.predictions(W), p.y).mean(axis=1)
    np.testing.assert_allclose(p.value(W), expected, rtol=1e-13)
    step = 1e-7
    slope = (p.value(W + step * V) - p.value(W - step * V)) / (2 * step)
    error = np.abs(np.einsum("kd,kd->k", p.gradient(W), V) - slope)
    assert np.quantile(error, 0.98) < 1e-7  # a few W lie within a step of a kink


@pytest.mark.parametrize("loss", FORMULAS)
def test_each_row_is_1_lipschitz_and_no_less(loss):
    one = losses.get(loss)
    z = np.linspace(-3, 3, 6001)[None]
    for y in (1.0, -1.0) if loss == "ramp" else (0.0, 0.7):
        labels = np.full(z.shape[1], y)
        values = one.value(z.copy(), labels, np.empty_like(z))[0]
        slopes = np.abs(np.diff(values) / np.diff(z[0]))
        assert slopes.max() == pytest.approx(one.lipschitz, abs=1e-9)
        assert np.abs(one.derivative(z.copy(), labels, np.empty_like(z))).max() <= 1
    assert not one.convex


@pytest.mark.parametrize("loss", FORMULAS)
def test_in_place_and_apart_agree(loss):
    one, rng = losses.get(loss), np.random.default_rng(2)
    z = rng.standard_normal((3, 100))
    y = rng.choice([-1.0, 1.0], 100) if one.binary else rng.random(100)
    for function in (one.value, one.derivative):
        apart, inside = function(z, y, np.empty_like(z)), z.copy()
        np.testing.assert_array_equal(function(inside, y, inside), apart)


def test_what_they_are_not_made_for_is_refused_in_one_line():
    with pytest.raises(UserError, match="ramp is not smooth"):
        problem("ramp").hessian(np.ones((1, 4)))
    with pytest.raises(DataError, match="phase loss needs labels >= 0, found -2; give the sizes"):
        Problem(np.eye(4), np.array([1.0, 0.0, -2.0, -3.0]), loss="phase")
    with pytest.raises(DataError, match=r"ramp loss needs labels -1 and \+1, found 0\.5; recode"):
        Problem(np.eye(4), np.array([1.0, -1.0, 0.5, 3.0]), loss="ramp")


def test_phase_retrieval_is_solved_by_its_signal_and_the_mirror_image():
    A, signal, b = drawn.draw(np.random.default_rng(3), 200, 5)
    p = Problem(A, b, loss="phase", row_bound=1.0)
    np.testing.assert_allclose(p.value(np.stack([signal, -signal])), 0, atol=1e-15)
    assert p.value(-0.5 * signal[None]) > 0.1


@pytest.mark.thorough_for("100")
@pytest.mark.parametrize("d", drawn.DIMENSIONS)
def test_the_registered_problems_keep_their_bound(d):
    p = build(f"phase-{d}")
    assert (p.n, p.d, p.lipschitz) == (drawn.PHASE_ROWS, d, 1.0)
    assert p.row_norm <= 1 + 1e-12
    assert np.allclose(p.value(np.zeros((1, d))), p.y.mean())


def test_ramp_loss_on_the_census(real_data):
    real_data("a1a-all")
    p = build("a1a-ramp")
    assert (p.n, p.d, p.lipschitz) == (32_561, 124, 1.0)
    np.testing.assert_allclose(p.value(np.zeros((1, p.d))), 1.0)


def test_a_users_own_phases_are_not_asked_for_signs():
    A, _, b = drawn.draw(np.random.default_rng(4), 200, 3)
    fitted = fit(A, b, loss="phase", algorithm="o2nc-tree", epsilon=5.0, delta=1e-6, start="unit", T=10)
    assert fitted.diagnostics.status == "done"
    assert fitted.released.epsilon_planned <= 5
