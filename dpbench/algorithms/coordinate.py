"""Coordinate descent on uniformly random coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpbench.algorithms.base import Array, Declaration, Disclosure, Mechanisms, Problem, Trace
from dpbench.algorithms.passes import ByCoordinates, proximal_step
from dpbench.privacy.ledger import Gaussian


class DPCoordinateDescent(ByCoordinates):
    """dp-cd: w_j ← prox(w_j - γ_j (∇_j + λw_j + N(σ_j²))), j uniform, γ_j = γ/M_j (Mangold et al. 2022, Algorithm 1).

    Every sample's ∇_j f_i is clipped to ±C_j, C_j = C sqrt(M_j/Σ_k M_k), so a replaced row moves their mean by
    Δ_j = 2C_j/n. T full-batch Gaussian releases of noise multiplier z, σ_j = zΔ_j, compose by Rényi DP (T α/(2z²) at
    order α; Mironov 2017); which coordinates are drawn uses no data and amplifies nothing. L2's λw_j and L1's soft
    threshold at γ_jλ use no data. One pass is d iterations. `scales` says where M_j comes from.
    """

    name = "dp-cd"
    title = "DP-CD"
    exact = "sums"
    paper_accounting = "rdp"
    accountings = ("tight", "rdp")
    discloses = (
        Disclosure(
            "coordinate",
            "one coordinate of the mean clipped gradient",
            count="passes·d",
            replace_one="2·C_j/n",
            why="clipped to ±C_j, row by row; which coordinate uses no data",
        ),
    )

    @staticmethod
    def per_pass(n: int, d: int) -> int:
        return d

    def batch_size(self, n: int, d: int) -> int:
        """Predictions (k, n) of 12 MB, as every step reads them all; iterates (k, d) of 400 MB."""
        return int(max(1, min(512, 12e6 / (8 * n), 4e8 / (8 * d))))

    def plan(self, problem: Declaration, mechanisms: Mechanisms, settings: Any) -> None:
        T = self.iterations(problem, settings)
        mechanisms.plan("coordinate", Gaussian(mechanisms.budget.noise_scale(((Gaussian(1.0), T),))), T)

    def run(
        self, problem: Problem, W: Array, mechanisms: Mechanisms, settings: ByCoordinates.Settings, trace: Trace
    ) -> Array:
        T = self.iterations(problem, settings)
        multiplier = mechanisms.budget.noise_scale(((Gaussian(1.0), T),))
        M = self.constants(problem, settings)
        shares = np.sqrt(M / M.sum())
        movable = np.flatnonzero(M)  # where M_j is of the data and public, an all-zero column moves nothing
        coordinates = np.stack([movable[coins.integers(len(movable), size=T)] for coins in mechanisms.coins])
        states = [problem.coordinate_state(W[members]) for members in mechanisms.streams]
        W = np.asfortranarray(W)  # a coordinate of all replicates is contiguous
        w = np.empty(len(W))
        sizes = [members.stop - members.start for members in mechanisms.streams]
        trace(0, W, passes=0)
        for t in range(T):
            drawn = list(zip(mechanisms.streams, states, coordinates[:, t], strict=True))  # a coordinate per stream
            j = np.repeat(coordinates[:, t], sizes)
            threshold = settings.clip * shares[j]
            gradient = np.concatenate([state.derivative(one, threshold[members]) for members, state, one in drawn])
            for members, _, one in drawn:
                w[members] = W[members, one]
            noisy = mechanisms.gaussian(
                gradient, sensitivity=2 / problem.n * threshold, noise_multiplier=multiplier, label="coordinate"
            )
            new = proximal_step(problem, w, noisy, settings.step / M[j])
            for members, state, one in drawn:
                state.move(one, new[members] - w[members])
                W[members, one] = new[members]
            trace(t + 1, W, passes=(t + 1) / problem.d)
        return W
