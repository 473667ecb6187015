"""Rényi curves of sampled Gaussians: quadrature, exact arithmetic, published numbers, and dp_accounting.

Gaussian releases on samples of a fixed size, replace-one: profiles of true neighbours, and their composition.

Gaussian releases on Poisson samples, replace-one: the worst pair of rows, three routes to its ε, and its use.
"""

import math
from decimal import Decimal, localcontext
from statistics import NormalDist

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from dpbench.errors import PrivacyError, UserError
from dpbench.privacy import Budget, Mechanisms, Relation
from dpbench.privacy.accounting import base, loss_distribution, renyi
from dpbench.privacy.accounting.gaussian import gaussian_epsilon
from dpbench.privacy.ledger import CountedRelease, Gaussian, Poisson, PoissonReplaced, WithoutReplacement
from dpbench.privacy.verify import exact_differences, spent


def poisson_epsilon(z, delta, rate, steps):
    return renyi.epsilon_of(((Poisson(rate, Gaussian(z)), steps),), delta)


def without_replacement_epsilon(z, delta, n, m, steps):
    return renyi.epsilon_of(((WithoutReplacement(n, m, Gaussian(z)), steps),), delta)


def poisson_noise(epsilon, delta, rate, steps):
    budget = Budget(epsilon, delta, Relation.ADD_REMOVE, "rdp")
    return budget.noise_scale(((Poisson(rate, Gaussian(1.0)), steps),))


def without_replacement_noise(epsilon, delta, n, m, steps):
    budget = Budget(epsilon, delta, Relation.REPLACE_ONE, "rdp")
    return budget.noise_scale(((WithoutReplacement(n, m, Gaussian(1.0)), steps),))


ORDERS = np.array([1.1, 1.5, 2.0, 2.7, 3.0, 8.0, 10.9, 32.0, 100.0])


def renyi_cumulant(log_p, log_q, alpha, span):
    """ln ∫ p^α q^{1-α} by the trapezoid rule on a wide, fine grid."""
    x, step = np.linspace(-span, span, 400_001, retstep=True)
    terms = alpha * log_p(x) + (1 - alpha) * log_q(x)
    top = terms.max()
    return top + math.log(np.exp(terms - top).sum() * step)


def log_normal(mean, sigma):
    return lambda x: -((x - mean) ** 2) / (2 * sigma**2) - math.log(sigma * math.sqrt(2 * math.pi))


def log_mixture(q, mean, sigma):
    return lambda x: np.logaddexp(math.log1p(-q) + log_normal(0, sigma)(x), math.log(q) + log_normal(mean, sigma)(x))


@pytest.mark.thorough
@pytest.mark.parametrize(("sigma", "q"), [(0.6, 0.1), (1.0, 0.02), (3.0, 0.3), (20.0, 0.02), (1.0, 1e-4)])
def test_poisson_curve_is_the_renyi_divergence_and_the_larger_of_both_directions(sigma, q):
    curve = renyi.poisson_cumulant(sigma, q, ORDERS)
    span = 120 + 14 * sigma
    for alpha, K in zip(ORDERS, curve, strict=True):
        removed = renyi_cumulant(log_mixture(q, 1, sigma), log_normal(0, sigma), alpha, span)
        added = renyi_cumulant(log_normal(0, sigma), log_mixture(q, 1, sigma), alpha, span)
        assert pytest.approx(removed, rel=1e-8, abs=1e-13) == K
        assert added <= K + 1e-12


def test_poisson_curve_at_rate_one_is_the_gaussian():
    np.testing.assert_allclose(renyi.poisson_cumulant(2.0, 1.0, ORDERS), ORDERS * (ORDERS - 1) / 8)


def test_tiny_poisson_losses_keep_their_digits():
    # K(α) = q²(e^{1/σ²} - 1) α(α-1)/2 to leading order.
    K = renyi.poisson_cumulant(1000.0, 1e-4, np.array([2.0, 3.0]))
    np.testing.assert_allclose(K, 1e-8 * math.expm1(1e-6) * np.array([1.0, 3.0]), rtol=1e-4)


def test_abadi_et_al_2016():
    # q = 0.01, σ = 4, δ = 1e-5, 10,000 steps: ε = 1.26, by the plain conversion of the moments accountant.
    orders = renyi.POISSON_ORDERS
    K = 10_000 * renyi.poisson_cumulant(4.0, 0.01, orders)
    assert np.min((K - math.log(1e-5)) / (orders - 1)) == pytest.approx(1.26, abs=0.005)
    assert poisson_epsilon(4.0, 1e-5, 0.01, 10_000) < 1.26


