"""The exact Gaussian against the hockey-stick divergence by quadrature.

The last iterate: the bound in closed form, where it is attained, and against composition.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from dpbench.errors import PrivacyError
from dpbench.privacy import Budget, Relation, verify
from dpbench.privacy.accounting.gaussian import as_gaussian, gaussian_delta, gaussian_epsilon, gaussian_mu, growth
from dpbench.privacy.ledger import CountedRelease, LastIterate

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


def test_known_value_by_formula_and_by_simulation():
    """μ = 2.4851 at c = 0.93, T = 40, s = σ/2; a simulation of two runs found 2.4855."""
    rng, c, T, s, k = np.random.default_rng(1), 0.93, 40, 0.5, 300_000
    assert s * growth(T, c) == pytest.approx(2.4851, abs=5e-5)
    ends = np.zeros((2, k))
    for _ in range(T):
        ends = c * ends + np.array([[0.0], [s]]) + rng.standard_normal((2, k))
    found = (ends[1].mean() - ends[0].mean()) / ends.std(axis=1).mean()
    assert found == pytest.approx(2.4855, abs=4 * math.sqrt(2 / k + found**2 / (4 * k)))
    assert growth(1000, 0.5) == pytest.approx(math.sqrt(3))


@pytest.mark.parametrize(("steps", "c"), [(1, 0.5), (2, 0.9), (30, 0.9), (3000, 0.999), (5, 0.0)])
def test_quadratics_attain_it_and_it_is_no_more_than_composition(steps, c):
    fading = c ** np.arange(steps)
    assert growth(steps, c) == pytest.approx(fading.sum() / math.sqrt((fading**2).sum()), rel=1e-9)
    assert growth(steps, c) <= math.sqrt(steps) * (1 + 1e-12)


def test_simulated_last_iterates_of_neighbouring_quadratics_are_that_far_apart():
    rng, c, T, s, sigma = np.random.default_rng(0), 0.8, 12, 0.3, 1.0
    ends = []
    for pull in (0.0, s):
        w = np.zeros(200_000)
        for _ in range(T):
            w = c * w + pull + sigma * rng.standard_normal(len(w))
        ends.append((w.mean(), w.std()))
    ((a, _), (b, std)) = ends
    assert (b - a) / std == pytest.approx(s / sigma * growth(T, c), abs=0.01)


@pytest.mark.parametrize("mode", ["tight", "standard", "cks20"])
def test_both_routes_agree_in_every_accounting_that_calibrates_it(mode):
    budget = Budget(1.0, 1e-6, Relation.REPLACE_ONE, mode)
    z = budget.noise_scale(((LastIterate(1.0, 40, 0.95), 1),))
    entries = (CountedRelease(LastIterate(z, 40, 0.95), 1, "w"),)
    assert budget.epsilon_of(entries) == pytest.approx(1.0)
    second = verify.spent(entries, 1e-6, Relation.REPLACE_ONE).epsilon
    assert second == pytest.approx(1.0, rel=1e-6) if mode == "tight" else 0.7 < second < 1.0
    assert as_gaussian(LastIterate(z, 40, 0.95)).noise_multiplier < z


def test_steps_that_do_not_contract_are_refused():
    with pytest.raises(PrivacyError, match="contraction in"):
        LastIterate(1.0, 10, 1.0)
