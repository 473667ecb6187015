"""dp-adam: Adam's update step by step, its noise, and what taking the noise's variance off does."""

import math

import numpy as np
import pytest
from scipy import stats

from dpbench.problems import Problem
from dpbench.run.fit import fit
from tests.algorithms.conftest import run, small_problem


def plain(problem, T, step, beta1, beta2, clip):
    """Adam on the clipped mean gradient, without noise, of one w and in loops."""
    w, m, v = np.zeros(problem.d), np.zeros(problem.d), np.zeros(problem.d)
    for t in range(1, T + 1):
        g = problem.l2 * w
        for x, y in zip(problem.X, problem.y, strict=True):
            g = g + np.clip(w @ x - y, -clip, clip) * x / problem.n
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        w = w - step * (m / (1 - beta1**t)) / np.sqrt(np.maximum(v / (1 - beta2**t), 1e-8))
    return w


@pytest.mark.parametrize("beta2", [0.5, 0.99])
def test_without_noise_or_correction_it_is_adam(beta2):
    problem = small_problem(n=60, loss="squared", l2=0.1)
    found = run("dp-adam", problem, noiseless=True, T=12, step=0.05, beta2=beta2, clip=0.2, correct=False).W[0]
    np.testing.assert_allclose(found, plain(problem, 12, 0.05, 0.9, beta2, 0.2), rtol=1e-9)


def test_the_noise_and_what_is_taken_off_are_of_one_size():
    """No row pulls: after one step under a high floor, w is the noise in units of the σ that the ledger's ρ gives."""
    problem = Problem(np.zeros((50, 2)), np.ones(50), row_bound=1.0)
    result = run("dp-adam", problem, start=np.zeros((4000, 2)), T=1, floor=1e3, step=1.0)
    assert result.mechanisms.ledger.of(0)[0].release.noise_multiplier == pytest.approx(
        math.sqrt(0.5 / result.mechanisms.budget.rho)
    )
    units = -1e3 * result.W.ravel()
    assert stats.kstest(units, "norm").pvalue > 1e-4
    assert stats.kstest(2 * units, "norm").pvalue < 1e-6


def test_a_floor_far_below_the_noise_runs_away():
    problem = small_problem(n=200)
    ends = [run("dp-adam", problem, start=np.zeros((50, 5)), epsilon=0.3, floor=f).W for f in (1.0, 1e-3)]
    assert np.linalg.norm(ends[1]) > 10 * np.linalg.norm(ends[0])


def test_three_classes_are_told_apart():
    rng = np.random.default_rng(0)
    y = np.arange(3000) % 3.0
    X = np.eye(3)[y.astype(int)] + 0.2 * rng.standard_normal((3000, 3))
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    found = fit(X, y, algorithm="dp-adam", loss="softmax-3", epsilon=3.0, seed=0)
    assert (np.argmax(X @ found.w.reshape(3, 3).T, axis=1) == y).mean() > 0.9
