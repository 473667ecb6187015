"""The second opinion against known numbers, closed forms, quadrature, and the first opinion."""

import math
import resource
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import binom, laplace

from dpbench.errors import PrivacyError
from dpbench.privacy import Budget, Relation, accounting, verify
from dpbench.privacy.accounting.gaussian import gaussian_epsilon
from dpbench.privacy.accounting.pure import advanced_composition_epsilon0, base_epsilon
from dpbench.privacy.accounting.tight import Tight
from dpbench.privacy.check import check
from dpbench.privacy.ledger import (
    ZCDP,
    Allocated,
    BoundedRange,
    CountedRelease,
    DrawAfterTest,
    Gaussian,
    Laplace,
    LogisticPerturbation,
    Poisson,
    PoissonReplaced,
    PureDP,
    Radial,
    Sketch,
    WithoutReplacement,
)
from dpbench.privacy.verify import spent
from tests.privacy.accounting.test_pure import composed_randomised_response

ADD_REMOVE, REPLACE_ONE = Relation.ADD_REMOVE, Relation.REPLACE_ONE


def epsilon(delta, relation, *releases):
    return spent(tuple(CountedRelease(r, c, "x") for r, c in releases), delta, relation).epsilon


def test_the_replace_one_trap():
    """A plain Gaussian whose noise is 4 times the add/remove sensitivity, at δ = 1e-6, under replace-one.

    There the sensitivity doubles, so its multiplier is 2 and ε is 2.254. dp_accounting's RDP accountant, told 4 and
    REPLACE_ONE, answers for add/remove: 1.143.
    """
    import dp_accounting as dp
    from dp_accounting.rdp import RdpAccountant

    assert epsilon(1e-6, REPLACE_ONE, (Gaussian(4.0 / 2), 1)) == pytest.approx(2.254, abs=5e-4)
    trap = RdpAccountant(neighboring_relation=dp.NeighboringRelation.REPLACE_ONE)
    assert trap.compose(dp.GaussianDpEvent(4.0)).get_epsilon(1e-6) == pytest.approx(1.143, abs=1e-3)


def test_a_multiplier_is_relative_to_the_relations_own_sensitivity():
    for release in (Gaussian(1.5), Laplace(1.5), PureDP(0.3), ZCDP(0.1)):
        counts = (release, 3), (PureDP(0.1), 2)
        assert epsilon(1e-6, ADD_REMOVE, *counts) == epsilon(1e-6, REPLACE_ONE, *counts)


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
@pytest.mark.parametrize("mu", [0.003, 0.1, 1.0, 4.0])
def test_gaussians_compose_exactly(mu, delta):
    # 30,000 gradients and 10,000 directions with Σ 1/z² = μ².
    z = math.sqrt(50_000) / mu
    got = epsilon(delta, ADD_REMOVE, (Gaussian(z), 30_000), (Gaussian(z / math.sqrt(2)), 10_000))
    assert got == pytest.approx(gaussian_epsilon(mu, delta), rel=1e-8)


def test_one_laplace_release():
    # δ(ε) = 1 - e^{(ε - ε₀)/2}, so ε = ε₀ + 2 ln(1 - δ).
    assert epsilon(0.0, ADD_REMOVE, (Laplace(2.0), 1)) == 0.5
    assert epsilon(0.05, ADD_REMOVE, (Laplace(2.0), 1)) == pytest.approx(0.5 + 2 * math.log(0.95), abs=1e-4)


def test_pure_dp_adds_up():
    assert epsilon(0.0, REPLACE_ONE, (Laplace(100.0), 50), (PureDP(0.02), 10)) == pytest.approx(0.7, rel=1e-12)
    sampled = WithoutReplacement(1000, 10, Laplace(1 / base_epsilon(1e-3, 1000, 10)))
    assert epsilon(0.0, REPLACE_ONE, (sampled, 1000)) == pytest.approx(1.0, rel=1e-12)


def test_gaussian_noise_gives_no_pure_dp():
    assert epsilon(0.0, ADD_REMOVE, (Gaussian(100.0), 1)) == math.inf
    assert epsilon(0.0, ADD_REMOVE, (Poisson(0.1, Gaussian(100.0)), 1), (Laplace(9.0), 1)) == math.inf


