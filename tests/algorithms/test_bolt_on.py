"""bolt-on: a plain loop that does the same, how far runs on neighbours end apart, and the noise."""

import math

import numpy as np
import pytest
from scipy import stats

from dpbench.algorithms.bolt_on import BoltOn, schedule
from dpbench.errors import UserError
from dpbench.privacy.budget import Budget
from dpbench.privacy.relation import Relation
from dpbench.privacy.streams import stream
from dpbench.problems import Declaration, Problem
from tests.algorithms.conftest import run, small_problem


def budget(epsilon=1.0, relation=Relation.REPLACE_ONE):
    return Budget(epsilon, 1e-6, relation, "tight")


def plain(problem, order, passes, b, step):
    """The iterates of every pass, row by row; the divisor is b, whatever a batch has."""
    w, mean = np.zeros(problem.d), None
    for _ in range(passes):
        ends = []
        for first in range(0, problem.n, b):
            g = problem.l2 * w
            for i in order[first : first + b]:
                g = g - problem.y[i] / (1 + math.exp(problem.y[i] * (problem.X[i] @ w))) * problem.X[i] / b
            w = w - step * g
            ends.append(w)
        mean = np.mean(ends, axis=0)
    return mean


def test_without_noise_it_is_a_plain_loop():
    problem = small_problem(n=50, l2=0.1)
    found = run("bolt-on", problem, noiseless=True, seeds=1, epochs=3, batch=7, step=0.5).W[0]
    order = stream("test/bolt-on/0", "coins").permutation(50)
    np.testing.assert_allclose(found, plain(problem, order, 3, 7, 0.5), rtol=1e-9)


@pytest.mark.parametrize("b", [1, 7, 50])
@pytest.mark.parametrize("l2", [0.0, 0.2])
@pytest.mark.parametrize("gone", [False, True])
def test_runs_on_neighbours_end_as_near_as_declared(b, l2, gone):
    problem = small_problem(n=50, d=3, l2=l2)
    asked = budget(relation=Relation.ADD_REMOVE if gone else Relation.REPLACE_ONE)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y = problem.X.copy(), problem.y.copy()
        row = rng.integers(50)
        X[row], y[row] = (0.0 if gone else -X[row] if seed % 2 else X[row]), -y[row]
        other = Problem(X, y, row_bound=1.0, l2=l2)
        for step in (0.3, 1 / (0.25 + l2), 2 / (0.25 + l2)):
            settings = BoltOn.Settings(epochs=4, batch=b, step=step)
            order = rng.permutation(50)
            ends = [plain(p, order, 4, b, step) for p in (problem, other)]
            assert np.linalg.norm(ends[0] - ends[1]) <= schedule(problem, asked, settings).sensitivity


def test_the_bound_is_nearly_attained_by_rows_that_pull_as_hard_as_they_can():
    """The row is first in the order, and steep all the way: the mean of the last pass has all of its pulls."""
    X, b, step = np.zeros((20, 1)), 4, 0.01
    X[0] = 1.0
    ends = [
        plain(Problem(X, np.where(np.arange(20), 1.0, y), row_bound=1.0), np.arange(20), 5, b, step)
        for y in (1.0, -1.0)
    ]
    bound = schedule(Declaration(20, 1, row_bound=1.0), budget(), BoltOn.Settings(epochs=5, batch=b, step=step))
    assert bound.sensitivity == pytest.approx(2 * 5 * step / b)
    assert abs(ends[0] - ends[1])[0] > 0.49 * bound.sensitivity  # at w = 0 a logistic loss pulls by one half


def test_the_noise_by_its_variance():
    problem = small_problem(n=60, l2=0.1)
    settings = {"epochs": 2, "batch": 60, "step": 0.5}
    result = run("bolt-on", problem, start=np.zeros((2000, 5)), **settings)
    exact = plain(problem, np.arange(60), 2, 60, 0.5)  # the whole is one batch: no order matters
    sigma = 2 * 0.5 / 60 * (1 + (1 - 0.05)) / math.sqrt(2 * result.mechanisms.budget.rho)
    residuals = ((result.W - exact) / sigma).ravel()
    assert stats.kstest(residuals, "norm").pvalue > 1e-4
    assert stats.kstest(2 * residuals, "norm").pvalue < 1e-6


def test_a_step_that_parts_runs_is_refused():
    with pytest.raises(UserError, match=r"step: 8\.1 parts runs"):
        run("bolt-on", small_problem(), step=8.1)


def test_the_rule_goes_further_as_epsilon_grows_and_no_further_than_the_bound_on_the_step():
    problem = Declaration(10_000, 20, row_bound=1.0, l2=1e-3)
    made = [schedule(problem, budget(epsilon), BoltOn.Settings()) for epsilon in np.geomspace(1e-4, 1e4, 17)]
    times = [one.step * one.passes for one in made]
    assert times == sorted(times)
    assert all(one.step <= 1 / (0.25 + 1e-3) and one.batch == 100 for one in made)
    assert made[-1].sensitivity < 2 * made[-1].step * made[-1].passes / 100  # the ridge has brought runs together
