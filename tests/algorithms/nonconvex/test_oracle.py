"""Noisy gradients and Hessians: the noise they add, and the sensitivities it is scaled by.

The constants and the numbers of iterations that follow from them.

The driver: answers are right, replicates advance in step and leave when they end.

The private line search (Algorithm 2): what it tries, what it costs, its noise, its queries' sensitivities.
"""

import math

import numpy as np
import pytest
from scipy import stats

from dpbench.algorithms import nonconvex_oracle as const
from dpbench.algorithms.base import no_trace
from dpbench.algorithms.nonconvex_base import SecondOrderMethod
from dpbench.algorithms.nonconvex_oracle import (
    FullBatch,
    Gradient,
    Hessian,
    Iterate,
    LineSearch,
    Minibatch,
    ShortSteps,
    Value,
    run_in_step,
)
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Gaussian, PureDP, Relation, WithoutReplacement
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.problems import Problem
from tests.algorithms.conftest import small_problem


@pytest.mark.parametrize(
    ("iterations", "expected"),
    [
        (const.short_step_iterations, {0.06: 421, 0.03: 1681, 0.04: 946, 0.02: 3782}),
        (const.line_search_iterations, {0.06: 934, 0.03: 3735, 0.04: 2101, 0.02: 8403}),
        (const.trust_region_iterations, {0.06: 205, 0.03: 578, 0.04: 375, 0.02: 1061}),
        (lambda alpha: const.gd_2ns_iterations(alpha, 54), {0.06: 556, 0.03: 2223, 0.04: 1250, 0.02: 5000}),
    ],
)
def test_numbers_of_iterations(iterations, expected):
    assert {alpha: iterations(alpha) for alpha in expected} == expected


def test_constants_are_within_the_ranges_of_the_lemmas():
    assert const.c1 < 1 / 2  # Lemma 2
    assert const.c2 + const.c < 1 / 3
    assert 0 < const.c_g < 1 - const.c1  # Lemma 6
    assert 0 < const.c_H < 1 - const.c - math.sqrt(8 / 3 * const.c2)
    t1 = 3 * (1 - const.c - const.c_H) - const.t2  # the roots of r(t) add up to this
    assert t1 / const.t2 < const.beta_H < 1  # Lemma 7
    for t in (t1, const.t2):
        assert -(t**2) / 6 + (1 - const.c - const.c_H) * t / 2 - const.c2 == pytest.approx(0, abs=1e-15)


def test_working_tolerances_imply_the_target():
    """‖g‖ ≤ (1+c₁)‖g̃‖ and λ ≥ -(1+c)|λ̃| (equation 11)."""
    working, target = const.working(0.05), const.target(0.05)
    assert (1 + const.c1) * working.gradient == pytest.approx(target.gradient) == 0.05
    assert (1 + const.c) * working.curvature == pytest.approx(target.curvature) == pytest.approx(math.sqrt(0.05))


class Spy:
    """A problem that notes the sizes of the batches it is asked about."""

    def __init__(self, problem):
        self.n, self._problem = problem.n, problem
        self.gradients, self.values, self.hessians = [], [], []

    def gradient(self, W, rows=None):
        self.gradients.append(len(W))
        return self._problem.gradient(W, rows)

    def hessian(self, W, rows=None):
        self.hessians.append(len(W))
        return self._problem.hessian(W, rows=rows)

    def value(self, W):
        self.values.append(len(W))
        return self._problem.value(W)


def test_answers_are_those_of_the_problem():
    problem, rows, seen = small_problem(w2=0.01), np.array([1, 5, 7]), []

    def method(w):
        yield Iterate(w)
        for request in (Gradient(w), Gradient(w, rows), Hessian(w), Hessian(w, rows), Value(w)):
            seen.append((yield request))
        return w + 1, "terminated"

    w = np.full(5, 0.3)
    run = run_in_step(problem, [method(w)], w[None], no_trace)

    few = Problem(problem.X[rows], problem.y[rows], w2=0.01)
    expected = [problem.gradient(w[None]), few.gradient(w[None]), problem.hessian(w[None]), few.hessian(w[None])]
    for mine, theirs in zip(seen, [*expected, problem.value(w[None])], strict=True):
        np.testing.assert_allclose(mine, theirs[0], rtol=1e-12)
    np.testing.assert_array_equal(run.W[0], w + 1)
    assert (run.gradients[0], run.hessians[0], run.endings[0]) == (2, 2, "terminated")
    np.testing.assert_allclose(run.passes, 3 + 6 / problem.n)


