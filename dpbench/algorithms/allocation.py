"""How much of ε each iteration of Nesterov's method gets (Kuru et al. 2022, Section 4), in logarithms.

The error bound of T iterations (Theorems 4.1 and 4.3) is a_{T,0} E₀ + d Σ_t a_{T,t} b_t² for Laplace noise of scale
b_t, with

    ln a_{T,t} = (s_T - s_t) ln 2 + Σ_{i=t+1}^T ln(1 - √(μα_i)) + ln(α_t (1 + α_t L)),

s_t the stage and α_t the step of iteration t. It splits into a term of T alone and a term of t alone: the bounds of
all T' ≤ T together take O(T), and nothing overflows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy


def stage_length(k: int, kappa: float, *, p: int = 1, first: int | None = None) -> int:
    """n_k of eq. (4.7): 2^k ⌈√κ ln 2^{p+2}⌉ for k ≥ 2; n_1 is `first`, by default ⌈2 √κ ln √κ⌉ as in Section 5."""
    root = math.sqrt(kappa)
    if k > 1:
        return 2**k * math.ceil(root * (p + 2) * math.log(2))
    return max(1, math.ceil(2 * root * math.log(root))) if first is None else first


def stages(T: int, kappa: float, *, p: int = 1, first: int | None = None) -> np.ndarray:
    """(T,) stage s_t = 1, 2, … of every iteration of the multistage method; those of T' < T are a prefix."""
    lengths: list[int] = []
    while sum(lengths) < T:
        lengths.append(stage_length(len(lengths) + 1, kappa, p=p, first=first))
    return np.repeat(np.arange(1, len(lengths) + 1), lengths)[:T]


def steps(stage: np.ndarray, base: float | np.ndarray) -> np.ndarray:
    """(T,) step sizes: `base` in stage 1, base / 2^{2k} in stage k ≥ 2 (eq. (4.7), base = c/L)."""
    return base / np.where(stage == 1, 1.0, 4.0**stage)


class ErrorWeights(NamedTuple):
    """ln a_{T',t} = growth[T' - 1] + own[t - 1] for all 1 ≤ t ≤ T' ≤ T; both (T,)."""

    growth: np.ndarray
    own: np.ndarray

    def shares(self, T: int | None = None) -> np.ndarray:
        """(T,) ε_t/ε = a_{T,t}^{1/3} / Σ_j a_{T,j}^{1/3}: the budgets that minimise the bound (Proposition 4.2)."""
        return scipy.special.softmax(self.own[:T] / 3)

    def log_bounds(self, noise: float, E0: float) -> np.ndarray:
        """(T,) ln of the optimised bound (4.6) for every T' ≤ T: a_{T',0} E₀ + noise (Σ_t a_{T',t}^{1/3})³.

        noise: d S₁²/(nε)². E0: a guess of the initial error.
        """
        start = self.growth - math.log(2) + math.log(E0)  # s_{T'} - 1 doublings (4.8, with s_0 = 1)
        spread = self.growth + 3 * np.logaddexp.accumulate(self.own / 3)
        return np.logaddexp(start, math.log(noise) + spread)

    def best_T(self, noise: float, E0: float) -> int:
        """The T' ≤ T with the lowest bound (Remark 4.1)."""
        return int(np.argmin(self.log_bounds(noise, E0))) + 1


def error_weights(alpha: np.ndarray, stage: np.ndarray, mu: float, L: float) -> ErrorWeights:
    """The a_{T',t} of (4.8) for step sizes `alpha` (T,) and stages `stage` (T,); 0 < μα < 1."""
    contraction = np.cumsum(np.log1p(-np.sqrt(mu * alpha)))
    doublings = stage * math.log(2)
    return ErrorWeights(doublings + contraction, np.log(alpha) + np.log1p(alpha * L) - doublings - contraction)
