"""The real data, where their files are at hand (DPBENCH_MIRROR or the developer's own cache)."""

import numpy as np
import pytest

from dpbench import datasets

SMALL = (
    "a1a",
    "adult",
    "covertype",
    "adult-max",
    "covertype-max",
    "ijcnn",
    "california",
    "madelon",
    "mtp-qsar",
    "dorothea",
    "protein-sample",
)
LARGE = ("covertype12", "fmnist", "mtp", "protein")
BOUNDED = (
    "a1a",
    "adult",
    "adult-max",
    "covertype",
    "covertype-max",
    "covertype12",
    "ijcnn",
    "fmnist",
    "protein",
    "protein-sample",
)


@pytest.mark.thorough_for("adult*", "covertype*", "ijcnn")
@pytest.mark.parametrize("name", [*SMALL, *(pytest.param(name, marks=pytest.mark.slow) for name in LARGE)])
def test_rows_columns_classes_and_norms(real_data, name):
    data, spec = real_data(name), datasets.describe(name)
    assert data.X.shape == (spec.rows, spec.columns)
    assert data.y.shape == (spec.rows,)
    assert datasets.verify(name)
    if name in BOUNDED:
        assert data.row_norm <= 1 + 1e-15
        assert data.row_norm > 1 - 1e-3  # some row is at the bound, or the division took too much


def minimum(A):
    """min_w mean log(1 + exp(-A w)), A = y x row by row: Newton with halving; a ridge of 1e-10 holds H regular."""
    n, d = A.shape
    w = np.zeros(d)
    value = np.log(2)
    for _ in range(60):
        p = 1 / (1 + np.exp(np.minimum(A @ w, 700)))
        gradient = -A.T @ p / n
        if np.linalg.norm(gradient) < 1e-9:
            return value
        step = np.linalg.solve((A.T * (p * (1 - p))) @ A / n + 1e-10 * np.eye(d), gradient)
        for halving in range(30):
            trial = w - step / 2**halving
            if (new := np.logaddexp(0, -(A @ trial)).mean()) <= value:
                break
        w, value = trial, new
    raise AssertionError("no convergence")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("a1a", 0.325618),
        ("adult", 0.388803),
        ("covertype", 0.492980),
        ("adult-max", 0.323420),
        ("covertype-max", 0.488452),
    ],
)
def test_the_recipes_give_the_optimum_of_the_paper(real_data, name, value):
    data = real_data(name)
    assert minimum(data.X * data.y[:, None]) == pytest.approx(value, abs=6e-7)


@pytest.mark.parametrize("name", ["california", "madelon", "mtp-qsar"])
def test_columns_are_standardised(real_data, name):
    X = real_data(name).X[:, 1:]  # madelon's first column is ones
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-11)
    np.testing.assert_allclose(X.std(axis=0), 1, rtol=1e-10)


def test_dorothea_is_ones_and_zeros_and_no_column_constant(real_data):
    X = real_data("dorothea").X
    assert set(X.data) == {1.0}
    ones = X.sum(axis=0)
    assert 0 < ones.min() <= ones.max() < X.shape[0]
