"""o2nc, o2nc-tree and o2nc-naive: noise, ledger, limits and the path of a case that can be written down."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

from dpbench.algorithms import get, o2nc, zeroth_order
from dpbench.algorithms.base import make_settings
from dpbench.errors import UserError
from dpbench.privacy import Budget, Mechanisms
from dpbench.privacy.ledger import Gaussian
from dpbench.privacy.verify import spent
from dpbench.problems import Problem
from tests.algorithms.conftest import run, small_problem
from tests.batches import run_batch

DELTA = 1e-6


def epsilon_of(rho):
    return rho**2 / 2 + rho * math.sqrt(2 * math.log(1 / DELTA))


def flat(n=400, d=3):
    """Ramp losses at their cap around x = 0.5·1: every estimate is exactly 0, so what is released is the noise."""
    X = np.full((n, d), 1 / math.sqrt(d))
    return Problem(X, -np.ones(n), loss="ramp", row_bound=1.0)


def oracle(name, k, rho, *, accounting="standard", noiseless=False, **values):
    algorithm, problem = get(name), flat()
    settings = algorithm.complete(problem, make_settings(algorithm, {"M": 400, **values}))
    budget = Budget(epsilon_of(rho), DELTA, algorithm.relation, accounting)
    mechanisms = Mechanisms([f"{name}-{i}" for i in range(k)], budget, noiseless=noiseless)
    rows = mechanisms.single_pass(problem.n, "oracle")
    coins = zeroth_order.Coins(mechanisms.coins)
    made = algorithm._oracle(problem, rows, mechanisms, settings, settings.T, coins)
    return made, mechanisms, np.full((k, problem.d), 0.5)


def z_of(noise, std):
    return ((noise / std) ** 2).mean(), math.sqrt(2 / noise.size)


def test_tree_noise_per_node_is_that_of_corollary_4_4():
    """σ = sqrt(h)·4dL/(Tρ), h = 3 for T = 7, and TREE(7) sums three nodes."""
    rho, T, k, d = 2.0, 7, 1500, 3
    ask, _, w = oracle("o2nc-tree", k, rho, T=T)
    released = [ask(w) for _ in range(T)]
    std = math.sqrt(3) * 4 * d / (T * rho)
    for t, nodes in ((1, 1), (4, 1), (7, 3)):
        ratio, error = z_of(released[t - 1], std * math.sqrt(nodes))
        assert abs(ratio - 1) < 4 * error
        assert abs(ratio / 4 - 1) > 4 * error  # halved noise would fail


def test_tight_accounting_counts_nodes_round_by_round():
    """Of T = 7's rounds, the first is in 3 nodes with 2dL/(T+1), the others in 2 with 4dL/T."""
    T, k, d = 7, 1500, 3
    ask, mechanisms, w = oracle("o2nc-tree", k, 2.0, accounting="tight", T=T)
    cost = max(3 * (2 * d / (T + 1)) ** 2, 2 * (4 * d / T) ** 2)
    ratio, error = z_of(ask(w), math.sqrt(cost / (2 * mechanisms.budget.rho)))
    assert abs(ratio - 1) < 4 * error


@pytest.mark.parametrize(("of", "lengths"), [({}, 3), ({"oracle": "gradient"}, 1)], ids=["two points", "gradient"])
def test_naive_noise_is_2L_over_B_rho_and_of_two_points_d_times_it(of, lengths):
    """Flat losses leave the noise alone."""
    rho, B, k = 2.0, 5, 3000
    ask, _, w = oracle("o2nc-naive", k, rho, T=4, B=B, **of)
    ratio, error = z_of(ask(w), 2 * lengths / (B * rho))
    assert abs(ratio - 1) < 4 * error
    assert abs(ratio / 4 - 1) > 4 * error


@pytest.mark.parametrize("name", ["o2nc-tree", "o2nc-naive"])
@pytest.mark.parametrize("accounting", ["standard", "tight"])
def test_the_ledger_holds_one_gaussian_for_the_whole_run(name, accounting):
    problem = small_problem(loss="ramp")
    result = run(name, problem, epsilon=epsilon_of(0.8), accounting=accounting, T=20, radius=0.2)
    budget = result.mechanisms.budget
    (entry,) = result.mechanisms.ledger.of(0)
    assert entry.count == 1
    assert isinstance(entry.release, Gaussian)
    assert entry.release.noise_multiplier == pytest.approx(1 / math.sqrt(2 * budget.rho), rel=1e-12)
    if accounting == "standard":
        assert entry.release.noise_multiplier == pytest.approx(1 / 0.8, rel=1e-9)  # the paper's ρ
    assert budget.epsilon_of(result.mechanisms.ledger.of(0)) == pytest.approx(budget.epsilon, rel=1e-9)
    checked = spent(result.mechanisms.ledger.of(0), DELTA, budget.relation).epsilon
    assert checked <= budget.epsilon * (1 + 1e-6)
    if accounting == "tight":
        assert checked >= 0.95 * budget.epsilon


