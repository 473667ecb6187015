"""dp-gd against closed forms and an independent implementation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpbench.privacy import accounting
from tests.algorithms.conftest import run, small_problem


def test_noise_has_the_standard_deviation_of_the_paper(problem):
    """One step from zero: w = -η(∇f(0) + N(σ²)), σ = sqrt(T)/(n sqrt(2ρ)), so (w + η∇f(0))/(ησ) ~ N(0, 1)."""
    k, T, step = 400, 1, 4.0
    result = run("dp-gd", problem, T=T, step=step, start=np.zeros((k, problem.d)))
    rho = accounting.get("bs16").rho(1.0, problem.n**-2.0)
    sigma = np.sqrt(T) / (problem.n * np.sqrt(2 * rho))
    noise = (result.W + step * problem.gradient(np.zeros((1, problem.d)))) / (step * sigma)
    z = (noise**2).sum() / noise.size
    spread = np.sqrt(2 / noise.size)
    assert abs(z - 1) < 4 * spread
    assert abs(z / 4 - 1) > 4 * spread  # halved noise would fail
    assert stats.kstest(noise.ravel(), "norm").pvalue > 1e-4


def test_the_ledger_holds_T_gaussians_that_use_up_rho(problem):
    result = run("dp-gd", problem, T=7)
    (entry,) = result.mechanisms.ledger.of(0)
    assert entry.count == 7
    assert 7 / (2 * entry.release.noise_multiplier**2) == pytest.approx(result.mechanisms.budget.rho, rel=1e-12)


def test_without_noise_it_reaches_the_optimum():
    problem = small_problem(l2=0.1)
    result = run("dp-gd", problem, T=2000, noiseless=True)
    assert problem.value(result.W) - problem.optimum().value == pytest.approx([0, 0], abs=1e-12)


def test_excess_loss_agrees_with_a_few_lines_written_independently():
    """Same law, other random numbers: means over 200 runs agree within four standard errors of the difference."""
    problem, T, k, epsilon = small_problem(n=300), 25, 200, 2.0
    rho = accounting.get("bs16").rho(epsilon, problem.n**-2.0)
    generator = np.random.default_rng(1)
    theirs = []
    for _ in range(k):
        w = np.zeros(problem.d)
        for _ in range(T):
            slope = -(problem.y / (1 + np.exp(problem.y * (problem.X @ w)))) @ problem.X / problem.n
            w = w - 4 * (slope + generator.normal(0, np.sqrt(T / (2 * rho)) / problem.n, problem.d))
        theirs.append(np.mean(np.log1p(np.exp(-problem.y * (problem.X @ w)))))
    ours = problem.value(run("dp-gd", problem, T=T, step=4.0, epsilon=epsilon, start=np.zeros((k, problem.d))).W)
    error = np.hypot(np.std(theirs), np.std(ours)) / np.sqrt(k)
    assert abs(np.mean(theirs) - np.mean(ours)) < 4 * error


def test_the_default_step_is_one_over_the_smoothness(problem):
    np.testing.assert_array_equal(run("dp-gd", problem, T=1).W, run("dp-gd", problem, T=1, step=4.0).W)


@given(st.integers(0, 10_000), st.floats(0.01, 30.0))
@settings(max_examples=50, deadline=None)
def test_one_example_never_moves_the_gradient_by_more_than_claimed(seed, scale):
    problem = small_problem(n=50, seed=seed)
    w = scale * np.random.default_rng(seed).standard_normal(problem.d)
    one = problem.gradient_sum(w, np.array([seed % 50]))
    assert np.linalg.norm(one) / problem.n <= problem.lipschitz / problem.n * (1 + 1e-12)


def test_the_worst_example_moves_it_by_nearly_as_much(problem):
    w = -50 * problem.y[0] * problem.X[0]  # the first example is as wrong as can be
    one = problem.gradient_sum(w, np.array([0]))
    assert np.linalg.norm(one) >= 0.9 * problem.lipschitz
