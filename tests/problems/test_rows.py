"""What stands for rows gives the same sums, wherever they are taken: in memory, in shards, on a device of JAX."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpbench.errors import UserError
from dpbench.problems import Problem, exact, grid, losses
from dpbench.problems.kernels import Rows
from dpbench.problems.losses import LOSSES, Loss
from dpbench.problems.sharded import Shards, held

N, D = 3_100, 7
SIZES = (1_000, 37, 2_063)
KINDS = ("memory", "shards", "device")


def of_kind(kind: str, X: np.ndarray, y: np.ndarray) -> Any:
    """Rows of a kind; a test of a device is skipped without JAX."""
    if kind == "memory":
        return Rows(X, y)
    if kind == "device":
        pytest.importorskip("jax")
        from dpbench.problems.device import DeviceRows

        return DeviceRows(X, y, "cpu")
    cuts = np.cumsum(SIZES)[:-1]
    parts = [Rows(A, b) for A, b in zip(np.split(X, cuts), np.split(y, cuts), strict=True)]
    return Shards(held(parts), SIZES, D, single=parts[0].single)


def table(loss: Loss, dtype: type = np.float64) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((N, D)) / np.sqrt(D)).astype(dtype)
    y = np.where(rng.random(N) < 0.5, -1.0, 1.0) if loss.binary else np.abs(rng.standard_normal(N))
    return X, y.astype(dtype).astype(float)


@pytest.fixture(params=KINDS)
def kind(request) -> str:
    return request.param


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("k", [1, 3])
def test_sums(kind, name, k):
    loss = LOSSES[name]
    X, y = table(loss)
    rows, W = of_kind(kind, X, y), np.random.default_rng(1).standard_normal((k, D))
    some = np.random.default_rng(2).integers(0, N, 1_500)
    for chosen in (None, some, some[:3]):
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


def test_facts_of_the_rows(kind):
    X, y = table(LOSSES["squared"])
    rows = of_kind(kind, X, y)
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
def test_float32_is_added_in_float64(kind, name):
    loss = LOSSES[name]
    X, y = table(loss, np.float32)
    rows, wide = of_kind(kind, X, y), Rows(X.astype(float), y)
    W = np.random.default_rng(1).standard_normal((2, D)).astype(np.float32).astype(float)
    for found, expected in (
        (rows.sum(loss.value, W), wide.sum(loss.value, W)),
        (rows.weighted_sum(loss.derivative, W), wide.weighted_sum(loss.derivative, W)),
        (rows.gram(loss.second_derivative, W, convex=loss.convex),
         wide.gram(loss.second_derivative, W, convex=loss.convex)),
    ):  # fmt: skip
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * np.abs(expected).max() + 1e-3)
    near(rows.widened.weighted_sum(loss.derivative, W), wide.weighted_sum(loss.derivative, W))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["logistic", "weighted", "squared"])
def test_exact_sums_are_the_same_integers(kind, name, dtype):
    loss = losses.Weighted(LOSSES["logistic"], (0.5, 1.0)) if name == "weighted" else LOSSES[name]
    X, y = table(loss)
    X = grid.on_grid(X.astype(dtype), 1.0)
    W = np.random.default_rng(1).standard_normal((1, D))
    some = np.random.default_rng(2).integers(0, N, 1_500)

    def sums(kind: str) -> list[np.ndarray]:
        cls = exact.ExactShardedProblem if kind == "shards" else exact.ExactProblem
        if kind == "shards":
            p: Any = cls(of_kind(kind, X, y), row_bound=1.0, loss=loss)
        else:
            p = cls(X, y, row_bound=1.0, loss=loss)
            p.__dict__["_rows"] = of_kind(kind, p.X, p.y)
        asked: list[Callable[[], Any]] = [lambda: p.bounded_gradient(W, 0.75), lambda: p.label_moments(0.5)]
        if loss.lipschitz < np.inf:
            asked += [lambda: p.gradient_sum(W), lambda: p.gradient_sum(W, some)]
        asked += [lambda: p.hessian_sum(W), lambda: p.hessian_sum(W, some), p.second_moment]
        return [one().integers for one in asked]

    for found, expected in zip(sums(kind), sums("memory"), strict=True):
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, expected)


def test_a_device_that_is_not_there_and_a_loss_for_numpy_alone_are_one_line_each():
    pytest.importorskip("jax")
    from dpbench.problems import device

    X, y = table(LOSSES["logistic"])
    with pytest.raises(UserError, match="JAX has no 'abacus' here; it has: cpu"):
        device.DeviceRows(X, y, "abacus")

    class InPlace(losses.Logistic):
        def derivative(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
            np.multiply(z, y, out=out)
            return out

    with pytest.raises(UserError, match="written for NumPy alone"):
        device.check(InPlace())
    for loss in LOSSES.values():
        device.check(loss)


def test_functions_made_anew_are_compiled_once():
    pytest.importorskip("jax")
    from dpbench.problems import device

    X, y = table(LOSSES["logistic"])
    problem = Problem(X, y)
    problem.__dict__["_rows"] = device.DeviceRows(X, y, "cpu")
    W = np.zeros((1, D))
    problem.clipped_value(W, 0.5)
    before = device._compiled.cache_info().misses
    for _ in range(3):
        problem.clipped_value(W, 0.5)
    assert device._compiled.cache_info().misses == before
    assert device._Key(functools.partial(near, 1)) != device._Key(functools.partial(near, 2))
