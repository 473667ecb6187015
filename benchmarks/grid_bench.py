"""A (step × clip) grid of 500 settings as one batch on shared noise against its settings one by one, one BLAS thread.

Each line is the processor time of a setting alone over that of a setting in the batch: same code, same results.
"""

from __future__ import annotations

import itertools
import time

import numpy as np
from threadpoolctl import threadpool_limits

from dpbench import algorithms
from dpbench.algorithms.base import make_settings
from dpbench.privacy import Budget, Relation
from dpbench.problems import Problem
from dpbench.run.bind import BoundRun

SIZES = {"log1": (1000, 100, "logistic"), "square": (1000, 1000, "squared"), "california": (20_640, 8, "squared")}
ITERATIONS = {"dp-gcd": 3, "dp-cd": 100, "dp-sgd-1": 500}


def main() -> None:
    """Print `name: ratio` lines."""
    with threadpool_limits(1):
        for (shape, (n, d, loss)), name in itertools.product(SIZES.items(), ITERATIONS):
            generator = np.random.default_rng(0)
            X = generator.standard_normal((n, d))
            z = X[:, :4].sum(axis=1) + generator.standard_normal(n)
            problem = Problem(X, np.sign(z) if loss == "logistic" else z, loss=loss, l1=0.01)
            compare(f"{name} on a grid of 500, {shape}'s size", problem, algorithms.get(name), ITERATIONS[name])


def compare(name: str, problem: Problem, method, iterations: int) -> float:
    """Time the whole grid once and every 25th of its settings alone; print and return the ratio."""
    passes = iterations / method.per_pass(problem.n, problem.d)
    steps = np.logspace(-6, 0, 10) if method.name == "dp-sgd-1" else np.logspace(-2, 1, 10)
    values = itertools.product(steps, np.logspace(-4, 6, 50))
    grid = [make_settings(method, {"passes": passes, "step": float(s), "clip": float(c)}) for s, c in values]
    run(problem, method, grid[:1])  # accounting is cached, and so is what numba compiles
    together = run(problem, method, grid)
    alone = [run(problem, method, [one]) for one in grid[::25]]
    np.testing.assert_allclose([W[0] for W, _ in alone], together[0][::25], rtol=1e-6, atol=1e-9)
    mine, theirs = together[1] / len(grid), np.median([seconds for _, seconds in alone])
    print(f"{name}: {theirs / mine:.1f}  ({1e3 * theirs:.2f} ms / {1e3 * mine:.3f} ms)", flush=True)
    return theirs / mine


def run(problem: Problem, method, settings: list) -> tuple[np.ndarray, float]:
    budget = Budget(1.0, problem.n**-2.0, Relation.REPLACE_ONE, method.accountings[-1])
    start = np.zeros((len(settings), problem.d))
    begin = time.process_time()
    k = len(settings)
    W = BoundRun(method, problem, settings, [budget] * k, start, ["bench"] * k).run().W
    return W, time.process_time() - begin


if __name__ == "__main__":
    main()
