"""dp-gd-oracle: the step it takes is the best one, its noise is dp-gd's, and it says that it is not private."""

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize_scalar

from dpbench.algorithms import get
from dpbench.algorithms.gd_oracle import LARGEST_STEP, best_step
from dpbench.privacy import accounting
from dpbench.problems import Problem
from tests.algorithms.conftest import run, small_problem


def test_the_step_minimises_the_loss_along_the_line(problem):
    generator = np.random.default_rng(3)
    W = generator.standard_normal((8, problem.d))
    D = problem.gradient(W) + 0.02 * generator.standard_normal((8, problem.d))
    for w, d, step in zip(W, D, best_step(problem, W, D), strict=True):
        best = minimize_scalar(
            lambda eta, w=w, d=d: problem.value((w - eta * d)[None])[0],
            bounds=(0, 2000),
            method="bounded",
            options={"xatol": 1e-9},
        )
        assert problem.value((w - step * d)[None])[0] <= best.fun + 1e-12
        assert step == pytest.approx(best.x, rel=1e-3, abs=1e-6)


def test_it_stays_where_the_direction_leads_uphill(problem):
    W = np.ones((2, problem.d))
    assert (best_step(problem, W, -problem.gradient(W)) == 0).all()


def test_along_a_direction_that_falls_for_ever_the_step_ends():
    problem = Problem(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), row_bound=1.0)
    assert best_step(problem, np.zeros((1, 1)), -np.ones((1, 1)))[0] == LARGEST_STEP


def test_noise_and_ledger_are_those_of_gradient_descent(problem, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "dpbench.algorithms.gd_oracle.best_step", lambda problem, W, D: seen.append(D) or np.ones(len(W))
    )
    k, T = 500, 4
    result = run("dp-gd-oracle", problem, T=T, start=np.zeros((k, problem.d)))
    rho = accounting.get("bs16").rho(1.0, problem.n**-2.0)
    sigma = np.sqrt(T) / (problem.n * np.sqrt(2 * rho))
    noise = (seen[0] - problem.gradient(np.zeros((1, problem.d)))) / sigma
    assert stats.kstest(noise.ravel(), "norm").pvalue > 1e-4
    assert stats.kstest(2 * noise.ravel(), "norm").pvalue < 1e-6  # halved noise would fail
    (entry,) = result.mechanisms.ledger.of(0)
    assert (entry.count, entry.label) == (T, "gradient")
    assert T / (2 * entry.release.noise_multiplier**2) == pytest.approx(rho, rel=1e-9)


def test_without_noise_it_reaches_the_optimum_faster_than_gradient_descent():
    problem = small_problem(n=2000)
    best = problem.optimum().value
    oracle, plain = (
        problem.value(run(name, problem, T=30, noiseless=True).W) - best for name in ("dp-gd-oracle", "dp-gd")
    )
    assert (oracle < plain / 2).all()
    assert problem.value(run("dp-gd-oracle", problem, T=500, noiseless=True).W) - best == pytest.approx(0, abs=1e-8)


def test_it_is_marked_as_not_private():
    assert not get("dp-gd-oracle").private
