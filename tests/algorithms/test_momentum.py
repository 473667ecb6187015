import math

import numpy as np
import pytest

from dpbench import algorithms
from dpbench.algorithms.base import make_settings
from dpbench.errors import UserError
from dpbench.privacy import Budget, Relation
from dpbench.privacy.ledger import Laplace, WithoutReplacement
from dpbench.privacy.release import Releases
from dpbench.privacy.verify import spent
from dpbench.problems import Problem
from tests.batches import run_batch

PLAIN = ["dp-gd-laplace", "dp-hb", "dp-nag", "dp-masg"]
OPTIMISED = ["dp-nag-opt", "dp-masg-opt"]
ALL = PLAIN + OPTIMISED
N, D, L2, L = 300, 5, 0.5, 1.0  # κ = 2: the stages of dp-masg change at t = 2 and t = 14
EPSILON = 0.8


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(7)
    X = rng.uniform(0, 1, (N, D))
    return Problem(X, np.where(X @ rng.standard_normal(D) > 0, 1.0, -1.0), l2=L2)


def budget(epsilon=EPSILON):
    return Budget(epsilon, 0.0, Relation.REPLACE_ONE, "pure")


def run(problem, name, k=3, *, noiseless=False, traced=False, start=None, **values):
    method = algorithms.get(name)
    if name in OPTIMISED:
        values = {"E0": 1e30} | values  # a bad start: T' = T, so that every iteration is tested
    settings = method.complete(problem, make_settings(method, {"L": L, **values}))
    start = np.ones((k, problem.d)) if start is None else start
    keys = [f"{name}/{i}" for i in range(k)]
    return run_batch(problem, method, [settings] * k, start, budget(), keys, traced=traced, noiseless=noiseless)


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
def test_the_ledger_and_what_it_composes_to(problem, name, m):
    T = 6
    ran = run(problem, name, m=m, T=T)
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


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("m", [N, 30])
def test_the_noise_has_variance_2b_squared(problem, name, m, monkeypatch):
    """b is the Laplace scale, not a standard deviation, at every iteration."""
    T, k = (6 if name == "dp-masg-opt" else 3), 1200  # of T = 3 dp-masg-opt runs one
    noise = drawn_noise(problem, name, monkeypatch, T=T, k=k, m=m)
    b = scales(name, T, m)
    z = variance_z(noise, b)
    assert np.abs(z).max() < 4.5, z
    assert np.abs(noise.mean(axis=(1, 2)) / b * math.sqrt(k * D / 2)).max() < 4.5
    assert (variance_z(noise / math.sqrt(2), b) < -10).all()  # the published code's scale would be seen
    assert (variance_z(noise / 2, b) < -10).all()


def drawn_noise(problem, name, monkeypatch, *, T, k, **values):
    noise = []
    add = Releases.noisy

    def spy(self, value, *args):
        noisy = add(self, value, *args)
        noise.append(noisy - value)
        return noisy

    with monkeypatch.context() as patch:
        patch.setattr(Releases, "noisy", spy)
        run(problem, name, k, T=T, **values)
    assert len(noise) == T
    return np.array(noise)


def variance_z(noise, b):
    """z of the mean square against 2b² per iteration; a Laplace's square has variance 20 b⁴."""
    count = noise[0].size
    return (np.mean(noise**2, axis=(1, 2)) / b**2 - 2) / math.sqrt(20 / count)


@pytest.mark.parametrize("name", ["dp-nag", "dp-masg-opt"])
@pytest.mark.parametrize("m", [N, 30])
def test_the_published_scale_is_marked_and_costs_what_its_row_says(problem, name, m, monkeypatch):
    method = algorithms.get(name)
    values = {"noise_scale": "as-published-code", "m": m}
    assert "does not meet" in method.flaw(make_settings(method, values))
    assert method.flaw(make_settings(method, {})) == ""
    b = scales(name, 6, m) / math.sqrt(2)
    assert np.abs(variance_z(drawn_noise(problem, name, monkeypatch, T=6, k=1200, **values), b)).max() < 4.5
    real = spent(run(problem, name, T=6, **values).mechanisms.ledger.of(0), 0.0, Relation.REPLACE_ONE).epsilon
    assert real == pytest.approx(sum(math.log1p((math.exp(40 / (m * x)) - 1) * m / N) for x in b))
    assert real > 1.2 * EPSILON
    if m == N:
        assert real == pytest.approx(math.sqrt(2) * EPSILON)


def textbook(problem, name, T, c, start):
    """The noise-free methods as Section 2.1 and (4.7) write them, one point at a time."""
    alpha = alphas(name, T, c)
    x, before, path = start.copy(), start.copy(), [start.copy()]
    for t in range(T):
        if "masg" in name and t == 1:
            before = x  # the second stage starts afresh
        beta = (1 - math.sqrt(alpha[t] * L2)) / (1 + math.sqrt(alpha[t] * L2))
        if name == "dp-gd-laplace":
            following = x - alpha[t] * problem.gradient(x)
        elif name == "dp-hb":
            following = x - alpha[t] * problem.gradient(x) + beta * (x - before)
        else:
            z = (1 + beta) * x - beta * before
            following = z - alpha[t] * problem.gradient(z)
        before, x = x, following
        path.append(x)
    return path


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("c", [0.3, 1.0])
def test_without_noise_it_is_the_textbook_method(problem, name, c):
    start = np.random.default_rng(1).normal(0, 3, (2, D))
    path = textbook(problem, name, 9, c, start)
    ran = run(problem, name, 2, noiseless=True, traced=True, start=start, T=9, c=c)
    np.testing.assert_allclose(ran.W, path[-1], rtol=1e-12)
    for iteration, passes, _, objective in ran.trace.points:  # F at x_t, not at the extrapolated point
        assert np.all(passes == iteration)
        np.testing.assert_allclose(objective, problem.value(path[iteration]), rtol=1e-12)


