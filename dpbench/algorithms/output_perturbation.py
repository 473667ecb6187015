"""Noise on a minimiser or on where a pass ends: output perturbation, phases of it, and bolt-on noise.

The noise is on all that a method releases, at once or in equal parts: Gaussian, and radial at δ = 0.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np

from dpbench.algorithms import base as dp
from dpbench.algorithms.aop import ReleasedMinimiser, newton_work, solved
from dpbench.algorithms.objective_perturbation import minimise, tolerance
from dpbench.errors import UserError
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Radial, at_rho


def disclosures(value: str, sensitivity: str, why: str, count: str = "1") -> tuple[dp.Disclosure, dp.Disclosure]:
    """What is declared of `value` under both kinds of noise; `sensitivity`: under add/remove, by the one row's L₀."""
    gaussian = dp.Disclosure(
        "output",
        value,
        count=count,
        add_remove=sensitivity,
        replace_one=sensitivity.replace("L₀", "2·L₀"),  # two rows pull, each by L₀ at most
        why=why,
    )
    return gaussian, replace(gaussian, mechanism="radial", why="the same", when="δ = 0")


def variance(budget: Budget, d: int, parts: int = 1) -> float:
    """The noise's variance in a direction (of d), per squared sensitivity, of one of `parts` releases.

    At δ = 0 with E‖b‖² = d(d + 1)(Δ/ε)².
    """
    return parts**2 * (d + 1) / budget.epsilon**2 if budget.delta == 0 else parts / (2 * budget.rho)


def plan(mechanisms: dp.Mechanisms, parts: int = 1) -> None:
    """Plan `parts` releases that spend the budget together."""
    budget = mechanisms.budget
    event = Radial(parts / budget.epsilon) if budget.delta == 0 else at_rho(budget.rho / parts)
    mechanisms.plan("output", event, parts)


def release(mechanisms: dp.Mechanisms, W: dp.Array, sensitivity: float, parts: int = 1) -> dp.Array:
    """One of `parts` releases of W (k, d), of which neighbours' are within `sensitivity` in ℓ₂."""
    budget = mechanisms.budget
    if budget.delta == 0:
        return mechanisms.radial(W, sensitivity=sensitivity, epsilon=budget.epsilon / parts, label="output")
    return mechanisms.gaussian(W, sensitivity=sensitivity, rho=budget.rho / parts, label="output")


class OutputPerturbation(ReleasedMinimiser):
    """output-perturbation: release argmin F(w) + (m - l2)/2 ‖w‖² + noise, m = max(l2, m₀).

    Chaudhuri, Monteleoni and Sarwate (2011), Algorithm 1, with the solver's error. At the minimiser θ of F_D the
    gradient of F_D' is ‖∇ℓ' - ∇ℓ‖/n ≤ 2L₀/n (L₀/n under add/remove), and m‖θ - θ'‖ is at most that by strong
    monotonicity, l1 included. Each approximate minimiser is within γ/m of its own: Δ = (2L₀/n + 2γ)/m. Gaussian noise
    under `tight`, radial noise at δ = 0.

    m₀ balances what the noise costs, ½β(Δ/μ)² at tr H ≤ β, against the ridge's bias m·radius²/2: m₀³ =
    2β(2L₀)²/(nμ·radius)²; at δ = 0 with (d + 1)/ε² in place of 1/μ², as E‖b‖² = (Δ/ε)² d(d + 1).

    radius: a guess of ‖w*‖. ridge: m, public; None for that rule.
    """

    name = "output-perturbation"
    title = "Output perturbation"
    discloses = disclosures(
        "the minimiser",
        "(L₀/n + 2·γ)/ridge",
        "a ridge-strongly convex objective whose gradient one row moves by L₀/n; γ is the solver's tolerance",
    )
    tuning: ClassVar = {"radius": [2.0, 8.0, 32.0]}

    class Settings(dp.BaseSettings, frozen=True):
        radius: dp.Positive = 8.0
        ridge: dp.Positive | None = None

    audit_case = dp.AuditCase(n=300, d=2)

    def plan(self, problem, mechanisms, settings):
        plan(mechanisms)

    def run(self, problem, W, mechanisms, settings, trace):
        gamma, none = tolerance(problem), np.zeros_like(W)
        moved = gradient_moves(problem, mechanisms.budget)
        m = settings.ridge or max(problem.l2, balancing_ridge(problem, mechanisms.budget, settings.radius))
        W, norms, evaluations = problem.approximate_minimiser(minimise, none, none, m - problem.l2, gamma)
        return solved(release(mechanisms, W, (moved + 2 * gamma) / m), norms, gamma, evaluations)


