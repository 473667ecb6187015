import math

import numpy as np
import pytest

from dpbench.errors import PrivacyError
from dpbench.privacy import Budget, Mechanisms, Relation
from dpbench.privacy.ledger import Gaussian


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
    rows.gaussian(zero, sensitivity=1.0, noise_multiplier=1.0)
    with pytest.raises(PrivacyError, match="take first"):
        rows.gaussian(zero, sensitivity=1.0, noise_multiplier=1.0)
    rows.take(1)
    with pytest.raises(PrivacyError, match="one noise multiplier"):
        rows.gaussian(zero, sensitivity=1.0, noise_multiplier=2.0)
    tree = rows.tree(3, sensitivity=1.0, rho=0.5)
    rows.take(1)
    tree.release(zero)
    with pytest.raises(PrivacyError, match="take first"):
        tree.release(zero)
    with pytest.raises(PrivacyError, match="replace-one"):
        mechanisms(relation=Relation.ADD_REMOVE).single_pass(3, "pass")


def test_releases_drawn_ahead_are_those_of_one_at_a_time(monkeypatch):
    """The same noise from the same streams and the same ledger, whatever the size of a block."""
    found = []
    for ahead in (None, 10, 10_000):
        m = mechanisms()
        rows = m.single_pass(20, "pass")
        arguments = {"sensitivity": 0.5, "noise_multiplier": 4.0}
        if ahead:
            monkeypatch.setattr("dpbench.privacy.release.AHEAD", ahead)
            release = rows.gaussians(10, (2, 3), **arguments)
        noise = []
        for t in range(10):
            rows.take(2)
            value = np.full((2, 3), float(t))
            noise.append(release(value) if ahead else rows.gaussian(value, **arguments))
        found.append((np.array(noise), m.ledger.of(0)))
    for noise, entries in found[1:]:
        np.testing.assert_array_equal(noise, found[0][0])
        assert entries == found[0][1]


def test_releases_drawn_ahead_need_a_fresh_block_each_and_end_with_their_rounds():
    rows = mechanisms().single_pass(20, "pass")
    release = rows.gaussians(2, (2, 1), sensitivity=1.0, noise_multiplier=1.0)
    with pytest.raises(PrivacyError, match="take first"):
        release(np.zeros((2, 1)))
    for _ in range(2):
        rows.take(1)
        release(np.zeros((2, 1)))
    rows.take(1)
    with pytest.raises(PrivacyError, match="no rounds are left"):
        release(np.zeros((2, 1)))


def test_a_seam_that_draws_no_noise_ahead_releases_one_at_a_time(monkeypatch):
    monkeypatch.setattr("dpbench.privacy.release.Releases.ahead", False)
    monkeypatch.setattr("dpbench.privacy.release.Releases.draw", lambda *_: pytest.fail("noise apart from a value"))
    rows = mechanisms().single_pass(20, "pass")
    release = rows.gaussians(2, (2, 1), sensitivity=1.0, noise_multiplier=1.0)
    rows.take(1)
    assert release(np.zeros((2, 1))).shape == (2, 1)
