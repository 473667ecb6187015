"""Correlated noise on integers: its law, and that it is what the accounting asks for."""

import numpy as np
import pytest
from scipy import stats

from dpbench.errors import PrivacyError
from dpbench.privacy.correlated import coefficients, sensitivity
from dpbench.privacy.exact import sums
from dpbench.privacy.exact.sums import Sum
from dpbench.privacy.relation import Relation
from tests.privacy.exact.test_releases import mechanisms


def matrix(steps, bands):
    C = np.zeros((steps, steps))
    for j, c in enumerate(np.floor(coefficients(bands) * 1024) / 1024):
        C += c * np.eye(steps, k=-j)
    return C


def total(value, d, unit=2.0**-32):
    return Sum(np.full((1, d), round(value / unit), dtype=np.int64), unit, sums.weighted(2**32, 2**32))


def test_noise_times_the_cut_matrix_is_independent_and_no_less_than_rho_asks_for():
    d, steps, rho = 20_000, 6, 0.08
    seam = mechanisms(declared=Relation.REPLACE_ONE)
    noise = seam.correlated(steps, separation=3, bands=3, sensitivity=2.0, rho=rho, label="sums")
    released = np.stack([noise.release(total(float(t), d) + 7.0)[0] for t in range(steps)])
    Z = matrix(steps, 3) @ (released - 7.0 - np.arange(steps)[:, None])
    std = 2.0 * sensitivity(steps, 3, 3) / np.sqrt(2 * rho)
    np.testing.assert_allclose(np.cov(Z) / std**2, np.eye(steps), atol=0.04)
    for row in Z:
        assert stats.kstest(row / std, "norm").pvalue > 1e-4
    (line,) = seam.ledger.summary()
    assert float(line["noise"]) >= std
    assert float(line["noise"]) == pytest.approx(std, rel=1e-4)
    with pytest.raises(PrivacyError, match="paid for 6 rounds"):
        noise.release(total(0.0, d))


def test_without_noise_it_gives_the_sums_and_a_small_sensitivity_is_refused():
    from dpbench.privacy.exact.releases import ExactReleases

    seam = mechanisms(declared=Relation.REPLACE_ONE)
    assert isinstance(seam.releases, ExactReleases)
    seam.releases.noiseless = True
    noise = seam.correlated(5, separation=4, bands=4, sensitivity=2.0, rho=0.1, label="sums")
    for t in range(5):
        np.testing.assert_allclose(noise.release(total(float(t), 3)), t, atol=1e-4)
    small = seam.correlated(5, separation=4, bands=4, sensitivity=1.9, rho=0.1, label="sums")
    with pytest.raises(PrivacyError, match="it moves by up to 2"):
        small.release(total(0.0, 3))
    other = seam.correlated(5, separation=4, bands=4, sensitivity=2.0, rho=0.1, label="sums")
    other.release(total(0.0, 3))
    with pytest.raises(PrivacyError, match="one unit"):
        other.release(total(0.0, 3, 3 * 2.0**-34))
    with pytest.raises(PrivacyError, match="float64"):
        other.release(np.zeros((1, 3)))
