import numpy as np

from dpbench.datasets import a1a


def test_a1a_all_is_both_splits_scaled_by_a_constant(real_data):
    X, y = real_data("a1a-all").X, real_data("a1a-all").y
    active = np.count_nonzero(X, axis=1) - 1  # but for the ones column
    assert active.min() == 11
    assert active.max() == a1a.ACTIVE
    np.testing.assert_array_equal(np.unique(X), [0, 1 / np.sqrt(15)])
    assert (X[:, 0] > 0).all()
    assert y[:1605].tolist().count(1.0) == 395
