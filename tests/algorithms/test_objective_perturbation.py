"""objpert: its ridge, what that saves, its noise, its solvers, and the sensitivities behind its guarantee.

objpert-pure: the theorem that its Jacobian is free, its noise, and its ledger.
"""

import math

import numpy as np
import pytest
from scipy import stats

from dpbench.algorithms import objective_perturbation as op
from dpbench.algorithms import objective_perturbation as pure
from dpbench.algorithms.objective_perturbation import least_subgradient, minimise
from dpbench.privacy.accounting.objective_perturbation import delta_of, free_curvature
from dpbench.privacy.accounting.pure import pure_epsilon
from dpbench.privacy.budget import Budget
from dpbench.privacy.check import check
from dpbench.privacy.ledger import (
    ConvexPerturbation,
    CountedRelease,
    LogisticPerturbation,
    RadialPerturbation,
    Relation,
)
from dpbench.privacy.verify import spent
from dpbench.problems import Declaration, Problem
from tests.algorithms.conftest import run, small_problem

ONE = Budget(1.0, 1e-6, Relation.REPLACE_ONE, "tight")


def plan(n=1000, d=10, budget=ONE, safety=0.03, **declared):
    return op.calibrated(Declaration(n, d, row_bound=1.0, **declared), budget, safety)


def ridge_of(n=1000, d=10, budget=ONE, safety=0.03, **declared):
    return op.whole_ridge(Declaration(n, d, row_bound=1.0, **declared), budget, safety)


def test_the_ridge_is_the_largest_of_three():
    sigma = 2 / math.sqrt(2 * ONE.rho)
    required = 0.25 / free_curvature(1.0, 1e-6)
    assert ridge_of(d=1000) == pytest.approx(sigma**2 * 1000 / (8 * 1000 * 0.03))  # Λ_safe
    assert ridge_of(n=10**7) == pytest.approx(required)  # Λ_req
    assert ridge_of(n=10**7, l2=0.01) == 1e5  # the problem's own
    assert ridge_of(safety=0.01, d=1000) == pytest.approx(3 * ridge_of(d=1000))


def test_the_curvature_is_that_of_the_whole_ridge():
    """Of the least ridge alone, the output's share would be too large, and a convex loss's noise too."""
    for l2 in (0.0, 1e-5, 0.01):
        ridge, event, output = plan(n=10**6, l2=l2)
        assert event.curvature == pytest.approx(0.25 / ridge)
        parts = [release.noise_multiplier**-2 for release in (event, output)]
        assert parts[1] / sum(parts) == pytest.approx(1 / (1 + 10 * ridge / 0.25))


def test_more_own_ridge_buys_less_noise_where_the_jacobian_is_not_free():
    events = [plan(n=10**6, l2=l2, loss="pseudo-huber")[1] for l2 in (0.0, 1e-4, 1e-2)]
    noise = [event.noise_multiplier for event in events]
    assert isinstance(events[0], ConvexPerturbation)
    assert noise[0] > 1.01 * noise[1] > 1.01 * noise[2]


@pytest.mark.parametrize("kind", [LogisticPerturbation, ConvexPerturbation])
def test_the_cost_never_rises_with_the_ridge(kind):
    deltas = [delta_of(kind(4.0, curvature), 0.0, 1.0) for curvature in (1.0, 0.3, 0.1, 0.01)]
    assert deltas == sorted(deltas, reverse=True)


@pytest.mark.parametrize("n", [500, 10**5])
def test_the_ridge_falls_as_epsilon_rises(n):
    budgets = [Budget(e, n**-2.0, Relation.REPLACE_ONE, "tight") for e in np.geomspace(1e-6, 1e6, 25)]
    for loss in ("logistic", "pseudo-huber"):
        ridges = [ridge_of(n=n, budget=budget, loss=loss) for budget in budgets]
        assert ridges == sorted(ridges, reverse=True)


