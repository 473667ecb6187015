"""opt and its variants, dp-tr and dp-gd-2ns: where they end, what they spend, that they look at releases alone."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from dpbench.algorithms import get
from dpbench.algorithms import nonconvex_oracle as const
from dpbench.algorithms.base import RunResult, batch_settings, make_settings, no_trace
from dpbench.algorithms.nonconvex import smallest_eigenpair, solve
from dpbench.algorithms.nonconvex_oracle import run_in_step
from dpbench.errors import UserError
from dpbench.privacy.budget import Budget, Budgets
from dpbench.privacy.ledger import CountedRelease, Gaussian, PureDP, WithoutReplacement
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.privacy.verify import spent
from dpbench.problems import Problem
from tests.algorithms.conftest import run, small_problem
from tests.batches import run_batch

FULL_BATCH = ("opt", "opt-ls", "2opt", "2opt-ls", "dp-tr", "dp-gd-2ns")
MINIBATCH = ("opt-b", "2opt-b", "dp-tr-b")
ALL = FULL_BATCH + MINIBATCH
EXACT = ("opt", "2opt", "dp-tr", "dp-gd-2ns")  # all releases are Gaussians on all rows

# Where they end

ALPHA = 5e-4


@pytest.fixture(scope="module")
def saddle():
    """(problem, w): a strict saddle on the first axis, where the slope across the axis vanishes.

    Rows (a, ±b) of one label are mirror images; rows (c, 0) of the other push along the axis to where the sigmoid of
    the pairs bends downwards.
    """
    a, b, c, l2 = 0.3, 0.95, 0.5, 1e-3
    X = np.array([[a, b]] * 125 + [[a, -b]] * 125 + [[c, 0.0]] * 250)
    problem = Problem(X, np.repeat([1.0, -1.0], 250), loss="sigmoid", l2=l2, row_bound=1.0)
    along = brentq(lambda t: problem.gradient(np.array([[t, 0.0]]))[0, 0], 2.0, 5.0, xtol=1e-15)
    return problem, np.array([along, 0.0])


def test_the_saddle_is_one(saddle):
    problem, w = saddle
    assert np.linalg.norm(problem.gradient(w[None])) < 1e-12
    values = np.linalg.eigvalsh(problem.hessian(w[None])[0])
    assert values[0] < -1.5 * const.target(ALPHA).curvature
    assert values[1] > 0


@pytest.mark.parametrize("name", ALL)
def test_without_noise_it_leaves_a_strict_saddle_and_ends_at_a_second_order_point(saddle, name):
    problem, w = saddle
    start = w + np.array([0.0, 1e-3 if name == "dp-gd-2ns" else 0.0])  # gradients alone do not leave the axis
    settings = {"alpha": ALPHA, "cap": 5000}
    if name.endswith("-b"):
        settings["m"] = problem.n
    if name.startswith("dp-tr"):
        settings["radius"] = "theory"
    result = run(name, problem, start=start[None], noiseless=True, **settings)
    assert result.columns["ending"] == ["terminated"]
    gradient = np.linalg.norm(problem.gradient(result.W))
    smallest = np.linalg.eigvalsh(problem.hessian(result.W)[0])[0]
    if not name.startswith("dp-tr"):  # which may end on a multiplier, at a point it has not looked at
        assert gradient <= const.target(ALPHA).gradient
    assert gradient <= 10 * ALPHA
    assert smallest >= -const.target(ALPHA).curvature
    assert problem.value(result.W) < problem.value(w[None]) - 1e-3
    assert result.columns["hessian_evaluations"][0] >= 2


@pytest.mark.parametrize("name", ["opt", "opt-ls"])
def test_without_noise_each_step_decreases_the_objective_by_min_dec_at_least(saddle, name):
    """Lemmas 2 and 7: where T comes from."""
    problem, w = saddle
    algorithm, values = get(name), []
    settings = algorithm.Settings(cap=5000)
    method = algorithm.method(w, problem, quiet(algorithm), ALPHA, settings)
    run_in_step(problem, [method], w[None], lambda t, W, **_: values.append(problem.value(W)[0]))
    assert len(values) > 10
    least = const.GAP / algorithm.planned(ALPHA, problem.d)
    assert (np.diff(values[:-1]) <= -least * (1 - 1e-6)).all()


def quiet(algorithm):
    budget = Budget(1.0, 0.01, algorithm.relation, algorithm.paper_accounting)
    return Mechanisms(["quiet"], budget, noiseless=True).member(0)


def test_without_noise_opt_is_algorithm_1():
    problem = small_problem(w2=1e-3)
    start = np.random.default_rng(3).standard_normal((1, 5))
    w = start[0]
    for _ in range(12):
        g = problem.gradient(w[None])[0]
        assert np.linalg.norm(g) > const.working(0.02).gradient
        w = w - g / const.G
    result = run("opt", problem, start=start, noiseless=True, alpha=0.02, cap=12)
    np.testing.assert_allclose(result.W[0], w, rtol=1e-10)


def test_without_noise_dp_tr_takes_the_subproblems_steps_and_stops_on_the_multiplier():
    problem = small_problem(w2=1e-3)
    start = np.random.default_rng(3).standard_normal((1, 5))
    w, alpha = start[0], 0.1
    t = 0
    while True:
        t += 1
        g, H = problem.gradient(w[None])[0], problem.hessian(w[None])[0]
        step = solve(H, g, alpha)
        at_w = np.linalg.norm(g) <= alpha and step.smallest >= -math.sqrt(alpha)
        if not at_w:
            w = w + step.s
        if at_w or step.multiplier < math.sqrt(alpha):
            break
    assert t > 3
    result = run("dp-tr", problem, start=start, noiseless=True, alpha=alpha)
    np.testing.assert_allclose(result.W[0], w, rtol=1e-10)
    assert result.columns["iterations"][0] == result.columns["hessian_evaluations"][0] == t


def test_without_noise_dp_gd_2ns_returns_its_first_second_order_point():
    problem = small_problem(w2=1e-3)
    start = np.random.default_rng(3).standard_normal((1, 5))
    gradient, curvature = const.working(0.1)
    w = start[0]
    while True:
        g, H = problem.gradient(w[None])[0], problem.hessian(w[None])[0]
        if np.linalg.norm(g) <= gradient and np.linalg.eigvalsh(H)[0] >= -curvature:
            break
        w = w - g
    result = run("dp-gd-2ns", problem, start=start, noiseless=True, alpha=0.1)
    np.testing.assert_allclose(result.W[0], w, rtol=1e-10)
    assert result.columns["gradient_evaluations"][0] == const.gd_2ns_iterations(0.1, 5)


@pytest.mark.parametrize("name", MINIBATCH)
def test_a_batch_of_all_rows_without_noise_is_the_full_batch_method(name):
    problem = small_problem(w2=1e-3)
    start = np.random.default_rng(3).standard_normal((2, 5))
    given = {"start": start, "noiseless": True, "alpha": 0.05}
    ours = run(name, problem, m=problem.n, **given)
    whole = run(name.removesuffix("-b"), problem, **given)
    np.testing.assert_allclose(ours.W, whole.W, rtol=1e-8)
    assert ours.columns["ending"] == whole.columns["ending"] == ["terminated"] * 2


def test_the_smallest_eigenpair_points_downhill():
    generator = np.random.default_rng(0)
    for _ in range(20):
        H, g = generator.standard_normal((6, 6)), generator.standard_normal(6)
        value, p = smallest_eigenpair(H + H.T, g)
        assert value == pytest.approx(np.linalg.eigvalsh(H + H.T)[0])
        np.testing.assert_allclose((H + H.T) @ p, value * p, atol=1e-12)
        assert np.linalg.norm(p) == pytest.approx(1)
        assert p @ g <= 0


# Status words, batches


def test_status_words():
    noisy, calm = small_problem(n=50), small_problem(n=50_000, d=2)
    assert run("dp-tr", noisy, alpha=0.5).columns["ending"] == ["not terminated"] * 2
    assert run("dp-tr", noisy, alpha=0.5, cap=3).columns["ending"] == ["not terminated (cap)"] * 2
    assert run("dp-tr", calm, alpha=0.5).columns["ending"] == ["terminated"] * 2
    assert run("dp-gd-2ns", noisy, alpha=0.5, cap=3).columns["ending"] == ["not terminated (cap)"] * 2


@pytest.mark.thorough_for("2opt-b", "dp-tr-b", "opt-b")
@pytest.mark.parametrize("name", ALL)
def test_replicates_of_different_alpha_and_epsilon_do_what_they_do_alone(name):
    problem = small_problem(n=3000, w2=1e-3)
    algorithm = get(name)
    alphas, epsilons = (0.5, 0.05, 0.5), (5.0, 5.0, 1.0)
    settings = [algorithm.complete(problem, make_settings(algorithm, {"alpha": a, "cap": 60})) for a in alphas]
    budgets = [Budget(e, 1 / 3000, algorithm.relation, algorithm.paper_accounting) for e in epsilons]
    start = np.random.default_rng(3).standard_normal((3, 5))
    keys = ["a", "b", "c"]
    together = run_batch(problem, algorithm, settings, start, Budgets(tuple(budgets)), keys)
    assert len(set(together.columns["iterations"])) > 1  # they end at different times
    for i in range(3):
        alone = run_batch(problem, algorithm, settings[i : i + 1], start[i : i + 1], budgets[i], keys[i : i + 1])
        np.testing.assert_allclose(together.W[i], alone.W[0], rtol=1e-7)
        assert together.status[i] == alone.status[0]
        assert together.mechanisms.ledger.of(i) == alone.mechanisms.ledger.of(0)
        for column in together.columns:
            assert together.columns[column][i] == alone.columns[column][0]


def test_the_trace_of_a_replicate_ends_where_it_ends():
    problem, algorithm = small_problem(n=3000, w2=1e-3), get("opt")
    settings = [algorithm.Settings(alpha=alpha, cap=60) for alpha in (0.5, 0.05)]
    start = np.random.default_rng(3).standard_normal((2, 5))
    budget = Budget(5.0, 1 / 3000, algorithm.relation, "standard")
    ran = run_batch(problem, algorithm, settings, start, budget, ["a", "b"], traced=True)
    for i in range(2):
        points = [(t, passes[i], values[i]) for t, passes, _, values in ran.trace.points if not np.isnan(passes[i])]
        iterations = ran.columns["iterations"][i]
        assert points[0] == (0, 0.0, problem.value(start)[i])
        assert points[-1][0] == iterations
        assert points[-1][1] == iterations + ran.columns["hessian_evaluations"][i]
        assert points[-1][2] == pytest.approx(problem.value(ran.W)[i])
        assert len({t for t, _, _ in points}) == len(points)


def test_the_sample_size_is_a_hundredth_of_the_rows_unless_given():
    problem, algorithm = small_problem(), get("opt-b")
    assert algorithm.complete(problem, algorithm.Settings()).m == 4
    assert algorithm.complete(problem, algorithm.Settings(m=9)).m == 9
    with pytest.raises(UserError, match="m = 401 rows"):
        algorithm.complete(problem, algorithm.Settings(m=401))


def test_lambda_min_is_measured_at_the_final_iterates():
    problem = small_problem(w2=1e-3)
    result = run("opt", problem, cap=3)
    measured = get("opt").measure(problem, RunResult(result.W), None, None)
    np.testing.assert_allclose(measured["lambda_min"], [np.linalg.eigvalsh(H)[0] for H in problem.hessian(result.W)])


# What they look at


class Blind:
    """The problem without its value, or with another one."""

    def __init__(self, problem, value=None):
        self.n, self.d, self.gradient, self.hessian = problem.n, problem.d, problem.gradient, problem.hessian
        self.value = value or refuse


def refuse(W):
    raise AssertionError("the objective was asked for")


@pytest.mark.parametrize("name", ["opt", "2opt", "dp-tr", "dp-gd-2ns", "opt-b", "2opt-b", "dp-tr-b"])
def test_the_objective_is_never_asked_for(name):
    problem, settings = small_problem(n=3000), {"alpha": 0.3, "cap": 50}
    np.testing.assert_array_equal(blind_run(name, Blind(problem), **settings), run(name, problem, **settings).W)


@pytest.mark.parametrize("name", ["opt-ls", "2opt-ls"])
def test_the_line_search_sees_differences_of_the_objective_only(name):
    problem, settings = small_problem(n=3000), {"alpha": 0.3, "cap": 50}
    shifted = Blind(problem, lambda W: problem.value(W) + 1.0)
    np.testing.assert_allclose(blind_run(name, shifted, **settings), run(name, problem, **settings).W, rtol=1e-9)


def blind_run(name, problem, **settings):
    algorithm = get(name)
    parsed = algorithm.complete(problem, make_settings(algorithm, settings))
    budget = Budget(1.0, 1 / problem.n, algorithm.relation, algorithm.paper_accounting)
    keys = [f"test/{name}/{i}" for i in range(2)]
    batch = batch_settings([parsed] * 2, algorithm.per_replicate)
    mechanisms = Mechanisms(keys, budget, declared=algorithm.relation)
    return algorithm.run(problem, np.zeros((2, problem.d)), mechanisms, batch, no_trace).W


@pytest.mark.parametrize("name", ["opt", "2opt", "opt-ls", "dp-tr"])
def test_it_ends_by_what_was_released(name, monkeypatch):
    """A Hessian follows a gradient within the tolerance and no other, and the last pair is within them."""
    problem, releases = small_problem(n=2000, w2=1e-3), []
    honest = Mechanisms.gaussian

    def noted(self, value, **given):
        releases.append((given["label"], honest(self, value, **given)[0]))
        return releases[-1][1][None]

    monkeypatch.setattr(Mechanisms, "gaussian", noted)
    start = np.random.default_rng(3).standard_normal((1, 5))
    result = run(name, problem, start=start, alpha=0.3, epsilon=5.0)
    assert result.columns["ending"] == ["terminated"]
    gradient, curvature = const.target(0.3) if name == "dp-tr" else const.working(0.3)
    within = [np.linalg.norm(r) <= gradient for label, r in releases if label == "gradient"]
    labels = [label for label, _ in releases]
    if name != "dp-tr":
        followed = [b == "hessian" for a, b in zip(labels, [*labels[1:], "end"], strict=True) if a == "gradient"]
        assert within == followed
        assert within[-1]
        assert np.linalg.eigvalsh(releases[-1][1])[0] >= -curvature
    else:
        assert labels == ["gradient", "hessian"] * (len(labels) // 2)
        step = solve(releases[-1][1], releases[-2][1], 0.3)
        assert step.multiplier < curvature or (within[-1] and step.smallest >= -curvature)
    ended = [
        a[0] == "gradient" and np.linalg.norm(a[1]) <= gradient and np.linalg.eigvalsh(b[1])[0] >= -curvature
        for a, b in itertools.pairwise(releases)
        if b[0] == "hessian"
    ]
    assert not any(ended[:-1])


# What they spend


def planned_composition(name, problem, budget, alpha, settings):
    """The most a run may release: T gradients, T Hessians and T line searches of each phase."""
    algorithm = get(name)
    if hasattr(algorithm, "phases"):
        phases = algorithm.phases(problem, budget, alpha, settings)
    else:
        T = algorithm.planned(alpha, problem.d)
        sigma = algorithm.sigma(problem, budget, T, settings) if "tr" in name else math.sqrt(T / budget.rho)
        phases = [(T, sigma)]
    entries = []
    for T, sigma in phases:
        one = WithoutReplacement(problem.n, settings.m, Gaussian(sigma)) if name.endswith("-b") else Gaussian(sigma)
        entries += [CountedRelease(one, T, "gradient"), CountedRelease(one, T, "hessian")]
        if name.endswith("-ls"):
            entries.append(CountedRelease(PureDP(1 / sigma), T, "line search"))
    return tuple(entries), phases


@pytest.mark.thorough_for("2opt-b-*", "2opt-ls-*", "dp-tr-b-*", "opt-ls-*")
@pytest.mark.parametrize("alpha", [0.5, 0.06])
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
@pytest.mark.parametrize("name", ALL)
def test_all_planned_releases_compose_to_what_was_asked(name, epsilon, alpha):
    """By the paper's accounting exactly, by an independent one to no more; a run makes some of them, no others."""
    problem = small_problem(n=5000, d=3)
    algorithm = get(name)
    budget = Budget(epsilon, 1 / 5000, algorithm.relation, algorithm.paper_accounting)
    settings = algorithm.complete(problem, make_settings(algorithm, {"alpha": alpha, "cap": 200}))
    planned, _ = planned_composition(name, problem, budget, alpha, settings)
    assert budget.epsilon_of(planned) == pytest.approx(epsilon, rel=1e-6)
    independent = spent(planned, budget.delta, budget.relation).epsilon
    assert 0.3 * epsilon <= independent <= epsilon * (1 + 1e-6)  # Rényi's bound on samples is that loose

    result = run_batch(problem, algorithm, [settings], np.zeros((1, 3)), budget, ["spent"])
    allowed = {}
    for entry in planned:
        allowed[entry.release, entry.label] = allowed.get((entry.release, entry.label), 0) + entry.count
    for entry in result.mechanisms.ledger.of(0):
        assert entry.count <= allowed[entry.release, entry.label]


