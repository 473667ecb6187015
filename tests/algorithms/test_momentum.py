"""dp-accelerated-nesterov (Algorithm 4): first step, noise, and the accelerated rate without noise."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

from dpbench import algorithms
from dpbench.algorithms import momentum
from dpbench.algorithms.base import make_settings
from dpbench.algorithms.momentum import ErrorWeights, balanced_T, error_weights, stages, steps
from dpbench.errors import UserError
from dpbench.privacy import Budget, Relation, accounting
from dpbench.privacy.ledger import Laplace, WithoutReplacement
from dpbench.privacy.noise import Releases
from dpbench.privacy.verify import spent
from dpbench.problems import Problem
from tests.algorithms.conftest import run, small_problem
from tests.batches import run_batch

PLAIN = ["dp-gd-laplace", "dp-hb", "dp-nag", "dp-masg"]
OPTIMISED = ["dp-nag-opt", "dp-masg-opt"]
ALL = PLAIN + OPTIMISED
N, D, L2, L = 300, 5, 0.5, 1.0  # κ = 2: the stages of dp-masg change at t = 2 and t = 14
EPSILON = 0.8


@pytest.fixture(scope="module")
def momentum_problem():
    rng = np.random.default_rng(7)
    X = rng.uniform(0, 1, (N, D))
    return Problem(X, np.where(X @ rng.standard_normal(D) > 0, 1.0, -1.0), l2=L2)


def budget(epsilon=EPSILON):
    return Budget(epsilon, 0.0, Relation.REPLACE_ONE, "pure")


def momentum_run(momentum_problem, name, k=3, *, noiseless=False, traced=False, start=None, **values):
    method = algorithms.get(name)
    if name in OPTIMISED:
        values = {"E0": 1e30} | values  # a bad start: T' = T, so that every iteration is tested
    settings = method.complete(momentum_problem, make_settings(method, {"L": L, **values}))
    start = np.ones((k, momentum_problem.d)) if start is None else start
    keys = [f"{name}/{i}" for i in range(k)]
    return run_batch(
        momentum_problem, method, [settings] * k, start, budget(), keys, traced=traced, noiseless=noiseless
    )


def alphas(name, T, c=1.0):
    return np.array([c / L if t < 1 or "masg" not in name else c / L / 16 for t in range(T)])  # T ≤ 13


def epsilons(name, T, c=1.0):
    """ε_t from (4.8) and Proposition 4.2, multiplied out."""
    if name in PLAIN:
        return np.full(T, EPSILON / T)
    alpha = alphas(name, T, c)
    stage = [1 if t < 1 or "masg" not in name else 2 for t in range(T)]
    a = [
        2.0 ** (stage[-1] - stage[t])
        * math.prod(1 - math.sqrt(L2 * alpha[i]) for i in range(t + 1, T))
        * alpha[t]
        * (1 + alpha[t] * L)
        for t in range(T)
    ]
    return EPSILON * np.cbrt(a) / np.cbrt(a).sum()


def scales(name, T, m):
    """b_t = S₁/(m ln(1 + (e^{ε_t} - 1) n/m)), S₁ = 40."""
    return np.array([40 / (m * math.log(1 + (math.exp(e) - 1) * N / m)) for e in epsilons(name, T)])


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("m", [N, 30])
def test_the_ledger_and_what_it_composes_to(momentum_problem, name, m):
    T = 6
    ran = momentum_run(momentum_problem, name, m=m, T=T)
    composition = ran.mechanisms.ledger.of(0)
    multipliers = []
    for entry in composition:
        release = entry.release
        assert entry.label == "gradient"
        if m < N:
            assert (type(release), release.n, release.m) == (WithoutReplacement, N, m)
            release = release.release
        assert isinstance(release, Laplace)
        multipliers += [release.noise_multiplier] * entry.count
    expected = scales(name, T, m) / (40 / m)
    np.testing.assert_allclose(np.sort(multipliers), np.sort(expected), rtol=1e-12)
    assert spent(composition, 0.0, Relation.REPLACE_ONE).epsilon == pytest.approx(EPSILON, rel=1e-12)
    assert budget().epsilon_of(composition) == pytest.approx(EPSILON, rel=1e-12)


@pytest.mark.thorough_for("30-*")
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("m", [N, 30])
def test_the_noise_has_variance_2b_squared(momentum_problem, name, m, monkeypatch):
    """b is the Laplace scale, not a standard deviation, at every iteration."""
    T, k = (6 if name == "dp-masg-opt" else 3), 1200  # of T = 3 dp-masg-opt runs one
    noise = drawn_noise(momentum_problem, name, monkeypatch, T=T, k=k, m=m)
    b = scales(name, T, m)
    z = variance_z(noise, b)
    assert np.abs(z).max() < 4.5, z
    assert np.abs(noise.mean(axis=(1, 2)) / b * math.sqrt(k * D / 2)).max() < 4.5
    assert (variance_z(noise / math.sqrt(2), b) < -10).all()  # the published code's scale would be seen
    assert (variance_z(noise / 2, b) < -10).all()


def drawn_noise(momentum_problem, name, monkeypatch, *, T, k, **values):
    noise = []
    add = Releases.noisy

    def spy(self, value, *args):
        noisy = add(self, value, *args)
        noise.append(noisy - value)
        return noisy

    with monkeypatch.context() as patch:
        patch.setattr(Releases, "noisy", spy)
        momentum_run(momentum_problem, name, k, T=T, **values)
    assert len(noise) == T
    return np.array(noise)


def variance_z(noise, b):
    """z of the mean square against 2b² per iteration; a Laplace's square has variance 20 b⁴."""
    count = noise[0].size
    return (np.mean(noise**2, axis=(1, 2)) / b**2 - 2) / math.sqrt(20 / count)


