"""The methods of the released code beside forms of them that keep their ε; every one adds the ridge I to XᵀX.

Rows have ‖x‖₂ ≤ 1 and labels |y| ≤ 1, so under add/remove XᵀX moves by 1 in Frobenius norm and Xᵀy by 1. The ridge is
the problem's own: n·l2 = 1.
"""

import math
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from dpbench.algorithms.base import Algorithm, AuditCase, BaseSettings, Disclosure, Needs
from dpbench.privacy.ledger import ConvexPerturbation, Gaussian, at_rho

EXACT, PUBLISHED = "exact", "published"
FAILURE = 0.05  # ϱ of adassp.m
LIPSCHITZ = 2.0  # of a row's gradient (<x, w> - y)x on ‖w‖ ≤ 1
GRAM = Disclosure("gram", "XᵀX", count="1", add_remove="1", why="‖x‖ ≤ 1")
MOMENTS = Disclosure("moments", "Xᵀy, labels clipped to ±1", count="1", add_remove="1", why="‖x‖ ≤ 1, |y| ≤ 1")


class Wang(Algorithm):
    """What the methods share."""

    home = "wang2018"
    paper_accounting = "tight"
    accountings: ClassVar = ("tight",)
    needs = Needs(quadratic=True, regularisers=("l2",))
    delta = 1e-6

    def work(self, n, d, settings):
        """A Gram matrix and a few factorisations of it."""
        return 2.0 * n * d * d + 30.0 * d**3

    def audit_case(self):
        """Labels as they are, where they decide."""
        return AuditCase(loss="squared", steepest=False)


class Zero(Wang):
    """w-0: releases w = 0, which no data have a part in: "trivial" in the released code."""

    name = "w-0"
    title = "w = 0"
    private = False  # a baseline: nothing is released that a ledger could count
    unpaid = "nothing: it looks at no data"

    def run(self, problem, W, mechanisms, settings, trace):
        """Zeros (k, d)."""
        return np.zeros_like(W)


class SSP(Wang):
    """ssp-2018: w = (XᵀX + n·l2·I + E)⁻¹(Xᵀy + e) (suffstats_perturb.m); E has independent entries.

    Published: both with the standard deviation √ln(4/δ)/ε, as if each release were the only one, and E not symmetric.
    Exact: both at half of what ε allows two Gaussian releases.
    """

    name = "ssp-2018"
    title = "SSP"
    discloses = (GRAM, MOMENTS)

    class Settings(BaseSettings, frozen=True):
        """calibration: of the noise, see the class."""

        calibration: Literal["exact", "published"] = "exact"

    def flaw(self, settings, accounting=""):
        """Two releases, each at the noise of one."""
        return "two releases at ε each cost 1.59 at ε = 1, not 1" if settings.calibration == PUBLISHED else ""

    def multiplier(self, budget, settings):
        """The noise over its sensitivity, of each of the two."""
        if settings.calibration == PUBLISHED:
            return math.sqrt(math.log(4 / budget.delta)) / budget.epsilon
        return at_rho(budget.rho / 2).noise_multiplier

    def plan(self, problem, mechanisms, settings):
        """Two Gaussian releases."""
        for label in ("gram", "moments"):
            mechanisms.plan(label, Gaussian(self.multiplier(mechanisms.budget, settings)), 1)

    def run(self, problem, W, mechanisms, settings, trace):
        """Solutions (k, d)."""
        z = self.multiplier(mechanisms.budget, settings)
        gram, moments = noisy_sums(problem, len(W), mechanisms, z)
        return solved(gram + problem.n * problem.l2 * np.eye(problem.d), moments)


class AdaSSP2018(Wang):
    """adassp-2018: AdaSSP with the constants of adassp.m: three releases at s = √ln(6/δ)/(ε/3).

    λ̃ = max(0, λ_min(XᵀX + I) + s·g - ln(6/δ)/(ε/3)), λ = max(0, s√(d ln(2d²/ϱ)) - λ̃). The noise on XᵀX is
    (G + Gᵀ)/2. It pays more than it has to: ε = 0.60 where 1 is stated. dpbench's adassp spends all of its ε.
    """

    name = "adassp-2018"
    title = "AdaSSP, constants as released"
    discloses = (
        Disclosure("eigenvalue", "λ_min(XᵀX)", count="1", add_remove="1", why="Weyl, ‖x‖ ≤ 1"),
        GRAM,
        MOMENTS,
    )

    def multiplier(self, budget):
        """s, of all three."""
        return math.sqrt(math.log(6 / budget.delta)) / (budget.epsilon / 3)

    def plan(self, problem, mechanisms, settings):
        """Three Gaussian releases."""
        for label in ("eigenvalue", "gram", "moments"):
            mechanisms.plan(label, Gaussian(self.multiplier(mechanisms.budget)), 1)

    def run(self, problem, W, mechanisms, settings, trace):
        """Solutions (k, d)."""
        (k, d), s = W.shape, self.multiplier(mechanisms.budget)
        least = problem.least_eigenvalue(problem.hessian_sum(np.zeros(d)))
        least = mechanisms.gaussian(np.tile(least, k), sensitivity=1.0, noise_multiplier=s, label="eigenvalue")
        gram, moments = noisy_sums(problem, k, mechanisms, s)
        gram = (gram + gram.transpose(0, 2, 1)) / 2
        own = problem.n * problem.l2
        least = np.maximum(0.0, least + own - s * math.sqrt(math.log(6 / mechanisms.budget.delta)))
        ridge = np.maximum(0.0, s * math.sqrt(d * math.log(2 * d * d / FAILURE)) - least)
        return solved(gram + (own + ridge)[:, None, None] * np.eye(d), moments)


