"""dp-newton-minibatch (Algorithm 7): two sampled releases an iteration, their noise, and the full-batch limit."""

import numpy as np
import pytest
from scipy import stats

from dpbench.algorithms import newton
from dpbench.algorithms.newton import SOLVE
from dpbench.privacy.accounting import renyi
from dpbench.privacy.ledger import Gaussian, Poisson
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.privacy.streams import stream
from dpbench.privacy.verify import spent
from tests.algorithms.conftest import run, small_problem

NAME = "dp-newton-minibatch"


def test_the_ledger_holds_two_poisson_releases_an_iteration_within_their_shares(problem):
    T, theta, epsilon = 6, 0.4, 2.0
    result = run(NAME, problem, T=T, theta=theta, epsilon=epsilon, gradient_rate=0.05, curvature_rate=0.2)
    budget = result.mechanisms.budget
    entries = {e.label: e for e in result.mechanisms.ledger.of(0)}
    for label, share, rate in (("gradient", 1 - theta, 0.05), ("direction", theta, 0.2)):
        assert entries[label].count == T
        assert entries[label].release.rate == rate
        multiplier = entries[label].release.release.noise_multiplier
        assert renyi.epsilon_of(((Poisson(rate, Gaussian(multiplier)), T),), share * budget.delta) == pytest.approx(
            share * epsilon, rel=1e-6
        )
    # (ε, δ) shares add up: joint composition shows what that leaves on the table.
    assert 0.4 * epsilon < spent(result.mechanisms.ledger.of(0), budget.delta, budget.relation).epsilon <= epsilon


@pytest.mark.parametrize("modification", ["clip", "add"])
def test_noise_follows_algorithm_7(problem, modification):
    """Gradient noise σ₁/(np_g), direction noise z/(4np_Hλ₀² ∓ λ₀)·‖g̃‖; samples and gradient noise replayed."""
    k, lambda0, p_g, p_H = 500, 0.05, 0.2, 0.3
    zero = np.zeros((k, problem.d))
    result = run(
        NAME,
        problem,
        T=1,
        lambda0=lambda0,
        modification=modification,
        gradient_rate=p_g,
        curvature_rate=p_H,
        start=zero,
    )
    keys = [f"test/{NAME}/{i}" for i in range(k)]
    again, n = Mechanisms(keys, result.mechanisms.budget), problem.n
    rows_g, rows_H = again.poisson(n, p_g, "g").draw(), again.poisson(n, p_H, "H").draw()
    z_g, z_H = (
        {e.label: e.release.release.noise_multiplier for e in result.mechanisms.ledger.of(0)}[label]
        for label in ("gradient", "direction")
    )
    sign = -1 if modification == "clip" else 1
    sigma2 = z_H / (4 * n * p_H * lambda0**2 + sign * lambda0)
    z = []
    for i, key in enumerate(keys):
        noise = z_g * stream(key, "noise").standard_normal(problem.d)
        g = (problem.gradient_sum(zero[0], rows_g[i]) + noise) / (n * p_g)
        H = problem.hessian_sum(zero[0], rows_H[i]) / (n * p_H)
        step = SOLVE[modification](H[None], g[None], np.array([lambda0]))[0]
        z.append((result.W[i] + step) / (np.linalg.norm(g) * sigma2))
    z = np.concatenate(z)
    assert stats.kstest(z, "norm").pvalue > 1e-4
    assert stats.kstest(2 * z, "norm").pvalue < 1e-6  # halved noise would fail


def test_clip_never_goes_below_what_its_proof_needs(problem, monkeypatch):
    used = []
    honest = newton.inverse_sensitivity
    monkeypatch.setattr(newton, "inverse_sensitivity", lambda n, l, m: used.append((float(l[0]), m)) or honest(n, l, m))
    for modification in ("clip", "add"):
        run(NAME, problem, T=1, lambda0=1e-4, modification=modification, curvature_rate=0.1)
    assert used == [(1 / (problem.n * 0.1), "clip"), (1e-4, "add")]


@pytest.mark.parametrize("curvature", ["hess", "qu"])
@pytest.mark.parametrize("modification", ["clip", "add"])
def test_without_noise_at_rate_one_it_is_dp_newton(problem, curvature, modification):
    given = {"T": 5, "curvature": curvature, "modification": modification, "lambda0": 0.01, "noiseless": True}
    ours = run(NAME, problem, gradient_rate=1 - 1e-12, curvature_rate=1 - 1e-12, **given).W
    np.testing.assert_allclose(ours, run("dp-newton", problem, **given).W, rtol=1e-8)


def test_without_noise_it_comes_near_the_optimum():
    problem = small_problem(n=4000)
    W = run(NAME, problem, T=30, lambda0=0.01, gradient_rate=0.5, curvature_rate=0.2, noiseless=True).W
    assert (problem.value(W) - problem.optimum().value < 1e-2).all()


@pytest.mark.parametrize("modification", ["clip", "add"])
@pytest.mark.parametrize("seed", range(20))
def test_one_sampled_example_never_moves_the_direction_by_more_than_claimed(seed, modification):
    """A row in the curvature sample or not: n p_H takes the place of n in Theorems B.2 and B.3."""
    generator = np.random.default_rng(seed)
    problem = small_problem(n=200, d=4, seed=seed)
    rate, lambda0 = 0.1, np.array([generator.uniform(1.01, 5) / 20])
    w, g = generator.standard_normal((2, 4))
    rows = np.flatnonzero(generator.random(200) < rate)
    rows = rows[rows != 0]
    both = [
        SOLVE[modification](problem.hessian_sum(w, some)[None] / (200 * rate), g[None], lambda0)[0]
        for some in (rows, np.append(0, rows))
    ]
    claimed = newton.inverse_sensitivity(200 * rate, lambda0[0], modification) * np.linalg.norm(g)
    assert np.linalg.norm(both[0] - both[1]) <= claimed * (1 + 1e-9)
