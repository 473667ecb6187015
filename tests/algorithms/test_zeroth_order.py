"""GRAD and DIFF against the paper's loops, their lemmas' sensitivities, and their law."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpbench.algorithms.zeroth_order import diff, directions, grad, in_blocks
from dpbench.problems import Problem
from dpbench.problems.stationarity import in_ball

RADIUS = 0.1


def problem(n=30, d=4, seed=0, loss="phase"):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True)) * (1 + 1e-15)
    y = rng.random(n) if loss == "phase" else rng.choice([-1.0, 1.0], n)
    return Problem(X, y, loss=loss, row_bound=1.0)


def generators(k, seed=0):
    return [np.random.default_rng([seed, i]) for i in range(k)]


def f(p, x, i):
    """f(x, z_i), one value at a time."""
    return Problem(p.X[i : i + 1], p.y[i : i + 1], loss=p.loss, row_bound=1.0).value(x[None])[0]


@pytest.mark.parametrize("loss", ["phase", "ramp", "logistic"])
def test_both_are_the_papers_loops(loss):
    p = problem(loss=loss)
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((2, 2, p.d))
    rows = rng.integers(0, p.n, (2, 3))
    U = directions(generators(2), 3, p.d, p.d)
    for k in range(2):
        first, second = np.zeros(p.d), np.zeros(p.d)
        for i in range(3):
            for u in U[k, i]:
                z = rows[k, i]
                plus = f(p, x[k] + RADIUS * u, z)
                first += p.d / (2 * RADIUS) * (plus - f(p, x[k] - RADIUS * u, z)) * u / (3 * p.d)
                second += p.d / RADIUS * (plus - f(p, y[k] + RADIUS * u, z)) * u / (3 * p.d)
        np.testing.assert_allclose(grad(p, x, rows, radius=RADIUS, U=U)[k], first, atol=1e-12)
        np.testing.assert_allclose(diff(p, x, y, rows, radius=RADIUS, U=U)[k], second, atol=1e-12)


def test_sparse_rows_give_the_same():
    from scipy import sparse

    p = problem()
    same = Problem(sparse.csr_matrix(p.X), p.y, loss="phase", row_bound=1.0)
    rows, U = np.array([[3, 5]]), directions(generators(1), 2, 4, 4)
    x = np.ones((1, 4))
    np.testing.assert_allclose(
        grad(p, x, rows, radius=RADIUS, U=U), grad(same, x, rows, radius=RADIUS, U=U), atol=1e-14
    )


def test_directions_are_uniform_on_the_sphere():
    U = directions(generators(2), 50, 40, 5)
    np.testing.assert_allclose(np.linalg.norm(U, axis=-1), 1)
    squares = (U[..., 2] ** 2).ravel()
    assert stats.kstest(squares, stats.beta(0.5, 2.0).cdf).pvalue > 1e-4
    assert np.abs(U.mean(axis=(0, 1, 2)) * np.sqrt(4000 * 5)).max() < 4.5
    assert not np.array_equal(U[0], U[1])


def test_blocks_are_the_whole():
    p = problem(n=5000, d=30)
    rows, x = np.arange(400)[None], np.ones((1, 30))
    U = directions(generators(1), 400, 30, 30)
    whole = grad(p, x, rows, radius=RADIUS, U=U)
    parts = in_blocks(lambda block, U: grad(p, x, block, radius=RADIUS, U=U), rows, generators(1), 30, 30)
    np.testing.assert_allclose(parts, whole, rtol=1e-10)


@pytest.mark.parametrize("estimator", ["grad", "diff"])
def test_both_are_unbiased_for_the_smoothed_gradient(estimator):
    """Against ∇F̂(x) = E ∇F(x + δv), another formula; z-test coordinate by coordinate."""
    p, draws = problem(n=40, d=3), 4000
    x, y = np.array([[0.6, -0.2, 0.3]]), np.array([[0.5, -0.15, 0.32]])
    rows = np.arange(p.n)[None]
    coins = generators(1)
    v = RADIUS * in_ball(np.random.default_rng(9), 40_000, p.d)
    at_x, at_y = p.gradient(x + v), p.gradient(y + v)
    reference = at_x if estimator == "grad" else at_x - at_y
    found = []
    for _ in range(draws):
        U = directions(coins, p.n, 1, p.d)
        one = grad(p, x, rows, radius=RADIUS, U=U) if estimator == "grad" else diff(p, x, y, rows, radius=RADIUS, U=U)
        found.append(one[0])
    error = np.sqrt(np.var(found, axis=0) / draws + reference.var(axis=0) / len(v))
    assert np.abs((np.mean(found, axis=0) - reference.mean(axis=0)) / error).max() < 4.5


@given(st.integers(0, 10_000), st.integers(1, 6), st.sampled_from(["phase", "ramp", "logistic", "sigmoid"]))
@settings(max_examples=60, deadline=None)
def test_a_replaced_row_moves_neither_by_more_than_its_lemma_says(seed, b, loss):
    p = problem(n=2 * b, seed=seed, loss=loss)
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((1, p.d))
    y = x + 0.02 * rng.standard_normal((1, p.d))
    rows = np.arange(b)[None]
    other = rows.copy()
    other[0, 0] = b  # the neighbour
    U = directions(generators(1, seed), b, p.d, p.d)
    if seed % 2:
        U[...] = U[0, 0, 0]  # no averaging over directions: the proof does not count on any
    moved = grad(p, x, rows, radius=RADIUS, U=U) - grad(p, x, other, radius=RADIUS, U=U)
    assert np.linalg.norm(moved) <= 2 * p.d * p.lipschitz / b * (1 + 1e-9)
    moved = diff(p, x, y, rows, radius=RADIUS, U=U) - diff(p, x, y, other, radius=RADIUS, U=U)
    bound = 2 * p.d * p.lipschitz * np.linalg.norm(x - y) / (b * RADIUS)
    assert np.linalg.norm(moved) <= bound * (1 + 1e-9)


@pytest.mark.parametrize("b", [1, 4])
def test_the_worst_rows_move_both_by_exactly_as_much(b):
    """All directions along a; one row's loss rises with <a, x> at slope 1, its replacement's falls."""
    d, e = 3, np.eye(3)[0]
    X, y = np.tile(e, (b + 1, 1)), np.append(np.zeros(b), 9.0)
    p = Problem(X, y, loss="phase", row_bound=1.0)
    rows, other = np.arange(b)[None], np.append(np.arange(1, b), b)[None]
    U = np.broadcast_to(e, (1, b, d, d))
    x, below = 2 * e[None], 1.97 * e[None]
    moved = grad(p, x, rows, radius=RADIUS, U=U) - grad(p, x, other, radius=RADIUS, U=U)
    assert np.linalg.norm(moved) == pytest.approx(2 * d / b)
    moved = diff(p, x, below, rows, radius=RADIUS, U=U) - diff(p, x, below, other, radius=RADIUS, U=U)
    assert np.linalg.norm(moved) == pytest.approx(2 * d * 0.03 / (b * RADIUS))
