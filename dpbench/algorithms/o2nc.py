"""Online-to-nonconvex conversion with zeroth-order oracles (Zhang, Tran and Cutkosky 2024, Algorithms 3 to 6).

The relation is replace-one and every row is used in one round only, so epochs, and for o2nc-naive rounds, compose in
parallel: the run costs what its most expensive epoch costs. ρ of the paper, (α, αρ²/2)-RDP for all α, is sqrt(2ρ_zCDP).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np

from dpbench.algorithms import base as dp
from dpbench.algorithms import zeroth_order
from dpbench.errors import UserError
from dpbench.privacy.ledger import Gaussian, at_rho
from dpbench.privacy.sampling import SinglePass
from dpbench.problems.stationarity import Kinks

Oracle: TypeAlias = Callable[[dp.Array], dp.Array]  # (k, d) → (k, d)
KEPT = 32  # points w_t of the chosen epoch that the stationarity measure gets to see
Kind: TypeAlias = Literal["variance-reduced", "two-point", "gradient"]


class Rounds(dp.BaseSettings, frozen=True):
    """What all of them get; see `O2NC`."""

    radius: dp.Positive = 0.1
    gap: dp.Positive = 1.0
    M: dp.Count | None = None
    T: dp.Count | None = None


class O2NC(dp.Algorithm):
    """o2nc: K epochs of projected subgradient steps that choose where to move, T rounds each, without noise.

    x moves by the learner's Δ_t, ‖Δ_t‖ ≤ D = δ/T; the oracle is asked at w_t = x_t + s_t Δ_t, s_t ~ U[0, 1]; the
    learner descends on <g̃_t, ·>. The result is the mean w_t of an epoch chosen uniformly (Algorithm 3), of which
    Corollary 4.7 bounds E‖∇F‖_{2δ}. Here g̃_t is Algorithm 4's variance-reduced oracle without TREE(t): not
    private, the floor of the other two.

    radius: the smoothing radius δ. M: rows used, each once (default: all). T: rounds of an epoch; default from
    Theorem 4.9 with `gap`, a public bound on F(x₁) - inf F, and max for the printed min (see `rounds`). oracle: also
    those of o2nc-naive without noise, one row a round: the floors of its two kinds.
    """

    name = "o2nc"
    title = "O2NC"
    home = "zeroth_order"
    relation = dp.Relation.REPLACE_ONE
    private = False
    unpaid = "everything: it adds no noise"
    in_reals = "its estimates are differences of losses, which float64 rounds row by row"
    paper_accounting = "standard"
    delta = 1e-6
    needs = dp.Needs(lipschitz=True)
    diagnostics = (dp.ITERATIONS, *dp.MEASURED)

    class Settings(Rounds, frozen=True):
        oracle: Kind = "variance-reduced"

    def complete(self, problem, settings):
        M = problem.n if settings.M is None else settings.M
        per_round = self._rows_per_round(settings)
        if not per_round <= M <= problem.n:
            raise UserError(f"{self.name}: M = {M} rows must be in {per_round}..{problem.n}: a row is used once")
        if settings.T is not None and settings.T * per_round > M:
            raise UserError(
                f"{self.name}: T = {settings.T} needs {settings.T * per_round} rows, M is {M}; lower T or raise M"
            )
        return msgspec.structs.replace(settings, M=M)

    # In one dimension a direction is ±1 and every estimate as large as its bound.
    audit_case = dp.AuditCase({"T": 1}, accounting="tight", loss="ramp", d=1)

    def inspection_case(self):
        return replace(super().inspection_case(), settings={"T": 8}, n=40)

    def work(self, n, d, settings):
        M, B, kind = settings.M or n, self._rows_per_round(settings), self._kind(settings)
        if kind == "variance-reduced":
            return 15.0 * M * d * d  # drawing a normal number costs as much as 10 flops or more
        return 15.0 * M * d + 3e4 * M / B

    def run(self, problem, W, mechanisms, settings, trace):
        T, K = self.lengths(problem, mechanisms, settings)
        chosen = np.array([coin.integers(K) for coin in mechanisms.coins])
        output, kept = np.zeros_like(W), np.empty(0)
        for epoch, (mean, points) in enumerate(self.epochs(problem, W, mechanisms, settings)):
            ours = (chosen == epoch)[:, None]
            output = np.where(ours, mean, output)
            kept = points if epoch == 0 else np.where(ours[:, None], points, kept)
        k = len(W)
        return dp.RunResult(output, {"iterations": [K * T] * k}, T=[T] * k, evidence=kept)

    def lengths(self, problem: dp.Problem | Kinks, mechanisms: dp.Mechanisms, settings: Any) -> tuple[int, int]:
        """T, the rounds of an epoch, and K, the epochs that the rows make."""
        most = (settings.M or problem.n) // self._rows_per_round(settings)
        kind = self._kind(settings)
        T = settings.T or rounds(problem, settings, self._rho(mechanisms), kind=kind, most=most)
        return T, most // T

    def epochs(
        self, problem: dp.Problem | Kinks, W: dp.Array, mechanisms: dp.Mechanisms, settings: Any
    ) -> Iterator[tuple[dp.Array, dp.Array]]:
        """Algorithm 3 from W (k, d), epoch after epoch: the mean w_t (k, d) and up to `KEPT` of the w_t (k, ·, d)."""
        T, K = self.lengths(problem, mechanisms, settings)
        rows = mechanisms.single_pass(problem.n, label="oracle")
        coins = zeroth_order.Coins(mechanisms.coins)
        # Spread evenly over an epoch: the measure needs a sample of its points, and memory is k·d·KEPT.
        keep = {round(t) for t in np.linspace(0, T - 1, KEPT)}
        x = W
        for _ in range(K):
            oracle = self._oracle(problem, rows, mechanisms, settings, T, coins)
            learner = Learner(x.shape, settings.radius / T)
            points, mean = [], np.zeros_like(x)
            for t in range(T):
                w = x + coins.uniform()[:, None] * learner.step
                x = x + learner.step
                learner.update(oracle(w))
                mean += w / T
                if t in keep:
                    points.append(w)
            yield mean, np.stack(points, axis=1)

    def measure(self, problem, outcome, settings, generators):
        """‖∇F(w)‖_{2δ} from above, by the gradients in the 2δ-ball and at the epoch's points (Corollary 4.7)."""
        from dpbench.problems.stationarity import goldstein_norm

        norms = [
            goldstein_norm(problem, w, 2 * settings.radius, points, generator)
            for w, points, generator in zip(outcome.W, outcome.evidence, generators, strict=True)
        ]
        return {"measured": [value for value, _ in norms], "measured_error": [error for _, error in norms]}

    def _kind(self, settings: Any) -> Kind:
        return settings.oracle

    def _rows_per_round(self, settings: Any) -> int:
        # T + 1 in the first round and one in each other are 2T in an epoch
        return 2 if self._kind(settings) == "variance-reduced" else getattr(settings, "B", 1)

    def _rho(self, mechanisms: dp.Mechanisms) -> float:
        return math.sqrt(2 * mechanisms.budget.rho) if self.private else math.inf

    def _oracle(
        self,
        problem: dp.Problem | Kinks,
        rows: SinglePass,
        mechanisms: dp.Mechanisms,
        settings: Any,
        T: int,
        coins: zeroth_order.Coins,
    ) -> Oracle:
        kind, release = self._kind(settings), self._release(problem, rows, mechanisms, settings, T)
        if kind == "variance-reduced":
            return VarianceReduced(problem, rows, coins, settings.radius, T, release)
        assert not isinstance(problem, Kinks), "the variance-reduced oracle alone"
        return fresh(problem, rows, coins, settings, kind, T, release)

    def _release(
        self, problem: dp.Problem | Kinks, rows: SinglePass, mechanisms: dp.Mechanisms, settings: Any, T: int
    ) -> Oracle:
        """What an estimate becomes before the learner sees it, in one epoch; here, itself."""
        return lambda g: g


