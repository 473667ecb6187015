import numpy as np
import pytest

from dpbench.study import laws
from dpbench.study.printed import (
    ALL,
    COUNT,
    EQUAL,
    FIXED,
    OTHER,
    ROUNDED,
    STD,
    TIE,
    Number,
    agreement,
    agrees,
    chance,
    missed,
    roundings,
)


@pytest.mark.parametrize(
    ("value", "text", "found"),
    [
        ("0.0205", "0.021", TIE),  # half up gives it, half to even does not
        ("0.0205", "0.020", TIE),
        ("0.0205", "0.02", EQUAL),  # at two decimals there is no tie
        ("0.0205", "0.022", OTHER),
        (0.0205, "0.021", TIE),  # the double lies beside the tie, the decimal string on it
        (0.02050000000001, "0.021", TIE),  # the 13th digit is an error of a sum
        (0.0205000000001, "0.021", EQUAL),
        (0.62049, "0.620", EQUAL),
        (0.7105, "0.710", TIE),
        (85.25, "85.25", EQUAL),
        (0.000564, "5.6e-4", EQUAL),
        (-0.5, "0", TIE),
    ],
)
def test_rounding_on_the_decimal_string(value, text, found):
    assert agreement(value, text) == found


def test_both_rules_are_named_at_a_tie():
    assert roundings("0.0205", "0.021") == {"half to even": "0.020", "half up": "0.021"}


@pytest.mark.parametrize("text", ["×", "nan", "inf", ""])
def test_what_is_no_printed_number(text):
    with pytest.raises(ValueError, match="printed number"):
        agreement(1.0, text)


def test_runs_beyond_a_printed_mean_are_none_of_the_papers_but_where_it_is_of_one_run():
    ours = np.append(np.linspace(0.9, 1.1, 19), 50.0)
    assert chance(Number("loss", "1.00", k=20), ours, None)[0] < 0.5  # no run of 20 with this mean is 50
    middle = np.linspace(0.9, 1.1, 20)
    found, said = chance(Number("loss", "1.00"), middle, None)
    assert found > 0.9  # half of ours are above it, as they should be
    assert "published 1.00 (k = 1)" in said


def test_a_run_of_k_times_the_printed_mean_is_among_the_papers_to_the_end_of_its_rounding():
    """Five runs of a mean of 1.00, which may be 1.005: one of them may be 5.02, and none 5.03."""
    for largest, kept in ((5.02, True), (5.03, False)):
        ours = np.append(np.linspace(0.9, 1.1, 19), largest)
        alone = laws.mean_chance(ours if kept else ours[:-1], 1.0, 5, slack=0.005)
        found = chance(Number("loss", "1.00", k=5), ours, None)[0]
        assert found == pytest.approx(alone * (1 if kept else 0.95**5))


TEN = np.linspace(0.9, 1.1, 10)
SPREAD_WIDE = "ours 0.94 (sd 1.7, N = 5), published 1.05 (k = 5), chance 0.93 (spread wide: judge it by 100 seeds)"
ON_THE_BETTER_SIDE = "chance < .001, but on the better side of ours, where the least of a grid lies"


