"""Correlated noise: its law and its sensitivity, against the matrices written out."""

import numpy as np
import pytest

from dpbench.errors import PrivacyError
from dpbench.privacy.budget import Budget
from dpbench.privacy.correlated import coefficients, sensitivity
from dpbench.privacy.ledger import Gaussian
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.privacy.relation import Relation

BUDGET = Budget(1.0, 1e-5, Relation.REPLACE_ONE, "tight")


def matrix(steps, bands):
    C = np.zeros((steps, steps))
    for j, c in enumerate(coefficients(bands)):
        C += c * np.eye(steps, k=-j)
    return C


def test_all_bands_are_the_square_root_of_prefix_sums():
    np.testing.assert_allclose(matrix(7, 7) @ matrix(7, 7), np.tril(np.ones((7, 7))))


@pytest.mark.parametrize(("steps", "separation", "bands"), [(12, 4, 4), (12, 4, 1), (10, 4, 3), (3, 5, 5), (9, 1, 1)])
def test_sensitivity_is_attained_by_the_worst_row_and_by_no_other(steps, separation, bands):
    C, rng = matrix(steps, bands), np.random.default_rng(0)
    moved = []
    for first in range(min(separation, steps)):
        for _ in range(50):
            change = np.zeros((steps, 3))
            change[first::separation] = rng.standard_normal(change[first::separation].shape)
            change[first::separation] /= np.linalg.norm(change[first::separation], axis=1, keepdims=True)
            moved.append(np.linalg.norm(C @ change))
    assert max(moved) == pytest.approx(sensitivity(steps, separation, bands), rel=1e-12)


def test_more_bands_than_the_separation_are_refused():
    with pytest.raises(PrivacyError, match=r"bands must be in 1\.\.3"):
        sensitivity(9, 3, 4)


def test_noise_times_C_is_independent_with_the_deviation_that_rho_asks_for():
    k, steps, rho = 4000, 6, 0.08
    run = Mechanisms([f"key/{i}" for i in range(k)], BUDGET)
    noise = run.correlated(steps, separation=3, bands=3, sensitivity=0.5, rho=rho, label="sums")
    released = np.stack([noise.release(np.full((k, 1), float(t)))[:, 0] for t in range(steps)])
    independent = matrix(steps, 3) @ (released - np.arange(steps)[:, None])
    std = 0.5 * sensitivity(steps, 3, 3) / np.sqrt(2 * rho)
    np.testing.assert_allclose(np.cov(independent) / std**2, np.eye(steps), atol=0.1)
    assert [(e.release, e.count) for e in run.ledger.of(0)] == [(Gaussian((2 * rho) ** -0.5), 1)]
    with pytest.raises(PrivacyError, match="paid for 6 rounds"):
        noise.release(np.zeros((k, 1)))


def test_its_sums_have_less_noise_than_independent_noise_of_equal_privacy():
    def final(bands):
        inverse = np.linalg.inv(matrix(64, bands))
        return np.linalg.norm(inverse.sum(axis=0)) * sensitivity(64, 8, bands)

    assert final(8) < 0.75 * final(1)
