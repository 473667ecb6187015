"""Laplace releases and selections composed: eq. (2) of greedy_coordinate, and what the tight accounting gains."""

import math

import pytest
from scipy import stats

from dpbench.privacy import Budget, Relation, accounting
from dpbench.privacy.accounting.gaussian import gaussian_delta
from dpbench.privacy.ledger import CountedRelease, Gaussian, Laplace, PoissonReplaced, PureDP, scaled
from dpbench.privacy.verify import spent

DELTA = 1e-6


def budget(epsilon, accounting, delta=DELTA):
    return Budget(epsilon, delta, Relation.REPLACE_ONE, accounting)


def each(epsilon, accounting, T, selection=1.0):
    """ε' of T Laplace releases at ε' and T selections at selection·ε'."""
    return 1 / budget(epsilon, accounting).noise_scale(((Laplace(1.0), T), (PureDP(selection), T)))


def composed(epsilon0, T, selection=1.0):
    releases = [(Laplace(1 / epsilon0), T), *([(PureDP(selection * epsilon0), T)] if selection else [])]
    return accounting.get("tight").epsilon_of(tuple(releases), DELTA)


@pytest.mark.parametrize("T", [1, 20, 10**6])
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 50.0])
def test_equation_2_is_solved_at_both_ends(T, epsilon):
    e = each(epsilon, "advanced", T)
    assert math.sqrt(4 * T * math.log(1 / DELTA)) * e + 2 * T * e * math.expm1(e) == pytest.approx(epsilon, rel=1e-12)


@pytest.mark.parametrize("T", [1, 4, 20])
@pytest.mark.parametrize("selection", [1.0, 2.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_tight_uses_the_budget_up_and_never_loses_to_the_others(T, selection, epsilon):
    e = each(epsilon, "tight", T, selection)
    assert 0.995 * epsilon <= composed(e, T, selection) <= epsilon * (1 + 1e-9)
    assert e >= epsilon / (T * (1 + selection)) * (1 - 1e-12)  # basic composition
    if selection == 1:
        assert e > each(epsilon, "advanced", T)


def test_at_one_iteration_equation_2_wastes_most_of_epsilon():
    assert 0.2 < 2 * each(1.0, "advanced", 1) < 0.4


@pytest.mark.thorough_for("12-0.01")
@pytest.mark.parametrize(("T", "rate"), [(1, 0.01), (3, 0.03), (8, 0.1), (12, 0.01), (50, 0.03)])
def test_at_the_small_delta_of_many_rows_the_check_agrees(T, rate):
    """δ = n⁻² = 1.6e-12, where what dp_accounting's grid cuts off and rounds counts."""
    asked = Budget(1.0, 799_913**-2.0, Relation.REPLACE_ONE, "tight")
    plan = tuple((PoissonReplaced(rate, Gaussian(rate / math.sqrt(share))), T) for share in (0.7, 0.3))
    z = asked.noise_scale(plan)
    composition = tuple(CountedRelease(scaled(release, z), count, str(i)) for i, (release, count) in enumerate(plan))
    assert 0.99 < spent(composition, asked.delta, asked.relation).epsilon <= 1 + 1e-6


def exact_selections(epsilon0, count, epsilon):
    """δ(ε) of `count` randomised responses: the losses are (2B - count) ε₀, B binomial (Kairouz et al. 2015)."""
    p = math.exp(epsilon0) / (1 + math.exp(epsilon0))
    loss = [(2 * b - count) * epsilon0 for b in range(count + 1)]
    return sum(
        stats.binom.pmf(b, count, p) * -math.expm1(epsilon - loss[b]) for b in range(count + 1) if loss[b] > epsilon
    )


def test_composed_agrees_with_the_binomial_closed_form_of_selections():
    """Laplace noise at ε₀ is no worse than a selection, so T of each lies between T and 2T selections."""
    e0, T = 0.1, 20
    both = composed(e0, T)
    assert exact_selections(e0, T, both) < DELTA < exact_selections(e0, 2 * T, both)
    selections = spent((CountedRelease(PureDP(e0), T, ""),), DELTA, Relation.REPLACE_ONE).epsilon
    assert exact_selections(e0, T, selections) == pytest.approx(DELTA, rel=1e-2)
    assert max(selections, composed(e0, T, 0)) < both < 2 * T * e0


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("T", [1, 1_762_380])
def test_gaussian_multipliers_by_rdp_and_exactly(epsilon, T):
    exact, rdp = (budget(epsilon, a).noise_scale(((Gaussian(1.0), T),)) for a in ("tight", "rdp"))
    assert exact <= rdp <= 1.25 * exact
    assert gaussian_delta(math.sqrt(T) / exact, epsilon) == pytest.approx(DELTA, rel=1e-6)