def batch(name, problem, noiseless=False, k=2, epsilon=1.0, **values):
    algorithm = get(name)
    settings = algorithm.complete(problem, make_settings(algorithm, values))
    budget = Budget(epsilon, DELTA, algorithm.relation, "standard")
    start = np.full((k, problem.d), 0.4)
    keys = [f"same/{i}" for i in range(k)]
    return run_batch(problem, algorithm, [settings] * k, start, budget, keys, noiseless=noiseless)


def test_without_noise_the_tree_is_o2nc():
    problem = small_problem(loss="ramp")
    np.testing.assert_array_equal(batch("o2nc-tree", problem, noiseless=True, T=10).W, batch("o2nc", problem, T=10).W)


def test_the_path_under_a_constant_gradient(monkeypatch):
    """g̃ = e₁ always, as an exact oracle on F = x₁ would say: Δ₁ = 0 and Δ_t = -D e₁ from round 2 on."""
    d, n, T, radius = 3, 60, 5, 0.25
    problem = Problem(np.tile(np.eye(d)[0], (n, 1)), np.zeros(n), loss="phase", row_bound=1.0)
    monkeypatch.setattr(zeroth_order, "grad", lambda problem, x, *_, **__: np.tile(np.eye(d)[0], (len(x), 1)))
    monkeypatch.setattr(zeroth_order, "diff", lambda problem, x, *_, **__: np.zeros_like(x))
    algorithm, D, K = get("o2nc"), radius / T, n // (2 * T)
    settings = algorithm.complete(problem, make_settings(algorithm, {"T": T, "radius": radius}))
    start = np.tile(10.0 * np.eye(d)[0], (40, 1))
    keys = [f"path/{i}" for i in range(40)]
    result = run_batch(
        problem, algorithm, [settings] * 40, start, Budget(1.0, DELTA, algorithm.relation, "standard"), keys
    )
    assert result.columns["iterations"] == [K * T] * 40
    np.testing.assert_array_equal(result.W[:, 1:], 0)
    travelled = (10 - result.W[:, 0]) / D  # (T-1) a whole epoch, then the mean over t of (t-2) + s_t, t ≥ 2
    inside = travelled % (T - 1)
    least = sum(t - 2 for t in range(2, T + 1)) / T
    assert ((inside >= least) & (inside <= least + (T - 1) / T)).all()
    epochs = (travelled // (T - 1)).astype(int)
    assert set(epochs) == set(range(K))  # 40 draws of 6: all chosen but once in 200
    np.testing.assert_allclose(np.linalg.norm(result.evidence - result.W[:, None], axis=2).max(), 0, atol=radius)


def test_steps_never_leave_the_ball_so_queries_are_within_2D():
    """Remark 4.1, which the sensitivity of DIFF rests on, at a noise that drowns the data."""
    asked = []
    algorithm = get("o2nc-tree")

    class Spy(o2nc.VarianceReduced):
        def __call__(self, w):
            asked.append((id(self), w.copy()))
            return super().__call__(w)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(o2nc, "VarianceReduced", Spy)
        batch(algorithm.name, small_problem(loss="ramp"), epsilon=0.05, T=20, radius=0.3)
    D = 0.3 / 20
    steps = [np.linalg.norm(b - a, axis=1).max() for (i, a), (j, b) in itertools.pairwise(asked) if i == j]
    assert len(steps) == 10 * 19
    assert D < max(steps) <= 2 * D * (1 + 1e-9)


def test_every_row_is_used_at_most_once_and_an_epoch_takes_2T(monkeypatch):
    from dpbench.privacy.sampling import SinglePass

    taken = []
    original = SinglePass.take
    monkeypatch.setattr(SinglePass, "take", lambda self, b: taken.append(original(self, b)) or taken[-1])
    batch("o2nc-tree", small_problem(loss="ramp"), T=7, M=300)
    rows = np.hstack(taken)
    assert rows.shape[1] == 300 // 14 * 14
    assert [block.shape[1] for block in taken[:8]] == [8, 1, 1, 1, 1, 1, 1, 8]
    assert all(len(set(mine)) == len(mine) for mine in rows)


def test_the_learner_is_projected_subgradient_descent():
    learner = o2nc.Learner((1, 2), 0.5)
    np.testing.assert_array_equal(learner.step, 0)
    learner.update(np.array([[3.0, 4.0]]))
    np.testing.assert_allclose(learner.step, [[-0.3, -0.4]])  # the first step is as long as the ball
    learner.update(np.array([[-3.0, -4.0]]))  # η₂ = 0.5/sqrt(50)
    np.testing.assert_allclose(learner.step, [[-0.3 + 1.5 / math.sqrt(50), -0.4 + 2 / math.sqrt(50)]])
    learner.update(np.zeros((1, 2)))
    learner.update(np.array([[0.0, -100.0]]))
    assert np.linalg.norm(learner.step) <= 0.5 * (1 + 1e-12)
    idle = o2nc.Learner((1, 2), 0.5)
    idle.update(np.zeros((1, 2)))
    np.testing.assert_array_equal(idle.step, 0)


def test_the_length_of_an_epoch():
    problem = SimpleNamespace(d=4, lipschitz=1.0)
    settings = SimpleNamespace(radius=0.5, gap=0.5, M=1000)  # LδM/(F + Lδ) = 500
    assert o2nc.rounds(problem, settings, math.inf, kind="variance-reduced", most=500) == round(1000 ** (2 / 3))
    assert o2nc.rounds(problem, settings, 0.1, kind="variance-reduced", most=500) == round(
        40_000**0.5
    )  # the larger, not the min
    assert o2nc.rounds(problem, settings, 10.0, kind="variance-reduced", most=500) == round(1000 ** (2 / 3))
    assert o2nc.rounds(problem, settings, 1.0, kind="two-point", most=10_000) == round(4000 ** (2 / 3))
    assert o2nc.rounds(problem, settings, 0.001, kind="variance-reduced", most=500) == 500
    settings.M = 1e-6
    assert o2nc.rounds(problem, settings, math.inf, kind="variance-reduced", most=500) == 1


def test_too_few_rows_are_refused_in_one_line():
    problem = small_problem(n=50, loss="ramp")
    with pytest.raises(UserError, match=r"M = 51 rows must be in 2\.\.50"):
        run("o2nc-tree", problem, M=51)
    with pytest.raises(UserError, match="T = 26 needs 52 rows, M is 50"):
        run("o2nc", problem, T=26)
    with pytest.raises(UserError, match="T = 11 needs 55 rows"):
        run("o2nc-naive", problem, T=11, B=5)


def test_it_descends():
    problem = small_problem(n=4000, loss="ramp")
    result = batch("o2nc-tree", problem, epsilon=epsilon_of(30.0), radius=0.3, gap=1.0)
    assert (problem.value(result.W) < problem.value(np.full((1, problem.d), 0.4)) - 0.05).all()


@pytest.mark.parametrize("loss", ["phase", "ramp"])
@pytest.mark.parametrize(
    ("name", "values"),
    [("o2nc-tree", {}), ("o2nc-naive", {}), ("o2nc-naive", {"B": 3}), ("o2nc-naive", {"oracle": "gradient"}),
     ("o2nc", {"oracle": "two-point"})],
)  # fmt: skip
def test_compiled_and_in_numpy_they_draw_the_same_and_end_alike(monkeypatch, name, values, loss):
    """The streams give the same numbers in the same order, however far ahead they are drawn."""
    if zeroth_order.compiled() is None:
        pytest.skip("numba is not installed")
    problem = small_problem(loss="ramp")
    if loss == "phase":
        problem = Problem(problem.X, np.abs(problem.X).sum(axis=1), loss="phase", row_bound=1.0)
    monkeypatch.setattr(zeroth_order, "AHEAD", 50)  # several blocks to an epoch
    fast = batch(name, problem, T=20, epsilon=20.0, radius=0.3, **values)
    monkeypatch.setattr(zeroth_order, "compiled", lambda: None)
    plain = batch(name, problem, T=20, epsilon=20.0, radius=0.3, **values)
    np.testing.assert_allclose(fast.W, plain.W, rtol=0, atol=1e-9)
    assert np.abs(fast.W - np.full_like(fast.W, 0.4)).max() > 0.01


def test_a_subgradient_is_that_of_the_mean_loss_of_its_rows():
    problem = small_problem(loss="ramp")
    w, rows = np.full((2, problem.d), 0.3), np.array([[0, 4, 7], [5, 6, 1]])
    found = zeroth_order.subgradient(problem, w, rows)
    for i in range(2):
        part = Problem(problem.X[rows[i]], problem.y[rows[i]], loss="ramp", row_bound=1.0)
        np.testing.assert_allclose(found[i], part.gradient(w[[i]])[0], atol=1e-14)


def test_the_length_of_a_first_order_epoch_has_no_d():
    problem = SimpleNamespace(d=16, lipschitz=1.0)
    settings = make_settings(get("o2nc"), {"M": 2000, "gap": 0.1, "radius": 0.1, "oracle": "gradient"})
    assert o2nc.rounds(problem, settings, math.inf, kind="gradient", most=2000) == round(1000 ** (2 / 3))
    assert o2nc.rounds(problem, settings, 0.5, kind="gradient", most=10_000) == round(8000 ** (2 / 3))
