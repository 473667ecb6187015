"""Gaussian releases on Poisson samples, replace-one: the worst pair of rows, three routes to its ε, and its use."""

from statistics import NormalDist

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from dpbench.errors import PrivacyError
from dpbench.privacy import Budget, Mechanisms, Relation
from dpbench.privacy.accounting import loss_distribution, renyi
from dpbench.privacy.ledger import Entry, Gaussian, PoissonReplaced, WithoutReplacement
from dpbench.privacy.verify import exact_differences, spent

N, DELTA = 45_222, 45_222**-2.0  # of adult


def ours(rate, z, steps, delta):
    return loss_distribution.epsilon_of(((PoissonReplaced(rate, Gaussian(z)), steps),), delta)


def second(rate, z, steps, delta):
    return spent((Entry(PoissonReplaced(rate, Gaussian(z)), steps, ""),), delta, Relation.REPLACE_ONE)


def hockey_stick(rate, z, epsilon, first, other):
    """δ at ε of two rows in the plane, the sample's other rows at 0; on a grid, far finer than z."""
    axis = np.linspace(-6 * z - 1, 6 * z + 1, 301)

    def density(row):
        out, here = (np.outer(*(stats.norm.pdf(axis, m, z) for m in shift)) for shift in ((0, 0), row))
        return (1 - rate) * out + rate * here

    return np.maximum(density(first) - np.exp(epsilon) * density(other), 0).sum() * (axis[1] - axis[0]) ** 2


@pytest.mark.parametrize(("rate", "z"), [(0.2, 0.4), (0.05, 1.0), (0.7, 0.8)])
@pytest.mark.parametrize("epsilon", [-0.3, 0.0, 0.1, 0.5])
def test_opposite_rows_are_the_worst_of_all_within_the_ball(rate, z, epsilon):
    rng = np.random.default_rng(0)
    worst = hockey_stick(rate, z, epsilon, (0.5, 0.0), (-0.5, 0.0))
    shares = []
    for i in range(24):
        first, other = (r * np.array([np.cos(a), np.sin(a)]) / 2 for r, a in rng.uniform(0, [1, 6.3], (2, 2)))
        if i % 4 == 0:
            first, other = first / np.linalg.norm(first) / 2, other / np.linalg.norm(other) / 2
        shares.append(hockey_stick(rate, z, epsilon, first, other) / worst)
    assert max(shares) <= 1 + 2e-4  # of the grid
    assert max(shares) > 0.5  # of what is compared something comes near


@pytest.mark.parametrize(("rate", "z"), [(0.2, 0.4), (0.02, 3.5), (1.0, 1.2)])
def test_one_release_has_the_profile_of_the_pair(rate, z):
    for delta in (1e-6, 1e-3):
        epsilon = ours(rate, z, 1, delta)

        def excess(x, epsilon=epsilon):
            out = (1 - rate) * NormalDist(0, z).pdf(x)
            here, there = (out + rate * NormalDist(m, z).pdf(x) for m in (0.5, -0.5))
            return max(0.0, here - np.exp(epsilon) * there)

        found = quad(excess, -0.5 - 9 * z, 0.5 + 9 * z, limit=500, epsabs=1e-15)[0]
        assert found == pytest.approx(delta, rel=2e-3) or (epsilon == 0 and found < delta)


@pytest.mark.thorough_for("0.3-*")
@pytest.mark.parametrize(
    ("rate", "z", "steps", "delta"), [(0.3, 0.8, 3, 1e-5), (0.05, 1.0, 50, 1e-6), (0.02, 3.55, 1000, DELTA)]
)
def test_two_routes_agree_and_renyi_is_a_little_above(rate, z, steps, delta):
    first, other = ours(rate, z, steps, delta), second(rate, z, steps, delta)
    assert other.checked_by == "dp_accounting PLD"
    assert other.epsilon == pytest.approx(first, rel=2e-4)
    bound = renyi.epsilon_of(((PoissonReplaced(rate, Gaussian(z)), steps),), delta)
    assert first < bound < 1.3 * first


@pytest.mark.parametrize("z", [0.3, 3.5, 40.0])
def test_the_two_renyi_curves_are_one_and_end_in_the_gaussians(z):
    orders = (1.5, 2.0, 7.0, 64.0, 500.0)
    for rate in (0.02, 1.0):
        from dpbench.privacy.verify import _curve

        mine = renyi.poisson_replaced_cumulant(z, rate, np.array(orders)) / (np.array(orders) - 1)
        np.testing.assert_allclose(mine, _curve(PoissonReplaced(rate, Gaussian(z)), orders), rtol=1e-6, atol=1e-13)
    np.testing.assert_allclose(mine, np.array(orders) / (2 * z**2), rtol=1e-6)
    fixed = exact_differences(WithoutReplacement(N, round(0.02 * N), Gaussian(z)), (2, 7, 64))
    sampled = renyi.poisson_replaced_cumulant(z, 0.02, np.array([2.0, 7.0, 64.0])) / np.array([1, 6, 63])
    assert (sampled <= fixed * (1 + 1e-9)).all()


def test_dp_sgd_of_the_leaderboard():
    """σ = 7.10 in units of L₀, where samples of a fixed size need 7.90."""
    budget = Budget(1.0, DELTA, Relation.REPLACE_ONE, "tight")
    assert 2 * budget.noise_scale(((PoissonReplaced(0.02, Gaussian(1.0)), 1000),)) == pytest.approx(7.10, abs=0.005)


def test_below_740_a_sample_of_fixed_size_is_not_private():
    """Row i against all others: (1-q)N(0) + qN(2L₀) and N(0), attained. It gives ε = 1 at 7.40, and 1.01 at 7.34."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    def least(sigma):
        one = pld.from_gaussian_mechanism(
            sigma, sensitivity=2.0, sampling_prob=904 / N, value_discretization_interval=2e-4
        )
        return pld.PrivacyLossDistribution(one._pmf_remove.self_compose(1000)).get_epsilon_for_delta(DELTA)

    assert least(7.40) == pytest.approx(1.0, abs=1e-3)
    assert least(7.34) > 1.008


def doubled(mode="tight", k=1):
    budget = Budget(1.0, 1e-5, Relation.REPLACE_ONE, mode)
    return Mechanisms([str(i) for i in range(k)], budget, declared=Relation.ADD_REMOVE)


def test_a_run_draws_poisson_samples_and_twice_the_sensitivity():
    m = doubled(k=2)
    sampler = m.poisson(1000, 0.05, "g")
    assert len({len(sampler.draw()[0]) for _ in range(20)}) > 3
    noise = sampler.gaussian(np.zeros((2, 20_000)), sensitivity=0.5, noise_multiplier=3.0)
    assert np.std(noise) == pytest.approx(3.0, rel=0.03)
    assert m.ledger.of(0) == (Entry(PoissonReplaced(0.05, Gaussian(3.0)), 1, "g"),)


def test_a_bound_on_two_rows_alone_is_refused():
    sampler = doubled().poisson(100, 0.1, "g")
    sampler.draw()
    with pytest.raises(PrivacyError, match="two rows says nothing of one against none"):
        sampler.gaussian(np.zeros((1, 2)), sensitivity=1.0, noise_multiplier=1.0, replaced=1.0)
    with pytest.raises(PrivacyError, match="replace-one neighbours only"):
        Budget(1.0, 1e-5, Relation.ADD_REMOVE, "tight").noise_scale(((PoissonReplaced(0.1, Gaussian(1.0)), 1),))