@pytest.mark.parametrize("name", ["dp-nag", "dp-masg-opt"])
@pytest.mark.parametrize("m", [N, 30])
def test_the_published_scale_is_marked_and_costs_what_its_row_says(momentum_problem, name, m, monkeypatch):
    method = algorithms.get(name)
    values = {"noise_scale": "as-published-code", "m": m}
    assert "does not meet" in method.flaw(make_settings(method, values))
    assert method.flaw(make_settings(method, {})) == ""
    b = scales(name, 6, m) / math.sqrt(2)
    assert np.abs(variance_z(drawn_noise(momentum_problem, name, monkeypatch, T=6, k=1200, **values), b)).max() < 4.5
    real = spent(
        momentum_run(momentum_problem, name, T=6, **values).mechanisms.ledger.of(0), 0.0, Relation.REPLACE_ONE
    ).epsilon
    assert real == pytest.approx(sum(math.log1p((math.exp(40 / (m * x)) - 1) * m / N) for x in b))
    assert real > 1.2 * EPSILON
    if m == N:
        assert real == pytest.approx(math.sqrt(2) * EPSILON)


def textbook(momentum_problem, name, T, c, start):
    """The noise-free methods as Section 2.1 and (4.7) write them, one point at a time."""
    alpha = alphas(name, T, c)
    x, before, path = start.copy(), start.copy(), [start.copy()]
    for t in range(T):
        if "masg" in name and t == 1:
            before = x  # the second stage starts afresh
        beta = (1 - math.sqrt(alpha[t] * L2)) / (1 + math.sqrt(alpha[t] * L2))
        if name == "dp-gd-laplace":
            following = x - alpha[t] * momentum_problem.gradient(x)
        elif name == "dp-hb":
            following = x - alpha[t] * momentum_problem.gradient(x) + beta * (x - before)
        else:
            z = (1 + beta) * x - beta * before
            following = z - alpha[t] * momentum_problem.gradient(z)
        before, x = x, following
        path.append(x)
    return path


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("c", [0.3, 1.0])
def test_without_noise_it_is_the_textbook_method(momentum_problem, name, c):
    start = np.random.default_rng(1).normal(0, 3, (2, D))
    path = textbook(momentum_problem, name, 9, c, start)
    ran = momentum_run(momentum_problem, name, 2, noiseless=True, traced=True, start=start, T=9, c=c)
    np.testing.assert_allclose(ran.W, path[-1], rtol=1e-12)
    for iteration, passes, _, objective in ran.trace.points:  # F at x_t, not at the extrapolated point
        assert np.all(passes == iteration)
        np.testing.assert_allclose(objective, momentum_problem.value(path[iteration]), rtol=1e-12)


def test_heavy_ball_is_descent_along_a_smoothed_gradient(momentum_problem):
    """(3.6) and (3.7): x_{t+1} = x_t - α/(1-β) ū_t."""
    alpha, T = 0.5 / L, 8
    beta = (1 - math.sqrt(alpha * L2)) / (1 + math.sqrt(alpha * L2))
    x, u = np.ones((1, D)), 0.0
    for _ in range(T):
        u = beta * u + (1 - beta) * momentum_problem.gradient(x)
        x = x - alpha / (1 - beta) * u
    np.testing.assert_allclose(momentum_run(momentum_problem, "dp-hb", 1, noiseless=True, T=T, c=0.5).W, x, rtol=1e-12)