@pytest.mark.parametrize("epsilon", [30.0, 56.2341, 97.0, 150.0])
def test_what_it_plans_at_a_large_epsilon_is_within_it_by_the_second_route(epsilon):
    """Where the tails fall by e in a few units of ε, a quadrature that is too coarse shows."""
    budget = Budget(epsilon, 1198**-2.0, Relation.REPLACE_ONE, "tight")
    _, event, output = op.calibrated(Declaration(1198, 65, row_bound=1.0, l2=1e-3), budget, 0.03)
    assert not check((CountedRelease(event, 1, "objective"), CountedRelease(output, 1, "output")), budget).error


def test_linear_and_output_noise_have_the_variances_of_the_ledger(monkeypatch):
    seen = {}

    def spy(problem, W, b, ridge, gamma):
        seen.update(b=b, ridge=ridge, gamma=gamma)
        return W, np.zeros(len(W)), np.zeros(len(W), dtype=int)

    monkeypatch.setattr(op, "minimise", spy)
    problem = small_problem(l2=0.01)
    result = run("objpert", problem, start=np.zeros((500, problem.d)))
    budget, n = result.mechanisms.budget, problem.n
    ridge, event, output = op.calibrated(problem, budget, 0.03)
    sigma = 2 / n * event.noise_multiplier
    assert stats.kstest((seen["b"] / sigma).ravel(), "norm").pvalue > 1e-4
    assert stats.kstest((2 * seen["b"] / sigma).ravel(), "norm").pvalue < 1e-6
    assert seen["ridge"] == pytest.approx(max(0.0, ridge / n - 0.01))
    sigma = 2 * n**-2 * n / ridge * output.noise_multiplier
    assert stats.kstest((result.W / sigma).ravel(), "norm").pvalue > 1e-4
    assert stats.kstest((2 * result.W / sigma).ravel(), "norm").pvalue < 1e-6


@pytest.mark.parametrize("l1", [0.0, 0.1])
@pytest.mark.parametrize("loss", ["logistic", "pseudo-huber"])
def test_the_solver_reaches_the_least_subgradient_it_promised(loss, l1):
    problem = small_problem(loss=loss, l1=l1, l2=0.01)
    b = 0.05 * np.random.default_rng(0).standard_normal((3, problem.d))
    W, norms, _ = minimise(problem, np.zeros((3, problem.d)), b, 0.02, 1e-12)
    assert (norms <= 1e-12).all()
    for w, term in zip(W, b, strict=True):  # against a solver with another stopping rule: small proximal steps
        v = w + 0.1
        for _ in range(1500):
            v = v - 0.5 * (problem.gradient(v[None])[0] + 0.02 * v + term)
            v = np.sign(v) * np.maximum(np.abs(v) - 0.5 * l1, 0)
        np.testing.assert_allclose(v, w, atol=1e-8)
    if l1:
        assert (W == 0).any()


def test_the_least_subgradient_is_least():
    g, w = np.array([0.5, -0.05, 0.2, -0.3]), np.array([0.0, 0.0, 1.0, -1.0])
    np.testing.assert_allclose(least_subgradient(g, w, 0.1), [0.4, 0.0, 0.3, -0.4])


def neighbour(problem, seed):
    """Another first row, of another label."""
    generator = np.random.default_rng(seed)
    X, y = problem.X.copy(), problem.y.copy()
    x = generator.standard_normal(problem.d)
    X[0], y[0] = x / np.linalg.norm(x) * (1 - 1e-12), -y[0]
    declared = {"loss": problem.loss, "l1": problem.l1, "l2": problem.l2}
    return Problem(X, y, row_bound=1.0, **declared)


