"""Composition and amplification of pure DP."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpbench.privacy.accounting.gaussian import gaussian_delta
from dpbench.privacy.accounting.pure import (
    advanced_composition,
    advanced_composition_epsilon0,
    amplified,
    base_epsilon,
    likely_epsilon,
    likely_multiplier,
)


@pytest.mark.parametrize("T", [1, 4, 20, 1000])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0, 50.0])
def test_advanced_composition_inverts_equation_2_of_greedy_coordinate(T, epsilon):
    delta = 1e-6
    e = advanced_composition_epsilon0(epsilon, 2 * T, delta)
    equation = math.sqrt(4 * T * math.log(1 / delta)) * e + 2 * T * e * (math.exp(e) - 1)
    assert equation == pytest.approx(epsilon, rel=1e-10)
    assert advanced_composition(e, 2 * T, delta) == pytest.approx(epsilon, rel=1e-12)


@pytest.mark.parametrize("count", [2, 20, 200])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_advanced_composition_is_above_the_exact_composition(count, epsilon):
    e = advanced_composition_epsilon0(epsilon, count, 1e-6)
    assert composed_randomised_response(e, count, epsilon) <= 1e-6


def composed_randomised_response(e, count, epsilon):
    """Exact δ(ε) of `count` e-DP releases at their worst (Kairouz, Oh and Viswanath 2015)."""
    j = np.arange(count + 1)
    p = 1 / (1 + math.exp(-e))
    log_binomials = np.cumsum(np.concatenate([[0.0], np.log((count - j[1:] + 1) / j[1:])]))
    mass = np.exp(log_binomials + j * math.log(p) + (count - j) * math.log1p(-p))
    loss = (2 * j - count) * e
    return float((mass * np.maximum(0, -np.expm1(np.minimum(0, epsilon - loss)))).sum())


@given(st.floats(1e-8, 20), st.integers(1, 1000))
def test_amplification_round_trip(epsilon, m):
    assert amplified(base_epsilon(epsilon, 1000, m), 1000, m) == pytest.approx(epsilon, rel=1e-9)
    assert amplified(epsilon, 1000, m) <= epsilon * (1 + 1e-12)
    assert base_epsilon(epsilon, 1000, m) >= epsilon * (1 - 1e-12)


def test_without_sampling_nothing_is_amplified():
    assert amplified(0.7, 50, 50) == pytest.approx(0.7, rel=1e-12)


@pytest.mark.parametrize(("e", "n", "m"), [(0.5, 1000, 10), (3.0, 10, 1), (0.01, 100, 50)])
def test_amplification_is_the_worst_likelihood_ratio_of_the_sampled_laplace_mechanism(e, n, m):
    # The row that differs is in the subset with probability m/n: (1-q) Lap(0) + q Lap(1) against Lap(0), scale 1/e.
    q, x = m / n, np.linspace(-30, 30, 60_001)
    ratio = np.log1p(q * np.expm1(e * (np.abs(x) - np.abs(x - 1))))
    assert np.abs(ratio).max() == pytest.approx(amplified(e, n, m), rel=1e-9)


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
def test_what_a_loss_exceeds_with_probability_delta_is_enough_noise(delta):
    """The published (1 + √(2 ln(1/δ)))/z is not, where z < 1/2."""
    for epsilon in np.geomspace(0.1, 300, 40):
        z = likely_multiplier(epsilon, delta)
        assert likely_epsilon(z, delta) == pytest.approx(epsilon, rel=1e-12)
        assert gaussian_delta(1 / z, epsilon) <= delta
        published = (1 + math.sqrt(2 * math.log(1 / delta))) / epsilon
        assert z == published if published >= 1 / 2 else z > published
    assert gaussian_delta(1 / published, epsilon) > 0.99
