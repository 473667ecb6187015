"""boosted-ssp: its sensitivities, its noise, and the ridge that follows it."""

import math

import numpy as np
import pytest
from scipy import stats

from dpbench.privacy.verify import spent
from dpbench.problems import Problem
from tests.algorithms.conftest import run, small_problem


def neighbours(seed, n=20, d=3):
    """Two problems that differ in one row, both as long as the bound lets them be, with far labels."""
    problem, generator = small_problem(n, d, seed, "squared"), np.random.default_rng(seed)
    X, y = problem.X.copy(), 10 * problem.y
    x = generator.standard_normal(d)
    X[0], y[0] = x / np.linalg.norm(x) * (1 - 1e-12), generator.choice([-100.0, 100.0])
    return Problem(problem.X, 10 * problem.y, loss="squared", row_bound=1.0), Problem(
        X, y, loss="squared", row_bound=1.0
    )


@pytest.mark.parametrize("seed", range(20))
def test_a_replaced_row_moves_what_is_released_by_no_more_than_declared(seed):
    one, other = neighbours(seed)
    assert np.linalg.norm(one.second_moment() - other.second_moment()) <= math.sqrt(2) / one.n
    W = 5 * np.random.default_rng(seed).standard_normal((10, one.d))
    moved = np.linalg.norm(one.bounded_gradient(W, 0.3) - other.bounded_gradient(W, 0.3), axis=1)
    assert (moved <= 2 * 0.3 / one.n).all()


def test_both_bounds_are_attained():
    X, y = np.eye(2)[[0, 1, 1]], np.array([100.0, 0.0, 0.0])
    one = Problem(X, y, loss="squared", row_bound=1.0)
    turned = Problem(np.eye(2)[[1, 1, 1]], y, loss="squared", row_bound=1.0)
    assert np.linalg.norm(one.second_moment() - turned.second_moment()) == pytest.approx(math.sqrt(2) / 3)
    flipped = Problem(X, y * [-1, 1, 1], loss="squared", row_bound=1.0)
    W = np.zeros((1, 2))
    assert np.linalg.norm(one.bounded_gradient(W, 0.3) - flipped.bounded_gradient(W, 0.3)) == pytest.approx(0.6 / 3)


def test_shares_add_up_to_the_whole_budget():
    result = run("boosted-ssp", small_problem(loss="squared"), T=7, share=0.2)
    ledger, budget = result.mechanisms.ledger.of(0), result.mechanisms.budget
    costs = {entry.label: entry.count / entry.release.noise_multiplier**2 / (2 * budget.rho) for entry in ledger}
    assert costs == {"gram": pytest.approx(0.2), "gradient": pytest.approx(0.8)}
    assert spent(ledger, budget.delta, budget.relation).epsilon == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_noise_by_its_variance(relation, monkeypatch):
    """On data of zeros only noise is left: the ridge is public, so w_1 gives the gradient's away."""
    from dpbench.algorithms import get
    from dpbench.algorithms.base import make_settings
    from dpbench.privacy.budget import Budget
    from dpbench.privacy.relation import Relation
    from tests.batches import run_batch

    seen = {}
    problem = Problem(np.zeros((50, 4)), np.ones(50), loss="squared", row_bound=1.0)
    inner = np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda gram: seen.setdefault("gram", gram) is None or inner(gram))
    method, k = get("boosted-ssp"), 2000
    budget = Budget(1.0, 1e-5, Relation[relation.upper()], "tight")
    settings = method.complete(problem, make_settings(method, {"T": 1, "share": 0.3}))
    keys = [f"noise/{i}" for i in range(k)]
    result = run_batch(problem, method, [settings] * k, np.zeros((k, 4)), budget, keys)
    twice = relation == "replace_one"
    s = (math.sqrt(2) if twice else 1) / 50 / math.sqrt(2 * 0.3 * budget.rho)
    assert seen["gram"][:, 0, 0].std() == pytest.approx(s, rel=0.05)
    assert seen["gram"][:, 0, 1].std() == pytest.approx(s / math.sqrt(2), rel=0.05)
    sigma = (2 if twice else 1) * 0.3 / 50 / math.sqrt(2 * 0.7 * budget.rho)
    ridge = max(2 * s, sigma * math.sqrt(1 / 0.04))
    values = np.maximum(np.linalg.eigvalsh(seen["gram"]), 0.0)
    spread = sigma * np.sqrt((1 / (values + ridge) ** 2).sum(axis=1))  # of ‖w_1‖
    ratio = (result.W**2).sum(axis=1) / spread**2
    assert ratio.mean() == pytest.approx(1.0, rel=0.05)


def test_the_ridge_falls_and_nothing_else_changes_as_epsilon_rises():
    problem = small_problem(n=2000, loss="squared", l2=0.01)
    problem = Problem(problem.X, problem.y / 4, loss="squared", l2=0.01, row_bound=1.0)
    best = problem.optimum().value
    excess = [run("boosted-ssp", problem, epsilon=e, seeds=20).objective.mean() - best for e in (0.01, 0.1, 1, 10, 100)]
    assert excess == sorted(excess, reverse=True)
    assert excess[-1] < 1e-4


def test_the_noise_part_stays_within_the_safety():
    """Where the noise is all there is, at tiny ε, it costs no more than κ or so: the rule's reason."""
    problem = small_problem(n=500, d=20, loss="squared")
    zero = Problem(problem.X, np.zeros(500), loss="squared", row_bound=1.0)
    for epsilon in (1e-4, 1e-2, 1.0):
        cost = run("boosted-ssp", zero, epsilon=epsilon, seeds=100).objective
        assert stats.ttest_1samp(cost, 0.02, alternative="greater").pvalue > 1e-3, cost.mean()
