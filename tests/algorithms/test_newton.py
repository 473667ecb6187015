"""dp-newton against Algorithms 3 and 5, closed forms and worst-case neighbours."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpbench.algorithms.newton import SOLVE, add_and_solve, clip_and_solve, inverse_sensitivity
from dpbench.errors import UserError
from dpbench.privacy import accounting
from tests.algorithms.conftest import run, small_problem

VARIANTS = [f"dp-newton-{c}-{m}" for c in ("hess", "qu") for m in ("clip", "add")]


def orthonormal(d, generator):
    return np.linalg.qr(generator.standard_normal((d, d)))[0]


def random_curvature(d, generator, scale):
    """A PSD matrix with eigenvalues on both sides of `scale`."""
    Q = orthonormal(d, generator)
    return (Q * (scale * np.exp(generator.normal(0, 2, d)))) @ Q.T


@pytest.mark.parametrize("modification", ["clip", "add"])
@given(seed=st.integers(0, 100_000), d=st.integers(1, 6), n_lambda=st.floats(0.3, 50))
@settings(max_examples=150, deadline=None)
def test_no_neighbour_moves_the_direction_by_more_than_claimed(modification, seed, d, n_lambda):
    """H' = H + c xxᵀ/n with 0 ≤ c ≤ 1/4, ‖x‖ ≤ 1: Theorems B.2 and B.3."""
    generator = np.random.default_rng(seed)
    n = 1000
    lambda0 = np.array([n_lambda / n])
    H = random_curvature(d, generator, lambda0[0])
    x = generator.standard_normal(d)
    x *= generator.choice([1.0, generator.random()]) / np.linalg.norm(x)
    neighbour = H + 0.25 * generator.choice([1.0, generator.random()]) * np.outer(x, x) / n
    g = generator.choice([0, 1]) * generator.standard_normal(d) + x
    both = [SOLVE[modification](h[None], g[None], lambda0)[0] for h in (H, neighbour)]
    claimed = inverse_sensitivity(n, lambda0[0], modification) * np.linalg.norm(g)
    assert np.linalg.norm(both[0] - both[1]) <= claimed * (1 + 1e-8)


@pytest.mark.parametrize("n_lambda", [1.0, 2.0, 5.0, 20.0])
@pytest.mark.parametrize("modification", ["clip", "add"])
def test_the_worst_neighbour_moves_it_by_nearly_as_much(modification, n_lambda, record_property):
    n, d = 1000, 3
    lambda0 = np.array([n_lambda / n])
    x = np.eye(d)[0]
    H = lambda0[0] * np.eye(d) if modification == "clip" else np.zeros((d, d))
    neighbour = H + 0.25 * np.outer(x, x) / n
    moved = np.linalg.norm(np.subtract(*(SOLVE[modification](h[None], x[None], lambda0)[0] for h in (H, neighbour))))
    ratio = moved / inverse_sensitivity(n, lambda0[0], modification)
    record_property("ratio", float(ratio))
    print(f"{modification} at n·λ₀ = {n_lambda:g}: {ratio:.3f} of the claimed sensitivity")
    if modification == "add" or n_lambda >= 5:
        assert ratio >= 0.9
    assert ratio <= 1 + 1e-9


@pytest.mark.parametrize("curvature", ["hess", "qu"])
def test_one_example_moves_the_trace_by_at_most_a_quarter_over_n(curvature):
    problem = small_problem(n=50, d=4)
    for w in (np.zeros(4), 3 * problem.X[7], -20 * problem.X[7]):
        moves = [np.trace(problem.hessian_sum(w, np.array([i]), curvature)) for i in range(50)]
        assert max(moves) <= 0.25 * (1 + 1e-12)
    at_zero = [np.trace(problem.hessian_sum(np.zeros(4), np.array([i]), curvature)) for i in range(50)]
    assert max(at_zero) >= 0.9 * 0.25


def test_clip_raises_small_eigenvalues_and_add_shifts_all():
    generator = np.random.default_rng(0)
    H = np.stack([random_curvature(4, generator, 1.0) for _ in range(3)])
    G = generator.standard_normal((3, 4))
    lambda0 = np.array([0.5, 1.0, 2.0])
    for h, g, l, clipped, added in zip(
        H, G, lambda0, clip_and_solve(H, G, lambda0), add_and_solve(H, G, lambda0), strict=True
    ):
        values, vectors = np.linalg.eigh(h)
        expected = vectors @ np.diag(1 / np.maximum(values, l)) @ vectors.T @ g
        np.testing.assert_allclose(clipped, expected, rtol=1e-9)
        np.testing.assert_allclose(added, np.linalg.solve(h + l * np.eye(4), g), rtol=1e-9)


@pytest.mark.parametrize("name", VARIANTS)
def test_the_ledger_splits_rho_by_theta_and_gamma(problem, name):
    T, theta, gamma = 4, 0.4, 0.2
    result = run(name, problem, T=T, theta=theta, gamma=gamma)
    rho = result.mechanisms.budget.rho
    shares = {"gradient": 1 - theta, "trace": theta * gamma, "direction": theta * (1 - gamma)}
    entries = {entry.label: entry for entry in result.mechanisms.ledger.of(0)}
    assert entries.keys() == shares.keys()
    for label, share in shares.items():
        assert entries[label].count == T
        assert T / (2 * entries[label].release.noise_multiplier ** 2) == pytest.approx(share * rho, rel=1e-9)


