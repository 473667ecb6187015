import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from dpbench.auditing.claims import (
    CurveClaim,
    ErrorRates,
    GaussianClaim,
    PureClaim,
    _upper,
    claim,
    decide,
    fisher,
    joint,
    least_runs,
    promise,
    reach,
)
from dpbench.privacy.ledger import (
    CountedRelease,
    Gaussian,
    Laplace,
    ObjectivePerturbation,
    Poisson,
    PureDP,
    Relation,
    WithoutReplacement,
)

ALPHA = np.linspace(0.01, 0.99, 50)


def of(*releases, relation=Relation.ADD_REMOVE, delta=0.01):
    return claim(tuple(CountedRelease(r, c, "x") for r, c in releases), relation, delta)


def test_gaussians_compose_to_one():
    told = of((Gaussian(2.0), 3), (Gaussian(1.0), 1))
    assert told.at(0.2) == pytest.approx(math.sqrt(3 / 4 + 1))
    np.testing.assert_allclose(told(ALPHA), norm.cdf(norm.isf(ALPHA) - math.sqrt(1.75)))


def test_a_sample_of_all_rows_is_no_sample():
    sampled = of((WithoutReplacement(5, 5, Gaussian(2.0)), 2), relation=Relation.REPLACE_ONE)
    np.testing.assert_allclose(sampled(ALPHA), of((Gaussian(2.0), 2))(ALPHA))


def test_pure_ones_add_up():
    told = of((Laplace(2.0), 2), (PureDP(0.25), 1), delta=0.0)
    assert told.at(0.3) == pytest.approx(1.25)
    assert told.unit == "ε"


def test_randomised_response_meets_its_claim_exactly():
    p = math.exp(1.0) / (1 + math.exp(1.0))
    told = PureClaim(1.0)
    assert told(np.array(1 - p)) == pytest.approx(1 - p)
    assert told.bound(1 - p, 1 - p) == pytest.approx(1.0)


def test_the_linear_term_is_a_gaussian_release_on_the_audits_neighbours():
    assert of((ObjectivePerturbation(4.0, 0.1, 1e-3), 1)).at(0.1) == pytest.approx(0.25)


def exact_mixture(rate, shift, alpha):
    """Trade-off of N(0, 1) (false positives) against (1-q)N(0, 1) + qN(shift, 1): thresholds on x."""
    x = norm.isf(alpha)
    return (1 - rate) * norm.cdf(x) + rate * norm.cdf(x - shift)


@pytest.mark.parametrize("release", [Poisson(0.25, Gaussian(0.5)), WithoutReplacement(8, 2, Gaussian(0.5))])
def test_a_sampled_gaussian_lies_just_above_its_claim(release):
    relation = Relation.ADD_REMOVE if isinstance(release, Poisson) else Relation.REPLACE_ONE
    told = of((release, 1), relation=relation)
    gap = exact_mixture(0.25, 2.0, ALPHA) - told(ALPHA)
    assert (gap > -1e-3).all()
    assert np.median(gap) < 0.1


def test_a_mixed_ledger_claims_no_more_privacy_than_its_parts():
    whole = of((Gaussian(2.0), 1), (PureDP(0.5), 1))
    assert isinstance(whole, CurveClaim)
    assert (whole(ALPHA) <= GaussianClaim(0.5)(ALPHA) + 1e-9).all()


def test_joint_takes_the_most_of_each():
    g, h = CountedRelease(Gaussian(1.0), 1, "g"), CountedRelease(Gaussian(2.0), 2, "h")
    assert set(joint([(g,), (g._replace(count=3), h)])) == {g._replace(count=3), h}


def test_clopper_pearson_is_the_rate_at_which_so_few_are_seen_with_that_probability():
    for count, n in ((0, 50), (3, 50), (49, 50)):
        assert binom.cdf(count, n, _upper(np.array(count), n, 0.005)) == pytest.approx(0.005)
    assert _upper(np.array(50), 50, 0.005) == 1.0


def gaussian(mu, n, seed):
    generator = np.random.default_rng(seed)
    return mu * generator.standard_normal(n) + mu**2 / 2, mu * generator.standard_normal(n) - mu**2 / 2


@pytest.mark.parametrize("mu", [0.3, 1.0, 3.0])
def test_the_bound_nears_the_truth_from_below(mu):
    verdict = decide(*gaussian(mu, 100_000, 0), GaussianClaim(mu), 0.01)
    assert verdict.passed
    assert 0.8 * mu < verdict.bound < mu
    assert not decide(*gaussian(2 * mu, 100_000, 0), GaussianClaim(mu), 0.01).passed


def test_false_alarms_are_rarer_than_the_level():
    alarms = sum(not decide(*gaussian(1.0, 400, seed), GaussianClaim(1.0), 0.2).passed for seed in range(200))
    assert alarms <= 0.2 * 200


def test_no_difference_is_no_loss():
    same = gaussian(1.0, 2000, 0)[0]
    assert decide(same, np.random.default_rng(1).permutation(same), PureClaim(0.1), 0.01).bound < 0.1


def test_a_score_with_one_value_proves_nothing():
    assert decide(np.zeros(100), np.zeros(100), GaussianClaim(0.1), 0.01).passed


