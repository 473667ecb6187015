"""dp-chebyshev, output-perturbation and dp-frank-wolfe: what a row moves, the noise, and what it costs."""

import math

import numpy as np
import pytest
from scipy import stats

from dpbench.algorithms import exponential_mechanism
from dpbench.algorithms.objective_perturbation import minimise
from dpbench.algorithms.sufficient_statistics import even_coefficient
from dpbench.privacy.accounting.renyi import bounded_range_cumulant
from dpbench.privacy.ledger import BoundedRange, CountedRelease, Relation
from dpbench.privacy.verify import spent
from dpbench.problems import Declaration, Problem
from tests.algorithms.conftest import run, small_problem


def replaced(problem, seed):
    """The neighbour with another first row and label."""
    generator = np.random.default_rng(seed)
    X, y = problem.X.copy(), problem.y.copy()
    x = generator.standard_normal(problem.d)
    X[0], y[0] = x / np.linalg.norm(x) * (1 - 1e-12), -y[0]
    return Problem(X, y, loss=problem.loss, l1=problem.l1, l2=problem.l2, row_bound=1.0)


# Chebyshev


def test_the_quadratic_is_chebyshevs_and_not_taylors():
    assert [round(even_coefficient(r), 5) for r in (2.0, 4.0, 6.0)] == [0.10824, 0.08167, 0.06214]
    assert even_coefficient(1e-3) == pytest.approx(1 / 8, rel=1e-6)
    m = np.linspace(-4, 4, 2001)
    even, b = np.logaddexp(m / 2, -m / 2), even_coefficient(4.0)
    worst = np.ptp(even - b * m**2)
    assert worst < np.ptp(even - m**2 / 8)


def test_both_statistics_get_their_share_and_their_noise():
    problem = Problem(np.zeros((50, 3)), np.ones(50), row_bound=1.0, l2=0.5)
    result = run("dp-chebyshev", problem, start=np.zeros((4000, 3)), share=0.25)
    ledger, rho = result.mechanisms.ledger.of(0), result.mechanisms.budget.rho
    assert {e.label: e.release.noise_multiplier**-2 / (2 * rho) for e in ledger} == {
        "gram": pytest.approx(0.25),
        "moments": pytest.approx(0.75),
    }
    s, sigma = 1 / 50 / math.sqrt(0.5 * rho), 1 / 50 / math.sqrt(1.5 * rho)
    least = sigma / 2 / (2 * even_coefficient(4.0) * (3 * s + math.sqrt(3) * s) + 0.5)
    most = sigma / 2 / (2 * even_coefficient(4.0) * math.sqrt(3) * s + 0.5)
    assert least < result.W.std() < most


def test_without_noise_the_model_is_the_minimiser_of_the_quadratic():
    problem = small_problem(l2=0.02)
    W = run("dp-chebyshev", problem, epsilon=1e12).W
    curvature = 2 * even_coefficient(4.0) * problem.second_moment() + 0.02 * np.eye(problem.d)
    np.testing.assert_allclose(W[0], np.linalg.solve(curvature, problem.label_moments(1.0) / problem.n / 2), rtol=1e-3)


def test_the_moments_move_by_two_at_most_and_a_flipped_label_by_just_that():
    for seed in range(10):
        problem = small_problem(n=20, seed=seed)
        other = replaced(problem, seed)
        assert np.linalg.norm(problem.label_moments(1.0) - other.label_moments(1.0)) <= 2
        flipped = Problem(problem.X, problem.y * np.where(np.arange(20), 1, -1), row_bound=1.0)
        assert np.linalg.norm(problem.label_moments(1.0) - flipped.label_moments(1.0)) == pytest.approx(2)


# Output perturbation


@pytest.mark.parametrize("l1", [0.0, 0.01])
def test_minimisers_of_neighbours_are_as_close_as_declared(l1):
    for seed in range(5):
        problem, m = small_problem(n=40, d=3, seed=seed, l1=l1), 0.05
        zero = np.zeros((1, 3))
        ends = [minimise(p, zero, zero, m, 1e-12)[0] for p in (problem, replaced(problem, seed))]
        assert np.linalg.norm(ends[0] - ends[1]) <= (2 / 40 + 2e-12) / m


def test_the_bound_of_a_minimiser_is_nearly_attained():
    """A long flat direction and two rows that pull as hard as they can, opposite: 1.8 of the 2L₀/(nm)."""
    X = np.zeros((50, 2))
    X[0] = [1.0, 0.0]
    pull = [Problem(X, np.where(np.arange(50) == 0, sign, 1.0), row_bound=1.0) for sign in (1.0, -1.0)]
    zero = np.zeros((1, 2))
    ends = [minimise(p, zero, zero, 2.0, 1e-12)[0] for p in pull]
    assert np.linalg.norm(ends[0] - ends[1]) > 0.49 * 2 / (50 * 2.0)  # at w = 0 a logistic loss pulls by one half


def test_the_noise_on_a_minimiser_by_its_variance():
    problem = small_problem(l2=0.1)
    result = run("output-perturbation", problem, start=np.zeros((2000, problem.d)), ridge=0.2)
    exact = run("output-perturbation", problem, noiseless=True, ridge=0.2).W[0]
    sensitivity = (2 / problem.n + 2 * problem.n**-2.0) / 0.2
    sigma = sensitivity / math.sqrt(2 * result.mechanisms.budget.rho)
    residuals = ((result.W - exact) / sigma).ravel()
    assert stats.kstest(residuals, "norm").pvalue > 1e-4
    assert stats.kstest(2 * residuals, "norm").pvalue < 1e-6


