"""Gradient descent whose step is the best one on the true loss: a yardstick, not a private method."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from dpbench.algorithms.base import Algorithm, Array, BaseSettings, Count, Disclosure, Mechanisms, Needs, Problem, Trace

LARGEST_STEP = 1e9  # a direction along which the loss falls for ever (separable data)


class DPGradientDescentOracle(Algorithm):
    """dp-gd-oracle: w ← w - η g̃ with g̃ = ∇f(w) + N(σ²I) and η = argmin_{η≥0} f(w - η g̃).

    The noise is dp-gd's: Δ = L₀/n, ρ/T a step. The step η looks at the data and pays nothing, so this is NOT
    private (Ganesh et al. 2023, Section 6.3): it bounds what any choice of step could have done.
    """

    name = "dp-gd-oracle"
    title = "DP-GD, oracle step"
    private = False
    needs = Needs(convex=True, lipschitz=True)
    discloses = (Disclosure("gradient", "the mean gradient", add_remove="L₀/n", why="‖∇f_i‖ ≤ L₀"),)
    unpaid = "its step, by a search on the loss without noise"

    class Settings(BaseSettings, frozen=True):
        T: Count = 100

    def work(self, n: int, d: int, settings: Settings) -> float:
        return settings.T * (8.0 * n * d + 150.0 * n)

    def run(self, problem: Problem, W: Array, mechanisms: Mechanisms, settings: Settings, trace: Trace) -> Array:
        sensitivity = problem.lipschitz / problem.n
        rho = mechanisms.budget.rho / settings.T
        trace(0, W, passes=0)
        for t in range(1, settings.T + 1):
            gradient = mechanisms.gaussian(problem.gradient(W), sensitivity=sensitivity, rho=rho, label="gradient")
            W = W - best_step(problem, W, gradient)[:, None] * gradient
            trace(t, W, passes=2 * t)
        return W


def best_step(problem: Problem, W: Array, D: Array) -> Array:
    """argmin_{η≥0} of the mean loss at w - η d, for W and D (k, d) → (k,), to a relative 1e-6.

    X w and X d once; after that each step tried costs one pass over n numbers.
    """
    lines = problem.lines(W, D)
    return np.array([_best_step(functools.partial(lines.derivative, i)) for i in range(len(W))])


def _best_step(derivative: Callable[[float], float]) -> float:
    """The root of an increasing derivative, or 0 where it starts out positive."""
    from scipy.optimize import brentq

    low, high = 0.0, 1.0
    if not derivative(low) < 0:
        return 0.0
    while derivative(high) < 0:
        low, high = high, 4 * high
        if high > LARGEST_STEP:
            return LARGEST_STEP
    return float(brentq(derivative, low, high, xtol=1e-12, rtol=1e-6))
