"""What the methods do under `tight` alone: sensitivities on neighbours, all of ε planned, noise by its law, audits."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

from dpbench.algorithms import resolve
from dpbench.algorithms.base import make_settings
from dpbench.algorithms.newton import SOLVE, inverse_sensitivity, sharp_sensitivities
from dpbench.auditing.runs import audit
from dpbench.privacy import Budget, Relation
from dpbench.privacy.accounting.gaussian import gaussian_mu
from dpbench.privacy.check import check
from dpbench.privacy.ledger import ConvexPerturbation, LogisticPerturbation, PoissonReplaced, WithoutReplacement
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.problems import losses
from dpbench.run.job import make_job
from tests.algorithms.conftest import small_problem
from tests.auditing.releases import weakened
from tests.batches import run_batch

ONE, OTHER = Relation.ADD_REMOVE, Relation.REPLACE_ONE


def tight(name, problem, *, epsilon=1.0, relation=OTHER, k=1, noiseless=False, **settings):
    """A run under `tight`, and what the two routes say of it."""
    method, fixed = resolve(name)
    parsed = method.complete(problem, make_settings(method, {**fixed, **settings}))
    budget = Budget(epsilon, problem.n**-2.0, relation, "tight")
    keys = [f"{name}/{i}" for i in range(k)]
    run = run_batch(problem, method, [parsed] * k, np.zeros((k, problem.d)), budget, keys, noiseless=noiseless)
    return run, check(run.mechanisms.ledger.of(0), budget)


def row(rng, d):
    x = rng.standard_normal(d)
    return x / np.linalg.norm(x)


@pytest.mark.parametrize("modification", ["clip", "add"])
def test_directions_of_neighbours_are_within_the_sharp_sensitivities_which_are_near_attained(modification):
    rng, n = np.random.default_rng(0), 5
    ratios = np.zeros((2, 400))
    for i in range(400):
        d, lambda0 = int(rng.integers(2, 4)), float(rng.choice([0.01, 0.05, 0.3]))
        shared = rng.standard_normal((int(rng.integers(0, 3)), d)) * rng.choice([0.1, 1.0])
        base = shared.T @ shared / (4 * n) + rng.choice([0.0, lambda0]) * np.eye(d)
        x, u = (rng.choice([0.0, 0.3, 1.0]) * row(rng, d) for _ in range(2))
        if rng.random() < 0.5 and d > 1:
            u -= x * (u @ x) / max(x @ x, 1e-9)
        H = [base + np.outer(v, v) / (4 * n) for v in (0 * x, x, u)]
        solve = SOLVE[modification]
        inverses = [solve(np.tile(h, (d, 1, 1)), np.eye(d), np.full(d, lambda0)) for h in H]
        sharp = sharp_sensitivities(n, np.array(lambda0), modification)
        moved = [np.linalg.norm(a - b, 2) for a, b in ((inverses[0], inverses[1]), (inverses[1], inverses[2]))]
        ratios[:, i] = np.array(moved) / sharp
    assert ratios.max() <= 1 + 1e-9
    assert ratios.max(axis=1).min() > (0.99 if modification == "add" else 0.2)


def test_two_orthogonal_rows_move_a_clipped_inverse_by_more_than_one_of_them():
    """Why replace-one needs a factor above 1: beside the kink at λ₀ the divided differences of 1/max(x, λ₀) are all
    -1/λ₀² but for the zero of the eigenvalue below it. Times (xxᵀ - uuᵀ)/(4n), x ⊥ u, that has norm 2/√3 · 1/(4nλ₀²).
    """
    n, lambda0 = 1e7, 0.05
    small = 1 / (4 * n)
    base = np.diag([lambda0 + 1000 * small, lambda0 - 3 * small])  # curvature of other rows: n of them reach 1/4
    x, u = (np.array([np.cos(angle), np.sin(angle)]) for angle in np.arccos(3**-0.5) / 2 + np.array([0, np.pi / 2]))
    inverses = [SOLVE["clip"](np.tile(base + small * np.outer(v, v), (2, 1, 1)), np.eye(2), np.full(2, lambda0))
                for v in (x, u)]  # fmt: skip
    moved = np.linalg.norm(inverses[0] - inverses[1], 2)
    one, replaced = sharp_sensitivities(n, np.array(lambda0), "clip")
    assert moved / one == pytest.approx(2 / 3**0.5, rel=0.01)
    assert moved <= replaced


@pytest.mark.parametrize("modification", ["clip", "add"])
def test_they_are_never_above_the_papers(modification):
    lambda0 = np.array([0.01, 0.1, 1.0])
    one, both = sharp_sensitivities(100, lambda0, modification)
    paper = inverse_sensitivity(100, lambda0, modification)
    assert (one <= paper * (1 + 1e-12)).all()
    assert (both <= 1.42 * paper).all()


@pytest.mark.parametrize("modification", ["clip", "add"])
@pytest.mark.parametrize("relation", [ONE, OTHER])
def test_dp_newton_draws_the_noise_of_its_sharp_sensitivity(modification, relation, monkeypatch):
    seen = []
    plain = Mechanisms.gaussian

    def spy(self, value, **how):
        if how["label"] == "direction":
            both = how["replaced"] if self.doubled else how["sensitivity"]
            seen.append((float(np.linalg.norm(value)), both.item()))
        return plain(self, value, **how)

    monkeypatch.setattr(Mechanisms, "gaussian", spy)
    problem = small_problem()
    run, _ = tight(f"dp-newton-hess-{modification}", problem, relation=relation, T=1, lambda0=0.1, noiseless=True)
    norm = np.linalg.norm(problem.data_gradient(np.zeros((1, 5))))
    expected = sharp_sensitivities(400, np.array(0.1), modification)[relation is OTHER] * norm
    assert seen[0][1] == pytest.approx(expected, rel=1e-12)
    assert run.status == ["done"]


@pytest.mark.parametrize("loss", ["logistic", "sigmoid"])
def test_hessians_of_neighbours_are_within_the_losses_own_sensitivity_and_reach_it(loss):
    from dpbench.algorithms.nonconvex_oracle import FullBatch

    rng, problem = np.random.default_rng(1), small_problem(loss=loss)
    budget = Budget(1.0, 1e-5, OTHER, "tight")
    oracle = FullBatch(problem, Mechanisms(["a"], budget), 1.0)
    z = np.linspace(-6, 6, 2001)
    curvature = [losses.get(loss).second_derivative(z.copy(), np.full(2001, y), np.empty(2001)) for y in (1.0, -1.0)]
    slopes = [losses.get(loss).derivative(z.copy(), np.full(2001, y), np.empty(2001)) for y in (1.0, -1.0)]
    most = np.zeros(2)
    for i in range(300):
        x, u = row(rng, 3), row(rng, 3)
        if i % 3 == 1:
            u = x
        if i % 3 == 2:
            u -= x * (u @ x)
            u /= np.linalg.norm(u)
        for one, other in itertools.product((np.min, np.max), repeat=2):
            a, b = one(curvature[0]), other(curvature[1])
            g, h = one(slopes[0]), other(slopes[1])
            most[0] = max(most[0], np.linalg.norm(a * np.outer(x, x) - b * np.outer(u, u)))
            most[1] = max(most[1], np.linalg.norm(g * x - h * u))
    assert most[0] <= oracle.hessian_moves * (1 + 1e-9) <= 1.001 * most[0]
    assert most[1] <= oracle.gradient_moves * (1 + 1e-9) <= 1.003 * most[1]
    known = {"logistic": math.sqrt(2) / 4, "sigmoid": 0.19245}[loss]
    assert oracle.hessian_moves == pytest.approx(known, rel=1e-4)


def test_symmetric_noise_has_half_the_variance_off_the_diagonal():
    run = Mechanisms([str(i) for i in range(4000)], Budget(1.0, 1e-5, OTHER, "tight"))
    zeros = np.zeros((4000, 3, 3))
    noise = run.gaussian(zeros, sensitivity=2.0, noise_multiplier=3.0, label="H", symmetric=True)
    np.testing.assert_array_equal(noise, noise.transpose(0, 2, 1))
    expected = 36 * np.where(np.eye(3, dtype=bool), 1.0, 0.5)
    np.testing.assert_allclose(noise.var(axis=0), expected, rtol=0.12)


CASES = [
    ("aop", {}),
    ("dp-newton-minibatch-hess-add", {"T": 3}),
    ("dp-newton-minibatch-qu-clip", {"T": 20, "theta": 0.6, "curvature_rate": 0.03}),
    ("dp-sgd", {"T": 50}),
    ("dp-newton-hess-clip", {"T": 3}),
]


@pytest.mark.thorough_for("10.0-*", "0.1-*")
@pytest.mark.parametrize(("name", "settings"), CASES)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_nearly_all_of_epsilon_is_spent_by_both_routes(name, settings, epsilon):
    _, found = tight(name, small_problem(), epsilon=epsilon, **settings)
    assert not found.error
    assert 0.98 * epsilon <= found.epsilon <= epsilon * (1 + 1e-6)


@pytest.mark.thorough_for("*-0.1", "*-10.0")
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize(("loss", "relation"), [("pseudo-huber", OTHER), ("pseudo-huber", ONE), ("logistic", ONE)])
def test_aop_of_either_relation_and_of_another_loss(loss, relation, epsilon):
    run, found = tight("aop", small_problem(loss=loss), epsilon=epsilon, relation=relation)
    assert not found.error
    assert 0.98 * epsilon <= found.epsilon <= epsilon * (1 + 1e-6)
    ((b, *_),) = ([e.release for e in run.mechanisms.ledger.of(0) if e.label == "objective"],)
    assert type(b) is (LogisticPerturbation if loss == "logistic" else ConvexPerturbation)
    assert b.relation is relation


@pytest.mark.parametrize("relation", [ONE, OTHER])
def test_aop_draws_the_noise_of_the_rows_that_differ(relation, monkeypatch):
    seen = {}

    def spy(problem, W, b, ridge, gamma):
        seen.update(b=b, ridge=ridge)
        return W, np.zeros(len(W)), np.zeros(len(W), dtype=int)

    monkeypatch.setattr("dpbench.algorithms.aop.minimise", spy)
    run, _ = tight("aop", small_problem(), relation=relation, k=400)
    (b,) = (e.release for e in run.mechanisms.ledger.of(0) if e.label == "objective")
    rows = 2 if relation is OTHER else 1
    assert np.std(seen["b"]) == pytest.approx(rows / 400 * b.noise_multiplier, rel=0.05)
    assert seen["ridge"] == pytest.approx(0.25 / b.curvature / 400)


def test_the_joint_calibration_keeps_the_shares_of_theta():
    run, _ = tight("dp-newton-minibatch-hess-add", small_problem(), T=3, theta=0.2)
    z = {e.label: e.release.release.noise_multiplier for e in run.mechanisms.ledger.of(0)}
    kinds = {e.label: type(e.release) for e in run.mechanisms.ledger.of(0)}
    assert kinds == {"gradient": PoissonReplaced, "direction": WithoutReplacement}
    assert z["direction"] / z["gradient"] == pytest.approx(2.0)


def test_aop_keeps_its_ridge_and_noise_public_and_its_ledger_has_the_event():
    for problem in (small_problem(seed=0), small_problem(seed=1)):
        run, _ = tight("aop", problem)
        by = {e.label: e.release for e in run.mechanisms.ledger.of(0)}
        assert isinstance(by["objective"], LogisticPerturbation)
        assert by["objective"].noise_multiplier == pytest.approx(1 / gaussian_mu(1.0, 400**-2.0), rel=0.02)
        share = 1 / (1 + 5 / by["objective"].curvature)  # of the output, in μ²
        assert (by["objective"].noise_multiplier / by["output"].noise_multiplier) ** 2 == pytest.approx(
            share / (1 - share)
        )


@pytest.mark.thorough_for("aop", "dp-newton-minibatch*", "opt")
@pytest.mark.parametrize(
    "name", ["aop", "dp-newton-hess-clip", "dp-newton-minibatch-hess-add", "opt", "dp-gd-last", "dp-mf"]
)
def test_audits_under_tight_pass_and_halved_noise_fails(name):
    method, _ = resolve(name)
    case = dataclasses.replace(method.audit_case, accounting="tight")
    runs = 4000 if "minibatch" in name else None  # its samples of this case hide the row half of the time
    sound = audit(name, 4.0, case=case, seed=1, runs=runs, near=False)
    assert sound.passed, sound
    with weakened(0.5):
        assert not audit(name, 4.0, case=case, seed=1, runs=runs, near=False).passed


def test_only_keys_of_tight_runs_change_with_a_revision(monkeypatch):
    from dpbench.algorithms.gradient_descent import DPGradientDescent
    from dpbench.run import job

    def keys():
        job._keys_like.cache_clear()
        return [
            make_job(problem="a1a", algorithm="dp-gd", epsilon=1, seed=0, accounting=mode).key
            for mode in ("paper", "tight", "standard")
        ]

    before = keys()
    monkeypatch.setattr(DPGradientDescent, "revisions", {"tight": 2})
    after = keys()
    job._keys_like.cache_clear()
    assert [a == b for a, b in zip(before, after, strict=True)] == [True, False, True]
