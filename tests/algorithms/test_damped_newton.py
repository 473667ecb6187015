"""damped-newton: symmetric Hessian noise, the split of ρ, the damped step, and that it is not private."""

import numpy as np
import pytest
from scipy import stats

from dpbench.algorithms import damped_newton, get
from dpbench.algorithms.damped_newton import non_private_step
from dpbench.privacy import accounting
from dpbench.problems import Problem
from tests.algorithms.conftest import run, small_problem


def test_hessian_noise_is_symmetric_with_the_variances_of_the_paper(problem, monkeypatch):
    """(N + Nᵀ)/2: variance s² on the diagonal, s²/2 off it, s = sqrt(1/(2·0.3ρ/T))/(4n)."""
    seen = []
    honest = damped_newton.clip_and_solve
    monkeypatch.setattr(damped_newton, "clip_and_solve", lambda H, *rest: seen.append(H) or honest(H, *rest))
    k, T = 400, 3
    run("damped-newton", problem, T=T, start=np.zeros((k, problem.d)))
    rho = accounting.get("bs16").rho(1.0, problem.n**-2.0)
    s = np.sqrt(T / (2 * 0.3 * rho)) / (4 * problem.n)
    noise = (seen[0] - problem.data_hessian(np.zeros((1, problem.d)))) / s
    np.testing.assert_array_equal(noise, noise.swapaxes(1, 2))
    diagonal = np.einsum("kii->ki", noise).ravel()
    rows, columns = np.triu_indices(problem.d, 1)
    above = np.sqrt(2) * noise[:, rows, columns].ravel()
    for sample in (diagonal, above):
        assert stats.kstest(sample, "norm").pvalue > 1e-4
        assert stats.kstest(2 * sample, "norm").pvalue < 1e-6  # halved noise would fail


def test_the_ledger_gives_seven_tenths_to_the_gradient(problem):
    T = 5
    result = run("damped-newton", problem, T=T)
    entries = {e.label: e for e in result.mechanisms.ledger.of(0)}
    rho = result.mechanisms.budget.rho
    for label, share in {"gradient": 0.7, "Hessian": 0.3}.items():
        assert entries[label].count == T
        assert T / (2 * entries[label].release.noise_multiplier ** 2) == pytest.approx(share * rho, rel=1e-9)


def test_one_example_moves_the_hessian_by_at_most_a_quarter_in_frobenius_norm(problem):
    for w in (np.zeros(problem.d), 5 * problem.X[3]):
        moves = [np.linalg.norm(problem.hessian_sum(w, np.array([i]))) for i in range(problem.n)]
        assert max(moves) <= problem.smoothness * (1 + 1e-9)
    assert np.linalg.norm(problem.hessian_sum(np.zeros(problem.d), np.array([0]))) >= 0.99 * problem.smoothness


def test_one_noiseless_step_is_damped_newton(problem):
    w = np.zeros((1, problem.d))
    newton = np.linalg.solve(problem.data_hessian(w)[0], problem.data_gradient(w)[0])
    b = np.linalg.norm(newton)
    result = run("damped-newton", problem, T=1, noiseless=True)
    np.testing.assert_allclose(result.W[0], -np.log1p(b) / b * newton, rtol=1e-5)


def test_the_step_is_one_at_the_optimum():
    assert non_private_step(np.eye(3)[None], np.zeros((1, 3)))[0] == 1.0


def test_without_noise_it_reaches_the_optimum():
    problem = small_problem(n=2000)
    result = run("damped-newton", problem, T=60, noiseless=True)
    assert problem.value(result.W) - problem.optimum().value == pytest.approx([0, 0], abs=1e-10)


def test_it_is_marked_as_not_private():
    assert not get("damped-newton").private


def test_a_ridge_in_the_objective_shortens_steps_by_what_has_gathered_where_the_hessian_is_singular():
    """Along a column of zeros H and ∇f are zero, so (H + 1e-8 I)⁻¹(∇f + 1e-8 w) is w itself there."""
    rows = small_problem()
    problem = Problem(np.column_stack([rows.X, np.zeros(rows.n)]), rows.y, loss="logistic", row_bound=1.0)
    w = np.array([[0.0] * rows.d + [5.0]])
    newton = np.linalg.solve(rows.data_hessian(w[:, :-1])[0], rows.data_gradient(w[:, :-1])[0])
    for ridge, b in (("hessian", np.linalg.norm(newton)), ("objective", np.hypot(np.linalg.norm(newton), 5.0))):
        result = run("damped-newton", problem, T=1, noiseless=True, start=w, ridge=ridge)
        np.testing.assert_allclose(result.W[0, :-1], -np.log1p(b) / b * newton, rtol=1e-5)
