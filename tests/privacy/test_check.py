"""A run's profile and trade-off: closed forms for Gaussians, a second route for what is composed."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from dpbench.privacy.accounting.gaussian import gaussian_epsilon
from dpbench.privacy.check import DELTAS, _disagreement, at_most, mu, of_points, profile, trade_off
from dpbench.privacy.disclosure import Disclosure, undeclared
from dpbench.privacy.ledger import (
    CountedRelease,
    Gaussian,
    Laplace,
    LastIterate,
    ObjectivePerturbation,
    PureDP,
    Relation,
    WithoutReplacement,
)

ALPHAS = np.array([0.0, 1e-3, 0.05, 0.3, 0.7, 1.0])


def test_one_gaussian_is_its_closed_form():
    one = (CountedRelease(Gaussian(2.0), 1, "g"),)
    deltas = [1e-6, 1e-3, 0.1]
    for epsilon, delta in zip(profile(one, Relation.ADD_REMOVE, deltas), deltas, strict=True):
        exact = norm.cdf(0.25 - 2 * epsilon) - math.exp(epsilon) * norm.cdf(-0.25 - 2 * epsilon)  # μ = 1/2
        assert exact == pytest.approx(delta, rel=1e-4) or (epsilon == 0 and exact <= delta)
    expected = norm.cdf(norm.ppf(1 - ALPHAS) - 0.5)
    np.testing.assert_allclose(trade_off(one, Relation.ADD_REMOVE, ALPHAS), expected, atol=1e-12)


def test_gaussians_compose_to_one_and_a_last_iterate_is_one():
    assert mu((CountedRelease(Gaussian(2.0), 4, "a"), CountedRelease(Gaussian(1.0), 3, "b"))) == pytest.approx(2.0)
    assert mu((CountedRelease(LastIterate(1.0, 1, 0.5), 1, "w"),)) == pytest.approx(1.0)
    assert mu((CountedRelease(Gaussian(2.0), 4, "a"), CountedRelease(Laplace(1.0), 1, "b"))) is None
    assert mu(()) is None


def test_a_pure_release_has_its_two_lines():
    lines = np.maximum(0, np.maximum(1 - math.e * ALPHAS, (1 - ALPHAS) / math.e))
    found = trade_off((CountedRelease(PureDP(1.0), 1, "pick"),), Relation.REPLACE_ONE, ALPHAS)
    np.testing.assert_allclose(found, lines, atol=2e-3)
    assert profile((CountedRelease(PureDP(1.0), 1, "pick"),), Relation.REPLACE_ONE, [0.0])[0] == pytest.approx(1.0)


def test_a_composition_by_listing_its_outcomes():
    """Selections as randomised response: f by Neyman and Pearson over their 2^3 outcomes, in order of likelihood."""
    three = (CountedRelease(PureDP(0.5), 3, "pick"),)
    p = 1 / (1 + math.exp(-0.5))
    counts = np.arange(4)
    weights = np.array([math.comb(3, k) for k in counts])
    P, Q = weights * p**counts * (1 - p) ** (3 - counts), weights * (1 - p) ** counts * p ** (3 - counts)
    alphas = np.append(0.0, np.cumsum(Q[::-1]))  # reject for the counts that P makes most likely
    betas = np.append(1.0, 1 - np.cumsum(P[::-1]))
    found = trade_off(three, Relation.REPLACE_ONE, np.clip(alphas, 0, 1))
    assert (found <= betas + 1e-3).all()  # never above what a test attains
    np.testing.assert_allclose(found, betas, atol=0.01)


def test_a_sample_by_its_own_two_densities():
    """One release on m of n rows, replace-one: f is at most what the threshold test of one direction attains."""
    q, z = 0.1, 1.0
    one = (CountedRelease(WithoutReplacement(100, 10, Gaussian(z)), 1, "g"),)
    thresholds = np.linspace(-2, 4, 13)
    alphas = norm.sf(thresholds / z)
    betas = (1 - q) * norm.cdf(thresholds / z) + q * norm.cdf((thresholds - 1) / z)
    found = trade_off(one, Relation.REPLACE_ONE, alphas)
    assert (found <= betas + 1e-3).all()
    assert (found >= 1 - alphas - q).all()  # sampling at rate q hides all but q
    assert (np.diff(profile(one, Relation.REPLACE_ONE, np.geomspace(1e-8, 0.1, 9))) <= 0).all()


def test_a_fit_has_its_profile():
    import dpbench

    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (300, 4))
    fit = dpbench.fit(X, np.sign(X[:, 0]), algorithm="dp-gd", epsilon=1.0, T=5, accounting="tight", seed=0)
    assert fit.profile([fit.released.delta])[0] == pytest.approx(fit.released.epsilon_planned)
    assert fit.trade_off([0.0, 1.0]).tolist() == [1.0, 0.0]


ONE_PROOF = (CountedRelease(Gaussian(2.0), 1, "g"),)
TWO_PROOFS = (*ONE_PROOF, CountedRelease(ObjectivePerturbation(2.0, 0.1, 1e-7), 1, "o"))


@pytest.mark.parametrize(
    ("composition", "second", "least", "accounted", "slack", "said"),
    [
        (ONE_PROOF, 0.981, 1.0, None, 0.0, ""),  # two grids may be 2 % apart
        (ONE_PROOF, 0.979, 1.0, None, 0.0, "1 by our own"),
        (ONE_PROOF, 0.979, 1.0, None, 0.01, ""),
        (TWO_PROOFS, 0.61, 1.0, None, 0.0, ""),  # two theorems 40 %
        (TWO_PROOFS, 0.59, 1.0, None, 0.0, "1 by our own"),
        (ONE_PROOF, 1.49, 1.0, 1.0, 0.0, ""),  # Rényi bounds are half as much again
        (ONE_PROOF, 1.51, 1.0, 2.0, 0.0, "1 by our own"),
        (ONE_PROOF, 1.51, 1.52, 1.0, 0.0, "1 by the accounting that set the noise"),
        (ONE_PROOF, 1.51, None, 1.0, 0.0, "1 by the accounting that set the noise"),
        (ONE_PROOF, 1.51, None, 1.0, 0.02, ""),
        (ONE_PROOF, 9.0, None, None, 0.0, ""),
    ],
)
def test_two_routes_may_be_as_far_apart_as_their_errors_explain_and_no_further(
    composition, second, least, accounted, slack, said
):
    """Beyond it one of the two is wrong: such a run has no guarantee, and the line says which other ε was computed."""
    assert _disagreement(composition, second, least, accounted, slack) == said


def test_an_epsilon_is_kept_up_to_rounding_alone():
    assert [at_most(one, 1.0) for one in (0.0, 1.0, 1 + 9e-7, 1 + 2e-6, math.inf, math.nan)] == [True] * 3 + [False] * 3


@pytest.mark.parametrize(
    ("formula", "twice"),
    [("L/n", "2·L/n"), ("(a + b)/n", "2·(a + b)/n"), ("a + b", "2·(a + b)"), ("a/(n - b) - c", "2·(a/(n - b) - c)")],
)
def test_replace_one_moves_a_release_by_twice_what_add_remove_does(formula, twice):
    assert Disclosure("g", "the gradient", add_remove=formula).replace_one == twice
    assert Disclosure("g", "the gradient", add_remove=formula, replace_one="√2·L").replace_one == "√2·L"


def test_labels_that_were_never_declared_are_named_in_order():
    released = tuple(CountedRelease(Gaussian(2.0), 1, label) for label in ("b", "known", "a", "b"))
    said = undeclared(released, ["known", "other"])
    assert said == "a, b: released, but never declared; add a Disclosure for it to the algorithm's `discloses`"
    assert undeclared(released, ["a", "b", "known"]) == ""


def test_pairs_of_epsilon_and_delta_say_together_what_the_better_of_them_says():
    """f(α) ≥ max(0, 1 - δ - e^ε α, e^{-ε}(1 - δ - α)): by hand at ln 2 and ln 4."""
    pairs, alphas = (np.log([2.0, 4.0]), np.array([0.1, 0.0])), np.array([0.0, 0.1, 0.5, 0.95, 1.0])
    np.testing.assert_allclose(of_points(*pairs, alphas), [1.0, 0.7, 0.2, 0.0125, 0.0])


@pytest.mark.parametrize(("mu", "most"), [(0.5, 1.017), (1.0, 1.042), (2.0, 1.075)])
def test_the_points_of_a_profile_lie_close_enough_for_its_trade_off(mu, most):
    """A Gaussian's 1 - f(α), the power of the best test, from α = 1e-9 on: from the points at most 2 to 8 % larger."""
    alphas, deltas = np.geomspace(1e-9, 0.5, 40), np.array(DELTAS[1:])
    epsilons = np.array([gaussian_epsilon(mu, delta) for delta in deltas])
    ratio = (1 - of_points(epsilons, deltas, alphas)) / norm.sf(norm.isf(alphas) - mu)
    assert 1 - 1e-9 <= ratio.min() <= ratio.max() <= most
    assert DELTAS[0] == 0
