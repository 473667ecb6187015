"""Objective perturbation in the ledger: what is drawn, the bound that is recomputed, and how it composes."""

import math

import numpy as np
import pytest
from scipy import stats

from dpbench.errors import PrivacyError
from dpbench.privacy import Budget, Mechanisms, Relation
from dpbench.privacy.ledger import Gaussian, Ledger, ObjectivePerturbation
from dpbench.privacy.verify import spent

RELATION = Relation.REPLACE_ONE


def composition(*releases):
    ledger = Ledger(1)
    for release in releases:
        ledger.record(release, "a")
    return ledger.of(0)


def test_the_linear_term_is_normal_with_the_standard_deviation_recorded():
    budget = Budget(1.0, 1e-6, RELATION, "basic")
    mechanisms = Mechanisms([str(i) for i in range(2000)], budget)
    b = mechanisms.linear_term(3, sensitivity=0.2, event=ObjectivePerturbation(5.0, 0.1, 1e-7), label="objective")
    assert b.shape == (2000, 3)
    assert stats.kstest(b.ravel(), "norm").pvalue > 1e-4
    assert stats.kstest(2 * b.ravel(), "norm").pvalue < 1e-6
    (entry,) = mechanisms.ledger.of(7)
    assert entry.release == ObjectivePerturbation(5.0, 0.1, 1e-7)


@pytest.mark.parametrize("z", [0.5, 2.0, 8.0])
@pytest.mark.parametrize("delta", [0.2, 0.02])
def test_the_noise_exceeds_its_epsilon_with_probability_at_most_delta(z, delta):
    """The privacy loss (‖Δ‖² + 2<b, Δ>)/(2σ²), ‖Δ‖ = 1, Δ chosen after b in the plane of two rows: the worst case."""
    found = spent(composition(ObjectivePerturbation(z, 0.1, delta)), delta, RELATION).epsilon - 0.1
    b = z * np.random.default_rng(0).standard_normal((400_000, 2))
    loss = (1 + 2 * np.linalg.norm(b, axis=1)) / (2 * z**2)
    share = (loss > found).mean()
    assert share == pytest.approx(delta, abs=5 * math.sqrt(delta / len(b)))  # tight, so a smaller ε would fail


def test_its_epsilon_by_hand():
    found = spent(composition(ObjectivePerturbation(4.0, 0.25, 1e-6)), 1e-6, RELATION)
    assert found.epsilon == pytest.approx(0.25 + 1 / 32 + math.sqrt(2 * math.log(1e6)) / 4, rel=1e-12)
    assert "objective perturbation" in found.checked_by


def test_the_rest_must_do_with_the_delta_that_is_left():
    perturbed, output = ObjectivePerturbation(4.0, 0.25, 9e-7), Gaussian(300.0)
    both = spent(composition(perturbed, output), 1e-6, RELATION)
    alone = spent(composition(perturbed), 1e-6, RELATION)
    rest = spent(composition(output), 1e-7, RELATION)
    assert both.epsilon == pytest.approx(alone.epsilon + rest.epsilon, rel=1e-9)
    assert both.checked_by.endswith(rest.checked_by)


@pytest.mark.parametrize("delta", [5e-7, 9e-7])
def test_without_enough_delta_there_is_no_epsilon(delta):
    both = composition(ObjectivePerturbation(4.0, 0.25, 9e-7), Gaussian(300.0))
    assert spent(both, delta, RELATION).epsilon == math.inf


def test_basic_accounting_is_the_published_arithmetic():
    budget = Budget(1.0, 1e-6, RELATION, "basic")
    noise, output = 0.9, 0.01
    z = (1 + math.sqrt(2 * math.log(1 / 9.9e-7))) / noise
    z_out = (1 + math.sqrt(2 * math.log(1 / 1e-8))) / output
    both = composition(ObjectivePerturbation(z, 0.09, 9.9e-7), Gaussian(z_out))
    assert budget.epsilon_of(both) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("accounting", ["basic", "rdp"])
def test_a_budget_without_rho_says_so(accounting):
    with pytest.raises(PrivacyError, match="no rho"):
        _ = Budget(1.0, 1e-6, Relation.ADD_REMOVE, accounting).rho


@pytest.mark.parametrize("values", [(0.0, 0.1, 1e-6), (1.0, 0.0, 1e-6), (1.0, 0.1, 0.0), (math.inf, 0.1, 1e-6)])
def test_values_out_of_range_are_refused(values):
    with pytest.raises(PrivacyError, match="positive and finite"):
        ObjectivePerturbation(*values)
