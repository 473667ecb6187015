"""Per-coordinate clipping against its definition, dense and sparse; and the sensitivity it is for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from dpbench.problems import Problem, columns


@pytest.fixture(params=["numpy", "numba"])
def loops(request, monkeypatch):
    """What sums: NumPy, or what numba compiled, where it is installed."""
    if request.param == "numba":
        pytest.importorskip("numba")
    else:
        monkeypatch.setattr(columns, "kernels", lambda: None)


def data(n=70, d=9, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((n, d)) * generator.lognormal(0, 1, d) * (generator.random((n, d)) < 0.4)
    X[:, 3] = 0  # an empty column
    X[0, 3] = 1e-3
    return X, generator.choice([-1.0, 1.0], n)


def clipped(problem, w, clip):
    """The definition, one sample at a time."""
    z = problem.predictions(w[None])[0]
    r = problem.loss.derivative(z[None].copy(), problem.y, np.empty((1, problem.n)))[0]
    X = problem.X.toarray() if problem.is_sparse else problem.X
    bound = clip * np.sqrt(problem.coordinate_constants / problem.coordinate_constants.sum())
    return np.mean([np.clip(r[i] * X[i], -bound, bound) for i in range(problem.n)], axis=0)


@pytest.mark.thorough
@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.usefixtures("loops")
def test_the_clipped_gradient_is_its_definition(loss, kind):
    X, y = data()
    problem = Problem(sparse.csr_array(X) if kind == "sparse" else X, y, loss=loss, l2=0.1)
    W = np.random.default_rng(1).standard_normal((6, 9))
    clip = np.array([1e-4, 0.01, 0.3, 1.0, 5.0, 1e6])
    expected = np.array([clipped(problem, w, c) for w, c in zip(W, clip, strict=True)])
    np.testing.assert_allclose(problem.clipped_gradient(W, clip), expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(expected[-1], problem.data_gradient(W)[-1], rtol=1e-12)  # clips nothing
    assert not np.allclose(expected[2], problem.data_gradient(W)[2])  # clips something


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("k", [1, 300])
@pytest.mark.usefixtures("loops")
def test_a_coordinate_state_follows_the_moves(kind, k):
    X, y = data(n=200)
    problem = Problem(sparse.csr_array(X) if kind == "sparse" else X, y)
    generator = np.random.default_rng(2)
    W = generator.standard_normal((k, 9))
    state = problem.coordinate_state(W)
    clip = generator.lognormal(0, 2, k)
    for _ in range(20):
        j = int(generator.integers(9))
        expected = problem.clipped_gradient(W, clip)[:, j]
        threshold = clip * problem.clip_shares[j]
        np.testing.assert_allclose(state.derivative(j, threshold), expected, rtol=1e-9, atol=1e-14)
        change = generator.standard_normal(k) * (generator.random(k) < 0.5)  # some of the replicates move
        W[:, j] += change
        state.move(j, change)
        W[:, 1] += 0.1
        state.move(1, np.full(k, 0.1))  # two moves in a row


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.usefixtures("loops")
def test_a_replicate_that_diverged_leaves_the_others_alone(kind):
    X, y = data()
    problem = Problem(sparse.csr_array(X) if kind == "sparse" else X, y, loss="squared")
    W = np.random.default_rng(1).standard_normal((3, 9))
    expected = problem.clipped_gradient(W, np.ones(3))
    W[1] = np.nan
    found = problem.clipped_gradient(W, np.ones(3))
    assert np.isnan(found[1][problem.coordinate_constants > 0]).all()
    np.testing.assert_array_equal(found[[0, 2]], expected[[0, 2]])
    state = problem.coordinate_state(W)
    assert np.isnan(state.derivative(0, np.ones(3))).tolist() == [False, True, False]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["logistic", "squared"]), st.floats(-3, 3))
def test_a_replaced_row_moves_no_coordinate_by_more_than_2C_over_n(seed, loss, log_clip):
    """Random neighbours; M_j counts as public, so both sides use the thresholds of one data set."""
    generator = np.random.default_rng(seed)
    X, y = data(n=20, seed=seed)
    other_X, other_y = X.copy(), y.copy()
    other_X[5], other_y[5] = 30 * generator.standard_normal(9), -y[5]
    one, two = Problem(X, y, loss=loss), Problem(other_X, other_y, loss=loss)
    two.clip_shares = one.clip_shares
    W, clip = generator.standard_normal((3, 9)), np.full(3, 10.0**log_clip)
    moved = np.abs(one.clipped_gradient(W, clip) - two.clipped_gradient(W, clip))
    assert (moved <= 2 * clip[0] * one.clip_shares / 20 * (1 + 1e-9) + 1e-12).all()


def test_the_worst_neighbours_attain_2C_over_n_in_every_coordinate():
    """Squared loss at w = 0: a row whose every r·x_j is far above C against its negative."""
    X, y = data(n=20)
    X[:, 3] = 1.0
    y = y * 1e6
    X[5] = 1.0
    other = y.copy()
    other[5] = -y[5]
    one, two = Problem(X, y, loss="squared"), Problem(X, other, loss="squared")
    W, clip = np.zeros((1, 9)), np.array([2.0])
    moved = np.abs(one.clipped_gradient(W, clip) - two.clipped_gradient(W, clip))[0]
    np.testing.assert_allclose(moved, 2 * 2.0 * one.clip_shares / 20, rtol=1e-12)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.usefixtures("loops")
def test_an_empty_column_without_l2_is_clipped_to_nothing(kind):
    X, y = data()
    X[:, 3] = 0
    problem = Problem(sparse.csr_array(X) if kind == "sparse" else X, y)
    W = np.random.default_rng(1).standard_normal((3, 9))
    with np.errstate(all="raise"):
        G = problem.clipped_gradient(W, np.array([1e-3, 1.0, 1e6]))
    assert (G[:, 3] == 0).all()
    assert np.isfinite(G).all()


def test_shares_square_up_to_one_and_use_the_loss_and_l2():
    X, y = data()
    problem = Problem(X, y, l2=0.3)
    M = (X**2).mean(axis=0) / 4 + 0.3
    np.testing.assert_allclose(problem.coordinate_constants, M)
    np.testing.assert_allclose(problem.clip_shares, np.sqrt(M / M.sum()))
    assert (problem.clip_shares**2).sum() == pytest.approx(1)
