"""Rounded Gaussian and Laplace noise: the exact law in every cell, and a proof of the error that decides in doubt."""

import math

import mpmath
import numpy as np
import pytest
from scipy import optimize, stats

from dpbench.privacy import exact_sampling
from dpbench.privacy.exact_sampling import Draws, SeededBits, SystemBits
from dpbench.privacy.noise import stream

LAWS = {"normal": (exact_sampling.normal, stats.norm), "laplace": (exact_sampling.laplace, stats.laplace)}


def bits(name: str) -> SeededBits:
    return SeededBits(stream(name, "noise"))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [0.2, 1.0, 7.3])
def test_every_cell_has_its_exact_probability_the_tails_too(law, scale):
    draw, exact = LAWS[law]
    n = 400_000
    every_cell_is_right(draw(scale, n, bits(f"{law}{scale}")), scale, exact)


class OneOfThree:
    """An entry of R in three dimensions, of density ∝ e^{-‖x‖₂}: of density (1 + |x|)e^{-|x|}/4."""

    @staticmethod
    def sf(x):
        far = np.minimum(abs(x), 700.0)
        beyond = (2 + far) * np.exp(-far) / 4
        return np.where(x > 0, beyond, 1 - beyond)

    @classmethod
    def cdf(cls, x):
        return cls.sf(-x)

    @staticmethod
    def isf(q):
        return optimize.brentq(lambda x: (2 + x) * math.exp(-x) / 4 - q, 0, 100)


def test_radial_noise_has_its_law_in_one_dimension_and_in_three():
    """In one it is the Laplace law."""
    source, scale = bits("radial"), 3.3
    every_cell_is_right(
        np.concatenate([exact_sampling.radial(scale, 1, source) for _ in range(1_500)]), scale, stats.laplace
    )
    three = np.array([exact_sampling.radial(scale, 3, source) for _ in range(1_500)])
    every_cell_is_right(three[:, 0], scale, OneOfThree)
    every_cell_is_right(three[:, 2], scale, OneOfThree)


def test_radial_noise_in_doubt_is_decided_by_more_digits_of_the_same_draws(monkeypatch):
    """With an error that leaves all in doubt, the same words give the same integers; at a fine grid, their low bits."""
    product = exact_sampling._product
    for scale in (7.0, 2.0**40):
        plain = [exact_sampling.radial(scale, 3, bits(f"doubt {i}")) for i in range(2)]
        with monkeypatch.context() as patch:
            patch.setattr(exact_sampling, "_product", lambda *args: (product(*args)[0], np.full(3, 0.6)))
            decided = [exact_sampling.radial(scale, 3, bits(f"doubt {i}")) for i in range(2)]
        if scale == 7.0:
            np.testing.assert_array_equal(decided, plain)
        else:  # 40 bits behind the point do not tell
            assert np.abs(np.subtract(decided, plain)).max() <= 2**8


def test_digits_of_a_normal_variable_are_those_of_its_first_bits_at_every_width():
    numbers = exact_sampling.Normals(5, bits("digits"))
    coarse = numbers.rounded(2.0**20)
    for j in range(5):
        fine, finer = numbers.digits(j, 70), numbers.digits(j, 200)
        assert abs(fine - (int(coarse[j]) << 50)) <= 2**49
        assert abs(finer - (fine << 130)) <= 2**129


def test_a_radial_number_nearby_is_as_near_as_it_says():
    for i in range(2):
        near = exact_sampling.radial_near(3, bits(f"near {i}"))
        exact = exact_sampling.radial(2.0**45, 3, bits(f"near {i}")) * 2.0**-45  # of the same words
        assert np.abs(near - exact).max() <= math.sqrt(3) * exact_sampling.NEAR + 2.0**-45