def gradient_moves(problem: dp.Declaration, budget: Budget) -> float:
    """How far the gradients of the mean loss of neighbours are apart, at most: 2L₀/n, or L₀/n under add/remove."""
    return budget.relation.rows * problem.lipschitz / problem.n


def balancing_ridge(problem: dp.Declaration, budget: Budget, radius: float, parts: int = 1) -> float:
    """m₀ of the class, where the noise is that of one of `parts` releases."""
    spread = variance(budget, problem.d, parts)
    return (2 * problem.smoothness * gradient_moves(problem, budget) ** 2 * spread / radius**2) ** (1 / 3)


GROWTH = 4.0  # of λ from phase to phase


class Phases(NamedTuple):
    """λ of every phase, and the most that a row moves what it releases."""

    ridges: list[float]
    sensitivities: list[float]


class PhasedERM(ReleasedMinimiser):
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
    discloses = disclosures(
        "the minimiser near the last one",
        "(L₀/n + 2·γ)/ridge_i",
        "a ridge-strongly convex objective, ridge_i = λ_i + l2, whose gradient one row moves by L₀/n",
        count="J",
    )
    tuning: ClassVar = {"radius": [2.0, 8.0, 32.0]}

    class Settings(dp.BaseSettings, frozen=True):
        phases: dp.Count = 3
        ridge: dp.Positive | None = None
        radius: dp.Positive = 8.0

    audit_case = dp.AuditCase({"phases": 3, "ridge": 0.1}, n=300, d=2)

    def work(self, n, d, settings):
        return newton_work(n, d) * settings.phases

    def plan(self, problem, mechanisms, settings):
        plan(mechanisms, settings.phases)

    def run(self, problem, W, mechanisms, settings, trace):
        gamma, W = tolerance(problem), np.zeros_like(W)
        ridges, sensitivities = phases(problem, mechanisms.budget, settings)
        worst, evaluations = np.zeros(len(W)), np.zeros(len(W), dtype=int)
        for ridge, sensitivity in zip(ridges, sensitivities, strict=True):
            # λ/2 ‖w - w_{i-1}‖² is a ridge and the linear term -λ<w_{i-1}, w>.
            near, norms, taken = problem.approximate_minimiser(minimise, W, -ridge * W, ridge, gamma)
            worst, evaluations = np.maximum(worst, norms), evaluations + taken
            # Released before it is used: the next phase may depend on it at no cost.
            W = release(mechanisms, near, sensitivity, settings.phases)
        return solved(W, worst, gamma, evaluations)


def phases(problem: dp.Declaration, budget: Budget, settings: PhasedERM.Settings) -> Phases:
    """λ_i and Δ_i: λ_1 as given, and by the class's rule where it is not."""
    first = settings.ridge or balancing_ridge(problem, budget, settings.radius, settings.phases)
    ridges = [first * GROWTH**i for i in range(settings.phases)]
    moved = gradient_moves(problem, budget) + 2 * tolerance(problem)
    return Phases(ridges, [moved / (ridge + problem.l2) for ridge in ridges])


PASSES, WORK = 10, 1e12  # where the step may be as small as that takes; flops of a run


class Schedule(NamedTuple):
    """passes over the rows in batches of `batch`, steps of `step`, and the sensitivity of what comes of them."""

    passes: int
    batch: int
    step: float
    sensitivity: float


