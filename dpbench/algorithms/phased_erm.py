"""Minimisers that each stay near the one released before, with ever less noise: localisation in phases."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from dpbench.algorithms import output_noise
from dpbench.algorithms.aop import newton_work
from dpbench.algorithms.base import (
    Algorithm,
    Array,
    AuditCase,
    BaseSettings,
    Count,
    Declaration,
    Mechanisms,
    Needs,
    Outcome,
    Positive,
    Problem,
    Relation,
    Trace,
)
from dpbench.algorithms.output_perturbation import balancing_ridge, gradient_moves
from dpbench.algorithms.perturbed_minimum import SOLVER, minimise, solved, tolerance
from dpbench.privacy.budget import Budget

GROWTH = 4.0  # of λ from phase to phase


class Phases(NamedTuple):
    """λ of every phase, and the most that a row moves what it releases."""

    ridges: list[float]
    sensitivities: list[float]


class PhasedERM(Algorithm):
    """phased-erm: w_i = argmin F(w) + (λ_i/2)‖w - w_{i-1}‖² + noise, i = 1 … J, λ_i = 4^{i-1} λ_1, from w_0 = 0.

    Feldman, Koren and Talwar (2020), with all rows in every phase, as F is what is to be small and not the risk of new
    rows. Given w_{i-1}, which is released, the objective is (λ_i + l2)-strongly convex and a row moves its gradient by
    2L₀/n (L₀/n under add/remove): Δ_i = (2L₀/n + 2γ)/(λ_i + l2), γ the solver's tolerance. Each phase gets ρ/J, or ε/J
    at δ = 0 with radial noise.

    λ_1 is what balances a phase's noise, ½β(Δ_1/μ_1)² at tr H ≤ β, against its bias λ_1 B²/2: λ_1³ = 2β(2L₀)²J/(nμB)²,
    as for output perturbation; at δ = 0 with J²(d + 1)/ε² in place of J/μ². A later phase has 4 times the ridge and so
    a quarter of the noise, and its bias is of the noise before it and not of ‖w*‖.

    The paper's phased SGD takes fresh rows in each phase, for the risk of rows to come. As a method for F it is behind
    all others, and is not here.

    phases: J. ridge: λ_1; None: by that rule. radius: B, a guess of ‖w*‖.
    """

    name = "phased-erm"
    title = "Phased ERM"
    relation = Relation.REPLACE_ONE
    either = True
    exact = "minimiser"
    paper_accounting = "tight"
    accountings: ClassVar = ("tight", "pure")
    needs = Needs(convex=True, lipschitz=True, smooth=True, regularisers=("l1", "l2"))
    discloses = output_noise.disclosures(
        "the minimiser near the last one",
        "(L₀/n + 2·γ)/ridge_i",
        "a ridge-strongly convex objective, ridge_i = λ_i + l2, whose gradient one row moves by L₀/n",
        count="J",
    )
    tuning: ClassVar = {"radius": [2.0, 8.0, 32.0]}
    diagnostics = SOLVER

    class Settings(BaseSettings, frozen=True):
        phases: Count = 3
        ridge: Positive | None = None
        radius: Positive = 8.0

    def audit_case(self) -> AuditCase:
        return AuditCase({"phases": 3, "ridge": 0.1}, n=300, d=2)

    def work(self, n: int, d: int, settings: Settings) -> float:
        return newton_work(n, d) * settings.phases

    def plan(self, problem: Declaration, mechanisms: Mechanisms, settings: Any) -> None:
        output_noise.plan(mechanisms, settings.phases)

    def run(self, problem: Problem, W: Array, mechanisms: Mechanisms, settings: Settings, trace: Trace) -> Outcome:
        gamma, W = tolerance(problem), np.zeros_like(W)
        ridges, sensitivities = phases(problem, mechanisms.budget, settings)
        worst, evaluations = np.zeros(len(W)), np.zeros(len(W), dtype=int)
        trace(0, W, passes=0)
        for i, (ridge, sensitivity) in enumerate(zip(ridges, sensitivities, strict=True)):
            near, norms, taken = problem.nearly(minimise, W, -ridge * W, ridge, gamma)
            worst, evaluations = np.maximum(worst, norms), evaluations + taken
            W = output_noise.release(mechanisms, near, sensitivity, settings.phases)
            trace(i + 1, W, passes=i + 1)
        return solved(W, worst, gamma, evaluations)


def phases(problem: Declaration, budget: Budget, settings: PhasedERM.Settings) -> Phases:
    """λ_i and Δ_i: λ_1 as given, and by the class's rule where it is not."""
    first = settings.ridge or balancing_ridge(problem, budget, settings.radius, settings.phases)
    ridges = [first * GROWTH**i for i in range(settings.phases)]
    moved = gradient_moves(problem, budget) + 2 * tolerance(problem)
    return Phases(ridges, [moved / (ridge + problem.l2) for ridge in ridges])
