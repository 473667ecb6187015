"""Rows in groups of categories give the sums of the rows as they are."""

from __future__ import annotations

import numpy as np
import pytest

from dpbench.problems import fast_rows as module
from dpbench.problems.losses import LOSSES
from dpbench.problems.rows import Rows

N, NUMBERS, CATEGORIES = 4_000, 3, (6, 8)


def table(rng: np.random.Generator, *, standardised: bool = False, scaled: bool = False) -> np.ndarray:
    """Three numbers and two sets of one-hot columns a row; in file order, which is not that of the categories."""
    categories = [np.eye(size)[rng.integers(0, size, N)] for size in CATEGORIES]
    X = np.hstack([rng.standard_normal((N, NUMBERS)), *categories])
    if standardised:
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X / np.linalg.norm(X, axis=1, keepdims=True) if scaled else np.ascontiguousarray(X)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MIN_ROWS", 1_000)
    monkeypatch.setattr(module, "FEWEST", 50)
    monkeypatch.setattr(module, "BLOCK", 64)


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("standardised", [False, True])
@pytest.mark.parametrize("k", [1, 3])
def test_sums_are_those_of_the_rows(standardised, scaled, k):
    rng = np.random.default_rng(0)
    X = table(rng, standardised=standardised, scaled=scaled)
    y = rng.choice([-1.0, 1.0], N)
    W = rng.standard_normal((k, X.shape[1]))
    ours, plain = Rows(X, y), Rows(X, y)
    plain.__dict__["groups"] = None
    assert ours.groups is not None
    assert len(ours.groups.maps) == np.prod(CATEGORIES)
    loss = LOSSES["sigmoid"]
    for name, functions in (
        ("sum", (loss.value,)),
        ("weighted_sum", (loss.derivative,)),
        ("sum_and_weighted_sum", (loss.value, loss.derivative)),
    ):
        found, expected = (getattr(rows, name)(*functions, W) for rows in (ours, plain))
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12 * np.abs(other).max())
    found, expected = (rows.gram(loss.second_derivative, W, convex=False) for rows in (ours, plain))
    np.testing.assert_allclose(found, expected, atol=1e-12 * np.abs(expected).max())


def test_a_value_that_no_category_has_leaves_the_rows_as_they_are():
    rng = np.random.default_rng(0)
    X = table(rng)
    X[1_234, -1] = 0.5
    assert Rows(X, np.ones(N)).groups is None


def test_a_category_that_one_row_has_counts():
    rng = np.random.default_rng(0)
    X = np.hstack([table(rng), np.zeros((N, 1))])
    X[1_234, -1] = 1.0
    rows = Rows(X, np.ones(N))
    assert len(rows.groups.maps) == np.prod(CATEGORIES) + 1
    np.testing.assert_allclose(rows.gram(lambda z, y, out: z * 0 + 1, np.zeros((1, X.shape[1])))[0], X.T @ X, atol=1e-9)


def test_few_rows_and_rows_of_numbers_stay_as_they_are(monkeypatch):
    rng = np.random.default_rng(0)
    assert Rows(rng.standard_normal((N, 12)), np.ones(N)).groups is None
    monkeypatch.setattr(module, "MIN_ROWS", N + 1)
    assert Rows(table(rng), np.ones(N)).groups is None
