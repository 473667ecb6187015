import math

import numpy as np
import pytest
from scipy.optimize import minimize

from dpbench.algorithms import allocation
from dpbench.algorithms.allocation import ErrorWeights, error_weights, stages, steps

MU = 0.02


@pytest.fixture(scope="module")
def paper_L():
    from dpbench.datasets.synthetic import cube

    U, _ = cube(None)
    return float(np.linalg.eigvalsh(U.T @ U / len(U))[-1]) + MU


def weights_of(T, c, L, multistage, mu=MU):
    stage = stages(T, L / mu) if multistage else np.ones(T, int)
    return error_weights(steps(stage, c / L), stage, mu, L)


def direct_a(T, alpha, stage, mu, L):
    """a_{T,t}, t = 1..T, and a_{T,0}, multiplied out as (4.8) writes them."""
    factor = [1 - math.sqrt(mu * a) for a in alpha[:T]]
    a = [
        2.0 ** (stage[T - 1] - stage[t]) * math.prod(factor[t + 1 :]) * alpha[t] * (1 + alpha[t] * L) for t in range(T)
    ]
    return np.array(a), 2.0 ** (stage[T - 1] - 1) * math.prod(factor)


def test_stage_lengths_of_fig_2_by_hand():
    # √20 = 4.472: ⌊2·4.472·ln 4.472⌋ = ⌊13.40⌋ = 13, ⌈4.472·ln 8⌉ = ⌈9.30⌉ = 10, so 13, 40, 80, 160, 320.
    stage = stages(613, 20.0, first=13)
    assert np.bincount(stage)[1:].tolist() == [13, 40, 80, 160, 320]
    assert stages(10, 20.0).tolist() == [1] * 10
    assert np.count_nonzero(stages(100, 20.0) == 1) == 14  # the experiments round up


def test_a_shorter_run_has_the_same_stages():
    whole = stages(700, 255.0)
    for T in (1, 88, 89, 90, 300):
        assert (stages(T, 255.0) == whole[:T]).all()


def test_steps_shrink_by_four_to_the_stage():
    assert steps(np.array([1, 1, 2, 3]), 0.5).tolist() == [0.5, 0.5, 0.5 / 16, 0.5 / 64]


@pytest.mark.parametrize("multistage", [False, True])
def test_weights_and_bounds_equal_the_products_of_the_paper(multistage):
    T, mu, L, noise, E0 = 40, 1.0, 3.0, 1e-3, 10.0
    stage = stages(T, L / mu) if multistage else np.ones(T, int)
    assert (stage.max() > 2) == multistage
    alpha = steps(stage, 0.9 / L)
    weights = error_weights(alpha, stage, mu, L)
    for end in (1, 2, 7, 25, 40):
        a, a0 = direct_a(end, alpha, stage, mu, L)
        np.testing.assert_allclose(np.exp(weights.growth[end - 1] + weights.own[:end]), a, rtol=1e-11)
        np.testing.assert_allclose(weights.shares(end), np.cbrt(a) / np.cbrt(a).sum(), rtol=1e-12)
        bound = a0 * E0 + noise * np.cbrt(a).sum() ** 3
        np.testing.assert_allclose(np.exp(weights.log_bounds(noise, E0)[end - 1]), bound, rtol=1e-11)


@pytest.mark.filterwarnings("ignore:Values in x were outside bounds")  # SLSQP of older SciPy
@pytest.mark.parametrize("multistage", [False, True])
def test_proposition_4_2_against_a_numerical_solution_of_4_4(multistage):
    # (4.4) at m = n with b_t = S₁/(n ε_t): minimise Σ a_t/ε_t² subject to Σ ε_t = ε.
    T, mu, L, epsilon = 12, 1.0, 2.0, 0.7
    stage = stages(T, L / mu) if multistage else np.ones(T, int)
    alpha = steps(stage, 1 / L)
    a, _ = direct_a(T, alpha, stage, mu, L)
    solution = minimize(
        lambda e: np.sum(a / e**2) / a.sum(),
        np.full(T, epsilon / T),
        jac=lambda e: -2 * a / e**3 / a.sum(),
        constraints={"type": "eq", "fun": lambda e: e.sum() - epsilon, "jac": np.ones_like},
        bounds=[(1e-4, epsilon)] * T,
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 2000},
    )
    ours = epsilon * error_weights(alpha, stage, mu, L).shares()
    assert solution.success
    np.testing.assert_allclose(ours, solution.x, rtol=2e-3)
    assert np.sum(a / ours**2) <= np.sum(a / solution.x**2) * (1 + 1e-9)
    assert np.ptp(ours) > 0.1 * epsilon / T  # and it is not the even split


@pytest.mark.parametrize("multistage", [False, True])
@pytest.mark.parametrize("T", [1, 100, 5000])
def test_budgets_sum_to_epsilon(T, multistage, paper_L):
    shares = weights_of(T, 1.0, paper_L, multistage).shares()
    assert len(shares) == T
    assert (shares > 0).all()
    assert abs(math.fsum(shares) - 1) <= 1e-12


@pytest.mark.parametrize("T", [1000, 5000])
@pytest.mark.parametrize(
    ("c", "nag", "masg", "nag_code"), [(0.1, 303, 89, 396), (0.5, 149, 89, 191), (1.0, 106, 89, 136)]
)
def test_the_chosen_T(T, c, nag, masg, nag_code, paper_L):
    noise = 20 * (40 / 1e5) ** 2  # d S₁²/(nε)² at d = 20, n = 100,000, ε = 1
    one_stage = weights_of(T, c, paper_L, multistage=False)
    assert one_stage.best_T(noise, 10.0) == nag
    assert weights_of(T, c, paper_L, multistage=True).best_T(noise, 10.0) == masg
    # The authors' code: a factor 2^{s_T'} before E₀, and α/2·(1 + αL).
    assert ErrorWeights(one_stage.growth, one_stage.own - math.log(2)).best_T(noise, 20.0) == nag_code


def test_every_candidate_in_one_pass_and_without_overflow():
    """200,000 candidates: O(T) each would be 4·10¹⁰ steps, and products underflow beyond T = 5,000 or so."""
    weights = weights_of(200_000, 1.0, 5.0, multistage=False)
    bounds = weights.log_bounds(3.2e-6, 10.0)
    assert np.isfinite(bounds).all()
    assert weights.best_T(3.2e-6, 10.0) == weights_of(1000, 1.0, 5.0, multistage=False).best_T(3.2e-6, 10.0)


def test_fig_2_by_hand():
    # Two iterations, one stage, μα = 1/4: 1 - √(μα) = 1/2, so a_{2,1} = a_{2,2}/2 and b_1/b_2 = 2^{1/3}.
    shares = error_weights(np.full(2, 0.25), np.ones(2, int), 1.0, 1.0).shares()
    np.testing.assert_allclose(1 / shares, [1 + 2 ** (1 / 3), 1 + 2 ** (-1 / 3)], rtol=1e-14)
    assert allocation.stages(3, 20.0, first=2).tolist() == [1, 1, 2]
