"""Gaussian releases on samples of a fixed size, replace-one: profiles of true neighbours, and their composition."""

from statistics import NormalDist

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.integrate import quad

from dpbench.privacy import Budget, Relation
from dpbench.privacy.accounting import loss_distribution
from dpbench.privacy.ledger import Entry, Gaussian, Poisson, WithoutReplacement
from dpbench.privacy.verify import spent

N, M, RATE = 100, 20, 0.2


def ours(z, steps, delta):
    return loss_distribution.epsilon_of(((WithoutReplacement(N, M, Gaussian(z)), steps),), delta)


def other(z, steps, delta):
    return spent((Entry(WithoutReplacement(N, M, Gaussian(z)), steps, ""),), delta, Relation.REPLACE_ONE)


def profile(without, first, second, z, epsilon):
    """δ of a sum of rows with values in [-1/2, 1/2]: one row replaced, the sample's others at `without`."""

    def density(x, row):
        return (1 - RATE) * NormalDist(without, z).pdf(x) + RATE * NormalDist(row, z).pdf(x)

    def excess(x):
        return max(0.0, density(x, first) - np.exp(epsilon) * density(x, second))

    return quad(excess, -12 * z, 12 * z, limit=500, epsabs=1e-14)[0]


@pytest.mark.parametrize("z", [0.5, 1.5])
@pytest.mark.parametrize("others", [-0.5, 0.0, 0.5])  # what the row stands in for when it is not in the sample
def test_one_release_is_never_above_the_bound_and_reaches_it(z, others):
    # Its row takes the place of one of the others: the sum without it has that one's value instead.
    for delta in (1e-6, 1e-3, 0.02):
        bound = ours(z, 1, delta)
        pairs = [profile(others, a, -a, z, bound) for a in (-0.5, 0.5)]
        assert max(pairs) <= delta * (1 + 1e-3)
        if others:
            assert max(pairs) >= 0.97 * delta


@pytest.mark.parametrize(("z", "steps"), [(1.0, 10), (4.0, 300)])
def test_any_mix_of_directions_composes_to_no_more_and_one_alone_is_not_enough(z, steps):
    """What the other rows are may change from step to step, so row removed and row added are both within reach."""
    delta, step = 1e-6, 1e-3
    one = pld.from_gaussian_mechanism(z, sampling_prob=RATE, value_discretization_interval=step)
    removed, added = one._pmf_remove, one._pmf_add
    whole = ours(z, steps, delta)
    for share in (0.0, 0.3, 0.5, 1.0):
        count = round(share * steps)
        parts = [pmf.self_compose(c) for pmf, c in ((removed, count), (added, steps - count)) if c]
        mixed = parts[0] if len(parts) == 1 else parts[0].compose(parts[1])
        assert pld.PrivacyLossDistribution(mixed).get_epsilon_for_delta(delta) <= whole * (1 + 2e-3)
    alone = loss_distribution.epsilon_of(((Poisson(RATE, Gaussian(z)), steps),), delta)
    assert alone < 0.99 * whole


@pytest.mark.parametrize(("z", "steps", "delta"), [(0.8, 3, 1e-5), (1.0, 50, 1e-6), (4.0, 1000, 4.9e-10)])
def test_two_routes_agree(z, steps, delta):
    second = other(z, steps, delta)
    assert second.checked_by == "dp_accounting PLD"
    assert second.epsilon == pytest.approx(ours(z, steps, delta), rel=2e-4)


def test_the_whole_as_sample_is_the_gaussian():
    release = WithoutReplacement(N, N, Gaussian(2.0))
    exact = spent((Entry(Gaussian(2.0), 7, ""),), 1e-6, Relation.REPLACE_ONE).epsilon
    assert loss_distribution.epsilon_of(((release, 7),), 1e-6) == pytest.approx(exact, rel=1e-3)


def test_dp_sgd_of_the_leaderboard_needs_half_the_noise_of_renyi_and_no_less_than_the_floor():
    """σ = 7.90 instead of 15.31 in units of L₀; see `test_poisson_replaced` for the floor, 7.40."""
    n, plan = 45_222, ((WithoutReplacement(45_222, 904, Gaussian(1.0)), 1000),)
    tight, rdp = (2 * Budget(1.0, n**-2.0, Relation.REPLACE_ONE, mode).noise_scale(plan) for mode in ("tight", "rdp"))
    assert tight == pytest.approx(7.90, abs=0.01)
    assert rdp == pytest.approx(15.31, abs=0.01)


def test_what_renyi_cannot_reach_with_any_noise_is_within_reach():
    plan = ((WithoutReplacement(45_222, 4522, Gaussian(1.0)), 20),)
    budget = Budget(0.01, 45_222**-2.0, Relation.REPLACE_ONE, "tight")
    z = budget.noise_scale(plan)
    assert 0 < z < 1e4
    assert other_epsilon(plan, z, budget) <= 0.01 * (1 + 1e-6)


@pytest.mark.thorough
def test_one_row_of_many_takes_the_least_noise_that_has_a_grid():
    plan, noise = ((WithoutReplacement(20_640, 1, Gaussian(1.0)), 6192),), {}
    for mode in ("rdp", "tight"):
        budget = Budget(0.1, 20_640**-2.0, Relation.REPLACE_ONE, mode)
        noise[mode] = budget.noise_scale(plan)
        assert other_epsilon(plan, noise[mode], budget) <= 0.1 * (1 + 1e-6)
    assert noise["tight"] < 0.5 * noise["rdp"]


def other_epsilon(plan, z, budget):
    ((release, count),) = plan
    entry = Entry(WithoutReplacement(release.n, release.m, Gaussian(z)), count, "")
    return spent((entry,), budget.delta, budget.relation).epsilon
