"""dp-gd-average: its sensitivity and noise, its rules for T and the step, and what averaging does."""

import math

import numpy as np
import pytest

from dpbench.algorithms.averaged_gd import safe_step, steps
from dpbench.privacy.verify import spent
from dpbench.problems import Declaration, Problem
from tests.algorithms.conftest import run, small_problem


def test_the_bound_on_one_row_is_attained_and_never_passed():
    generator = np.random.default_rng(0)
    X = generator.standard_normal((10, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = generator.choice([-50.0, 50.0], 10)
    one = Problem(X, y, loss="squared", row_bound=1 + 1e-12)
    W = generator.standard_normal((20, 3))
    most = 0.0
    for _ in range(50):
        other, label = X.copy(), y.copy()
        x = generator.standard_normal(3)
        other[0], label[0] = x / np.linalg.norm(x), -y[0]
        moved = one.bounded_gradient(W, 0.3) - Problem(other, label, loss="squared").bounded_gradient(W, 0.3)
        most = max(most, np.linalg.norm(moved, axis=1).max())
    flipped = Problem(X, y * np.where(np.arange(10), 1, -1), loss="squared")
    attained = np.linalg.norm(one.bounded_gradient(W, 0.3) - flipped.bounded_gradient(W, 0.3), axis=1).max()
    assert most <= 2 * 0.3 / 10
    assert attained == pytest.approx(2 * 0.3 / 10)


@pytest.mark.parametrize("loss", ["logistic", "squared", "pseudo-huber"])
def test_t_equal_releases_spend_the_whole_budget(loss):
    result = run("dp-gd-average", small_problem(loss=loss), T=9)
    ledger, budget = result.mechanisms.ledger.of(0), result.mechanisms.budget
    assert [(entry.label, entry.count) for entry in ledger] == [("gradient", 9)]
    assert spent(ledger, budget.delta, budget.relation).epsilon == pytest.approx(1.0, rel=1e-6)


def test_noise_by_its_variance():
    """On rows of zeros w_1 is -η times the noise, and the mean of the tail of T = 2 is (w_1 + w_2)/2."""
    problem = Problem(np.zeros((50, 4)), np.ones(50), loss="logistic", row_bound=1.0)
    result = run("dp-gd-average", problem, start=np.zeros((2000, 4)), T=2, step=1.0)
    sigma = 1 / 50 * math.sqrt(2 / (2 * result.mechanisms.budget.rho))  # add/remove: L₀/n
    assert result.W.std() == pytest.approx(sigma * math.sqrt(2), rel=0.05)  # T//2 = 1: the last iterate alone
    result = run("dp-gd-average", problem, start=np.zeros((2000, 4)), T=3, step=1.0)
    sigma = 1 / 50 * math.sqrt(3 / (2 * result.mechanisms.budget.rho))
    assert result.W.std() == pytest.approx(sigma * math.sqrt(2 + 0.25), rel=0.05)  # (w_2 + w_3)/2 = ξ_1 + ξ_2 + ξ_3/2


def test_the_rule_for_t_balances_bias_and_noise():
    """The least of B²L₁/(2T) + Δ²T²/(4ρL₁), by a search; then doubled."""
    problem = Declaration(10_000, 20, row_bound=1.0)
    moved, rho = 2 / 10_000, 0.05
    t = np.arange(1, 5000)
    cost = 64 * 0.25 / (2 * t) + moved**2 * t**2 / (4 * rho * 0.25)
    assert steps(problem, moved, rho, 1e12) == pytest.approx(2 * t[np.argmin(cost)], abs=2)


def test_t_has_no_cap_but_the_work():
    problem = Declaration(10**6, 50, row_bound=1.0)
    moved, rho = 2e-6, 1.5
    free, cut = (steps(problem, moved, rho, work) for work in (1e18, 1e12))
    assert free > 10_000
    assert cut == 1e12 / (4 * 10**6 * 50)


@pytest.mark.parametrize("l1", [0.0, 0.01])
def test_step_and_t_times_step_rise_with_epsilon(l1):
    """The method then does no worse at a larger ε: less bias, and no more noise than κ."""
    problem = Declaration(2_000, 30, loss="squared", l1=l1, row_bound=1.0)
    moved = 2 * 0.3 / 2_000
    rhos = np.geomspace(1e-9, 1e6, 60)
    Ts = [steps(problem, moved, rho, 1e12) for rho in rhos]
    etas = [safe_step(problem, moved * math.sqrt(T / (2 * rho)), T, 0.02) for T, rho in zip(Ts, rhos, strict=True)]
    assert Ts == sorted(Ts)
    products = np.array(etas) * Ts
    assert (products[1:] >= products[:-1] * (1 - 0.05)).all()  # T is a whole number: its steps show
    noise = [eta**2 * moved**2 * T / (2 * rho) * T / 2 for eta, T, rho in zip(etas, Ts, rhos, strict=True)]
    assert max(noise) <= 0.02 * (1 + 1e-9)


def test_it_solves_an_l1_problem_without_noise():
    problem = small_problem(n=3000, loss="squared", l1=0.02)
    problem = Problem(problem.X, problem.y / 8, loss="squared", l1=0.005, row_bound=1.0)
    result = run("dp-gd-average", problem, noiseless=True, T=2000, step=0.9, clip=10.0)
    assert problem.value(result.W)[0] - problem.optimum().value < 1e-6
