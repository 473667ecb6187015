"""Rényi curves of sampled Gaussians: quadrature, exact arithmetic, published numbers, and dp_accounting."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbench.errors import UserError
from dpbench.privacy import Budget, Relation
from dpbench.privacy.accounting import base, renyi
from dpbench.privacy.accounting.gaussian import gaussian_epsilon
from dpbench.privacy.ledger import Gaussian, Poisson, WithoutReplacement
from dpbench.privacy.verify import exact_differences


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
    assert without_replacement_epsilon(z, 1e-6, 10_000, m, steps) <= epsilon
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
