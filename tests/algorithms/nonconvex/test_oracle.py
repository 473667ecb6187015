"""Noisy gradients and Hessians: the noise they add, and the sensitivities it is scaled by."""

import numpy as np
import pytest
from scipy import stats

from dpbench.algorithms.nonconvex import constants as const
from dpbench.algorithms.nonconvex.base import SecondOrderMethod
from dpbench.algorithms.nonconvex.oracle import FullBatch, Minibatch
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Gaussian, WithoutReplacement
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.privacy.relation import Relation
from dpbench.problems import Problem
from tests.algorithms.conftest import small_problem

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
@pytest.mark.parametrize("seed", range(25))
def test_replacing_an_example_moves_mean_gradient_and_hessian_by_at_most_the_claim(loss, longest, seed):
    """On all rows and on m of them that hold the replaced one: m takes the place of n. The regulariser cancels."""
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
