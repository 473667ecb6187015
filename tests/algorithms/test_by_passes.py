"""dp-gcd, dp-cd and dp-sgd-1: ledgers, the noise they draw, their limits without noise, common random numbers."""

import math

import numpy as np
import pytest
from scipy import sparse, stats

from dpbench import algorithms
from dpbench.algorithms import stochastic
from dpbench.algorithms.base import make_settings
from dpbench.errors import UserError
from dpbench.privacy import Budget, Relation
from dpbench.privacy.accounting.pure import advanced_composition
from dpbench.privacy.ledger import Gaussian, Laplace, PureDP, WithoutReplacement
from dpbench.privacy.verify import spent
from dpbench.problems import Declaration, Problem
from dpbench.run.job import make_job
from tests.algorithms.conftest import run
from tests.batches import run_batch

NAMES = ("dp-gcd", "dp-cd", "dp-sgd-1")
HUGE = 1e6  # a threshold that clips nothing


def make(n=60, d=6, loss="logistic", seed=0, **weights):
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((n, d)) * np.linspace(0.5, 2, d)
    margin = X @ np.where(np.arange(d) < 2, 2.0, 0.0) + 0.3 * generator.standard_normal(n)
    return Problem(X, margin if loss == "squared" else np.sign(margin), loss=loss, **weights)


def grid(name, values, passes, **more):
    method = algorithms.get(name)
    return method, [make_settings(method, {"passes": passes, "step": s, "clip": c, **more}) for s, c in values]


def together(name, problem, values, passes=2.0, keys=None, accounting="paper", noiseless=False, epsilon=1.0, **more):
    method, settings = grid(name, values, passes, **more)
    budget = Budget(epsilon, problem.n**-2.0, Relation.REPLACE_ONE, method.accounting(accounting))
    start = np.zeros((len(settings), problem.d))
    return run_batch(problem, method, settings, start, budget, keys or ["a"] * len(settings), noiseless=noiseless)


# ---- ledgers


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("accounting", ["paper", "tight"])
def test_dp_gcd_records_a_laplace_release_and_a_selection_each_iteration(epsilon, accounting):
    result = run("dp-gcd", make(), passes=7, epsilon=epsilon, accounting=accounting)
    (step, selection) = result.mechanisms.ledger.of(0)
    assert (step.count, selection.count) == (7, 7)
    assert isinstance(step.release, Laplace)
    assert isinstance(selection.release, PureDP)
    assert step.release.noise_multiplier == pytest.approx(1 / selection.release.epsilon)
    budget = result.mechanisms.budget
    real = spent((step, selection), budget.delta, budget.relation).epsilon
    if accounting == "tight":
        assert 0.95 * epsilon <= real <= epsilon * (1 + 1e-6)
    else:  # eq. (2), which is loose
        assert advanced_composition(selection.release.epsilon, 14, budget.delta) == pytest.approx(epsilon)
        assert budget.epsilon_of((step, selection)) == pytest.approx(epsilon)
        assert 0.3 * epsilon < real <= epsilon


