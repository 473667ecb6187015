"""dp-sgd: what it samples, what noise it draws, and its limits.

dp-mf: batches in a fixed order, far enough apart for its noise.
"""

import numpy as np
import pytest
from scipy import stats

from dpbench.errors import UserError
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.privacy.verify import spent
from tests.algorithms.conftest import run, small_problem


def first_batches(result, k, n, rate):
    """The samples of the first iteration, drawn again from the same streams."""
    mechanisms = Mechanisms([f"test/dp-sgd/{i}" for i in range(k)], result.mechanisms.budget)
    return mechanisms.poisson(n, rate, "again").draw()


def test_noise_has_the_standard_deviation_of_its_multiplier(problem):
    """One step from zero: -np w/η = Σ_B ∇f_i + z L₀ N(0, I)."""
    k, rate, step = 400, 0.1, 4.0
    zero = np.zeros((k, problem.d))
    result = run("dp-sgd", problem, T=1, rate=rate, step=step, start=zero)
    sums = np.stack([problem.gradient_sum(zero[0], rows) for rows in first_batches(result, k, problem.n, rate)])
    (entry,) = result.mechanisms.ledger.of(0)
    multiplier = entry.release.release.noise_multiplier
    noise = (-problem.n * rate * result.W / step - sums) / multiplier
    assert stats.kstest(noise.ravel(), "norm").pvalue > 1e-4
    assert stats.kstest(2 * noise.ravel(), "norm").pvalue < 1e-6  # halved noise would fail
    assert abs((noise**2).mean() - 1) < 4 * np.sqrt(2 / noise.size)


def test_the_ledger_holds_T_poisson_samples_that_use_up_epsilon(problem):
    result = run("dp-sgd", problem, T=30, rate=0.05, epsilon=2.0)
    (entry,) = result.mechanisms.ledger.of(0)
    assert (entry.count, entry.release.rate) == (30, 0.05)
    budget = result.mechanisms.budget
    assert budget.epsilon_of((entry,)) == pytest.approx(2.0, rel=1e-6)
    assert 0.8 * 2 < spent((entry,), budget.delta, budget.relation).epsilon <= 2 * (1 + 1e-6)


def test_allocated_batches_use_each_row_once_an_epoch_with_less_noise(problem):
    allocated, poisson = (
        run("dp-sgd", problem, T=20, rate=0.1, epsilon=2.0, accounting="tight", batches=batches)
        for batches in ("allocated", "poisson")
    )
    ((entry,), (other,)) = (result.mechanisms.ledger.of(0) for result in (allocated, poisson))
    assert (entry.count, entry.release.steps, other.count) == (2, 10, 20)
    assert entry.release.release.noise_multiplier < 0.95 * other.release.release.noise_multiplier
    budget = allocated.mechanisms.budget
    assert 0.99 * 2 <= spent((entry,), budget.delta, budget.relation).epsilon <= 2 * (1 + 1e-6)
    for other in ({"accounting": "rdp"}, {"accounting": "tight", "delta": 1e-12}):
        with pytest.raises(UserError, match="by tight under add-remove neighbours alone, for delta from 1e-10 on"):
            run("dp-sgd", problem, T=20, rate=0.1, batches="allocated", **other)
    with pytest.raises(UserError, match="1/rate whole"):
        run("dp-sgd", problem, T=20, rate=0.3, accounting="tight", batches="allocated")


def test_tight_accounting_wastes_nothing(problem):
    result = run("dp-sgd", problem, T=30, rate=0.05, epsilon=2.0, accounting="tight")
    budget = result.mechanisms.budget
    epsilon = spent(result.mechanisms.ledger.of(0), budget.delta, budget.relation).epsilon
    assert 0.95 * 2 <= epsilon <= 2 * (1 + 1e-6)


def test_a_step_is_unbiased(problem):
    """The mean over samples of the first step is the full gradient's."""
    k, step = 2000, 4.0
    W = run("dp-sgd", problem, T=1, rate=0.1, step=step, noiseless=True, start=np.zeros((k, problem.d))).W
    full = -step * problem.gradient(np.zeros((1, problem.d)))[0]
    z = (W.mean(axis=0) - full) / (W.std(axis=0) / np.sqrt(k))
    assert np.abs(z).max() < 4.5


def test_without_noise_at_rate_one_it_is_gradient_descent():
    problem = small_problem(l2=0.05)
    ours = run("dp-sgd", problem, T=50, rate=1 - 1e-12, noiseless=True).W
    np.testing.assert_allclose(ours, run("dp-gd", problem, T=50, noiseless=True).W, rtol=1e-9)


def test_one_example_never_moves_a_sampled_sum_by_more_than_claimed(problem):
    """With and without row i in the sample: at most L₀, and nearly that for a row as wrong as can be."""
    rows = np.arange(1, 60)
    for scale in (0.0, 1.0, 50.0):
        w = -scale * problem.y[0] * problem.X[0]
        moved = problem.gradient_sum(w, np.append(0, rows)) - problem.gradient_sum(w, rows)
        assert np.linalg.norm(moved) <= problem.lipschitz * (1 + 1e-9)
    assert np.linalg.norm(moved) >= 0.99 * problem.lipschitz


def test_without_noise_it_is_gradient_descent_over_the_batches_in_order():
    problem = small_problem(n=41, l2=0.1)
    found = run("dp-mf", problem, noiseless=True, epochs=2, batches=4, step=0.5).W[0]
    w = np.zeros((1, 5))
    for t in range(8):
        w = w - 0.5 * problem.gradient(w, np.arange(t % 4, 41, 4))
    np.testing.assert_allclose(found, w[0], rtol=1e-9)


def test_one_batch_and_one_band_are_gradient_descent_with_its_noise():
    problem = small_problem()
    one = run("dp-mf", problem, epochs=5, batches=1, step=1.0)
    assert one.mechanisms.ledger.of(0)[0].count == 1
    assert np.isfinite(one.W).all()


@pytest.mark.parametrize("settings", [{"batches": 4, "bands": 5}, {"batches": 401}])
def test_settings_its_proof_does_not_cover_are_refused(settings):
    with pytest.raises(UserError, match="batches"):
        run("dp-mf", small_problem(), **settings)