@pytest.mark.parametrize(("e", "count"), [(0.3, 20), (0.01, 1000), (1.7, 3)])
def test_pure_dp_selections_at_a_positive_delta_are_randomised_response(e, count):
    got = epsilon(1e-6, REPLACE_ONE, (PureDP(e), count))
    assert composed_randomised_response(e, count, got * (1 + 1e-3) + 1e-9) <= 1e-6
    assert composed_randomised_response(e, count, got * (1 - 1e-3)) >= 1e-6 * (1 - 1e-9)


def test_selections_of_different_epsilons_stay_close():
    # Two that differ by a hair must cost what equal ones cost.
    equal = epsilon(1e-6, REPLACE_ONE, (PureDP(0.1), 20))
    assert (
        equal * (1 - 1e-6)
        <= epsilon(1e-6, REPLACE_ONE, (PureDP(0.1), 10), (PureDP(0.1 * (1 - 1e-9)), 10))
        <= equal * 1.01
    )


@pytest.mark.parametrize("n", [800, 1_000, 2_600, 20_640])
def test_greedy_coordinates_published_selection(n):
    """The spec's numbers for report noisy max at half the noise it needs: 2ε'-DP, with ε' from eq. (2) at ε = 1."""
    delta = n**-2.0

    def real_epsilon(T):
        e = advanced_composition_epsilon0(1.0, 2 * T, delta)
        return epsilon(delta, REPLACE_ONE, (PureDP(2 * e), T), (Laplace(1 / e), T))

    assert real_epsilon(4) < 1
    assert 1.02 < real_epsilon(10) < 1.105
    assert 1.165 < real_epsilon(20) < 1.215


def sampled_hockey_stick(z, q, eps):
    """δ(ε) of one Poisson-sampled Gaussian, the larger of removing and adding a row, by quadrature."""

    def base(x):
        return NormalDist(0, z).pdf(x)

    def mixture(x):
        return (1 - q) * base(x) + q * NormalDist(1, z).pdf(x)

    limits = {"a": -15 * z, "b": 1 + 15 * z, "limit": 2000, "epsabs": 1e-14}
    removed = quad(lambda x: max(0.0, mixture(x) - math.exp(eps) * base(x)), **limits)[0]
    added = quad(lambda x: max(0.0, base(x) - math.exp(eps) * mixture(x)), **limits)[0]
    return max(removed, added)


@pytest.mark.parametrize(("z", "q"), [(1.0, 0.1), (3.0, 0.5), (0.7, 0.02)])
def test_one_poisson_sampled_gaussian(z, q):
    eps = epsilon(1e-5, ADD_REMOVE, (Poisson(q, Gaussian(z)), 1))
    assert sampled_hockey_stick(z, q, eps * 1.001 + 1e-5) <= 1e-5 <= sampled_hockey_stick(z, q, eps * 0.998 - 1e-5)


def test_many_small_poisson_steps_approach_their_gaussian_limit():
    # T steps at rate q: μ = q √(T (e^{1/z²} - 1)) (Dong, Roth and Su 2022, Corollary 5.4); the grid must follow down.
    z, q, T = 1600.0, 0.02, 30_000
    mu = q * math.sqrt(T * math.expm1(z**-2))
    assert epsilon(1e-9, ADD_REMOVE, (Poisson(q, Gaussian(z)), T)) == pytest.approx(
        gaussian_epsilon(mu, 1e-9), rel=5e-3
    )


def test_zcdp_by_rdp_is_the_optimal_conversion():
    for rho in (1e-4, 0.01, 1.0):
        best = accounting.get("cks20").epsilon(rho, 1e-6)
        assert best * (1 - 1e-9) <= epsilon(1e-6, ADD_REMOVE, (ZCDP(rho / 8), 8)) <= best * 1.002


def test_selections_among_zcdp_releases_count_half_their_epsilon_squared():
    assert epsilon(1e-6, REPLACE_ONE, (ZCDP(0.01), 1), (PureDP(0.1), 2)) == pytest.approx(
        epsilon(1e-6, REPLACE_ONE, (ZCDP(0.02), 1)), rel=1e-9
    )


def test_line_search_runs_fit_their_zcdp_budget():
    # opt-ls: gradients, Hessians and sparse-vector calls at ρ/(3T) each.
    T, rho = 421, accounting.get("standard").rho(1.0, 2e-6)
    z = math.sqrt(3 * T / (2 * rho))
    got = epsilon(2e-6, REPLACE_ONE, (Gaussian(z), 2 * T), (PureDP(1 / z), T))
    assert 0.6 < got < 1.0


