import numpy as np
import pytest

from dpbench import datasets
from dpbench.datasets.matlab import Twister

# What MATLAB prints after `rng default`: its documentation's first numbers, to four decimals.
RAND = [0.8147, 0.9058, 0.1270, 0.9134, 0.6324, 0.0975, 0.2785, 0.5469, 0.9575, 0.9649]
RANDN = [0.5377, 1.8339, -2.2588, 0.8622, 0.3188, -1.3077, -0.4336, 0.3426, 3.5784, 2.7694, -1.3499, 3.0349, 0.7254,
         -0.0631, 0.7147, -0.2050, -0.1241, 1.4897, 1.4090, 1.4172, 0.6715, -1.2075, 0.7172, 1.6302, 0.4889, 1.0347,
         0.7269, -0.3034, 0.2939, -0.7873, 0.8884, -1.1471, -1.0689, -0.8095, -2.9443, 1.4384, 0.3252, -0.7549, 1.3703,
         -1.7115, -0.1022, -0.2414, 0.3192, 0.3129, -0.8649, -0.0301, -0.1649, 0.6277, 1.0933, 1.1093, -0.8637, 0.0774,
         -1.2141, -1.1135, -0.0068, 1.5326, -0.7697, 0.3714, -0.2256]  # fmt: skip


def test_rand_is_matlabs():
    assert Twister(0).rand(2, 5).T.ravel() == pytest.approx(RAND, abs=5.1e-5)


def test_randn_is_matlabs_through_its_first_wedge():
    """The 52nd number lies outside its layer's rectangle, and takes one `rand` more."""
    assert Twister(0).randn(len(RANDN)) == pytest.approx(RANDN, abs=5.1e-5)


def test_randn_is_normal():
    from scipy import stats

    assert stats.kstest(Twister(1).randn(1000), "norm").pvalue > 0.001


def test_the_authors_data_start_where_their_curves_do():
    """F(x₀) - F* of the figures' drawings is 29.121 after one step of .1/L; F* here by its gradient."""
    data = datasets.load("accelerated-2020")
    X, y = np.asarray(data.X), np.asarray(data.y)
    assert X.shape == (100_000, 20)
    L = np.linalg.eigvalsh(X.T @ X / len(X))[-1] + 0.02
    assert pytest.approx(5.100080706735988, rel=1e-12) == L

    def objective(w):
        return np.logaddexp(0, -y * (X @ w)).mean() + 0.01 * w @ w

    def gradient(w):
        return -(X.T @ (y / (1 + np.exp(y * (X @ w))))) / len(y) + 0.02 * w

    w = np.full(20, 10.0)
    assert objective(w) - 0.2823099413524194 == pytest.approx(29.1447, abs=1e-4)
    step = objective(w - 0.1 / L * gradient(w)) - 0.2823099413524194
    assert step == pytest.approx(29.1210, rel=5.5e-5)  # a thousandth of a point of the drawing
