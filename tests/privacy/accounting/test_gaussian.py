"""The exact Gaussian against the hockey-stick divergence by quadrature."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from dpbench.errors import UserError
from dpbench.privacy.accounting.gaussian import gaussian_delta, gaussian_epsilon, gaussian_mu

epsilons = st.floats(math.log(1e-3), math.log(50)).map(math.exp)
deltas = st.floats(math.log(1e-12), math.log(1e-2)).map(math.exp)


def hockey_stick(mu, epsilon):
    """∫ (φ(x - μ) - e^ε φ(x))₊ dx; the integrand is φ(x - μ)(1 - e^{-μ(x - x₀)}) beyond x₀ = ε/μ + μ/2."""
    x0 = epsilon / mu + mu / 2

    def integrand(x):
        return math.exp(-((x - mu) ** 2) / 2) / math.sqrt(2 * math.pi) * -math.expm1(-mu * (x - x0))

    middle = max(x0, mu)
    cuts = [x0, *(middle + c for c in (0.5, 1, 2, 4, 8, 16, 40))]
    if middle > x0:
        cuts[1:1] = list(np.linspace(x0, mu, 8)[1:])
    return sum(quad(integrand, a, b, epsabs=0, epsrel=1e-11)[0] for a, b in itertools.pairwise(cuts))


@pytest.mark.parametrize("mu", [1e-3, 0.02, 0.3, 1.0, 5.0])
@pytest.mark.parametrize("deviations", [0.0, 0.5, 3.0, 6.5])
def test_delta_is_the_hockey_stick_divergence(mu, deviations):
    epsilon = max(0.0, mu**2 / 2 + mu * deviations)
    assert gaussian_delta(mu, epsilon) == pytest.approx(hockey_stick(mu, epsilon), rel=1e-8)


@given(epsilons, deltas)
@settings(deadline=None, max_examples=200)
def test_round_trips(epsilon, delta):
    mu = gaussian_mu(epsilon, delta)
    assert gaussian_delta(mu, epsilon) == pytest.approx(delta, rel=1e-9)
    assert gaussian_epsilon(mu, delta) == pytest.approx(epsilon, rel=1e-9)


@given(epsilons, deltas, st.floats(1.001, 3))
@settings(deadline=None, max_examples=200)
def test_monotone(epsilon, delta, factor):
    mu = gaussian_mu(epsilon, delta)
    assert gaussian_mu(epsilon * factor, delta) > mu
    assert gaussian_mu(epsilon, delta * factor) > mu
    assert gaussian_epsilon(mu * factor, delta) > epsilon


def test_delta_decreases_smoothly_into_the_far_tail():
    tail = [gaussian_delta(1.0, epsilon) for epsilon in np.linspace(0, 30, 300)]
    assert all(b < a for a, b in itertools.pairwise(tail))
    assert 0 < tail[-1] < 1e-150


def test_enough_noise_needs_no_epsilon():
    # (0, δ)-DP: total variation 2Φ(μ/2) - 1 ≈ μ/√(2π).
    assert gaussian_epsilon(1e-7, 1e-6) == 0
    assert gaussian_epsilon(0.0, 1e-6) == 0
    assert gaussian_mu(0.0, 1e-6) == pytest.approx(1e-6 * math.sqrt(2 * math.pi), rel=1e-6)


def test_bad_input_is_one_clear_line():
    with pytest.raises(UserError, match="delta must be in"):
        gaussian_mu(1.0, 0.0)
    with pytest.raises(UserError, match="epsilon must be non-negative"):
        gaussian_mu(-1.0, 1e-6)
