"""The formulas behind Figs. 1 and 2."""

from __future__ import annotations

import cmath
import functools
import math
from typing import Any

import numpy as np

from dpbench import algorithms
from dpbench.algorithms import momentum
from dpbench.algorithms.momentum import ROW_NORM, smoothness
from dpbench.problems import catalogue

MU, L = 0.5, 1.0  # Q = diag(μ, L) of Fig. 1
KAPPA = 20.0  # L/μ of Fig. 2, at μ = c = p = 1
V0 = 10.0  # ‖(ξ₀ - ξ*)(ξ₀ - ξ*)ᵀ‖ in the bound


def rate(alpha: float, beta: float) -> float:
    """ρ(α, β) of heavy ball on Q: the largest modulus of (1+β-αλ ± √((1+β-αλ)² - 4β))/2, λ ∈ {μ, L} (eq. (3.18))."""
    roots = []
    for eigenvalue in (MU, L):
        trace = 1 + beta - alpha * eigenvalue
        root = cmath.sqrt(trace**2 - 4 * beta)
        roots += [abs(trace + root) / 2, abs(trace - root) / 2]
    return max(roots)


def best_beta(alpha: float) -> float:
    """The β that minimises ρ(α, β) for α ≤ 1/L: (1 - √(αμ))², where the roots at μ coincide; ρ = 1 - √(αμ) there."""
    return (1 - math.sqrt(alpha * MU)) ** 2


def error_bound(t: np.ndarray, alpha: float, beta: float, c_w: float) -> np.ndarray:
    """Theorem 3.5 at T = t with C_t = t and noise σ = c_w t per coordinate, for t ≥ 1; (3.17)."""
    t = np.asarray(t, dtype=float)
    rho, variance = rate(alpha, beta), (c_w * t) ** 2
    start = (V0 + variance * alpha**2 / (1 - rho**2)) * t**2 * rho ** (2 * t)
    floor = sum(2 * alpha * (1 + beta) / ((1 - beta) * v * (2 + 2 * beta - alpha * v)) for v in (MU, L))
    return start + L * variance / 2 * floor


def optimal_noise(K: int) -> np.ndarray:
    """b_t nε/S₁, t = 1, …, n_1 + … + n_K, of dp-masg-opt over K stages (Fig. 2; eq. (4.5) with a_{T,t} of (4.8)).

    n_1 = ⌊2 √κ ln √κ⌋ here, as in the figure; the experiments round up.
    """
    root = math.sqrt(KAPPA)
    first = math.floor(2 * root * math.log(root))
    T = sum(momentum.stage_length(k, KAPPA, first=first) for k in range(1, K + 1))
    stage = momentum.stages(T, KAPPA, first=first)
    weights = momentum.error_weights(momentum.steps(stage, 1 / KAPPA), stage, 1.0, KAPPA)
    return 1 / weights.shares()


@functools.cache
def published_code_T(algorithm: str, c: float, T: int) -> int:
    """The T' ≤ T that an -opt method chooses on the paper's problem at ε = 1 with the weights of the published code.

    The code has 2^{s_T'} E₀ and α/2 (1 + αL) where (4.6) and (4.8) have 2^{s_T' - 1} E₀ and α (1 + αL): the start
    counts double and the noise by half.
    """
    method: Any = algorithms.resolve(algorithm)[0]
    problem = catalogue.build("accelerated")
    settings = method.complete(problem, method.Settings(T=T, c=c))
    alpha, _, stage = method.schedule(problem, settings)
    weights = momentum.error_weights(alpha[:, 0], stage, problem.l2, smoothness(problem, settings))
    noise = problem.d * (2 * problem.loss.lipschitz * ROW_NORM / problem.n) ** 2
    return weights.best_T(noise / 2, 2 * settings.E0)
