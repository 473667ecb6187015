"""AdaSSP: its three sensitivities on neighbours, its noise, and least squares without any.

boosted-ssp: its sensitivities, its noise, and the ridge that follows it.
"""

import math

import numpy as np
import pytest
from scipy import stats

from dpbench.algorithms import get
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Relation
from dpbench.privacy.verify import spent
from dpbench.problems import Problem
from tests.algorithms.conftest import run, small_problem
from tests.batches import run_batch


def test_without_noise_it_is_ridge_regression():
    problem = small_problem(loss="squared", l2=0.1)
    found = run("adassp", problem, noiseless=True, epsilon=1e6, label_bound=100.0).W[0]
    exact = np.linalg.solve(problem.X.T @ problem.X + 40 * np.eye(5), problem.X.T @ problem.y)
    np.testing.assert_allclose(found, exact, rtol=1e-9)


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize(
    ("epsilon", "l2"), [(1.0, 0.0), (1.0, 0.01), (1.0, 5.0), (0.1, 0.01), (30.0, 0.0), (30.0, 0.01)]
)
def test_the_ridge_is_the_own_one_or_what_the_noise_leaves_of_the_least_eigenvalue(epsilon, l2, relation):
    """max(n·l2, spread - λ), λ a lower bound on the least eigenvalue, as in Wang (2018), Algorithm 2 (ϱ = 0.05)."""
    problem, method = small_problem(loss="squared", bound=("l2", 2.0), l2=l2), get("adassp")
    budget = Budget(epsilon, 1e-5, Relation(relation), "tight")
    ran = run_batch(problem, method, [method.Settings(label_bound=100.0)], np.zeros((1, 5)), budget, ["a"],
                    noiseless=True)  # fmt: skip
    gram, unit = problem.X.T @ problem.X, 4 / math.sqrt(2 * budget.rho / 3)
    least = max(0.0, np.linalg.eigvalsh(gram)[0] - unit * math.sqrt(math.log(6 / 1e-5)))
    spread = unit * math.sqrt((2 if relation == "replace-one" else 1) * 5 * math.log(2 * 25 / 0.05))
    ridge = max(400 * l2, spread - least)
    np.testing.assert_allclose(ran.W[0], np.linalg.solve(gram + ridge * np.eye(5), problem.X.T @ problem.y), rtol=1e-9)


def test_labels_are_clipped_to_the_public_bound():
    problem = small_problem(loss="squared")
    clipped = type(problem)(problem.X, np.clip(problem.y, -0.5, 0.5), loss="squared", row_bound=1.0)
    first, second = (run("adassp", p, label_bound=0.5).W for p in (problem, clipped))
    np.testing.assert_allclose(first, second, rtol=1e-12)


def test_what_is_released_moves_by_its_sensitivities_and_no_more():
    rng = np.random.default_rng(1)
    worst = np.zeros((2, 3))  # add/remove and replace-one; eigenvalue, gram, moments
    for _ in range(300):
        d = int(rng.integers(1, 4))
        shared = 0.3 * rng.standard_normal((int(rng.integers(0, 3)), d))
        base = shared.T @ shared
        (x, y), (u, v) = ((_unit(rng.standard_normal(d)), rng.choice([-1.0, 1.0])) for _ in range(2))
        if rng.random() < 0.3:
            u, v = (x, -y) if rng.random() < 0.5 else (0 * x, 0.0)
        for i, (a, b) in enumerate([((x, y), (0 * u, 0.0)), ((x, y), (u, v))]):
            first, second = base + np.outer(a[0], a[0]), base + np.outer(b[0], b[0])
            moved = (
                abs(np.linalg.eigvalsh(first)[0] - np.linalg.eigvalsh(second)[0]),
                np.linalg.norm(first - second),
                np.linalg.norm(a[1] * a[0] - b[1] * b[0]),
            )
            worst[i] = np.maximum(worst[i], moved)
    np.testing.assert_array_less(worst, [[1.001, 1.001, 1.001], [1.001, math.sqrt(2) + 1e-3, 2.001]])
    np.testing.assert_array_less([[0.99, 0.99, 0.99], [0.9, 1.38, 1.99]], worst)


@pytest.mark.parametrize(("relation", "factors"), [(None, (1, 1, 1)), ("replace-one", (1, math.sqrt(2), 2))])
def test_noise_is_that_of_a_third_of_rho_each(relation, factors, monkeypatch):
    from dpbench.privacy.noise import Releases

    seen = []
    plain = Releases.noisy

    def spy(self, value, scale, noise):
        seen.append(float(scale))
        return plain(self, value, scale, noise)

    monkeypatch.setattr(Releases, "noisy", spy)
    problem, method = small_problem(loss="squared"), get("adassp")
    budget = Budget(1.0, 1e-5, Relation(relation or "add-remove"), "tight")
    run_batch(problem, method, [method.Settings(label_bound=3.0)], np.zeros((1, 5)), budget, ["a"])
    unit = 1 / math.sqrt(2 * budget.rho / 3)
    np.testing.assert_allclose(seen, np.array(factors) * unit * [1, 1, 3], rtol=1e-9)


def _unit(x):
    return x / np.linalg.norm(x)


def neighbours(seed, n=20, d=3):
    """Two problems that differ in one row, both as long as the bound lets them be, with far labels."""
    problem, generator = small_problem(n, d, seed, "squared"), np.random.default_rng(seed)
    X, y = problem.X.copy(), 10 * problem.y
    x = generator.standard_normal(d)
    X[0], y[0] = x / np.linalg.norm(x) * (1 - 1e-12), generator.choice([-100.0, 100.0])
    return Problem(problem.X, 10 * problem.y, loss="squared", row_bound=1.0), Problem(
        X, y, loss="squared", row_bound=1.0
    )


def test_a_replaced_row_moves_what_is_released_by_no_more_than_declared():
    for seed in range(20):
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
    from dpbench.privacy.ledger import Relation
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
