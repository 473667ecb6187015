"""Plain stochastic gradient descent over a fixed order of the rows, and noise on where it ends."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dpbench.algorithms import output_noise
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
from dpbench.errors import UserError
from dpbench.privacy.budget import Budget

PASSES, WORK = 10, 1e12  # where the step may be as small as that takes; flops of a run


class Schedule(NamedTuple):
    """passes over the rows in batches of `batch`, steps of `step`, and the sensitivity of what comes of them."""

    passes: int
    batch: int
    step: float
    sensitivity: float


class BoltOn(Algorithm):
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
    relation = Relation.REPLACE_ONE
    either = True
    in_reals = "it adds noise to the end of many steps, each of which float64 rounds"
    paper_accounting = "tight"
    accountings: ClassVar = ("tight", "pure")
    needs = Needs(convex=True, lipschitz=True, smooth=True, regularisers=("l2",))
    discloses = output_noise.disclosures(
        "the mean of the last pass's iterates",
        "L₀·η·Q/b",
        "one row moves one step a pass by L₀η/b, and no other step parts two runs; Q = 1 + q + … ≤ passes",
    )
    tuning: ClassVar = {"radius": [2.0, 8.0, 32.0]}

    class Settings(BaseSettings, frozen=True):
        epochs: Count | None = None
        batch: Count | None = None
        step: Positive | None = None
        radius: Positive = 8.0

    def complete(self, problem: Declaration, settings: Settings) -> Settings:
        most = 2 / (problem.smoothness + problem.l2)
        if settings.step and settings.step > most:
            raise UserError(f"step: {settings.step:g} parts runs from each other; choose one of at most {most:g}")
        return settings

    def audit_case(self) -> AuditCase:
        return AuditCase({"epochs": 5, "batch": 1}, best_coins=True)

    def work(self, n: int, d: int, settings: Settings) -> float:
        return 4.0 * n * d * (settings.epochs or PASSES) + 1e5 * math.sqrt(n) * (settings.epochs or PASSES)

    def plan(self, problem: Declaration, mechanisms: Mechanisms, settings: Any) -> None:
        output_noise.plan(mechanisms)

    def run(self, problem: Problem, W: Array, mechanisms: Mechanisms, settings: Settings, trace: Trace) -> Outcome:
        n = problem.n
        passes, b, step, sensitivity = schedule(problem, mechanisms.budget, settings)
        orders = [np.zeros(0, dtype=int)] * len(W)
        for members, coins in zip(mechanisms.streams, mechanisms.coins, strict=True):
            orders[members] = [coins.permutation(n)] * (members.stop - members.start)
        W, mean = np.zeros_like(W), np.zeros_like(W)
        steps = math.ceil(n / b)
        for _ in range(passes):
            for i, first in enumerate(range(0, n, b)):
                for w, order in zip(W, orders, strict=True):
                    gradient = problem.gradient_sum(w, order[first : first + b]) / b
                    w -= step * (gradient + problem.l2 * w)
                mean = W.copy() if i == 0 else mean + (W - mean) / (i + 1)
        return Outcome(output_noise.release(mechanisms, mean, sensitivity), T=[passes * steps] * len(W))


def schedule(problem: Declaration, budget: Budget, settings: BoltOn.Settings) -> Schedule:
    """The settings that are given, and the rule's where they are not."""
    n, l2, smooth = problem.n, problem.l2, problem.smoothness
    b = min(n, settings.batch or max(1, round(math.sqrt(n))))
    moved = budget.relation.rows * problem.lipschitz
    spread = output_noise.variance(budget, problem.d)
    step, passes, best = settings.step or 1 / (smooth + l2), settings.epochs or 1, math.inf
    for time in np.geomspace(1e-6, 1e9, 301):
        eta = settings.step or min(1 / (smooth + l2), time * b / (n * (settings.epochs or PASSES)))
        most = max(1, int(WORK / (4 * n * problem.d)))
        K = settings.epochs or max(1, min(most, round(time * b / (n * eta))))
        h = min(max(1 / (2 * eta * K * n / b), l2), smooth)
        left = settings.radius**2 * h / 2 * math.exp(-2 * h * eta * K * n / b)
        noise = smooth / 2 * spread * apart(problem, moved, b, eta, K) ** 2
        if left + noise < best:
            step, passes, best = eta, K, left + noise
    return Schedule(passes, b, step, apart(problem, moved, b, step, passes))


def apart(problem: Declaration, moved: float, b: int, step: float, passes: int) -> float:
    """Δ of the class, of runs that part by moved·step/b once a pass."""
    c = max(1 - step * problem.l2, step * (problem.smoothness + problem.l2) - 1)
    log_q = (problem.n // b) * math.log(c) if 0 < c < 1 else (0.0 if c >= 1 else -math.inf)
    times = passes if log_q == 0 else math.expm1(passes * log_q) / math.expm1(log_q) if log_q > -700 else 1.0
    return moved * step / b * times
