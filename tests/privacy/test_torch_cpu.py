"""torch's CPU generator rebuilt: its stream as torch 2.13.0 drew it, and beside torch where that is installed."""

import numpy as np
import pytest

from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Relation
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.privacy.noise import TorchCPU

# Drawn with torch 2.13.0 on a CPU after torch.manual_seed(seed), one call after the other: randn(shape) with its first
# and its last number, and samples of Laplace(0, 1).
DRAWN = {
    2023: [
        ((22,), 0.430476576, 1.67794383),
        ("laplace", -1.37879145),
        ((54,), -1.45156741, 1.9666245),
        ("laplace", 0.365580916),
        ((54, 54), 1.49311936, 0.695161283),
        ("laplace", 0.486714154),
        ((3,), -0.415065348, 1.43841171),
        ("laplace", 0.945994675),
        ((), 0.640256643, 0.640256643),
        ("laplace", 0.267813146),
        ((16,), -0.0561435074, 0.238730803),
        ("laplace", 1.70285988),
        ((17,), -0.951998711, 0.378785014),
        ("laplace", 0.715250969),
        ((1,), 0.463286281, 0.463286281),
        ("laplace", -0.287095636),
        ((22, 22), -0.58675313, 0.0777905062),
        ("laplace", 0.752581179),
        ((2,), 0.622243226, 0.408590347),
        ("laplace", 0.0256590229),
        ((129,), 0.0540050827, 1.59808695),
        ("laplace", 2.65072131),
    ],
    999: [
        ((22,), -0.252798736, -0.900073409),
        ("laplace", -0.572194338),
        ((54,), -1.54654348, 0.307417452),
        ("laplace", 0.310952604),
        ((54, 54), -0.197081313, -0.786695004),
        ("laplace", -0.102678016),
        ((3,), -0.105793916, 0.610819221),
        ("laplace", -0.168276757),
        ((), 1.787323, 1.787323),
        ("laplace", -0.945305705),
        ((16,), -0.711295009, -1.7525667),
        ("laplace", 0.146456659),
        ((17,), 0.625373781, 0.103842311),
        ("laplace", -0.471377134),
        ((1,), 0.817599535, 0.817599535),
        ("laplace", -0.571106136),
        ((22, 22), 0.236390471, -0.45386526),
        ("laplace", 0.883234859),
        ((2,), -1.9539144, 0.0196204837),
        ("laplace", 4.3402133),
        ((129,), -2.53062558, 1.53423905),
        ("laplace", 1.19002032),
    ],
}
LAST_BITS = 4e-7  # of torch's vectorised float32 logarithm and cosine
SIZES = (*range(1, 35), 54, 129, 256, 484, 2916)


@pytest.mark.parametrize("seed", DRAWN)
def test_the_stream_is_torchs_in_any_order_of_calls(seed):
    generator = TorchCPU(seed)
    for shape, *expected in DRAWN[seed]:
        if shape == "laplace":
            found = [float(generator.laplace())]
        else:
            numbers = generator.standard_normal(shape).ravel()
            found = [numbers[0], numbers[-1]]
        assert found == pytest.approx(expected, abs=LAST_BITS), shape


def test_every_size_is_torchs():
    torch = pytest.importorskip("torch")
    for size in SIZES:
        for seed in (2023, 999, 67, 33, 128, 0, 7):
            torch.manual_seed(seed)
            generator = TorchCPU(seed)
            for _ in range(2):  # the second call starts where torch's does
                theirs = np.array(torch.randn(size).tolist())
                assert np.abs(generator.standard_normal(size) - theirs).max() <= LAST_BITS, (seed, size)


def test_numbers_drawn_one_by_one_keep_the_second_of_a_pair_over_blocks():
    """Three scalars take two pairs: the fourth scalar is what the second pair left, whatever was drawn in between."""
    straight, interrupted = TorchCPU(5), TorchCPU(5)
    four = straight.standard_normal(4)
    three = interrupted.standard_normal(3)
    interrupted.standard_normal(32)
    assert np.append(three, interrupted.standard_normal(1)).tolist() == four.tolist()


def test_a_tail_takes_a_block_of_its_own():
    """20 numbers: the first four are of the first block, the last sixteen of a fresh one that starts at output 20."""
    numbers, whole = TorchCPU(11).standard_normal(20), TorchCPU(11)
    first = whole.standard_normal(16)
    assert numbers[:4].tolist() == first[:4].tolist()
    whole.standard_normal(16)  # outputs 16 to 31: not where the tail starts
    skipped = TorchCPU(11)
    skipped._outputs(20)
    assert numbers[4:].tolist() == skipped.standard_normal(16).tolist()


def test_symmetric_noise_is_the_lower_triangle_of_a_square():
    square, symmetric = TorchCPU(3).standard_normal((9, 9)), TorchCPU(3).symmetric(9)
    assert (symmetric == symmetric.T).all()
    assert (np.tril(symmetric) == np.tril(square)).all()


def test_the_laws_are_those_that_the_noise_is_for():
    generator = TorchCPU(1)
    normal, laplace = generator.standard_normal(100_003), generator.laplace((100_000,))
    assert (normal.mean(), normal.var()) == pytest.approx((0, 1), abs=0.02)
    assert (laplace.mean(), laplace.var()) == pytest.approx((0, 2), abs=0.06)


def test_a_run_draws_its_noise_from_a_published_stream():
    mechanisms = Mechanisms(["a", "b"], Budget(1.0, 1e-3, Relation.REPLACE_ONE, "standard"))
    rows = [np.random.default_rng(seed) for seed in (4, 5)]
    mechanisms.releases.draw_from([TorchCPU(4), TorchCPU(5)], rows)
    value = np.ones((2, 3, 3))
    noisy = mechanisms.gaussian(value, sensitivity=0.5, noise_multiplier=4.0, label="matrix", symmetric=True)
    assert noisy[1].tolist() == (1 + 2.0 * TorchCPU(5).symmetric(3)).tolist()
    one = mechanisms.member(0)
    after = TorchCPU(4)
    after.symmetric(3)
    assert one.gaussian(np.zeros((1, 20)), sensitivity=1.0, noise_multiplier=1.0, label="vector")[0].tolist() == (
        after.standard_normal(20).tolist()
    )
    (drawn,) = one.with_replacement(100, 7, "rows").draw()
    assert drawn.tolist() == sorted(np.random.default_rng(4).choice(100, size=7).tolist())
    with pytest.raises(ValueError, match="one generator per stream"):
        mechanisms.releases.draw_from([TorchCPU(4)], rows[:1])