def every_cell_is_right(found, scale, exact):
    n = len(found)
    far = int(exact.isf(5 / n) * scale) + 1  # beyond, all is one cell
    edges = np.concatenate([[-np.inf], np.arange(-far, far + 1) + 0.5, [np.inf]])
    below = exact.cdf(edges / scale)
    above = exact.sf(edges / scale)
    probability = np.where(edges[1:] <= 0, np.diff(below), -np.diff(above))  # without cancellation in either tail
    count = np.histogram(found, edges)[0]
    assert count.sum() == n
    kept = n * probability >= 5
    assert kept.sum() >= 3
    cells, expected = [*count[kept], count[~kept].sum()], [*(n * probability[kept]), n * probability[~kept].sum()]
    statistic = sum((c - e) ** 2 / e for c, e in zip(cells, expected, strict=True) if e > 0)
    assert statistic < stats.chi2.isf(1e-6, len(cells) - 1)


@pytest.mark.thorough_for("normal")
@pytest.mark.parametrize("law", LAWS)
def test_at_a_fine_grid_the_low_bits_are_uniform_where_float_noise_has_none(law):
    """σ = 2⁴⁴: float64 noise has no odd values beyond 2⁵³, and few of some residues before; exact noise has all."""
    found = LAWS[law][0](2.0**40, 64_000, bits(law))
    count = np.bincount(found % 64, minlength=64)
    assert ((count - 1000) ** 2 / 1000).sum() < stats.chi2.isf(1e-6, 63)


@pytest.mark.parametrize("law", [exact_sampling.NORMAL, exact_sampling.LAPLACE], ids=lambda law: law.name)
def test_what_is_decided_in_doubt_is_what_multiple_precision_says(law):
    """Where nothing is in doubt the two agree; at a scale that float64 cannot resolve all is in doubt."""
    source = bits(law.name)
    V = np.floor(source.words(40).astype(float) / 2**11)
    fast, doubtful = exact_sampling._fast(law, V.copy(), 1000.0)
    assert not doubtful.any()
    for v, k in zip(V, fast, strict=True):
        assert exact_sampling._decided(law, int(v), 1000.0, exact_sampling._fresh(source)(0)) == k
    assert exact_sampling._fast(law, V.copy(), 2.0**53)[1].all()


def test_few_are_in_doubt_and_those_near_a_half_are():
    V = np.floor(bits("doubt").words(100_000).astype(float) / 2**11)
    assert exact_sampling._fast(exact_sampling.NORMAL, V.copy(), 2.0**22)[1].mean() < 1e-3
    # the q at which f is (k + 1/2)/scale, to 53 bits: nothing there may be decided without more of them
    q = np.floor(stats.norm.sf((np.arange(50) + 0.5) / 8) * 2.0**54)
    assert exact_sampling._fast(exact_sampling.NORMAL, q, 8.0)[1].mean() > 0.9


@pytest.mark.parametrize("law", [exact_sampling.NORMAL, exact_sampling.LAPLACE], ids=lambda law: law.name)
def test_the_polynomials_are_within_the_error_that_is_proved_for_them(law):
    """On points of every octave; the remainder by intervals below."""
    mp = mpmath.mp
    centres, coefficients = exact_sampling.table(law)
    generator = np.random.default_rng(3)
    with mp.workprec(160):
        for e in range(exact_sampling.LEAST, exact_sampling.MOST + 1):
            for m in generator.uniform(0.5, 1, 3):
                v = np.floor(m * 2.0**e)
                found, exact = evaluated(law, v, centres, coefficients), mp.mpf(v) / mp.mpf(2) ** law.whole
                assert abs(law.tail(mp.mpf(found), mp) / exact - 1) * ratio(found, law) <= 2.0**-52 * (found + 1)


def evaluated(law, v, centres, coefficients):
    m, e = np.frexp(v)
    piece = int(m * 2 * exact_sampling.PIECES) + (int(e) - exact_sampling.LEAST - 1) * exact_sampling.PIECES
    return float(np.polyval(coefficients[::-1, piece], m - centres[piece]))


