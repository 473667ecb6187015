"""Sums over rows are those that NumPy takes of them at once, in float64 and in float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpbench.algorithms.gradient_descent import best_step
from dpbench.problems import Problem, exact, grid, losses
from dpbench.problems.losses import LOSSES, Loss
from dpbench.problems.rows import Rows

N, D = 3_100, 7


def table(loss: Loss, dtype: type = np.float64) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((N, D)) / np.sqrt(D)).astype(dtype)
    y = np.where(rng.random(N) < 0.5, -1.0, 1.0) if loss.binary else np.abs(rng.standard_normal(N))
    return X, y.astype(dtype).astype(float)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("k", [1, 3])
def test_sums(name, k):
    loss = LOSSES[name]
    X, y = table(loss)
    rows, W = Rows(X, y), np.random.default_rng(1).standard_normal((k, D))
    some = np.random.default_rng(2).integers(0, N, 1_500)
    for chosen in (None, some, some[:3], some[:0]):
        A, b = (X, y) if chosen is None else (X[chosen], y[chosen])
        z = W @ A.T
        value = loss.value(z.copy(), b, np.empty_like(z))
        slope = loss.derivative(z.copy(), b, np.empty_like(z))
        near(rows.sum(loss.value, W, chosen), value.sum(axis=1))
        near(rows.weighted_sum(loss.derivative, W, chosen), slope @ A)
        if chosen is None:
            total, weighted = rows.sum_and_weighted_sum(loss.value, loss.derivative, W)
            near(total, value.sum(axis=1))
            near(weighted, slope @ A)
        if loss.smooth:
            bend = loss.second_derivative(z.copy(), b, np.empty_like(z))
            found = rows.gram(loss.second_derivative, W, chosen, convex=loss.convex)
            near(found, np.einsum("ki,id,ie->kde", bend, A, A))
            np.testing.assert_array_equal(found, found.swapaxes(1, 2))


def near(found: np.ndarray, expected: np.ndarray) -> None:
    """Equal to 1e-12 of the largest entry."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * max(1.0, np.abs(expected).max()))


def test_facts_of_the_rows():
    X, y = table(LOSSES["squared"])
    rows = Rows(X, y)
    near(rows.weighted_gram(), X.T @ X)
    near(rows.column_squares(), (X * X).sum(axis=0))
    near(rows.label_moments(0.5), np.clip(y, -0.5, 0.5) @ X)
    assert rows.label_sum() == pytest.approx(y.sum(), rel=1e-12)
    longest = np.linalg.norm(X, axis=1).max()
    assert rows.largest_norm(2) == pytest.approx(longest, rel=1e-12)
    assert rows.within(2, longest * (1 + 1e-12))
    assert not rows.within(2, longest * (1 - 1e-12))
    A, b = rows.take(np.array([2_999, 0, 5]))
    np.testing.assert_array_equal(A, X[[2_999, 0, 5]])
    np.testing.assert_array_equal(b, y[[2_999, 0, 5]])


@pytest.mark.parametrize("name", ["logistic", "sigmoid", "squared"])
def test_float32_is_added_in_float64(name):
    loss = LOSSES[name]
    X, y = table(loss, np.float32)
    rows, wide = Rows(X, y), Rows(X.astype(float), y)
    W = np.random.default_rng(1).standard_normal((2, D)).astype(np.float32).astype(float)
    for found, expected in (
        (rows.sum(loss.value, W), wide.sum(loss.value, W)),
        (rows.weighted_sum(loss.derivative, W), wide.weighted_sum(loss.derivative, W)),
        (rows.gram(loss.second_derivative, W, convex=loss.convex),
         wide.gram(loss.second_derivative, W, convex=loss.convex)),
    ):  # fmt: skip
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * np.abs(expected).max() + 1e-3)
    near(rows.in_float64.weighted_sum(loss.derivative, W), wide.weighted_sum(loss.derivative, W))


@pytest.mark.parametrize("name", ["logistic", "weighted", "squared"])
def test_exact_sums_are_the_same_integers_in_float32(name):
    loss = losses.Weighted(LOSSES["logistic"], (0.5, 1.0)) if name == "weighted" else LOSSES[name]
    X, y = table(loss, np.float32)
    X = grid.on_grid(X.astype(np.float32), 1.0)
    W = np.random.default_rng(1).standard_normal((1, D))
    some = np.random.default_rng(2).integers(0, N, 1_500)

    def sums(X: np.ndarray) -> list[np.ndarray]:
        p = exact.ExactProblem(X, y, row_bound=1.0, loss=loss)
        asked: list[Callable[[], Any]] = [lambda: p.bounded_gradient(W, 0.75), lambda: p.label_moments(0.5)]
        if loss.lipschitz < np.inf:
            asked += [lambda: p.gradient_sum(W), lambda: p.gradient_sum(W, some)]
        asked += [lambda: p.hessian_sum(W), lambda: p.hessian_sum(W, some), p.second_moment]
        return [one().integers for one in asked]

    for found, expected in zip(sums(X), sums(X.astype(np.float64)), strict=True):
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, expected)


def test_exact_coordinates_are_the_same_integers_in_float32():
    X, y = table(LOSSES["logistic"])
    X = grid.on_grid(X.astype(np.float32), 1.0)
    W = 0.3 * np.random.default_rng(1).standard_normal((1, D))

    def followed(X: np.ndarray) -> list[np.ndarray]:
        p, rng = exact.ExactProblem(X, y, row_bound=1.0, loss="logistic"), np.random.default_rng(3)
        state, found = p.coordinate_state(W), [p.clipped_gradient(W, np.array([0.01]), even=True).integers]
        for t in range(25):
            j, change = int(rng.integers(D)), rng.standard_normal(1) * (30 if t == 10 else 1)  # then on another grid
            found.append(state.derivative(j, np.array([0.05])).integers)
            state.move(j, change)
        return found

    for found, expected in zip(followed(X), followed(X.astype(np.float64)), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["logistic", "squared", "pseudo-huber"])
def test_coordinates_lines_and_minimisers_in_float32(name):
    loss, rng = LOSSES[name], np.random.default_rng(3)
    X, y = table(loss, np.float32)
    p, whole = Problem(X, y, loss=name, l1=0.02), Problem(X.astype(float), y, loss=name, l1=0.02)
    tolerance = {"rtol": 1e-4, "atol": 1e-6}
    W = rng.standard_normal((2, D))
    clip = np.array([0.1, 10.0])
    np.testing.assert_allclose(p.clipped_gradient(W, clip), whole.clipped_gradient(W, clip), **tolerance)
    np.testing.assert_allclose(p.smallest_margins(W), whole.smallest_margins(W), **tolerance)
    here, there = whole.coordinate_state(W), p.coordinate_state(W)
    for _ in range(8):
        j, change = int(rng.integers(D)), rng.standard_normal(2)
        np.testing.assert_allclose(there.derivative(j, clip), here.derivative(j, clip), **tolerance)
        for state in (here, there):
            state.move(j, change)
    first, second = (best_step(one, W, one.gradient(W)) for one in (p, whole))
    np.testing.assert_allclose(first, second, rtol=1e-4)
    assert p.optimum().value == pytest.approx(whole.optimum().value, rel=1e-9)
    np.testing.assert_allclose(p.optimum().w, whole.optimum().w, atol=1e-6)
