"""The probes measure what they say: against closed forms."""

import json
import math

import numpy as np
import pytest

from dpbench.privacy.accounting import get
from dpbench.problems import Problem
from dpbench.run import probes
from tests.algorithms.conftest import run, small_problem


def linear(n=20, d=4):
    """f = <e₁, x> around x = (10, 0, …): GRAD has variance 1 + (1 - 2)/d at d directions, see below."""
    return Problem(np.tile(np.eye(d)[0], (n, 1)), np.zeros(n), loss="phase", row_bound=1.0)


def test_variance_of_grad_on_a_linear_loss():
    """g = mean_j d u_j u_jᵀ a over d directions: E‖d u uᵀ a‖² = d, so the variance is (d - 1)/d for ‖a‖ = 1."""
    d, start = 4, 10.0 * np.eye(4)[:1]
    result = run("probe-estimator", linear(d=d), start=start, draws=4000)
    assert result.columns["bound"] == [16 * d]
    assert abs(result.columns["measured"][0] - (d - 1) / d) < 4.5 * result.columns["measured_error"][0]
    four = run("probe-estimator", linear(d=d), start=start, draws=4000, b=4)
    assert abs(four.columns["measured"][0] - (d - 1) / d / 4) < 4.5 * four.columns["measured_error"][0]


def test_variance_of_diff_on_a_linear_loss():
    """d u <a, x - y>/δ, the same for all rows: variance <a, x - y>²/δ² times that of the mean of d directions, d."""
    start = 10.0 * np.eye(4)[:1]
    result = run("probe-estimator", linear(), start=start, estimator="diff", draws=4000, distance=0.5)
    assert result.columns["bound"] == [16 * 4 * 0.25]
    assert result.columns["measured"][0] <= 4 * 0.25


@pytest.mark.parametrize("estimator", ["grad", "diff"])
def test_bias_is_within_chance_and_a_wrong_estimator_is_not(estimator, monkeypatch):
    problem = small_problem(n=50, loss="ramp")
    options = {"estimator": estimator, "quantity": "bias", "distance": 1.0, "draws": 4000}
    start = np.array([[0.4, -0.3, 0.2, 0.1, -0.2]]) if estimator == "grad" else np.zeros((1, 5))
    right = run("probe-estimator", problem, start=start, **options).columns
    assert right["measured"][0] < 2.5 * right["measured_error"][0]
    from dpbench.algorithms import zeroth_order

    original = zeroth_order._mean_difference  # compiled or not
    monkeypatch.setattr(zeroth_order, "_mean_difference", lambda *arguments: 3 * original(*arguments))
    wrong = run("probe-estimator", problem, start=start, **options).columns
    assert wrong["measured"][0] > 2.5 * wrong["measured_error"][0]


@pytest.mark.parametrize("t", [1, 6, 7])
def test_noise_of_the_tree_and_naive_noise(t):
    problem, T, epsilon = small_problem(loss="ramp"), 8, 2.0
    tree = run("probe-noise", problem, epsilon=epsilon, T=T, t=t, draws=4000)
    rho = tree.mechanisms.budget.rho
    variance = 4 * (4 * problem.d / T) ** 2 / (2 * rho)  # h = 4
    expected = t.bit_count() * problem.d * variance
    assert abs(tree.columns["measured"][0] - expected) < 4.5 * tree.columns["measured_error"][0]
    assert tree.columns["bound"][0] == pytest.approx((math.floor(math.log2(t)) + 1) * problem.d * variance)
    naive = run("probe-noise", problem, epsilon=epsilon, T=T, t=t, draws=4000, mechanism="naive")
    expected = problem.d * problem.d**2 / (2 * rho)
    assert naive.columns["bound"][0] == pytest.approx(expected)
    assert abs(naive.columns["measured"][0] - expected) < 4.5 * naive.columns["measured_error"][0]