def test_l1_sensitivity_one_is_worst_in_one_coordinate():
    # The ledger's Laplace(z) is checked as a shift of one coordinate by 1; shifts s and 1 - s of two must cost less.
    for s in (0.1, 0.5):
        for z in (0.5, 2.0):
            split = ((Laplace(z / s), 1), (Laplace(z / (1 - s)), 1))
            for delta in (1e-6, 1e-2, 0.2):
                assert epsilon(delta, ADD_REMOVE, *split) <= epsilon(delta, ADD_REMOVE, (Laplace(z), 1)) + 2e-4


@pytest.mark.thorough_for("10.0-*", "*-20640-1-20640", "0.2-49*")
@pytest.mark.parametrize(
    ("n", "m", "T"), [(495_141, 9_902, 421), (49_990, 499, 100), (20_640, 1, 20_640), (100, 60, 5)]
)
@pytest.mark.parametrize("target", [0.2, 10.0])
def test_without_replacement_confirms_the_calibration(n, m, T, target):
    """At ends of the noise far apart, so the check follows it: half of it gives another ε, or the other end fails."""
    z = Budget(target, 1 / n, REPLACE_ONE, "standard").noise_scale(((WithoutReplacement(n, m, Gaussian(1.0)), T),))
    by_rdp = (ZCDP(1e-12), 1)  # next to nothing, and known to Rényi DP alone
    got = epsilon(1 / n, REPLACE_ONE, (WithoutReplacement(n, m, Gaussian(z)), T), by_rdp)
    assert target * 0.99 < got <= target * (1 + 1e-5)
    assert epsilon(1 / n, REPLACE_ONE, (WithoutReplacement(n, m, Gaussian(z)), T)) < got


def test_where_floats_lose_their_digits_the_check_says_so():
    release = WithoutReplacement(1000, 300, Gaussian(40.0))
    result = spent((CountedRelease(release, 1, "x"), CountedRelease(ZCDP(1e-12), 1, "y")), 1e-6, REPLACE_ONE)
    assert "exact arithmetic" in result.checked_by
    assert result.epsilon < epsilon(1e-6, REPLACE_ONE, (Gaussian(40.0), 1))


@pytest.mark.thorough_for("0.02-30000-*", "0.05-10-10.0")
@pytest.mark.parametrize("target", [0.01, 0.1, 1.0, 10.0])
@pytest.mark.parametrize(("rate", "T"), [(0.02, 30_000), (0.05, 10)])
def test_poisson_rdp_calibration_is_confirmed(target, rate, T):
    z = Budget(target, 1e-9, ADD_REMOVE, "bs16").noise_scale(((Poisson(rate, Gaussian(1.0)), T),))
    assert 0.8 * target < epsilon(1e-9, ADD_REMOVE, (Poisson(rate, Gaussian(z)), T)) <= target
    assert epsilon(1e-9, ADD_REMOVE, (Poisson(rate, Gaussian(z / 2)), T)) > 1.2 * target


def test_poisson_with_other_releases():
    # The split of dp-newton-minibatch: shares of ε and δ add up, and the composition is below their sum.
    budget = Budget(1.0, 1e-9, ADD_REMOVE, "bs16")
    gradient = budget.noise_scale(((Poisson(0.05, Gaussian(1.0)), 50),), 0.7)
    direction = budget.noise_scale(((Poisson(0.1, Gaussian(1.0)), 50),), 0.3)
    together = epsilon(
        1e-9, ADD_REMOVE, (Poisson(0.05, Gaussian(gradient)), 50), (Poisson(0.1, Gaussian(direction)), 50)
    )
    assert 0.5 < together < 1.0
    with_trace = epsilon(1e-9, ADD_REMOVE, (Poisson(0.05, Gaussian(gradient)), 50), (Gaussian(30.0), 4))
    alone = epsilon(1e-9, ADD_REMOVE, (Poisson(0.05, Gaussian(gradient)), 50))
    assert alone < with_trace < alone + gaussian_epsilon(2 / 30, 1e-9)


