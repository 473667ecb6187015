"""dp-newton-general (Algorithm 6): its conditions, sensitivities, noise, and a loss that is not the logistic one."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpbench.algorithms import resolve
from dpbench.algorithms.newton import SOLVE
from dpbench.algorithms.newton_general import inverse_sensitivity
from dpbench.errors import UserError
from dpbench.privacy.streams import stream
from dpbench.problems import Problem
from dpbench.problems.losses import Loss
from tests.algorithms.conftest import run, small_problem


class PseudoHuber(Loss):
    """sqrt(1 + (z - y)²) - 1: convex, 1-Lipschitz, 1-smooth."""

    name, convex, binary = "pseudo-huber", True, False
    lipschitz, smoothness, hessian_lipschitz = 1.0, 1.0, 0.86

    def check_labels(self, y):
        """Any."""

    def value(self, z, y, out):
        out[...] = np.sqrt(1 + (z - y) ** 2) - 1
        return out

    def derivative(self, z, y, out):
        out[...] = (z - y) / np.sqrt(1 + (z - y) ** 2)
        return out

    def second_derivative(self, z, y, out):
        out[...] = (1 + (z - y) ** 2) ** -1.5
        return out


@pytest.fixture(scope="module")
def huber():
    generator = np.random.default_rng(0)
    X = generator.standard_normal((2000, 4))
    X /= np.linalg.norm(X, axis=1, keepdims=True) * (1 + 1e-15)
    return Problem(X, X @ np.ones(4) + 0.1 * generator.standard_normal(2000), loss=PseudoHuber(), row_bound=1.0)


def test_sensitivities_by_hand():
    n, L1, lambda0 = 1000, 0.25, 0.1
    assert inverse_sensitivity(n, L1, lambda0, "add") == pytest.approx(0.25 / (1000 * 0.01 - 0.1 * 0.25))
    C = 2 / math.pi + 0.5 + math.log((2 * 1000 * 0.15 + 0.25) / 0.25) / math.pi
    assert inverse_sensitivity(n, L1, lambda0, "clip") == pytest.approx(0.25 * C / (10 - 0.1 * 0.25 * C))


@pytest.mark.parametrize("modification", ["clip", "add"])
@given(seed=st.integers(0, 100_000), d=st.integers(1, 6), share=st.floats(0.02, 0.5))
@settings(max_examples=200, deadline=None)
def test_no_neighbour_moves_the_direction_by_more_than_claimed(modification, seed, d, share):
    """H' = H + B with B of any rank, 0 ≤ B ≤ L₁/n: Theorem B.6 with Lemma B.7."""
    generator = np.random.default_rng(seed)
    n, L1 = 1000, 1.0
    lambda0 = np.array([share * L1])
    Q, P = (np.linalg.qr(generator.standard_normal((d, d)))[0] for _ in range(2))
    H = (Q * np.minimum(L1, lambda0 * np.exp(generator.normal(0, 0.5, d)))) @ Q.T
    B = (P * generator.choice([0.0, 1.0], d)) @ P.T * L1 / n
    g = generator.standard_normal(d)
    both = [SOLVE[modification](h[None], g[None], lambda0)[0] for h in (H, H + B)]
    claimed = inverse_sensitivity(n, L1, lambda0[0], modification) * np.linalg.norm(g)
    assert np.linalg.norm(both[0] - both[1]) <= claimed * (1 + 1e-8)


def test_the_worst_neighbour_of_add_moves_it_by_nearly_as_much():
    n, L1, lambda0, d = 1000, 1.0, np.array([0.1]), 3
    g = np.eye(d)[0]
    both = [SOLVE["add"](H[None], g[None], lambda0)[0] for H in (np.zeros((d, d)), L1 / n * np.eye(d))]
    assert np.linalg.norm(both[0] - both[1]) >= 0.95 * inverse_sensitivity(n, L1, 0.1, "add")


@pytest.mark.parametrize(
    ("given_settings", "message"),
    [
        ({"modification": "add", "lambda0": 1e-4}, "must exceed"),
        ({"modification": "clip", "lambda0": 1e-3}, "must exceed"),
        ({"modification": "clip", "lambda0": 0.2}, "at most L1/2"),
    ],
)
def test_a_failed_condition_is_one_clear_line(given_settings, message):
    with pytest.raises(UserError, match=message):
        run("dp-newton-general", small_problem(n=400), **given_settings)


@pytest.mark.parametrize("loss", ["squared", "sigmoid"])
def test_losses_without_the_constants_are_refused(loss):
    with pytest.raises(UserError, match=r"slope .* has no bound|is not convex"):
        resolve("dp-newton-general")[0].needs.check(small_problem(loss=loss), "dp-newton-general")


@pytest.mark.parametrize("modification", ["clip", "add"])
def test_the_ledger_splits_rho_by_theta(huber, modification):
    T, theta = 6, 0.4
    result = run("dp-newton-general", huber, T=T, theta=theta, lambda0=0.1, modification=modification)
    entries = {e.label: e for e in result.mechanisms.ledger.of(0)}
    for label, share in {"gradient": 1 - theta, "direction": theta}.items():
        spent = T / (2 * entries[label].release.noise_multiplier ** 2)
        assert spent == pytest.approx(share * result.mechanisms.budget.rho, rel=1e-9)


@pytest.mark.parametrize("modification", ["clip", "add"])
def test_noise_follows_algorithm_6(huber, modification):
    """g̃ = ∇f + N(σ₁²), w₁ = w₀ - H̃⁻¹g̃ + N(‖g̃‖²σ₂²), the gradient's noise replayed from its stream."""
    k, lambda0, theta = 600, 0.1, 0.3
    result = run("dp-newton-general", huber, T=1, lambda0=lambda0, modification=modification, start=np.zeros((k, 4)))
    n, rho = huber.n, result.mechanisms.budget.rho
    w = np.zeros((1, 4))
    sigma1 = 1 / (n * np.sqrt(2 * rho * (1 - theta)))
    C = 1 if modification == "add" else 2 / np.pi + 1 / 2 + np.log(2 * n * (1 - lambda0) + 1) / np.pi
    sigma2 = C / (n * lambda0**2 - lambda0 * C) / np.sqrt(2 * rho * theta)
    z = []
    for i in range(k):
        g = huber.data_gradient(w)[0] + sigma1 * stream(f"test/dp-newton-general/{i}", "noise").standard_normal(4)
        step = SOLVE[modification](huber.data_hessian(w), g[None], np.array([lambda0]))[0]
        z.append((result.W[i] + step) / (np.linalg.norm(g) * sigma2))
    z = np.concatenate(z)
    assert stats.kstest(z, "norm").pvalue > 1e-4
    assert stats.kstest(2 * z, "norm").pvalue < 1e-6  # halved noise would fail


@pytest.mark.parametrize("modification", ["clip", "add"])
def test_without_noise_it_reaches_the_optimum_of_another_loss(huber, modification):
    start = np.full((2, 4), 0.8)  # near it: a full Newton step from afar need not go down
    result = run("dp-newton-general", huber, T=60, lambda0=0.02, modification=modification, noiseless=True, start=start)
    assert np.linalg.norm(huber.gradient(result.W), axis=1) == pytest.approx([0, 0], abs=1e-6)
