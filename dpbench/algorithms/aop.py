"""Approximate objective perturbation (Iyengar et al. 2019, Algorithm 1: "AMP")."""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np

from dpbench.algorithms.audit_case import AuditCase
from dpbench.algorithms.base import Algorithm, Needs, Outcome
from dpbench.errors import UserError
from dpbench.privacy.relation import Relation

OUTPUT_SHARE = 0.01  # of ε and of δ, for the noise that hides the solver's inexactness
RANK = 2  # of the change of the Hessian when one row is replaced by another
MAX_ITERATIONS = 200


class Split(NamedTuple):
    """How (ε, δ) is spent: on b (noise), on the ratio of Jacobians (jacobian), and on the output."""

    noise: float
    jacobian: float
    delta: float
    output: float
    output_delta: float


class ApproximateObjectivePerturbation(Algorithm):
    """aop: minimise f(w) + Λ/(2n)‖w‖² + <b, w> to ‖∇‖ ≤ γ = 1/n², then add noise to the minimiser.

    Replace-one neighbours: the gradient moves by Δ = 2L₀/n, and b ~ N(0, (Δ(1 + √(2 ln(1/δ_obj)))/ε_p)²I) costs ε_p
    at δ_obj = 0.99δ; the Hessian changes by rank 2, so Λ = 2L₁/(ε_obj - ε_p) bounds the log-ratio of the Jacobians
    by ε_obj - ε_p, ε_obj = 0.99ε (Kifer, Smith and Thakurta 2012, Theorem 2). Two γ-approximate minima of the
    Λ/n-strongly convex objective are within 2nγ/Λ: noise of that times (1 + √(2 ln(1/δ_out)))/ε_out hides
    which, with the ε_out = 0.01ε, δ_out = 0.01δ that are left (the published code has nγ/Λ). The (ε, δ) add up.

    No iterations to tune. A solver that does not reach γ makes the run fail: the guarantee rests on it.
    """

    name = "aop"
    title = "AOP"
    relation = Relation.REPLACE_ONE
    paper_accounting = "basic"
    accountings: ClassVar = ("basic",)
    needs = Needs(losses=("logistic",))

    def audit_case(self):
        return AuditCase(n=300)  # where the noise on the output, 1/n² to the solver's tolerance, is small beside b's

    def work(self, n, d, settings):
        return 20 * (2.0 * n * d * (d + 2) + d**3)

    def run(self, problem, W, mechanisms, settings, trace):
        n, gamma = problem.n, problem.n**-2
        split = split_budget(mechanisms.budget.epsilon, mechanisms.budget.delta)
        ridge = RANK * problem.smoothness / split.jacobian / n
        b = mechanisms.linear_term(
            problem.d,
            sensitivity=2 * problem.lipschitz / n,
            noise_multiplier=multiplier(split.noise, split.delta),
            jacobian=split.jacobian,
            delta=split.delta,
            label="objective",
        )
        W, norms, evaluations = minimise(problem, np.zeros_like(W), b, ridge, gamma)
        W = mechanisms.gaussian(
            W,
            sensitivity=2 * gamma / ridge,
            noise_multiplier=multiplier(split.output, split.output_delta),
            label="output",
        )
        reached = norms <= gamma
        W[~reached] = np.nan  # not fit to be released
        return Outcome(
            W,
            status=["done" if fine else "failed" for fine in reached],
            columns={
                "hessian_evaluations": evaluations,
                "error": [
                    "" if fine else f"solver stopped at ‖∇‖ = {norm:.3g}, above the 1/n² = {gamma:.3g} it promised"
                    for fine, norm in zip(reached, norms, strict=True)
                ],
            },
        )


def split_budget(epsilon: float, delta: float) -> Split:
    """The published split of (ε, δ); UserError where 0 < ε_obj - ε_p < 1 fails."""
    objective = (1 - OUTPUT_SHARE) * epsilon
    fraction = max(min(0.88671 + 0.0186607 / epsilon**0.372906, 0.99), 1 - 1 / epsilon + 0.001)
    jacobian = objective * (1 - fraction)
    if not 0 < jacobian < 1:
        raise UserError(f"aop: at epsilon = {epsilon:g} its split leaves {jacobian:g} for the Hessian, not in (0, 1)")
    return Split(
        objective - jacobian, jacobian, (1 - OUTPUT_SHARE) * delta, OUTPUT_SHARE * epsilon, OUTPUT_SHARE * delta
    )


def multiplier(epsilon: float, delta: float) -> float:
    """(1 + √(2 ln(1/δ)))/ε: Gaussian noise over sensitivity at which ε holds up to probability δ."""
    return (1 + math.sqrt(-2 * math.log(delta))) / epsilon


def minimise(problem, W, b, ridge: float, gamma: float):
    """Newton's method with Armijo's rule on f(w) + ridge/2 ‖w‖² + <b, w> for each row of W and b (k, d).

    Returns the minimisers, their gradient norms (k,) and the number of Hessians each took (k,).
    """

    def value(V, rows):
        return problem.value(V) + ridge / 2 * (V * V).sum(axis=1) + (b[rows] * V).sum(axis=1)

    def gradient(V, rows):
        return problem.gradient(V) + ridge * V + b[rows]

    W, evaluations = W.copy(), np.zeros(len(W), dtype=int)
    G = gradient(W, slice(None))
    for _ in range(MAX_ITERATIONS):
        active = np.flatnonzero(np.linalg.norm(G, axis=1) > gamma)
        if not len(active):
            break
        evaluations[active] += 1
        H = problem.hessian(W[active]) + ridge * np.eye(problem.d)
        direction = np.linalg.solve(H, -G[active][:, :, None])[:, :, 0]
        slope = (G[active] * direction).sum(axis=1)
        start, step = value(W[active], active), np.ones(len(active))
        for _ in range(40):
            ends = value(W[active] + step[:, None] * direction, active)
            # Near the minimum the values differ by rounding only: the slack lets the last full steps through.
            poor = ~(ends <= start + 1e-4 * step * slope + 1e-14 * np.abs(start))
            if not poor.any():
                break
            step[poor] /= 2
        W[active] += step[:, None] * direction
        G[active] = gradient(W[active], active)
    return W, np.linalg.norm(G, axis=1), evaluations
