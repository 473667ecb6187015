"""dp-newton-general (Algorithm 6): its conditions, sensitivities, noise, and a loss that is not the logistic one.

cubic-newton (Algorithms 1 and 2): its inner solver's noise, step count and limits.

damped-newton: symmetric Hessian noise, the split of ρ, the damped step, and that it is not private.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpbench.algorithms import get, newton_variants, resolve
from dpbench.algorithms.newton import SOLVE
from dpbench.algorithms.newton_variants import inner_steps, inverse_sensitivity, non_private_step, project
from dpbench.errors import UserError
from dpbench.privacy import accounting
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.privacy.noise import stream
from dpbench.problems import Problem
from dpbench.problems.losses import Loss
from tests.algorithms.conftest import run, small_problem


class PseudoHuber(Loss):
    """sqrt(1 + (z - y)²) - 1: convex, 1-Lipschitz, 1-smooth."""

    name, convex, binary = "pseudo-huber", True, False
    lipschitz, smoothness, hessian_lipschitz = 1.0, 1.0, 0.86

    def check_labels(self, y):
        """Any."""

    def value(self, z, y, out):
        out[...] = np.sqrt(1 + (z - y) ** 2) - 1
        return out

    def derivative(self, z, y, out):
        out[...] = (z - y) / np.sqrt(1 + (z - y) ** 2)
        return out

    def second_derivative(self, z, y, out):
        out[...] = (1 + (z - y) ** 2) ** -1.5
        return out


@pytest.fixture(scope="module")
def huber():
    generator = np.random.default_rng(0)
    X = generator.standard_normal((2000, 4))
    X /= np.linalg.norm(X, axis=1, keepdims=True) * (1 + 1e-15)
    return Problem(X, X @ np.ones(4) + 0.1 * generator.standard_normal(2000), loss=PseudoHuber(), row_bound=1.0)


def test_sensitivities_by_hand():
    n, L1, lambda0 = 1000, 0.25, 0.1
    assert inverse_sensitivity(n, L1, lambda0, "add") == pytest.approx(0.25 / (1000 * 0.01 - 0.1 * 0.25))
    C = 2 / math.pi + 0.5 + math.log((2 * 1000 * 0.15 + 0.25) / 0.25) / math.pi
    assert inverse_sensitivity(n, L1, lambda0, "clip") == pytest.approx(0.25 * C / (10 - 0.1 * 0.25 * C))


@pytest.mark.parametrize("modification", ["clip", "add"])
@given(seed=st.integers(0, 100_000), d=st.integers(1, 6), share=st.floats(0.02, 0.5))
@settings(max_examples=200, deadline=None)
def test_no_neighbour_moves_the_direction_by_more_than_claimed(modification, seed, d, share):
    """H' = H + B with B of any rank, 0 ≤ B ≤ L₁/n: Theorem B.6 with Lemma B.7."""
    generator = np.random.default_rng(seed)
    n, L1 = 1000, 1.0
    lambda0 = np.array([share * L1])
    Q, P = (np.linalg.qr(generator.standard_normal((d, d)))[0] for _ in range(2))
    H = (Q * np.minimum(L1, lambda0 * np.exp(generator.normal(0, 0.5, d)))) @ Q.T
    B = (P * generator.choice([0.0, 1.0], d)) @ P.T * L1 / n
    g = generator.standard_normal(d)
    both = [SOLVE[modification](h[None], g[None], lambda0)[0] for h in (H, H + B)]
    claimed = inverse_sensitivity(n, L1, lambda0[0], modification) * np.linalg.norm(g)
    assert np.linalg.norm(both[0] - both[1]) <= claimed * (1 + 1e-8)


def test_the_worst_neighbour_of_add_moves_it_by_nearly_as_much():
    n, L1, lambda0, d = 1000, 1.0, np.array([0.1]), 3
    g = np.eye(d)[0]
    both = [SOLVE["add"](H[None], g[None], lambda0)[0] for H in (np.zeros((d, d)), L1 / n * np.eye(d))]
    assert np.linalg.norm(both[0] - both[1]) >= 0.95 * inverse_sensitivity(n, L1, 0.1, "add")


