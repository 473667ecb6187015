"""How far neighbours move a sum, in integers: the claims against the worst rows there are."""

import math
import operator
from fractions import Fraction

import numpy as np
import pytest

from dpbench.errors import PrivacyError
from dpbench.privacy import exact_sums
from dpbench.privacy.exact_sums import CertifiedMinimiser, Coordinates, Objective, RowSensitivity
from dpbench.privacy.ledger import Relation

ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE_ONE
ROW, WEIGHT = 3.0, 2.0  # lengths


def parts(kind, count=4000, d=2):
    """Rows' parts of a sum, at the ends of what they may be: (count, …)."""
    rng = np.random.default_rng(0)
    angles = np.arange(count) * (2 * math.pi / count)
    X = ROW * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    c = WEIGHT * (2.0 * rng.integers(0, 2, count) - 1)
    if kind == "weighted":
        return c[:, None] * X
    h = np.abs(c) if kind == "outer" else c
    return (h[:, None, None] * X[:, :, None] * X[:, None, :]).reshape(count, -1)


@pytest.mark.parametrize("kind", ["weighted", "outer", "signed"])
def test_the_distances_are_those_of_the_worst_rows_neither_more_nor_less(kind):
    row, weight = int(ROW**2), int(WEIGHT**2)
    claimed = (
        exact_sums.weighted(row, weight)
        if kind == "weighted"
        else exact_sums.outer(row, int(WEIGHT), signed=kind != "outer")
    )
    found = parts(kind)
    assert np.linalg.norm(found, axis=1).max() == pytest.approx(claimed.l2(ADD), rel=1e-6)
    apart = max(np.linalg.norm(found - one, axis=1).max() for one in found[:: len(found) // 16])
    assert apart == pytest.approx(claimed.l2(REPLACE), rel=1e-4)


def test_the_distance_in_sizes_doubles_where_a_row_is_replaced():
    moved = exact_sums.weighted(9, 4, 6)
    assert (moved.sum_of_sizes(ADD), moved.sum_of_sizes(REPLACE)) == pytest.approx((6, 12))


def test_minimisers_are_apart_by_what_rows_pull_over_the_convexity():
    objective = Objective(np.zeros((1, 2)), 0.25, 0.1, 1.0, logistic=True)
    near = CertifiedMinimiser(np.zeros((1, 2), dtype=np.int64), 1.0, 0.5, objective)
    assert (near.neighbour_distance(ADD), near.neighbour_distance(REPLACE)) == pytest.approx((0.4, 0.8))


@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_no_rounding_takes_a_distance_below_what_it_is(relation):
    """In exact arithmetic, at sizes that float64 has and at ones it has not."""
    for size in (1, 3, 10**6 + 3, 2**53 + 1):
        moved = RowSensitivity(size, 4 * size, size)
        (entry,) = Coordinates(np.zeros((1, 1), dtype=np.int64), 1.0, np.array([size]), 5).each(relation)
        assert Fraction(moved.l2(relation)) ** 2 > (4 * size if relation is REPLACE else size)
        assert Fraction(moved.sum_of_sizes(relation)) > size * relation.rows
        assert Fraction(float(entry)) > size * relation.rows


@pytest.mark.parametrize("kind", ["sum", "gram", "coordinates"])
def test_public_arithmetic_changes_what_an_integer_counts_and_nothing_else(kind):
    integers, moved, start = np.array([[3, -5]]), RowSensitivity(9, 36, 4), np.array([0.5, -1.0])
    one = {
        "sum": lambda: exact_sums.Sum(integers, 0.25, moved, start, within=7.0),
        "gram": lambda: exact_sums.Gram(integers, 0.25, moved, start, within=7.0),
        "coordinates": lambda: Coordinates(integers, 0.25, np.array([2, 3]), 11, start),
    }[kind]()
    other = (3 * (np.array([1.0, 2.0]) + one) / 4) * 8 + 1.0
    assert type(other) is type(one)
    assert (other.unit, other.moved) == (0.25 * 3 / 4 * 8, one.moved)
    np.testing.assert_array_equal(other.integers, integers)
    np.testing.assert_array_equal(other.within, one.within)
    np.testing.assert_array_equal(other.offset, np.add(start, [1.0, 2.0]) * 6 + 1.0)
    if kind == "coordinates":
        half, entry = other[:, np.array([1])], other[[0], [1]]
        assert (half.integers, half.most, half.n, half.unit, half.offset) == (-5, 3, 11, other.unit, other.offset[1])
        assert (entry.integers, entry.moved, entry.unit, entry.offset) == (-5, (9, 36, 3), 1.5, other.offset[1])
        assert list(one.moved) == [13, 52, 5]
        np.testing.assert_allclose(one.within, [22, 33], rtol=1e-9)


@pytest.mark.parametrize(("bits", "moved"), [(0, (9, 36, 4)), (3, (9 * 64, 36 * 64, 32)), (3, (9 * 64, 36 * 64, None))])
def test_parts_that_count_less_move_by_more_integers_and_by_the_same_sum(bits, moved):
    part = exact_sums.Sum(np.array([[3]]), 0.5, RowSensitivity(9, 36, moved[2] and 4), 1.0, within=7.0).finer(bits)
    assert (part.moved, part.unit, part.offset, part.within) == (moved, 0.5 / 2**bits, 1.0, 7.0 * 2**bits)


@pytest.mark.parametrize(("use", "message"), [
    (lambda one: one * 0, "one positive number"), (lambda one: one / -1.0, "one positive number"),
    (lambda one: one * math.inf, "one positive number"), (lambda one: one / math.nan, "one positive number"),
    (lambda one: one + one, "may not be added"), (lambda one: one[:, 0], "may not be read"),
    (np.asarray, "may not be read"),
    (lambda one: one * np.ones(3), "one positive number, got array"), (lambda one: one * "a", "one positive number"),
    *((use, "multiply or divide a sum by positive public numbers, add public arrays, and hand it to a") for use in (
        float, bool, len, list, abs, np.exp, operator.neg, lambda one: one > 0, lambda one: one == 0,
        lambda one: one - 1, lambda one: np.ones(2) - one, lambda one: one * one, lambda one: one @ one)),
    (lambda one: one * 2.0**901, "unit must be positive"), (lambda one: one / 2.0**901, "unit must be positive"),
    (lambda one: np.stack([one, one]), "to numpy.stack"), (lambda one: np.stack([one], axis=0), "to numpy.stack"),
    (lambda one: np.tile(one, (2, 1)), "to numpy.tile"), (np.abs, "may not be read"), (np.sort, "to numpy.sort"),
    (lambda one: exact_sums.Sum(one.integers, 1.0, RowSensitivity(1, 4, -1)), "cannot have a negative size"),
])  # fmt: skip
def test_every_other_use_of_a_sum_is_refused(use, message):
    one = exact_sums.Sum(np.array([[3, -5]]), 1.0, RowSensitivity(9, 36, 0))
    with pytest.raises(PrivacyError, match=message):
        use(one)
    with pytest.raises(AttributeError, match=r"there is no \.mean: what is computed from the rows may not be read"):
        one.mean()
    added = np.array([1.0, 2.0]) + np.float64(2) * one
    assert (added.unit, list(added.offset)) == (2.0, [1.0, 2.0])
    for same in (np.stack([one]), np.concatenate([one]), np.tile(one, (1, 1)), one * 2.0**900, one / 2.0**900):
        assert same.integers is one.integers
