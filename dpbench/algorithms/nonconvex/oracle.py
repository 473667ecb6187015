"""Noisy gradients and Hessians of one replicate, on all rows or on a fresh sample for each."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpbench.algorithms.base import Array, Declaration, Mechanisms
from dpbench.algorithms.nonconvex.constants import B_H, B_g
from dpbench.algorithms.nonconvex.driver import ArrayMethod, Gradient, Hessian
from dpbench.algorithms.nonconvex.float32 import Guard
from dpbench.privacy.ledger import Gaussian, Release, WithoutReplacement


class FullBatch:
    """g̃ = ∇f(w) + N(0, (Δ_g σ)² I) and H̃ = ∇²f(w) + E, E symmetric with entries N(0, (Δ_H σ)²).

    Replacing one of m examples moves the mean gradient by at most Δ_g = 2B_g/m, and the mean Hessian by 2B_H/m in
    spectral norm, hence by Δ_H = 2B_H√d/m in Frobenius norm (equation 4). The regularisers use no data. Both
    are 1/(2σ²)-zCDP; `hessian_sigma`, where it is given, is the Hessian's σ.

    With `tight`, those of the loss itself: a row's Hessian is ℓ''xxᵀ. Convex losses: two positive semidefinite matrices
    of rank one are within √2 sup ℓ'' R² of each other in Frobenius norm; else ℓ'' may change its sign, and 2 sup|ℓ''|R²
    is attained by one x with two labels. Gradients move by 2 sup|ℓ'|R. E has half the variance off the diagonal.
    """

    def __init__(
        self,
        problem: Declaration,
        mechanisms: Mechanisms,
        sigma: float,
        hessian_sigma: float | None = None,
        guard: Guard | None = None,
    ) -> None:
        self._mechanisms, self._guard = mechanisms, guard or Guard(problem)
        self.sigma = sigma
        self.hessian_sigma = sigma if hessian_sigma is None else hessian_sigma
        self.size = problem.n
        self.gradient_moves, self.hessian_moves = 2 * B_g, 2 * B_H * math.sqrt(problem.d)
        if mechanisms.sharp:
            self.gradient_moves = 2 * problem.lipschitz
            self.hessian_moves = (math.sqrt(2) if problem.loss.convex else 2.0) * problem.smoothness
        self._release_gradient: Callable[..., Array] = mechanisms.gaussian
        self._release_hessian: Callable[..., Array] = mechanisms.gaussian

    def plan(self, T: int) -> None:
        """T gradients and T Hessians at most: see `Mechanisms.plan`."""
        self._mechanisms.plan("gradient", self.event(self.sigma), T)
        self._mechanisms.plan("hessian", self.event(self.hessian_sigma), T)

    def event(self, sigma: float) -> Release:
        """What the ledger gets for a release at noise multiplier σ."""
        return Gaussian(sigma)

    def gradient(self, w: Array) -> ArrayMethod:
        """Generator that returns g̃ (d,); raises RunLost where the guard finds that it overflows."""
        rows = self._gradient_rows()
        yield from self._guard.check(w, rows)
        g = yield Gradient(w, rows)
        return self._release_gradient(
            g[None], sensitivity=self.gradient_moves / self.size, noise_multiplier=self.sigma, label="gradient"
        )[0]

    def hessian(self, w: Array) -> ArrayMethod:
        """Generator that returns H̃ (d, d), symmetric."""
        H = yield Hessian(w, self._hessian_rows())
        return self._release_hessian(
            H[None],
            sensitivity=self.hessian_moves / self.size,
            noise_multiplier=self.hessian_sigma,
            label="hessian",
            symmetric=True,
        )[0]

    def _gradient_rows(self) -> np.ndarray | None:
        """The rows that the next gradient is a mean over; None for all."""
        return None

    def _hessian_rows(self) -> np.ndarray | None:
        return None


class Minibatch(FullBatch):
    """The same on m rows without replacement: each release on a subset of its own, its sensitivity that of m rows.

    A subset shared by a gradient and a Hessian would not be two amplified releases, as equation 29 has it.
    """

    def __init__(
        self,
        problem: Declaration,
        mechanisms: Mechanisms,
        sigma: float,
        m: int,
        hessian_sigma: float | None = None,
        guard: Guard | None = None,
    ) -> None:
        super().__init__(problem, mechanisms, sigma, hessian_sigma, guard)
        self.size = m
        self._gradients = mechanisms.without_replacement(problem.n, m, label="gradient")
        self._hessians = mechanisms.without_replacement(problem.n, m, label="hessian")
        self._release_gradient, self._release_hessian = self._gradients.gaussian, self._hessians.gaussian
        self._rows_of = problem.n, m

    def event(self, sigma: float) -> Release:
        return WithoutReplacement(*self._rows_of, Gaussian(sigma))

    def _gradient_rows(self) -> np.ndarray:
        return self._gradients.draw()[0]

    def _hessian_rows(self) -> np.ndarray:
        return self._hessians.draw()[0]
