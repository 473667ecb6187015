"""Greedy coordinate descent with report noisy max."""

from __future__ import annotations

from typing import Literal

import numpy as np

from dpbench.algorithms.audit_case import AuditCase
from dpbench.algorithms.greedy_rules import SCORES
from dpbench.algorithms.passes import ByPasses, moved


class DPGreedyCD(ByPasses):
    """dp-gcd: the noisily best coordinate, then a noisy step along it (Mangold et al. 2023, Algorithms 1 and 2).

    Every sample's ∇_j f_i is clipped to ±C_j, C_j = C sqrt(M_j/Σ_k M_k): a replaced row moves ∇_j by Δ_j = 2C_j/n, and
    the scaled ∇_j/sqrt(M_j) all by the same s = 2C/(n sqrt(Σ_k M_k)), up or down. With T iterations and ε' such that
    2T ε'-DP releases compose to (ε, δ) (eq. 2), one iteration releases
      1. j, the argmax of |∇_j/sqrt(M_j) + Lap(2s/ε')|, i.e. of |∇_j + Lap(4C_j/(nε'))|/sqrt(M_j): report noisy max,
         ε'-DP as entries move both ways (Dwork and Roth 2014, Claim 3.9; the paper's 2C_j/(nε') proves 2ε');
      2. ∇_j + Lap(2C_j/(nε')) of the chosen j, by which w_j moves, γ_j = γ/M_j (Theorem 2).
    With L1 the argmax is that of `rule`'s score + Lap(2s/ε'): the scores, see `greedy_rules`, are 1/sqrt(M_j)-Lipschitz
    in ∇_j; the step ends in a soft threshold at γ_jλ. L2's λw_j and L1 use no data. One pass is one iteration.

    selection: "published" halves the noise of the selection, and with L1 puts it on ∇_j rather than on the score: see
    `flaw`. rule matters with L1 alone; the three are one without.
    """

    name = "dp-gcd"
    title = "DP-GCD"
    paper_accounting = "advanced"
    accountings = ("tight", "advanced")

    class Settings(ByPasses.Settings):
        rule: Literal["gs-r", "gs-s", "gs-q"] = "gs-r"
        selection: Literal["proven", "published"] = "proven"

    @staticmethod
    def per_pass(n, d):
        return 1

    def flaw(self, settings, accounting=""):
        if settings.selection == "proven" or accounting == "tight":  # "tight" counts what the selection costs
            return ""
        return "selection noise as published: a selection costs 2ε', not ε'; with l1, no less than d·ε' is proved"

    def audit_case(self):
        # Shared rows keep the signs of the gradient, so that what differs moves the two magnitudes apart.
        return AuditCase({"passes": 1.0}, accounting="tight", l1=1e-3, background=(1.0, -1.0))

    def run(self, problem, W, mechanisms, settings, trace):
        T = self.iterations(problem, settings)
        M, root = problem.coordinate_constants, np.sqrt(problem.coordinate_constants)
        s = 2 * settings.clip / (problem.n * np.sqrt(M.sum()))
        select, cost = self._selection(problem, settings)
        epsilon = mechanisms.budget.laplace_epsilon(T, selection=cost)
        replicates = np.arange(len(W))
        trace(0, W, passes=0)
        for t in range(1, T + 1):
            data = problem.clipped_gradient(W, settings.clip)
            j = select(mechanisms, data, W, s, epsilon)
            noisy = mechanisms.laplace(
                data[replicates, j], sensitivity=s * root[j], epsilon=epsilon, label="gradient coordinate"
            )
            W[replicates, j] = moved(problem, W[replicates, j], noisy, settings.step / M[j])
            trace(t, W, passes=t)
        return W

    def _selection(self, problem, settings):
        """(select, c): `select(mechanisms, data, W, s, ε')` returns j (k,) and is cε'-DP."""
        M, root, l1, l2 = problem.coordinate_constants, np.sqrt(problem.coordinate_constants), problem.l1, problem.l2
        score = SCORES[settings.rule]
        cost = 1 if settings.selection == "proven" else 2

        def smooth(mechanisms, data, W, s, epsilon):
            scaled = (data + l2 * W) / root
            return mechanisms.noisy_argmax(
                scaled, sensitivity=s, epsilon=cost * epsilon, label="selection", magnitude=True
            )

        def proximal(mechanisms, data, W, s, epsilon):
            scores = score(data + l2 * W, W, M, l1)
            return mechanisms.noisy_argmax(scores, sensitivity=s, epsilon=epsilon, label="selection")

        def published(mechanisms, data, W, s, epsilon):
            # All that is proved: a function of the whole noisy gradient, d Laplace releases at ε'.
            d = problem.d
            noisy = mechanisms.laplace(data / root, sensitivity=d * s, scale=s / epsilon, label="selection") * root
            return np.argmax(score(noisy + l2 * W, W, M, l1), axis=1)

        if not l1:
            return smooth, cost
        return (proximal, 1) if cost == 1 else (published, problem.d)
