"""Noise by its distribution; ledger entries by their numbers; batches that do not matter."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dpbench.errors import PrivacyError
from dpbench.privacy import Budget, Mechanisms, Relation
from dpbench.privacy.ledger import CountedRelease, Gaussian, Laplace, PureDP
from tests.privacy.laws import follows

BUDGET = Budget(1.0, 1e-6, Relation.REPLACE_ONE, "text")


def batch(k, **kwargs):
    return Mechanisms([f"job {i}" for i in range(k)], BUDGET, **kwargs)


def test_gaussian_from_rho():
    m = batch(3)
    value = np.arange(3 * 10_000.0).reshape(3, -1)
    noisy = m.gaussian(value, sensitivity=0.3, rho=0.02, label="g")
    std = 0.3 / math.sqrt(2 * 0.02)
    for row in noisy - value:
        assert follows(row, stats.norm(0, std))
        assert not follows(row / 2, stats.norm(0, std))
        assert not follows(row * 1.1, stats.norm(0, std))
    assert m.ledger.of(0) == (CountedRelease(Gaussian(5.0), 1, "g"),)


def test_gaussian_with_a_multiplier_and_a_sensitivity_per_replicate():
    m = batch(3)
    sensitivity, multiplier = np.array([0.1, 1.0, 10.0]), np.array([2.0, 3.0, 2.0])
    noise = m.gaussian(np.zeros((3, 20_000)), sensitivity=sensitivity, noise_multiplier=multiplier, label="g")
    for row, std in zip(noise, sensitivity * multiplier, strict=True):
        assert follows(row, stats.norm(0, std))
        assert not follows(row / 2, stats.norm(0, std))
    assert m.ledger.of(1) == (CountedRelease(Gaussian(3.0), 1, "g"),)
    assert m.ledger.of(0) is m.ledger.of(2)


def test_rho_per_replicate():
    m = batch(2)
    m.gaussian(np.zeros(2), sensitivity=1.0, rho=np.array([0.5, 0.125]), label="g")
    assert [m.ledger.of(i) for i in range(2)] == [(CountedRelease(Gaussian(z), 1, "g"),) for z in (1.0, 2.0)]


def test_scalar_values_get_scalar_noise():
    m = batch(100)
    noise = [m.gaussian(np.zeros(100), sensitivity=1.0, noise_multiplier=2.0, label="trace") for _ in range(100)]
    assert follows(np.concatenate(noise), stats.norm(0, 2))
    assert m.ledger.of(7) == (CountedRelease(Gaussian(2.0), 100, "trace"),)


def test_symmetric_noise_is_iid_on_and_above_the_diagonal():
    d = 120
    (noise,) = batch(1).gaussian(np.zeros((1, d, d)), sensitivity=0.5, rho=0.125, label="H", symmetric=True)
    np.testing.assert_array_equal(noise, noise.T)
    assert follows(noise[np.triu_indices(d)], stats.norm(0, 1))
    assert not follows(noise[np.triu_indices(d)] / 2, stats.norm(0, 1))
    # The diagonal has the same law as the rest: the mirrored mean of two matrices would have √2 times it.
    assert abs(np.mean(np.diag(noise) ** 2) - 1) < 4.4 * math.sqrt(2 / d)
    above = noise[np.triu_indices(d, 1)]
    assert abs(np.corrcoef(above[:-1], above[1:])[0, 1]) < 4.4 / math.sqrt(len(above))


def test_matrix_noise_is_iid_unless_symmetric_is_asked():
    (noise,) = batch(1).gaussian(np.zeros((1, 100, 100)), sensitivity=1.0, rho=0.5, label="H")
    assert follows(noise.ravel(), stats.norm(0, 1))
    assert abs(np.corrcoef(noise.ravel(), noise.T.ravel())[0, 1]) < 0.05


def test_laplace_scale_is_sensitivity_over_epsilon():
    m = batch(2)
    noise = m.laplace(np.zeros((2, 20_000)), sensitivity=0.3, epsilon=0.1, label="g")
    for row in noise:
        assert follows(row, stats.laplace(0, 3.0))
        assert not follows(row / 2, stats.laplace(0, 3.0))
        assert not follows(row / math.sqrt(2), stats.laplace(0, 3.0))  # the scale taken for a standard deviation
    assert m.ledger.of(0) == (CountedRelease(Laplace(10.0), 1, "g"),)


def test_laplace_from_its_scale():
    m = batch(2)
    noise = m.laplace(np.zeros((2, 20_000)), sensitivity=0.5, scale=np.array([1.0, 2.0]), label="g")
    assert follows(noise[0], stats.laplace(0, 1.0))
    assert follows(noise[1], stats.laplace(0, 2.0))
    assert m.ledger.of(1) == (CountedRelease(Laplace(4.0), 1, "g"),)


def test_replicates_and_calls_get_noise_of_their_own():
    m = batch(2)
    draws = [m.gaussian(np.zeros((2, 5_000)), sensitivity=1.0, rho=0.5, label="g") for _ in range(2)]
    correlations = np.corrcoef(np.concatenate(draws))[np.triu_indices(4, 1)]
    assert np.abs(correlations).max() < 4.5 / math.sqrt(5_000)


def use_everything(m):
    """One of each release; a list of arrays with leading axis k."""
    k = m.k
    out = [
        m.gaussian(np.zeros((k, 7)), sensitivity=1.0, rho=0.1, label="a"),
        m.laplace(np.zeros((k, 3)), sensitivity=1.0, epsilon=1.0, label="b"),
        m.noisy_argmax(np.zeros((k, 50)), sensitivity=1.0, epsilon=1.0, label="c"),
        m.gaussian(np.zeros((k, 4, 4)), sensitivity=1.0, rho=0.1, label="d", symmetric=True),
    ]
    sampler = m.without_replacement(100, 10, "e")
    for _ in range(2):
        out.append(np.array(sampler.draw()))
        out.append(sampler.gaussian(np.zeros(k), sensitivity=1.0, noise_multiplier=1.0))
    fired = []
    for i in range(k):
        svt = m.member(i).above_threshold(sensitivity=1.0, epsilon=0.1, label="f")
        fired.append(next(t for t in itertools.count() if svt(0.5 * t)))
    return [*out, np.array(fired)]


def test_a_replicate_alone_gets_the_same_bits_as_in_a_batch():
    together = use_everything(batch(3))
    for i in range(3):
        alone = use_everything(Mechanisms([f"job {i}"], BUDGET))
        for whole, part in zip(together, alone, strict=True):
            np.testing.assert_array_equal(whole[i], part[0])


def test_a_member_view_continues_its_replicates_streams_and_ledger():
    whole, viewed = batch(3), batch(3)
    first = whole.gaussian(np.zeros((3, 5)), sensitivity=1.0, rho=0.5, label="g")
    again = whole.gaussian(np.zeros((3, 5)), sensitivity=1.0, rho=0.5, label="g")
    for i in (2, 0):
        member = viewed.member(i)
        np.testing.assert_array_equal(
            member.gaussian(np.zeros((1, 5)), sensitivity=1.0, rho=0.5, label="g")[0], first[i]
        )
        np.testing.assert_array_equal(
            viewed.member(i).member(0).gaussian(np.zeros((1, 5)), sensitivity=1.0, rho=0.5, label="g")[0], again[i]
        )
    assert viewed.ledger.of(0) == viewed.ledger.of(2) == whole.ledger.of(0)
    assert viewed.ledger.of(1) == ()


def test_noiseless_adds_nothing_and_records_everything():
    quiet, loud = batch(2, noiseless=True), batch(2)
    value = np.array([[1.0, 5.0, 3.0], [2.0, 1.0, 0.0]])
    np.testing.assert_array_equal(quiet.gaussian(value, sensitivity=1.0, rho=0.1, label="a"), value)
    np.testing.assert_array_equal(quiet.laplace(value, sensitivity=1.0, epsilon=0.1, label="b"), value)
    np.testing.assert_array_equal(quiet.noisy_argmax(value, sensitivity=1.0, epsilon=0.1, label="c"), [1, 0])
    loud.gaussian(value, sensitivity=1.0, rho=0.1, label="a")
    loud.laplace(value, sensitivity=1.0, epsilon=0.1, label="b")
    loud.noisy_argmax(value, sensitivity=1.0, epsilon=0.1, label="c")
    assert quiet.ledger.of(1) == loud.ledger.of(1)


def test_a_release_never_writes_into_its_argument():
    value = np.ones((2, 3))
    for noiseless in (False, True):
        released = batch(2, noiseless=noiseless).gaussian(value, sensitivity=1.0, rho=0.5, label="g")
        released[:] = 7.0
    np.testing.assert_array_equal(value, 1.0)


def test_a_diverged_replicate_leaves_the_others_alone():
    value = np.zeros((3, 4))
    clean = batch(3).gaussian(value, sensitivity=np.ones(3), rho=0.5, label="g")
    noisy = batch(3).gaussian(value, sensitivity=np.array([1.0, np.nan, np.inf]), rho=0.5, label="g")
    np.testing.assert_array_equal(noisy[0], clean[0])
    assert not np.isfinite(noisy[1:]).any()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m: m.gaussian(np.zeros(2), sensitivity=1.0, label="g"), "exactly one of rho"),
        (lambda m: m.gaussian(np.zeros(2), sensitivity=1.0, rho=1.0, noise_multiplier=1.0, label="g"), "exactly one"),
        (lambda m: m.gaussian(np.zeros(2), sensitivity=-1.0, rho=1.0, label="g"), "must not be negative"),
        (lambda m: m.gaussian(np.zeros(2), sensitivity=1.0, rho=0.0, label="g"), "noise_multiplier must be positive"),
        (lambda m: m.gaussian(np.zeros(2), sensitivity=1.0, rho=-1.0, label="g"), "noise_multiplier must be positive"),
        (lambda m: m.gaussian(np.zeros(2), sensitivity=1.0, rho=np.array([1.0, -1.0]), label="g"), "must be positive"),
        (lambda m: m.gaussian(np.zeros(2), sensitivity=1.0, noise_multiplier=0.0, label="g"), "must be positive"),
        (lambda m: m.gaussian(np.zeros(3), sensitivity=1.0, rho=1.0, label="g"), "leading axis k = 2"),
        (lambda m: m.gaussian(0.0, sensitivity=1.0, rho=1.0, label="g"), "leading axis k = 2"),
        (lambda m: m.gaussian(np.zeros(2), sensitivity=1.0, rho=np.ones(3), label="g"), "one parameter per replicate"),
        (lambda m: m.laplace(np.zeros(2), sensitivity=1.0, label="l"), "exactly one of epsilon"),
        (lambda m: m.laplace(np.zeros(2), sensitivity=1.0, epsilon=0.0, label="l"), "must be positive"),
        (lambda m: m.laplace(np.zeros(2), sensitivity=1.0, scale=0.0, label="l"), "must be positive"),
        (lambda m: m.noisy_argmax(np.zeros((2, 3)), sensitivity=1.0, epsilon=0.0, label="s"), "must be positive"),
        (lambda m: m.above_threshold(sensitivity=1.0, epsilon=1.0, label="s"), "serves one replicate"),
    ],
)
def test_wrong_releases_are_refused(call, words):
    with pytest.raises(PrivacyError) as caught:
        call(batch(2))
    assert words in str(caught.value)


def test_selections_are_recorded_with_their_epsilon():
    m = batch(2)
    m.noisy_argmax(np.zeros((2, 3)), sensitivity=1.0, epsilon=0.5, label="coordinate")
    m.member(1).above_threshold(sensitivity=1.0, epsilon=0.25, label="line search")
    assert m.ledger.of(0) == (CountedRelease(PureDP(0.5), 1, "coordinate"),)
    assert m.ledger.of(1) == (
        CountedRelease(PureDP(0.5), 1, "coordinate"),
        CountedRelease(PureDP(0.25), 1, "line search"),
    )


def test_the_ledger_knows_what_was_drawn():
    m = Mechanisms(list("abc")[:2], BUDGET)
    for s in (0.5, 2.0):
        m.gaussian(np.zeros((2, 3)), sensitivity=np.array([s, 2 * s]), noise_multiplier=1.5, label="g")
    m.laplace(np.zeros(2), sensitivity=0.5, epsilon=0.1, label="l")
    m.noisy_argmax(np.zeros((2, 4)), sensitivity=0.5, epsilon=0.1, label="s")
    found = {row["label"]: (row["shape"], row["sensitivity"], row["noise"]) for row in m.ledger.summary()}
    assert found == {"g": ("3", "0.5 to 4", "0.75 to 6"), "l": ("1", "0.5", "5"), "s": ("4", "0.5", "10")}


def test_the_multiplier_is_that_of_the_noise_drawn(monkeypatch):
    """A mutant that draws less than it says: the ledger holds what was drawn."""
    from dpbench.privacy.noise import Releases

    plain = Releases.release

    class Less(float):
        def __mul__(self, other):
            return super().__mul__(other) / 2

        __rmul__ = __mul__

    monkeypatch.setattr(
        Releases, "release", lambda self, *a, multiplier, **how: plain(self, *a, multiplier=Less(multiplier), **how)
    )
    m = Mechanisms(list("abc")[:1], BUDGET)
    m.gaussian(np.zeros(1), sensitivity=1.0, noise_multiplier=3.0, label="g")
    assert m.ledger.of(0) == (CountedRelease(Gaussian(1.5), 1, "g"),)


def test_a_release_without_noise_is_known_by_its_replicate():
    m = Mechanisms(list("abc")[:3], BUDGET)
    m.gaussian(np.zeros((3, 2)), sensitivity=np.array([1.0, 0.0, np.nan]), noise_multiplier=1.0, label="g")
    m.member(2).laplace(np.zeros(1), sensitivity=0.0, epsilon=1.0, label="l")
    assert m.ledger.exact == {1: "g", 2: "l"}
