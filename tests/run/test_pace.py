import math

import pytest

from dpbench.run.pace import Pace, seconds


def test_a_pace_counts_runs_where_flops_say_nothing():
    """99 % of the flops in two minutes, then 3,239 small runs of 6 seconds each: hours are left, not a second."""
    now = [0.0]
    pace = Pace(1.0, 3360, clock=lambda: now[0])
    assert math.isinf(pace.left)
    now[0] += 120
    pace.ended(0.99, 120)
    for _ in range(3):
        now[0] += 6
        pace.ended(0.01 / 3240, 1)
    assert pace.left == pytest.approx(6 * 3237, rel=0.25)
    assert pace.share < 0.02


def test_a_pace_of_equal_runs_is_exact_and_ends_at_nothing():
    now = [0.0]
    pace = Pace(10.0, 10, clock=lambda: now[0])
    for done in range(1, 11):
        now[0] += 2
        pace.ended(1.0, 1)
        assert pace.left == pytest.approx(2 * (10 - done), abs=1e-9)
        assert pace.share == pytest.approx(done / 10)


def test_costs_of_both_kinds_are_told_to_a_factor_of_two():
    now = [0.0]
    pace = Pace(100.0, 100, clock=lambda: now[0])
    for work, runs in ((50.0, 1), (1.0, 20), (20.0, 10)):
        now[0] += 3 * work + 0.5 * runs
        pace.ended(work, runs)
    assert 0.5 < pace.left / (3 * 29 + 0.5 * 69) < 2


def test_an_estimate_sees_long_runs():
    assert seconds(1e12 * 4e6, 1e12, 8) > 1e6
    assert seconds(1e8, 100, 2) < 1