def ratio(x, law):
    """How far f moves where q is multiplied by 1 + s, over s: q/φ(x), or 1."""
    return 1.0 if law is exact_sampling.LAPLACE else stats.norm.sf(x) / stats.norm.pdf(x)


def remainder(law, piece, centres):
    """A bound on Taylor's remainder on a piece, by interval arithmetic: f's next coefficient at every point of it."""
    iv = mpmath.iv
    octave = piece // exact_sampling.PIECES + exact_sampling.LEAST - law.whole
    half = 1 / (4 * exact_sampling.PIECES)
    m = iv.mpf([centres[piece] - half, centres[piece] + half])
    k = exact_sampling.DEGREE + 1
    if law is exact_sampling.LAPLACE:
        return float((iv.mpf(half) / m).b) ** k / k
    slope = iv.mpf(2) ** octave * iv.sqrt(2 * iv.pi)
    with mpmath.mp.workprec(80):
        ends = [stats.norm.isf(float(centres[piece] + s * half) * 2.0**octave) for s in (1, -1)]
    f = [iv.mpf([ends[0] - 1e-9, ends[1] + 1e-9])]  # f on the piece, decreasing; scipy is right to far more than 1e-9
    g = [slope * iv.exp(f[0] ** 2 / 2)]
    for j in range(k):
        f.append(-g[j] / (j + 1))
        squares = [sum((g[a] * g[i - a] for a in range(i + 1)), iv.mpf(0)) for i in range(j + 1)]
        g.append(-sum((f[i] * squares[j - i] for i in range(j + 1)), iv.mpf(0)) / (j + 1))
    return float(abs(f[k]).b) * half**k


@pytest.mark.parametrize("law", [exact_sampling.NORMAL, exact_sampling.LAPLACE], ids=lambda law: law.name)
def test_taylors_remainder_is_below_two_to_the_minus_56(law):
    centres, _ = exact_sampling.table(law)
    pieces = range(0, len(centres), 37)
    assert max(remainder(law, piece, centres) for piece in pieces) <= 2.0**-56


@pytest.mark.slow
def test_taylors_remainder_on_every_piece():
    centres, _ = exact_sampling.table(exact_sampling.NORMAL)
    assert max(remainder(exact_sampling.NORMAL, piece, centres) for piece in range(len(centres))) <= 2.0**-56


def test_scales_by_entry_and_out_of_range():
    found = exact_sampling.normal(np.repeat([1.0, 1000.0], 5000), 10_000, bits("two"))
    assert found[:5000].std() == pytest.approx(np.sqrt(1 + 1 / 12), rel=0.05)
    assert found[5000:].std() == pytest.approx(1000, rel=0.05)
    assert abs(exact_sampling.normal(2.0**45, 1, bits("the largest"))[0]) > 2.0**35
    for scale in (0.0, -1.0, np.nan, 2.0**45 * (1 + 2.0**-52), 2.0**46):
        with pytest.raises(ValueError, match="scale"):
            exact_sampling.normal(scale, 1, SystemBits())


def test_samples_and_coins_have_their_laws():
    draws = Draws(bits("coins"))
    assert np.bincount(draws.integers(5, size=50_000)) == pytest.approx(10_000, rel=0.05)
    assert isinstance(draws.integers(2**63), int)
    heads = [draws.binomial(100, 0.3) for _ in range(2000)]
    assert np.mean(heads) == pytest.approx(30, abs=0.5)
    assert np.var(heads) == pytest.approx(21, rel=0.2)
    assert (draws.binomial(7, 1.0), draws.binomial(7, 0.0)) == (7, 0)
    subsets = [tuple(sorted(draws.choice(4, 2, replace=False, shuffle=False))) for _ in range(6000)]
    assert np.unique(subsets, axis=0, return_counts=True)[1] == pytest.approx(1000, rel=0.2)
    assert sorted(draws.permutation(50)) == list(range(50))
    orders = np.array([draws.permutation(3) for _ in range(6000)])
    assert np.unique(orders, axis=0, return_counts=True)[1] == pytest.approx(1000, rel=0.2)
    with pytest.raises(AttributeError):
        draws.standard_normal()


