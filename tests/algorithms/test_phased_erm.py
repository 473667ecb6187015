"""phased-erm: what each phase minimises, how far a row moves it, and its noise."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

from dpbench.algorithms.perturbed_minimum import minimise
from dpbench.algorithms.phased_erm import PhasedERM, phases
from dpbench.privacy.budget import Budget
from dpbench.privacy.relation import Relation
from dpbench.problems import Problem
from tests.algorithms.conftest import run, small_problem


def near(problem, centre, ridge):
    """argmin F(w) + ridge/2 ‖w - centre‖², by a general-purpose solver."""
    found = minimize(
        lambda w: problem.value(w[None])[0] + ridge / 2 * ((w - centre) ** 2).sum(),
        centre,
        jac=lambda w: problem.gradient(w[None])[0] + ridge * (w - centre),
        options={"gtol": 1e-10},
    )
    return found.x


def test_without_noise_each_phase_is_a_proximal_point():
    problem = small_problem(n=80, d=3, l2=0.05)
    found = run("phased-erm", problem, noiseless=True, phases=3, ridge=0.2).W[0]
    w = np.zeros(3)
    for ridge in (0.2, 0.8, 3.2):
        w = near(problem, w, ridge)
    np.testing.assert_allclose(found, w, atol=3 * 80**-2.0 / 0.2)


@pytest.mark.parametrize("l1", [0.0, 0.01])
@pytest.mark.parametrize("seed", range(5))
def test_what_a_phase_releases_moves_as_little_as_declared(seed, l1):
    problem, rng = small_problem(n=40, d=3, seed=seed, l1=l1, l2=0.02), np.random.default_rng(seed)
    X, y = problem.X.copy(), problem.y.copy()
    X[0], y[0] = -X[0] if seed % 2 else X[1], -y[0]
    other, centre = Problem(X, y, row_bound=1.0, l1=l1, l2=0.02), rng.standard_normal((1, 3))
    budget = Budget(1.0, 1e-6, Relation.REPLACE_ONE, "tight")
    made = phases(problem, budget, PhasedERM.Settings(ridge=0.05))
    for ridge, sensitivity in zip(*made, strict=True):
        ends = [minimise(p, centre, -ridge * centre, ridge, 1e-12)[0] for p in (problem, other)]
        assert np.linalg.norm(ends[0] - ends[1]) <= sensitivity


def test_the_noise_of_the_last_phase_by_its_variance():
    """A ridge so high that each phase stays where it starts: what is released is the noise of all phases."""
    problem = small_problem(n=200)
    result = run("phased-erm", problem, start=np.zeros((2000, 5)), phases=2, ridge=1e6)
    rho = result.mechanisms.budget.rho / 2
    sigma = (2 / 200 + 2 * 200**-2.0) / 1e6 / math.sqrt(2 * rho)
    residuals = (result.W - result.W.mean(axis=0)).ravel() / (sigma * math.sqrt(1 + 1 / 16))
    assert stats.kstest(residuals, "norm").pvalue > 1e-4
    assert stats.kstest(2 * residuals, "norm").pvalue < 1e-6


def test_phases_share_the_budget_and_the_first_ridge_falls_with_epsilon():
    result = run("phased-erm", small_problem(), phases=4)
    ((entry),) = result.mechanisms.ledger.of(0)
    assert entry.count == 4
    assert 4 / entry.release.noise_multiplier**2 == pytest.approx(2 * result.mechanisms.budget.rho)
    asked = [Budget(e, 1e-6, Relation.REPLACE_ONE, "tight") for e in (0.1, 1.0, 10.0)]
    first = [phases(small_problem(), one, PhasedERM.Settings()).ridges[0] for one in asked]
    assert first == sorted(first, reverse=True)


@pytest.mark.parametrize("l1", [0.0, 1e-4])
def test_a_linear_term_that_cancels_the_objective_does_not_stop_the_solver(l1):
    """At a minimum of value 0 the rounding of its terms is all that values differ by: steps are judged against that."""
    rng = np.random.default_rng(0)
    problem = small_problem(n=3000, l2=1e-3, l1=l1)
    centre = rng.standard_normal((1, 5))
    centre *= 6 / np.linalg.norm(centre)
    low, high = 1e-4, 10.0
    for _ in range(60):
        ridge = math.sqrt(low * high)
        w = minimise(problem, centre, -ridge * centre, ridge, 1e-9)[0]
        value = problem.value(w)[0] + ridge / 2 * (w * w).sum() - ridge * (centre * w).sum()
        low, high = (ridge, high) if value > 0 else (low, ridge)
    starts = w + 3e-10 * rng.standard_normal((20, 5))
    found = [minimise(problem, one[None], -ridge * centre, ridge, 1e-13) for one in starts]
    assert max(norms[0] for _, norms, _ in found) <= 1e-13
    assert max(evaluations[0] for _, _, evaluations in found) <= 5
