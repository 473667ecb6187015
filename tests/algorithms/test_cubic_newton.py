"""cubic-newton (Algorithms 1 and 2): its inner solver's noise, step count and limits."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpbench.algorithms.cubic_newton import inner_steps, project
from dpbench.errors import UserError
from dpbench.privacy.mechanisms import Mechanisms
from tests.algorithms.conftest import run, small_problem


@pytest.fixture
def ridge():
    return small_problem(l2=0.05)


def test_the_number_of_inner_steps_by_hand(ridge):
    """N = 2ρ̃(L₀ + L₁D + L₂D²)²/(dΔ²), Δ = (L₀ + L₁D)/n without and N with the regulariser's constants."""
    D, rho, mu = 20.0, 0.01, 0.05
    slope = 1 + mu * D / 2 + (1 / 4 + mu) * D + D**2 / (6 * math.sqrt(3))
    expected = 2 * rho * slope**2 / (5 * ((1 + D / 4) / 400) ** 2)
    assert inner_steps(ridge, rho, D) == math.ceil(expected)


@given(st.integers(0, 100_000), st.floats(0.1, 40))
@settings(max_examples=100, deadline=None)
def test_one_example_never_moves_the_model_gradient_by_more_than_claimed(seed, D):
    """‖∇f_i(w) + ∇²f_i(w)(θ - w)‖ ≤ L₀ + L₁D for w, θ in the ball of diameter D."""
    problem = small_problem(n=20, seed=seed % 100)
    w, theta = project(20 * np.random.default_rng(seed).standard_normal((2, problem.d)), D / 2)
    row = np.array([seed % 20])
    moved = problem.gradient_sum(w, row) + problem.hessian_sum(w, row) @ (theta - w)
    assert np.linalg.norm(moved) <= (problem.lipschitz + problem.smoothness * D) * (1 + 1e-9)


def test_noise_and_ledger_follow_algorithm_2(ridge, monkeypatch):
    """σ² = NΔ²/(2ρ/T) for each of the T·N steps."""
    seen = []
    honest = Mechanisms.gaussian

    def spy(self, value, **rest):
        noisy = honest(self, value, **rest)
        seen.append(noisy - value)
        return noisy

    monkeypatch.setattr(Mechanisms, "gaussian", spy)
    T, N, D = 3, 7, 10.0
    result = run("cubic-newton", ridge, T=T, D=D, inner=N, start=np.zeros((300, ridge.d)))
    rho = result.mechanisms.budget.rho
    delta = (1 + D / 4) / ridge.n
    z = seen[0].ravel() / (delta * math.sqrt(N * T / (2 * rho)))
    assert stats.kstest(z, "norm").pvalue > 1e-4
    assert stats.kstest(2 * z, "norm").pvalue < 1e-6  # halved noise would fail
    (entry,) = result.mechanisms.ledger.of(0)
    assert entry.count == T * N
    assert T * N / (2 * entry.release.noise_multiplier**2) == pytest.approx(rho, rel=1e-9)
    assert "capped from" in result.columns["notes"][0]


def test_the_first_model_gradient_step_by_hand(ridge):
    """N = 1: the average is the start itself; N = 2: (θ₀ + 2θ₁)/3 with θ₁ = Π(θ₀ - ∇F(θ₀)/μ)."""
    start = np.full((1, ridge.d), 0.1)
    one = run("cubic-newton", ridge, T=1, inner=1, noiseless=True, start=start, epsilon=10.0).W
    np.testing.assert_allclose(one, start)
    two = run("cubic-newton", ridge, T=1, inner=2, noiseless=True, start=start, epsilon=10.0).W
    theta1 = project(start - ridge.gradient(start) / ridge.l2, 10.0)
    np.testing.assert_allclose(two, (start + 2 * theta1) / 3, rtol=1e-9)


def test_without_noise_it_reaches_the_regularised_optimum(ridge):
    result = run("cubic-newton", ridge, T=6, inner=3000, epsilon=200.0, noiseless=True)
    best = ridge.optimum()
    assert np.linalg.norm(best.w) < 10  # inside the ball: the constrained optimum is the optimum
    assert ridge.value(result.W) - best.value == pytest.approx([0, 0], abs=1e-5)


def test_iterates_stay_in_the_ball(ridge):
    result = run("cubic-newton", ridge, T=2, D=1.0, epsilon=0.1, start=np.full((3, ridge.d), 5.0))
    assert (np.linalg.norm(result.W, axis=1) <= 0.5 * (1 + 1e-12)).all()


def test_an_objective_without_strong_convexity_is_refused(problem):
    with pytest.raises(UserError, match="l2 > 0"):
        run("cubic-newton", problem)
