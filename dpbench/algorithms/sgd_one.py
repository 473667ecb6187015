"""Stochastic gradient descent on one uniformly drawn row at a time."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from dpbench.algorithms import one_row
from dpbench.algorithms.base import Array, AuditCase, Declaration, Disclosure, Mechanisms, Problem, Trace
from dpbench.algorithms.passes import ByPasses

BLOCK, ROWS = 2**18, 16  # noise numbers drawn at a time: 2 MB, or 16 steps that find an iterate in the cache

MULTIPLES = {"zC": 1.0, "sqrt2zC": math.sqrt(2), "2zC": 2.0}  # of the noise that the paper's text describes


class DPSGDOne(ByPasses):
    """dp-sgd-1: w ← prox(w - γ (clip(∇f_i, C) + λw + N(σ²I))), i uniform in 1..n (Mangold et al. 2023, Section 5).

    A row's gradient has ℓ₂ norm at most C after clipping, so with i drawn a replaced row moves it by Δ = 2C, and is
    drawn with probability 1/n: each step is a Gaussian release, σ = zΔ, on m = 1 of n rows without replacement. "rdp":
    z by Wang, Balle and Kasiviswanathan (2019), Theorems 9 and 27. "poisson", as the paper's accounting: σ = zC with z
    of Poisson samples under add/remove (Mironov et al. 2019); see `flaw`. "tight": z by the loss distribution of such
    samples, down to where its grid is too large: at ε = 0.1 less than half of the noise on any number of rows (1.19
    instead of 2.87 at n = 45,222 and 10 passes), at ε = 1 a quarter less on 1,000 and no less on 2,600. L2's λw and
    L1's soft threshold at γλ use no data. One pass is n iterations.

    noise: "2zC" doubles it and "sqrt2zC" takes √2 of it. What the paper's text describes, σ = zC, is excluded by its
    own value on california; between √2 and 2 its values do not decide (see docs/papers/greedy_coordinate.md).
    """

    name = "dp-sgd-1"
    title = "DP-SGD, batch size 1"
    in_reals = "it releases single rows' gradients, as float64 computes and clips them"
    paper_accounting = "poisson"
    accountings = ("rdp", "tight")
    discloses = (
        Disclosure(
            "gradient of one row",
            "one row's clipped gradient",
            "Gaussian on a sample",
            "passes·n",
            replace_one="2·C",
            why="clipped to ‖·‖₂ ≤ C; 1 of n rows",
        ),
    )

    class Settings(ByPasses.Settings, frozen=True):
        noise: Literal["zC", "sqrt2zC", "2zC"] = "zC"

    @staticmethod
    def per_pass(n: int, d: int) -> int:
        return n

    def flaw(self, settings: Settings, accounting: str = "") -> str:
        if accounting != "poisson":
            return ""
        return "noise of Poisson samples under add/remove, but one row is drawn: ε spent is what replace-one costs"

    def audit_case(self) -> AuditCase:
        # One step; all other rows pull against the one that differs. The paper's accounting is for other samples.
        return AuditCase({"passes": 0.25}, accounting="rdp", loss="squared", background=-1.0)

    def plan(self, problem: Declaration, mechanisms: Mechanisms, settings: Any) -> None:
        T = self.iterations(problem, settings)
        sampler = mechanisms.without_replacement(problem.n, 1, label="gradient of one row")
        multiplier = sampler.noise_multiplier(T) * MULTIPLES[settings.noise]
        mechanisms.plan_all("gradient of one row", sampler.plan(T, multiplier))

    def run(self, problem: Problem, W: Array, mechanisms: Mechanisms, settings: Settings, trace: Trace) -> Array:
        n, T = problem.n, self.iterations(problem, settings)
        sampler = mechanisms.without_replacement(n, 1, label="gradient of one row")
        multiplier = sampler.noise_multiplier(T) * MULTIPLES[settings.noise]
        rows, noise = sampler.one_row_steps(T, problem.d, noise_multiplier=multiplier)
        advance = one_row.stepper(problem)
        step, clip = np.asarray(settings.step), np.asarray(settings.clip)
        size = max(ROWS, BLOCK // problem.d)
        trace(0, W, passes=0)
        t = 0
        while t < T:
            stop = min(t + size, T, trace.next if trace.next > t else T)
            for members, drawn, block in zip(mechanisms.streams, rows[:, t:stop], noise.block(stop - t), strict=True):
                advance(W[members], drawn, block, step[members], clip[members])
            t = stop
            trace(t, W, passes=t / n)
        return W