@pytest.mark.thorough
def test_pld_and_rdp_agree_on_what_both_know():
    # Adding a negligible zCDP release forces RDP.
    release = Poisson(0.02, Gaussian(20.0))
    by_pld = epsilon(1e-9, ADD_REMOVE, (release, 30_000))
    by_rdp = epsilon(1e-9, ADD_REMOVE, (release, 30_000), (ZCDP(1e-12), 1))
    assert by_pld < by_rdp < 1.15 * by_pld


def test_labels_and_order_do_not_matter_and_the_work_is_done_once():
    a = (CountedRelease(Laplace(3.0), 2, "x"), CountedRelease(Gaussian(2.0), 5, "y"))
    b = (
        CountedRelease(Gaussian(2.0), 3, "y"),
        CountedRelease(Gaussian(2.0), 2, "z"),
        CountedRelease(Laplace(3.0), 2, ""),
    )
    assert spent(a, 1e-6, ADD_REMOVE) is spent(b, 1e-6, ADD_REMOVE)


def test_nothing_released_nothing_spent():
    assert spent((), 0.0, ADD_REMOVE).epsilon == 0


def test_checked_by_names_the_method_and_the_stand_ins():
    def method(delta, *releases):
        return spent(tuple(CountedRelease(r, 1, "") for r in releases), delta, REPLACE_ONE).checked_by

    assert method(1e-6, Gaussian(2.0)) == "dp_accounting exact Gaussian"
    assert "PLD" in method(1e-6, Laplace(2.0), Gaussian(2.0))
    assert "randomised response" in method(1e-6, PureDP(0.1), Gaussian(2.0))
    assert "amplified" in method(0.0, WithoutReplacement(10, 1, Laplace(1.0)))
    assert "PLD" in method(1e-6, WithoutReplacement(10, 1, Gaussian(2.0)))
    assert "RDP" in method(1e-6, WithoutReplacement(10, 1, Gaussian(2.0)), ZCDP(0.1))


def test_a_release_under_the_wrong_relation_is_a_defect():
    with pytest.raises(PrivacyError, match="add-remove neighbours only"):
        epsilon(1e-6, REPLACE_ONE, (Poisson(0.1, Gaussian(1.0)), 1))
    with pytest.raises(PrivacyError, match="replace-one neighbours only"):
        epsilon(1e-6, ADD_REMOVE, (WithoutReplacement(10, 1, Gaussian(1.0)), 1))


def test_check_lets_a_sound_run_pass_and_stops_another():
    budget = Budget(1.0, 1e-6, ADD_REMOVE, "tight")
    z = math.sqrt(100 / (2 * budget.rho))
    assert not check((CountedRelease(Gaussian(z), 100, "g"),), budget).error
    assert check((CountedRelease(Gaussian(z), 100, "g"),), budget).epsilon == pytest.approx(1.0, rel=1e-9)
    for wrong in (
        CountedRelease(Gaussian(z), 101, "g"),
        CountedRelease(Gaussian(z / 2), 100, "g"),
        CountedRelease(Gaussian(z * 0.9999), 100, "g"),
    ):
        assert "more than the 1 asked for" in check((wrong,), budget).error


modes = st.sampled_from(["text", "bs16", "cks20", "standard", "tight"])


@given(
    st.floats(math.log(0.01), math.log(20)).map(math.exp),
    st.floats(math.log(1e-12), math.log(1e-3)).map(math.exp),
    modes,
    st.lists(st.integers(1, 10_000), min_size=1, max_size=3),
)
@settings(deadline=None, max_examples=100)
def test_any_split_of_rho_into_gaussians_stays_within_the_budget(eps, delta, mode, counts):
    budget = Budget(eps, delta, ADD_REMOVE, mode)
    composition = tuple(
        CountedRelease(Gaussian(math.sqrt(len(counts) * count / (2 * budget.rho))), count, str(i))
        for i, count in enumerate(counts)
    )
    result = check(composition, budget)
    assert not result.error
    assert budget.epsilon_of(composition) == pytest.approx(eps, rel=1e-8)
    if mode == "tight":
        assert result.epsilon == pytest.approx(eps, rel=1e-7)


def test_randomised_response_helper_is_right():
    # One release: δ(0) is the total variation tanh(ε₀/2).
    assert composed_randomised_response(0.6, 1, 0.0) == pytest.approx(math.tanh(0.3), rel=1e-12)
    assert np.isclose(composed_randomised_response(0.6, 7, 7 * 0.6), 0.0)


