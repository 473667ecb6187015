"""Coordinate descent: on coordinates drawn uniformly (dp-cd), or on the greatest one, by report noisy max (dp-gcd).

The greedy rules GS-s, GS-r and GS-q are for a smooth function plus λ‖w‖₁ (Mangold et al. 2023, Appendix C). Each is the
argmax of a score (k, d) of the gradient G, the iterates W, both (k, d), and M (d,); with λ = 0 all three are
|G_j|/sqrt(M_j). Each score is 1/sqrt(M_j)-Lipschitz in G_j, so Δ_j ∝ sqrt(M_j) gives all one sensitivity.

Where w_j = 0 the three agree: max(|G_j| - λ, 0)/sqrt(M_j). There the score is (|G_j| - λ)/sqrt(M_j), not cut off at 0.
Without noise the choice is the same: the scores off zero are never negative and the cut changes no positive score, so
wherever some score is positive the largest is one and the same; where none is, w is optimal. It is as Lipschitz, as
|·| is, so it takes the same noise. But the cut would lift every coordinate that is far below λ to 0, and each of d
noises then competes from there.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from dpbench.algorithms import base as dp
from dpbench.errors import UserError
from dpbench.privacy.ledger import Gaussian, Laplace, PureDP
from dpbench.privacy.mechanisms import Score
from dpbench.problems.regularisers import soft_threshold


def scores(rule: str, G: dp.Array, W: dp.Array, M: dp.Array, l1: float) -> dp.Array:
    """The scores (k, d) of `rule`, a key of `RULES`."""
    result = (np.abs(G) - l1) / np.sqrt(M)
    moved = np.nonzero(W)
    # Off zero the rules differ; W is sparse, so they are worked out at few entries.
    result[moved] = RULES[rule](G[moved], W[moved], M[moved[1]], l1)
    return result


def scaled_score(root: dp.Array) -> Score:
    """Each value over its own root (d,) > 0."""
    off: Callable[[dp.Array], float] = lambda sizes: float((sizes / root).max()) * 2.0**-52  # noqa: E731
    return Score(lambda G: G / root, off, 1 / root, ("scaled", root))


def greedy_score(rule: str, W: dp.Array, M: dp.Array, l1: float) -> Score:
    """`scores` of gradients at W (k, d), M > 0 (d,); each is 1/sqrt(M_j)-Lipschitz in G_j."""
    return Score(
        lambda G: scores(rule, G, W, M, l1), lambda sizes: rounding(rule, sizes, np.abs(W[0]), M, l1), 1 / np.sqrt(M),
        ("greedy", rule, W, M, l1),
    )  # fmt: skip


def rounding(rule: str, G: dp.Array, w: dp.Array, M: dp.Array, l1: float) -> float:
    """How far float64 may take a score of gradients up to G from what it is in real numbers; G, w, M > 0 (d,), sizes.

    With u = 2⁻⁵³ and A = G + λ + Mw, a prox step is computed within 8uA/M, being fewer than eight operations on numbers
    up to 2A/M; so are the first two scores within 16uA/√M. The decrease moves by at most 3A times the step's error, and
    is computed within 16u·2A²/M: together 2⁻⁴⁷A²/M, and √(2a), √(2b) differ by √(2|a - b|) at most. That is of numbers
    in float64's range: infinite where A²/M might leave it, as a score would be then; below its least, √M·2⁻¹⁰⁶⁰ for
    a step and 2⁻⁵³⁰√A for a decrease more.
    """
    A = G + l1 + M * w
    with np.errstate(over="ignore", invalid="ignore"):
        if not (A / M * np.maximum(A, 1.0) < 2.0**1000).all():
            return math.inf
    least = 2.0**-530 * max(1.0, float(np.sqrt(A).max())) + float(np.sqrt(M).max()) * 2.0**-1060
    return float((A / np.sqrt(M)).max()) * (2.0**-22 if rule == "gs-q" else 2.0**-48) + least


def gs_s(G: dp.Array, w: dp.Array, M: dp.Array, l1: float) -> dp.Array:
    """|the subgradient|/sqrt(M_j), which off zero is G + λ sign(w)."""
    return np.abs(G + l1 * np.sign(w)) / np.sqrt(M)


def gs_r(G: dp.Array, w: dp.Array, M: dp.Array, l1: float) -> dp.Array:
    """sqrt(M_j)·|prox step|; the prox is nonexpansive, so the step moves by at most |change of G_j|/M_j."""
    return np.sqrt(M) * np.abs(_step(G, w, M, l1))


def gs_q(G: dp.Array, w: dp.Array, M: dp.Array, l1: float) -> dp.Array:
    """sqrt(2·decrease) of the model Gα + Mα²/2 + λ|w + α| - λ|w| at its minimiser α, the prox step.

    The text's rule is an argmin over j of the model. d sqrt(2D)/dG = -α/sqrt(2D), and D ≥ Mα²/2 by strong convexity.
    """
    step = _step(G, w, M, l1)
    decrease = l1 * (np.abs(w) - np.abs(w + step)) - step * (G + 0.5 * M * step)
    return np.sqrt(2 * np.maximum(decrease, 0))


def _step(G: dp.Array, w: dp.Array, M: dp.Array, l1: float) -> dp.Array:
    return soft_threshold(w - G / M, l1 / M) - w


RULES = {"gs-s": gs_s, "gs-r": gs_r, "gs-q": gs_q}


ROW_NORM = ("l2", 1.0)  # of a row, where M_j comes from its bound


class ByPasses(dp.Algorithm):
    """Base of greedy_coordinate's methods (Mangold, Bellet, Salmon and Tommasi 2023, Section 5).

    passes: passes over the data; a fraction of a pass is at least one iteration. step: γ. clip: C.
    Replicates that differ in step and clip alone draw the same random numbers, so that a (step × clip) grid advances
    on one draw of noise (common random numbers: settings are compared on equal noise, and replicates of equal seed are
    not independent of each other).
    """

    home = "greedy_coordinate"
    relation = dp.Relation.REPLACE_ONE
    needs = dp.Needs(convex=True, smooth=True, row_norm=None, regularisers=("l1", "l2"))
    per_replicate: ClassVar = frozenset({"step", "clip"})
    common_random: ClassVar = frozenset({"step", "clip"})

    class Settings(dp.BaseSettings, frozen=True):
        passes: dp.Positive = 2.0
        step: dp.Positive = 1.0
        clip: dp.Positive = 1.0

    @staticmethod
    def per_pass(n: int, d: int) -> int:
        """Iterations of one pass."""
        raise NotImplementedError

    def iterations(self, problem, settings):
        return max(1, round(settings.passes * self.per_pass(problem.n, problem.d)))

    def batch_size(self, n, d):
        return int(max(1, min(512, 100e6 / (8 * d))))

    # Residuals of squared loss can be beyond any clipping threshold, so clipping is at stake.
    audit_case = dp.AuditCase({"passes": 1.0}, loss="squared")

    def inspection_case(self):
        return replace(super().inspection_case(), settings={"passes": 4.0})

    def work(self, n, d, settings):
        return max(settings.passes, 1 / self.per_pass(n, d)) * 4.0 * n * d


class ByCoordinates(ByPasses):
    """Base of dp-gcd and dp-cd, which know for every coordinate j how far F curves along it at most: M_j.

    scales "data": M_j = L₁·mean_i x_ij² + the regularisers' part, as in the paper. They are exact and are not paid for,
    so they count as public. "bound": M_j = L₁R² + the regularisers' part for all j, which the declared bound R on ‖x‖₂
    gives without the data; steps are up to d times shorter at the same γ, and thresholds are C_j = C/√d.
    """

    counts_public = "the mean square of each column (M_j)"

    class Settings(ByPasses.Settings, frozen=True):
        scales: Literal["data", "bound"] = "data"

    def public(self, settings):
        return self.counts_public if settings.scales == "data" else ""

    def complete(self, problem, settings):
        if settings.scales == "bound" and math.isinf(problem.row_bound):
            raise UserError(f"{self.name}: scales=bound takes M_j from a bound on the rows; declare a row bound")
        return settings

    def row_bound(self, loss, settings):
        return ROW_NORM if settings.scales == "bound" else None

    def inexact(self, loss, relation, settings=None):
        if (settings or self.Settings()).scales == "data":
            return "scales=data takes rows of any length, and scales=bound has one"
        return super().inexact(loss, relation, settings)

    @staticmethod
    def constants(problem: dp.Problem, settings: Any) -> dp.Array:
        """M_j, (d,)."""
        if settings.scales == "data":
            if not problem.coordinate_constants.any():
                raise UserError("X: every cell is 0, so no coordinate has a step; give l2 > 0, or scales=bound")
            return problem.coordinate_constants
        # ∂²_j of a row's loss is ℓ''x_j² ≤ L₁R², the declaration's `smoothness`, whatever j is.
        return np.full(problem.d, problem.smoothness + sum(one.smoothness for one in problem.smooth_regularisers))


def proximal_step(problem: dp.Declaration, w: dp.Array, gradient: dp.Array, step: dp.Array) -> dp.Array:
    """prox(w - step (gradient + l2·w)): a step along coordinates w of any shape, `gradient` that of the data alone."""
    w = w - step * (gradient + problem.l2 * w)
    return soft_threshold(w, step * problem.l1) if problem.l1 else w


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
    persons = True
    paper_accounting = "rdp"
    accountings = ("tight", "rdp")
    discloses = (
        dp.Disclosure(
            "coordinate",
            "one coordinate of the mean clipped gradient",
            count="passes·d",
            replace_one="2·C_j/n",
            why="clipped to ±C_j, row by row; which coordinate uses no data",
        ),
    )

    @staticmethod
    def per_pass(n, d):
        return d

    def batch_size(self, n, d):
        """Predictions (k, n) of 12 MB, as every step reads them all; iterates (k, d) of 400 MB."""
        return int(max(1, min(512, 12e6 / (8 * n), 4e8 / (8 * d))))

    def plan(self, problem, mechanisms, settings):
        T = self.iterations(problem, settings)
        mechanisms.plan("coordinate", Gaussian(mechanisms.budget.noise_scale(((Gaussian(1.0), T),))), T)

    def run(self, problem, W, mechanisms, settings, trace):
        T = self.iterations(problem, settings)
        multiplier = mechanisms.budget.noise_scale(((Gaussian(1.0), T),))
        M = self.constants(problem, settings)
        # Thresholds ∝ √M_j: the steeper a coordinate may be, the more of its derivative is let through.
        shares = np.sqrt(M / M.sum())
        movable = np.flatnonzero(M)  # where M_j is of the data and public, an all-zero column moves nothing
        # Drawn at once for the whole run: they use no data, and a call of the generator costs more than a step.
        coordinates = np.stack([movable[coins.integers(len(movable), size=T)] for coins in mechanisms.coins])
        # A state keeps the predictions <x_i, w>: a step then reads one column, not the matrix.
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


class DPGreedyCD(ByCoordinates):
    """dp-gcd: the noisily best coordinate, then a noisy step along it (Mangold et al. 2023, Algorithms 1 and 2).

    Every sample's ∇_j f_i is clipped to ±C_j, C_j = C sqrt(M_j/Σ_k M_k): a replaced row moves ∇_j by Δ_j = 2C_j/n, and
    the scaled ∇_j/sqrt(M_j) all by the same s = 2C/(n sqrt(Σ_k M_k)), up or down. With T iterations and ε' such that
    2T ε'-DP releases compose to (ε, δ) (eq. 2), one iteration releases
      1. j, the argmax of |∇_j/sqrt(M_j) + Lap(2s/ε')|, i.e. of |∇_j + Lap(4C_j/(nε'))|/sqrt(M_j): report noisy max,
         ε'-DP as entries move both ways (Dwork and Roth 2014, Claim 3.9; the paper's 2C_j/(nε') proves 2ε');
      2. ∇_j + Lap(2C_j/(nε')) of the chosen j, by which w_j moves, γ_j = γ/M_j (Theorem 2).
    With L1 the argmax is that of `rule`'s score + Lap(2s/ε'): the scores, see above, are 1/sqrt(M_j)-Lipschitz
    in ∇_j; the step ends in a soft threshold at γ_jλ. L2's λw_j and L1 use no data. One pass is one iteration.

    selection: "published" halves the noise of the selection, and with L1 puts it on ∇_j rather than on the score: see
    `flaw`. rule matters with L1 alone; the three are one without. scales: where M_j comes from.
    """

    name = "dp-gcd"
    title = "DP-GCD"
    version = 2
    exact = "sums"
    persons = True
    paper_accounting = "advanced"
    accountings = ("tight", "advanced")
    discloses = (
        dp.Disclosure(
            "selection",
            "the coordinate whose scaled gradient (with L1: whose score) is largest",
            "noisy max",
            replace_one="2·C/(n·√M)",
            why="clipped gradients move by at most 2C_j/n; M = Σ_k M_k; scores are 1/√M_j-Lipschitz in ∇_j",
        ),
        dp.Disclosure(
            "selection",
            "all scaled gradients, of which the largest score is taken",
            "Laplace",
            replace_one="2·d·C/(n·√M)",
            why="the published noise is proved for no less than d·ε'",
            when="selection=published, l1",
        ),
        dp.Disclosure(
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
    def per_pass(n, d):
        return 1

    def flaw(self, settings, accounting=""):
        if settings.selection == "proven" or accounting == "tight":  # "tight" counts what the selection costs
            return ""
        return "selection noise as published: a selection costs 2ε', not ε'; with l1, no less than d·ε' is proved"

    def inexact(self, loss, relation, settings=None):
        if settings and settings.selection == "published":
            return "selection=published computes on with its noise; selection=proven does not"
        return super().inexact(loss, relation, settings)

    # Shared rows keep the signs of the gradient, so that what differs moves the two magnitudes apart.
    audit_case = dp.AuditCase({"passes": 1.0}, accounting="tight", loss="squared", l1=1e-3, background=(1.0, -1.0))

    def plan(self, problem, mechanisms, settings):
        if problem.l1 and settings.selection == "published":
            return  # its cost counts the columns that are not empty
        T, cost = self.iterations(problem, settings), self._cost(problem, settings, problem.d)
        epsilon = 1 / mechanisms.budget.noise_scale(((Laplace(1.0), T), (PureDP(cost), T)))
        mechanisms.plan("selection", PureDP(cost * epsilon), T)
        mechanisms.plan("gradient coordinate", Laplace(1 / epsilon), T)

    def run(self, problem, W, mechanisms, settings, trace):
        T = self.iterations(problem, settings)
        M = self.constants(problem, settings)
        root = np.sqrt(M)
        clip = np.asarray(settings.clip)
        # C_j/√M_j is the same for all j, so one sensitivity serves every scaled coordinate.
        s = 2 * clip / (problem.n * np.sqrt(M.sum()))
        movable = np.flatnonzero(M)  # where M_j is of the data and public, an all-zero column moves nothing
        columns = slice(None) if len(movable) == problem.d else movable
        cost = self._cost(problem, settings, len(movable))
        epsilon = 1 / mechanisms.budget.noise_scale(((Laplace(1.0), T), (PureDP(cost), T)))
        select = functools.partial(self._select, problem, mechanisms, settings, M[movable], cost, epsilon)
        replicates = np.arange(len(W))
        trace(0, W, passes=0)
        for t in range(1, T + 1):
            # The l2 part is added to the scores below, after clipping: it uses no data.
            data = problem.clipped_gradient(W, clip, even=settings.scales == "bound")
            j = movable[select(data[:, columns], W[:, columns], s)]
            noisy = mechanisms.laplace(
                data[replicates, j], sensitivity=s * root[j], epsilon=epsilon, label="gradient coordinate"
            )
            W[replicates, j] = proximal_step(problem, W[replicates, j], noisy, settings.step / M[j])
            trace(t, W, passes=t)
        return W

    @staticmethod
    def _cost(problem: dp.Declaration, settings: Settings, columns: int) -> int:
        """c: a selection is cε'-DP; with l1 the published noise is proved for one release of every column alone."""
        if settings.selection == "proven":
            return 1
        return columns if problem.l1 else 2

    @staticmethod
    def _select(
        problem: dp.Problem, mechanisms: dp.Mechanisms, settings: Settings, M: dp.Array, cost: int, epsilon: float,
        data: dp.Array, W: dp.Array, s: dp.Array,
    ) -> np.ndarray:  # fmt: skip
        """j (k,), cε'-DP with c = `cost` and ε' = `epsilon`. M, data, W: where M_j > 0."""
        l1, l2, root = problem.l1, problem.l2, np.sqrt(M)
        if l1 and settings.selection == "published":
            # All that is proved: a function of the whole noisy gradient, d Laplace releases.
            noisy = mechanisms.laplace(data / root, sensitivity=cost * s, scale=s / epsilon, label="selection") * root
            return np.argmax(scores(settings.rule, noisy + l2 * W, W, M, l1), axis=1)
        score = greedy_score(settings.rule, W, M, l1) if l1 else scaled_score(root)
        return mechanisms.noisy_argmax(
            data + l2 * W, sensitivity=s, epsilon=cost * epsilon, label="selection", magnitude=not l1, score=score
        )
