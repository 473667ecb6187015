"""The private line search (Algorithm 2): what it tries, what it costs, its noise, its queries' sensitivities."""

import math

import numpy as np
import pytest

from dpbench.algorithms.nonconvex import constants as const
from dpbench.algorithms.nonconvex.line_search import LineSearch, ShortSteps
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import PureDP
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.privacy.relation import Relation
from dpbench.problems import Problem
from tests.algorithms.conftest import small_problem

BUDGET = Budget(1.0, 1e-3, Relation.REPLACE_ONE, "standard")


def search(problem, member, scale, which, *arguments, value=None):
    """(step, points asked about) of one line search; `value` answers in place of the problem."""
    asked = []
    generator = getattr(LineSearch(problem, member, scale), which)(*arguments)
    try:
        request = next(generator)
        while True:
            asked.append(request.w)
            request = generator.send((value or (lambda w: problem.value(w[None])[0]))(request.w))
    except StopIteration as end:
        return end.value, asked


def quiet():
    return Mechanisms(["quiet"], BUDGET, noiseless=True).member(0)


@pytest.mark.parametrize("slope", [0.02, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_without_noise_it_finds_the_first_step_that_decreases_enough(seed, slope):
    problem = small_problem(seed=seed, w2=1e-3)
    w = 3 * np.random.default_rng(seed).standard_normal(5)
    g = slope * problem.gradient(w[None])[0]
    found, asked = search(problem, quiet(), 1.0, "along_gradient", w, g)
    fallback = 2 * (1 - 0.1 - 0.6)
    steps = 20 * fallback * 0.6 ** np.arange(6)  # ⌊log_0.6(1/20)⌋ + 1 = 6
    drops = [problem.value(w[None])[0] - problem.value((w - step * g)[None])[0] for step in steps]
    fine = [step for step, drop in zip(steps, drops, strict=True) if drop >= 0.6 * step * g @ g]
    assert found == pytest.approx(fine[0] if fine else fallback)
    np.testing.assert_allclose(asked[1:], [w - step * g for step in steps][: len(asked) - 1])


def test_along_negative_curvature_the_steps_are_multiples_of_t2_and_the_fallback_is_its_own():
    problem, w, p = small_problem(), np.zeros(5), np.eye(5)[0]
    rising = lambda v: float(v @ v)  # noqa: E731 - no step will do
    found, asked = search(problem, quiet(), 1.0, "along_curvature", w, p, -0.3, value=rising)
    assert found == pytest.approx(const.t2 * 0.3)
    np.testing.assert_allclose([v[0] for v in asked[1:]], 20 * const.t2 * 0.3 * 0.5 ** np.arange(5))
    falling = lambda v: -float(v[0])  # noqa: E731 - the first already will
    found, asked = search(problem, quiet(), 1.0, "along_curvature", w, p, -0.01, value=falling)
    assert found == pytest.approx(20 * const.t2 * 0.01)
    assert len(asked) == 2


def test_it_costs_the_same_whether_it_finds_a_step_or_not():
    problem, w, g = small_problem(), np.zeros(5), np.ones(5)
    for value in (lambda v: float(v @ v), lambda v: -1e3 * float(v @ v)):
        mechanisms = Mechanisms(["cost"], BUDGET)
        search(problem, mechanisms.member(0), 7.0, "along_gradient", w, g, value=value)
        assert mechanisms.ledger.of(0) == ((PureDP(1 / 7), 1, "line search"),)


def test_noise_of_threshold_and_queries():
    """P(fires at the first query) with q = 3λΔ: ξ ~ Lap(2λΔ), ν ~ Lap(4λΔ), Δ = 2 γ_init B_g ‖g̃‖/n."""
    problem, k, scale = small_problem(n=100), 4000, 5.0
    w, g = np.zeros(5), np.full(5, 0.2)
    first = 20 * const.FALLBACK_g
    delta = 2 * first * np.linalg.norm(g) / 100
    bar = const.c_g * first * g @ g  # what the query subtracts
    mechanisms = Mechanisms([f"svt/{i}" for i in range(k)], BUDGET)
    drop = lambda v: 0.0 if not v.any() else -bar - 3 * scale * delta  # noqa: E731

    fired = np.mean([
        search(problem, mechanisms.member(i), scale, "along_gradient", w, g, value=drop)[0] == first for i in range(k)
    ])  # fmt: skip

    def probability(factor):
        """P(ν - ξ ≥ -3λΔ): 1 - P(ξ - ν > 3λΔ), a difference of Laplace variables of scales a = 2 and b = 4."""
        a, b, x = 2.0 * factor, 4.0 * factor, 3.0
        return 1 - (b**2 * math.exp(-x / b) - a**2 * math.exp(-x / a)) / (2 * (b**2 - a**2))

    assert abs(fired - probability(1)) < 4 * math.sqrt(0.25 / k)
    assert abs(fired - probability(0.5)) > 4 * math.sqrt(0.25 / k)  # halved noise would fail


@pytest.mark.parametrize("loss", ["logistic", "sigmoid"])
@pytest.mark.parametrize("seed", range(25))
def test_replacing_an_example_moves_no_query_by_more_than_claimed(loss, seed):
    generator = np.random.default_rng(seed)
    problem = small_problem(n=30, d=3, seed=seed, loss=loss, w2=1e-3)
    X, y = problem.X.copy(), problem.y.copy()
    X[0] = generator.standard_normal(3)
    X[0] /= np.linalg.norm(X[0]) * (1 + 1e-15)
    y[0] = -y[0]
    other = Problem(X, y, loss=loss, w2=1e-3)
    w, g = 10 ** generator.uniform(-1, 2) * generator.standard_normal((2, 3))
    for step in (0.1, 1.0, 12.0):
        moved = [p.value(w[None])[0] - p.value((w - step * g)[None])[0] for p in (problem, other)]
        assert abs(moved[0] - moved[1]) <= 2 * step * const.B_g * np.linalg.norm(g) / 30 * (1 + 1e-9)


def test_the_claim_is_attained_by_the_logistic_loss():
    """Two examples on the straight part of the loss whose losses change by ±γ‖g̃‖."""
    X = np.random.default_rng(0).standard_normal((30, 2)) * 0.1
    w, g, step = np.array([-1e6, 0.0]), np.array([0.0, 1.0]), 2.0
    moved = []
    for sign in (1, -1):
        X[0] = np.array([1e-3, sign]) * (1 - 1e-6)
        problem = Problem(X, np.ones(30), row_bound=1.0)
        moved.append(problem.value(w[None])[0] - problem.value((w - step * g)[None])[0])
    assert 0.999 * 2 * step / 30 < abs(moved[0] - moved[1]) <= 2 * step / 30


def test_short_steps_are_those_of_equation_7():
    def result(generator):
        with pytest.raises(StopIteration) as end:
            next(generator)
        return end.value.value

    w = np.zeros(2)
    assert result(ShortSteps().along_gradient(w, w)) == 1.0
    assert result(ShortSteps().along_curvature(w, w, -0.3)) == pytest.approx(0.6)