@pytest.mark.parametrize("name", EXACT)
def test_with_tight_accounting_nothing_is_wasted(name):
    problem = small_problem(n=5000, d=3)
    algorithm = get(name)
    budget = Budget(1.0, 1 / 5000, algorithm.relation, "tight")
    planned, _ = planned_composition(name, problem, budget, 0.06, algorithm.Settings())
    assert spent(planned, budget.delta, budget.relation).epsilon == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("name", ["opt-ls", "2opt-ls"])
def test_a_line_search_is_no_gaussian_so_tight_rho_is_refused(name):
    with pytest.raises(UserError, match=f"accounting: 'tight' does not apply to {name}; known: .*paper"):
        get(name).accounting("tight")


@pytest.mark.parametrize("name", ["dp-tr", "dp-tr-b"])
def test_a_run_of_all_iterations_spends_all(name):
    problem = small_problem(n=60, d=3)
    result = run(name, problem, alpha=0.1, m=20) if name.endswith("-b") else run(name, problem, alpha=0.1)
    T, budget = const.trust_region_iterations(0.1), result.mechanisms.budget
    assert result.columns["ending"] == ["not terminated"] * 2
    assert [(e.label, e.count) for e in result.mechanisms.ledger.of(0)] == [("gradient", T), ("hessian", T)]
    assert budget.epsilon_of(result.mechanisms.ledger.of(0)) == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("name", ["opt-ls", "2opt-ls"])
