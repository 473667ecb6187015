"""Named streams: reproducible, and apart from each other."""

import numpy as np

from dpbench.privacy.streams import stream


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
