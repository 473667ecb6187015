import numpy as np
import pytest

from dpbench.study.printed import EQUAL, OTHER, TIE, Number, agreement, chance, roundings


@pytest.mark.parametrize(
    ("value", "text", "found"),
    [
        ("0.0205", "0.021", TIE),  # half up gives it, half to even does not
        ("0.0205", "0.020", TIE),
        ("0.0205", "0.02", EQUAL),  # at two decimals there is no tie
        ("0.0205", "0.022", OTHER),
        (0.0205, "0.021", TIE),  # the double lies beside the tie, the decimal string on it
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
    assert chance(Number("loss", "1.00", k=1), middle, None)[0] > 0.9  # half of ours are above it, as they should be