class O2NCTree(O2NC):
    """o2nc-tree: O2NC with the variance-reduced oracle released through the tree mechanism (Algorithms 3, 4 and 5).

    The terms of the oracle's running sum have sensitivity 2dL/(T+1) in round 1 (Lemma 3.1, B₁ = T+1) and 4dL/T in the
    others (Lemma 3.2 with ‖w_t - w_{t-1}‖ ≤ 2D, Remark 4.1), and a row is in ⌊log₂ T⌋ + 1 nodes at most. The paper
    gives every round s = 4dL/T, hence σ = sqrt(⌊log₂ T⌋ + 1) s/ρ per node (Corollary 4.4, its 2 ln T replaced by the
    count it bounds); "tight" counts nodes and sensitivity round by round, and converts as an exact Gaussian.
    """

    name = "o2nc-tree"
    title = "O2NC-Tree"
    private = True
    unpaid = ""
    discloses = (
        dp.Disclosure(
            "oracle",
            "the running sums of each epoch, all nodes of its tree together; h = ⌊log₂ T⌋ + 1",
            "tree",
            "1",
            replace_one="4·d·L₀·√h/T",
            why="Lemmas 3.1 and 3.2 of Zhang, Tran and Cutkosky (2024): 4dL/T a round; a row is in h nodes at most",
        ),
        dp.Disclosure(
            "oracle",
            "the same",
            "tree",
            "1",
            replace_one="max over rounds q of √h_q·s_q",
            why="s_1 = 2dL/(T+1), s_q = 4dL/T, h_q nodes hold round q (privacy/correlated.py)",
            when="tight",
        ),
    )

    class Settings(Rounds, frozen=True):
        pass

    # s_q = 4dL/T is for two steps of the learner in a row, as long as they may be and one way: round q = 3, 5, 9, …
    # has them if s_{q-1} = 0 and s_q = 1. The other rows pull, so that noise seldom turns a step.
    _pulled = dp.AuditCase({"T": 32}, accounting="tight", loss="ramp", n=64, d=1, background=1.0, label="oracle")
    canaries = (replace(_pulled, best_coins=True, near_runs=15_000),)

    def _kind(self, settings):
        return "variance-reduced"

    def plan(self, problem, mechanisms, settings):
        mechanisms.plan("oracle", at_rho(mechanisms.budget.rho), 1)

    def _release(self, problem, rows, mechanisms, settings, T):
        d, L, budget = problem.d, problem.lipschitz, mechanisms.budget
        sensitivity: float | dp.Array = 4 * d * L / T
        # The first round averages over T + 1 rows and has the smaller bound of a single GRAD.
        if budget.accounting == "tight":
            sensitivity = np.append(2 * d * L / (T + 1), np.full(T - 1, sensitivity))
        return rows.tree(T, sensitivity=sensitivity, rho=budget.rho).release


