import numpy as np
import pytest
from scipy.stats import binom

from dpbench.auditing.claims import GaussianClaim, PureClaim
from dpbench.auditing.decide import _upper, decide


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
    alarms = sum(not decide(*gaussian(1.0, 400, seed), GaussianClaim(1.0), 0.2).passed for seed in range(400))
    assert alarms <= 0.2 * 400


def test_no_difference_is_no_loss():
    same = gaussian(1.0, 2000, 0)[0]
    assert decide(same, np.random.default_rng(1).permutation(same), PureClaim(0.1), 0.01).bound < 0.1


def test_a_score_with_one_value_proves_nothing():
    assert decide(np.zeros(100), np.zeros(100), GaussianClaim(0.1), 0.01).passed
