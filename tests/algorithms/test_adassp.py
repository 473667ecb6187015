"""AdaSSP: its three sensitivities on neighbours, its noise, and least squares without any."""

import math

import numpy as np
import pytest

from dpbench.algorithms import get
from tests.algorithms.conftest import run, small_problem


def test_without_noise_it_is_ridge_regression():
    problem = small_problem(loss="squared", l2=0.1)
    found = run("adassp", problem, noiseless=True, epsilon=1e6, label_bound=100.0).W[0]
    exact = np.linalg.solve(problem.X.T @ problem.X + 40 * np.eye(5), problem.X.T @ problem.y)
    np.testing.assert_allclose(found, exact, rtol=1e-9)


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
    from dpbench.privacy.release import Releases

    seen = []
    plain = Releases.noisy

    def spy(self, value, scale, noise):
        seen.append(float(scale))
        return plain(self, value, scale, noise)

    monkeypatch.setattr(Releases, "noisy", spy)
    from dpbench.privacy.budget import Budget
    from dpbench.privacy.relation import Relation
    from tests.batches import run_batch

    problem, method = small_problem(loss="squared"), get("adassp")
    budget = Budget(1.0, 1e-5, Relation(relation or "add-remove"), "tight")
    run_batch(problem, method, [method.Settings(label_bound=3.0)], np.zeros((1, 5)), budget, ["a"])
    unit = 1 / math.sqrt(2 * budget.rho / 3)
    np.testing.assert_allclose(seen, np.array(factors) * unit * [1, 1, 3], rtol=1e-9)


def _unit(x):
    return x / np.linalg.norm(x)
