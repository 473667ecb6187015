"""A budget: what it accepts, and the noise it turns into."""

import math

import pytest

from dpbench.errors import PrivacyError, UserError
from dpbench.privacy import Budget, Relation
from dpbench.privacy import accounting as accountings
from dpbench.privacy.accounting.gaussian import gaussian_epsilon
from dpbench.privacy.ledger import (
    ZCDP,
    CountedRelease,
    Gaussian,
    Laplace,
    ObjectivePerturbation,
    Poisson,
    PureDP,
    WithoutReplacement,
)
from dpbench.privacy.verify import spent

ADD_REMOVE, REPLACE_ONE = Relation.ADD_REMOVE, Relation.REPLACE_ONE


def poisson(rate, steps):
    return ((Poisson(rate, Gaussian(1.0)), steps),)


def without_replacement(n, m, steps):
    return ((WithoutReplacement(n, m, Gaussian(1.0)), steps),)


@pytest.mark.parametrize("accounting", ["text", "bs16", "cks20", "standard"])
def test_rho_is_that_of_the_named_conversion(accounting):
    assert Budget(1.0, 1e-6, ADD_REMOVE, accounting).rho == accountings.get(accounting).rho(1.0, 1e-6)


def test_tight_rho_is_the_exact_gaussian_and_the_largest():
    budget = Budget(1.0, 1e-6, ADD_REMOVE, "tight")
    assert gaussian_epsilon(math.sqrt(2 * budget.rho), 1e-6) == pytest.approx(1.0, rel=1e-10)
    assert budget.rho > max(accountings.get(name).rho(1.0, 1e-6) for name in ("text", "bs16", "cks20", "standard"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0.0, 1e-6, ADD_REMOVE, "text"), "epsilon must be a positive number"),
        ((-1.0, 1e-6, ADD_REMOVE, "text"), "epsilon must be a positive number"),
        ((math.inf, 1e-6, ADD_REMOVE, "text"), "epsilon must be a positive number"),
        ((math.nan, 1e-6, ADD_REMOVE, "text"), "epsilon must be a positive number"),
        ((1.0, 1.0, ADD_REMOVE, "text"), "delta must be in [0, 1)"),
        ((1.0, -1e-9, ADD_REMOVE, "text"), "delta must be in [0, 1)"),
        ((1.0, math.nan, ADD_REMOVE, "text"), "delta must be in [0, 1)"),
        ((1.0, 0.0, ADD_REMOVE, "tight"), "needs delta > 0"),
        ((1.0, 1e-6, ADD_REMOVE, "pure"), "needs delta = 0"),
        ((1.0, 1e-6, "add-remove", "text"), "relation must be a Relation"),
        ((1.0, 1e-6, ADD_REMOVE, "paper"), "unknown accounting"),
        ((1.0, 1e-6, ADD_REMOVE, "tigt"), "did you mean tight"),
    ],
)
def test_bad_budgets_are_one_clear_line(arguments, words):
    with pytest.raises(UserError) as caught:
        Budget(*arguments)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_pure_dp_has_neither_rho_nor_gaussian_noise():
    pure = Budget(1.0, 0.0, ADD_REMOVE, "pure")
    with pytest.raises(PrivacyError):
        _ = pure.rho
    with pytest.raises(PrivacyError):
        pure.noise_scale(poisson(0.1, 10))


def test_samplers_relations():
    with pytest.raises(PrivacyError, match="add-remove neighbours only"):
        Budget(1.0, 1e-6, REPLACE_ONE, "text").noise_scale(poisson(0.1, 10))
    with pytest.raises(PrivacyError, match="replace-one neighbours only"):
        Budget(1.0, 1e-6, ADD_REMOVE, "text").noise_scale(without_replacement(100, 10, 10))


def test_a_share_is_of_epsilon_and_of_delta():
    budget = Budget(2.0, 1e-6, ADD_REMOVE, "text")
    quarter = Budget(0.5, 0.25e-6, ADD_REMOVE, "text")
    assert budget.noise_scale(poisson(0.1, 10), 0.25) == quarter.noise_scale(poisson(0.1, 10))
    with pytest.raises(PrivacyError, match="share must be in"):
        budget.noise_scale(poisson(0.1, 10), 0.0)


@pytest.mark.parametrize(("epsilon", "rate", "T"), [(0.01, 0.02, 30_000), (1.0, 0.02, 100), (3.0, 0.05, 10)])
def test_tight_poisson_noise_wastes_nothing(epsilon, rate, T):
    z = Budget(epsilon, 1e-9, ADD_REMOVE, "tight").noise_scale(poisson(rate, T))
    got = spent((CountedRelease(Poisson(rate, Gaussian(z)), T, ""),), 1e-9, ADD_REMOVE).epsilon
    assert 0.999 * epsilon < got <= epsilon
    assert z < Budget(epsilon, 1e-9, ADD_REMOVE, "text").noise_scale(poisson(rate, T))


def test_epsilon_of_zcdp_modes_sums_rho():
    budget = Budget(1.0, 1e-6, REPLACE_ONE, "text")
    composition = (
        CountedRelease(Gaussian(10.0), 4, "g"),
        CountedRelease(PureDP(0.1), 2, "ls"),
        CountedRelease(ZCDP(0.003), 1, "z"),
    )
    assert budget.epsilon_of(composition) == pytest.approx(
        accountings.get("text").epsilon(0.02 + 0.01 + 0.003, 1e-6), rel=1e-12
    )


def test_epsilon_of_tight_and_pure():
    gaussians = (CountedRelease(Gaussian(10.0), 4, "g"),)
    tight, pure = Budget(1.0, 1e-6, ADD_REMOVE, "tight"), Budget(1.0, 0.0, ADD_REMOVE, "pure")
    assert tight.epsilon_of(gaussians) == pytest.approx(gaussian_epsilon(0.2, 1e-6), rel=1e-10)
    assert pure.epsilon_of(
        (CountedRelease(Laplace(10.0), 4, "g"), CountedRelease(PureDP(0.1), 2, "s"))
    ) == pytest.approx(0.6)
    assert pure.epsilon_of(gaussians) is None


def test_epsilon_of_is_silent_where_the_mode_has_no_theorem():
    sampled = (CountedRelease(Poisson(0.1, Gaussian(2.0)), 4, "g"),)
    for accounting in ("advanced", "basic"):
        assert Budget(1.0, 1e-6, ADD_REMOVE, accounting).epsilon_of(sampled) is None
    objective = (CountedRelease(ObjectivePerturbation(5.0, 0.1, 1e-7), 1, "b"),)
    for accounting in ("text", "rdp", "advanced"):
        assert Budget(1.0, 1e-6, ADD_REMOVE, accounting).epsilon_of(objective) is None


@pytest.mark.parametrize("accounting", ["text", "tight", "rdp"])
def test_a_plan_after_other_releases_fills_the_budget(accounting):
    budget = Budget(1.0, 1e-6, ADD_REMOVE, accounting)
    before = ((Gaussian(10.0), 2),)
    z = budget.noise_scale(((Gaussian(1.0), 3), (Gaussian(2.0), 1)), after=before)
    together = ((Gaussian(z), 3), (Gaussian(2 * z), 1), *before)
    assert budget.epsilon_of(tuple(CountedRelease(*one, "") for one in together)) == pytest.approx(1.0, rel=1e-6)
    with pytest.raises((PrivacyError, UserError)):
        budget.noise_scale(((Gaussian(1.0), 3),), after=((Gaussian(1.0), 2),))