def test_one_row_changes_the_jacobian_by_rank_one_and_the_gradient_by_twice_l0():
    """With the problem's own ridge in Λ: ln det A/det A' ≤ ln(1 + β/Λ), where rank two would have twice that."""
    for seed in range(10):
        problem = small_problem(n=30, d=4, seed=seed, l2=0.02)
        other, ridge = neighbour(problem, seed), 30 * 0.02
        w = np.random.default_rng(seed).choice([0.1, 1.0, 10.0]) * np.random.default_rng(seed).standard_normal((1, 4))
        assert np.linalg.norm(problem.gradient(w) - other.gradient(w)) <= 2 / problem.n * (1 + 1e-9)
        logs = [np.linalg.slogdet(p.n * p.hessian(w)[0])[1] for p in (problem, other)]
        assert abs(logs[0] - logs[1]) <= math.log1p(0.25 / ridge)


def test_two_inexact_minimisers_are_within_twice_what_one_is_off():
    """γn/Λ each, attained along a flat direction: a bound of γn/Λ for both would be wrong."""
    problem, ridge, gamma = small_problem(l1=0.01), 0.01, 1e-3
    zero = np.zeros((1, problem.d))
    exact, _, _ = minimise(problem, zero, zero, ridge, 1e-12)
    ends = [minimise(problem, exact + sign * 0.05, zero, ridge, gamma)[0] for sign in (1, -1)]
    assert all(np.linalg.norm(end - exact) <= gamma / ridge for end in ends)
    assert np.linalg.norm(ends[0] - ends[1]) <= 2 * gamma / ridge


def test_a_problem_without_noise_ends_at_its_own_optimum():
    problem = small_problem(n=2000, l2=0.1)
    result = run("objpert", problem, epsilon=5.0, noiseless=True)  # n·l2 is above what the noise asks for
    np.testing.assert_allclose(problem.value(result.W), problem.optimum().value, rtol=0, atol=1e-12)


BOTH = (Relation.REPLACE_ONE, Relation.ADD_REMOVE)


def log_density(theta, X, y, s, ridge):
    """ln of the density of the exact minimiser at theta (d,), up to a constant of d alone: Σ over rows of X, y = ±1."""
    margin = y * (X @ theta)
    p = 1 / (1 + np.exp(margin))
    b = (p * y) @ X - ridge * theta
    A = ridge * np.eye(len(theta)) + (X.T * (p * (1 - p))) @ X
    return np.linalg.slogdet(A)[1] - np.linalg.norm(b) / s


@pytest.mark.thorough_for("*-2", "*-3", "add-remove-*")
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("relation", BOTH)
def test_the_log_ratio_never_passes_the_claim_where_the_jacobian_is_free(d, relation):
    """A search over neighbours, backgrounds and outputs; and at a tenth of the ridge it does pass."""
    generator = np.random.default_rng(d)
    worst = {1.0: 0.0, 0.1: 0.0}
    for share in worst:
        for s in (0.5, 2.0, 8.0):
            ridge = share * s
            for _ in range(40):
                n = generator.integers(0, 4)
                shared = generator.standard_normal((n, d))
                shared /= np.linalg.norm(shared, axis=1, keepdims=True)
                labels = generator.choice([-1.0, 1.0], n)
                u = generator.standard_normal((2, d))
                u /= np.linalg.norm(u, axis=1, keepdims=True)
                if generator.random() < 0.5:
                    u[1] = -u[0]
                first = np.vstack([shared, u[:1]]), np.append(labels, 1.0)
                second = (shared, labels) if relation is Relation.ADD_REMOVE else (np.vstack([shared, u[1:]]), first[1])
                for theta in generator.choice([0.1, 1, 10, 100], (60, 1)) * generator.standard_normal((60, d)):
                    if generator.random() < 0.5:
                        theta = -abs(theta[0]) * u[0]
                    ratio = log_density(theta, *first, s, ridge) - log_density(theta, *second, s, ridge)
                    claim = (2 if relation is Relation.REPLACE_ONE else 1) / s
                    worst[share] = max(worst[share], abs(ratio) / claim)
    assert worst[1.0] <= 1 + 1e-9
    if relation is Relation.ADD_REMOVE:
        assert worst[1.0] > 0.9
        assert worst[0.1] > 1.1