class O2NCNaive(O2NC):
    """o2nc-naive: O2NC with fresh two-point estimates, one direction for each of the B rows of a round, plus noise.

    A replaced row moves the mean by 2dL/B (Lemma 3.1 with one direction), so N(0, σ²I), σ = 2dL/(Bρ), is
    (α, αρ²/2)-RDP (Algorithm 6; the text's dL/(Bρ) drops the 2). Rounds use disjoint rows. oracle "gradient": a
    first-order baseline, DP-SGD that uses each row once and moves as O2NC does. The mean of the rows' subgradients has
    sensitivity 2L/B, without the d.
    """

    name = "o2nc-naive"
    title = "O2NC-Naive"
    private = True
    unpaid = ""
    discloses = (
        dp.Disclosure(
            "oracle",
            "the mean two-point estimate of B rows",
            "Gaussian in a single pass",
            "1",
            replace_one="2·d·L₀/B",
            why="Lemma 3.1 of Zhang, Tran and Cutkosky (2024) with one direction",
            when="oracle=two-point",
        ),
        dp.Disclosure(
            "oracle",
            "the mean subgradient of B rows",
            "Gaussian in a single pass",
            "1",
            replace_one="2·L₀/B",
            why="‖∇f_i‖ ≤ L₀",
            when="oracle=gradient",
        ),
    )

    class Settings(Rounds, frozen=True):
        B: dp.Count = 1
        oracle: Literal["two-point", "gradient"] = "two-point"

    def plan(self, problem, mechanisms, settings):
        mechanisms.plan("oracle", Gaussian(1 / self._rho(mechanisms)), 1)

    def _release(self, problem, rows, mechanisms, settings, T):
        factor = problem.d if settings.oracle == "two-point" else 1
        sensitivity = 2 * factor * problem.lipschitz / settings.B
        noise_multiplier = 1 / self._rho(mechanisms)
        return lambda g: rows.gaussian(g, sensitivity=sensitivity, noise_multiplier=noise_multiplier)