class ObjPert2018(Wang):
    """objpert-2018: min ½‖Xw - y‖² + (Λ/2)‖w‖² + <b, w> over ‖w‖ ≤ 1, after Kifer, Smith and Thakurta (2012).

    Exact: Λ = 2/ε, and the noise that the accountant of perturbed objectives asks for at L = 2: more than half of the
    theorem's L√(8 ln(2/δ) + 4ε)/ε, which is for neighbours of one row more or less, and would cost 1.19 at ε = 1.
    Published (ObjPert.m): Λ = 2/ε², less than the theorem's for ε > 1, and L√(4 ln(2/δ) + 2ε)/ε².
    half: minimise ‖Rw - v/2‖ with RᵀR = XᵀX + ΛI and Rᵀv = Xᵀy - b, as its
    line 45 has it: half of Xᵀy, so that the estimate is about half as long.
    """

    name = "objpert-2018"
    title = "Objective perturbation"
    either = True
    discloses = (
        Disclosure(
            "minimiser",
            "the minimiser of the objective with <b, w> added",
            "objective perturbation",
            "1",
            add_remove="2",
            why="|<x, w> - y| ≤ 2 where ‖w‖ ≤ 1, one rank a row",
        ),
    )

    class Settings(BaseSettings, frozen=True):
        """calibration: of ridge and noise; half: of Xᵀy, see the class."""

        calibration: Literal["exact", "published"] = "exact"
        half: bool = False

    def flaw(self, settings, accounting=""):
        """Where a proof covers the constants only for small ε, or not at all."""
        if settings.half:
            return "with half of Xᵀy a row moves the gradient by 3, and the noise is for 2"
        return "ridge and noise are below the theorem's for ε > 1" if settings.calibration == PUBLISHED else ""

    def constants(self, budget, settings):
        """(Λ, what is released)."""
        epsilon = budget.epsilon
        if settings.calibration == PUBLISHED:
            z = math.sqrt(4 * math.log(2 / budget.delta) + 2 * epsilon) / epsilon**2
            return 2 / epsilon**2, ConvexPerturbation(z, epsilon**2 / 2, budget.relation)
        event = ConvexPerturbation(1.0, epsilon / 2, budget.relation)
        return 2 / epsilon, replace(event, noise_multiplier=budget.noise_scale(((event, 1),)))

    def plan(self, problem, mechanisms, settings):
        """One perturbed objective."""
        mechanisms.plan("minimiser", self.constants(mechanisms.budget, settings)[1], 1)

    def run(self, problem, W, mechanisms, settings, trace):
        """Minimisers (k, d)."""
        ridge, event = self.constants(mechanisms.budget, settings)
        moved = mechanisms.budget.relation.rows * LIPSCHITZ
        b = mechanisms.linear_term(problem.d, sensitivity=moved, event=event, label="minimiser")
        c = (problem.label_moments(1.0) - b) / (2 if settings.half else 1)
        return within_ball(problem.hessian_sum(np.zeros(problem.d)) + ridge * np.eye(problem.d), c)


def noisy_sums(problem, k: int, mechanisms: Any, z: float):
    """XᵀX (k, d, d), with noise on every entry, and Xᵀy (k, d), both at the noise multiplier z."""
    gram, moments = problem.hessian_sum(np.zeros(problem.d)), problem.label_moments(1.0)
    return (
        mechanisms.gaussian(np.tile(gram, (k, 1, 1)), sensitivity=1.0, noise_multiplier=z, label="gram"),
        mechanisms.gaussian(np.tile(moments, (k, 1)), sensitivity=1.0, noise_multiplier=z, label="moments"),
    )


def solved(A, b):
    """A⁻¹b of each replicate, (k, d)."""
    return np.linalg.solve(A, b[:, :, None])[:, :, 0]


def within_ball(H, c):
    """argmin ½wᵀHw - <c, w> over ‖w‖ ≤ 1 for each c (k, d): (H + μI)⁻¹c with the least μ ≥ 0 that keeps it within."""
    values, vectors = np.linalg.eigh(H)
    turned = c @ vectors
    low, high = np.zeros(len(c)), np.linalg.norm(c, axis=1)  # ‖(H + μI)⁻¹c‖ ≤ ‖c‖/μ
    inside = np.linalg.norm(turned / values, axis=1) <= 1
    for _ in range(80):  # halves the interval: to the last digit
        middle = (low + high) / 2
        long = np.linalg.norm(turned / (values + middle[:, None]), axis=1) > 1
        low, high = np.where(long, middle, low), np.where(long, high, middle)
    return (turned / (values + np.where(inside, 0.0, high)[:, None])) @ vectors.T