def test_the_claim_is_nearly_attained_by_a_replaced_row():
    """Two rows nearly opposite, both on the wrong side far out, and a background that turns b across θ."""
    for s in (0.5, 2.0):
        theta, background = np.array([30.0, 0.0]), np.tile([[0.0, 1.0]], (int(3000 * s), 1))
        rows = np.array([[-0.2, 0.98], [-0.2, -0.98]]) / np.hypot(0.2, 0.98)
        values = [log_density(theta, np.vstack([background, row]), np.ones(len(background) + 1), s, s) for row in rows]
        assert 0.9 < abs(values[0] - values[1]) / (2 / s) <= 1


@pytest.mark.parametrize("relation", BOTH)
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 30.0, 1e6])
def test_both_routes_agree_on_what_is_free_and_beyond(relation, epsilon):
    rows = 2 if relation is Relation.REPLACE_ONE else 1
    free = epsilon / (4 * rows)
    at = RadialPerturbation(1 / epsilon, free, relation)
    assert pure_epsilon(at) == pytest.approx(epsilon)
    assert spent(_entry(at), 0.0, relation).epsilon == pytest.approx(epsilon, rel=1e-9)
    beyond = RadialPerturbation(1 / epsilon, 10 * free, relation)
    assert epsilon <= spent(_entry(beyond), 0.0, relation).epsilon <= pure_epsilon(beyond) * (1 + 1e-9)


def _entry(release):
    return (CountedRelease(release, 1, "objective"),)


def test_the_linear_term_has_the_law_of_the_norm_mechanism(monkeypatch):
    """‖b‖/s ~ Gamma(d), direction uniform: a Laplace coordinate by coordinate would be another law."""
    seen = {}

    def spy(problem, W, b, ridge, gamma):
        seen.update(b=b)
        return W, np.zeros(len(W)), np.zeros(len(W), dtype=int)

    monkeypatch.setattr(pure, "minimise", spy)
    problem = small_problem(d=4)
    result = run("objpert-pure", problem, start=np.zeros((4000, 4)))
    s = 2 / 0.99 / problem.n
    lengths = np.linalg.norm(seen["b"], axis=1) / s
    assert stats.kstest(lengths, "gamma", args=(4,)).pvalue > 1e-4
    assert stats.kstest(2 * lengths, "gamma", args=(4,)).pvalue < 1e-6
    assert (lengths**2).mean() == pytest.approx(4 * 5, rel=0.05)
    first = seen["b"][:, 0] / np.linalg.norm(seen["b"], axis=1)
    assert stats.kstest((first + 1) / 2, "beta", args=(1.5, 1.5)).pvalue > 1e-4  # of a uniform direction, d = 4
    ridge = pure.pure_ridge(problem.n, 4, 2 / 0.99, 0.0, 1.0, 0.03)
    scale = 2 * problem.n**-2 * problem.n / ridge / 0.01
    assert stats.kstest(np.linalg.norm(result.W, axis=1) / scale, "gamma", args=(4,)).pvalue > 1e-4


def test_the_ledger_is_pure_and_adds_up():
    result = run("objpert-pure", small_problem(l2=0.01))
    ledger = result.mechanisms.ledger.of(0)
    assert {entry.label for entry in ledger} == {"objective", "output"}
    assert spent(ledger, 0.0, Relation.REPLACE_ONE).epsilon == pytest.approx(1.0, rel=1e-9)


def test_the_ridge_follows_its_rule():
    assert pure.pure_ridge(10**6, 3, 2.0, 0.0, 1.0, 0.03) == 2.0  # the Jacobian's
    assert pure.pure_ridge(10**6, 3, 2.0, 1.0, 1.0, 0.03) == 10**6
    assert pure.pure_ridge(100, 3, 20.0, 0.0, 1.0, 0.03) == pytest.approx(400 * 12 / (8 * 100 * 0.03))
    assert math.isclose(pure.pure_ridge(100, 3, 20.0, 0.0, 1.0, 0.06), 400 * 12 / (8 * 100 * 0.06))