def test_replicates_share_products_and_leave_when_they_end():
    spy = Spy(small_problem())

    def method(w, iterations, curious):
        for t in range(iterations):
            yield Iterate(w)
            g = yield Gradient(w)
            if curious and t == 0:  # asks for more than the others: they wait, and go on together
                yield Hessian(w)
                yield Value(w)
            w = w - g
        return w, "not terminated"

    W = np.zeros((3, 5))
    points = []
    run = run_in_step(
        spy,
        [method(w, t, curious) for w, t, curious in zip(W, (2, 4, 3), (True, False, True), strict=True)],
        W,
        lambda t, W, passes, final: points.append((t, passes.copy(), final.tolist())),
    )
    assert spy.gradients == [3, 3, 2, 1]
    assert spy.hessians == spy.values == [2]
    assert run.gradients.tolist() == [2, 4, 3]
    assert run.hessians.tolist() == [1, 0, 1]
    assert [p[0] for p in points] == [0, 1, 2, 3, 4]
    assert [p[2] for p in points] == [
        [False] * 3, [False] * 3, [True, False, False], [False, False, True], [False, True, False],
    ]  # fmt: skip
    np.testing.assert_array_equal(points[2][1], [4, 2, 4])
    np.testing.assert_array_equal(points[4][1], [np.nan, 4, np.nan])


def test_the_iterates_traced_are_the_current_ones():
    problem, traced = small_problem(), []

    def method(w):
        for _ in range(3):
            yield Iterate(w)
            w = w - (yield Gradient(w))
        return w, "not terminated"

    run_in_step(
        problem, [method(np.zeros(5))], np.zeros((1, 5)), lambda t, W, passes, final: traced.append(W[0].copy())
    )
    w = np.zeros(5)
    for seen in traced:
        np.testing.assert_allclose(seen, w, atol=1e-15)
        w = w - problem.gradient(w[None])[0]
    assert len(traced) == 4


BUDGET = Budget(1.0, 1e-3, Relation.REPLACE_ONE, "standard")
W2 = {"w2": 1e-3}


def answered(problem, generator):
    """Run one release, its request answered."""
    request = next(generator)
    ask = {"Gradient": problem.gradient, "Hessian": problem.hessian}[type(request).__name__]
    try:
        generator.send(ask(request.w[None], rows=request.rows)[0])
    except StopIteration as end:
        return request, end.value
    raise AssertionError("one request, one release")


def released(problem, k, m, sigma, kind):
    """(k, …) noise of releases at w = 0.1, and the ledger."""
    mechanisms = Mechanisms([f"oracle/{i}" for i in range(k)], BUDGET)
    w, noise = np.full(problem.d, 0.1), []
    for i in range(k):
        member = mechanisms.member(i)
        oracle = Minibatch(problem, member, sigma, m) if m else FullBatch(problem, member, sigma)
        request, value = answered(problem, getattr(oracle, kind)(w))
        ask = problem.gradient if kind == "gradient" else problem.hessian
        noise.append(value - ask(w[None], rows=request.rows)[0])
    return np.stack(noise), mechanisms.ledger


@pytest.mark.parametrize("m", [None, 20])
def test_gradient_noise(m):
    problem = small_problem(n=100, **W2)
    noise, ledger = released(problem, 400, m, 3.0, "gradient")
    z = (noise / (3.0 * 2 / (m or 100))).ravel()
    assert stats.kstest(z, "norm").pvalue > 1e-4
    assert stats.kstest(2 * z, "norm").pvalue < 1e-6  # halved noise would fail
    (entry,) = ledger.of(7)
    assert entry == (WithoutReplacement(100, m, Gaussian(3.0)) if m else Gaussian(3.0), 1, "gradient")


@pytest.mark.parametrize("m", [None, 20])
def test_hessian_noise_is_symmetric_with_independent_entries_on_and_above_the_diagonal(m):
    problem = small_problem(n=100, d=4, **W2)
    noise, ledger = released(problem, 400, m, 3.0, "hessian")
    np.testing.assert_array_equal(noise, noise.swapaxes(1, 2))
    rows, columns = np.triu_indices(4)
    z = noise[:, rows, columns] / (3.0 * 2 * np.sqrt(4) / (m or 100))
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-4
    assert stats.kstest(2 * z.ravel(), "norm").pvalue < 1e-6
    assert np.abs(np.corrcoef(z.T) - np.eye(10)).max() < 4.5 / np.sqrt(400)
    (entry,) = ledger.of(7)
    assert entry == (WithoutReplacement(100, m, Gaussian(3.0)) if m else Gaussian(3.0), 1, "hessian")


def test_gradient_and_hessian_are_on_subsets_of_their_own_of_exactly_m_rows():
    problem = small_problem(n=100)
    oracle = Minibatch(problem, Mechanisms(["own"], BUDGET).member(0), 1.0, 30)
    w = np.zeros(problem.d)
    rows = [answered(problem, ask(w))[0].rows for ask in (oracle.gradient, oracle.hessian) * 2]
    for some in rows:
        assert len(np.unique(some)) == 30
        assert 0 <= some.min() <= some.max() < 100
    assert len({some.tobytes() for some in rows}) == 4


ROWS = [("logistic", 1.0), ("sigmoid", 1.0), ("sigmoid", SecondOrderMethod.needs.row_norm_of["sigmoid"])]


