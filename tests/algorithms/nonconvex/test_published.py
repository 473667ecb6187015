"""Nine switches between an honest run and a published one: each does what it says, alone, and says what it costs."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from dpbench.algorithms import get
from dpbench.algorithms import nonconvex_oracle as const
from dpbench.algorithms.base import make_settings, no_trace
from dpbench.algorithms.nonconvex_base import FLAWS, LARGEST_RHO, SEEDS, LossWatch, recorded
from dpbench.algorithms.nonconvex_oracle import (
    OVERFLOW,
    Gradient,
    Guard,
    Hessian,
    Iterate,
    RunLost,
    SmallestMargin,
    Value,
)
from dpbench.errors import UserError
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Gaussian, Relation, WithoutReplacement
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.privacy.noise import TorchCPU
from dpbench.problems import Problem
from tests.algorithms.conftest import run, small_problem

METHODS = ("opt", "opt-ls", "2opt", "2opt-ls", "dp-tr", "dp-gd-2ns", "opt-b", "2opt-b", "dp-tr-b")
MINIBATCH = METHODS[6:]
SWITCHES = {
    "rows": "as scaled",
    "stop": "true loss",
    "loss_read": "before",
    "batch_noise": "n",
    "batch_draw": "with replacement",
    "search": "rho <= 1",
    "overflow": "lost",
    "hessian_root": "twice",
    "stream": "published",
}
APPLIES = {
    "stop": METHODS[:4],
    "loss_read": METHODS[:5],
    "batch_noise": MINIBATCH,
    "batch_draw": MINIBATCH,
    "search": ("opt-b", "2opt-b"),
    "hessian_root": ("dp-tr", "dp-tr-b"),
}


def asks(generator, answer):
    """What a generator asks, and what it returns, where `answer` answers."""
    asked, reply = [], None
    try:
        while True:
            asked.append(generator.send(reply))
            reply = answer(asked[-1])
    except StopIteration as end:
        return asked, end.value


# ---- all nine ----


@pytest.mark.parametrize("switch", SWITCHES)
def test_each_switch_is_a_setting_of_the_methods_it_is_about(switch):
    for name in METHODS:
        known = switch in get(name).Settings.__struct_fields__
        assert known is (name in APPLIES.get(switch, METHODS)), name


@pytest.mark.parametrize("switch", SWITCHES)
def test_a_switch_says_whether_it_keeps_the_guarantee(switch):
    algorithm = get(next(iter(APPLIES.get(switch, METHODS))))
    settings = make_settings(algorithm, {switch: SWITCHES[switch]})
    keeps = switch in ("loss_read", "search", "hessian_root")
    assert bool(algorithm.flaw(settings)) is not keeps
    assert algorithm.flaw(settings) == FLAWS.get((switch, SWITCHES[switch]), "")


def test_no_switch_is_a_default():
    for name in METHODS:
        assert get(name).flaw(get(name).Settings()) == ""
        defaults = get(name).Settings()
        assert all(getattr(defaults, switch, None) != value for switch, value in SWITCHES.items())


# ---- rows ----


def test_longer_rows_are_taken_only_where_the_setting_says_so():
    X = 2 * small_problem(n=60).X
    problem = Problem(X, small_problem(n=60).y, row_bound=2.0)
    assert run("opt", problem, alpha=0.4, cap=2, rows="as scaled").status == ["done"] * 2
    with pytest.raises(UserError, match="needs rows"):
        run("opt", problem, alpha=0.4, cap=2, stop="true loss")  # another flaw is no excuse


def test_only_the_sigmoid_may_have_longer_rows():
    X = np.array([[3.22, 0.0], [0.0, 1.0]])
    y = np.array([1.0, -1.0])
    needs = get("opt").needs
    needs.check(Problem(X, y, loss="sigmoid", row_bound=3.22), "opt")
    with pytest.raises(UserError, match="<= 1"):
        needs.check(Problem(X, y, row_bound=3.22), "opt")
    with pytest.raises(UserError, match=r"<= 3\.22"):
        needs.check(Problem(1.1 * X, y, loss="sigmoid"), "opt")


# ---- the stop on the true loss ----


def looks(values, loss, iterations=0):
    """How many iterations a watch lets pass when it sees these values of the loss; all, if it never ends the run."""
    watch = LossWatch(SimpleNamespace(loss=SimpleNamespace(name=loss)), True, iterations)
    for t in range(10 * len(values)):
        asked, last = asks(watch.look(np.zeros(1)), lambda _, t=t: values[(t + iterations % 10) // 10])
        assert len(asked) == (0 if (t + iterations) % 10 else 1)
        if last:
            return t + 1
    return 10 * len(values)


@pytest.mark.parametrize(
    ("values", "loss", "iterations"),
    [
        ([5, 4, 3, 2], "logistic", 40),
        ([5, 4, 4.5, 3], "logistic", 21),
        ([5, 6, 7, 6, 7, 8, 9, 1], "sigmoid", 61),
        ([5, 6, 7, 6, 7], "sigmoid", 50),
        ([101, 5], "logistic", 1),  # the first look is compared with 100
    ],
)
def test_the_true_loss_ends_a_run_once_it_has_risen_often_enough(values, loss, iterations):
    assert looks(values, loss) == iterations


def test_the_stop_on_the_true_loss_is_of_the_papers_losses():
    with pytest.raises(UserError, match="of the losses logistic, sigmoid, not of pseudo-huber"):
        run("opt", small_problem(n=60, loss="pseudo-huber"), alpha=0.4, cap=2, stop="true loss")


def test_in_loss_b_the_count_goes_on_from_phase_one():
    watch = LossWatch(SimpleNamespace(loss=SimpleNamespace(name="sigmoid")), True, iterations=37)
    asked = [len(asks(watch.look(np.zeros(1)), lambda _: 1.0)[0]) for _ in range(14)]
    assert [t for t, looked in enumerate(asked) if looked] == [3, 13]  # iterations 40 and 50 of the run


@pytest.mark.parametrize("loss", ["logistic", "sigmoid"])
@pytest.mark.parametrize("name", ["opt", "2opt"])
def test_which_phases_watch_the_true_loss(name, loss):
    """Loss A: opt alone, never 2opt. Loss B: opt, and phase two of 2opt."""
    problem, algorithm = small_problem(n=60, loss=loss), get(name)
    settings = make_settings(algorithm, {"stop": "true loss"})
    watched = [algorithm.watched(phase, problem, settings) for phase in range(len(algorithm.lengths(0.1)))]
    assert watched == ([True] if name == "opt" else [False, loss == "sigmoid"])
    assert not algorithm.watched(0, problem, algorithm.Settings())


def test_the_step_of_the_iteration_that_looks_is_still_made():
    """So a run that rises at iteration 10 ends after 11, and its last iterate is one step beyond what was looked at."""
    problem = small_problem(n=40)
    stopped = run("opt", problem, epsilon=0.05, alpha=0.02, cap=200, stop="true loss")
    for i, iterations in enumerate(stopped.columns["iterations"]):
        assert iterations % 10 == 1
        cut = run("opt", problem, epsilon=0.05, alpha=0.02, cap=iterations)
        assert np.allclose(stopped.W[i], cut.W[i])


# ---- where the loss is read ----


def test_the_loss_before_the_last_step_is_that_of_the_iterate_before():
    problem = small_problem(n=60)
    for name in ("opt", "dp-tr", "opt-ls", "2opt"):
        after = run(name, problem, epsilon=0.1, alpha=0.05, cap=4)
        before = run(name, problem, epsilon=0.1, alpha=0.05, cap=5, loss_read="before")
        assert before.columns["iterations"] == [5, 5]
        assert np.allclose(before.W, after.W), name


def test_a_run_that_terminates_where_it_stands_reads_its_loss_there():
    def method():
        yield Iterate(np.array([1.0]))
        yield Iterate(np.array([2.0]))
        return np.array([2.0]), "terminated"

    asked, (w, ending) = asks(recorded(method(), SimpleNamespace(loss_read="before")), lambda _: None)
    assert (len(asked), w.tolist(), ending) == (2, [2.0], "terminated")


def test_a_method_that_has_nothing_left_to_do_ends_at_once():
    def nothing():
        return np.zeros(2), "not terminated"
        yield

    assert asks(recorded(nothing(), SimpleNamespace(loss_read="before")), None)[1][1] == "not terminated"


# ---- batches ----


def batches_and_releases(rounds=200, **settings):
    """n = 200, m = 40, σ = 3 for gradients and 6 for Hessians: (rows per request, noise by kind, releases by label)."""
    problem, algorithm = small_problem(n=200), get("opt-b")
    mechanisms = Mechanisms(["shared"], Budget(1.0, 1e-3, Relation.REPLACE_ONE, "rdp")).member(0)
    given = algorithm.complete(problem, make_settings(algorithm, {"m": 40, **settings}))
    oracle = algorithm.oracle(problem, mechanisms, 3.0, given, Guard(problem), 6.0)
    noise, rows = {"gradient": [], "hessian": []}, []
    for _ in range(rounds):
        for kind, shape in (("gradient", (5,)), ("hessian", (5, 5))):
            asked, released = asks(getattr(oracle, kind)(np.full(5, 0.1)), lambda _, shape=shape: np.zeros(shape))
            assert isinstance(asked[0], {"gradient": Gradient, "hessian": Hessian}[kind])
            rows.append(asked[0].rows)
            noise[kind].append(released)
    return rows, noise, {entry.label: entry.release for entry in mechanisms.ledger.of(0)}


@pytest.mark.parametrize("noise", ["m", "n"])
@pytest.mark.parametrize("draw", ["without replacement", "with replacement"])
def test_noise_and_draw_of_batches_are_switches_of_their_own(noise, draw):
    rows, drawn, releases = batches_and_releases(batch_noise=noise, batch_draw=draw)
    per = 200 if noise == "n" else 40
    assert np.std(drawn["gradient"]) == pytest.approx(3.0 * 2 / per, rel=0.1)
    assert np.std(drawn["hessian"]) == pytest.approx(6.0 * 2 * math.sqrt(5) / per, rel=0.1)
    share = 40 / per  # the ledger's multipliers are relative to the sensitivities on m rows
    assert releases == {
        "gradient": WithoutReplacement(200, 40, Gaussian(3.0 * share)),
        "hessian": WithoutReplacement(200, 40, Gaussian(6.0 * share)),
    }
    shared = draw == "with replacement"
    assert all((a is b) is shared for a, b in zip(rows[::2], rows[1::2], strict=True))
    distinct = 200 * (1 - (1 - 1 / 200) ** 40) if shared else 40
    assert np.mean([len(np.unique(one)) for one in rows]) == pytest.approx(distinct, abs=0.5)


def test_the_search_adds_no_less_noise_than_that_of_rho_1():
    """Hence the same noise at every ε that asks for less; and never less than is asked for, so ε is kept."""
    problem, algorithm = small_problem(n=5000, d=3), get("opt-b")
    T = const.short_step_iterations(0.06)
    settings = algorithm.complete(problem, make_settings(algorithm, {"search": "rho <= 1", "alpha": 0.06}))
    sigmas = {}
    for epsilon in (0.02, 0.6, 1.0):
        budget = Budget(epsilon, 1 / 5000, algorithm.relation, "rdp")
        (phase,) = algorithm.phases(problem, budget, 0.06, settings)
        sigmas[epsilon] = phase.sigma
        asked = budget.noise_scale(((WithoutReplacement(5000, 50, Gaussian(1.0)), 2 * T),))
        assert phase.sigma == max(asked, math.sqrt(T / LARGEST_RHO))
    assert sigmas[0.6] == sigmas[1.0] < sigmas[0.02]


def test_minibatches_are_a_hundredth_of_the_rows():
    for name in MINIBATCH:
        assert get(name).complete(small_problem(n=250), get(name).Settings()).m == 2


def test_dp_tr_b_with_the_noise_of_all_rows_has_dp_trs_own():
    problem = small_problem(n=500)
    full = run("dp-tr", problem, alpha=0.02, cap=2).mechanisms.ledger.of(0)[0].release
    batch = run("dp-tr-b", problem, alpha=0.02, cap=2, batch_noise="n").mechanisms.ledger.of(0)[0].release.release
    assert batch.noise_multiplier == pytest.approx(full.noise_multiplier * 5 / 500)


# ---- overflow ----


@pytest.mark.parametrize(("smallest", "lost"), [(-OVERFLOW * 1.001, True), (-OVERFLOW * 0.999, False)])
def test_a_run_is_lost_where_a_float32_gradient_is_no_number(smallest, lost):
    problem = SimpleNamespace(loss=SimpleNamespace(name="logistic"), row_norm=100.0)
    w, guard = np.array([1.0]), Guard(problem, on=True)

    def answer(request):
        return smallest if isinstance(request, SmallestMargin) else 0.5

    value = asks(guard.value(w), answer)[1]
    assert value == (math.inf if lost else 0.5)
    if lost:
        with pytest.raises(RunLost):
            asks(guard.check(w, None), answer)
    else:
        asks(guard.check(w, None), answer)
    assert [type(one) for one in asks(Guard(problem).value(w), answer)[0]] == [Value]  # switched off, nothing is asked
    assert [type(one) for one in asks(Guard(problem, on=True).value(w / 200), answer)[0]] == [Value]  # nor far away


def test_the_limit_is_where_float32_overflows():
    with np.errstate(over="ignore"):
        assert np.isinf(np.exp(np.float32(OVERFLOW * (1 + 1e-6))))
    assert np.isfinite(np.exp(np.float32(OVERFLOW * (1 - 1e-6))))


def test_a_lost_run_ends_as_crashed_and_the_others_go_on():
    X = np.vstack([np.eye(2), -np.eye(2)])
    problem = Problem(X, np.ones(4))
    start = np.array([[0.0, 0.0], [100.0, 0.0]])
    for name in ("opt", "opt-ls", "dp-tr"):
        result = run(name, problem, epsilon=50.0, alpha=2.0, start=start, overflow="lost", delta=1e-2)
        assert (result.columns["ending"][0] != "crashed", result.columns["ending"][1]) == (True, "crashed")
        assert run(name, problem, epsilon=50.0, alpha=2.0, start=start, delta=1e-2).columns["ending"][1] != "crashed"


def test_the_smallest_margin_is_over_the_rows_asked_for():
    from dpbench.algorithms.nonconvex_oracle import run_in_step

    problem = small_problem(n=30)
    w, rows, found = np.arange(5.0), np.array([3, 3, 7]), []

    def method():
        yield Iterate(w)
        found.append((yield SmallestMargin(w)))
        found.append((yield SmallestMargin(w, rows)))
        return w, "not terminated"

    done = run_in_step(problem, [method()], w[None], no_trace)
    margins = problem.y * (problem.X @ w)
    assert found == pytest.approx([margins.min(), margins[rows].min()])
    assert done.passes[0] == 0  # it is no pass that a run is charged with


# ---- dp-tr's second root of d ----


@pytest.mark.parametrize("name", ["dp-tr", "dp-tr-b"])
def test_the_second_root_of_d_is_in_the_hessians_noise_alone(name):
    problem = small_problem(n=500)
    for root, factor in (("once", 1.0), ("twice", math.sqrt(5))):
        result = run(name, problem, alpha=0.02, cap=2, hessian_root=root)
        gradient, hessian = (e.release for e in result.mechanisms.ledger.of(0))
        if name == "dp-tr-b":
            gradient, hessian = gradient.release, hessian.release
        assert hessian.noise_multiplier == pytest.approx(factor * gradient.noise_multiplier)


# ---- the stream ----


def published(problem, name, seeds, **settings):
    """`run` on the published stream, with these seeds of jobs."""
    algorithm = get(name)
    parsed = algorithm.complete(problem, make_settings(algorithm, {**settings, "stream": "published"}))
    budget = Budget(1.0, 1 / problem.n, algorithm.relation, algorithm.accounting("paper"))
    mechanisms = Mechanisms([f"{seed}" for seed in seeds], budget, declared=algorithm.relation)
    mechanisms.seeds = tuple(seeds)
    from dpbench.algorithms.base import batch_settings

    shared = batch_settings([parsed] * len(seeds), algorithm.per_replicate)
    return algorithm.run(problem, np.full((len(seeds), problem.d), 9.0), mechanisms, shared, no_trace), mechanisms


def test_the_published_stream_draws_the_start_and_then_each_gradients_noise():
    problem = small_problem(n=300, d=20)
    outcome, mechanisms = published(problem, "opt", [2, 0], alpha=0.02, cap=1)
    sigma = mechanisms.ledger.of(0)[0].release.noise_multiplier
    for i, seed in ((0, SEEDS[2]), (1, SEEDS[0])):
        generator = TorchCPU(seed)
        w = generator.standard_normal(20)
        g = problem.gradient(w[None])[0] + generator.standard_normal(20) * sigma * 2 / 300
        assert np.allclose(outcome.W[i], w - g, atol=1e-12)


def test_the_published_batches_are_drawn_by_numpys_generator():
    problem = small_problem(n=300, d=20)
    outcome, mechanisms = published(
        problem, "opt-b", [4], alpha=0.02, cap=1, batch_draw="with replacement", batch_noise="n", m=30
    )
    generator, rows = TorchCPU(128), np.random.default_rng(128).choice(300, size=30)
    w = generator.standard_normal(20)
    sigma = mechanisms.ledger.of(0)[0].release.release.noise_multiplier  # relative to m rows
    g = problem.gradient(w[None], rows=rows)[0] + generator.standard_normal(20) * sigma * 2 / 30
    assert np.allclose(outcome.W[0], w - g, atol=1e-12)


def test_the_published_stream_has_five_seeds():
    problem = small_problem(n=30)
    for seed in (5, -1):
        with pytest.raises(UserError, match="seeds 0 to 4"):
            published(problem, "opt", [seed], alpha=0.1)
    with pytest.raises(UserError, match="a run without a seed"):
        run("opt", problem, alpha=0.1, stream="published")


# ---- less noise, for wrong recipes ----


@pytest.mark.parametrize("name", METHODS)
def test_half_the_noise_is_in_every_release_and_is_no_more_private(name):
    algorithm, problem = get(name), small_problem(n=60)
    assert algorithm.flaw(algorithm.Settings(noise=2.0)) == ""
    assert "0.5 of the noise" in algorithm.flaw(algorithm.Settings(noise=0.5))
    whole, half = (run(name, problem, alpha=0.2, cap=1, noise=noise) for noise in (1.0, 0.5))
    for one, other in zip(whole.mechanisms.ledger.of(0), half.mechanisms.ledger.of(0), strict=True):
        a, b = (e.release.release if name in MINIBATCH else e.release for e in (one, other))
        if one.label == "line search":
            assert b.epsilon == pytest.approx(2 * a.epsilon)
        else:
            assert b.noise_multiplier == pytest.approx(a.noise_multiplier / 2)