@pytest.mark.parametrize(("sigma", "q", "steps"), [(1.1, 256 / 60_000, 14_062), (4.0, 0.01, 10_000), (0.8, 0.05, 3)])
def test_poisson_against_dp_accounting(sigma, q, steps):
    import dp_accounting as dp
    from dp_accounting.rdp import RdpAccountant

    orders = [float(a) for a in renyi.POISSON_ORDERS if 2 <= a < 300]
    event = dp.PoissonSampledDpEvent(q, dp.GaussianDpEvent(sigma))
    theirs = RdpAccountant(orders).compose(event, steps)
    K = renyi.poisson_cumulant(sigma, q, np.array(orders))
    whole = np.array([a.is_integer() for a in orders])
    np.testing.assert_allclose(steps * (K / (np.array(orders) - 1))[whole], theirs.rdp[whole], rtol=1e-7)
    assert poisson_epsilon(sigma, 1e-5, q, steps) <= theirs.get_epsilon(1e-5) * (1 + 1e-9)


@pytest.mark.parametrize("sigma", [0.7, 2.0, 30.0, 500.0])
def test_even_moments_of_the_likelihood_ratio_in_exact_arithmetic(sigma):
    ours = renyi._log_even_moments(sigma, 40)
    with localcontext() as context:
        context.prec = 300
        for l in (1, 2, 5, 13, 20):
            variance = Decimal(sigma) ** 2
            terms = (
                (-1) ** k * math.comb(2 * l, k) * (Decimal(k * (k - 1)) / (2 * variance)).exp()
                for k in range(2 * l + 1)
            )
            assert ours[l] == pytest.approx(float(sum(terms).ln()), rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("sigma", [0.5, 2.0, 10.0, 100.0])
@pytest.mark.parametrize(("n", "m"), [(50_000, 1_000), (20_640, 1), (1_000, 50)])
def test_without_replacement_against_dp_accounting_and_theorem_9(sigma, n, m):
    import dp_accounting as dp
    from dp_accounting.rdp import RdpAccountant

    orders = np.array([2.0, 3.0, 4.0, 7.0, 16.0, 64.0, 128.0])
    ours = renyi.without_replacement_cumulant(sigma, n, m, orders)
    event = dp.SampledWithoutReplacementDpEvent(n, m, dp.GaussianDpEvent(sigma))
    theirs = RdpAccountant(list(orders), dp.NeighboringRelation.REPLACE_ONE).compose(event).rdp * (orders - 1)
    whole = orders * (orders - 1) / (2 * sigma**2)
    np.testing.assert_allclose(ours, np.minimum(theirs, whole), rtol=1e-8)
    for alpha, K in zip(orders, ours, strict=True):
        assert equation_27(sigma, m / n, int(alpha)) * (1 + 1e-9) >= K


def equation_27(sigma, s, alpha):
    """nonconvex's eq. 27 for the Gaussian mechanism, as printed below it, times α - 1."""
    first = s**2 * math.comb(alpha, 2) * min(4 * math.expm1(sigma**-2), 2 * math.exp(sigma**-2))
    logs = [
        math.log(2) + j * math.log(s) + math.log(math.comb(alpha, j)) + j * (j - 1) / (2 * sigma**2)
        for j in range(3, alpha + 1)
    ]
    return float(np.logaddexp.reduce([0.0, math.log(first), *logs]))


@pytest.mark.thorough
@pytest.mark.parametrize("sigma", [0.7, 2.0, 10.0])
@pytest.mark.parametrize("q", [0.02, 0.3])
def test_without_replacement_bounds_true_neighbours(sigma, q):
    # m = 1 and all other rows at 0, the end or the middle of a range of length 1: known mixtures.
    orders = np.array([2.0, 3.0, 5.0, 16.0, 32.0])
    bound = renyi.without_replacement_cumulant(sigma, 1000, round(1000 * q), orders)
    ends = (log_mixture(q, 1, sigma), log_normal(0, sigma))
    middle = (log_mixture(q, 0.5, sigma), log_mixture(q, -0.5, sigma))
    for alpha, K in zip(orders, bound, strict=True):
        for p, r in (ends, ends[::-1], middle):
            assert renyi_cumulant(p, r, alpha, 40 + 14 * sigma) <= K * (1 + 1e-9)


@pytest.mark.parametrize("sigma", [0.5, 2.0, 10.0, 100.0, 1000.0])
@pytest.mark.parametrize(("n", "m"), [(50_000, 1_000), (1_000, 300), (10, 9)])
def test_without_replacement_against_exact_arithmetic(sigma, n, m):
    # dp_accounting's finite differences lose their digits here; quadrature and decimals do not.
    orders = (2, 3, 16, 64, 128, 256)
    ours = renyi.without_replacement_cumulant(sigma, n, m, np.array(orders))
    exact = exact_differences(WithoutReplacement(n, m, Gaussian(sigma)), orders) * (np.array(orders) - 1)
    np.testing.assert_allclose(ours, exact, rtol=1e-8)


def test_without_replacement_of_every_row_is_the_gaussian():
    np.testing.assert_allclose(renyi.without_replacement_cumulant(2.0, 9, 9, np.array([2.0, 3.0])), [0.25, 0.75])


def test_conversion_of_a_gaussian_curve_is_close_above_the_exact_epsilon():
    orders = renyi.POISSON_ORDERS
    for sigma in (0.4, 1.0, 5.0, 200.0):
        epsilon = renyi.rdp_epsilon(orders, renyi.gaussian_cumulant(sigma, orders), 1e-9)
        exact = gaussian_epsilon(1 / sigma, 1e-9)
        assert exact < epsilon < 1.08 * exact


log_epsilons = st.floats(math.log(0.02), math.log(10)).map(math.exp)


@pytest.mark.thorough
@given(log_epsilons, st.sampled_from([0.01, 0.05, 0.3, 1.0]), st.integers(1, 30_000))
@settings(deadline=None, max_examples=30)
def test_poisson_multiplier_meets_epsilon_and_wastes_nothing(epsilon, rate, steps):
    z = poisson_noise(epsilon, 1e-8, rate, steps)
    assert poisson_epsilon(z, 1e-8, rate, steps) <= epsilon
    assert poisson_epsilon(z * (1 - 1e-6), 1e-8, rate, steps) > epsilon * (1 - 1e-4)
    assert poisson_epsilon(z / 2, 1e-8, rate, steps) > 1.3 * epsilon


@given(st.floats(0.15, 10), st.sampled_from([1, 100, 3_000]), st.integers(1, 5_000))
@settings(deadline=None, max_examples=20)
def test_without_replacement_multiplier_meets_epsilon_and_wastes_nothing(epsilon, m, steps):
    z = without_replacement_noise(epsilon, 1e-6, 10_000, m, steps)
    assert without_replacement_epsilon(z, 1e-6, 10_000, m, steps) <= epsilon * (1 + 1e-14)  # rounding
    assert without_replacement_epsilon(z * (1 - 1e-6), 1e-6, 10_000, m, steps) > epsilon * (1 - 1e-4)


def test_more_steps_or_a_higher_rate_need_more_noise():
    by_steps = [poisson_noise(1.0, 1e-6, 0.02, T) for T in (10, 100, 1000)]
    by_rate = [poisson_noise(1.0, 1e-6, q, 100) for q in (0.01, 0.1, 1.0)]
    by_m = [without_replacement_noise(1.0, 1e-6, 1000, m, 100) for m in (1, 30, 1000)]
    for increasing in (by_steps, by_rate, by_m):
        assert increasing == sorted(increasing)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: poisson_noise(0.0, 1e-6, 0.1, 10), "epsilon must be a positive number"),
        (lambda: poisson_noise(1.0, 0.0, 0.1, 10), "needs delta > 0"),
        (lambda: poisson_noise(1.0, 1e-6, 0.1, 0), "steps must be at least 1"),
        (lambda: without_replacement_noise(0.01, 1e-6, 1000, 10, 10), "out of reach"),
        (lambda: base.smallest_scale(lambda z: 0.0, 1.0), "needs no noise"),
    ],
)
def test_bad_input_is_one_clear_line(call, words):
    with pytest.raises(UserError) as caught:
        call()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