@pytest.mark.parametrize("multiplier", [8356.0, 6e4])
def test_a_very_noisy_release_costs_little_and_warns_of_nothing(multiplier):
    """As aop's output noise: dp_accounting takes the logarithm of a difference that rounds to zero there."""
    result = spent((CountedRelease(Gaussian(multiplier), 1, "output"),), 1e-11, Relation.ADD_REMOVE)
    assert 0 <= result.epsilon <= 7 / multiplier


def test_selections_of_two_kinds_are_composed_without_drift():
    """Against the exact ε of randomised response at two ε₀: two binomials."""
    first, second, delta = (0.1, 12), (0.0377, 150), 1e-6
    loss, log_mass = np.zeros(1), np.zeros(1)
    for e, count in (first, second):
        i = np.arange(count + 1)
        loss = np.add.outer(loss, e * (2 * i - count)).ravel()
        log_mass = np.add.outer(log_mass, binom(count, 1 / (1 + math.exp(-e))).logpmf(i)).ravel()

    def gap(eps):
        return math.fsum(np.exp(log_mass) * -np.expm1(np.minimum(eps - loss, 0))) - delta

    exact = brentq(gap, 0.01, 10)
    got = epsilon(delta, REPLACE_ONE, (PureDP(first[0]), first[1]), (PureDP(second[0]), second[1]))
    assert exact * (1 - 1e-9) <= got <= exact * (1 + 2e-2)
    many = epsilon(delta, REPLACE_ONE, (PureDP(0.0111), 30), (PureDP(0.0017), 4000), (Gaussian(4.0), 1))
    assert many <= epsilon(delta, REPLACE_ONE, (PureDP(0.0111), 4030), (Gaussian(4.0), 1))


@pytest.mark.parametrize("n", [1234, 20640])
def test_vertices_drawn_at_the_whole_budget_are_within_it(n):
    """The best order lies between two of the grid's, which cost 7e-6 of ε, more than rounding: a run was a defect."""
    T, asked, delta = 50, 0.1, float(n) ** -2
    step = 1 / Tight().noise_scale(((BoundedRange(1.0), T),), (), asked, delta)
    assert epsilon(delta, REPLACE_ONE, (BoundedRange(step), T)) <= asked * (1 + 1e-7)


def test_several_perturbed_objectives_and_pure_releases_beside_them_compose_by_shares():
    one = CountedRelease(LogisticPerturbation(5.0, 1.0), 1, "term")
    alone = spent((one,), 1e-6 / 3, Relation.REPLACE_ONE).epsilon
    three = one._replace(count=3)
    assert spent((three,), 1e-6, Relation.REPLACE_ONE).epsilon == pytest.approx(3 * alone)
    pure = CountedRelease(Laplace(10.0), 2, "bound")
    assert spent((three, pure), 1e-6, Relation.REPLACE_ONE).epsilon == pytest.approx(3 * alone + 0.2)
    noisy = CountedRelease(Gaussian(20.0), 1, "output")
    each = spent((one, noisy), 1e-6 / 3, Relation.REPLACE_ONE).epsilon
    together = spent((three, noisy._replace(count=3)), 1e-6, Relation.REPLACE_ONE)
    assert together.epsilon == pytest.approx(3 * each)
    assert "each of 3" in together.checked_by
    assert spent((three, pure, CountedRelease(ZCDP(0.1), 1, "other")), 1e-6, Relation.REPLACE_ONE).epsilon == math.inf


def test_beside_a_draw_that_takes_all_of_delta_what_is_pure_counts():
    draw, pure = (
        CountedRelease(DrawAfterTest(0.25, 0.375, 1e-6, 1e-6), 1, "model"),
        CountedRelease(Laplace(10.0), 1, "bound"),
    )
    found = spent((draw, pure), 1e-6, Relation.REPLACE_ONE).epsilon
    assert found == pytest.approx(spent((draw,), 1e-6, Relation.REPLACE_ONE).epsilon + 0.1)
    assert spent((draw, CountedRelease(Gaussian(10.0), 1, "bound")), 1e-6, Relation.REPLACE_ONE).epsilon == math.inf
    assert Tight().epsilon_of(((draw.release, 1), (pure.release, 1)), 1e-6) == pytest.approx(1.1, rel=1e-5)


