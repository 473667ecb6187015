"""Newton's method with double noise on Poisson samples (Ganesh et al. 2023, Algorithm 7)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar, Literal

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
    Positive,
    Problem,
    Share,
    Trace,
)
from dpbench.algorithms.newton import SMOOTHNESS, SOLVE, DPNewton, sensitivities
from dpbench.algorithms.resetting import Reset, back_inside, radius
from dpbench.algorithms.resetting import flaw as flaw_of_reset
from dpbench.privacy.sampling import Sampler


def _on_a_sample(one: Disclosure) -> Disclosure:
    """What dp-newton says of a direction, with the sample's size b for n."""
    return replace(
        one,
        value=f"{one.value.partition(',')[0]} of the sample's curvature, b its (expected) size",
        mechanism="Gaussian on a sample",
        add_remove=one.add_remove.replace("n", "b"),
        replace_one=one.replace_one.replace("n", "b"),
        why=one.why if "tight" in one.when else f"{one.why}, with b for n",
    )


class DPNewtonMinibatch(Algorithm):
    """dp-newton-minibatch: dp-newton with a sample for the gradient and another for the curvature.

    An iteration releases
      1. the gradient sum over a Poisson sample of rate p_g, Δ = 1 (scaled by 1/(n p_g));
      2. the direction H̃⁻¹g̃, H = Σ_B H_i/(n p_H) over a Poisson sample of rate p_H: Theorems B.2 and B.3 with n p_H
         in place of n give Δ = ‖g̃‖/(4np_Hλ₀² - λ₀) for clip and ‖g̃‖/(4np_Hλ₀² + λ₀) for add.
    The T gradients cost ((1-θ)ε, (1-θ)δ) together and the T directions (θε, θδ): each has the noise multiplier of
    T Poisson-sampled Gaussian releases, and the two add up (Theorem C.1). λ₀ is given, no trace is released; clip
    takes max(λ₀, 1/(np_H)), as its proof asks for λ₀ > 1/(4np_H).

    With `tight`, gradients and directions are calibrated together: multipliers in proportion to p_g/√(1-θ) and p_H/√θ,
    which gives them about these shares of the variance of the privacy loss, times the least factor at which all 2T
    releases are (ε, δ)-DP. Directions then have the sensitivities of `newton.sharp_sensitivities`; under replace-one
    these are of two rows, less than twice those of one against none, and H is of samples of a fixed size.
    """

    name = "dp-newton-minibatch"
    title = "DP-Newton, minibatch"
    revisions: ClassVar = {"tight": 3}  # one calibration, the direction's sensitivities, samples under replace-one
    in_reals = "its directions are computed in float64 from a Hessian that has no noise"
    paper_accounting = "rdp"
    accountings = ("tight", "rdp")
    needs = DPNewton.needs
    per_replicate: ClassVar = frozenset({"lambda0"})
    discloses = (
        Disclosure(
            "gradient",
            "the sum of the sample's gradients",
            "Gaussian on a sample",
            add_remove="1",
            why="‖x‖₂ ≤ 1 and |ℓ'| ≤ 1",
        ),
        *(_on_a_sample(one) for one in DPNewton.discloses if one.label == "direction"),
    )

    class Settings(BaseSettings, frozen=True):
        T: Count = 20
        curvature: Literal["hess", "qu"] = "hess"
        modification: Literal["clip", "add"] = "add"
        lambda0: Positive = 0.01
        theta: Share = 0.3
        gradient_rate: Share = 0.1
        curvature_rate: Share = 0.1
        reset: Reset = None

    def flaw(self, settings: Settings, accounting: str = "") -> str:
        return super().flaw(settings, accounting) or flaw_of_reset(settings.reset)

    def audit_case(self) -> AuditCase:
        return AuditCase({"T": 1, "gradient_rate": 0.5, "curvature_rate": 0.5})

    def canaries(self) -> tuple[AuditCase, ...]:
        settings = {"T": 1, "gradient_rate": 0.5, "theta": 0.9}
        # What clips feels a row where the others of its sample have a curvature of λ₀ or little more: with 90 of 100
        # rows in a sample, whose number varies by 3 %, and λ₀ at 0.95 of their mean curvature.
        return (
            AuditCase(
                {**settings, "curvature_rate": 0.5, "modification": "add", "lambda0": 0.5},
                d=1,
                bend=1.0,
                label="direction",
            ),
            AuditCase(
                {**settings, "curvature_rate": 0.9, "modification": "clip", "lambda0": 0.95 * SMOOTHNESS},
                n=100,
                d=1,
                background=1.0,
                bend=1.0,
                label="direction",
            ),
        )

    def work(self, n: int, d: int, settings: Settings) -> float:
        rows = n * (settings.gradient_rate + settings.curvature_rate * (d / 2 + 1))
        return settings.T * (8.0 * rows * d + 20.0 * d**3)

    @staticmethod
    def _calibrated(
        problem: Declaration, mechanisms: Mechanisms, settings: Any
    ) -> tuple[Sampler, Sampler, float, float]:
        """The samples of gradients and of directions, and the noise multiplier of either."""
        n, T, theta = problem.n, settings.T, settings.theta
        p_g, p_H = settings.gradient_rate, settings.curvature_rate
        gradients = mechanisms.poisson(n, p_g, label="gradient")
        directions = mechanisms.poisson(n, p_H, label="direction", replaced=mechanisms.sharp)
        if mechanisms.sharp:
            z_g, z_H = p_g / math.sqrt(1 - theta), p_H / math.sqrt(theta)
            factor = mechanisms.budget.noise_scale((*gradients.plan(T, z_g), *directions.plan(T, z_H)))
            z_g, z_H = z_g * factor, z_H * factor
        else:
            z_g, z_H = gradients.noise_multiplier(T, share=1 - theta), directions.noise_multiplier(T, share=theta)
        return gradients, directions, z_g, z_H

    def plan(self, problem: Declaration, mechanisms: Mechanisms, settings: Any) -> None:
        gradients, directions, z_g, z_H = self._calibrated(problem, mechanisms, settings)
        mechanisms.plan_all("gradient", gradients.plan(settings.T, z_g))
        mechanisms.plan_all("direction", directions.plan(settings.T, z_H))

    def run(self, problem: Problem, W: Array, mechanisms: Mechanisms, settings: Settings, trace: Trace) -> Array:
        T = settings.T
        p_g, p_H = settings.gradient_rate, settings.curvature_rate
        gradients, directions, z_g, z_H = self._calibrated(problem, mechanisms, settings)
        b = directions.size
        lambda0 = np.asarray(settings.lambda0)
        if settings.modification == "clip":
            lambda0 = np.maximum(lambda0, 1 / b)
        one, both = sensitivities(b, lambda0, settings.modification, sharp=mechanisms.sharp)
        start, farthest = W, radius(problem, settings.reset)
        trace(0, W, passes=0)
        for t in range(1, T + 1):
            total = np.stack([problem.gradient_sum(w, rows) for w, rows in zip(W, gradients.draw(), strict=True)])
            gradient = gradients.gaussian(total, sensitivity=1.0, noise_multiplier=z_g) / gradients.size
            H = np.stack(
                [
                    problem.hessian_sum(w, rows, settings.curvature) / b
                    for w, rows in zip(W, directions.draw(), strict=True)
                ]
            )
            norms = np.linalg.norm(gradient, axis=1)
            W = W - directions.gaussian(
                SOLVE[settings.modification](H, gradient, lambda0),
                sensitivity=norms * one,
                noise_multiplier=z_H,
                replaced=norms * both,
            )
            W = back_inside(W, start, farthest)
            trace(t, W, passes=t * (p_g + p_H))
        return W
