"""The methods of the released code beside forms of them that keep their ε; every one adds the ridge I to XᵀX.

Rows have ‖x‖₂ ≤ 1 and labels |y| ≤ 1, so under add/remove XᵀX moves by 1 in Frobenius norm and Xᵀy by 1. The ridge is
the problem's own: n·l2 = 1.
"""

import math
from typing import Any, ClassVar, Literal

import numpy as np
from dpbench.algorithms import base as dp
from dpbench.privacy.ledger import ConvexPerturbation, Gaussian, at_rho
from msgspec.structs import replace

PUBLISHED = "published"
FAILURE = 0.05  # ϱ of adassp.m
LIPSCHITZ = 2.0  # of a row's gradient (<x, w> - y)x on ‖w‖ ≤ 1
GRAM = dp.Disclosure("gram", "XᵀX", count="1", add_remove="1", why="‖x‖ ≤ 1")
MOMENTS = dp.Disclosure("moments", "Xᵀy, labels clipped to ±1", count="1", add_remove="1", why="‖x‖ ≤ 1, |y| ≤ 1")


class Calibrated(dp.BaseSettings, frozen=True):
    """calibration: of the noise, see the class."""

    calibration: Literal["exact", "published"] = "exact"


class Wang(dp.Algorithm):
    """What the methods share."""

    home = "wang2018"
    paper_accounting = "tight"
    accountings: ClassVar = ("tight",)
    needs = dp.Needs(quadratic=True, regularisers=("l2",))
    delta = 1e-6

    def work(self, n, d, settings):
        return 2.0 * n * d * d + 30.0 * d**3

    audit_case = dp.AuditCase(loss="squared", steepest=False)  # labels as they are, where they decide

    def plan(self, problem, mechanisms, settings):
        for one in self.discloses:
            mechanisms.plan(one.label, Gaussian(self.multiplier(mechanisms.budget, settings)), 1)


class SSP(Wang):
    """ssp-2018: w = (XᵀX + n·l2·I + E)⁻¹(Xᵀy + e) (suffstats_perturb.m); E has independent entries.

    Published: both with the standard deviation √ln(4/δ)/ε, as if each release were the only one, and E not symmetric.
    Exact: both at half of what ε allows two Gaussian releases.
    """

    name = "ssp-2018"
    title = "SSP"
    discloses = (GRAM, MOMENTS)
    Settings = Calibrated

    def flaw(self, settings, accounting=""):
        return "two releases at ε each cost 1.59 at ε = 1, not 1" if settings.calibration == PUBLISHED else ""

    def multiplier(self, budget, settings):
        if settings.calibration == PUBLISHED:
            return math.sqrt(math.log(4 / budget.delta)) / budget.epsilon
        return at_rho(budget.rho / 2).noise_multiplier

    def run(self, problem, W, mechanisms, settings, trace):
        gram, moments = noisy_sums(problem, len(W), mechanisms, self.multiplier(mechanisms.budget, settings))
        return solved(gram + problem.n * problem.l2 * np.eye(problem.d), moments)


class AdaSSP2018(Wang):
    """adassp-2018: AdaSSP with the constants of adassp.m: three releases at s = √ln(6/δ)/(ε/3).

    λ̃ = max(0, λ_min(XᵀX + I) + s·g - ln(6/δ)/(ε/3)), λ = max(0, s√(d ln(2d²/ϱ)) - λ̃). The noise on XᵀX is
    (G + Gᵀ)/2. It pays more than it has to: ε = 0.60 where 1 is stated. dpbench's adassp spends all of its ε.
    """

    name = "adassp-2018"
    title = "AdaSSP, constants as released"
    discloses = (
        dp.Disclosure("eigenvalue", "λ_min(XᵀX)", count="1", add_remove="1", why="Weyl, ‖x‖ ≤ 1"), GRAM, MOMENTS,
    )  # fmt: skip

    def multiplier(self, budget, settings):
        return math.sqrt(math.log(6 / budget.delta)) / (budget.epsilon / 3)

    def run(self, problem, W, mechanisms, settings, trace):
        (k, d), s, own = W.shape, self.multiplier(mechanisms.budget, settings), problem.n * problem.l2
        least = problem.least_eigenvalue(problem.hessian_sum(np.zeros(d)))
        least = mechanisms.gaussian(np.tile(least, k), sensitivity=1.0, noise_multiplier=s, label="eigenvalue")
        gram, moments = noisy_sums(problem, k, mechanisms, s)
        least = np.maximum(0.0, least + own - s * math.sqrt(math.log(6 / mechanisms.budget.delta)))
        ridge = np.maximum(0.0, s * math.sqrt(d * math.log(2 * d * d / FAILURE)) - least)
        return solved((gram + gram.transpose(0, 2, 1)) / 2 + (own + ridge)[:, None, None] * np.eye(d), moments)


class ObjPert2018(Wang):
    """objpert-2018: min ½‖Xw - y‖² + (Λ/2)‖w‖² + <b, w> over ‖w‖ ≤ 1, after Kifer, Smith and Thakurta (2012).

    Exact: Λ = 2/ε, and the noise that the accountant of perturbed objectives asks for at L = 2: more than half of the
    theorem's L√(8 ln(2/δ) + 4ε)/ε, which is for neighbours of one row more or less, and would cost 1.19 at ε = 1.
    Published (ObjPert.m): Λ = 2/ε², less than the theorem's for ε > 1, and L√(4 ln(2/δ) + 2ε)/ε².
    half: minimise ‖Rw - v/2‖ with RᵀR = XᵀX + ΛI and Rᵀv = Xᵀy - b, as its line 45 has it: half of Xᵀy, so that the
    estimate is about half as long.
    """

    name = "objpert-2018"
    title = "Objective perturbation"
    either = True
    discloses = (
        dp.Disclosure(
            "minimiser", "the minimiser of the objective with <b, w> added", "objective perturbation", "1",
            add_remove="2", why="|<x, w> - y| ≤ 2 where ‖w‖ ≤ 1, one rank a row",
        ),
    )  # fmt: skip

    class Settings(Calibrated, frozen=True):
        """half: of Xᵀy, see the class."""

        half: bool = False

    def flaw(self, settings, accounting=""):
        if settings.half:
            return "with half of Xᵀy a row moves the gradient by 3, and the noise is for 2"
        return "ridge and noise are below the theorem's for ε > 1" if settings.calibration == PUBLISHED else ""

    def event(self, budget, settings):
        """What is released of the minimiser; its curvature is 1/Λ."""
        epsilon = budget.epsilon
        if settings.calibration == PUBLISHED:
            z = math.sqrt(4 * math.log(2 / budget.delta) + 2 * epsilon) / epsilon**2
            return ConvexPerturbation(z, epsilon**2 / 2, budget.relation)
        event = ConvexPerturbation(1.0, epsilon / 2, budget.relation)
        return replace(event, noise_multiplier=budget.noise_scale(((event, 1),)))

    def plan(self, problem, mechanisms, settings):
        mechanisms.plan("minimiser", self.event(mechanisms.budget, settings), 1)

    def run(self, problem, W, mechanisms, settings, trace):
        event = self.event(mechanisms.budget, settings)
        moved = mechanisms.budget.relation.rows * LIPSCHITZ
        b = mechanisms.linear_term(problem.d, sensitivity=moved, event=event, label="minimiser")
        c = (problem.label_moments(1.0) - b) / (2 if settings.half else 1)
        return within_ball(problem.hessian_sum(np.zeros(problem.d)) + np.eye(problem.d) / event.curvature, c)


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
