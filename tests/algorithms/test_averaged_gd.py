"""dp-gd-average: its sensitivity and noise, its rules for T and the step, and what averaging does."""

import math

import numpy as np
import pytest

from dpbench.algorithms import get
from dpbench.algorithms.averaged_gd import public_safety, safe_step, steps
from dpbench.algorithms.base import make_settings
from dpbench.errors import UserError
from dpbench.privacy.budget import Budget
from dpbench.privacy.relation import Relation
from dpbench.privacy.verify import spent
from dpbench.problems import Declaration, Problem
from tests.algorithms.conftest import run, small_problem, watch
from tests.batches import run_batch


def test_the_bound_on_one_row_is_attained_and_never_passed():
    generator = np.random.default_rng(0)
    X = generator.standard_normal((10, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = generator.choice([-50.0, 50.0], 10)
    one = Problem(X, y, loss="squared", row_bound=1 + 1e-12)
    W = generator.standard_normal((20, 3))
    most = 0.0
    for _ in range(50):
        other, label = X.copy(), y.copy()
        x = generator.standard_normal(3)
        other[0], label[0] = x / np.linalg.norm(x), -y[0]
        moved = one.bounded_gradient(W, 0.3) - Problem(other, label, loss="squared").bounded_gradient(W, 0.3)
        most = max(most, np.linalg.norm(moved, axis=1).max())
    flipped = Problem(X, y * np.where(np.arange(10), 1, -1), loss="squared")
    attained = np.linalg.norm(one.bounded_gradient(W, 0.3) - flipped.bounded_gradient(W, 0.3), axis=1).max()
    assert most <= 2 * 0.3 / 10
    assert attained == pytest.approx(2 * 0.3 / 10)


@pytest.mark.parametrize("loss", ["logistic", "squared", "pseudo-huber"])
def test_t_equal_releases_spend_the_whole_budget(loss):
    result = run("dp-gd-average", small_problem(loss=loss), T=9)
    ledger, budget = result.mechanisms.ledger.of(0), result.mechanisms.budget
    assert [(entry.label, entry.count) for entry in ledger] == [("gradient", 9)]
    assert spent(ledger, budget.delta, budget.relation).epsilon == pytest.approx(1.0, rel=1e-6)


def test_noise_by_its_variance():
    """On rows of zeros w_1 is -η times the noise, and the mean of the tail of T = 2 is (w_1 + w_2)/2."""
    problem = Problem(np.zeros((50, 4)), np.ones(50), loss="logistic", row_bound=1.0)
    result = run("dp-gd-average", problem, start=np.zeros((2000, 4)), T=2, step=1.0)
    sigma = 1 / 50 * math.sqrt(2 / (2 * result.mechanisms.budget.rho))  # add/remove: L₀/n
    assert result.W.std() == pytest.approx(sigma * math.sqrt(2), rel=0.05)  # T//2 = 1: the last iterate alone
    result = run("dp-gd-average", problem, start=np.zeros((2000, 4)), T=3, step=1.0)
    sigma = 1 / 50 * math.sqrt(3 / (2 * result.mechanisms.budget.rho))
    assert result.W.std() == pytest.approx(sigma * math.sqrt(2 + 0.25), rel=0.05)  # (w_2 + w_3)/2 = ξ_1 + ξ_2 + ξ_3/2


def test_the_rule_for_t_balances_bias_and_noise():
    """The least of B²L₁/(2T) + Δ²T²/(4ρL₁), by a search; then doubled."""
    problem = Declaration(10_000, 20, row_bound=1.0)
    moved, rho = 2 / 10_000, 0.05
    t = np.arange(1, 5000)
    cost = 64 * 0.25 / (2 * t) + moved**2 * t**2 / (4 * rho * 0.25)
    assert steps(problem, moved, rho, 1e12) == pytest.approx(2 * t[np.argmin(cost)], abs=2)


def test_t_has_no_cap_but_the_work():
    problem = Declaration(10**6, 50, row_bound=1.0)
    moved, rho = 2e-6, 1.5
    free, cut = (steps(problem, moved, rho, work) for work in (1e18, 1e12))
    assert free > 10_000
    assert cut == 1e12 / (4 * 10**6 * 50)


@pytest.mark.parametrize("l1", [0.0, 0.01])
def test_step_and_t_times_step_rise_with_epsilon(l1):
    """The method then does no worse at a larger ε: less bias, and no more noise than κ."""
    problem = Declaration(2_000, 30, loss="squared", l1=l1, row_bound=1.0)
    moved = 2 * 0.3 / 2_000
    rhos = np.geomspace(1e-9, 1e6, 60)
    Ts = [steps(problem, moved, rho, 1e12) for rho in rhos]
    etas = [safe_step(problem, moved * math.sqrt(T / (2 * rho)), T, 0.02) for T, rho in zip(Ts, rhos, strict=True)]
    assert Ts == sorted(Ts)
    products = np.array(etas) * Ts
    assert (products[1:] >= products[:-1] * (1 - 0.05)).all()  # T is a whole number: its steps show
    noise = [eta**2 * moved**2 * T / (2 * rho) * T / 2 for eta, T, rho in zip(etas, Ts, rhos, strict=True)]
    assert max(noise) <= 0.02 * (1 + 1e-9)


@pytest.mark.parametrize("k", [3, 10])
def test_noise_alone_carries_a_softmax_model_no_further_than_a_fifth_of_ln_k(k):
    """On labels that say nothing, w = 0 is about the best there is: what is above ln k is noise."""
    generator = np.random.default_rng(k)
    X = generator.standard_normal((300, 10))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    problem = Problem(X, np.arange(300) % k, loss=f"softmax-{k}", row_bound=1.0)
    kappa = public_safety(problem.loss)
    assert kappa == pytest.approx(0.2 * math.log(k))
    excess = [
        problem.value(run("dp-gd-average", problem, epsilon=epsilon, start=np.zeros((40, 10 * k))).W).mean()
        - math.log(k)
        for epsilon in (0.01, 0.1)
    ]
    assert min(excess) > 0.3 * kappa  # it does move
    assert max(excess) < kappa


def test_it_solves_an_l1_problem_without_noise():
    problem = small_problem(n=3000, loss="squared", l1=0.02)
    problem = Problem(problem.X, problem.y / 8, loss="squared", l1=0.005, row_bound=1.0)
    result = run("dp-gd-average", problem, noiseless=True, T=2000, step=0.9, clip=10.0)
    assert problem.value(result.W)[0] - problem.optimum().value < 1e-6


# The centred gradient


def test_what_the_steps_of_a_centred_run_release_is_the_gradient_without_its_half():
    problem, W = small_problem(n=30, d=3), 3 * np.random.default_rng(0).standard_normal((20, 3))
    half = problem.label_moments(1.0) / 60
    np.testing.assert_allclose(problem.centred_gradient(W) - half, problem.data_gradient(W), atol=1e-12)


@pytest.mark.parametrize("size", [0.1, 1.0, 3.0, 10.0, 1e6])
def test_it_moves_by_no_more_than_declared_at_each_w_and_by_all_of_it_at_both_ends(size):
    rng = np.random.default_rng(0)
    x = np.vstack([rng.standard_normal((1000, 2)), np.column_stack([np.linspace(-1, 1, 201), np.full(201, 1e-3)])])
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    f = 0.5 * np.tanh(x @ [0.0, size] / 2)[:, None] * x
    longest, apart = np.linalg.norm(f, axis=1).max(), np.linalg.norm(f[:, None] - f[None, :500], axis=2).max()
    assert longest <= 0.5 * min(1, size / 2) * (1 + 1e-12)
    assert apart <= min(1, size / 4) * (1 + 1e-12)
    if size in (0.1, 1e6):
        assert longest > 0.99 * 0.5 * min(1, size / 2)
        assert apart > 0.98 * min(1, size / 4)


@pytest.mark.parametrize("relation", Relation)
def test_the_noise_of_a_centred_step_follows_the_iterate(relation):
    problem = small_problem(n=50)
    method = get("dp-gd-average")
    settings = method.complete(problem, make_settings(method, {"T": 4, "centred": True, "step": 20.0}))
    budget = Budget(1.0, 1e-6, relation, "tight")
    mechanisms = run_batch(problem, method, [settings] * 3, np.zeros((3, 5)), budget, ["a", "b", "c"]).mechanisms
    drawn = {row["label"]: row for row in mechanisms.ledger.summary()}
    low, high = map(float, drawn["gradient"]["sensitivity"].split(" to "))
    most = (2 if relation is Relation.REPLACE_ONE else 1) / 100
    assert low == pytest.approx(0.02 * most, rel=1e-3)
    assert 0.02 * most < high <= most * (1 + 1e-3)


@pytest.mark.parametrize("relation", Relation)
def test_a_centred_step_has_noise_for_the_rows_that_move_it_most(relation, monkeypatch):
    """One row along w, or two of which one is across it: at any length of w, and attained at small ones."""
    problem, lengths = small_problem(n=50, d=2), []
    slope = problem.centred_gradient
    monkeypatch.setattr(problem, "centred_gradient", lambda W: lengths.append(np.linalg.norm(W)) or slope(W))
    moved = watch("dp-gd-average", problem, relation, T=40, centred=True, step=0.3)
    assert moved.pop(0) == ("moments", pytest.approx((2 if relation is Relation.REPLACE_ONE else 1) / 100))
    assert sum(0.1 < length < 1 for length in lengths) > 5
    for length, (_, said) in zip(lengths, moved, strict=True):
        w = np.array([length, 0.0])
        x = np.stack([np.cos(a := np.linspace(0, np.pi, 361)), np.sin(a)], axis=1)
        f = np.tanh(x @ w / 2)[:, None] * x / 2
        found = np.linalg.norm(f, axis=1).max() / 50
        if relation is Relation.REPLACE_ONE:
            found = np.linalg.norm(f[:, None] - f[None], axis=2).max() / 50
        assert found <= said * (1 + 1e-9)
        assert not 0.1 < length < 0.5 or said < 1.05 * found


def test_centred_and_plain_runs_are_one_without_noise_and_spend_the_same():
    problem = small_problem(l1=1e-3, l2=1e-2)
    runs = [run("dp-gd-average", problem, noiseless=True, T=20, centred=centred) for centred in (False, True)]
    np.testing.assert_allclose(runs[0].W, runs[1].W, atol=1e-12)
    ledger, budget = runs[1].mechanisms.ledger.of(0), runs[1].mechanisms.budget
    spent_by = {e.label: e.count / e.release.noise_multiplier**2 / (2 * budget.rho) for e in ledger}
    assert spent_by == {"moments": pytest.approx(0.41), "gradient": pytest.approx(0.59)}
    assert spent(ledger, budget.delta, budget.relation).epsilon == pytest.approx(1.0, rel=1e-6)


def test_a_loss_without_that_part_and_a_clip_are_refused():
    with pytest.raises(UserError, match=r"^centred: squared loss has no part without w"):
        run("dp-gd-average", small_problem(loss="squared"), centred=True)
    with pytest.raises(UserError, match=r"^clip: centred gradients"):
        run("dp-gd-average", small_problem(), centred=True, clip=0.5)