def test_heavy_ball_is_descent_along_a_smoothed_gradient(problem):
    """(3.6) and (3.7): x_{t+1} = x_t - α/(1-β) ū_t."""
    alpha, T = 0.5 / L, 8
    beta = (1 - math.sqrt(alpha * L2)) / (1 + math.sqrt(alpha * L2))
    x, u = np.ones((1, D)), 0.0
    for _ in range(T):
        u = beta * u + (1 - beta) * problem.gradient(x)
        x = x - alpha / (1 - beta) * u
    np.testing.assert_allclose(run(problem, "dp-hb", 1, noiseless=True, T=T, c=0.5).W, x, rtol=1e-12)


def test_descent_on_the_regulariser_alone_has_a_closed_form():
    empty = Problem(np.zeros((10, D)), np.ones(10), l2=L2)
    ran = run(empty, "dp-gd-laplace", 1, noiseless=True, T=7, c=0.6)
    np.testing.assert_allclose(ran.W, np.full((1, D), (1 - 0.6 * L2) ** 7), rtol=1e-13)


@pytest.mark.parametrize("name", ALL)
def test_without_noise_it_finds_the_optimum(problem, name):
    ran = run(problem, name, 1, noiseless=True, T=400)
    assert len(ran.T) == 1
    assert ran.T[0] > 50
    # The steps of dp-masg shrink by four to the stage: it is the slowest of all without noise.
    assert np.linalg.norm(problem.gradient(ran.W)) < (1e-3 if "masg" in name else 1e-9)


@pytest.mark.parametrize("name", ["dp-hb", "dp-nag-opt"])
def test_a_replicate_does_not_depend_on_its_batch(problem, name):
    together = run(problem, name, 3, T=5, m=20).W
    np.testing.assert_allclose(run(problem, name, 1, T=5, m=20).W[0], together[0], rtol=1e-12)
    assert not np.allclose(together[0], together[1])


@pytest.mark.parametrize("name", PLAIN)
def test_step_sizes_may_differ_within_a_batch(problem, name):
    method = algorithms.get(name)
    cs = [0.2, 1.0]
    settings = [method.complete(problem, make_settings(method, {"L": L, "T": 5, "c": c})) for c in cs]
    ran = run_batch(problem, method, settings, np.ones((2, D)), budget(), ["a", "b"])
    for i, one in enumerate(settings):
        alone = run_batch(problem, method, [one], np.ones((1, D)), budget(), ["ab"[i]])
        np.testing.assert_allclose(ran.W[i], alone.W[0], rtol=1e-12)


@pytest.mark.parametrize("name", OPTIMISED)
def test_the_chosen_T_is_the_rows_and_ends_the_trace(problem, name):
    method = algorithms.get(name)
    ran = run(problem, name, E0=1e7, T=500, traced=True)
    (T,) = set(ran.T)
    assert 1 < T < 500
    assert ran.trace.points[-1][0] == T
    assert sum(e.count for e in ran.mechanisms.ledger.of(0)) == T
    np.testing.assert_allclose(ran.trace.points[-1][3], problem.value(ran.W))
    assert method.complete(problem, make_settings(method, {"T": 500})).T == 500


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


def test_neighbours_move_the_mean_gradient_by_at_most_S1_over_n(problem):
    """Replacing one row: the regulariser cancels, and the batch mean moves by S₁/n at most."""
    rng = np.random.default_rng(4)
    for _ in range(50):
        X, y = problem.X.copy(), problem.y.copy()
        X[0], y[0] = rng.dirichlet(np.ones(D) * 0.2) * 20, -y[0]
        W = rng.normal(0, 20, (3, D))
        moved = problem.data_gradient(W) - Problem(X, y, l2=L2).data_gradient(W)
        assert np.abs(moved).sum(axis=1).max() <= 40 / N * (1 + 1e-12)


@pytest.mark.parametrize("name", ALL)
def test_paper_tight_and_pure_are_one_accounting(name):
    method = algorithms.get(name)
    assert [method.accounting(mode) for mode in ("paper", "tight", "pure")] == ["pure"] * 3
    with pytest.raises(UserError, match="accounting"):
        method.accounting("bs16")
    assert (method.delta, method.relation, method.home) == (0.0, Relation.REPLACE_ONE, "accelerated")


def test_notes_say_where_L_comes_from(problem):
    assert "counted as public" in run(problem, "dp-nag", T=2, L=None).columns["notes"][0]
    assert run(problem, "dp-nag", T=2, L=3.0).columns["notes"] == [""] * 3


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
def test_settings_that_do_not_fit_are_named(problem, name, values, l2, words):
    other = Problem(problem.X, problem.y, l2=l2)
    method = algorithms.get(name)

    def complete():
        return method.complete(other, make_settings(method, values))

    with pytest.raises(UserError, match=words):
        complete()


def test_descent_alone_needs_no_strong_convexity(problem):
    run(Problem(problem.X, problem.y), "dp-gd-laplace", T=2, L=None)


def test_rows_beyond_the_bound_are_refused(problem):
    far = Problem(problem.X * 50, problem.y, l2=L2)
    with pytest.raises(UserError, match="₁ <= 20"):
        algorithms.get("dp-nag").needs.check(far, "dp-nag")