def fresh(
    problem: dp.Problem, rows: SinglePass, coins: zeroth_order.Coins, settings: Any, kind: Kind, T: int, release: Oracle
) -> Oracle:
    """Each round's own estimate on its own B rows: "two-point", one direction a row, or "gradient"; released."""
    B, d = getattr(settings, "B", 1), problem.d

    def two_point(w: dp.Array) -> dp.Array:
        block, U = rows.take(B), coins.directions(B, 1, d)
        return release(zeroth_order.grad(problem, w, block, radius=settings.radius, U=U))

    def gradient(w: dp.Array) -> dp.Array:
        return release(zeroth_order.subgradient(problem, w, rows.take(B)))

    coins.plan(T, B if kind == "two-point" else 0, 1, d)
    return two_point if kind == "two-point" else gradient


class Learner:
    """Projected online subgradient descent on a ball of radius D, restarted at 0 (Algorithm 3, line 3).

    step: Δ_t (k, d). η_t = D/sqrt(Σ_{i≤t} ‖g̃_i‖²), from released gradients only.
    """

    def __init__(self, shape: tuple[int, int], radius: float) -> None:
        self.step, self.radius = np.zeros(shape), radius
        self._squares = np.zeros(shape[0])
        self._loops = zeroth_order.compiled()

    def update(self, gradient: np.ndarray) -> None:
        """Δ ← Π_D(Δ - η g̃), in place."""
        if self._loops is not None:
            self._loops.step(self.step, self._squares, gradient, self.radius)
            return
        self._squares += np.einsum("kd,kd->k", gradient, gradient)
        # tiny: before the first gradient that is not 0 there is nothing to divide by.
        eta = self.radius / np.sqrt(np.maximum(self._squares, np.finfo(float).tiny))
        step = self.step - eta[:, None] * gradient
        norm = np.linalg.norm(step, axis=1, keepdims=True)
        self.step = step * np.minimum(1, self.radius / np.maximum(norm, self.radius))


class VarianceReduced:
    """Algorithm 4 in one epoch: g₁ = GRAD(w₁) on T+1 rows, g_t = g_{t-1} + DIFF(w_t, w_{t-1}) on one; releases g_t.

    d directions for each row; g itself stays without noise.
    """

    def __init__(
        self,
        problem: dp.Problem | Kinks,
        rows: SinglePass,
        coins: zeroth_order.Coins,
        radius: float,
        T: int,
        release: Oracle,
    ) -> None:
        self.problem, self.rows, self.coins, self.radius, self.T = problem, rows, coins, radius, T
        self.release = release
        self.g = np.empty(0)
        self.w: dp.Array | None = None

    def __call__(self, w: np.ndarray) -> np.ndarray:
        problem, radius, d = self.problem, self.radius, self.problem.d
        if self.w is None:
            rows = self.rows.take(self.T + 1)
            estimate = functools.partial(zeroth_order.grad, problem, w, radius=radius)
            self.g = zeroth_order.in_blocks(estimate, rows, self.coins.generators, d, d)
            self.coins.plan(self.T - 1, 1, d, d)
        else:
            U = self.coins.directions(1, d, d)
            # The running sum itself stays without noise: the tree adds its own to each prefix.
            self.g = self.g + zeroth_order.diff(problem, w, self.w, self.rows.take(1), radius=radius, U=U)
        self.w = w
        return self.release(self.g)


def rounds(problem: dp.Declaration | Kinks, settings: Rounds, rho: float, *, kind: Kind, most: int) -> int:
    """T = max((√d LδM/(F + Lδ))^{2/3}, (d^{3/2} LδM/((F + Lδ)ρ))^power), rounded, in 1..most; F is `gap`.

    power: 1/2 for the tree (Theorem 4.9), 2/3 for naive noise (Appendix E). The text prints min, a slip: its bound
    aT + b/√T + c/T needs the larger of the two, and without noise min would give T = 1. √d and d^{3/2}/ρ stand for
    the norms of an estimate and of its noise; those of a gradient are 1 and √d/ρ.
    """
    d, spread = problem.d, problem.lipschitz * settings.radius
    scale = spread * (settings.M or problem.n) / (settings.gap + spread)
    size, noise = (1.0, math.sqrt(d)) if kind == "gradient" else (math.sqrt(d), d**1.5)
    power = 1 / 2 if kind == "variance-reduced" else 2 / 3
    T = max((size * scale) ** (2 / 3), (noise * scale / rho) ** power)
    return min(max(round(T), 1), most)
