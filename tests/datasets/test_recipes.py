import bz2
import gzip

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dpbench.datasets import recipes, spec
from dpbench.errors import DataError

rng = np.random.default_rng(0)


def test_standardise_agrees_with_scikit_learn_and_zeroes_constant_columns():
    X = rng.normal(3.0, 7.0, size=(200, 5))
    X[:, 2] = 0.3
    assert X.mean(axis=0)[2] != 0.3  # in floating point, so that its deviation is none
    expected = StandardScaler().fit_transform(np.delete(X, 2, axis=1))
    recipes.standardise(X)
    np.testing.assert_allclose(np.delete(X, 2, axis=1), expected, rtol=1e-12, atol=1e-13)
    assert (X[:, 2] == 0).all()


def test_rows_are_clipped_to_the_unit_ball_and_short_ones_left_alone():
    X = rng.normal(size=(20_000, 3))  # more rows than one block
    short = np.linalg.norm(X, axis=1) <= 1
    before = X.copy()
    recipes.clip_rows(X)
    np.testing.assert_array_equal(X[short], before[short])
    np.testing.assert_allclose(np.linalg.norm(X[~short], axis=1), 1.0, rtol=1e-15)
    np.testing.assert_allclose(np.cross(X[~short], before[~short]), 0.0, atol=1e-12)  # same direction


@pytest.mark.parametrize("order", [1, 2])
def test_row_norms_of_dense_and_sparse_rows(order):
    X = rng.normal(size=(9000, 4)) * (rng.random((9000, 4)) < 0.5)
    expected = np.linalg.norm(X, ord=order, axis=1)
    np.testing.assert_allclose(recipes.row_norms(X, order), expected, rtol=1e-14)
    np.testing.assert_allclose(recipes.row_norms(csr_array(X), order), expected, rtol=1e-14)


def test_one_hot_agrees_with_scikit_learn():
    values = np.array(["b", "a", "c", "a", "b"])
    expected = OneHotEncoder(sparse_output=False).fit_transform(values[:, None])
    np.testing.assert_array_equal(recipes.one_hot(values), expected)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
def test_files_are_read_whatever_their_compression(tmp_path, pack):
    path = tmp_path / "table"
    path.write_bytes(pack(b"1,2\n3,4\n\n"))
    np.testing.assert_array_equal(recipes.read_table(path, columns=2), [[1, 2], [3, 4]])
    assert spec.count_rows(path) == 2
    with pytest.raises(DataError, match="2 columns found, 3 expected"):
        recipes.read_table(path, columns=3)


def test_svmlight_rows(tmp_path):
    path = tmp_path / "rows"
    path.write_bytes(bz2.compress(b"-1 1:0.5 3:2 \n+1 2:1\n"))
    X, y = recipes.read_svmlight(path, columns=3)
    np.testing.assert_array_equal(X, [[0.5, 0, 2], [0, 1, 0]])
    np.testing.assert_array_equal(y, [-1, 1])
    with pytest.raises(DataError, match="highest feature 3 found, 4 expected"):
        recipes.read_svmlight(path, columns=4)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("make", [np.asarray, lambda X: X.astype(np.float32), csr_array])
def test_rows_beyond_a_bound_are_found_block_by_block(make, order, monkeypatch):
    monkeypatch.setattr(recipes, "BLOCK", 7)
    X = make(np.random.default_rng(0).standard_normal((23, 4)))
    norms = recipes.row_norms(X, order)
    limit = np.median(norms) * (1 + 1e-14)
    found = [np.arange(23)[here][beyond] for here, beyond in recipes.rows_beyond(X, order, limit)]
    np.testing.assert_array_equal(np.concatenate(found), np.flatnonzero(norms > limit))
    assert recipes.all_within(X, order, norms.max() * (1 + 1e-14))
    assert not recipes.all_within(X, order, norms.max() * (1 - 1e-14))


@pytest.mark.parametrize("kind", [np.array, csr_array, lambda X: np.array(X, dtype=np.float32)])
def test_a_row_at_its_bound_is_within_it(kind):
    rows = kind([[3.0, 4.0], [0.0, 5.0], [3.0, -2.0]])
    assert recipes.all_within(rows, 2, 5.0)
    assert recipes.all_within(rows, 1, 7.0)
    assert not recipes.all_within(rows, 2, np.nextafter(5.0, 0.0))


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("size", [1e-25, 1e-12, 1.0, 1e15, 3e38])
def test_float32_alone_never_takes_a_row_beyond_for_one_within(order, size):
    rng = np.random.default_rng(1)
    X = (rng.uniform(-1, 1, (400, 60)) * size * np.geomspace(1e-6, 1, 400)[:, None]).astype(np.float32)
    norms = recipes.row_norms(X, order)
    for norm in norms[::23]:  # a row is next to the bound, on either side
        for off in (-1e-6, -1e-9, 1e-9):
            found = [beyond for _, beyond in recipes.rows_beyond(X, order, norm * (1 - off))]
            np.testing.assert_array_equal(np.sort(found[0]), np.flatnonzero(norms > norm * (1 - off)))


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
def test_a_row_that_is_no_number_or_overflows_is_not_within(value):
    X = np.zeros((9, 3))
    X[4, 1] = value
    assert not recipes.all_within(X, 2, 1e140)