@pytest.mark.parametrize(
    ("number", "ours", "tuned", "said"),
    [
        (Number("x", "yes", ALL, k=5), [1, 1, 1, 0], None, "ours 3 of 4, published yes, chance 0.24"),
        (Number("x", "2", COUNT, k=5), [1, 0, 0, 0], None, "ours 1 of 4, published 2 of 5, chance 0.6"),
        (Number("x", "12", FIXED), [12, 12], None, "ours 12, published 12"),
        (Number("x", "1.00", k=3), [1, np.inf, np.inf], None, "2 of 3 of ours diverged"),
        (Number("x", "5", ROUNDED, k=3), [4, 5, 5, 6, 5], None, "ours 5 (sd 0.71, N = 5), published 5, chance 1"),
        (Number("x", "0.10", STD, k=5), TEN, None, "ours sd 0.0673, published 0.10, chance 0.36"),
        (Number("x", "1.05", k=5), TEN, None, "ours 1 (sd 0.067, N = 10), published 1.05 (k = 5), chance 0.25"),
        (Number("x", "9.00", k=5), TEN, None, "ours 1 (sd 0.067, N = 10), published 9.00 (k = 5), chance < .001"),
        (Number("x", "1.05", k=5), [0.1, 0.2, 0.1, 4.0, 0.3], None, SPREAD_WIDE),
        (Number("x", "1.05", k=5), [0.3, 0.3, 1.0, 1.8, 2.2], None,
         "ours 1.12 (sd 0.86, N = 5), published 1.05 (k = 5), chance 0.91 (spread wide: judge it by 100 seeds)"),
        (Number("x", "1.05", k=5), [0.6, 0.5, 1.0, 1.8, 1.8], None,
         "ours 1.14 (sd 0.63, N = 5), published 1.05 (k = 5), chance 0.84"),  # no more than .6 of the mean
        (
            Number("x", "0.80", k=5, lowest=True), TEN, None,
            f"ours 1 (sd 0.067, N = 10), published 0.80 (k = 5), {ON_THE_BETTER_SIDE}",
        ),
        (
            Number("x", "0.80", k=5, lowest=True), TEN, TEN - 0.2,
            "ours 1 (sd 0.067, N = 10), published 0.80 (k = 5), chance 1 by the law of our tuned minimum (0.8)",
        ),
        (
            Number("x", "1.10", k=5, lowest=True), TEN, None,  # on the worse side nothing is excused
            "ours 1 (sd 0.067, N = 10), published 1.10 (k = 5), chance 0.03",
        ),
    ],
)  # fmt: skip
def test_a_reader_sees_ours_theirs_of_how_many_and_the_chance(number, ours, tuned, said):
    assert chance(number, np.asarray(ours, dtype=float), tuned)[1] == f"x: {said}"


def test_a_mean_and_a_deviation_of_counts_that_never_differed_here_are_one_event():
    mean, sd = Number("T", "3", k=5, count=True), Number("T", "0.5", STD, k=5, count=True)
    said = [chance(one, np.full(6, 3.0), None, (mean, sd)) for one in (mean, sd)]
    assert said[0][0] == said[1][0] == pytest.approx(2 / 11)  # 2 of their 5 were others: C(5, 2)/C(11, 2)
    assert [words for _, words in said] == [
        "T: ours 3 in all of 6, published 3 (k = 5), chance 0.18",
        "T: ours 3 in all of 6, published sd 0.5 (k = 5), chance 0.18",
    ]


@pytest.mark.parametrize(
    ("number", "ours", "found", "said"),
    [
        (Number("x", "yes", ALL, k=2), [1, 1], EQUAL, "2 of 2, published yes"),
        (Number("x", "×", ALL, k=2), [1, 0], EQUAL, "1 of 2, published ×"),
        (Number("x", "yes", ALL, k=2), [1, 0], OTHER, "1 of 2, published yes"),
        (Number("x", "1.5", k=2), [1, 2], EQUAL, "1.5, published 1.5"),
        (Number("x", "1.00", k=3), [1, 1], OTHER, "2 runs, published of 3"),
        (Number("x", "1.00", k=2), [1, np.inf], OTHER, "inf, published 1.00"),
        (Number("x", "0.020", k=2), [0.02, 0.021], TIE,
         "a rounding tie (0.0205: half to even gives 0.020, half up gives 0.021), published 0.020"),
        (Number("x", "0.106", STD, k=2), [0.1, 0.25], EQUAL, "0.106066, published 0.106"),
        (Number("x", "2", COUNT, k=2), [1, 1], EQUAL, "2, published 2"),
        (Number("x", "3", FIXED), [3, 3, 3], EQUAL, "3, published 3"),
        (Number("x", "3", FIXED), [3, 3, 4], OTHER, "3.33333, published 3"),
    ],
)  # fmt: skip
def test_the_published_stream_gives_the_printed_number_or_it_is_said_what_it_gives(number, ours, found, said):
    """A reader of "not exact" sees at once whether a digit, a rounding rule or a run is what differs."""
    assert agrees(number, ours) == found
    assert missed(number, ours) == f"x: {said}"
