"""Correlated noise: its law and its sensitivity, against the matrices written out."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbench.errors import PrivacyError
from dpbench.privacy import Budget, Mechanisms, Relation
from dpbench.privacy.correlated import coefficients, holders, node_std, sensitivity, tree_sensitivity
from dpbench.privacy.ledger import Gaussian

TREE_BUDGET = Budget(1.0, 1e-6, Relation.REPLACE_ONE, "standard")


def mechanisms(k=1, **options):
    return Mechanisms([f"tree-{i}" for i in range(k)], TREE_BUDGET, **options)


def node(t):
    """NODE(t): Algorithm 5, lines 4-10, as the paper prints them."""
    k, found, depth = 0, [], math.floor(math.log2(t))
    for i in range(depth + 1):
        if k < t:
            end = k + 2 ** (depth - i)
            if end <= t:
                found.append((k + 1, end))
                k = end
    return found


@given(st.integers(1, 10**6))
def test_node_is_the_papers_partition_with_few_parts(t):
    nodes = node(t)
    assert nodes[0][0] == 1
    assert nodes[-1][1] == t
    assert all(left[1] + 1 == right[0] for left, right in itertools.pairwise(nodes))
    assert len(nodes) == t.bit_count() <= math.floor(math.log2(t)) + 1


def test_the_papers_examples():
    assert node(7) == [(1, 4), (5, 6), (7, 7)]
    assert node(8) == [(1, 8)]


@given(st.integers(1, 300))
@settings(deadline=None)
def test_any_round_lies_in_few_nodes(rounds):
    released = {one for t in range(1, rounds + 1) for one in node(t)}
    counted = [sum(a <= q <= b for a, b in released) for q in range(1, rounds + 1)]
    assert holders(rounds).tolist() == counted
    assert max(counted) == counted[0] == math.floor(math.log2(rounds)) + 1
    assert len(released) == rounds  # one node, hence one noise vector, per right end


def overlap(rounds):
    """(rounds, rounds) number of nodes that NODE(s) and NODE(t) share: the covariance in units of std²."""
    sets = [set(node(t)) for t in range(1, rounds + 1)]
    return np.array([[len(a & b) for b in sets] for a in sets])


@given(st.integers(1, 60), st.data())
def test_the_sensitivity_is_exact_for_the_released_sums(rounds, data):
    """The sums are Gaussian: neighbours that differ by s_q from round q on are at Mahalanobis distance²
    Δᵀ Σ⁻¹ Δ, and its largest value over q is (sensitivity / std)²: no smaller number would do."""
    by_round = np.array(data.draw(st.lists(st.floats(0.01, 10), min_size=rounds, max_size=rounds)))
    shifts = np.tril(np.ones((rounds, rounds))) * by_round  # column q: what round q moves
    distances = np.einsum("tq,tq->q", shifts, np.linalg.solve(overlap(rounds), shifts))
    assert tree_sensitivity(rounds, by_round) == pytest.approx(math.sqrt(distances.max()))


def test_node_noise_is_that_of_the_theorem():
    """Corollary 4.4 with h for 2 ln T: σ = sqrt(h) s/ρ, where (α, αρ²/2)-RDP is ρ²/2-zCDP."""
    rho, s, T = 0.7, 0.03, 100
    assert node_std(T, s, rho**2 / 2) == pytest.approx(math.sqrt(7) * s / rho)


def test_the_released_sums_have_the_trees_covariance():
    rounds, columns = 13, 40_000
    tree = mechanisms().tree(rounds, sensitivity=0.5, rho=0.125, label="sums")
    noise = np.array([tree.release(np.zeros((1, columns)))[0] for _ in range(rounds)]) / tree.std
    expected = overlap(rounds)
    variances = np.diag(expected)
    error = np.sqrt((np.outer(variances, variances) + expected**2) / columns)  # of a product of normals
    z = (noise @ noise.T / columns - expected) / error
    assert np.abs(z).max() < 5  # 91 entries
    assert np.abs((noise @ noise.T / columns / 4 - expected) / error).max() > 50  # half the noise


def test_each_sum_gets_its_own_noise_on_top_and_noiseless_gets_none():
    sums = np.arange(12.0).reshape(6, 1, 2)
    loud = mechanisms().tree(6, sensitivity=1e-9, rho=1.0, label="sums")
    quiet = mechanisms(noiseless=True).tree(6, sensitivity=1.0, rho=1.0, label="sums")
    for one in sums:
        np.testing.assert_allclose(loud.release(one), one, atol=1e-6)
        np.testing.assert_array_equal(quiet.release(one), one)


def test_the_noise_does_not_depend_on_the_batch():
    alone, together = mechanisms(1), mechanisms(3)
    trees = [m.tree(9, sensitivity=1.0, rho=1.0, label="sums") for m in (alone, together)]
    for _ in range(9):
        one, three = trees[0].release(np.zeros((1, 4))), trees[1].release(np.zeros((3, 4)))
        np.testing.assert_array_equal(one[0], three[0])


def test_ledger_records_one_gaussian_of_the_whole_budget():
    m = mechanisms(2)
    m.tree(50, sensitivity=3.0, rho=0.02, label="sums").release(np.zeros((2, 1)))
    (entry,) = m.ledger.of(1)
    assert entry.count == 1
    assert isinstance(entry.release, Gaussian)
    assert entry.release.noise_multiplier == pytest.approx(1 / math.sqrt(2 * 0.02))


def test_a_tree_keeps_logarithmically_many_vectors_and_ends():
    tree = mechanisms().tree(100, sensitivity=1.0, rho=1.0, label="sums")
    for t in range(1, 101):
        tree.release(np.zeros((1, 1)))
        assert len(tree._noise) == len(node(t))
    with pytest.raises(PrivacyError, match="100 rounds"):
        tree.release(np.zeros((1, 1)))


BUDGET = Budget(1.0, 1e-5, Relation.REPLACE_ONE, "tight")


def matrix(steps, bands):
    C = np.zeros((steps, steps))
    for j, c in enumerate(coefficients(bands)):
        C += c * np.eye(steps, k=-j)
    return C


def test_all_bands_are_the_square_root_of_prefix_sums():
    np.testing.assert_allclose(matrix(7, 7) @ matrix(7, 7), np.tril(np.ones((7, 7))))


@pytest.mark.parametrize(("steps", "separation", "bands"), [(12, 4, 4), (12, 4, 1), (10, 4, 3), (3, 5, 5), (9, 1, 1)])
def test_sensitivity_is_attained_by_the_worst_row_and_by_no_other(steps, separation, bands):
    C, rng = matrix(steps, bands), np.random.default_rng(0)
    moved = []
    for first in range(min(separation, steps)):
        for _ in range(50):
            change = np.zeros((steps, 3))
            change[first::separation] = rng.standard_normal(change[first::separation].shape)
            change[first::separation] /= np.linalg.norm(change[first::separation], axis=1, keepdims=True)
            moved.append(np.linalg.norm(C @ change))
    assert max(moved) == pytest.approx(sensitivity(steps, separation, bands), rel=1e-12)


def test_noise_times_C_is_independent_with_the_deviation_that_rho_asks_for():
    k, steps, rho = 4000, 6, 0.08
    run = Mechanisms([f"key/{i}" for i in range(k)], BUDGET)
    noise = run.correlated(steps, separation=3, bands=3, sensitivity=0.5, rho=rho, label="sums")
    released = np.stack([noise.release(np.full((k, 1), float(t)))[:, 0] for t in range(steps)])
    independent = matrix(steps, 3) @ (released - np.arange(steps)[:, None])
    std = 0.5 * sensitivity(steps, 3, 3) / np.sqrt(2 * rho)
    np.testing.assert_allclose(np.cov(independent) / std**2, np.eye(steps), atol=0.1)
    assert [(e.release, e.count) for e in run.ledger.of(0)] == [(Gaussian((2 * rho) ** -0.5), 1)]
    with pytest.raises(PrivacyError, match="paid for 6 rounds"):
        noise.release(np.zeros((k, 1)))


def test_its_sums_have_less_noise_than_independent_noise_of_equal_privacy():
    def final(bands):
        inverse = np.linalg.inv(matrix(64, bands))
        return np.linalg.norm(inverse.sum(axis=0)) * sensitivity(64, 8, bands)

    assert final(8) < 0.75 * final(1)