def test_what_is_next_to_nothing_beside_the_others_needs_no_fine_grid():
    """Alone it would ask for millions of intervals: the others' cost, and as much more as it costs at most."""
    large, little = ((Gaussian(20.0), 4),), ((Laplace(3e6), 1),)
    both = verify._pld((*large, *little), 1e-6).epsilon
    alone = verify._pld(large, 1e-6).epsilon
    assert alone <= both <= (alone + 1 / 3e6) * (1 + 1e-4)
    deviations = [verify._deviation(release) for release, _ in (*large, *little)]
    assert verify._total((*large, *little), deviations) / verify._grid((*large, *little), deviations) < 200


@pytest.mark.parametrize("delta", [0.02, 0.1, 0.3])
def test_behind_a_test_that_tells_nothing_a_draw_costs_what_randomised_response_does(delta):
    """δ(ε) = (e^{ε₀} - e^ε)/(1 + e^{ε₀}) of two outcomes whose odds are e^{ε₀} (Kairouz, Oh and Viswanath 2015)."""
    release, odds = DrawAfterTest(1e-7, 0.5, 1e-12, 1e-12), math.exp(2 * 0.5)
    expected = math.log(odds - delta * (1 + odds))
    assert spent([CountedRelease(release, 1, "model")], delta, Relation.REPLACE_ONE).epsilon == pytest.approx(
        max(expected, 0.0), abs=1e-5
    )


@pytest.mark.parametrize(("test", "exponent", "leak", "delta"), [
    (0.5, 0.3, 1e-3, 1e-2), (2.0, 0.1, 1e-9, 0.05), (0.1, 1.0, 0.02, 0.03), (1.0, 0.5, 1e-6, 0.2),
    (0.2, 0.1, 1e-9, 0.3),
])  # fmt: skip
def test_a_draw_behind_a_test_costs_what_its_worst_pair_of_laws_does(test, exponent, leak, delta):
    """Laplace noise on a grid beside the four outcomes of Kairouz, Oh and Viswanath (2015), in all their pairs."""
    edges = np.linspace(-40, 40 + test, 80_001)
    noisy = [np.diff(laplace.cdf(edges, at)) for at in (0.0, test)]
    odds = math.exp(2 * exponent) * (1 + leak * math.exp(-exponent))
    draws = [(leak, 0.0, (1 - leak) * a / (1 + odds), (1 - leak) * b / (1 + odds)) for a, b in ((odds, 1), (1, odds))]
    draws[1] = (0.0, leak, *draws[1][2:])
    p, q = (np.outer(one, draw).ravel() for one, draw in zip(noisy, draws, strict=True))
    exact = brentq(lambda e: np.maximum(p - math.exp(e) * q, 0).sum() - delta, -1, 20)
    found = verify._worst_draw(DrawAfterTest(test, exponent, 1e-9, leak), delta)
    assert found == pytest.approx(max(0.0, exact), rel=2e-3, abs=1e-6)


@pytest.mark.parametrize("rate", [0.01, 0.2])
@pytest.mark.parametrize("z", [0.5, 1.0, 4.0])
def test_the_grid_is_set_by_the_deviation_of_each_loss(z, rate):
    """Of ln p/q under p, by quadrature: a grid too coarse for it would make ε wrong, one too fine none at all."""
    x = np.linspace(-20, 20, 4001)

    def density(share, shift):
        both = [weight * np.exp(-((x - by) ** 2) / 2) for weight, by in ((share, shift), (1 - share, 0.0))]
        return sum(both) / math.sqrt(2 * math.pi)

    def deviation(p, q):
        loss, weight = np.log(p / q), p / p.sum()
        return math.sqrt(weight @ loss**2 - (weight @ loss) ** 2)

    sampled = deviation(density(rate, 1 / z), density(0, 0))
    replaced = deviation(density(rate, 0.5 / z), density(rate, -0.5 / z))
    rough = {Gaussian(z): deviation(density(1, 1 / z), density(0, 0)), Poisson(rate, Gaussian(z)): sampled,
             WithoutReplacement(1000, round(1000 * rate), Gaussian(z)): sampled,
             PoissonReplaced(rate, Gaussian(z)): replaced}  # fmt: skip
    for release, exact in rough.items():
        assert verify._deviation(release) == pytest.approx(exact, rel=0.1 if z >= 1 else 1.0), release
        assert verify._deviation(release) <= 1 / z + 0.5 / z**2
    steps = round(1 / rate)  # one row in one of so many batches
    assert verify._deviation(Allocated(steps, Gaussian(4.0))) == pytest.approx(math.sqrt(math.expm1(1 / 16) / steps))


