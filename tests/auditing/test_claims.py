import math

import numpy as np
import pytest
from scipy.stats import norm

from dpbench.auditing.claims import CurveClaim, GaussianClaim, PureClaim, claim, joint
from dpbench.privacy.ledger import Entry, Gaussian, Laplace, ObjectivePerturbation, Poisson, PureDP, WithoutReplacement
from dpbench.privacy.relation import Relation

ALPHA = np.linspace(0.01, 0.99, 50)


def of(*releases, relation=Relation.ADD_REMOVE, delta=0.01):
    return claim(tuple(Entry(r, c, "x") for r, c in releases), relation, delta)


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
    g, h = Entry(Gaussian(1.0), 1, "g"), Entry(Gaussian(2.0), 2, "h")
    assert set(joint([(g,), (g._replace(count=3), h)])) == {g._replace(count=3), h}
