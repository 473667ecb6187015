"""The noise that output perturbation, phased ERM and bolt-on share: its variance by draws, and its cost.

phased-erm: what each phase minimises, how far a row moves it, and its noise.

bolt-on: a plain loop that does the same, how far runs on neighbours end apart, and the noise.
"""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

from dpbench.algorithms import output_perturbation
from dpbench.algorithms.objective_perturbation import minimise
from dpbench.algorithms.output_perturbation import BoltOn, PhasedERM, phases, schedule
from dpbench.errors import UserError
from dpbench.privacy import verify
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Relation
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.privacy.noise import stream
from dpbench.problems import Declaration, Problem
from tests.algorithms.conftest import run, small_problem

SENSITIVITY = 0.3


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_variance_in_a_direction(delta, parts):
    budget = Budget(1.0, delta, Relation.REPLACE_ONE, "tight" if delta else "pure")
    seeds = [f"noise-{seed}" for seed in range(4000)]
    W = output_perturbation.release(Mechanisms(seeds, budget), np.zeros((len(seeds), 4)), SENSITIVITY, parts)
    expected = SENSITIVITY**2 * output_perturbation.variance(budget, 4, parts)
    # Of one release, where nothing else is said: so bolt-on's rule asks for it.
    assert output_perturbation.variance(budget, 4) == output_perturbation.variance(budget, 4, 1)
    assert np.square(W).mean() == pytest.approx(expected, rel=0.06)  # five standard errors of the radial noise


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_all_parts_together_spend_the_budget(delta, parts):
    budget = Budget(1.0, delta, Relation.REPLACE_ONE, "tight" if delta else "pure")
    mechanisms = Mechanisms(["noise"], budget)
    for _ in range(parts):
        output_perturbation.release(mechanisms, np.zeros((1, 4)), SENSITIVITY, parts)
    spent = verify.spent(mechanisms.ledger.of(0), delta, budget.relation).epsilon
    assert spent == pytest.approx(1.0, rel=1e-3)


def test_two_rows_pull_twice():
    gaussian, radial = output_perturbation.disclosures("the model", "(L₀/n + 2·γ)/ridge", "because")
    assert (gaussian.replace_one, radial.add_remove) == ("(2·L₀/n + 2·γ)/ridge", "(L₀/n + 2·γ)/ridge")
    assert (gaussian.when, radial.when, radial.mechanism) == ("", "δ = 0", "radial")


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
def test_what_a_phase_releases_moves_as_little_as_declared(l1):
    for seed in range(5):
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


def budget(epsilon=1.0, relation=Relation.REPLACE_ONE):
    return Budget(epsilon, 1e-6, relation, "tight")


def plain(problem, order, passes, b, step):
    """The iterates of every pass, row by row; the divisor is b, whatever a batch has."""
    w, mean = np.zeros(problem.d), None
    for _ in range(passes):
        ends = []
        for first in range(0, problem.n, b):
            g = problem.l2 * w
            for i in order[first : first + b]:
                g = g - problem.y[i] / (1 + math.exp(problem.y[i] * (problem.X[i] @ w))) * problem.X[i] / b
            w = w - step * g
            ends.append(w)
        mean = np.mean(ends, axis=0)
    return mean


def test_without_noise_it_is_a_plain_loop():
    problem = small_problem(n=50, l2=0.1)
    found = run("bolt-on", problem, noiseless=True, seeds=1, epochs=3, batch=7, step=0.5).W[0]
    order = stream("test/bolt-on/0", "coins").permutation(50)
    np.testing.assert_allclose(found, plain(problem, order, 3, 7, 0.5), rtol=1e-9)


@pytest.mark.parametrize("b", [1, 7, 50])
@pytest.mark.parametrize("l2", [0.0, 0.2])
@pytest.mark.parametrize("gone", [False, True])
def test_runs_on_neighbours_end_as_near_as_declared(b, l2, gone):
    problem = small_problem(n=50, d=3, l2=l2)
    asked = budget(relation=Relation.ADD_REMOVE if gone else Relation.REPLACE_ONE)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y = problem.X.copy(), problem.y.copy()
        row = rng.integers(50)
        X[row], y[row] = (0.0 if gone else -X[row] if seed % 2 else X[row]), -y[row]
        other = Problem(X, y, row_bound=1.0, l2=l2)
        for step in (0.3, 1 / (0.25 + l2), 2 / (0.25 + l2)):
            settings = BoltOn.Settings(epochs=4, batch=b, step=step)
            order = rng.permutation(50)
            ends = [plain(p, order, 4, b, step) for p in (problem, other)]
            assert np.linalg.norm(ends[0] - ends[1]) <= schedule(problem, asked, settings).sensitivity


def test_the_bound_is_nearly_attained_by_rows_that_pull_as_hard_as_they_can():
    """The row is first in the order, and steep all the way: the mean of the last pass has all of its pulls."""
    X, b, step = np.zeros((20, 1)), 4, 0.01
    X[0] = 1.0
    ends = [
        plain(Problem(X, np.where(np.arange(20), 1.0, y), row_bound=1.0), np.arange(20), 5, b, step)
        for y in (1.0, -1.0)
    ]
    bound = schedule(Declaration(20, 1, row_bound=1.0), budget(), BoltOn.Settings(epochs=5, batch=b, step=step))
    assert bound.sensitivity == pytest.approx(2 * 5 * step / b)
    assert abs(ends[0] - ends[1])[0] > 0.49 * bound.sensitivity  # at w = 0 a logistic loss pulls by one half


def test_the_noise_by_its_variance():
    problem = small_problem(n=60, l2=0.1)
    settings = {"epochs": 2, "batch": 60, "step": 0.5}
    result = run("bolt-on", problem, start=np.zeros((2000, 5)), **settings)
    exact = plain(problem, np.arange(60), 2, 60, 0.5)  # the whole is one batch: no order matters
    sigma = 2 * 0.5 / 60 * (1 + (1 - 0.05)) / math.sqrt(2 * result.mechanisms.budget.rho)
    residuals = ((result.W - exact) / sigma).ravel()
    assert stats.kstest(residuals, "norm").pvalue > 1e-4
    assert stats.kstest(2 * residuals, "norm").pvalue < 1e-6


def test_a_step_that_parts_runs_is_refused():
    with pytest.raises(UserError, match=r"step: 8\.1 parts runs"):
        run("bolt-on", small_problem(), step=8.1)


def test_the_rule_goes_further_as_epsilon_grows_and_no_further_than_the_bound_on_the_step():
    problem = Declaration(10_000, 20, row_bound=1.0, l2=1e-3)
    made = [schedule(problem, budget(epsilon), BoltOn.Settings()) for epsilon in np.geomspace(1e-4, 1e4, 17)]
    times = [one.step * one.passes for one in made]
    assert times == sorted(times)
    assert all(one.step <= 1 / (0.25 + 1e-3) and one.batch == 100 for one in made)
    assert made[-1].sensitivity < 2 * made[-1].step * made[-1].passes / 100  # the ridge has brought runs together
