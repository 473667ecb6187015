"""dp-gd-quantile: a plain loop that does the same, the count's sensitivity, the shares, and the ceiling.

dp-gd-last: what its guarantee takes for granted of a step.
"""

import numpy as np
import pytest

from dpbench.algorithms import resolve
from dpbench.algorithms.base import make_settings
from dpbench.algorithms.gradient_descent import safe_step
from dpbench.algorithms.quantile_gd import contraction
from dpbench.privacy.ledger import Relation
from dpbench.privacy.verify import spent
from dpbench.problems import Problem
from tests.algorithms.conftest import run, small_problem, watch


def test_without_noise_it_is_a_plain_loop():
    problem = small_problem(n=80, loss="squared", l2=0.05)
    result = run("dp-gd-quantile", problem, noiseless=True, seeds=1, T=9, clip=0.4, quantile=0.6)
    rho, X, y = 0.9 * result.mechanisms.budget.rho / 9, problem.X, problem.y
    w, C, tail = np.zeros(5), 0.4, []
    for t in range(9):
        r = X @ w - y
        q = (abs(r) <= C).mean()
        g = X.T @ np.clip(r, -C, C) / 80
        step = safe_step(problem, C / 80 / np.sqrt(2 * rho), 9, 0.02)
        w = w - step * (g + 0.05 * w)
        C = np.clip(C * np.exp(-0.3 * (q - 0.6)), 0.4e-3, 0.4)
        if t >= 4:
            tail.append(w)
    np.testing.assert_allclose(result.W[0], np.mean(tail, axis=0), rtol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_a_row_moves_the_share_by_one_in_n_and_no_more(seed):
    problem, rng = small_problem(n=30, d=3, seed=seed, loss="squared"), np.random.default_rng(seed)
    W, C = rng.standard_normal((50, 3)), rng.uniform(0.01, 1, 50)
    moved = []
    for x, label in ((-problem.X[0], 9.0), (np.zeros(3), 0.0), (problem.X[1], problem.y[1])):
        X, y = problem.X.copy(), problem.y.copy()
        X[0], y[0] = x, label
        other = Problem(X, y, loss="squared", row_bound=1.0)
        moved.append(np.abs(problem.share_within(W, C) - other.share_within(W, C)))
    assert np.max(moved) == pytest.approx(1 / 30)


@pytest.mark.parametrize("relation", Relation)
def test_the_noise_of_a_gradient_is_for_its_own_clip(relation, monkeypatch):
    problem, clips = small_problem(n=200, d=3, loss="squared"), []
    bounded = problem.bounded_gradient
    monkeypatch.setattr(problem, "bounded_gradient", lambda W, bound: clips.append(bound) or bounded(W, bound))
    moved = watch("dp-gd-quantile", problem, relation, epsilon=50.0, T=30, clip=2.0)
    assert max(clips) == 2.0
    assert min(clips) < 1.0
    rows = 2 if relation is Relation.REPLACE_ONE else 1  # opposite ones beyond the clip
    expected = [("quantile", 1 / 200), ("gradient", rows / 200)]
    assert [label for label, _ in moved] == [label for label, _ in expected] * 30
    of = [factor for clip in clips for factor in (1.0, clip)]
    assert [value for _, value in moved] == pytest.approx([expected[i % 2][1] * of[i] for i in range(60)])


def test_the_whole_budget_is_spent_however_the_clip_moves():
    result = run("dp-gd-quantile", small_problem(loss="squared"), T=40)
    budget = result.mechanisms.budget
    for i in range(2):
        ledger = result.mechanisms.ledger.of(i)
        of = {e.label: e.count / e.release.noise_multiplier**2 / (2 * budget.rho) for e in ledger}
        assert of == {"gradient": pytest.approx(0.9), "quantile": pytest.approx(0.1)}
        assert spent(ledger, budget.delta, budget.relation).epsilon == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1])
def test_under_its_ceiling_it_does_not_run_away(epsilon):
    problem = small_problem(n=400, loss="squared")
    ends = run("dp-gd-quantile", problem, epsilon=epsilon, seeds=20).W
    assert problem.value(ends).mean() < 1.5 * problem.value(np.zeros((1, 5)))[0]


@pytest.mark.parametrize("share", [0.5, 1.0, 1.5, 1.95])
def test_no_step_contracts_less_than_it_says(share):
    """Near 0, where the logistic loss is steepest, along a row and across it: c is the larger of both, and reached."""
    X, l2 = np.array([[1.0, 0.0], [1.0, 0.0]]), 0.1
    problem = Problem(X, np.array([1.0, -1.0]), loss="logistic", l2=l2, row_bound=1.0)
    step = share / (0.25 + l2)
    method, _ = resolve("dp-gd-last")
    c = contraction(problem, make_settings(method, {"step": step}))
    W = 1e-5 * np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    moved = W - step * problem.gradient(W)
    reached = np.linalg.norm(moved[:2] - moved[2], axis=1) / 1e-5
    assert reached.max() == pytest.approx(c, rel=1e-6)
    assert reached == pytest.approx([abs(1 - share), 1 - step * l2], abs=1e-6)