def test_descent_on_the_regulariser_alone_has_a_closed_form():
    empty = Problem(np.zeros((10, D)), np.ones(10), l2=L2)
    ran = momentum_run(empty, "dp-gd-laplace", 1, noiseless=True, T=7, c=0.6)
    np.testing.assert_allclose(ran.W, np.full((1, D), (1 - 0.6 * L2) ** 7), rtol=1e-13)


@pytest.mark.parametrize("name", ALL)
def test_without_noise_it_finds_the_optimum(momentum_problem, name):
    ran = momentum_run(momentum_problem, name, 1, noiseless=True, T=400)
    assert len(ran.T) == 1
    assert ran.T[0] > 50
    # The steps of dp-masg shrink by four to the stage: it is the slowest of all without noise.
    assert np.linalg.norm(momentum_problem.gradient(ran.W)) < (1e-3 if "masg" in name else 1e-9)


@pytest.mark.parametrize("name", ["dp-hb", "dp-nag-opt"])
def test_a_replicate_does_not_depend_on_its_batch(momentum_problem, name):
    together = momentum_run(momentum_problem, name, 3, T=5, m=20).W
    np.testing.assert_allclose(momentum_run(momentum_problem, name, 1, T=5, m=20).W[0], together[0], rtol=1e-12)
    assert not np.allclose(together[0], together[1])


@pytest.mark.parametrize("name", PLAIN)
def test_step_sizes_may_differ_within_a_batch(momentum_problem, name):
    method = algorithms.get(name)
    cs = [0.2, 1.0]
    settings = [method.complete(momentum_problem, make_settings(method, {"L": L, "T": 5, "c": c})) for c in cs]
    ran = run_batch(momentum_problem, method, settings, np.ones((2, D)), budget(), ["a", "b"])
    for i, one in enumerate(settings):
        alone = run_batch(momentum_problem, method, [one], np.ones((1, D)), budget(), ["ab"[i]])
        np.testing.assert_allclose(ran.W[i], alone.W[0], rtol=1e-12)


@pytest.mark.parametrize("name", OPTIMISED)
def test_the_chosen_T_is_the_rows_and_ends_the_trace(momentum_problem, name):
    method = algorithms.get(name)
    ran = momentum_run(momentum_problem, name, E0=1e7, T=500, traced=True)
    (T,) = set(ran.T)
    assert 1 < T < 500
    assert ran.trace.points[-1][0] == T
    assert sum(e.count for e in ran.mechanisms.ledger.of(0)) == T
    np.testing.assert_allclose(ran.trace.points[-1][3], momentum_problem.value(ran.W))
    assert method.complete(momentum_problem, make_settings(method, {"T": 500})).T == 500


def test_one_row_moves_the_loss_gradient_by_at_most_S1():
    """S₁ = 40 over pairs of rows with ‖u‖₁ ≤ 20: random pairs stay below, the worst pair attains it."""
    rng = np.random.default_rng(3)

    def gradient(u, z, x):
        return Problem(u[None], np.array([z]), loss="logistic").gradient_sum(x)

    worst = 0.0
    for _ in range(400):
        pair = [rng.dirichlet(np.ones(D) * 0.3) * rng.choice([-1, 1], D) * 20 for _ in range(2)]
        z = rng.choice([-1.0, 1.0], 2)
        x = rng.normal(0, 10.0 ** rng.integers(-2, 3), D)
        worst = max(worst, np.abs(gradient(pair[0], z[0], x) - gradient(pair[1], z[1], x)).sum())
    assert 30 < worst <= 40 * (1 + 1e-12)
    x = np.array([-50.0, -50.0, 0, 0, 0])
    ends = [20 * np.eye(D)[j] for j in range(2)]
    assert np.abs(gradient(ends[0], 1.0, x) - gradient(ends[1], 1.0, x)).sum() == pytest.approx(40)


def test_neighbours_move_the_mean_gradient_by_at_most_S1_over_n(momentum_problem):
    """Replacing one row: the regulariser cancels, and the batch mean moves by S₁/n at most."""
    rng = np.random.default_rng(4)
    for _ in range(50):
        X, y = momentum_problem.X.copy(), momentum_problem.y.copy()
        X[0], y[0] = rng.dirichlet(np.ones(D) * 0.2) * 20, -y[0]
        W = rng.normal(0, 20, (3, D))
        moved = momentum_problem.data_gradient(W) - Problem(X, y, l2=L2).data_gradient(W)
        assert np.abs(moved).sum(axis=1).max() <= 40 / N * (1 + 1e-12)


