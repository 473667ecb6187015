"""dp-gd against closed forms and an independent implementation.

dp-adam: Adam's update step by step, its noise, and what taking the noise's variance off does.

dp-gd-average: its sensitivity and noise, its rules for T and the step, and what averaging does.

dp-gd-oracle: the step it takes is the best one, its noise is dp-gd's, and it says that it is not private.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import minimize_scalar

from dpbench.algorithms import get
from dpbench.algorithms.gradient_descent import LARGEST_STEP, best_step, public_safety, safe_step, steps
from dpbench.own.fit import fit
from dpbench.privacy import accounting
from dpbench.privacy.verify import spent
from dpbench.problems import Declaration, Problem
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
    problem, T, k, epsilon = small_problem(n=300), 25, 200, 0.5  # half of this noise would be 11 errors away
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


def plain(problem, T, step, beta1, beta2, clip):
    """Adam on the clipped mean gradient, without noise, of one w and in loops."""
    w, m, v = np.zeros(problem.d), np.zeros(problem.d), np.zeros(problem.d)
    for t in range(1, T + 1):
        g = problem.l2 * w
        for x, y in zip(problem.X, problem.y, strict=True):
            g = g + np.clip(w @ x - y, -clip, clip) * x / problem.n
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        w = w - step * (m / (1 - beta1**t)) / np.sqrt(np.maximum(v / (1 - beta2**t), 1e-8))
    return w


@pytest.mark.parametrize("beta2", [0.5, 0.99])
def test_without_noise_or_correction_it_is_adam(beta2):
    problem = small_problem(n=60, loss="squared", l2=0.1)
    found = run("dp-adam", problem, noiseless=True, T=12, step=0.05, beta2=beta2, clip=0.2, correct=False).W[0]
    np.testing.assert_allclose(found, plain(problem, 12, 0.05, 0.9, beta2, 0.2), rtol=1e-9)


def test_the_noise_and_what_is_taken_off_are_of_one_size():
    """No row pulls: after one step under a high floor, w is the noise in units of the σ that the ledger's ρ gives."""
    problem = Problem(np.zeros((50, 2)), np.ones(50), row_bound=1.0)
    result = run("dp-adam", problem, start=np.zeros((4000, 2)), T=1, floor=1e3, step=1.0)
    assert result.mechanisms.ledger.of(0)[0].release.noise_multiplier == pytest.approx(
        math.sqrt(0.5 / result.mechanisms.budget.rho)
    )
    units = -1e3 * result.W.ravel()
    assert stats.kstest(units, "norm").pvalue > 1e-4
    assert stats.kstest(2 * units, "norm").pvalue < 1e-6


def test_a_floor_far_below_the_noise_runs_away():
    problem = small_problem(n=200)
    ends = [run("dp-adam", problem, start=np.zeros((50, 5)), epsilon=0.3, floor=f).W for f in (1.0, 1e-3)]
    assert np.linalg.norm(ends[1]) > 10 * np.linalg.norm(ends[0])


def test_three_classes_are_told_apart():
    rng = np.random.default_rng(0)
    y = np.arange(3000) % 3.0
    X = np.eye(3)[y.astype(int)] + 0.2 * rng.standard_normal((3000, 3))
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    found = fit(X, y, algorithm="dp-adam", loss="softmax-3", epsilon=3.0, seed=0)
    assert (np.argmax(X @ found.w.reshape(3, 3).T, axis=1) == y).mean() > 0.9


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


@pytest.mark.parametrize("k", [3, 10])
def test_noise_alone_carries_a_softmax_model_no_further_than_a_fifth_of_ln_k(k):
    """On labels that say nothing, w = 0 is about the best there is: what is above ln k is noise."""
    generator = np.random.default_rng(k)
    X = generator.standard_normal((300, 10))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    problem = Problem(X, np.arange(300) % k, loss=f"softmax-{k}", row_bound=1.0)
    kappa = public_safety(problem.loss)
    assert kappa == pytest.approx(0.2 * math.log(k))
    excess = [
        problem.value(run("dp-gd-average", problem, epsilon=epsilon, start=np.zeros((40, 10 * k))).W).mean()
        - math.log(k)
        for epsilon in (0.01, 0.1)
    ]
    assert min(excess) > 0.3 * kappa  # it does move
    assert max(excess) < kappa


def test_it_solves_an_l1_problem_without_noise():
    problem = small_problem(n=3000, loss="squared", l1=0.02)
    problem = Problem(problem.X, problem.y / 8, loss="squared", l1=0.005, row_bound=1.0)
    result = run("dp-gd-average", problem, noiseless=True, T=2000, step=0.9, clip=10.0)
    assert problem.value(result.W)[0] - problem.optimum().value < 1e-6


@pytest.mark.parametrize("T", [1, 2, 7])
def test_what_is_returned_is_the_mean_of_the_second_half_of_the_iterates(T):
    problem = small_problem(n=300, loss="squared", l2=0.1)
    w, iterates = np.zeros((1, problem.d)), []
    for _ in range(T):
        w = w - 0.3 * problem.gradient(w)
        iterates.append(w)
    found = run("dp-gd-average", problem, seeds=1, noiseless=True, T=T, step=0.3, clip=100.0).W
    np.testing.assert_allclose(found, np.mean(iterates[T // 2 :], axis=0), rtol=1e-10)


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
        "dpbench.algorithms.gradient_descent.best_step", lambda problem, W, D: seen.append(D) or np.ones(len(W))
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
