import numpy as np
import pytest
from scipy import sparse

import dpbench
from dpbench.errors import DataError, UserError


@pytest.fixture(scope="module")
def data():
    generator = np.random.default_rng(0)
    X = generator.standard_normal((500, 4))
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    return X, np.where(X @ [1.0, -2.0, 0.5, 0.0] > 0, 1.0, -1.0)


def test_fit_returns_what_the_readme_promises(data):
    result = dpbench.fit(*data, algorithm="dp-gd", epsilon=1.0, seeds=3, T=20)
    assert result.w.shape == (3, 4)
    assert result.objective.shape == (3,)
    assert result.delta == pytest.approx(500.0**-2)
    assert 0.5 < result.epsilon_spent <= 1.0
    assert result.checked_by
    assert result.ledger[0]["count"] == 20
    assert result.seconds > 0
    assert result.settings["T"] == 20
    assert result.status == ["done"] * 3


def test_equal_calls_give_equal_results_and_seeds_differ(data):
    first, second = (dpbench.fit(*data, algorithm="dp-gd", epsilon=1.0, seeds=2, T=5).w for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first[0], first[1])


def test_more_budget_gives_a_lower_objective(data):
    loose, tight = (
        dpbench.fit(*data, algorithm="dp-gd", epsilon=epsilon, seeds=10, T=30).objective.mean()
        for epsilon in (50.0, 0.05)
    )
    assert loose < tight


def test_sparse_and_dense_agree(data):
    X, y = data
    dense = dpbench.fit(X, y, algorithm="dp-gd", epsilon=1.0, T=5)
    thin = dpbench.fit(sparse.csr_array(X), y, algorithm="dp-gd", epsilon=1.0, T=5)
    np.testing.assert_allclose(dense.w, thin.w, rtol=1e-9)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_rows_beyond_the_bound_are_an_error_unless_rescaled(data, make):
    X, y = data
    with pytest.raises(DataError, match="rescale"):
        dpbench.fit(make(3 * X), y, algorithm="dp-gd", epsilon=1.0, T=5)
    result = dpbench.fit(make(3 * X), y, algorithm="dp-gd", epsilon=1.0, T=5, bound="rescale")
    by_hand = 3 * X / np.maximum(1, np.linalg.norm(3 * X, axis=1, keepdims=True))
    expected = dpbench.fit(by_hand, y, algorithm="dp-gd", epsilon=1.0, T=5)
    np.testing.assert_allclose(result.w, expected.w, rtol=1e-9)


def test_the_noise_is_scaled_by_the_declared_bound_not_by_the_data(data):
    """Sensitivity must not shrink with the rows: the largest norm at hand is private."""
    X, y = data
    small = dpbench.fit(X / 10, y, algorithm="dp-gd", epsilon=1.0, T=1, seeds=400, step=1.0)
    large = dpbench.fit(X, y, algorithm="dp-gd", epsilon=1.0, T=1, seeds=400, step=1.0)
    assert small.w.std(axis=0) == pytest.approx(large.w.std(axis=0), rel=0.15)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0}, "epsilon must be a positive"),
        ({"epsilon": -1}, "epsilon must be a positive"),
        ({"delta": 1.5}, "delta must be in"),
        ({"algorithm": "dp-dg"}, "did you mean dp-gd?"),
        ({"loss": "logistik"}, "logistic"),
        ({"loss": "squared"}, "not covered by its privacy proof"),
        ({"seeds": 0}, "seeds must be at least 1"),
        ({"T": 0}, "setting T"),
        ({"steps": 3}, "did you mean step?"),
        ({"l1": 0.1}, "regulariser l1"),
        ({"l2": -0.1}, "l2 must be a number >= 0"),
        ({"bound": "ignore"}, "bound must be"),
        ({"start": "ones"}, "unknown start"),
        ({"accounting": "loose"}, "accounting"),
        ({"accounting": "tight", "delta": 0}, "delta"),
    ],
)
def test_each_mistake_names_its_argument_in_one_line(data, change, message):
    with pytest.raises(UserError, match=message) as caught:
        dpbench.fit(*data, **({"algorithm": "dp-gd", "epsilon": 1.0} | change))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("spoil", [np.nan, np.inf])
def test_nan_in_own_data_is_an_error(data, spoil):
    X, y = data
    X = X.copy()
    X[3, 1] = spoil
    with pytest.raises(DataError, match=r"X"):
        dpbench.fit(X, y, algorithm="dp-gd", epsilon=1.0)


def test_labels_0_and_1_say_how_to_map_them(data):
    X, y = data
    with pytest.raises(DataError, match=r"y"):
        dpbench.fit(X, (y + 1) / 2, algorithm="dp-gd", epsilon=1.0)