N, M, RATE = 100, 20, 0.2


def ours(z, steps, delta):
    return loss_distribution.epsilon_of(((WithoutReplacement(N, M, Gaussian(z)), steps),), delta)


def other(z, steps, delta):
    return spent((CountedRelease(WithoutReplacement(N, M, Gaussian(z)), steps, ""),), delta, Relation.REPLACE_ONE)


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
    exact = spent((CountedRelease(Gaussian(2.0), 7, ""),), 1e-6, Relation.REPLACE_ONE).epsilon
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
    entry = CountedRelease(WithoutReplacement(release.n, release.m, Gaussian(z)), count, "")
    return spent((entry,), budget.delta, budget.relation).epsilon


POISSON_REPLACED_N, DELTA = 45_222, 45_222**-2.0  # of adult


def poisson_replaced_ours(rate, z, steps, delta):
    return loss_distribution.epsilon_of(((PoissonReplaced(rate, Gaussian(z)), steps),), delta)


def second(rate, z, steps, delta):
    return spent((CountedRelease(PoissonReplaced(rate, Gaussian(z)), steps, ""),), delta, Relation.REPLACE_ONE)


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
        epsilon = poisson_replaced_ours(rate, z, 1, delta)

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
    first, other = poisson_replaced_ours(rate, z, steps, delta), second(rate, z, steps, delta)
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
    fixed = exact_differences(
        WithoutReplacement(POISSON_REPLACED_N, round(0.02 * POISSON_REPLACED_N), Gaussian(z)), (2, 7, 64)
    )
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
            sigma, sensitivity=2.0, sampling_prob=904 / POISSON_REPLACED_N, value_discretization_interval=2e-4
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
    assert m.ledger.of(0) == (CountedRelease(PoissonReplaced(0.05, Gaussian(3.0)), 1, "g"),)


def test_a_bound_on_two_rows_alone_is_refused():
    sampler = doubled().poisson(100, 0.1, "g")
    sampler.draw()
    with pytest.raises(PrivacyError, match="two rows says nothing of one against none"):
        sampler.gaussian(np.zeros((1, 2)), sensitivity=1.0, noise_multiplier=1.0, replaced=1.0)
    with pytest.raises(PrivacyError, match="replace-one neighbours only"):
        Budget(1.0, 1e-5, Relation.ADD_REMOVE, "tight").noise_scale(((PoissonReplaced(0.1, Gaussian(1.0)), 1),))
