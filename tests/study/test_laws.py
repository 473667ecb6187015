"""The laws on samples of known law: the error rates, and the page's power table."""

import math

import numpy as np
import pytest
from scipy import stats

from dpbench.study import laws

GAPS = (0.0, 0.03, 0.05, 0.07, 0.1)
POWER = {  # sd of a run → chance of a match by gap: mean .6, means of five, 100 of ours
    0.005: (0.93, 0.0, 0.0, 0.0, 0.0),
    0.01: (0.94, 0.05, 0.0, 0.0, 0.0),
    0.02: (0.95, 0.59, 0.14, 0.01, 0.0),
    0.03: (0.88, 0.75, 0.46, 0.19, 0.02),
}


def papers(cells, N, seed):
    """Standard normal runs of ours, (cells, N), and the five of each paper."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((cells, N)), rng.standard_normal((cells, 5))


@pytest.mark.thorough_for("100")
@pytest.mark.parametrize("N", [100, 20])
def test_one_true_cell_in_twenty_differs(N):
    ours, theirs = papers(4000, N, 1)
    for chance, published in ((laws.mean_chance, theirs.mean(-1)), (laws.std_chance, theirs.std(-1, ddof=1))):
        assert (chance(ours, published, 5, draws=2000) < 0.05).mean() == pytest.approx(0.05, abs=0.01)


def test_the_plain_rule_would_have_called_far_more_of_them_different():
    """What the widening is for: at N = 20, our mean taken as the truth."""
    ours, theirs = papers(4000, 20, 2)
    z = np.abs(theirs.mean(-1) - ours.mean(-1)) / (ours.std(-1, ddof=1) / math.sqrt(5))
    assert (z > 1.96).mean() > 0.08


def chances_of_a_match(sd, cells, draws=2000):
    base, printed = papers(cells, 100, 3)
    found = []
    for gap in GAPS:
        ours, theirs = 0.6 + sd * base, 0.6 * (1 + gap) + sd * printed
        least = np.minimum(
            laws.mean_chance(ours, theirs.mean(-1), 5, draws=draws),
            laws.std_chance(ours, theirs.std(-1, ddof=1), 5, draws=draws),
        )
        wide = laws.half_width(ours, 5) > 0.05 * np.minimum(ours.mean(-1), theirs.mean(-1))
        found.append(float(((least >= 0.05 / 2) & ~wide).mean()))
    return found


@pytest.mark.parametrize("sd", [0.02])
def test_the_power_of_a_match(sd):
    assert chances_of_a_match(sd, 800, 1000) == pytest.approx(POWER[sd], abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("sd", POWER)
def test_the_power_table(sd):
    assert chances_of_a_match(sd, 4000) == pytest.approx(POWER[sd], abs=0.03)


def test_a_wide_spread_is_no_agreement():
    assert max(chances_of_a_match(0.06, 300, 500)) < 0.02


def test_few_runs_are_judged_by_student_and_fisher():
    ours, _ = papers(1, 20, 4)
    t = stats.t.sf(abs(0.7 - ours.mean()) / (ours.std(ddof=1) * math.sqrt(1 / 5 + 1 / 20)), 19)
    assert laws.mean_chance(ours, 0.7, 5)[0] == pytest.approx(2 * t)
    ratio = (1.6 / ours.std(ddof=1)) ** 2
    assert laws.std_chance(ours, 1.6, 5)[0] == pytest.approx(
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
