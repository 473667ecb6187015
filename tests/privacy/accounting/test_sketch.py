"""What Gaussian sketches of the rows cost: χ² numbers, by a formula that neither route has, and by drawing sketches."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import chi2

from dpbench.errors import PrivacyError, UserError
from dpbench.privacy.accounting import loss_distribution
from dpbench.privacy.ledger import CountedRelease, Gaussian, Relation, Sketch, plain, release_of
from dpbench.privacy.verify import spent

DELTA = 1e-6


def by_hand(draws, ratio, delta):
    """ε of one sketch alone: the larger of both directions' hockey-stick divergences, χ² beyond where the loss is ε."""

    def divergence(epsilon):
        constant, slope = draws / 2 * math.log1p(ratio), ratio / (1 + ratio) / 2
        above, below = (constant + epsilon) / slope, max((constant - epsilon) / slope, 0.0)
        law, wide = chi2(draws), chi2(draws, scale=1 + ratio)
        return max(wide.sf(above) - math.exp(epsilon) * law.sf(above),
                   law.cdf(below) - math.exp(epsilon) * wide.cdf(below))  # fmt: skip

    return brentq(lambda epsilon: divergence(epsilon) - delta, 1e-9, 50)


def both(*releases):
    first = loss_distribution.epsilon_of(releases, DELTA)
    composition = tuple(CountedRelease(release, count, "sketch") for release, count in releases)
    return first, spent(composition, DELTA, Relation.ADD_REMOVE).epsilon


@pytest.mark.parametrize(("draws", "ratio"), [(30, 0.2), (450, 0.05), (450, 0.0025), (3000, 0.003)])
def test_a_sketch_costs_what_its_chi_square_numbers_do(draws, ratio):
    want = by_hand(draws, ratio, DELTA)
    for found in both((Sketch(draws, ratio, 1e-15), 1)):
        assert found == pytest.approx(want, rel=2e-3)
        assert found > want * (1 - 1e-4)


def test_sketches_compose_as_one_of_all_draws_and_dominate_a_gaussian():
    once, thrice = both((Sketch(900, 0.01, 1e-15), 1)), both((Sketch(300, 0.01, 1e-15), 3))
    assert once == pytest.approx(thrice, rel=1e-3)
    gaussian = both((Gaussian(1 / (0.01 * math.sqrt(450))), 1))  # of the same variance of the loss
    assert once[0] > gaussian[0]


def test_a_failure_is_taken_off_delta():
    """Where it is all of δ there is no ε; where it is half, ε is that of the other half."""
    half = both((Sketch(450, 0.01, DELTA / 2), 1))
    assert half == pytest.approx([by_hand(450, 0.01, DELTA / 2)] * 2, rel=2e-3)
    first, second = both((Sketch(450, 0.01, 2 * DELTA), 1))
    assert first is None
    assert math.isinf(second)


def test_a_row_moves_a_drawn_sketch_as_is_accounted():
    """S of N(0, A), with the row xxᵀ more and without, for any x: by the log-ratio of whole densities."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    A, x = root @ root.T + 3 * np.eye(4), rng.normal(size=4)
    ratio, k, runs = x @ np.linalg.solve(A, x), 60, 20_000
    B = A + np.outer(x, x)
    draws = rng.standard_normal((runs, k, 4)) @ np.linalg.cholesky(B).T
    change = np.linalg.inv(A) - np.linalg.inv(B)
    loss = np.einsum("rki,ij,rkj->r", draws, change, draws) / 2 - k / 2 * math.log(np.linalg.det(B) / np.linalg.det(A))
    for at in (0.0, 1.0, 2.0):
        gain = np.maximum(0.0, 1 - np.exp(at - loss))
        constant, slope = k / 2 * math.log1p(ratio), ratio / (1 + ratio) / 2
        want = chi2(k, scale=1 + ratio).sf((constant + at) / slope) - math.exp(at) * chi2(k).sf((constant + at) / slope)
        assert gain.mean() == pytest.approx(want, abs=4 * gain.std() / math.sqrt(runs))


def test_what_a_file_may_claim_is_composed_in_bounded_memory():
    """A sketch of 10⁷ draws that tells rows apart has no ε, without a grid of a billion points."""
    first, second = both((Sketch(10**7, 1.0, 1e-12), 1))
    assert first is None
    assert math.isinf(second)
    for name, value in (("ratio", 1.5), ("draws", 10**8)):
        with pytest.raises(UserError, match=f"{name} is not .* within its bounds"):
            release_of(plain(Sketch(450, 0.01, 1e-9)) | {name: value})


def test_a_replaced_row_is_refused():
    with pytest.raises(PrivacyError, match="add-remove neighbours only"):
        spent((CountedRelease(Sketch(60, 0.1, 1e-9), 1, "sketch"),), DELTA, Relation.REPLACE_ONE)