@pytest.mark.parametrize(
    ("given_settings", "message"),
    [
        ({"modification": "add", "lambda0": 1e-4}, "must exceed"),
        ({"modification": "clip", "lambda0": 1e-3}, "must exceed"),
        ({"modification": "clip", "lambda0": 0.2}, "at most L1/2"),
    ],
)
def test_a_failed_condition_is_one_clear_line(given_settings, message):
    with pytest.raises(UserError, match=message):
        run("dp-newton-general", small_problem(n=400), **given_settings)


@pytest.mark.parametrize("loss", ["squared", "sigmoid"])
def test_losses_without_the_constants_are_refused(loss):
    with pytest.raises(UserError, match=r"slope .* has no bound|is not convex"):
        resolve("dp-newton-general")[0].needs.check(small_problem(loss=loss), "dp-newton-general")


@pytest.mark.parametrize("modification", ["clip", "add"])
def test_the_ledger_splits_rho_by_theta(huber, modification):
    T, theta = 6, 0.4
    result = run("dp-newton-general", huber, T=T, theta=theta, lambda0=0.1, modification=modification)
    entries = {e.label: e for e in result.mechanisms.ledger.of(0)}
    for label, share in {"gradient": 1 - theta, "direction": theta}.items():
        spent = T / (2 * entries[label].release.noise_multiplier ** 2)
        assert spent == pytest.approx(share * result.mechanisms.budget.rho, rel=1e-9)


@pytest.mark.parametrize("modification", ["clip", "add"])
def test_noise_follows_algorithm_6(huber, modification):
    """g̃ = ∇f + N(σ₁²), w₁ = w₀ - H̃⁻¹g̃ + N(‖g̃‖²σ₂²), the gradient's noise replayed from its stream."""
    k, lambda0, theta = 600, 0.1, 0.3
    result = run("dp-newton-general", huber, T=1, lambda0=lambda0, modification=modification, start=np.zeros((k, 4)))
    n, rho = huber.n, result.mechanisms.budget.rho
    w = np.zeros((1, 4))
    sigma1 = 1 / (n * np.sqrt(2 * rho * (1 - theta)))
    C = 1 if modification == "add" else 2 / np.pi + 1 / 2 + np.log(2 * n * (1 - lambda0) + 1) / np.pi
    sigma2 = C / (n * lambda0**2 - lambda0 * C) / np.sqrt(2 * rho * theta)
    z = []
    for i in range(k):
        g = huber.data_gradient(w)[0] + sigma1 * stream(f"test/dp-newton-general/{i}", "noise").standard_normal(4)
        step = SOLVE[modification](huber.data_hessian(w), g[None], np.array([lambda0]))[0]
        z.append((result.W[i] + step) / (np.linalg.norm(g) * sigma2))
    z = np.concatenate(z)
    assert stats.kstest(z, "norm").pvalue > 1e-4
    assert stats.kstest(2 * z, "norm").pvalue < 1e-6  # halved noise would fail


@pytest.mark.parametrize("modification", ["clip", "add"])
def test_without_noise_it_reaches_the_optimum_of_another_loss(huber, modification):
    start = np.full((2, 4), 0.8)  # near it: a full Newton step from afar need not go down
    result = run("dp-newton-general", huber, T=60, lambda0=0.02, modification=modification, noiseless=True, start=start)
    assert np.linalg.norm(huber.gradient(result.W), axis=1) == pytest.approx([0, 0], abs=1e-6)


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


