"""ρ-zCDP ↔ (ε, δ): closed forms, brute force, round trips, order."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbench.errors import UserError
from dpbench.privacy import zcdp
from dpbench.privacy.gaussian import gaussian_delta, gaussian_mu

names = st.sampled_from(sorted(zcdp.CONVERSIONS))
epsilons = st.floats(math.log(1e-3), math.log(50)).map(math.exp)
deltas = st.floats(math.log(1e-12), math.log(1e-3)).map(math.exp)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 1e-9), (1.0, 1e-6), (10.0, 1e-12), (50.0, 1e-5)])
def test_closed_forms(epsilon, delta):
    L = math.log(1 / delta)
    assert zcdp.rho(epsilon, delta, "text") == pytest.approx(epsilon**2 / (4 * L + 4 * epsilon), rel=1e-12)
    standard = (math.sqrt(epsilon + L) - math.sqrt(L)) ** 2
    assert zcdp.rho(epsilon, delta, "standard") == pytest.approx(standard, rel=1e-8)
    assert zcdp.epsilon(standard, delta, "standard") == pytest.approx(standard + 2 * math.sqrt(standard * L), rel=1e-12)
    rho = zcdp.rho(epsilon, delta, "bs16")
    assert delta**2 / math.pi <= rho <= epsilon
    assert rho + math.sqrt(4 * rho * math.log(math.sqrt(math.pi * rho) / delta)) == pytest.approx(epsilon, rel=1e-12)


@pytest.mark.parametrize("delta", [1e-5, 1e-12])
@pytest.mark.parametrize("rho", [1e-6, 1e-3, 0.1, 3.0, 20.0])
def test_cks20_is_the_minimum_over_a_fine_grid_of_orders(rho, delta):
    alpha = 1 + np.exp(np.linspace(-30, 20, 400_001))

    def grid(epsilon):
        log_delta = (alpha - 1) * (alpha * rho - epsilon) - np.log(alpha - 1) + alpha * np.log1p(-1 / alpha)
        return log_delta.min()

    epsilon = zcdp.epsilon(rho, delta, "cks20")
    assert zcdp.cks20_log_delta(rho, epsilon) == pytest.approx(math.log(delta), abs=1e-10)
    assert grid(epsilon) == pytest.approx(math.log(delta), abs=1e-6)
    # The same minimum taken over ε instead of δ (Canonne, Kamath, Steinke 2020, Proposition 12).
    epsilons = alpha * rho + np.log1p(-1 / alpha) - (math.log(delta) + np.log(alpha)) / (alpha - 1)
    assert epsilon == pytest.approx(epsilons.min(), rel=1e-7)


@given(epsilons, deltas, names)
@settings(deadline=None, max_examples=200)
def test_round_trip(epsilon, delta, name):
    assert zcdp.epsilon(zcdp.rho(epsilon, delta, name), delta, name) == pytest.approx(epsilon, rel=1e-10)


@given(epsilons, deltas, names, st.floats(1.001, 3))
@settings(deadline=None, max_examples=200)
def test_more_epsilon_or_more_delta_is_more_rho(epsilon, delta, name, factor):
    rho = zcdp.rho(epsilon, delta, name)
    assert zcdp.rho(epsilon * factor, delta, name) > rho
    assert zcdp.rho(epsilon, delta * factor, name) > rho
    assert zcdp.epsilon(rho * factor, delta, name) > epsilon


@given(epsilons, deltas, names)
@settings(deadline=None, max_examples=200)
def test_every_conversion_is_sound_for_the_gaussian_mechanism(epsilon, delta, name):
    # The Gaussian mechanism is ρ-zCDP with μ = √(2ρ), and its δ is known exactly.
    rho = zcdp.rho(epsilon, delta, name)
    assert gaussian_delta(math.sqrt(2 * rho), epsilon) <= delta
    assert rho < gaussian_mu(epsilon, delta) ** 2 / 2


@given(epsilons, deltas)
@settings(deadline=None, max_examples=200)
def test_cks20_is_the_best_of_them(epsilon, delta):
    best = zcdp.rho(epsilon, delta, "cks20")
    assert all(zcdp.rho(epsilon, delta, name) <= best * (1 + 1e-9) for name in ("text", "standard"))


def test_bs16_gives_the_published_gain_over_text():
    # second_order: 1.1 to 1.4 times text's ρ over its ε range at its δ = n⁻² (1.48 on the smallest data, ε = 0.01).
    gains = [
        zcdp.rho(epsilon, n**-2.0, "bs16") / zcdp.rho(epsilon, n**-2.0, "text")
        for epsilon in (0.01, 0.03, 0.1, 0.3, 1, 3, 10)
        for n in (10_000, 30_956, 53_121)
    ]
    assert min(gains) > 1.05
    assert max(gains) < 1.5


def test_no_release_costs_nothing():
    assert all(zcdp.epsilon(0.0, 1e-6, name) == 0 for name in zcdp.CONVERSIONS)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: zcdp.rho(0.0, 1e-6, "text"), "epsilon must be positive"),
        (lambda: zcdp.rho(1.0, 0.0, "text"), "delta must be in (0, 1)"),
        (lambda: zcdp.rho(1.0, 1.0, "bs16"), "delta must be in (0, 1)"),
        (lambda: zcdp.epsilon(-1.0, 1e-6, "text"), "rho must be non-negative"),
        (lambda: zcdp.rho(1.0, 1e-6, "cks2"), "did you mean cks20"),
    ],
)
def test_bad_input_is_one_clear_line(call, words):
    with pytest.raises(UserError) as caught:
        call()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