@pytest.mark.parametrize("name", ALL)
def test_paper_tight_and_pure_are_one_accounting(name):
    method = algorithms.get(name)
    assert [method.accounting(mode) for mode in ("paper", "tight", "pure")] == ["pure"] * 3
    with pytest.raises(UserError, match="accounting"):
        method.accounting("bs16")
    assert (method.delta, method.relation, method.home) == (0.0, Relation.REPLACE_ONE, "accelerated")


def test_notes_say_where_L_comes_from(momentum_problem):
    assert "counted as public" in momentum_run(momentum_problem, "dp-nag", T=2, L=None).columns["notes"][0]
    assert momentum_run(momentum_problem, "dp-nag", T=2, L=3.0).columns["notes"] == [""] * 3


@pytest.mark.parametrize(
    ("name", "values", "l2", "words"),
    [
        ("dp-nag", {"m": N + 1}, L2, "lower m"),
        ("dp-hb", {}, 0.0, "set l2 > 0"),
        ("dp-nag-opt", {"L": 0.4}, L2, "c·l2 < L"),
        ("dp-nag", {"c": 0}, L2, "setting c"),
        ("dp-masg", {"noise_scale": "b/2"}, L2, "noise_scale"),
    ],
)
def test_settings_that_do_not_fit_are_named(momentum_problem, name, values, l2, words):
    other = Problem(momentum_problem.X, momentum_problem.y, l2=l2)
    method = algorithms.get(name)

    def complete():
        return method.complete(other, make_settings(method, values))

    with pytest.raises(UserError, match=words):
        complete()


def test_descent_alone_needs_no_strong_convexity(momentum_problem):
    momentum_run(Problem(momentum_problem.X, momentum_problem.y), "dp-gd-laplace", T=2, L=None)


def test_rows_beyond_the_bound_are_refused(momentum_problem):
    far = Problem(momentum_problem.X * 50, momentum_problem.y, l2=L2)
    with pytest.raises(UserError, match="₁ <= 20"):
        algorithms.get("dp-nag").needs.check(far, "dp-nag")


MU = 0.02


@pytest.fixture(scope="module")
def paper_L():
    from dpbench.datasets.drawn import cube

    U, _ = cube(None)
    return float(np.linalg.eigvalsh(U.T @ U / len(U))[-1]) + MU


def weights_of(T, c, L, multistage, mu=MU):
    stage = stages(T, L / mu) if multistage else np.ones(T, int)
    return error_weights(steps(stage, c / L), stage, mu, L)


def direct_a(T, alpha, stage, mu, L):
    """a_{T,t}, t = 1..T, and a_{T,0}, multiplied out as (4.8) writes them."""
    factor = [1 - math.sqrt(mu * a) for a in alpha[:T]]
    a = [
        2.0 ** (stage[T - 1] - stage[t]) * math.prod(factor[t + 1 :]) * alpha[t] * (1 + alpha[t] * L) for t in range(T)
    ]
    return np.array(a), 2.0 ** (stage[T - 1] - 1) * math.prod(factor)


def test_stage_lengths_of_fig_2_by_hand():
    # √20 = 4.472: ⌊2·4.472·ln 4.472⌋ = ⌊13.40⌋ = 13, ⌈4.472·ln 8⌉ = ⌈9.30⌉ = 10, so 13, 40, 80, 160, 320.
    stage = stages(613, 20.0, first=13)
    assert np.bincount(stage)[1:].tolist() == [13, 40, 80, 160, 320]
    assert stages(10, 20.0).tolist() == [1] * 10
    assert np.count_nonzero(stages(100, 20.0) == 1) == 14  # the experiments round up


def test_a_shorter_run_has_the_same_stages():
    whole = stages(700, 255.0)
    for T in (1, 88, 89, 90, 300):
        assert (stages(T, 255.0) == whole[:T]).all()


def test_steps_shrink_by_four_to_the_stage():
    assert steps(np.array([1, 1, 2, 3]), 0.5).tolist() == [0.5, 0.5, 0.5 / 16, 0.5 / 64]


