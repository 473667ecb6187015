"""Small problems and a way to run an algorithm on them."""

import numpy as np
import pytest

from dpbench.algorithms import resolve
from dpbench.algorithms.base import make_settings, no_trace
from dpbench.privacy.budget import Budget
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.problems import Problem
from tests.batches import run_batch


def small_problem(n=400, d=5, seed=0, loss="logistic", bound=("l2", 1.0), **regularisers):
    """Rows on the boundary of the bound, labels from a linear model with noise."""
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((n, d))
    kind, limit = bound or ("l2", 1.0)
    X *= limit / np.linalg.norm(X, ord=2 if kind == "l2" else 1, axis=1, keepdims=True)
    X *= 1 - 1e-15
    margin = X @ generator.standard_normal(d) + 0.3 * generator.standard_normal(n)
    y = margin if loss in ("squared", "pseudo-huber") else np.where(margin > 0, 1.0, -1.0)
    return Problem(X, y, loss=loss, row_bound=limit, row_bound_norm=kind, **regularisers)


def run(
    name, problem, *, epsilon=1.0, delta=None, accounting="paper", seeds=2, noiseless=False, start=None, **settings
):
    """Run an algorithm by name; returns the BatchRun."""
    algorithm, fixed = resolve(name)
    parsed = algorithm.complete(problem, make_settings(algorithm, {**fixed, **settings}))
    mode = algorithm.accounting(accounting)
    if delta is None:
        delta = {"n^-2": problem.n**-2.0, "n^-1": 1 / problem.n}.get(algorithm.delta, algorithm.delta)
    budget = Budget(epsilon=epsilon, delta=delta, relation=algorithm.relation, accounting=mode)
    if start is None:
        start = np.zeros((seeds, problem.d))
    keys = [f"test/{name}/{seed}" for seed in range(len(start))]
    return run_batch(problem, algorithm, [parsed] * len(start), start, budget, keys, noiseless=noiseless)


class Watched(Mechanisms):
    """Mechanisms that keep, of every Gaussian release, (label, how far its noise lets a neighbour move it)."""

    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **more)
        self.moved = []

    def gaussian(self, value, *, sensitivity, label, replaced=None, **more):
        self.moved.append((label, float(np.max(self.releases.scaled_sensitivity(sensitivity, replaced)))))
        return super().gaussian(value, sensitivity=sensitivity, label=label, replaced=replaced, **more)


def watch(name, problem, relation, epsilon=1.0, **settings):
    """What one run's Gaussian releases were said to move by: `Watched.moved`."""
    algorithm, fixed = resolve(name)
    parsed = algorithm.complete(problem, make_settings(algorithm, {**fixed, **settings}))
    budget = Budget(epsilon, 1e-6, relation, "tight")
    mechanisms = Watched([f"test/{name}"], budget, declared=algorithm.declared(relation))
    algorithm.run(problem, np.zeros((1, problem.d)), mechanisms, parsed, no_trace)
    return mechanisms.moved


@pytest.fixture
def problem():
    return small_problem()