@pytest.mark.parametrize(("loss", "longest"), ROWS)
def test_the_losses_obey_the_papers_constants(loss, longest):
    """B_g = B_H = 1 bound one example's gradient and Hessian; for ‖x‖ ≤ 1, G = M = 1 their Lipschitz constants."""
    generator = np.random.default_rng(0)
    X = generator.standard_normal((300, 3))
    X *= longest / np.linalg.norm(X, axis=1, keepdims=True)
    problem = Problem(X, np.where(generator.random(300) < 0.5, 1.0, -1.0), loss=loss)
    for scale in (0.1, 1, 3, 30, 300):
        w = scale / longest * generator.standard_normal(3)
        for i in range(300):
            row = np.array([i])
            assert np.linalg.norm(problem.gradient_sum(w, row)) <= const.B_g * (1 + 1e-12)
            assert np.linalg.norm(problem.hessian_sum(w, row), 2) <= const.B_H * (1 + 1e-12)
        if longest == 1:
            v = w + 0.1 * generator.standard_normal(3)
            apart = np.linalg.norm(w - v)
            assert np.linalg.norm(problem.data_gradient(w[None]) - problem.data_gradient(v[None])) <= const.G * apart
            H = problem.data_hessian(np.stack([w, v]))
            assert np.linalg.norm(H[0] - H[1], 2) <= const.M * apart
    assert max(problem.loss.lipschitz * longest, problem.loss.smoothness * longest**2) <= 1


def test_the_sigmoids_rows_may_hardly_be_longer():
    """One row where |ℓ''| is largest, at the bound: B_H = 1 is nearly attained there, and passed at 3.23."""
    steepest = np.log(2 + np.sqrt(3))  # 6σ(1-σ) = 1
    norms = []
    for longest in (SecondOrderMethod.needs.row_norm_of["sigmoid"], 3.23):
        problem = Problem(np.array([[longest]]), np.ones(1), loss="sigmoid")
        norms.append(abs(problem.hessian(np.array([[steepest / longest]]))[0, 0, 0]))
    assert 0.995 < norms[0] < 1 < norms[1]


def neighbour(problem, generator, row=None, longest=1.0):
    X, y = problem.X.copy(), problem.y.copy()
    x = generator.standard_normal(problem.d) if row is None else row
    X[0] = x / np.linalg.norm(x) * (1 - 1e-15) * longest
    y[0] = generator.choice([-1.0, 1.0]) if row is None else 1.0
    return Problem(X, y, loss=problem.loss, l2=problem.l2, w2=problem.w2)


@pytest.mark.parametrize(("loss", "longest"), ROWS)
def test_replacing_an_example_moves_mean_gradient_and_hessian_by_at_most_the_claim(loss, longest):
    """On all rows and on m of them that hold the replaced one: m takes the place of n. The regulariser cancels."""
    for seed in range(25):
        generator = np.random.default_rng(seed)
        problem = small_problem(n=40, d=4, seed=seed, loss=loss, **W2)
        problem, other = (neighbour(problem, generator, longest=longest) for _ in range(2))
        w = 10 ** generator.uniform(-1, 2) * generator.standard_normal((1, 4))
        for rows, m in ((None, 40), (np.array([0, 3, 8]), 3)):
            gap = problem.gradient(w, rows) - other.gradient(w, rows)
            assert np.linalg.norm(gap) <= 2 * const.B_g / m * (1 + 1e-12)
            gap = problem.hessian(w, rows=rows) - other.hessian(w, rows=rows)
            assert np.linalg.norm(gap) <= 2 * const.B_H * np.sqrt(4) / m * (1 + 1e-12)


def test_the_gradients_sensitivity_is_attained_by_the_logistic_loss():
    """Two examples far on the wrong side of w, nearly opposite to each other: the mean moves by almost 2/n."""
    problem = small_problem(n=40, d=2, seed=1)
    w = np.array([[-1e6, 0.0]])
    pair = [neighbour(problem, None, row=np.array([1e-3, sign])) for sign in (1, -1)]
    gap = np.linalg.norm(pair[0].gradient(w) - pair[1].gradient(w))
    assert 0.999 * 2 / 40 < gap <= 2 / 40


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
def test_without_noise_it_finds_the_first_step_that_decreases_enough(slope):
    for seed in range(5):
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
def test_replacing_an_example_moves_no_query_by_more_than_claimed(loss):
    for seed in range(25):
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


def test_the_second_bound_of_gd_2ns_is_that_of_its_paper_where_it_is_the_larger():
    """gap/(φ/γ) = χ⁴c⁶/(2α²) with χ = 0.1·ln(d/(0.1·α)), c = 0.7 and all constants of the loss 1: from α = 1e-8 on."""
    for alpha in (1e-9, 1e-10):
        chi = 0.1 * math.log(54 / (0.1 * alpha))
        assert const.gd_2ns_iterations(alpha, 54) == pytest.approx(chi**4 * 0.7**6 / (2 * alpha**2), rel=1e-9)
