"""Coordinate descent on uniformly random coordinates."""

from __future__ import annotations

import numpy as np

from dpbench.algorithms.passes import ByPasses, moved


class DPCoordinateDescent(ByPasses):
    """dp-cd: w_j ← prox(w_j - γ_j (∇_j + λw_j + N(σ_j²))), j uniform, γ_j = γ/M_j (Mangold et al. 2022, Algorithm 1).

    Every sample's ∇_j f_i is clipped to ±C_j, C_j = C sqrt(M_j/Σ_k M_k), so a replaced row moves their mean by
    Δ_j = 2C_j/n. T full-batch Gaussian releases of noise multiplier z, σ_j = zΔ_j, compose by Rényi DP (T α/(2z²) at
    order α; Mironov 2017); which coordinates are drawn uses no data and amplifies nothing. L2's λw_j and L1's soft
    threshold at γ_jλ use no data. One pass is d iterations.
    """

    name = "dp-cd"
    title = "DP-CD"
    paper_accounting = "rdp"
    accountings = ("tight", "rdp")

    @staticmethod
    def per_pass(n, d):
        return d

    def batch_size(self, n, d):
        return int(max(1, min(512, 4e8 / (8 * max(n, d)))))  # predictions (n, k) and iterates (k, d): 400 MB each

    def run(self, problem, W, mechanisms, settings, trace):
        T = self.iterations(problem, settings)
        multiplier = mechanisms.budget.gaussian_multiplier(T)
        sensitivities = 2 / problem.n * problem.clip_shares
        steps = 1 / problem.coordinate_constants
        coordinates = np.stack([coins.integers(problem.d, size=T) for coins in mechanisms.coins])
        state = problem.coordinate_state(W)
        gradient = np.empty(len(W))
        each = np.repeat(coordinates, [s.stop - s.start for s in mechanisms.streams], axis=0)
        replicates = np.arange(len(W))
        trace(0, W, passes=0)
        for t in range(T):
            j = each[:, t]
            threshold = settings.clip * problem.clip_shares[j]
            for members, one in zip(mechanisms.streams, coordinates[:, t], strict=True):
                gradient[members] = state.derivative(one, threshold[members], members)
            noisy = mechanisms.gaussian(
                gradient, sensitivity=settings.clip * sensitivities[j], noise_multiplier=multiplier, label="coordinate"
            )
            w = W[replicates, j]
            W[replicates, j] = new = moved(problem, w, noisy, settings.step * steps[j])
            for members, one in zip(mechanisms.streams, coordinates[:, t], strict=True):
                state.move(one, (new - w)[members], members)
            trace(t + 1, W, passes=(t + 1) / problem.d)
        return W
