import math

import numpy as np
import pytest
from scipy import stats

from dpbench.study.welch import compare


def sample(mean, sd, n):
    """n values with exactly this mean and standard deviation."""
    x = np.linspace(-1, 1, n)
    return mean + sd * (x - x.mean()) / x.std(ddof=1)


def test_close_means_with_small_spread_match():
    assert compare(sample(0.731, 0.02, 5), 0.729, 0.028, 5).word == "match"


def test_far_means_differ():
    assert compare(sample(0.60, 0.02, 5), 0.729, 0.028, 5).word == "differs"


def test_a_wide_spread_is_no_agreement():
    match = compare(sample(0.75, 0.3, 5), 0.729, 0.28, 5)
    assert match.word == "not comparable"


def test_a_significant_but_negligible_difference_is_a_match():
    ours = sample(1.01, 1e-4, 20)
    assert stats.ttest_1samp(ours, 1.0).pvalue < 1e-6
    assert compare(ours, 1.0).word == "match"
    assert compare(ours, 1.0, margin=0.005).word == "differs"


def test_a_wider_margin_counts_only_where_no_difference_is_seen():
    wide = sample(0.75, 0.03, 5)
    assert compare(wide, 0.729, 0.028, 5, margin=0.05).word == "not comparable"
    assert compare(wide, 0.729, 0.028, 5, margin=0.05, wider=0.1).word == "match"
    assert compare(sample(0.77, 0.01, 5), 0.729, 0.01, 5, margin=0.05, wider=0.1).word == "differs"


def test_counts_may_be_equivalent_to_0_within_an_absolute_margin():
    assert compare([0, 0, 1, 0, 0], 0.0, 0.0, 5, least=1.0).word == "match"
    assert compare([3, 3, 4, 3, 3], 0.0, 0.0, 5, least=1.0).word == "differs"


@pytest.mark.parametrize(("std", "n"), [(0.05, 7), (None, 1)])
def test_p_values_are_those_of_scipy(std, n):
    ours = sample(1.03, 0.04, 6)
    match = compare(ours, 1.0, std, n)
    if std:
        theirs = sample(1.0, std, n)
        welch = stats.ttest_ind(ours, theirs, equal_var=False).pvalue
        low = stats.ttest_ind(ours, theirs - 0.1, equal_var=False, alternative="greater").pvalue
        high = stats.ttest_ind(ours, theirs + 0.1, equal_var=False, alternative="less").pvalue
    else:
        welch = stats.ttest_1samp(ours, 1.0).pvalue
        low = stats.ttest_1samp(ours, 0.9, alternative="greater").pvalue
        high = stats.ttest_1samp(ours, 1.1, alternative="less").pvalue
    assert f"Welch p = {welch:.2g}, equivalence within ±0.1 p = {max(low, high):.2g}" in match.numbers


def test_error_rates():
    """Of equal means at the edge of the margin at most 5 % are a match; of equal means at most 5 % differ."""
    rng = np.random.default_rng(0)
    words = [compare(rng.normal(1.1, 0.05, 5), 1.0).word for _ in range(1500)]
    assert words.count("match") / 1500 < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 1500)
    words = [compare(rng.normal(1.0, 0.3, 5), rng.normal(1, 0.3, 5).mean(), 0.3, 5).word for _ in range(1500)]
    assert words.count("differs") / 1500 < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 1500)


def test_what_cannot_be_compared():
    assert compare([1.0], 1.0).word == "not comparable"
    assert compare([1.0, np.inf, 1.1], 1.0).numbers == "published 1; ours has 2 finite values"
    assert compare([1.0, 1.1], None).word == "not comparable"
    with pytest.raises(ValueError, match="margin"):
        compare([1.0, 1.1], 1.0, margin=0)


def test_without_any_spread_the_margin_alone_decides():
    assert compare([29.09, 29.09], 29.1) == ("match", compare([29.09, 29.09], 29.1).numbers)
    assert compare([5.0, 5.0], 4.0).word == "differs"
