"""Named streams: reproducible, and apart from each other.

Replicates of equal keys share one draw of everything.
"""

import numpy as np
import pytest

from dpbench.errors import PrivacyError
from dpbench.privacy import Budget, Mechanisms, Relation
from dpbench.privacy.noise import stream


def test_equal_names_and_keys_give_equal_bits():
    np.testing.assert_array_equal(stream("key", "noise").random(10), stream("key", "noise").random(10))


def test_the_generator_and_its_first_draw_never_change():
    # A change here changes every stored result: it needs a new version of every algorithm.
    generator = stream("a", "noise")
    assert isinstance(generator.bit_generator, np.random.PCG64DXSM)
    assert generator.integers(2**63) == stream("a", "noise").integers(2**63) == FIRST


FIRST = 5050397779699461585


def test_other_names_and_other_keys_give_other_streams():
    firsts = {stream(key, name).random() for key in "abc" for name in ("init", "noise", "sampling")}
    assert len(firsts) == 9


def test_streams_are_uncorrelated():
    draws = np.stack([stream(str(i), "noise").standard_normal(10_000) for i in range(10)])
    off_diagonal = np.corrcoef(draws)[np.triu_indices(10, 1)]
    assert np.abs(off_diagonal).max() < 4.5 / np.sqrt(10_000)


BUDGET = Budget(1.0, 1e-6, Relation.REPLACE_ONE, "text")
SPEND = {"sensitivity": np.array([1.0, 2.0, 1.0]), "label": "g"}


def test_equal_keys_draw_equal_noise_scaled_by_each_ones_sensitivity():
    shared = Mechanisms(["a", "a", "b"], BUDGET)
    assert shared.streams == [slice(0, 2), slice(2, 3)]
    assert len(shared.coins) == 2
    for shape in ((3,), (3, 4)):
        noise = shared.gaussian(np.zeros(shape), noise_multiplier=3.0, **SPEND)
        np.testing.assert_array_equal(2 * noise[0], noise[1])
        assert not np.array_equal(noise[0], noise[2])


def test_what_a_replicate_draws_is_that_of_its_key_alone():
    batch, alone = Mechanisms(["a", "a", "b"], BUDGET), Mechanisms(["b"], BUDGET)
    for _ in range(3):
        together = batch.laplace(np.zeros((3, 5)), epsilon=1.0, **SPEND)
        by_itself = alone.laplace(np.zeros((1, 5)), sensitivity=1.0, epsilon=1.0, label="g")
        np.testing.assert_array_equal(together[2:], by_itself)


def test_every_replicate_pays_for_the_shared_draw():
    shared = Mechanisms(["a", "a", "b"], BUDGET)
    shared.gaussian(np.zeros(3), noise_multiplier=3.0, **SPEND)
    assert [shared.ledger.of(i)[0].count for i in range(3)] == [1, 1, 1]


def test_equal_keys_stand_together_and_advance_together():
    with pytest.raises(ValueError, match="next to each other"):
        Mechanisms(["a", "b", "a"], BUDGET)
    with pytest.raises(PrivacyError, match="advance in step"):
        Mechanisms(["a", "a"], BUDGET).member(0)


def test_one_row_steps_record_every_step_and_hand_out_one_stream_of_noise():
    both = [Mechanisms(["a", "b"], BUDGET) for _ in range(2)]
    small, large = (m.without_replacement(50, 1, "row") for m in both)
    rows, noise = small.one_row_steps(40, 3, noise_multiplier=2.0)
    _, whole = large.one_row_steps(40, 3, noise_multiplier=2.0)
    assert rows.shape == (2, 40)
    assert rows.max() < 50
    pieces = np.concatenate([noise.block(7), noise.block(33)], axis=1)
    np.testing.assert_array_equal(pieces, whole.block(40))
    (entry,) = both[0].ledger.of(1)
    assert (entry.count, entry.release.m, entry.release.release.noise_multiplier) == (40, 1, 2.0)
    with pytest.raises(PrivacyError, match="m = 1"):
        Mechanisms(["a"], BUDGET).without_replacement(50, 2, "row").one_row_steps(4, 3, noise_multiplier=2.0)


def test_one_row_noise_has_the_variance_of_its_multiplier():
    sampler = Mechanisms(["a"], BUDGET).without_replacement(50, 1, "row")
    _, noise = sampler.one_row_steps(20_000, 3, noise_multiplier=2.0)
    squares = noise.block(20_000).ravel() ** 2
    z = (squares.mean() / 4 - 1) / np.sqrt(2 / squares.size)
    assert abs(z) < 4.5
    assert abs((squares.mean() / 4 / 4 - 1) / np.sqrt(2 / squares.size)) > 10  # halved noise