# Frank and Wolfe


def test_every_score_moves_by_twice_the_bound_at_most():
    for seed in range(10):
        problem = small_problem(n=20, d=4, seed=seed)
        W = 3 * np.random.default_rng(seed).standard_normal((10, 4))
        moved = problem.bounded_gradient(W, 1.0) - replaced(problem, seed).bounded_gradient(W, 1.0)
        assert np.abs(moved).max() <= 2 / 20


def test_vertices_are_drawn_as_the_exponential_mechanism_has_it():
    from dpbench.privacy.budget import Budget
    from dpbench.privacy.mechanisms import Mechanisms

    k, scores = 20_000, np.array([0.0, 0.3, 1.0, -0.5])
    mechanisms = Mechanisms([f"e/{i}" for i in range(k)], Budget(1.0, 1e-5, Relation.REPLACE_ONE, "tight"))
    found = mechanisms.exponential(np.tile(scores, (k, 1)), sensitivity=0.5, epsilon=2.0, label="vertex")
    expected = np.exp(2.0 * scores) / np.exp(2.0 * scores).sum()  # ε/(2Δ) = 2
    assert stats.chisquare(np.bincount(found, minlength=4), k * expected).pvalue > 1e-4
    half = np.exp(scores) / np.exp(scores).sum()
    assert stats.chisquare(np.bincount(found, minlength=4), k * half).pvalue < 1e-6
    assert mechanisms.ledger.of(0) == (CountedRelease(BoundedRange(2.0), 1, "vertex"),)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 5.0])
def test_no_pair_of_bounded_range_passes_its_curve(epsilon):
    """Random pairs of exponential mechanisms, and the curve of two losses that attains it."""
    generator, orders = np.random.default_rng(0), np.array([1.1, 2.0, 8.0, 64.0])
    bound = bounded_range_cumulant(epsilon, orders)
    assert (bound <= orders * (orders - 1) * epsilon**2 / 8 * (1 + 1e-12)).all()
    for _ in range(500):
        scores = generator.uniform(-3, 3, generator.integers(2, 6))
        other = scores + generator.choice([-0.5, 0.5], len(scores)) * epsilon
        p, q = (np.exp(s) / np.exp(s).sum() for s in (scores, other))
        found = np.log((q * (p / q) ** orders[:, None]).sum(axis=1))
        assert (found <= bound * (1 + 1e-9) + 1e-12).all()
    second = spent((CountedRelease(BoundedRange(epsilon), 20, "v"),), 1e-6, Relation.REPLACE_ONE).epsilon
    pure = 20 * epsilon
    assert second <= pure * (1 + 1e-9)


def test_a_step_buys_nearly_twice_the_range_that_pure_selection_would():
    budget = run("dp-frank-wolfe", small_problem(), T=200).mechanisms.budget
    bounded = 1 / budget.noise_scale(((BoundedRange(1.0), 200),))
    from dpbench.privacy.ledger import PureDP

    pure = 1 / budget.noise_scale(((PureDP(1.0), 200),))
    assert bounded > 1.7 * pure


def test_it_stays_in_its_ball_and_finds_the_vertex_of_a_linear_pull():
    problem = small_problem(n=2000, d=6)
    result = run("dp-frank-wolfe", problem, epsilon=1e4, radius=2.0, T=60)
    assert (np.abs(result.W).sum(axis=1) <= 2 + 1e-9).all()
    best = min(problem.value(w[None])[0] for w in 2 * np.vstack([np.eye(6), -np.eye(6)]))
    assert problem.value(result.W).max() < best


def test_where_the_weight_of_l1_is_more_than_any_pull_it_stays_at_the_origin():
    """The last of its 2d + 1 choices, which moves no weight."""
    for l1, stays in ((10.0, True), (0.0, False)):
        result = run("dp-frank-wolfe", small_problem(l1=l1), epsilon=1e4, T=5, noiseless=True)
        assert (result.W == 0).all() == stays


def test_the_number_of_steps_rises_with_epsilon():
    problem = Declaration(1000, 50, row_bound=1.0)
    found = [exponential_mechanism.rounds(problem, 3.0, 1.0, e, 1e-6) for e in np.geomspace(1e-6, 1e6, 30)]
    assert found == sorted(found)
    assert found[0] == 3


def test_the_number_of_vertices_is_two_a_column_and_the_origin_at_each_delta():
    """T of the class's rule, by hand: at δ = 0 √(2CBnε/(c ln(2d + 1))), else a power of 2/3."""
    problem = small_problem(n=50_000, d=1, loss="squared")
    assert exponential_mechanism.rounds(problem, 3.0, 1.0, 1.0, 0.0) == round(math.sqrt(2 * 3.0 * 50_000 / math.log(3)))
    log = -math.log(1e-6)
    rho = (1 / (math.sqrt(1 + log) + math.sqrt(log))) ** 2
    by_hand = (4 * 3.0 * 50_000 * math.sqrt(8 * rho) / math.log(3)) ** (2 / 3)
    assert exponential_mechanism.rounds(problem, 3.0, 1.0, 1.0, 1e-6) == round(by_hand)
