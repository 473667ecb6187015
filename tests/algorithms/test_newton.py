"""dp-newton against Algorithms 3 and 5, closed forms and worst-case neighbours.

dp-newton-minibatch (Algorithm 7): two sampled releases an iteration, their noise, and the full-batch limit.

Going back to the start: what it does, what it leaves alone, and which radius keeps ε.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpbench.algorithms import get, newton
from dpbench.algorithms.base import make_settings
from dpbench.algorithms.newton import SOLVE, add_and_solve, clip_and_solve, inverse_sensitivity
from dpbench.errors import UserError
from dpbench.privacy import accounting
from dpbench.privacy.accounting import renyi
from dpbench.privacy.ledger import Gaussian, Poisson, Relation
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.privacy.noise import stream
from dpbench.privacy.sampling import PoissonSampler
from dpbench.privacy.verify import spent
from dpbench.problems import optimum
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
    from dpbench.privacy.noise import stream

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
def test_one_sampled_example_moves_the_direction_by_as_much_as_claimed_and_never_by_more(modification):
    """A row in the curvature sample or not: n p_H takes the place of n in Theorems B.2 and B.3."""
    rate, ratios = 0.1, []
    for seed in range(20):
        generator = np.random.default_rng(seed)
        problem = small_problem(n=200, d=4, seed=seed)
        lambda0 = np.array([generator.uniform(1.01, 5) / 20])
        w, g = generator.standard_normal((2, 4))
        rows = np.flatnonzero(generator.random(200) < rate)
        # The steepest row at its steepest point, along the gradient, beside the worst of the others.
        worst = lambda0 * np.eye(4) if modification == "clip" else np.zeros((4, 4))
        alone = (np.zeros(4), problem.X[0], rows[:0], worst)
        for v, direction, sample, others in ((w, g, rows[rows != 0], np.zeros((4, 4))), alone):
            both = [
                SOLVE[modification](
                    others[None] + problem.hessian_sum(v, some)[None] / (200 * rate), direction[None], lambda0
                )[0]
                for some in (sample, np.append(0, sample))
            ]
            claimed = newton.inverse_sensitivity(200 * rate, lambda0[0], modification) * np.linalg.norm(direction)
            ratios.append(np.linalg.norm(both[0] - both[1]) / claimed)
    assert (0.85 if modification == "clip" else 1 - 1e-9) < max(ratios) <= 1 + 1e-9


METHODS = ("dp-newton", "damped-newton", "dp-newton-minibatch")


def test_rows_outside_the_ball_and_no_others_are_back_at_their_own_start():
    W = np.array([[3.0, 4.0], [3.0, 4.1], [np.nan, 0.0], [np.inf, 0.0]])
    start = np.arange(8.0).reshape(4, 2)
    back = newton.back_inside(W, start, 5.0)
    np.testing.assert_array_equal(back, [W[0], start[1], start[2], start[3]])
    assert newton.back_inside(W, start, np.inf) is W


@pytest.mark.parametrize("name", METHODS)
def test_a_run_ends_at_its_start_when_the_last_iterate_is_outside(name):
    """Every iterate is: the run is then its own start, whatever was released."""
    problem = small_problem()
    start = np.random.default_rng(3).standard_normal((3, problem.d)) / 1e4
    far = run(name, problem, T=3, epsilon=0.05, start=start)
    assert (np.linalg.norm(far.W, axis=1) > 1e-3).all()
    np.testing.assert_array_equal(run(name, problem, T=3, epsilon=0.05, start=start, reset=1e-3).W, start)


@pytest.mark.parametrize("name", METHODS)
def test_a_wide_radius_changes_nothing(name):
    problem = small_problem()
    free, held = (run(name, problem, T=4, reset=reset) for reset in (None, 1e12))
    np.testing.assert_array_equal(free.W, held.W)


def test_the_published_radius_is_of_the_optimum():
    problem = small_problem()
    norm = np.linalg.norm(optimum.solve_newton(problem, 1e-9))
    assert newton.radius(problem, "optimum") == pytest.approx(100 * norm + 200, rel=1e-12)
    assert newton.radius(problem, 7.0) == 7.0
    assert newton.radius(problem, None) == np.inf


@pytest.mark.parametrize("name", ["dp-newton", "dp-newton-minibatch"])
def test_the_public_radius_keeps_epsilon_and_the_published_one_does_not(name):
    method = get(name)
    assert method.flaw(make_settings(method, {"reset": 1000.0}), "bs16") == ""
    assert "w*" in method.flaw(make_settings(method, {"reset": "optimum"}), "bs16")
    problem = small_problem()
    reset = run(name, problem, T=3, reset=0.5)
    assert spent(reset.mechanisms.ledger.of(0), problem.n**-2.0, Relation.ADD_REMOVE).epsilon <= 1.0


def test_settings_are_read_from_the_command_line_and_refused_in_one_line():
    method = get("dp-newton")
    assert make_settings(method, {"reset": "1000"}).reset == 1000.0
    assert make_settings(method, {"reset": "optimum"}).reset == "optimum"
    for wrong in ("0", "nearest"):
        with pytest.raises(UserError, match="reset"):
            make_settings(method, {"reset": wrong})


@pytest.mark.parametrize(("name", "kind"), [("dp-newton", Mechanisms), ("dp-newton-minibatch", PoissonSampler)])
@pytest.mark.parametrize("modification", ["clip", "add"])
def test_the_noise_on_a_direction_is_in_proportion_to_the_gradient_it_is_made_of(name, kind, modification, monkeypatch):
    """‖(H̃⁻¹ - H̃'⁻¹)g̃‖ is ‖g̃‖ times a number at most, another where a row is replaced: with less noise no ε holds."""
    seen, inner = [], kind.gaussian

    def watched(self, value, **how):
        seen.append((how, released := inner(self, value, **how), getattr(self, "size", 1)))
        return released

    monkeypatch.setattr(kind, "gaussian", watched)
    problem = small_problem()
    run(name, problem, T=1, lambda0=0.1, modification=modification, accounting="tight")
    (_, gradient, divisor), (direction, _, size) = seen
    norms = np.linalg.norm(gradient / divisor, axis=1)
    n = problem.n if kind is Mechanisms else size
    one, both = newton.sharp_sensitivities(n, np.full(2, 0.1), modification)
    np.testing.assert_allclose(direction["sensitivity"], norms * one, rtol=1e-12)
    np.testing.assert_allclose(direction["replaced"], norms * both, rtol=1e-12)
