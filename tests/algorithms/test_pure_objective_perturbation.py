"""objpert-pure: the theorem that its Jacobian is free, its noise, and its ledger."""

import math

import numpy as np
import pytest
from scipy import stats

from dpbench.algorithms import pure_objective_perturbation as pure
from dpbench.privacy.accounting.pure import pure_epsilon
from dpbench.privacy.ledger import Entry, RadialPerturbation
from dpbench.privacy.relation import Relation
from dpbench.privacy.verify import spent
from tests.algorithms.conftest import run, small_problem

BOTH = (Relation.REPLACE_ONE, Relation.ADD_REMOVE)


def log_density(theta, X, y, s, ridge):
    """ln of the density of the exact minimiser at theta (d,), up to a constant of d alone: Σ over rows of X, y = ±1."""
    margin = y * (X @ theta)
    p = 1 / (1 + np.exp(margin))
    b = (p * y) @ X - ridge * theta
    A = ridge * np.eye(len(theta)) + (X.T * (p * (1 - p))) @ X
    return np.linalg.slogdet(A)[1] - np.linalg.norm(b) / s


@pytest.mark.thorough_for("*-2", "*-3")
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
    return (Entry(release, 1, "objective"),)


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