def test_hessian_noise_is_symmetric_with_the_variances_of_the_paper(problem, monkeypatch):
    """(N + Nᵀ)/2: variance s² on the diagonal, s²/2 off it, s = sqrt(1/(2·0.3ρ/T))/(4n)."""
    seen = []
    honest = newton_variants.clip_and_solve
    monkeypatch.setattr(newton_variants, "clip_and_solve", lambda H, *rest: seen.append(H) or honest(H, *rest))
    k, T = 400, 3
    run("damped-newton", problem, T=T, start=np.zeros((k, problem.d)))
    rho = accounting.get("bs16").rho(1.0, problem.n**-2.0)
    s = np.sqrt(T / (2 * 0.3 * rho)) / (4 * problem.n)
    noise = (seen[0] - problem.data_hessian(np.zeros((1, problem.d)))) / s
    np.testing.assert_array_equal(noise, noise.swapaxes(1, 2))
    diagonal = np.einsum("kii->ki", noise).ravel()
    rows, columns = np.triu_indices(problem.d, 1)
    above = np.sqrt(2) * noise[:, rows, columns].ravel()
    for sample in (diagonal, above):
        assert stats.kstest(sample, "norm").pvalue > 1e-4
        assert stats.kstest(2 * sample, "norm").pvalue < 1e-6  # halved noise would fail


def test_the_ledger_gives_seven_tenths_to_the_gradient(problem):
    T = 5
    result = run("damped-newton", problem, T=T)
    entries = {e.label: e for e in result.mechanisms.ledger.of(0)}
    rho = result.mechanisms.budget.rho
    for label, share in {"gradient": 0.7, "Hessian": 0.3}.items():
        assert entries[label].count == T
        assert T / (2 * entries[label].release.noise_multiplier ** 2) == pytest.approx(share * rho, rel=1e-9)


def test_one_example_moves_the_hessian_by_at_most_a_quarter_in_frobenius_norm(problem):
    for w in (np.zeros(problem.d), 5 * problem.X[3]):
        moves = [np.linalg.norm(problem.hessian_sum(w, np.array([i]))) for i in range(problem.n)]
        assert max(moves) <= problem.smoothness * (1 + 1e-9)
    assert np.linalg.norm(problem.hessian_sum(np.zeros(problem.d), np.array([0]))) >= 0.99 * problem.smoothness


def test_one_noiseless_step_is_damped_newton(problem):
    w = np.zeros((1, problem.d))
    newton = np.linalg.solve(problem.data_hessian(w)[0], problem.data_gradient(w)[0])
    b = np.linalg.norm(newton)
    result = run("damped-newton", problem, T=1, noiseless=True)
    np.testing.assert_allclose(result.W[0], -np.log1p(b) / b * newton, rtol=1e-5)


def test_the_step_is_one_at_the_optimum():
    assert non_private_step(np.eye(3)[None], np.zeros((1, 3)))[0] == 1.0


def test_without_noise_it_reaches_the_optimum():
    problem = small_problem(n=2000)
    result = run("damped-newton", problem, T=60, noiseless=True)
    assert problem.value(result.W) - problem.optimum().value == pytest.approx([0, 0], abs=1e-10)


def test_it_is_marked_as_not_private():
    assert not get("damped-newton").private


def test_a_ridge_in_the_objective_shortens_steps_by_what_has_gathered_where_the_hessian_is_singular():
    """Along a column of zeros H and ∇f are zero, so (H + 1e-8 I)⁻¹(∇f + 1e-8 w) is w itself there."""
    rows = small_problem()
    problem = Problem(np.column_stack([rows.X, np.zeros(rows.n)]), rows.y, loss="logistic", row_bound=1.0)
    w = np.array([[0.0] * rows.d + [5.0]])
    newton = np.linalg.solve(rows.data_hessian(w[:, :-1])[0], rows.data_gradient(w[:, :-1])[0])
    for ridge, b in (("hessian", np.linalg.norm(newton)), ("objective", np.hypot(np.linalg.norm(newton), 5.0))):
        result = run("damped-newton", problem, T=1, noiseless=True, start=w, ridge=ridge)
        np.testing.assert_allclose(result.W[0, :-1], -np.log1p(b) / b * newton, rtol=1e-5)