@pytest.mark.parametrize("multistage", [False, True])
def test_weights_and_bounds_equal_the_products_of_the_paper(multistage):
    T, mu, L, noise, E0 = 40, 1.0, 3.0, 1e-3, 10.0
    stage = stages(T, L / mu) if multistage else np.ones(T, int)
    assert (stage.max() > 2) == multistage
    alpha = steps(stage, 0.9 / L)
    weights = error_weights(alpha, stage, mu, L)
    for end in (1, 2, 7, 25, 40):
        a, a0 = direct_a(end, alpha, stage, mu, L)
        np.testing.assert_allclose(np.exp(weights.growth[end - 1] + weights.own[:end]), a, rtol=1e-11)
        np.testing.assert_allclose(weights.shares(end), np.cbrt(a) / np.cbrt(a).sum(), rtol=1e-12)
        bound = a0 * E0 + noise * np.cbrt(a).sum() ** 3
        np.testing.assert_allclose(np.exp(weights.log_bounds(noise, E0)[end - 1]), bound, rtol=1e-11)


@pytest.mark.filterwarnings("ignore:Values in x were outside bounds")  # SLSQP of older SciPy
@pytest.mark.parametrize("multistage", [False, True])
def test_proposition_4_2_against_a_numerical_solution_of_4_4(multistage):
    # (4.4) at m = n with b_t = S₁/(n ε_t): minimise Σ a_t/ε_t² subject to Σ ε_t = ε.
    T, mu, L, epsilon = 12, 1.0, 2.0, 0.7
    stage = stages(T, L / mu) if multistage else np.ones(T, int)
    alpha = steps(stage, 1 / L)
    a, _ = direct_a(T, alpha, stage, mu, L)
    solution = minimize(
        lambda e: np.sum(a / e**2) / a.sum(),
        np.full(T, epsilon / T),
        jac=lambda e: -2 * a / e**3 / a.sum(),
        constraints={"type": "eq", "fun": lambda e: e.sum() - epsilon, "jac": np.ones_like},
        bounds=[(1e-4, epsilon)] * T,
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 2000},
    )
    ours = epsilon * error_weights(alpha, stage, mu, L).shares()
    assert solution.success
    np.testing.assert_allclose(ours, solution.x, rtol=2e-3)
    assert np.sum(a / ours**2) <= np.sum(a / solution.x**2) * (1 + 1e-9)
    assert np.ptp(ours) > 0.1 * epsilon / T  # and it is not the even split


@pytest.mark.parametrize("multistage", [False, True])
@pytest.mark.parametrize("T", [1, 100, 5000])
def test_budgets_sum_to_epsilon(T, multistage, paper_L):
    shares = weights_of(T, 1.0, paper_L, multistage).shares()
    assert len(shares) == T
    assert (shares > 0).all()
    assert abs(math.fsum(shares) - 1) <= 1e-12


@pytest.mark.parametrize("T", [1000, 5000])
@pytest.mark.parametrize(
    ("c", "nag", "masg", "nag_code"), [(0.1, 303, 89, 396), (0.5, 149, 89, 191), (1.0, 106, 89, 136)]
)
def test_the_chosen_T(T, c, nag, masg, nag_code, paper_L):
    noise = 20 * (40 / 1e5) ** 2  # d S₁²/(nε)² at d = 20, n = 100,000, ε = 1
    one_stage = weights_of(T, c, paper_L, multistage=False)
    assert one_stage.best_T(noise, 10.0) == nag
    assert weights_of(T, c, paper_L, multistage=True).best_T(noise, 10.0) == masg
    # The authors' code: a factor 2^{s_T'} before E₀, and α/2·(1 + αL).
    assert ErrorWeights(one_stage.growth, one_stage.own - math.log(2)).best_T(noise, 20.0) == nag_code


def test_every_candidate_in_one_pass_and_without_overflow():
    """200,000 candidates: O(T) each would be 4·10¹⁰ steps, and products underflow beyond T = 5,000 or so."""
    weights = weights_of(200_000, 1.0, 5.0, multistage=False)
    bounds = weights.log_bounds(3.2e-6, 10.0)
    assert np.isfinite(bounds).all()
    assert weights.best_T(3.2e-6, 10.0) == weights_of(1000, 1.0, 5.0, multistage=False).best_T(3.2e-6, 10.0)


def test_fig_2_by_hand():
    # Two iterations, one stage, μα = 1/4: 1 - √(μα) = 1/2, so a_{2,1} = a_{2,2}/2 and b_1/b_2 = 2^{1/3}.
    shares = error_weights(np.full(2, 0.25), np.ones(2, int), 1.0, 1.0).shares()
    np.testing.assert_allclose(1 / shares, [1 + 2 ** (1 / 3), 1 + 2 ** (-1 / 3)], rtol=1e-14)
    assert momentum.stages(3, 20.0, first=2).tolist() == [1, 1, 2]


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
