"""Noisy gradients and Hessians of one replicate, on all rows or on a fresh sample for each."""

from __future__ import annotations

import math

import numpy as np

from dpbench.algorithms.nonconvex.constants import B_H, B_g
from dpbench.algorithms.nonconvex.driver import Gradient, Hessian


class FullBatch:
    """g̃ = ∇f(w) + N(0, (Δ_g σ)² I) and H̃ = ∇²f(w) + E, E symmetric with entries N(0, (Δ_H σ)²).

    Replacing one of m examples moves the mean gradient by at most Δ_g = 2B_g/m, and the mean Hessian by 2B_H/m in
    spectral norm, hence by Δ_H = 2B_H√d/m in Frobenius norm (equation 4). The regularisers use no data. Both
    are 1/(2σ²)-zCDP.
    """

    def __init__(self, problem, mechanisms, sigma: float):
        self.sigma = sigma
        self.size = problem.n
        self.root_d = math.sqrt(problem.d)
        self._release_gradient = self._release_hessian = mechanisms.gaussian

    def gradient(self, w: np.ndarray):
        """Generator that returns g̃ (d,)."""
        g = yield Gradient(w, self._gradient_rows())
        return self._release_gradient(
            g[None], sensitivity=2 * B_g / self.size, noise_multiplier=self.sigma, label="gradient"
        )[0]

    def hessian(self, w: np.ndarray):
        """Generator that returns H̃ (d, d), symmetric."""
        H = yield Hessian(w, self._hessian_rows())
        return self._release_hessian(
            H[None],
            sensitivity=2 * B_H * self.root_d / self.size,
            noise_multiplier=self.sigma,
            label="hessian",
            symmetric=True,
        )[0]

    def _gradient_rows(self):
        return None

    _hessian_rows = _gradient_rows


class Minibatch(FullBatch):
    """The same on m rows without replacement: each release on a subset of its own, its sensitivity that of m rows.

    A subset shared by a gradient and a Hessian would not be two amplified releases, as equation 29 has it.
    """

    def __init__(self, problem, mechanisms, sigma: float, m: int):
        super().__init__(problem, mechanisms, sigma)
        self.size = m
        gradients = mechanisms.without_replacement(problem.n, m, label="gradient")
        hessians = mechanisms.without_replacement(problem.n, m, label="hessian")
        self._release_gradient, self._release_hessian = gradients.gaussian, hessians.gaussian
        self._gradient_rows = lambda: gradients.draw()[0]
        self._hessian_rows = lambda: hessians.draw()[0]
