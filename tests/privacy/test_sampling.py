"""Samples by their law; one release per draw, accounted as it was drawn."""

import math

import numpy as np
import pytest
from scipy import stats

from dpbench.errors import PrivacyError
from dpbench.privacy import Budget, Mechanisms, Relation
from dpbench.privacy.ledger import CountedRelease, Gaussian, Laplace, Poisson, WithoutReplacement
from dpbench.privacy.noise import LAPLACE
from tests.privacy.laws import Z, follows

BUDGETS = {relation: Budget(1.0, 1e-6, relation, "text") for relation in Relation}


def batch(relation, k=1):
    return Mechanisms([f"job {i}" for i in range(k)], BUDGETS[relation])


def draws(sampler, times):
    """Indicators (times, n) of replicate 0's samples."""
    out = np.zeros((times, sampler.n), dtype=bool)
    for row in out:
        (sample,) = sampler.draw()
        assert (np.diff(sample) > 0).all()
        row[sample] = True
    return out


def test_poisson_samples_are_independent_coins():
    n, rate, times = 40, 0.3, 20_000
    drawn = draws(batch(Relation.ADD_REMOVE).poisson(n, rate, "b"), times)
    by_row = drawn.mean(axis=0)
    assert np.abs(by_row - rate).max() < Z * math.sqrt(rate * (1 - rate) / times)
    # Independent rows give a binomial batch size, and uncorrelated pairs.
    sizes = drawn.sum(axis=1)
    expected = times * stats.binom(n, rate).pmf(np.arange(n + 1))
    common = expected > 10
    observed = np.bincount(sizes, minlength=n + 1)
    statistic = ((observed - expected)[common] ** 2 / expected[common]).sum()
    assert stats.chi2(common.sum() - 1).sf(statistic) > 1e-5
    correlations = np.corrcoef(drawn.T)[np.triu_indices(n, 1)]
    assert np.abs(correlations).max() < 5.2 / math.sqrt(times)


def test_poisson_samples_may_be_empty_or_everything():
    few = batch(Relation.ADD_REMOVE).poisson(3, 0.01, "b")
    assert any(len(few.draw()[0]) == 0 for _ in range(20))
    assert len(batch(Relation.ADD_REMOVE).poisson(30, 1.0, "b").draw()[0]) == 30


def test_samples_without_replacement_are_uniform_subsets():
    n, m, times = 6, 2, 15_000
    drawn = draws(batch(Relation.REPLACE_ONE).without_replacement(n, m, "b"), times)
    assert (drawn.sum(axis=1) == m).all()
    subsets = drawn @ (1 << np.arange(n))
    _, counts = np.unique(subsets, return_counts=True)
    assert len(counts) == math.comb(n, m)
    assert stats.chisquare(counts).pvalue > 1e-5


def test_large_subsets_are_sorted_and_without_repetition():
    (sample,) = batch(Relation.REPLACE_ONE).without_replacement(50_000, 700, "b").draw()
    assert len(sample) == 700
    assert (np.diff(sample) > 0).all()
    assert sample[0] >= 0
    assert sample[-1] < 50_000


def test_replicates_draw_apart_and_as_if_alone():
    together = batch(Relation.REPLACE_ONE, k=3).without_replacement(1000, 20, "b").draw()
    assert not np.array_equal(together[0], together[1])
    alone = Mechanisms(["job 2"], BUDGETS[Relation.REPLACE_ONE]).without_replacement(1000, 20, "b").draw()
    np.testing.assert_array_equal(together[2], alone[0])


def test_sampled_gaussian_noise_and_its_event():
    m = batch(Relation.ADD_REMOVE, k=2)
    sampler = m.poisson(100, 0.1, "gradient")
    sampler.draw()
    noise = sampler.gaussian(np.zeros((2, 20_000)), sensitivity=0.5, noise_multiplier=3.0)
    assert follows(noise[0], stats.norm(0, 1.5))
    assert not follows(noise[0] / 2, stats.norm(0, 1.5))
    assert m.ledger.of(0) == (CountedRelease(Poisson(0.1, Gaussian(3.0)), 1, "gradient"),)


def test_sampled_laplace_noise_and_its_event():
    m = batch(Relation.REPLACE_ONE, k=2)
    sampler = m.without_replacement(1000, 10, "gradient")
    sampler.draw()
    noise = sampler.laplace(np.zeros((2, 20_000)), sensitivity=0.5, epsilon=0.25, label="g")
    assert follows(noise[1], stats.laplace(0, 2.0))
    assert not follows(noise[1] / 2, stats.laplace(0, 2.0))
    assert m.ledger.of(1) == (CountedRelease(WithoutReplacement(1000, 10, Laplace(4.0)), 1, "g"),)


def test_one_draw_admits_exactly_one_release():
    m = batch(Relation.REPLACE_ONE)
    sampler = m.without_replacement(10, 2, "gradient")
    release = {"sensitivity": 1.0, "noise_multiplier": 1.0}
    with pytest.raises(PrivacyError, match=r"fresh draw\(\)"):
        sampler.gaussian(np.zeros(1), **release)
    sampler.draw()
    sampler.gaussian(np.zeros(1), **release)
    with pytest.raises(PrivacyError, match=r"fresh draw\(\)"):
        sampler.gaussian(np.zeros(1), **release)
    with pytest.raises(PrivacyError, match=r"fresh draw\(\)"):
        sampler.laplace(np.zeros(1), sensitivity=1.0, epsilon=1.0)
    sampler.draw()
    sampler.draw()  # a sample nothing was released from costs nothing
    sampler.laplace(np.zeros(1), sensitivity=1.0, epsilon=1.0)
    assert sum(entry.count for entry in m.ledger.of(0)) == 2