class BoltOn(dp.Algorithm):
    """bolt-on: K passes of w ← w - η((1/b)Σ_{i in batch}∇ℓ_i(w) + l2·w) in one order of the rows; the end, and noise.

    Wu, Li, Kumar, Chaudhuri, Jha and Naughton (2017). The order is drawn without a look at the data. Released is the
    mean of the last pass's iterates with Gaussian noise, or radial noise at δ = 0.

    Two runs in the same order differ at one row, which is met once a pass and moves a step by 2L₀η/b at most (L₀η/b
    under add/remove: a row that is gone has no gradient, and its place stays). Every other step brings them nearer by
    c = max(1 - η·l2, η(L₁ + l2) - 1) ≤ 1 for η ≤ 2/(L₁ + l2), the losses being convex and smooth. So every iterate,
    and their mean, is within Δ = (2L₀η/b)(1 + q + … + q^{K-1}), q = c^⌊n/b⌋: K·2L₀η/b without a ridge. The divisor is b
    in a short last batch as well.

    step, epochs: those of the time τ = ηKn/b in which what is left of a quadratic, B² max_h ½h e^{-2hτ} over
    l2 ≤ h ≤ L₁, and what the noise costs, ½L₁(Δ/μ)² (with (d + 1)/ε² in place of 1/μ² at δ = 0), are least together.
    batch: b; None: √n. radius: B, a guess of ‖w*‖.
    """

    name = "bolt-on"
    title = "Bolt-on SGD"
    relation = dp.Relation.REPLACE_ONE
    either = True
    in_reals = "it adds noise to the end of many steps, each of which float64 rounds"
    paper_accounting = "tight"
    accountings: ClassVar = ("tight", "pure")
    needs = dp.Needs(convex=True, lipschitz=True, smooth=True, regularisers=("l2",))
    discloses = disclosures(
        "the mean of the last pass's iterates",
        "L₀·η·Q/b",
        "one row moves one step a pass by L₀η/b, and no other step parts two runs; Q = 1 + q + … ≤ passes",
    )
    tuning: ClassVar = {"radius": [2.0, 8.0, 32.0]}

    class Settings(dp.BaseSettings, frozen=True):
        epochs: dp.Count | None = None
        batch: dp.Count | None = None
        step: dp.Positive | None = None
        radius: dp.Positive = 8.0

    def complete(self, problem, settings):
        # Beyond it a step of the other rows no longer brings two runs nearer.
        most = 2 / (problem.smoothness + problem.l2)
        if settings.step and settings.step > most:
            raise UserError(f"step: {settings.step:g} parts runs from each other; choose one of at most {most:g}")
        return settings

    audit_case = dp.AuditCase({"epochs": 5, "batch": 1}, best_coins=True)

    def work(self, n, d, settings):
        return 4.0 * n * d * (settings.epochs or PASSES) + 1e5 * math.sqrt(n) * (settings.epochs or PASSES)

    def plan(self, problem, mechanisms, settings):
        plan(mechanisms)

    def run(self, problem, W, mechanisms, settings, trace):
        n = problem.n
        passes, b, step, delta_2 = schedule(problem, mechanisms.budget, settings)
        orders = [np.zeros(0, dtype=int)] * len(W)
        for members, coins in zip(mechanisms.streams, mechanisms.coins, strict=True):
            # One order for all passes: a row is then met once a pass, which the sensitivity counts.
            orders[members] = [coins.permutation(n)] * (members.stop - members.start)
        W, mean = np.zeros_like(W), np.zeros_like(W)
        steps = math.ceil(n / b)
        for _ in range(passes):
            for i, first in enumerate(range(0, n, b)):
                for w, order in zip(W, orders, strict=True):
                    gradient = problem.gradient_sum(w, order[first : first + b]) / b
                    w -= step * (gradient + problem.l2 * w)
                mean = W.copy() if i == 0 else mean + (W - mean) / (i + 1)
        return dp.RunResult(release(mechanisms, mean, delta_2), T=[passes * steps] * len(W))


def schedule(problem: dp.Declaration, budget: Budget, settings: BoltOn.Settings) -> Schedule:
    """The settings that are given, and the rule's where they are not."""
    n, l2, smooth = problem.n, problem.l2, problem.smoothness
    b = min(n, settings.batch or max(1, round(math.sqrt(n))))
    row_gradient = budget.relation.rows * problem.lipschitz
    spread = variance(budget, problem.d)
    step, passes, best = settings.step or 1 / (smooth + l2), settings.epochs or 1, math.inf
    # A grid over step · passes, the one number that what is left of the start depends on.
    for time in np.geomspace(1e-6, 1e9, 301):
        eta = settings.step or min(1 / (smooth + l2), time * b / (n * (settings.epochs or PASSES)))
        most = max(1, int(WORK / (4 * n * problem.d)))
        K = settings.epochs or max(1, min(most, round(time * b / (n * eta))))
        h = min(max(1 / (2 * eta * K * n / b), l2), smooth)
        left = settings.radius**2 * h / 2 * math.exp(-2 * h * eta * K * n / b)
        noise = smooth / 2 * spread * sensitivity(problem, row_gradient, b, eta, K) ** 2
        if left + noise < best:
            step, passes, best = eta, K, left + noise
    return Schedule(passes, b, step, sensitivity(problem, row_gradient, b, step, passes))


def sensitivity(problem: dp.Declaration, row_gradient: float, batch: int, step: float, passes: int) -> float:
    """ℓ₂ sensitivity of the final iterate: (row_gradient·step/batch)·(1 + q + … + q^(passes - 1)), q = c^⌊n/batch⌋.

    row_gradient: the most by which one row changes the sum of its batch's gradients, 2L₀ or L₀ (Wu et al. 2017).
    """
    contraction = max(1 - step * problem.l2, step * (problem.smoothness + problem.l2) - 1)
    per_step = row_gradient * step / batch
    if contraction >= 1:  # without a ridge nothing shrinks between two meetings with the row
        return per_step * passes
    if contraction <= 0:
        return per_step
    log_q = (problem.n // batch) * math.log(contraction)
    # In logarithms: q underflows for many rows, and 1 - q loses all digits for a ridge near 0.
    return per_step * (math.expm1(passes * log_q) / math.expm1(log_q) if log_q > -700 else 1.0)