def test_every_step_pays_for_its_line_search(name):
    result = run(name, small_problem(n=60), alpha=0.2)
    entries = result.mechanisms.ledger.of(0)
    count = {label: sum(e.count for e in entries if e.label == label) for label in ("gradient", "line search")}
    assert result.columns["ending"][0] == "not terminated"
    assert count["line search"] == count["gradient"] == result.T[0]


def test_two_phases_share_the_budget_three_to_one():
    result = run("2opt", small_problem(n=60), alpha=0.2)
    T = const.short_step_iterations(0.2)
    first = math.isqrt(T)
    gradients = [e for e in result.mechanisms.ledger.of(0) if e.label == "gradient"]
    rho, by_count = result.mechanisms.budget.rho, {e.count: e.release.noise_multiplier for e in gradients}
    assert by_count == pytest.approx({first: math.sqrt(4 * first / (3 * rho)), T: math.sqrt(4 * T / rho)})
    assert result.T.count(first + T) == 2


def test_the_first_phase_on_minibatches_costs_three_quarters_of_epsilon():
    problem, algorithm = small_problem(n=5000, d=3), get("2opt-b")
    budget = Budget(1.0, 1 / 5000, algorithm.relation, "rdp")
    settings = algorithm.complete(problem, algorithm.Settings(alpha=0.1))
    planned, ((first, _), _) = planned_composition("2opt-b", problem, budget, 0.1, settings)
    assert planned[0].count == planned[1].count == first
    assert budget.epsilon_of(planned[:2]) == pytest.approx(0.75, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "variance"), [("opt", lambda T, rho: T / rho), ("2opt", lambda T, rho: 4 * math.isqrt(T) / (3 * rho)),
    ("dp-gd-2ns", lambda T, rho: T / rho)],
)  # fmt: skip
def test_noise_of_a_gradient_step(name, variance):
    k, n, alpha = 400, 50, 0.04
    problem = small_problem(n=n)
    result = run(name, problem, alpha=alpha, cap=1, start=np.full((k, 5), 0.1))
    T = const.gd_2ns_iterations(alpha, 5) if name == "dp-gd-2ns" else const.short_step_iterations(alpha)
    std = 2 / n * math.sqrt(variance(T, result.mechanisms.budget.rho))
    z = ((0.1 - result.W - problem.gradient(np.full((1, 5), 0.1))) / std).ravel()
    assert stats.kstest(z, "norm").pvalue > 1e-4
    assert stats.kstest(2 * z, "norm").pvalue < 1e-6  # halved noise would fail


def test_noise_of_a_gradient_step_on_a_minibatch():
    k, n, m = 300, 200, 20
    problem = small_problem(n=n)
    w = np.full((k, 5), 0.1)
    result = run("opt-b", problem, alpha=0.04, cap=1, m=m, start=w)
    (entry,) = result.mechanisms.ledger.of(0)
    again = Mechanisms([f"test/opt-b/{i}" for i in range(k)], result.mechanisms.budget)
    samples = again.without_replacement(n, m, "gradient").draw()
    g = np.concatenate([problem.gradient(w[:1], rows) for rows in samples])
    z = ((w - result.W - g) / (2 / m * entry.release.release.noise_multiplier)).ravel()
    assert stats.kstest(z, "norm").pvalue > 1e-4
    assert stats.kstest(2 * z, "norm").pvalue < 1e-6
