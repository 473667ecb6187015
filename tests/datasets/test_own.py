import numpy as np
import pytest
from scipy.sparse import coo_array, csc_array, csr_array

from dpbench.datasets import check_arrays
from dpbench.datasets.own import as_arrays
from dpbench.errors import DataError

X, Y = np.arange(6.0).reshape(3, 2), np.array([1.0, -1.0, 1.0])


def test_good_arrays_pass_without_a_copy():
    checked, y = check_arrays(X, Y)
    assert checked is X
    assert y is Y


@pytest.mark.parametrize("convert", [np.asfortranarray, np.float32, np.ndarray.tolist])
def test_dense_input_becomes_c_order_float64(convert):
    checked, y = check_arrays(convert(X), Y.astype(int))
    assert (checked.dtype, y.dtype, checked.flags.c_contiguous) == (np.float64, np.float64, True)
    np.testing.assert_array_equal(checked, X)


@pytest.mark.parametrize("convert", [csr_array, csc_array, coo_array])
def test_sparse_input_becomes_csr(convert):
    checked, _ = check_arrays(convert(X.astype(np.float32)), Y)
    assert isinstance(checked, csr_array)
    assert checked.dtype == np.float64
    np.testing.assert_array_equal(checked.toarray(), X)


def with_bad(value):
    bad = X.copy()
    bad[1, 1] = value
    return bad


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (with_bad(np.nan), Y, r"X: 1 entries are NaN or infinite \(beyond 1e\+150\); drop or impute"),
        (csr_array(with_bad(np.inf)), Y, "X: 1 entries are NaN or infinite"),
        (with_bad(-1e300), Y, r"X: 1 entries are NaN or infinite \(beyond"),
        (X + 1j, Y, "X: complex numbers found"),
        (X, np.array([1.0, np.nan, -1.0]), "y: 1 entries are NaN or infinite"),
        (X[0], Y, r"X: shape \(2,\) found; give rows × columns"),
        (X[:0], Y[:0], r"X: shape \(0, 2\) found"),
        (X, Y[:2], r"y: shape \(2,\) found; give one entry per row of X, shape \(3,\)"),
        (X, Y[:, None], r"y: shape \(3, 1\) found"),
        (np.array([["a", "b"]] * 3), Y, "X: not numbers"),
        (X, np.array(["yes", "no", "yes"]), "y: not numbers; give numbers, two labels as -1 and"),
        (X, np.array([0, 1, 1]), r"labels 0 and 1 found; map them: y = np.where\(y == 1, 1.0, -1.0\)"),
        (X, np.array([1, 2, 1]), "labels 1 and 2 found; map them"),
        (X, np.array([1, 1, 1]), "y: the only label is 1; give both"),
        (X, np.array([0.5, 1.5, 2.5]), "y: 3 labels .* or use a regression loss"),
    ],
)
def test_bad_input_is_one_line_that_names_argument_and_fix(X, y, message):
    with pytest.raises(DataError, match=message) as caught:
        check_arrays(X, y)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e16])
def test_single_precision_has_a_bound_of_its_own(bad):
    rows = with_bad(bad).astype(np.float32)
    with pytest.raises(DataError, match=r"X: 1 entries are NaN or infinite \(beyond 1e\+15\)"):
        check_arrays(rows, Y, single=True)
    kept, _ = check_arrays(np.nan_to_num(rows, posinf=1.0).clip(-1, 1), Y, single=True)
    assert kept.dtype == np.float32


def test_real_targets_may_be_anything_finite():
    _, y = check_arrays(X, [0.5, 1.5, 2.5], labels="real")
    np.testing.assert_array_equal(y, [0.5, 1.5, 2.5])


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("single", [False, True])
def test_what_a_mask_hides_is_missing(kind, single):
    masked = np.ma.masked_array(np.array([[1.0, 2.0], [3.0, 4.0]], kind), mask=[[False, True], [False, False]])
    found, _ = as_arrays(masked, [1, -1], single=single)
    assert np.array_equal(found, [[1.0, np.nan], [3.0, 4.0]], equal_nan=True)