def test_a_fixed_lambda0_releases_no_trace_and_spends_it_on_the_direction(problem):
    result = run("dp-newton", problem, T=4, lambda0=0.05)
    entries = {entry.label: entry for entry in result.mechanisms.ledger.of(0)}
    assert entries.keys() == {"gradient", "direction"}
    direction = 4 / (2 * entries["direction"].release.noise_multiplier ** 2)
    assert direction == pytest.approx(0.3 * result.mechanisms.budget.rho, rel=1e-9)


def test_clip_with_too_small_a_lambda0_is_refused(problem):
    with pytest.raises(UserError, match=r"must exceed 1/\(4n\)"):
        run("dp-newton", problem, lambda0=0.25 / problem.n)
    run("dp-newton", problem, lambda0=0.25 / problem.n, modification="add", T=1)


def test_trace_noise_and_lambda0_follow_algorithm_5(problem, monkeypatch):
    """t̃ = tr H + N(0, T/(16n²·2θργ)) and λ₀ = max(β (t̃ T/(n²(1-γ)ρθ))^{1/3}, 1/n), on 2,000 replicates at once."""
    from dpbench.privacy.mechanisms import Mechanisms

    seen = []
    honest = Mechanisms.gaussian

    def spy(self, value, **given):
        noisy = honest(self, value, **given)
        if given["label"] == "trace":
            seen.append((value, noisy))
        return noisy

    monkeypatch.setattr(Mechanisms, "gaussian", spy)
    k, T, theta, gamma = 2000, 3, 0.3, 0.1
    run("dp-newton", problem, T=T, start=np.zeros((k, problem.d)))
    rho = accounting.get("bs16").rho(1.0, problem.n**-2.0)
    (value, noisy), *_ = seen
    sigma = np.sqrt(T) / (4 * problem.n * np.sqrt(2 * theta * rho * gamma))
    z = (noisy - value) / sigma
    assert stats.kstest(z, "norm").pvalue > 1e-4
    assert stats.kstest(z / 2, "norm").pvalue < 1e-6  # halved noise would fail
    assert abs(z.var() - 1) < 4 * np.sqrt(2 / k)


def test_lambda0_formula_without_noise(problem, monkeypatch):
    from dpbench.algorithms import newton

    used = []
    honest = newton.SOLVE["clip"]
    monkeypatch.setitem(newton.SOLVE, "clip", lambda H, G, l: used.append((H, l)) or honest(H, G, l))
    T, theta, gamma, beta = 2, 0.3, 0.1, 2.0
    result = run("dp-newton", problem, T=T, beta=beta, noiseless=True)
    n, rho = problem.n, result.mechanisms.budget.rho
    trace = np.trace(used[0][0], axis1=1, axis2=2)
    expected = beta * np.cbrt(trace) * np.cbrt(T / (n**2 * (1 - gamma) * rho * theta))
    np.testing.assert_allclose(used[0][1], np.maximum(expected, 1 / n), rtol=1e-12)


@pytest.mark.parametrize("name", VARIANTS)
def test_with_ample_budget_and_no_noise_it_reaches_the_optimum(name):
    problem = small_problem(n=2000)
    T = 30 if "hess" in name else 400  # the quadratic bound converges linearly
    result = run(name, problem, T=T, epsilon=1e5, noiseless=True)
    assert problem.value(result.W) - problem.optimum().value == pytest.approx([0, 0], abs=1e-7)


def test_one_noiseless_step_is_a_newton_step(problem):
    """From zero, with λ₀ below every eigenvalue, clip is Newton's method itself."""
    smallest = np.linalg.eigvalsh(problem.data_hessian(np.zeros((1, problem.d)))[0])[0]
    result = run("dp-newton", problem, T=1, lambda0=float(smallest) / 2, noiseless=True)
    w = np.zeros((1, problem.d))
    newton = w[0] - np.linalg.solve(problem.data_hessian(w)[0], problem.data_gradient(w)[0])
    np.testing.assert_allclose(result.W[0], newton, rtol=1e-9)


def test_direction_noise_scales_with_the_noisy_gradient(problem):
    """w₁ - (w₀ - H̃⁻¹g̃) ~ N(0, ‖g̃‖²σ₂²): with λ₀ fixed and the gradient noise known by replaying the stream."""
    from dpbench.privacy.streams import stream

    k, lambda0 = 800, 0.05
    result = run("dp-newton", problem, T=1, lambda0=lambda0, start=np.zeros((k, problem.d)))
    n, rho = problem.n, result.mechanisms.budget.rho
    w = np.zeros((1, problem.d))
    sigma1 = 1 / (n * np.sqrt(2 * rho * 0.7))
    sigma2 = 1 / ((4 * n * lambda0**2 - lambda0) * np.sqrt(2 * rho * 0.3))
    H = problem.data_hessian(w)
    z = []
    for i in range(k):
        first = stream(f"test/dp-newton/{i}", "noise").standard_normal(problem.d)
        g = problem.data_gradient(w)[0] + sigma1 * first
        step = clip_and_solve(H, g[None], np.array([lambda0]))[0]
        z.append((result.W[i] + step) / (np.linalg.norm(g) * sigma2))
    z = np.concatenate(z)
    assert abs((z**2).mean() - 1) < 4 * np.sqrt(2 / z.size)
    assert stats.kstest(z, "norm").pvalue > 1e-4