def test_integers_are_uniform_where_a_remainder_would_favour_the_small_ones():
    """Below 3·2⁶¹: a third of the words of 64 bits are beyond its multiples, and must be drawn again."""
    found = Draws(bits("remainder")).integers(3 * 2**61, size=4000)
    assert np.mean(found < 2**62) == pytest.approx(2 / 3, abs=0.03)  # 3/4, if they were kept


def test_the_system_gives_new_bits_each_time():
    assert len({*SystemBits().words(1000).tolist()}) == 1000
    assert not np.array_equal(SystemBits().words(4), SystemBits().words(4))


class Given:
    """One word, and then those of a source."""

    def __init__(self, first, source):
        self._first, self._source, self.more = first, source, 0

    def words(self, count):
        found, self._first = self._first, None
        self.more += found is None
        return self._source.words(count) if found is None else found


def test_a_choice_has_its_exact_law_and_in_doubt_more_digits_of_the_same_number_decide(monkeypatch):
    T, rate, n = np.array([5, 0, -3, 4, -400]), 0.7, 20_000
    source = bits("choice")
    found = np.bincount([exact_sampling.chosen(T, rate, source) for _ in range(n)], minlength=5)
    p = np.exp(rate * (T - 5.0))
    assert found[4] == 0
    assert stats.chisquare(found[:4], n * (p / p.sum())[:4]).pvalue > 1e-4
    firsts = [source.words(1) for _ in range(40)]
    plain = [exact_sampling.chosen(T, rate, Given(first, source)) for first in firsts]
    monkeypatch.setattr(exact_sampling.np, "searchsorted", lambda *_, **__: (0, 1))
    doubted = [Given(first, source) for first in firsts]
    assert [exact_sampling.chosen(T, rate, one) for one in doubted] == plain
    assert all(one.more for one in doubted)


def test_a_piece_is_looked_up_by_its_middle():
    """Taylor's remainder is for offsets of half a piece, 1/128 of an octave."""
    centres, _ = exact_sampling.table(exact_sampling.LAPLACE)
    first = centres[: exact_sampling.PIECES]
    ends = np.linspace(0.5, 1, exact_sampling.PIECES + 1)
    np.testing.assert_array_equal(first, (ends[:-1] + ends[1:]) / 2)
    np.testing.assert_array_equal(centres, np.tile(first, exact_sampling.MOST - exact_sampling.LEAST + 1))


@pytest.mark.parametrize("p", [1, 2, 4, 8])
def test_a_choice_is_doubted_within_four_times_the_error_that_is_proved_and_nowhere_else(p, monkeypatch):
    """Of p equal scores the border after j is at the share j/p of 2⁵³; float64 is off by p·2⁻⁴⁴ of their sum."""
    asked = []
    monkeypatch.setattr(exact_sampling, "_chosen_by_digits", lambda below, rate, V, further: asked.append(V) or -1)
    T, error = np.zeros(p, dtype=np.int64), 2**9 * p
    for j in range(1, p):
        border = j * 2**53 // p
        for V, found in (
            (border - error - 2, j - 1), (border - error + 1, -1), (border - 1, -1), (border, -1),
            (border + error - 1, -1), (border + error + 1, j),
        ):  # fmt: skip
            word = np.array([V << 11], dtype=np.uint64)
            assert exact_sampling.chosen(T, 1.0, Given(word, bits("none"))) == found, V - border
    top = np.array([2**64 - 1], dtype=np.uint64)
    assert exact_sampling.chosen(T, 1.0, Given(top, bits("none"))) == -1  # the end of the last is a border, too
    assert exact_sampling.chosen(T, 1.0, Given(np.array([2**60], dtype=np.uint64), bits("none"))) == 0
