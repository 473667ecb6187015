"""A row moves what is sketched by no more than is said, its cost is exact, and without noise it is ridge regression."""

import math
from pathlib import Path

import dpbench
import numpy as np
import pytest
from dpbench import algorithms, experiments
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import CountedRelease, Relation, Sketch
from dpbench.privacy.verify import spent
from dpbench.problems import Problem
from dpbench.study.context import contexts
from scipy.stats import chi2

from lev2026 import RIVALS, won
from lev2026.solvers import HessianMixing, published_ridge, sketch_rows, square_root

BUDGET = Budget(1.0, 1e-6, Relation.ADD_REMOVE, "tight")


def drawn(n=4000, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1)[:, None] * (1 + 1e-12)
    return X, np.clip(X @ np.linspace(0.5, -0.5, d) + 0.1 * rng.normal(size=n), -1, 1)


def made(calibration, epsilon=1.0, d=3):
    budget = Budget(epsilon, 1e-6, Relation.ADD_REMOVE, "tight")
    return HessianMixing().releases(d, budget, HessianMixing.Settings(calibration=calibration))


@pytest.mark.parametrize("epsilon", [0.1, 1.6, 10])
def test_exact_noise_costs_epsilon_and_the_published_less(epsilon):
    def cost(calibration):
        composition = tuple(CountedRelease(r, count, "model") for r, count in made(calibration, epsilon)[3])
        return spent(composition, 1e-6, Relation.ADD_REMOVE).epsilon

    assert cost("exact") == pytest.approx(epsilon, rel=1e-3)
    assert 0.4 * epsilon < cost("published") < 0.95 * epsilon


def test_a_row_moves_the_law_of_a_sketch_by_its_ratio_at_most():
    """The covariance of a draw with the row and without: their log-determinants and the one direction that differs."""
    rng = np.random.default_rng(1)
    _, gamma, less, releases = made("exact")
    spread = releases[1][0].noise_multiplier
    worst, failed = 0.0, 0
    for _ in range(300):
        X = drawn(int(rng.integers(5, 3000)), seed=int(rng.integers(1e6)))[0] * rng.uniform(0.1, 1)
        x = rng.normal(size=3)
        x /= np.linalg.norm(x)
        gram = X.T @ X
        for data in (gram, gram + np.outer(x, x)):  # the ridge may come from either
            noisy = np.linalg.eigvalsh(data)[0] + spread * rng.standard_normal()
            covariance = gram + max(0.0, gamma - max(0.0, noisy - less)) * np.eye(3)
            ratio = x @ np.linalg.solve(covariance, x)
            worst, failed = max(worst, ratio), failed + (ratio > releases[0][0].ratio)
    assert failed == 0 and worst > 0.9 * releases[0][0].ratio
    assert releases[0][0].ratio == pytest.approx(1 / gamma)


def test_the_loss_of_draws_follows_the_chi_square_that_is_accounted():
    """Draws of two neighbours' sketches told apart by their likelihoods: δ(ε) as `Sketch` has it, within 4 errors."""
    rng = np.random.default_rng(2)
    gram, x, k, runs = np.diag([30.0, 50.0]), np.array([1.0, 0.0]), 200, 40_000
    root, more = square_root(gram), square_root(gram + np.outer(x, x))
    A = (rng.standard_normal((runs, k, 2)) @ more).reshape(runs, k, 2)
    q = np.einsum("rki,rki->r", A @ np.linalg.inv(gram), A) - np.einsum(
        "rki,rki->r", A @ np.linalg.inv(more.T @ more), A
    )
    loss = q / 2 - k / 2 * math.log1p(1 / 30)
    assert root.T @ root == pytest.approx(gram)
    below = np.mean(loss > 0.3)
    want = chi2(k).sf((0.3 + k / 2 * math.log1p(1 / 30)) / (1 / 60))
    assert below == pytest.approx(want, abs=4 * math.sqrt(want / runs))
    at = 0.3
    delta = np.maximum(0.0, 1 - np.exp(at - loss))
    found = spent((CountedRelease(Sketch(k, 1 / 30, 1e-15), 1, "model"),), float(delta.mean()), Relation.ADD_REMOVE)
    assert found.epsilon == pytest.approx(at, abs=0.02)


def test_with_next_to_no_noise_it_is_ridge_regression():
    X, y = drawn(n=40_000)
    problem = Problem(X, y, loss="squared", l2=1 / len(y))
    solved = HessianMixing().solve(
        problem, Budget(500.0, 1e-6, Relation.ADD_REMOVE, "tight"), HessianMixing.Settings(), np.random.default_rng(0)
    )
    want = np.linalg.solve(X.T @ X + np.eye(3), X.T @ y)
    assert solved.w == pytest.approx(want, abs=0.02)


def test_the_published_ridge_grows_as_epsilon_falls_and_is_the_authors():
    k = sketch_rows(5, 1e-6)
    assert k == 6 * math.log(12 / 1e-7) // 1
    ridges = [published_ridge(k, epsilon, 1e-6) for epsilon in (0.1, 1.0, 10.0)]
    assert ridges == sorted(ridges, reverse=True)


def test_their_adassp_keeps_its_epsilon_and_the_audit_finds_nothing():
    method = algorithms.get("adassp-lev")
    assert method.sound(method.Settings()) == ["paper", "tight"]
    (found,) = dpbench.audit("adassp-lev", 4.0, runs=2000)
    assert found.passed, found.defect


def test_the_page_says_what_the_rows_say():
    (context,) = contexts(experiments.get("lev2026"), "full", Path(__file__).parent.parent / "results")
    counts = {rival: [won(context, rival, epsilon)[:2] for epsilon in context.epsilons("errors")] for rival in RIVALS}
    below = {rival: [one for one, _ in each] for rival, each in counts.items()}
    assert (min(below["AdaSSP as they run it"]), max(below["AdaSSP as they run it"])) == (16, 21)
    assert [below["AdaSSP"][i] for i in (0, 3, 5)] == [23, 19, 13]
    assert [clearly for _, clearly in counts["AdaSSP"][1:4]] == [12, 15, 15]
    assert {26 - one for one in below["boosted SSP"]} == {19, 21}
    assert {clearly for _, clearly in counts["boosted SSP"]} == {2, 4}
    assert [below["w = 0"][i] for i in (0, 3)] == [18, 22]
