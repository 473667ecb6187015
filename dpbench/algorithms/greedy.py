"""Greedy coordinate descent with report noisy max."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from dpbench.algorithms.base import (
    Array,
    AuditCase,
    Declaration,
    Disclosure,
    Mechanisms,
    Problem,
    Relation,
    Trace,
)
from dpbench.algorithms.greedy_rules import rounding, scores
from dpbench.algorithms.passes import ByCoordinates, proximal_step
from dpbench.privacy.ledger import Laplace, PureDP
from dpbench.privacy.mechanisms import Score
from dpbench.problems.losses import Loss


class DPGreedyCD(ByCoordinates):
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
    `flaw`. rule matters with L1 alone; the three are one without. scales: where M_j comes from.
    """

    name = "dp-gcd"
    title = "DP-GCD"
    version = 2
    exact = "sums"
    paper_accounting = "advanced"
    accountings = ("tight", "advanced")
    discloses = (
        Disclosure(
            "selection",
            "the coordinate whose scaled gradient (with L1: whose score) is largest",
            "noisy max",
            replace_one="2·C/(n·√M)",
            why="clipped gradients move by at most 2C_j/n; M = Σ_k M_k; scores are 1/√M_j-Lipschitz in ∇_j",
        ),
        Disclosure(
            "selection",
            "all scaled gradients, of which the largest score is taken",
            "Laplace",
            replace_one="2·d·C/(n·√M)",
            why="the published noise is proved for no less than d·ε'",
            when="selection=published, l1",
        ),
        Disclosure(
            "gradient coordinate",
            "the chosen coordinate of the mean clipped gradient",
            "Laplace",
            replace_one="2·C_j/n",
            why="clipped to ±C_j, row by row",
        ),
    )

    class Settings(ByCoordinates.Settings, frozen=True):
        rule: Literal["gs-r", "gs-s", "gs-q"] = "gs-r"
        selection: Literal["proven", "published"] = "proven"

    @staticmethod
    def per_pass(n: int, d: int) -> int:
        return 1

    def flaw(self, settings: Settings, accounting: str = "") -> str:
        if settings.selection == "proven" or accounting == "tight":  # "tight" counts what the selection costs
            return ""
        return "selection noise as published: a selection costs 2ε', not ε'; with l1, no less than d·ε' is proved"

    def inexact(self, loss: Loss, relation: Relation, settings: Any = None) -> str:
        if settings and settings.selection == "published":
            return "selection=published computes on with its noise; selection=proven does not"
        return super().inexact(loss, relation, settings)

    def audit_case(self) -> AuditCase:
        # Shared rows keep the signs of the gradient, so that what differs moves the two magnitudes apart.
        return AuditCase({"passes": 1.0}, accounting="tight", loss="squared", l1=1e-3, background=(1.0, -1.0))

    def plan(self, problem: Declaration, mechanisms: Mechanisms, settings: Any) -> None:
        if problem.l1 and settings.selection == "published":
            return  # its cost counts the columns that are not empty
        T, cost = self.iterations(problem, settings), 1 if settings.selection == "proven" else 2
        epsilon = 1 / mechanisms.budget.noise_scale(((Laplace(1.0), T), (PureDP(cost), T)))
        mechanisms.plan("selection", PureDP(cost * epsilon), T)
        mechanisms.plan("gradient coordinate", Laplace(1 / epsilon), T)

    def run(self, problem: Problem, W: Array, mechanisms: Mechanisms, settings: Settings, trace: Trace) -> Array:
        T = self.iterations(problem, settings)
        M = self.constants(problem, settings)
        root = np.sqrt(M)
        clip = np.asarray(settings.clip)
        s = 2 * clip / (problem.n * np.sqrt(M.sum()))
        movable = np.flatnonzero(M)  # where M_j is of the data and public, an all-zero column moves nothing
        columns = slice(None) if len(movable) == problem.d else movable
        select, cost = self._selection(problem, settings, M[movable])
        epsilon = 1 / mechanisms.budget.noise_scale(((Laplace(1.0), T), (PureDP(cost), T)))
        replicates = np.arange(len(W))
        trace(0, W, passes=0)
        for t in range(1, T + 1):
            data = problem.clipped_gradient(W, clip, even=settings.scales == "bound")
            j = movable[select(mechanisms, data[:, columns], W[:, columns], s, epsilon)]
            noisy = mechanisms.laplace(
                data[replicates, j], sensitivity=s * root[j], epsilon=epsilon, label="gradient coordinate"
            )
            W[replicates, j] = proximal_step(problem, W[replicates, j], noisy, settings.step / M[j])
            trace(t, W, passes=t)
        return W

    def _selection(self, problem: Problem, settings: Settings, M: Array) -> tuple[Callable[..., np.ndarray], float]:
        """(select, c): `select(mechanisms, data, W, s, ε')` returns j (k,) and is cε'-DP. M, data, W: where M_j > 0."""
        d, root, l1, l2 = len(M), np.sqrt(M), problem.l1, problem.l2
        rule = settings.rule
        cost = 1 if settings.selection == "proven" else 2

        def smooth(mechanisms: Mechanisms, data: Array, W: Array, s: Array, epsilon: float) -> np.ndarray:
            scaled = Score(lambda G: G / root, lambda sizes: float((sizes / root).max()) * 2.0**-52)
            return mechanisms.noisy_argmax(
                data + l2 * W, sensitivity=s, epsilon=cost * epsilon, label="selection", magnitude=True, score=scaled
            )

        def proximal(mechanisms: Mechanisms, data: Array, W: Array, s: Array, epsilon: float) -> np.ndarray:
            score = Score(lambda G: scores(rule, G, W, M, l1), lambda sizes: rounding(rule, sizes, np.abs(W[0]), M, l1))
            return mechanisms.noisy_argmax(
                data + l2 * W, sensitivity=s, epsilon=epsilon, label="selection", score=score
            )

        def published(mechanisms: Mechanisms, data: Array, W: Array, s: Array, epsilon: float) -> np.ndarray:
            # All that is proved: a function of the whole noisy gradient, d Laplace releases at ε'.
            noisy = mechanisms.laplace(data / root, sensitivity=d * s, scale=s / epsilon, label="selection") * root
            return np.argmax(scores(rule, noisy + l2 * W, W, M, l1), axis=1)

        if not l1:
            return smooth, cost
        return (proximal, 1) if cost == 1 else (published, d)