def test_fishers_rule_is_the_law_of_a_product_of_two_uniform_numbers():
    products = np.prod(np.random.default_rng(0).random((2, 200_000)), axis=0)
    for t in (0.3, 0.01):
        assert (products <= t).mean() == pytest.approx(fisher(t), rel=0.03)
    assert fisher(1.0) == 1.0


@pytest.mark.parametrize("trade_off", [GaussianClaim(1.0), PureClaim(1.2), PureClaim(0.8, 0.1)])
def test_few_errors_are_as_improbable_as_the_most_probable_rates_make_them(trade_off):
    seen = ErrorRates(30, 400, 150, 300)
    alpha = np.linspace(0, 1, 20_001)
    worst = (binom.cdf(30, 400, alpha) * binom.cdf(150, 300, np.clip(trade_off(alpha), 0, 1))).max()
    found = seen.improbable(trade_off)[0]
    assert fisher(worst) <= found <= 1.06 * fisher(worst)


def test_a_test_that_never_errs_can_be_refuted_with_the_least_runs_and_not_with_fewer():
    told = PureClaim(2.0)
    judged = least_runs(told, 0.01) * 3 // 8
    assert ErrorRates(0, judged, 0, judged).improbable(told)[0] <= 0.01
    assert ErrorRates(0, int(0.9 * judged), 0, int(0.9 * judged)).improbable(told)[0] > 0.01


def test_the_least_runs_for_a_claim_reach_it_and_fewer_do_not():
    runs = least_runs(PureClaim(2.0), 0.01)
    assert reach(runs, 0.0, 0.01) >= 2.0 - 1e-3
    assert reach(runs - 2, 0.0, 0.01) < 2.0


def test_scores_that_tell_all_worlds_apart_promise_no_more_than_their_number_allows():
    """Two errors are added to none in six, and six plus four are the runs: a rate of 2/10 either way."""
    assert promise(np.arange(6.0) + 9, np.arange(6.0), PureClaim(0.5)) == pytest.approx(math.log(0.8 / 0.2) - 0.5)


def test_what_a_label_claims_is_of_its_own_releases_each_kind_by_its_own_loss():
    from dpbench.auditing.worlds import _claimed
    from dpbench.privacy.ledger import Allocated, DrawAfterTest, Radial

    releases = [
        (Gaussian(2.0), 3, 3 / 4, 0.0), (Laplace(4.0), 2, 0.0, 1 / 2), (Radial(5.0), 1, 0.0, 1 / 5),
        (PureDP(0.3), 2, 0.0, 0.6), (DrawAfterTest(0.5, 0.25, 1e-6, 1e-3), 2, 0.0, 2 * 1.001),
        (Allocated(4, Gaussian(2.0)), 3, 3.0, 0.0),
    ]  # fmt: skip
    for release, count, squares, pure in releases:
        composition = (CountedRelease(release, count, "mine"), CountedRelease(release, 7, "another"))
        assert _claimed(composition, "mine") == pytest.approx((squares, pure))


def laplace(epsilon, n, seed):
    """Scores of n runs in either world of a Laplace release of that ε."""
    generator = np.random.default_rng(seed)
    first, second = generator.laplace(size=n) + epsilon, generator.laplace(size=n)
    return [np.abs(one) - np.abs(one - epsilon) for one in (first, second)]


VERDICTS = {  # of 4,000 runs in either world: bound, false positives, false negatives
    "Gaussian": (gaussian(1.0, 4000, 0), GaussianClaim(1.0), (0.872326, 0.525333, 0.151667)),
    "pure": (laplace(1.0, 4000, 0), PureClaim(1.0), (0.832081, 0.392333, 0.241)),
    "with delta": (laplace(1.0, 4000, 0), PureClaim(1.0, 0.01), (0.815296, 0.392333, 0.241)),
    "a curve": (gaussian(0.5, 4000, 0), of((Gaussian(2.0), 1), (PureDP(0.5), 1)), (0.399590, 0.783667, 0.0986667)),
}


@pytest.mark.parametrize("case", VERDICTS)
def test_a_verdict_is_what_it_was(case):
    """Bounds are quoted; where a change of the test moves them, the changelog says so under "Numbers changed"."""
    scores, told, expected = VERDICTS[case]
    done = decide(*scores, told, 0.01)
    assert (done.bound, done.false_positives, done.false_negatives) == pytest.approx(expected, rel=1e-4)
    assert (done.runs, done.unit, done.passed) == (6000, told.unit, True)


@pytest.mark.thorough
def test_the_runs_that_a_claim_needs_and_what_runs_can_show_are_what_they_were():
    needed = [
        least_runs(PureClaim(*claimed), 0.01, every)
        for *claimed, every in ((1.0, 0.0, 4), (2.0, 0.0, 2), (0.5, 0.1, 4))
    ]
    assert needed == [30, 108, 28]
    assert [reach(runs, 0.0, 0.01, every=every) for runs, every in ((400, 4), (4000, 2))] == pytest.approx(
        [3.77808, 5.69839], rel=1e-3)  # fmt: skip