def test_two_samplers_do_not_share_their_draws():
    m = batch(Relation.ADD_REMOVE)
    gradient, hessian = m.poisson(10, 0.5, "g"), m.poisson(10, 0.5, "H")
    gradient.draw()
    with pytest.raises(PrivacyError, match="H: a sampled release"):
        hessian.gaussian(np.zeros(1), sensitivity=1.0, noise_multiplier=1.0)


def test_a_sampler_of_more_rows_than_there_are_is_refused_before_it_draws():
    with pytest.raises(PrivacyError, match=r"m must be in 1\.\.10"):
        batch(Relation.REPLACE_ONE).without_replacement(10, 11, "b")
    with pytest.raises(PrivacyError, match="rate must be in"):
        batch(Relation.ADD_REMOVE).poisson(10, 1.1, "b")


def test_a_sampler_refuses_the_relation_its_theorem_does_not_cover():
    with pytest.raises(PrivacyError, match="add-remove neighbours only"):
        batch(Relation.REPLACE_ONE).poisson(10, 0.1, "b")
    with pytest.raises(PrivacyError, match="replace-one neighbours only"):
        batch(Relation.ADD_REMOVE).without_replacement(10, 1, "b")


def test_members_sample_for_themselves():
    m = batch(Relation.REPLACE_ONE, k=3)
    sampler = m.member(1).without_replacement(10, 2, "b")
    assert len(sampler.draw()) == 1
    sampler.gaussian(np.zeros(1), sensitivity=1.0, noise_multiplier=2.0)
    assert m.ledger.of(0) == ()
    assert m.ledger.of(1) == (CountedRelease(WithoutReplacement(10, 2, Gaussian(2.0)), 1, "b"),)


def mechanisms(k=2, relation=Relation.REPLACE_ONE):
    return Mechanisms([f"pass-{i}" for i in range(k)], Budget(1.0, 1e-6, relation, "standard"))


def test_every_row_is_handed_out_once_in_an_order_of_the_replicates_own():
    rows = mechanisms(3).single_pass(10, "pass")
    handed = np.hstack([rows.take(4), rows.take(1), rows.take(5)])
    np.testing.assert_array_equal(np.sort(handed, axis=1), [range(10)] * 3)
    assert len({tuple(order) for order in handed}) == 3
    with pytest.raises(PrivacyError, match="used once"):
        rows.take(1)


def test_orders_are_uniform():
    counts = np.zeros((4, 4))
    for rows in [Mechanisms([f"{i}"], mechanisms().budget).single_pass(4, "pass") for i in range(2000)]:
        counts[np.arange(4), rows.take(4)[0]] += 1
    assert ((counts - 500) ** 2 / 500).sum() < 36  # chi-squared, 9 degrees of freedom: p > 4e-5


def test_disjoint_releases_cost_as_much_as_one():
    m = mechanisms()
    rows = m.single_pass(30, "pass")
    for _ in range(10):
        rows.take(1)
        rows.gaussian(np.zeros((2, 3)), sensitivity=0.5, noise_multiplier=4.0)
    tree = rows.tree(5, sensitivity=1.0, rho=1 / 32)  # as much as a multiplier of 4
    for _ in range(5):
        rows.take(2)
        tree.release(np.zeros((2, 3)))
    (entry,) = m.ledger.of(0)
    assert (entry.release, entry.count) == (Gaussian(4.0), 1)


def test_noise_has_the_std_of_its_multiplier():
    rows = mechanisms().single_pass(3, "pass")
    rows.take(1)
    noise = rows.gaussian(np.zeros((2, 20_000)), sensitivity=0.5, noise_multiplier=4.0)
    z = (np.mean(noise**2) / 4 - 1) / math.sqrt(2 / noise.size)
    assert abs(z) < 4


def test_misuse_is_refused():
    m = mechanisms()
    rows = m.single_pass(30, "pass")
    zero = np.zeros((2, 1))
    with pytest.raises(PrivacyError, match="take first"):
        rows.gaussian(zero, sensitivity=1.0, noise_multiplier=1.0)
    rows.take(1)
    tree = rows.tree(2, sensitivity=1.0, rho=0.5)  # of the blocks from here on, not of the one that was taken
    with pytest.raises(PrivacyError, match="take first"):
        tree.release(zero)
    rows.take(1)
    rows.gaussian(zero, sensitivity=1.0, noise_multiplier=1.0)
    with pytest.raises(PrivacyError, match="take first"):
        rows.gaussian(zero, sensitivity=1.0, noise_multiplier=1.0)
    rows.take(1)
    with pytest.raises(PrivacyError, match="one noise multiplier"):
        rows.gaussian(zero, sensitivity=1.0, noise_multiplier=2.0)
    rows.take(1)
    with pytest.raises(PrivacyError, match="Laplace noise on rows that an epoch uses once"):
        rows.release(zero, Laplace, LAPLACE, None, sensitivity=1.0, multiplier=1.0)
    tree = rows.tree(3, sensitivity=1.0, rho=0.5)
    rows.take(1)
    tree.release(zero)
    with pytest.raises(PrivacyError, match="take first"):
        tree.release(zero)
    with pytest.raises(PrivacyError, match="replace-one"):
        mechanisms(relation=Relation.ADD_REMOVE).single_pass(3, "pass")
