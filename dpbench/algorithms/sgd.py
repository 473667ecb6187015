"""Stochastic gradient descent on Poisson samples."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from dpbench.algorithms.base import (
    Algorithm,
    Array,
    AuditCase,
    BaseSettings,
    Count,
    Declaration,
    Disclosure,
    Mechanisms,
    Needs,
    Positive,
    Problem,
    Share,
    Trace,
    at_default_step,
)


class DPSGD(Algorithm):
    """dp-sgd: w ← w - η (Σ_{i∈B} ∇f_i + N(σ²I)) / (np), B a Poisson sample of rate p (Abadi et al. 2016).

    One example moves the sum over a sample by at most L₀ (add/remove), so σ = z·L₀ with z the noise multiplier
    at which T Poisson-sampled Gaussian releases are (ε, δ)-DP (Mironov, Talwar and Zhang 2019; no clipping:
    the loss is L₀-Lipschitz). Rate 0.02 and step 1/L₁ are those of Ganesh et al. 2023, Section 6.4. Under replace-one
    two rows move the sum in opposite directions at worst, which `tight` counts as it is (`ledger.PoissonReplaced`);
    other accountings take samples of a fixed size.
    """

    name = "dp-sgd"
    title = "DP-SGD"
    revisions: ClassVar = {"tight": 3}  # samples under replace-one
    paper_accounting = "rdp"
    accountings = ("tight", "rdp")
    exact = "sums"
    needs = Needs(lipschitz=True, regularisers=("l2", "w2"))
    per_replicate: ClassVar = frozenset({"step"})
    discloses = (
        Disclosure(
            "gradient", "the sum of the sample's gradients", "Gaussian on a sample", add_remove="L₀", why="‖∇f_i‖ ≤ L₀"
        ),
    )

    class Settings(BaseSettings, frozen=True):
        T: Count = 1000
        rate: Share = 0.02
        step: Positive | None = None

    def complete(self, problem: Declaration, settings: Settings) -> Settings:
        return at_default_step(problem, settings)

    def audit_case(self) -> AuditCase:
        return AuditCase({"T": 2, "rate": 0.5})

    def work(self, n: int, d: int, settings: Settings) -> float:
        return settings.T * (8.0 * n * settings.rate * d + 2e6)

    def plan(self, problem: Declaration, mechanisms: Mechanisms, settings: Any) -> None:
        sampler = mechanisms.poisson(problem.n, settings.rate, label="gradient")
        mechanisms.plan_all("gradient", sampler.plan(settings.T, sampler.noise_multiplier(settings.T)))

    def run(self, problem: Problem, W: Array, mechanisms: Mechanisms, settings: Settings, trace: Trace) -> Array:
        sampler = mechanisms.poisson(problem.n, settings.rate, label="gradient")
        multiplier = sampler.noise_multiplier(settings.T)
        step = np.asarray(settings.step)[:, None]
        trace(0, W, passes=0)
        for t in range(1, settings.T + 1):
            total = np.stack([problem.gradient_sum(w, rows) for w, rows in zip(W, sampler.draw(), strict=True)])
            noisy = sampler.gaussian(total, sensitivity=problem.lipschitz, noise_multiplier=multiplier)
            penalty = sum(r.gradient(W) for r in problem.regularisers.values())
            W = W - step * (noisy / sampler.size + penalty)
            trace(t, W, passes=t * settings.rate)
        return W