def test_a_loss_too_wide_for_a_grid_has_none():
    for draws in (10, 999_999):
        deviation = math.sqrt(draws / 2) * math.log(1.1)
        assert verify._deviation(Sketch(draws, 0.1, 1e-9)) == pytest.approx(deviation)
    assert math.isinf(verify._deviation(Sketch(1_000_001, 0.1, 1e-9)))
    # Where a row's noise is next to nothing, a loss is at most what it is without sampling: μ + μ²/2.
    for release in (Poisson(0.2, Gaussian(0.1)), PoissonReplaced(0.2, Gaussian(0.1)), Allocated(5, Gaussian(0.1))):
        assert verify._deviation(release) == pytest.approx(60)
    # Where hardly any row is sampled it is far less: the loss of those that are, about μ²/2, once in 1/rate.
    for release in (Poisson(1e-12, Gaussian(1e-3)), PoissonReplaced(1e-12, Gaussian(1e-3))):
        assert 0.1 < verify._deviation(release) / (math.sqrt(1e-12) * 1e6 / 2) < 1, release
    assert verify._deviation(PureDP(0.7)) == 0.7
    assert math.isinf(verify._deviation(WithoutReplacement(10**9, 1, Gaussian(0.3))))


@pytest.mark.parametrize(
    ("relation", "releases"),
    [
        (REPLACE_ONE, [(Gaussian(1e-3), 1), (BoundedRange(1.0), 1)]),
        (REPLACE_ONE, [(Radial(2.2), 3_000_000)]),
        (ADD_REMOVE, [(Poisson(1e-12, Gaussian(1e-3)), 1)]),
        (REPLACE_ONE, [(PoissonReplaced(0.3, Gaussian(4e-3)), 1), (Laplace(0.3), 1)]),
        (REPLACE_ONE, [(PoissonReplaced(1.0, Gaussian(1e-3)), 1), (ZCDP(1e-8), 1)]),
        (REPLACE_ONE, [(Radial(1e-3), 1)]),
        (REPLACE_ONE, [(WithoutReplacement(10**8, 10**8 // 2, Laplace(1e-3)), 1)]),
    ],
)
def test_what_a_file_may_claim_is_composed_in_little_memory(relation, releases):
    """Each of these took 8 GB or more, or raised OverflowError: the file of a model or an archive could say so."""
    with open("/proc/self/statm") as now:
        most = int(now.read().split()[0]) * resource.getpagesize() + 3 * 2**30
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    try:
        assert epsilon(1e-6, relation, *releases) > 3
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def test_many_steps_keep_their_grid():
    """The bound on the grid is far from what is run: these are the ε of privacy-loss distributions, as before it."""
    for releases in ([(Poisson(0.5, Gaussian(1.0)), 1000)], [(Laplace(0.1), 50)]):
        whole = tuple(CountedRelease(release, count, "x") for release, count in releases)
        assert "PLD" in spent(whole, 1e-6, ADD_REMOVE).checked_by


@pytest.mark.parametrize(("steps", "columns", "delta", "epsilon"), [
    (1, 7, 2.5e-5, 0.3), (2, 2, 2.5e-5, 1.0), (2, 3, 2.5e-5, 0.3), (3, 2, 1e-6, 0.3), (4, 5, 1e-6, 1.0),
])  # fmt: skip
def test_few_laplace_releases_cost_no_more_than_their_noise_was_set_for(steps, columns, delta, epsilon):
    """Half of the mass of each is at its largest loss: rounded up to a grid, these were up to 1.001 ε."""
    kinds = ((Laplace(1.0), steps), (PureDP(columns), steps))
    each = 1 / Tight().noise_scale(kinds, (), epsilon, delta)
    released = [(Laplace(1 / each), steps), (Laplace(1 / (columns * each)), steps)]
    whole = tuple(CountedRelease(release, count, "x") for release, count in released)
    assert 0.99 * epsilon < spent(whole, delta, Relation.REPLACE_ONE).epsilon <= epsilon
