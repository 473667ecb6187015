"""ρ-zCDP ↔ (ε, δ): closed forms, brute force, round trips, order.

The conversion of second_order's released code: what it returns, and that it is marked as no guarantee.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbench.algorithms import get
from dpbench.errors import UserError
from dpbench.privacy import accounting
from dpbench.privacy.accounting.gaussian import gaussian_delta, gaussian_mu
from dpbench.privacy.accounting.zcdp import log_delta
from dpbench.privacy.ledger import Relation
from dpbench.privacy.verify import spent
from tests.algorithms.conftest import run, small_problem

NAMES = ("text", "bs16", "cks20", "standard")

names = st.sampled_from(NAMES)
epsilons = st.floats(math.log(1e-3), math.log(50)).map(math.exp)
deltas = st.floats(math.log(1e-12), math.log(1e-3)).map(math.exp)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 1e-9), (1.0, 1e-6), (10.0, 1e-12), (50.0, 1e-5)])
def test_closed_forms(epsilon, delta):
    L = math.log(1 / delta)
    assert accounting.get("text").rho(epsilon, delta) == pytest.approx(epsilon**2 / (4 * L + 4 * epsilon), rel=1e-12)
    standard = (math.sqrt(epsilon + L) - math.sqrt(L)) ** 2
    assert accounting.get("standard").rho(epsilon, delta) == pytest.approx(standard, rel=1e-8)
    assert accounting.get("standard").epsilon(standard, delta) == pytest.approx(
        standard + 2 * math.sqrt(standard * L), rel=1e-12
    )
    rho = accounting.get("bs16").rho(epsilon, delta)
    assert delta**2 / math.pi <= rho <= epsilon
    assert rho + math.sqrt(4 * rho * math.log(math.sqrt(math.pi * rho) / delta)) == pytest.approx(epsilon, rel=1e-12)


@pytest.mark.parametrize("delta", [1e-5, 1e-12])
@pytest.mark.parametrize("rho", [1e-6, 1e-3, 0.1, 3.0, 20.0])
def test_cks20_is_the_minimum_over_a_fine_grid_of_orders(rho, delta):
    alpha = 1 + np.exp(np.linspace(-30, 20, 400_001))

    def grid(epsilon):
        log_delta = (alpha - 1) * (alpha * rho - epsilon) - np.log(alpha - 1) + alpha * np.log1p(-1 / alpha)
        return log_delta.min()

    epsilon = accounting.get("cks20").epsilon(rho, delta)
    assert log_delta(rho, epsilon) == pytest.approx(math.log(delta), abs=1e-10)
    assert grid(epsilon) == pytest.approx(math.log(delta), abs=1e-6)
    # The same minimum taken over ε instead of δ (Canonne, Kamath, Steinke 2020, Proposition 12).
    epsilons = alpha * rho + np.log1p(-1 / alpha) - (math.log(delta) + np.log(alpha)) / (alpha - 1)
    assert epsilon == pytest.approx(epsilons.min(), rel=1e-7)


@given(epsilons, deltas, names)
@settings(deadline=None, max_examples=200)
def test_round_trip(epsilon, delta, name):
    assert accounting.get(name).epsilon(accounting.get(name).rho(epsilon, delta), delta) == pytest.approx(
        epsilon, rel=1e-10
    )


@given(epsilons, deltas, names, st.floats(1.001, 3))
@settings(deadline=None, max_examples=200)
def test_more_epsilon_or_more_delta_is_more_rho(epsilon, delta, name, factor):
    rho = accounting.get(name).rho(epsilon, delta)
    assert accounting.get(name).rho(epsilon * factor, delta) > rho
    assert accounting.get(name).rho(epsilon, delta * factor) > rho
    assert accounting.get(name).epsilon(rho * factor, delta) > epsilon


@given(epsilons, deltas, names)
@settings(deadline=None, max_examples=200)
def test_every_conversion_is_sound_for_the_gaussian_mechanism(epsilon, delta, name):
    # The Gaussian mechanism is ρ-zCDP with μ = √(2ρ), and its δ is known exactly.
    rho = accounting.get(name).rho(epsilon, delta)
    assert gaussian_delta(math.sqrt(2 * rho), epsilon) <= delta
    assert rho < gaussian_mu(epsilon, delta) ** 2 / 2


@given(epsilons, deltas)
@settings(deadline=None, max_examples=200)
def test_cks20_is_the_best_of_them(epsilon, delta):
    best = accounting.get("cks20").rho(epsilon, delta)
    assert all(accounting.get(name).rho(epsilon, delta) <= best * (1 + 1e-9) for name in ("text", "standard"))


def test_bs16_gives_the_published_gain_over_text():
    # second_order: 1.1 to 1.4 times text's ρ over its ε range at its δ = n⁻² (1.48 on the smallest data, ε = 0.01).
    gains = [
        accounting.get("bs16").rho(epsilon, n**-2.0) / accounting.get("text").rho(epsilon, n**-2.0)
        for epsilon in (0.01, 0.03, 0.1, 0.3, 1, 3, 10)
        for n in (10_000, 30_956, 53_121)
    ]
    assert min(gains) > 1.05
    assert max(gains) < 1.5


def test_no_release_costs_nothing():
    assert all(accounting.get(name).epsilon(0.0, 1e-6) == 0 for name in NAMES)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: accounting.get("text").rho(0.0, 1e-6), "epsilon must be a positive number"),
        (lambda: accounting.get("text").rho(1.0, 0.0), "delta must be in (0, 1)"),
        (lambda: accounting.get("bs16").rho(1.0, 1.0), "delta must be in (0, 1)"),
        (lambda: accounting.get("text").epsilon(-1.0, 1e-6), "rho must be non-negative"),
        (lambda: accounting.get("cks2").rho(1.0, 1e-6), "did you mean cks20"),
    ],
)
def test_bad_input_is_one_clear_line(call, words):
    with pytest.raises(UserError) as caught:
        call()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


N = 53_121


@pytest.mark.parametrize(
    ("n", "last"), [(10_000, 0.27), (12_000, 0.28), (30_956, 0.29), (45_220, 0.30), (53_121, 0.30)]
)
def test_the_state_of_february_returns_its_own_start(n, last):
    released, honest, delta = accounting.get("released-february"), accounting.get("bs16"), n**-2.0
    for epsilon in (0.01, 0.1, last):
        assert released.rho(epsilon, delta) == 5e-3
    for epsilon in (last + 0.01, 1.0, 10.0):
        assert released.rho(epsilon, delta) == pytest.approx(honest.rho(epsilon, delta), rel=1e-6)


@pytest.mark.parametrize(("n", "spends"), [(10_000, 0.577), (30_956, 0.615), (45_220, 0.627), (53_121, 0.632)])
def test_what_its_start_spends(n, spends):
    assert accounting.get("released-february").epsilon(5e-3, n**-2.0) == pytest.approx(spends, abs=5e-4)


def test_the_former_name_of_july_is_its_alias():
    july, former = accounting.get("released-july"), accounting.get("as-released-code")
    assert [july.rho(e, N**-2.0) for e in (0.05, 0.2, 1.0)] == [former.rho(e, N**-2.0) for e in (0.05, 0.2, 1.0)]
    assert (july.flaw, july.start) == (former.flaw, former.start)


def test_it_returns_its_start_at_small_epsilon_and_the_root_elsewhere():
    released, honest = accounting.get("as-released-code"), accounting.get("bs16")
    for epsilon in (0.01, 0.03, 0.1, 0.11):
        assert released.rho(epsilon, N**-2.0) == 1e-3
    for epsilon in (0.15, 0.3, 1.0, 3.0, 10.0):
        assert released.rho(epsilon, N**-2.0) == pytest.approx(honest.rho(epsilon, N**-2.0), rel=1e-6)
    assert released.epsilon(1e-3, N**-2.0) == pytest.approx(0.276, abs=5e-4)


@pytest.mark.parametrize("name", ["dp-gd", "dp-newton", "damped-newton"])
def test_its_runs_are_no_guarantee(name):
    method = get(name)
    assert method.accounting("as-released-code") == "as-released-code"
    assert "0.001" in method.flaw(method.Settings(), "as-released-code")
    assert method.flaw(method.Settings(), "bs16") == ""


def test_the_second_route_finds_what_was_spent():
    problem = small_problem()
    result = run("dp-gd", problem, epsilon=0.01, accounting="as-released-code", T=2)
    assert spent(result.mechanisms.ledger.of(0), problem.n**-2.0, Relation.ADD_REMOVE).epsilon > 0.1
