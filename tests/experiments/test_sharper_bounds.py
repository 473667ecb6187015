"""The table of the sharper bounds: known numbers, and where the alternative is the better one."""

import math

import pytest

from dpbench.experiments.leaderboard.sharper import bounds


@pytest.fixture(scope="module")
def found():
    return {(one.method, one.what, epsilon): pair for one, epsilon, pair in bounds()}


def of(found, method, what, epsilon):
    (pair,) = (pair for (m, w, e), pair in found.items() if m == method and w.startswith(what) and e == epsilon)
    return pair


@pytest.mark.thorough_for("0.1-*")
@pytest.mark.parametrize(
    ("epsilon", "before", "after"), [(0.1, 163.9, 103.0), (1.0, 16.85, 11.23), (10.0, 1.693, 1.330)]
)
def test_aop(found, epsilon, before, after):
    assert of(found, "aop", "b,", epsilon) == pytest.approx((before, after), rel=1e-3)


@pytest.mark.parametrize(("epsilon", "any_loss", "one_row"), [(0.1, 114.1, 51.5), (1.0, 12.72, 5.61)])
def test_aop_of_other_losses_and_under_add_remove(found, epsilon, any_loss, one_row):
    assert of(found, "aop, any other convex loss", "b,", epsilon)[1] == pytest.approx(any_loss, rel=0.02)
    assert of(found, "aop, add/remove", "b,", epsilon)[1] == pytest.approx(one_row, rel=2e-3)


def test_dp_sgd_and_the_hessian_of_loss_a(found):
    assert of(found, "dp-sgd", "sum", 1.0) == pytest.approx((15.31, 7.10), rel=1e-3)
    assert of(found, "the same on samples of fixed size", "sum", 1.0) == pytest.approx((15.31, 7.90), rel=1e-3)
    before, after = of(found, "opt, dp-tr: loss A", "one Hessian", 1.0)
    assert before / after == pytest.approx(8 * math.sqrt(105) / math.sqrt(2))


def test_adassp_draws_what_the_table_says(found):
    from tests.algorithms.test_sharper import OTHER, small_problem, tight

    run, _ = tight("adassp", small_problem(loss="squared"), relation=OTHER)
    drawn = {row["label"]: float(row["sensitivity"]) for row in run.mechanisms.ledger.summary()}
    for label, what in (("eigenvalue", "λ_min"), ("gram", "XᵀX")):
        before, after = of(found, "adassp", what, 1.0)
        assert after / before == pytest.approx(drawn[label] / 2, rel=1e-3)


def test_nothing_is_worse_but_what_says_so(found):
    worse = {key for key, (before, after) in found.items() if after > before * (1 + 1e-9)}
    assert {(method, what.split(",")[0]) for method, what, _ in worse} == {
        ("aop", "output"),
        ("dp-gd-last", "last iterate"),
    }
    slowest = of(found, "dp-gd-last", "last iterate, slowest", 1.0)
    assert slowest[0] == pytest.approx(slowest[1], rel=1e-9)
    assert math.isinf(of(found, "dp-newton-minibatch, add", "direction", 0.1)[0])
