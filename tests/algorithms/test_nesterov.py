"""dp-accelerated-nesterov (Algorithm 4): first step, noise, and the accelerated rate without noise."""

import numpy as np
import pytest
from scipy import stats

from dpbench.algorithms.nesterov import balanced_T
from dpbench.privacy import accounting
from tests.algorithms.conftest import run, small_problem

NAME = "dp-accelerated-nesterov"


def test_the_first_two_steps_by_hand(problem):
    """t = 1: α = 1, γ = 4L₁, w₁ = w_ag = w₀ - ∇f(w₀)/(4L₁). t = 2: α = 2/3, γ = 4L₁/3, from w_md = w₁."""
    L1 = problem.smoothness
    w0 = np.full((1, problem.d), 0.1)
    w1 = w0 - problem.gradient(w0) / (4 * L1)
    np.testing.assert_allclose(run(NAME, problem, T=1, noiseless=True, start=w0).W, w1, rtol=1e-10)
    w2 = w1 - problem.gradient(w1) / (2 * L1)
    expected = 2 / 3 * w2 + 1 / 3 * w1
    np.testing.assert_allclose(run(NAME, problem, T=2, noiseless=True, start=w0).W, expected, rtol=1e-10)


def test_noise_has_the_standard_deviation_of_the_paper(problem):
    """One step from zero inside the ball: 4L₁w₁ = -(∇f + N(σ²)), σ² = L₀²T/(2ρn²)."""
    k = 400
    result = run(NAME, problem, T=1, D=1e6, start=np.zeros((k, problem.d)))
    sigma = 1 / (problem.n * np.sqrt(2 * accounting.get("bs16").rho(1.0, problem.n**-2.0)))
    noise = (-4 * problem.smoothness * result.W - problem.gradient(np.zeros((1, problem.d)))) / sigma
    assert stats.kstest(noise.ravel(), "norm").pvalue > 1e-4
    assert stats.kstest(2 * noise.ravel(), "norm").pvalue < 1e-6  # halved noise would fail


def test_the_ledger_holds_T_gaussians_that_use_up_rho(problem):
    result = run(NAME, problem, T=9)
    (entry,) = result.mechanisms.ledger.of(0)
    assert entry.count == 9
    assert 9 / (2 * entry.release.noise_multiplier**2) == pytest.approx(result.mechanisms.budget.rho, rel=1e-12)


def test_the_default_T_balances_the_two_terms_of_its_bound(problem):
    rho, D = 0.02, 20.0
    assert balanced_T(problem, rho, D) == round((D**2 * rho * problem.n**2 / problem.d) ** 0.25)
    result = run(NAME, problem)
    assert result.columns["iterations"] == [balanced_T(problem, result.mechanisms.budget.rho, D)] * 2
    assert result.mechanisms.ledger.of(0)[0].count == result.columns["iterations"][0]


@pytest.mark.parametrize("T", [10, 100, 1000])
def test_without_noise_it_keeps_the_accelerated_rate(T):
    """F(w_ag) - F* ≤ 4L₁‖w₀ - w*‖²/(T(T+1))."""
    problem = small_problem(l2=0.01)
    best = problem.optimum()
    W = run(NAME, problem, T=T, noiseless=True).W
    bound = 4 * problem.objective_smoothness * best.w @ best.w / (T * (T + 1))
    assert (problem.value(W) - best.value <= bound).all()


def test_iterates_stay_in_the_ball(problem):
    W = run(NAME, problem, T=20, D=1.0, epsilon=0.01, start=np.full((3, problem.d), 5.0)).W
    assert (np.linalg.norm(W, axis=1) <= 0.5 * (1 + 1e-12)).all()
