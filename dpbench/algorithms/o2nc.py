"""Online-to-nonconvex conversion with zeroth-order oracles (Zhang, Tran and Cutkosky 2024, Algorithms 3 to 6).

The relation is replace-one and every row is used in one round only, so epochs, and for o2nc-naive rounds, compose in
parallel: the run costs what its dearest epoch costs. ρ of the paper, (α, αρ²/2)-RDP for all α, is sqrt(2ρ_zCDP).
"""

from __future__ import annotations

import functools
import math
from typing import ClassVar

import msgspec
import numpy as np

from dpbench.algorithms import zeroth_order
from dpbench.algorithms.audit_case import AuditCase
from dpbench.algorithms.base import Algorithm, Count, Needs, Outcome, Positive, Settings
from dpbench.errors import UserError
from dpbench.privacy.relation import Relation

KEPT = 32  # points w_t of the chosen epoch that the stationarity measure gets to see


class O2NC(Algorithm):
    """o2nc: K epochs of projected subgradient steps that choose where to move, T rounds each, without noise.

    x moves by the learner's Δ_t, ‖Δ_t‖ ≤ D = δ/T; the oracle is asked at w_t = x_t + s_t Δ_t, s_t ~ U[0, 1]; the
    learner descends on <g̃_t, ·>. The result is the mean w_t of an epoch chosen uniformly (Algorithm 3), of which
    Corollary 4.7 bounds E‖∇F‖_{2δ}. Here g̃_t is Algorithm 4's variance-reduced oracle without TREE(t): not
    private, the floor of the other two.

    radius: the smoothing radius δ. M: rows used, each once (default: all). T: rounds of an epoch; default from
    Theorem 4.9 with `gap`, a public bound on F(x₁) - inf F, and max for the printed min (see `rounds`).
    """

    name = "o2nc"
    title = "O2NC"
    home = "zeroth_order"
    relation = Relation.REPLACE_ONE
    private = False
    paper_accounting = "standard"
    delta = 1e-6
    needs = Needs(losses=("ramp", "phase", "logistic", "sigmoid"))
    rows_per_round: ClassVar[int] = 2  # T + 1 in the first round and one in each other: 2T in an epoch

    class Settings(Settings):
        radius: Positive = 0.1
        gap: Positive = 1.0
        M: Count | None = None
        T: Count | None = None

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

    def audit_case(self):
        # In one dimension a direction is ±1 and every estimate as large as its bound.
        return AuditCase({"T": 1}, accounting="tight", d=1)

    def work(self, n, d, settings):
        return 15.0 * (settings.M or n) * d * d  # drawing a normal number costs as much as 10 flops or more

    def run(self, problem, W, mechanisms, settings, trace):
        T = settings.T or self._horizon(problem, settings, self._rho(mechanisms))
        K = settings.M // (self._rows_per_round(settings) * T)
        rows = mechanisms.single_pass(problem.n, label="oracle")
        chosen = np.array([coin.integers(K) for coin in mechanisms.coins])
        output, kept = np.zeros_like(W), []
        keep = {round(t) for t in np.linspace(0, T - 1, KEPT)}
        x = W
        for epoch in range(K):
            oracle = self._oracle(problem, rows, mechanisms, settings, T)
            learner = Learner(x.shape, settings.radius / T)
            points, mean = [], np.zeros_like(x)
            for t in range(T):
                s = np.array([coin.random() for coin in mechanisms.coins])[:, None]
                w = x + s * learner.step
                x = x + learner.step
                learner.update(oracle(w))
                mean += w / T
                if t in keep:
                    points.append(w)
                trace(epoch * T + t + 1, w, passes=settings.M / problem.n * (epoch * T + t + 1) / (K * T))
            ours = (chosen == epoch)[:, None]
            output = np.where(ours, mean, output)
            points = np.stack(points, axis=1)
            kept = points if epoch == 0 else np.where(ours[:, None], points, kept)
        k = len(W)
        return Outcome(output, columns={"T": [T] * k, "iterations": [K * T] * k}, evidence=kept)

    def measure(self, problem, outcome, settings, generators):
        """‖∇F(w)‖_{2δ} from above, by the gradients in the 2δ-ball and at the epoch's points (Corollary 4.7)."""
        from dpbench.problems.stationarity import goldstein_norm

        found = [
            goldstein_norm(problem, w, 2 * settings.radius, points, generator)
            for w, points, generator in zip(outcome.W, outcome.evidence, generators, strict=True)
        ]
        return {"measured": [value for value, _ in found], "measured_error": [error for _, error in found]}

    def _rows_per_round(self, settings) -> int:
        return self.rows_per_round

    def _rho(self, mechanisms) -> float:
        return math.inf

    def _horizon(self, problem, settings, rho) -> int:
        return rounds(problem, settings, rho, power=1 / 2, most=settings.M // 2)

    def _oracle(self, problem, rows, mechanisms, settings, T):
        return VarianceReduced(problem, rows, mechanisms.coins, settings.radius, T, release=lambda g: g)


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

    def _rho(self, mechanisms):
        return math.sqrt(2 * mechanisms.budget.rho)

    def _oracle(self, problem, rows, mechanisms, settings, T):
        d, L, budget = problem.d, problem.lipschitz, mechanisms.budget
        sensitivity = 4 * d * L / T
        if budget.accounting == "tight":
            sensitivity = np.append(2 * d * L / (T + 1), np.full(T - 1, sensitivity))
        tree = rows.tree(T, sensitivity=sensitivity, rho=budget.rho)
        return VarianceReduced(problem, rows, mechanisms.coins, settings.radius, T, tree.release)


class O2NCNaive(O2NC):
    """o2nc-naive: O2NC with fresh two-point estimates, one direction for each of the B rows of a round, plus noise.

    A replaced row moves the mean by 2dL/B (Lemma 3.1 with one direction), so N(0, σ²I), σ = 2dL/(Bρ), is
    (α, αρ²/2)-RDP (Algorithm 6; the text's dL/(Bρ) drops the 2). Rounds use disjoint rows.
    """

    name = "o2nc-naive"
    title = "O2NC-Naive"
    private = True

    class Settings(O2NC.Settings):
        B: Count = 1

    def work(self, n, d, settings):
        return 15.0 * (settings.M or n) * d + 3e4 * (settings.M or n) / settings.B

    def _rows_per_round(self, settings):
        return settings.B

    def _rho(self, mechanisms):
        return math.sqrt(2 * mechanisms.budget.rho)

    def _horizon(self, problem, settings, rho):
        return rounds(problem, settings, rho, power=2 / 3, most=settings.M // settings.B)

    def _oracle(self, problem, rows, mechanisms, settings, T):
        sensitivity = 2 * problem.d * problem.lipschitz / settings.B
        multiplier = 1 / self._rho(mechanisms)

        def oracle(w):
            block = rows.take(settings.B)
            U = zeroth_order.directions(mechanisms.coins, settings.B, 1, problem.d)
            g = zeroth_order.grad(problem, w, block, radius=settings.radius, U=U)
            return rows.gaussian(g, sensitivity=sensitivity, noise_multiplier=multiplier)

        return oracle


class Learner:
    """Projected online subgradient descent on a ball of radius D, restarted at 0 (Algorithm 3, line 3).

    step: Δ_t (k, d). η_t = D/sqrt(Σ_{i≤t} ‖g̃_i‖²), from released gradients only.
    """

    def __init__(self, shape: tuple[int, int], radius: float):
        self.step, self.radius = np.zeros(shape), radius
        self._squares = np.zeros(shape[0])

    def update(self, gradient: np.ndarray) -> None:
        """Δ ← Π_D(Δ - η g̃)."""
        self._squares += np.einsum("kd,kd->k", gradient, gradient)
        eta = self.radius / np.sqrt(np.maximum(self._squares, np.finfo(float).tiny))
        step = self.step - eta[:, None] * gradient
        norm = np.linalg.norm(step, axis=1, keepdims=True)
        self.step = step * np.minimum(1, self.radius / np.maximum(norm, self.radius))


class VarianceReduced:
    """Algorithm 4 in one epoch: g₁ = GRAD(w₁) on T+1 rows, g_t = g_{t-1} + DIFF(w_t, w_{t-1}) on one; releases g_t.

    d directions for each row; g itself stays without noise.
    """

    def __init__(self, problem, rows, coins, radius: float, T: int, release):
        self.problem, self.rows, self.coins, self.radius, self.T = problem, rows, coins, radius, T
        self.release = release
        self.g = self.w = None

    def __call__(self, w: np.ndarray) -> np.ndarray:
        problem, radius, d = self.problem, self.radius, self.problem.d
        if self.w is None:
            rows = self.rows.take(self.T + 1)
            estimate = functools.partial(zeroth_order.grad, problem, w, radius=radius)
            self.g = zeroth_order.in_blocks(estimate, rows, self.coins, d, d)
        else:
            U = zeroth_order.directions(self.coins, 1, d, d)
            self.g = self.g + zeroth_order.diff(problem, w, self.w, self.rows.take(1), radius=radius, U=U)
        self.w = w
        return self.release(self.g)


def rounds(problem, settings, rho: float, *, power: float, most: int) -> int:
    """T = max((√d LδM/(F + Lδ))^{2/3}, (d^{3/2} LδM/((F + Lδ)ρ))^power), rounded, in 1..most; F is `gap`.

    power: 1/2 for the tree (Theorem 4.9), 2/3 for naive noise (Appendix E). The text prints min, a slip: its bound
    aT + b/√T + c/T needs the larger of the two, and without noise min would give T = 1.
    """
    d, spread = problem.d, problem.lipschitz * settings.radius
    scale = spread * settings.M / (settings.gap + spread)
    T = max((math.sqrt(d) * scale) ** (2 / 3), (d**1.5 * scale / rho) ** power)
    return min(max(round(T), 1), most)
