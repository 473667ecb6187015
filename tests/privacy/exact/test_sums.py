"""How far neighbours move a sum, in integers: the claims against the worst rows there are."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpbench.privacy.exact import sums
from dpbench.privacy.exact.sums import CertifiedMinimiser, Coordinates, Objective, RowSensitivity
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
    claimed = sums.weighted(row, weight) if kind == "weighted" else sums.outer(row, int(WEIGHT), signed=kind != "outer")
    found = parts(kind)
    assert np.linalg.norm(found, axis=1).max() == pytest.approx(claimed.l2(ADD), rel=1e-6)
    apart = max(np.linalg.norm(found - one, axis=1).max() for one in found[:: len(found) // 16])
    assert apart == pytest.approx(claimed.l2(REPLACE), rel=1e-4)


def test_the_distance_in_sizes_doubles_where_a_row_is_replaced():
    moved = sums.weighted(9, 4, 6)
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
