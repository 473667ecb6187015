"""Choices of bounded range beside Gaussian releases: the pair that dominates, and what it leaves for the noise."""

import math

import numpy as np
import pytest

from dpbench.privacy.accounting import loss_distribution, renyi
from dpbench.privacy.accounting.gaussian import gaussian_mu
from dpbench.privacy.accounting.tight import Tight
from dpbench.privacy.ledger import BoundedRange, CountedRelease, Gaussian, Relation
from dpbench.privacy.verify import spent


def two_losses(epsilon, x):
    """The largest δ at x of a pair that has the losses t and t - ε, by a search over t."""
    t = np.linspace(max(x, 0.0), min(epsilon, x + epsilon), 4001)
    high = np.expm1(t - epsilon) / np.expm1(-epsilon)  # of P at t
    low = 1 - high
    below = t - epsilon
    profile = high * np.maximum(0, -np.expm1(x - t)) + low * np.maximum(0, -np.expm1(x - below))
    return float(profile.max())


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 4.0])
@pytest.mark.parametrize("part", [-0.7, 0.0, 0.3, 0.9])
def test_the_dominating_pair_has_the_profile_of_the_worst_two_losses(epsilon, part):
    x = part * epsilon
    edges = np.linspace(-epsilon, epsilon, 200_001)
    p, q = loss_distribution._bins(BoundedRange(epsilon), edges, added=False)
    assert p.sum() == pytest.approx(1)
    assert q.sum() == pytest.approx(1)
    found = float(np.maximum(0, p - math.exp(x) * q).sum())
    assert found == pytest.approx(two_losses(epsilon, x), rel=1e-5)


def adaptive(epsilon, x, mu):
    """δ at x of one Gaussian and after it a choice whose t follows what the Gaussian said: the worst order."""
    z = np.linspace(-9, 9, 20_001)
    loss = mu * z + mu**2 / 2
    weight = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
    left = x - loss
    inside = np.expm1((np.clip(left, -epsilon, epsilon) - epsilon) / 2) ** 2 / -np.expm1(-epsilon)
    return float(weight @ np.where(left < -epsilon, -np.expm1(left), inside))


@pytest.mark.parametrize("choice", [0.01, 0.1, 1.0, 20.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-8, 1e-15])
def test_no_route_states_less_than_one_choice_costs(choice, delta):
    """Its profile (1 - e^{(x - ε)/2})²/(1 - e^{-ε}), solved for x: the second route was up to 5e-3 below it."""
    exact = choice + 2 * math.log1p(-math.sqrt(delta * -math.expm1(-choice)))
    second = spent((CountedRelease(BoundedRange(choice), 1, "median"),), delta, Relation.REPLACE_ONE).epsilon
    for epsilon in (second, Tight().epsilon_of(((BoundedRange(choice), 1),), delta)):
        assert exact * (1 - 1e-9) <= epsilon <= choice * (1 + 1e-12)


@pytest.mark.parametrize(("choice", "mu", "delta"), [(0.5, 0.3, 1e-6), (0.05, 0.2, 1e-6), (2.0, 1.0, 1e-8)])
def test_both_routes_reach_the_worst_order_and_no_less(choice, mu, delta):
    releases = ((BoundedRange(choice), 1), (Gaussian(1 / mu), 1))
    first = Tight().epsilon_of(releases, delta)
    second = spent(tuple(CountedRelease(r, c, "x") for r, c in releases), delta, Relation.REPLACE_ONE).epsilon
    assert second == pytest.approx(first, rel=1e-3)
    for epsilon in (first, second):
        assert adaptive(choice, epsilon, mu) <= delta * (1 + 1e-6)
        assert adaptive(choice, epsilon * 0.998, mu) > delta


@pytest.mark.parametrize(("n", "epsilon"), [(1000, 1.0), (100_000, 3.0), (500, 10.0)])
def test_two_quantiles_leave_more_than_renyi_and_the_second_route_agrees(n, epsilon):
    delta = n**-2
    mu = gaussian_mu(epsilon, delta)
    choices = (BoundedRange(min(mu * math.sqrt(0.6), 1000 / n)), 2)
    z = Tight().noise_scale(((Gaussian(1.0), 1),), (choices,), epsilon, delta)
    assert mu > 1 / z > 1.03 / renyi.noise_scale(((Gaussian(1.0), 1),), (choices,), epsilon, delta)
    composition = (CountedRelease(*choices, "quantile"), CountedRelease(Gaussian(z), 1, "mean"))
    assert 0.999 * epsilon < spent(composition, delta, Relation.REPLACE_ONE).epsilon <= epsilon


def test_many_choices_compose_by_renyi_beside_a_gaussian_too():
    releases = ((BoundedRange(0.5), 200), (Gaussian(2.0), 1))
    found = Tight().epsilon_of(releases, 1e-6)
    assert found == renyi.epsilon_of(releases, 1e-6) < loss_distribution.epsilon_of(releases, 1e-6)


def test_choices_alone_have_the_noise_of_renyi_dp():
    plan = ((BoundedRange(1.0), 3),)
    assert Tight().noise_scale(plan, (), 1.0, 1e-6) == renyi.noise_scale(plan, (), 1.0, 1e-6)