def test_the_kinks_probe_notes_what_its_oracle_is_off_by():
    """Right and wrong oracles at the same coins: the error, the noise and who is far from the smoothed gradient."""

    def notes(**settings):
        result = run("probe-kinks", small_problem(loss="ramp"), epsilon=5.7565, M=4000, **settings)
        return result.T[0], [json.loads(text) for text in result.columns["notes"]]

    T, right = notes(method="o2nc-tree")
    rho = math.sqrt(2 * get("standard").rho(5.7565, 1e-6))
    nodes = np.mean([t.bit_count() for t in range(1, T + 1)])
    expected = nodes * 2 * (math.floor(math.log2(T)) + 1) * (4 * 2 / (T * rho)) ** 2
    for one in right:
        assert one["noise"] == pytest.approx(expected, rel=0.3)
        assert one["error"] < 80 * 2 / T
    _, still = notes(method="o2nc")
    assert all(one["noise"] == 0 for one in still)
    for wrong in ("no DIFF", "DIFF negated", "GRAD doubled"):
        _, found = notes(method="o2nc", wrong=wrong)
        assert min(one["error"] for one in found) > 10 * max(one["error"] for one in still)
    _, away = notes(method="o2nc", wrong="ascent")
    assert all(one["F"] > one["F_start"] > 0 for one in away)


def test_means_of_the_kinks_probe_are_over_all_its_rounds(monkeypatch):
    made = []
    kind = probes.Watched
    monkeypatch.setattr(probes, "Watched", lambda *given: made.append(kind(*given)) or made[-1])
    result = run("probe-kinks", small_problem(loss="ramp"), M=500)
    assert made[0].rounds == result.T[0] * json.loads(result.columns["notes"][0])["epochs"]


def test_a_run_that_stays_keeps_the_measure_of_its_start(monkeypatch):
    from dpbench.algorithms.o2nc import Learner

    monkeypatch.setattr(Learner, "update", lambda self, gradient: None)
    result = run("probe-kinks", small_problem(loss="ramp"), M=500)
    notes = json.loads(result.columns["notes"][0])
    assert result.columns["measured"][0] == pytest.approx(notes["start"], rel=1e-6)
    assert notes["failed"] == notes["epochs"]
    assert notes["F"] == pytest.approx(notes["F_start"])


def test_the_reference_of_diff_takes_both_points_by_one_draw():
    """∇F(x + δv) - ∇F(y + δv) of a quadratic F is the same for every v."""
    from dpbench.run.probes import EstimatorProbe

    problem, coin = small_problem(loss="squared"), np.random.default_rng(0)
    settings = EstimatorProbe.Settings(estimator="diff", radius=0.7, draws=9)
    x, y = np.zeros(5), np.full(5, 0.3)
    found = EstimatorProbe._reference(problem, x, y, coin, settings)
    np.testing.assert_allclose(
        found, np.tile(problem.gradient(x[None]) - problem.gradient(y[None]), (9, 1)), atol=1e-12
    )


@pytest.mark.parametrize(("wrong", "sign"), [("", 1.0), ("ascent", -1.0)])
def test_the_learner_gets_what_was_released(wrong, sign, monkeypatch):
    from dpbench.run import probes

    monkeypatch.setattr(probes, "VarianceReduced", lambda *_: lambda w: 2.0 * w)
    watched, problem = probes.Watched(wrong, 1), type("Flat", (), {"smoothed": lambda self, w, radius: w})()
    monkeypatch.setattr(watched, "_release", lambda *_: lambda g: g + 3.0)
    ask = watched._oracle(problem, None, None, probes.KinksProbe.Settings(), 4, None)
    np.testing.assert_array_equal(ask(np.array([[1.0, 0.5]])), sign * np.array([[5.0, 4.0]]))
    np.testing.assert_array_equal(watched.error, [1.25])
    np.testing.assert_array_equal(watched.noise, [18.0])


def test_each_mistake_is_of_one_kind_and_as_large_as_its_name_says():
    right, wrong = probes.MISTAKES[""], {name: four for name, four in probes.MISTAKES.items() if name}
    assert right == (1, 1, 1, 1)
    changed = {name: [(i, value) for i, value in enumerate(four) if value != 1] for name, four in wrong.items()}
    assert changed == {
        "no DIFF": [(1, 0)], "DIFF negated": [(1, -1)], "GRAD doubled": [(0, 2)], "radius tripled": [(2, 3)],
        "a third of the radius": [(2, 1 / 3)], "ascent": [(3, -1)],
    }  # fmt: skip
