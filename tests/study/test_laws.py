"""The laws on samples of known law: the error rates, and the page's power table."""

import math

import numpy as np
import pytest
from scipy import stats

from dpbench.study import laws


def papers(cells, N, seed):
    """Standard normal runs of ours, (cells, N), and the five of each paper."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((cells, N)), rng.standard_normal((cells, 5))


@pytest.mark.thorough_for("100")
@pytest.mark.parametrize("N", [100, 20])
def test_one_true_cell_in_twenty_differs(N, monkeypatch):
    monkeypatch.setattr(laws, "DRAWS", 2000)
    ours, theirs = papers(4000, N, 1)
    for chance, published in ((laws.mean_chance, theirs.mean(-1)), (laws.std_chance, theirs.std(-1, ddof=1))):
        assert (chance(ours, published, 5) < 0.05).mean() == pytest.approx(0.05, abs=0.01)


def test_the_plain_rule_would_have_called_far_more_of_them_different():
    """What the widening is for: at N = 20, our mean taken as the truth."""
    ours, theirs = papers(4000, 20, 2)
    z = np.abs(theirs.mean(-1) - ours.mean(-1)) / (ours.std(-1, ddof=1) / math.sqrt(5))
    assert (z > 1.96).mean() > 0.08


@pytest.mark.parametrize("gap", [0.0, 1.0])
def test_a_gap_of_the_resolution_is_seen_in_nine_of_ten(gap):
    ours, theirs = papers(3000, 20, 3)
    sizes = np.array([laws.resolution(one, 5) for one in ours])
    chances = laws.mean_chance(ours, theirs.mean(-1) + gap * sizes.mean(), 5)
    assert (chances < laws.LEVEL).mean() == pytest.approx(laws.SEEN if gap else laws.LEVEL, abs=0.06)


@pytest.mark.parametrize(
    ("variation", "N", "k", "most"), [(0.3, 20, 20, 0.08), (0.6, 20, 5, 0.11), (1.2, 100, 5, 0.09)]
)
def test_skewed_runs_differ_about_as_often_as_they_may(variation, N, k, most, monkeypatch):
    """Lognormal errors: with a coefficient of variation above .6 a verdict asks for 100 runs."""
    monkeypatch.setattr(laws, "DRAWS", 2000)
    rng, s = np.random.default_rng(8), math.sqrt(math.log1p(variation**2))
    ours, theirs = (np.exp(s * rng.standard_normal((2000, n))) for n in (N, k))
    assert (laws.mean_chance(ours, theirs.mean(-1), k) < laws.LEVEL).mean() <= most


def test_the_pooled_ratio_is_over_curves_and_needs_four():
    rng = np.random.default_rng(9)

    def words(gap, curves, cells=3):
        found = []
        for _ in range(300):
            logs = math.log1p(gap) + 0.06 * rng.standard_normal((curves, 1)) + np.zeros((1, cells))
            found.append(laws.pooled({str(i): np.exp(one).tolist() for i, one in enumerate(logs)}).word)
        return [found.count(word) / len(found) for word in ("match", "differs", "cannot tell")]

    assert words(0.0, 22) == pytest.approx([1, 0, 0], abs=0.03)
    assert words(0.10, 22) == pytest.approx([0.02, 0.98, 0], abs=0.04)
    assert words(0.0, 6) == pytest.approx([0.76, 0.01, 0.22], abs=0.08)
    assert words(0.10, 6) == pytest.approx([0.03, 0.86, 0.12], abs=0.08)
    assert laws.pooled({str(i): [1.0] for i in range(3)}) is None


def test_intervals_hold_the_level():
    rng = np.random.default_rng(10)
    inside = [one.low <= 0 <= one.high for one in map(laws.mean_interval, rng.standard_normal((2000, 5)))]
    assert np.mean(inside) == pytest.approx(1 - laws.LEVEL, abs=0.015)
    assert laws.share_interval(0, 27).high == pytest.approx(1 - 0.025 ** (1 / 27))
    assert (laws.share_interval(0, 27).low, laws.share_interval(5, 5).high) == (0.0, 1.0)
    assert [laws.Interval(2.0, 1.5, 3.0).beyond(bar) for bar in (1.0, 2.0, 4.0)] == [True, None, False]
    assert laws.Interval(2.0, 1.5, 3.0).beyond(4.0, below=True)
    # A bar of numpy's: what it is compared to is no bool of Python's, and `is not` told the opposite.
    assert [laws.Interval(2.0, 1.5, 3.0).beyond(np.float64(bar), below=True) for bar in (1.0, 4.0)] == [False, True]
    assert laws.drawn_interval(0.5, np.linspace(0, 1, 1001)) == pytest.approx((0.5, 0.025, 0.975))


def test_a_ratio_of_means_has_the_relative_errors_of_both():
    value, low, high = laws.ratio_interval(2.0, 0.1, 4.0, 0.4)
    spread = math.exp(1.959964 * math.hypot(0.05, 0.1))
    assert (value, low, high) == pytest.approx((0.5, 0.5 / spread, 0.5 * spread), rel=1e-6)
    assert laws.ratio_interval(2.0, 0.0, 4.0, 0.0) == (0.5, 0.5, 0.5)


def test_few_runs_are_judged_by_student_and_fisher():
    ours, _ = papers(1, 20, 4)
    t = stats.t.sf(abs(0.7 - ours.mean()) / (ours.std(ddof=1) * math.sqrt(1 / 5 + 1 / 20)), 19)
    assert laws.mean_chance(ours, 0.7, 5)[0] == pytest.approx(2 * t)
    for printed in (1.6, 0.5):  # a larger deviation than ours, and a smaller one
        ratio = (printed / ours.std(ddof=1)) ** 2
        assert laws.std_chance(ours, printed, 5)[0] == pytest.approx(
            2 * min(stats.f.sf(ratio, 4, 19), stats.f.cdf(ratio, 4, 19))
        )


def test_a_printed_number_stands_for_its_rounding_interval():
    ours = np.full((1, 100), 0.7104)
    assert laws.mean_chance(ours, 0.71, 5, slack=0.0005)[0] == 1
    assert laws.mean_chance(ours, 0.71, 5)[0] < 0.001
    assert laws.mean_chance(np.full((1, 20), 0.7104), 0.71, 5)[0] == 0


def test_counts_have_exact_laws():
    happened = [1] * 30 + [0] * 70
    law = stats.binom.pmf(np.arange(6), 5, 0.3)
    assert laws.count_chance(happened, 5, 5) == pytest.approx(law[5])
    assert laws.count_chance(happened, 1, 5) == pytest.approx(1)
    assert laws.all_chance(happened, True, 5) == pytest.approx(0.3**5)
    assert laws.all_chance(happened, False, 5) == pytest.approx(1 - 0.3**5)


def test_counts_that_are_all_the_same_here():
    """One of four published runs is the odd one of 24 with chance 4/24; three of five of 25 with C(5, 3)/C(25, 3)."""
    assert laws.odd_ones_chance([0.0] * 20, (0.25, 0.005), (0.5, 0.0005), 4) == pytest.approx(4 / 24)
    assert laws.odd_ones_chance([0.0] * 20, (1.0, 0.05), (1.0, 0.0005), 5) == pytest.approx(10 / 2300)
    assert laws.odd_ones_chance([0.0] * 20, (6.5, 0.05), (1.732, 0.0005), 4) == pytest.approx(1 / math.comb(24, 4))
    assert laws.odd_ones_chance([375.0] * 20, (375.0, 0.05), (0.0, 0.0005), 5) == 1


@pytest.mark.parametrize("share", [0.02, 0.1])
def test_the_fewest_odd_ones_are_never_more_than_there_are(share):
    rng = np.random.default_rng(5)
    for _ in range(200):
        theirs = np.where(rng.random(5) < share * 4, rng.integers(1, 9, 5), 0)
        odd = int(np.count_nonzero(theirs))
        chance = laws.odd_ones_chance([0.0] * 20, (theirs.mean(), 0.05), (theirs.std(ddof=1), 0.0005), 5)
        assert chance >= math.comb(5, odd) / math.comb(25, odd) * (1 - 1e-12)


def test_the_deviation_of_counts_is_not_fishers():
    """17 of 20 runs took one Hessian: that all of four did is what four in two draw, and F would call it impossible."""
    ours = np.array([1.0] * 17 + [2.0] * 3)
    assert laws.std_chance(ours, 0.0, 4, slack=0.0005) < 0.001
    assert laws.std_chance(ours, 0.0, 4, slack=0.0005, count=True) > 0.5
    assert laws.std_chance(ours, 3.0, 4, slack=0.0005, count=True) < 0.01


def test_rounded_means():
    ours = np.array([1] * 50 + [0] * 50)
    # Means of five round to 0 or 1 with equal chance.
    assert laws.rounded_chance(ours, 1, 5) > 0.4
    assert laws.rounded_chance(ours, 3, 5) < 0.001


def test_benjamini_and_hochberg():
    assert laws.benjamini_hochberg([0.001, 0.04, 0.9, 0.011]).tolist() == [True, False, False, True]
    assert laws.benjamini_hochberg([0.03, 0.04, 0.001]).all()  # .05/3 for each would leave the last alone
    assert laws.benjamini_hochberg([]).tolist() == []
    assert laws.benjamini_hochberg([0.04]).tolist() == [True]


def test_which_law_a_number_of_runs_has():
    """From a hundred runs on the bootstrap's, whose chances are counts of its draws; with fewer Student's."""
    ours = np.random.default_rng(11).standard_normal((1, 100))
    chance = laws.mean_chance(ours, 0.5, 5)[0]
    draws = chance / 2 * 20_001
    assert draws == pytest.approx(round(draws), abs=1e-6)
    assert laws.mean_chance(ours, 100.0, 5)[0] == pytest.approx(2 / 20_001, rel=1e-9)
    few = ours[:, :99]
    error = few.std(ddof=1) * math.sqrt(1 / 5 + 1 / 99)
    assert laws.mean_chance(few, 0.5, 5)[0] == pytest.approx(2 * stats.t.sf((0.5 - few.mean()) / error, 98))
    z = stats.norm.isf(0.025) + stats.norm.isf(0.1)
    assert laws.resolution(few[0], 5) == pytest.approx(z * error)
    assert laws.errors() == pytest.approx(1.959964, abs=1e-6)
    assert laws.errors(5) == pytest.approx(2.575829, abs=1e-6)  # one per cent


def test_an_interval_is_beyond_its_bar_or_not_or_open():
    one = laws.Interval(2.0, 1.0, 3.0)
    assert [one.beyond(bar) for bar in (0.9, 1.0, 3.0, 3.1)] == [True, None, None, False]
    assert [one.beyond(bar, below=True) for bar in (0.9, 1.0, 3.0, 3.1)] == [False, None, None, True]
    alone = laws.Interval(2.0, math.nan, math.nan)
    assert [alone.beyond(bar) for bar in (1.0, 3.0)] == [True, False]
    assert laws.Interval(math.nan, 1.0, 3.0).beyond(9.0) is None
    assert (str(one), str(alone)) == ("2 [1, 3]", "2 [one seed]")
    assert str(laws.Pooled(one, "match", 4, 9)) == "2 [1, 3] (match; 9 values in 4 curves)"
    single = laws.mean_interval([2.0])
    assert (single.low, single.high) == (-math.inf, math.inf)
    assert math.isnan(laws.mean_interval([]).value)
    assert math.isnan(laws.share_interval(0, 0).value)