@pytest.mark.parametrize(("accounting", "least"), [("paper", 0.8), ("tight", 0.99999)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_dp_cd_records_gaussians_that_use_up_epsilon(epsilon, accounting, least):
    result = run("dp-cd", make(), passes=5, epsilon=epsilon, accounting=accounting)
    (entry,) = result.mechanisms.ledger.of(0)
    assert entry.count == 30
    assert isinstance(entry.release, Gaussian)
    budget = result.mechanisms.budget
    assert budget.epsilon_of((entry,)) == pytest.approx(epsilon)
    assert least * epsilon <= spent((entry,), budget.delta, budget.relation).epsilon <= epsilon * (1 + 1e-6)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_dp_sgd_1_records_one_row_without_replacement_each_step(epsilon):
    result = run("dp-sgd-1", make(), passes=3, epsilon=epsilon, accounting="rdp")
    (entry,) = result.mechanisms.ledger.of(0)
    assert entry.count == 180
    assert isinstance(entry.release, WithoutReplacement)
    assert (entry.release.n, entry.release.m) == (60, 1)
    budget = result.mechanisms.budget
    assert budget.epsilon_of((entry,)) == pytest.approx(epsilon, rel=1e-6)
    assert 0.4 * epsilon <= spent((entry,), budget.delta, budget.relation).epsilon <= epsilon  # Rényi's bound is loose


def test_dp_sgd_1_with_poisson_accounting_says_what_it_really_spends():
    problem, method = make(), algorithms.get("dp-sgd-1")
    result = run("dp-sgd-1", problem, passes=3, accounting="paper")
    ledger, budget = result.mechanisms.ledger.of(0), result.mechanisms.budget
    assert budget.accounting == "poisson"
    assert budget.epsilon_of(ledger) == pytest.approx(1.0, rel=1e-6)  # what the paper's accountant says
    assert spent(ledger, budget.delta, budget.relation).epsilon > 1.5  # what replace-one costs
    settings = make_settings(method, {})
    assert "one row is drawn" in method.flaw(settings, "poisson")
    assert method.flaw(settings, "rdp") == ""


@pytest.mark.parametrize(("T", "low", "high"), [(1, 0, 1), (4, 0.75, 0.80), (10, 1.02, 1.10), (20, 1.15, 1.22)])
def test_the_published_selection_has_the_epsilon_the_spec_names(T, low, high):
    problem = make(n=1000)
    result = run("dp-gcd", problem, passes=T, selection="published")
    step, selection = result.mechanisms.ledger.of(0)
    assert selection.release.epsilon == pytest.approx(2 / step.release.noise_multiplier)
    budget = result.mechanisms.budget
    assert low <= spent((step, selection), budget.delta, budget.relation).epsilon <= high


def test_flaws_of_the_published_selection():
    method = algorithms.get("dp-gcd")
    published = make_settings(method, {"selection": "published"})
    assert "2ε'" in method.flaw(published, "advanced")
    assert method.flaw(make_settings(method, {}), "advanced") == ""
    result = run("dp-gcd", make(l1=0.01), passes=3, selection="published", accounting="tight")
    budget = result.mechanisms.budget  # "tight" pays for it: d Laplace releases for one selection
    assert method.flaw(published, "tight") == ""
    assert spent(result.mechanisms.ledger.of(0), budget.delta, budget.relation).epsilon <= 1 + 1e-6


# ---- the noise


def follows(noise, law):
    """KS at 1e-4; halved noise fails."""
    assert stats.kstest(noise, law.cdf).pvalue > 1e-4
    assert stats.kstest(noise / 2, law.cdf).pvalue < 1e-6


def test_dp_cd_draws_gaussians_of_its_multiplier_times_2C_over_n():
    problem, k, clip, step = make(), 1500, 0.7, 0.5
    result = run("dp-cd", problem, passes=1e-9, step=step, clip=clip, start=np.zeros((k, 6)))
    (entry,) = result.mechanisms.ledger.of(0)
    assert entry.count == 1
    rows, drawn = np.nonzero(result.W)
    assert (np.bincount(rows) == 1).all()  # one coordinate each
    counts = np.bincount(drawn, minlength=6)
    assert stats.chisquare(counts).pvalue > 1e-4  # uniform
    gradient = problem.clipped_gradient(np.zeros((1, 6)), np.array([clip]))[0]
    std = entry.release.noise_multiplier * 2 * clip * problem.clip_shares / problem.n
    noise = -result.W[rows, drawn] * problem.coordinate_constants[drawn] / step - gradient[drawn]
    follows(noise / std[drawn], stats.norm)


def test_dp_gcd_draws_fresh_laplace_noise_on_the_chosen_coordinate(monkeypatch):
    problem, k, clip, step = make(), 3000, 0.7, 0.5
    monkeypatch.setattr("dpbench.privacy.mechanisms.Mechanisms.noisy_argmax", lambda self, s, **_: np.full(k, 2))
    result = run("dp-gcd", problem, passes=1, step=step, clip=clip, start=np.zeros((k, 6)))
    (entry,) = result.mechanisms.ledger.of(0)
    gradient = problem.clipped_gradient(np.zeros((1, 6)), np.array([clip]))[0, 2]
    epsilon = 1 / entry.release.noise_multiplier
    scale = 2 * clip * problem.clip_shares[2] / (problem.n * epsilon)  # λ_j = 2C_j/(nε')
    follows((-result.W[:, 2] * problem.coordinate_constants[2] / step - gradient) / scale, stats.laplace)


@pytest.mark.parametrize(("selection", "factor"), [("proven", 4), ("published", 2)])
def test_dp_gcd_selects_by_laplace_noise_of_4C_over_n_or_as_published_2C(selection, factor, monkeypatch):
    """The noise that reaches the argmax, on |∇_j + Lap(λ'_j)|/sqrt(M_j)."""
    problem, k, clip = make(), 2000, 0.7
    seen = []

    def argmax(values, axis):
        seen.append(values.copy())
        return np.zeros(len(values), int)

    monkeypatch.setattr("dpbench.privacy.mechanisms.np.argmax", argmax)
    result = run("dp-gcd", problem, passes=1, clip=clip, selection=selection, start=np.zeros((k, 6)))
    epsilon = 1 / result.mechanisms.ledger.of(0)[0].release.noise_multiplier
    root = np.sqrt(problem.coordinate_constants)
    gradient = problem.clipped_gradient(np.zeros((1, 6)), np.array([clip]))[0]
    scale = factor * clip * problem.clip_shares / (problem.n * epsilon)
    for j in range(6):
        law = stats.laplace(gradient[j], scale[j])
        folded = law.cdf(seen[0][:, j] * root[j]) - law.cdf(-seen[0][:, j] * root[j])
        assert stats.kstest(folded, "uniform").pvalue > 1e-4
        half = stats.laplace(gradient[j], scale[j] / 2)
        folded = half.cdf(seen[0][:, j] * root[j]) - half.cdf(-seen[0][:, j] * root[j])
        assert stats.kstest(folded, "uniform").pvalue < 1e-6


def test_dp_sgd_1_draws_gaussians_of_its_multiplier_times_2C_and_uniform_rows():
    problem, k, clip, step = make(n=12), 3000, 0.3, 0.5
    result = run("dp-sgd-1", problem, passes=1e-9, step=step, clip=clip, accounting="rdp", start=np.zeros((k, 6)))
    (entry,) = result.mechanisms.ledger.of(0)
    G = -0.5 * problem.y[:, None] * problem.X
    G *= np.minimum(1, clip / np.linalg.norm(G, axis=1))[:, None]
    std = entry.release.release.noise_multiplier * 2 * clip
    rows = np.array([m.integers(12, size=1)[0] for m in again("dp-sgd-1", k)])
    assert stats.chisquare(np.bincount(rows, minlength=12)).pvalue > 1e-4
    follows(((-result.W / step - G[rows]) / std).ravel(), stats.norm)


def test_dp_sgd_1_with_2zC_doubles_the_noise_alone():
    """Common random numbers: what differs from the noiseless step doubles."""
    problem = make(n=12)
    common = {"passes": 1e-9, "step": 0.5, "clip": 0.3, "start": np.zeros((3, 6))}
    one, two = (run("dp-sgd-1", problem, noise=noise, **common) for noise in ("zC", "2zC"))
    quiet = run("dp-sgd-1", problem, noiseless=True, **common)
    np.testing.assert_allclose(two.W - quiet.W, 2 * (one.W - quiet.W), rtol=1e-9)
    z = [r.mechanisms.ledger.of(0)[0].release.release.noise_multiplier for r in (one, two)]
    assert z[1] == 2 * z[0]


def again(name, k):
    from dpbench.privacy.noise import stream

    return [stream(f"test/{name}/{i}", "sampling") for i in range(k)]


# ---- without noise


@pytest.mark.thorough_for("weights[23]-*")
@pytest.mark.parametrize("name", ["dp-gcd", "dp-cd"])
@pytest.mark.parametrize(
    "weights", [{"l2": 0.1}, {"l1": 0.05}, {"loss": "squared", "l1": 0.3}, {"loss": "squared", "l2": 0.1, "l1": 0.1}]
)
def test_without_noise_or_clipping_it_reaches_the_optimum(name, weights):
    problem = make(**weights)
    passes = 400 if name == "dp-cd" else 1500
    result = run(name, problem, passes=passes, clip=HUGE, noiseless=True, seeds=1)
    excess = problem.value(result.W)[0] - problem.optimum().value
    assert excess <= 1e-9 * max(1, problem.optimum().value)


def test_without_noise_a_small_sgd_step_comes_near_the_optimum():
    problem = make(l1=0.05)
    result = run("dp-sgd-1", problem, passes=3000, step=1e-3, clip=HUGE, noiseless=True, seeds=1)
    start = problem.value(np.zeros((1, 6)))[0]
    assert problem.value(result.W)[0] - problem.optimum().value < 2e-3 * start


@pytest.mark.parametrize("rule", ["gs-r", "gs-s", "gs-q"])
def test_the_greedy_rules_reach_the_optimum_and_are_one_rule_without_l1(rule):
    problem = make(loss="squared", l1=0.3)
    result = run("dp-gcd", problem, passes=1500, clip=HUGE, noiseless=True, seeds=1, rule=rule)
    assert problem.value(result.W)[0] == pytest.approx(problem.optimum().value, rel=1e-9)
    smooth = make(l2=0.1)
    one, other = (run("dp-gcd", smooth, passes=9, rule=r).W for r in ("gs-r", rule))
    np.testing.assert_array_equal(one, other)


def test_one_noiseless_greedy_step_is_the_closed_form():
    """From 0: j maximises |∇_j|/sqrt(M_j); then w_j = -soft(γ∇_j/M_j, γλ/M_j)."""
    problem = make(loss="squared", l1=0.3)
    W = run("dp-gcd", problem, passes=1, step=0.5, clip=HUGE, noiseless=True, seeds=1).W[0]
    gradient, M = problem.data_gradient(np.zeros((1, 6)))[0], problem.coordinate_constants
    j = np.argmax((np.abs(gradient) - 0.3) / np.sqrt(M))
    expected = np.zeros(6)
    expected[j] = -np.sign(gradient[j]) * max(abs(gradient[j]) - 0.3, 0) * 0.5 / M[j]
    np.testing.assert_allclose(W, expected, rtol=1e-12)


# ---- M_j by the bound on the rows


@pytest.mark.thorough_for("weights1-*")
@pytest.mark.parametrize("name", ["dp-gcd", "dp-cd"])
@pytest.mark.parametrize("weights", [{"l2": 0.1}, {"l1": 0.02}])
def test_with_scales_by_the_bound_it_reaches_the_optimum_too(name, weights):
    problem = make(row_bound=7.0, **weights)
    passes = 1000 if name == "dp-cd" else 6000
    result = run(name, problem, passes=passes, clip=HUGE, noiseless=True, seeds=1, scales="bound", step=3.0)
    assert problem.value(result.W)[0] == pytest.approx(problem.optimum().value, rel=1e-3)


@pytest.mark.parametrize("name", ["dp-gcd", "dp-cd"])
def test_scales_by_the_bound_see_no_data(name):
    """Data of other columns' sizes: the same noise to the last bit, and a column of zeros is a column."""
    common = {"passes": 1.0, "clip": 0.5, "scales": "bound"}
    one, other = make(row_bound=9.0), make(row_bound=9.0)
    X = np.array(other.X)
    X[:, 2] = 0.0
    X[:, 3] *= 0.1
    other = Problem(X, other.y, row_bound=9.0)
    ledgers = [run(name, problem, **common).mechanisms.ledger.summary() for problem in (one, other)]
    assert ledgers[0] == ledgers[1]
    many = run(name, other, seeds=400, **(common | {"passes": 1.0 / 6 if name == "dp-cd" else 1.0}))
    assert (many.W[:, 2] != 0).any()
    assert {row["sensitivity"].rpartition(" to ")[2] for row in ledgers[0] if row["label"] != "selection"} == {
        f"{2 * 0.5 / 6**0.5 / 60:.4g}"
    }


@pytest.mark.parametrize("name", ["dp-gcd", "dp-cd"])
def test_scales_by_the_bound_take_a_bound(name):
    method = algorithms.get(name)
    with pytest.raises(UserError, match="declare a row bound"):
        method.complete(Declaration(60, 6), make_settings(method, {"scales": "bound"}))


def test_clipping_evenly_moves_by_twice_the_threshold_at_most():
    """Every coordinate of the mean gradient, over replaced rows of any size: 2C/(√d n), and that is reached."""
    X, clip = np.random.default_rng(1).standard_normal((20, 5)), np.array([0.3, 2.0])
    bound = 2 * clip[:, None] / 5**0.5 / 20
    W, most = np.random.default_rng(2).standard_normal((2, 5)), 0.0
    for scale in (0.1, 10.0, 1e4):
        one, two = (Problem(np.vstack([X, sign * scale * np.ones(5)]), np.ones(21)) for sign in (1, -1))
        moved = np.abs(one.clipped_gradient(W, clip, even=True) - two.clipped_gradient(W, clip, even=True)) * 21 / 20
        assert (moved <= bound * (1 + 1e-9)).all()
        most = max(most, (moved / bound).max())
    assert most > 0.5


# ---- one stream for the grid


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("weights", [{"l1": 0.01}, {"l2": 0.1}])
def test_a_grid_on_one_stream_is_its_settings_one_by_one(name, weights):
    problem = make(**weights)
    values = [(0.1, 0.3), (0.1, 3.0), (0.7, 0.3), (1.0, HUGE)]
    all_at_once = together(name, problem, values).W
    for i, value in enumerate(values):
        np.testing.assert_allclose(together(name, problem, [value]).W[0], all_at_once[i], rtol=1e-9, atol=1e-12)
    assert (np.ptp(together(name, problem, [values[0]] * 3).W, axis=0) < 1e-15).all()  # equal numbers
    other = together(name, problem, values, keys=["a", "a", "b", "b"]).W  # two streams in one batch
    np.testing.assert_allclose(other[:2], all_at_once[:2], rtol=1e-9, atol=1e-12)
    assert not np.allclose(other[2:], all_at_once[2:])


@pytest.mark.thorough_for("dp-sgd-1")
@pytest.mark.parametrize("name", NAMES)
def test_sparse_data_give_what_dense_data_give(name):
    dense = make(n=50, d=30, l1=0.01)
    X = dense.X * (np.random.default_rng(3).random(dense.X.shape) < 0.2)
    left, right = Problem(X, dense.y, l1=0.01), Problem(sparse.csr_array(X), dense.y, l1=0.01)
    values = [(0.3, 0.1), (0.3, 1.0), (1.0, HUGE)]
    np.testing.assert_allclose(
        together(name, left, values, passes=2).W, together(name, right, values, passes=2).W, rtol=1e-7, atol=1e-10
    )


@pytest.mark.parametrize("weights", [{"l1": 0.01}, {"l2": 0.1}, {"loss": "squared", "l1": 0.1}])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_numba_and_numpy_give_the_same_results(weights, kind, monkeypatch):
    pytest.importorskip("numba")
    problem = make(n=50, d=12, **weights)
    if kind == "sparse":
        X = problem.X * (np.random.default_rng(3).random(problem.X.shape) < 0.3)
        problem = Problem(sparse.csr_array(X), problem.y, **weights)
    values = [(s, c) for s in (1e-3, 0.1, 1.0) for c in (0.01, 1.0, HUGE)]
    fast = together("dp-sgd-1", problem, values, passes=3, accounting="rdp").W
    monkeypatch.setattr(stochastic, "_compiled", lambda: None)
    slow = together("dp-sgd-1", problem, values, passes=3, accounting="rdp").W
    finite = np.isfinite(slow).all(axis=1)
    np.testing.assert_allclose(fast[finite], slow[finite], rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(np.isfinite(fast).all(axis=1), finite)


def test_what_is_drawn_does_not_depend_on_the_blocks(monkeypatch):
    problem = make(l1=0.01)
    whole = together("dp-sgd-1", problem, [(0.1, 1.0)], passes=3).W
    monkeypatch.setattr("dpbench.algorithms.stochastic.BLOCK", 7 * problem.d)
    monkeypatch.setattr("dpbench.algorithms.stochastic.ROWS", 1)
    np.testing.assert_allclose(together("dp-sgd-1", problem, [(0.1, 1.0)], passes=3).W, whole, rtol=1e-12)


def test_jobs_of_one_grid_share_a_stream_and_a_group_and_others_do_not():
    def job(**changes):
        given = {"problem": "synthetic", "algorithm": "dp-cd", "epsilon": 1.0, "seed": 0}
        settings = {"passes": 2, "step": 0.1, "clip": 1.0} | changes.pop("settings", {})
        return make_job(**given | changes, settings=settings)

    base = job()
    for same in ({"step": 0.5}, {"clip": 9.0}):
        assert job(settings=same).stream_key == base.stream_key
        assert job(settings=same).group == base.group
        assert job(settings=same).key != base.key
    assert job(timed=1).stream_key == base.stream_key
    for other in ({"seed": 1}, {"settings": {"passes": 3}}, {"epsilon": 2.0}, {"accounting": "tight"}):
        assert job(**other).stream_key != base.stream_key
        assert job(**other).group != base.group


@pytest.mark.parametrize(("passes", "T"), [(0.001, 1), (0.5, 3), (2, 12), (1.25, 8)])
def test_a_fraction_of_a_pass_is_at_least_one_iteration(passes, T):
    problem, method = make(), algorithms.get("dp-cd")
    assert method.iterations(problem, make_settings(method, {"passes": passes})) == T
    assert [algorithms.get(n).per_pass(60, 6) for n in NAMES] == [1, 6, 60]


@pytest.mark.parametrize("name", NAMES)
def test_traces_record_the_objective_at_scheduled_iterations(name):
    problem = make(l1=0.01)
    method, settings = grid(name, [(0.1, 1.0)], 2.0)
    budget = Budget(1.0, 1e-4, Relation.REPLACE_ONE, method.accounting("paper"))
    result = run_batch(problem, method, settings, np.zeros((1, 6)), budget, ["a"], traced=True)
    T = method.iterations(problem, settings[0])
    assert [point[0] for point in result.trace.points][:3] == [0, 1, 2]
    assert result.trace.points[-1][0] == T
    assert float(result.trace.points[-1][1][0]) == pytest.approx(2.0)
    assert result.trace.points[-1][3][0] == pytest.approx(problem.value(result.W)[0])
    assert result.trace.points[0][3][0] == pytest.approx(math.log(2))


# ---- columns of zeros


@pytest.mark.parametrize("l1", [0.0, 0.01])
@pytest.mark.parametrize(
    ("name", "more"), [("dp-gcd", {}), ("dp-gcd", {"selection": "published"}), ("dp-cd", {})], ids=str
)
def test_an_all_zero_column_is_as_if_it_were_not_there(name, more, l1):
    """Covertype has 22 of them: M_j = 0 is no step size, and no release can hide behind a sensitivity of 0."""
    full = make(l1=l1)
    holes = Problem(np.insert(full.X, [0, 3, 6], 0.0, axis=1), full.y, loss="logistic", l1=l1)
    method = algorithms.get(name)
    budget = Budget(1.0, 60**-2.0, Relation.REPLACE_ONE, method.accounting("paper"))
    found = {}
    for problem in (full, holes):  # as many steps on both: dp-cd counts d of them as a pass
        settings = {"passes": 12 / method.per_pass(60, problem.d), "step": 1.0, "clip": 2.0, **more}
        batch = [make_settings(method, settings)] * 2
        found[problem.d] = run_batch(problem, method, batch, np.zeros((2, problem.d)), budget, ["a", "b"])
        assert not found[problem.d].mechanisms.ledger.exact
    kept = [1, 2, 3, 5, 6, 7]
    np.testing.assert_allclose(found[9].W[:, kept], found[6].W, rtol=1e-9, atol=1e-12)
    assert (np.delete(found[9].W, kept, axis=1) == 0).all()


@pytest.mark.thorough
def test_one_row_at_a_time_under_tight_draws_less_and_spends_as_much_by_both_routes():
    from dpbench.privacy.check import check

    problem, noise = make(), {}
    for mode in ("rdp", "tight"):
        result = run("dp-sgd-1", problem, passes=3, epsilon=0.5, accounting=mode, seeds=1)
        budget, composition = result.mechanisms.budget, result.mechanisms.ledger.of(0)
        noise[mode] = composition[0].release.release.noise_multiplier
        found = check(composition, budget)
        assert not found.error
    assert 0.98 * budget.epsilon < found.epsilon <= budget.epsilon * (1 + 1e-6)
    assert noise["tight"] < 0.8 * noise["rdp"]
