"""Newton's method with double noise for logistic regression, on all rows or on Poisson samples (Ganesh et al. 2023).

Runs may go back to their start when an iterate has left a ball: by a public radius, or by second_order's. A start from
which Newton's method is thrown far off never comes back, and one such seed of thirty ruins a mean. What has been
released decides whether an iterate is outside the ball, so that with a radius known before the run going back is
post-processing and costs nothing. The published radius, 100‖w*‖ + 200, is of the optimum of the data.
"""

from __future__ import annotations

import functools
import math
import weakref
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import msgspec
import numpy as np

from dpbench.algorithms import base as dp
from dpbench.errors import UserError
from dpbench.files import peak_of
from dpbench.privacy.ledger import at_rho
from dpbench.privacy.sampling import Sampler
from dpbench.problems import Problem, optimum

AT_OPTIMUM = "optimum"
Reset: TypeAlias = Annotated[float, msgspec.Meta(gt=0)] | Literal["optimum"] | None
FLAW = "it goes back to its start at ‖w‖ > 100‖w*‖ + 200, and w* is the optimum of the data"
TOLERANCE = 1e-9  # ‖∇F‖ at which ‖w*‖ is taken: where there is no minimum it grows with each digit (covertype-max: 171)


def flaw(reset: Reset) -> str:
    """Why a run with this setting keeps no ε; "" where it does."""
    return FLAW if reset == AT_OPTIMUM else ""


def radius(problem: Problem, reset: Reset) -> float:
    """The ‖w‖ beyond which a run goes back to its start; infinite for none."""
    if reset is None:
        return np.inf
    if reset == AT_OPTIMUM:
        return 100 * _norm_of_optimum(weakref.ref(problem)) + 200
    return float(reset)


@functools.lru_cache(maxsize=32)
def _norm_of_optimum(problem: weakref.ref[Problem]) -> float:
    alive = problem()
    assert alive is not None
    return float(np.linalg.norm(optimum.solve_newton(alive, TOLERANCE)))


def back_inside(W: np.ndarray, start: np.ndarray, radius: float) -> np.ndarray:
    """W (k, d) with the rows of `start` (k, d) where ‖w‖₂ > radius, or w is no longer a number."""
    if radius == np.inf:
        return W
    with np.errstate(all="ignore"):
        inside = np.linalg.norm(W, axis=1) <= radius
    return np.where(inside[:, None], W, start)


SMOOTHNESS = 1 / 4  # of the logistic loss for ‖x‖₂ ≤ 1: one example moves n·H by at most this, in trace


def _direction(value: str, when: str, why: str, one: str, both: str = "") -> dp.Disclosure:
    """one, both: the sensitivity under add/remove, and under replace-one where it is less than twice that."""
    return dp.Disclosure("direction", value, add_remove=one, replace_one=both, why=why, when=when)


def _directions(adding: dict[str, Any], clipping: dict[str, Any]) -> tuple[dp.AuditCase, dp.AuditCase]:
    """Canaries of the direction, with further settings of what adds and of what clips.

    In one dimension g̃ lies in the worst direction. What adds feels a row most where there is no curvature but its own,
    what clips where the others' alone is λ₀ or little more.
    """
    adding, clipping = {**adding, "modification": "add", "lambda0": 0.5}, {**clipping, "modification": "clip"}
    return (
        dp.AuditCase(adding, d=1, bend=1.0, label="direction"),
        dp.AuditCase(clipping, n=100, d=1, background=1.0, bend=1.0, label="direction"),
    )


class DPNewton(dp.Algorithm):
    """dp-newton: noisy gradient, curvature with its eigenvalues lifted to λ₀, noisy direction.

    Each of the T iterations releases
      1. the gradient, Δ = 1/n, for a share 1-θ of ρ/T (Algorithm 5, line 14; the text's ∇ℓ);
      2. the trace of the curvature H, Δ = 1/(4n), for θγ: it sets λ₀ (Algorithm 5, lines 15-17);
      3. the direction H̃⁻¹g̃, Δ = ‖g̃‖/(4nλ₀² - λ₀) for clip, ‖g̃‖/(4nλ₀² + λ₀) for add, for θ(1-γ)
         (Theorems B.2 and B.3).
    H is the Hessian ("hess") or the paper's quadratic upper bound ("qu"). "clip" raises the eigenvalues
    below λ₀ to λ₀; "add" takes H + λ₀I. With `lambda0` given, λ₀ is fixed, nothing is spent on the trace
    and the whole share θ goes to the direction (Algorithm 3). With `tight`, directions have the sensitivities of
    `sharp_sensitivities`. `measure_memory` changes nothing in the run. With `reset` an iterate beyond that radius is
    put back to the run's start (`algorithms.resetting`); "optimum" is the published radius, which is not private.
    """

    name = "dp-newton"
    title = "DP-Newton"
    revisions: ClassVar = {"tight": 2}  # the direction's sensitivities
    in_reals = "its directions are computed in float64 from a Hessian that has no noise"
    needs = dp.Needs(convex=True, gradient=1.0, hessian=SMOOTHNESS)
    diagnostics = (dp.MEASURED[0], dp.NOTES)  # of `measure_memory`
    discloses = (
        dp.Disclosure("gradient", "the mean gradient", add_remove="1/n", why="‖x‖₂ ≤ 1 and |ℓ'| ≤ 1"),
        dp.Disclosure(
            "trace",
            "the trace of the mean curvature, which sets λ₀",
            add_remove="1/(4·n)",
            replace_one="1/(4·n)",
            why="a row's trace is in [0, 1/4]",
            when="lambda0 not given",
        ),
        _direction(
            "H̃⁻¹g̃, with the curvature's eigenvalues raised to λ₀",
            "modification=clip",
            "Ganesh et al. (2023), Theorem B.2",
            "‖g̃‖/(4·n·λ₀² - λ₀)",
        ),
        _direction("(H + λ₀I)⁻¹g̃", "modification=add", "Ganesh et al. (2023), Theorem B.3", "‖g̃‖/(4·n·λ₀² + λ₀)"),
        _direction(
            "H̃⁻¹g̃",
            "modification=clip, tight",
            "x ↦ 1/max(x, λ₀) is λ₀⁻²-Lipschitz in Frobenius norm (algorithms/newton.py)",
            "‖g̃‖/(4·n·λ₀²)",
            "√2·‖g̃‖/(4·n·λ₀²)",
        ),
        _direction(
            "(H + λ₀I)⁻¹g̃",
            "modification=add, tight",
            "Sherman and Morrison (algorithms/newton.py)",
            "‖g̃‖/(4·n·λ₀² + λ₀)",
            "‖g̃‖/(4·n·λ₀² + λ₀)",
        ),
    )

    class Settings(dp.BaseSettings, frozen=True):
        T: dp.Count = 10
        curvature: Literal["hess", "qu"] = "hess"
        modification: Literal["clip", "add"] = "clip"
        beta: dp.Positive = 1.0
        theta: dp.Share = 0.3
        gamma: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.1
        lambda0: dp.Positive | None = None
        measure_memory: bool = False
        reset: Reset = None

    def flaw(self, settings, accounting=""):
        return super().flaw(settings, accounting) or flaw(settings.reset)

    def complete(self, problem, settings):
        lambda0 = settings.lambda0
        if lambda0 is not None and settings.modification == "clip" and lambda0 <= SMOOTHNESS / problem.n:
            raise UserError(
                f"dp-newton: lambda0 = {lambda0:g} with clip must exceed 1/(4n) = "
                f"{SMOOTHNESS / problem.n:.3g} (Theorem B.2); raise it or use modification=add"
            )
        return settings

    canaries = (
        dp.AuditCase({"theta": 0.9, "gamma": 0.9}, bend=1.0, label="trace"),
        # Next to L₁, with so many other rows that one is next to none.
        *_directions({"theta": 0.9}, {"theta": 0.9, "lambda0": SMOOTHNESS * (1 - 1 / 100)}),
    )

    def work(self, n, d, settings):
        return settings.T * (2.0 * n * d * (d + 2) + 20.0 * d**3)

    def measure(self, problem, outcome, settings, generators):
        """With `measure_memory`: the bytes that modifying the last Hessian and solving with it took (C.7)."""
        if not settings.measure_memory:
            return {}
        curvatures = problem.data_hessian(outcome.W, settings.curvature)
        pairs = [peak_of_modification(H, settings.modification) for H in curvatures]
        return {
            "measured": [peak - before for before, peak in pairs],
            "notes": [f"peak of the process {peak} bytes" for _, peak in pairs],
        }

    @staticmethod
    def shares(rho: Any, settings: DPNewton.Settings) -> tuple[Any, Any, Any]:
        """What of an iteration's ρ, a number or (k,), goes to the gradient, the trace and the direction."""
        theta, gamma = settings.theta, settings.gamma if settings.lambda0 is None else 0.0
        return (1 - theta) * rho, theta * gamma * rho, theta * (1 - gamma) * rho

    def plan(self, problem, mechanisms, settings):
        T = settings.T
        gradient, trace, direction = self.shares(mechanisms.budget.rho / T, settings)
        mechanisms.plan("gradient", at_rho(gradient), T)
        if settings.lambda0 is None:
            mechanisms.plan("trace", at_rho(trace), T)
        mechanisms.plan("direction", at_rho(direction), T)

    def run(self, problem, W, mechanisms, settings, trace):
        n, T = problem.n, settings.T
        rho_gradient, rho_trace, rho_direction = self.shares(mechanisms.budget.rho / T, settings)
        start, farthest = W, radius(problem, settings.reset)
        trace(0, W, passes=0)
        for t in range(1, T + 1):
            gradient = mechanisms.gaussian(
                problem.data_gradient(W), sensitivity=1 / n, rho=rho_gradient, label="gradient"
            )
            H = problem.data_hessian(W, settings.curvature)
            if settings.lambda0 is None:
                noisy = mechanisms.gaussian(
                    np.trace(H, axis1=1, axis2=2),
                    sensitivity=SMOOTHNESS / n,
                    rho=rho_trace,
                    label="trace",
                    replaced=SMOOTHNESS / n,  # a row's trace is in [0, 1/4]: another in its place moves it no further
                )
                # Algorithm 5, lines 16-17. A noisy trace may be negative, and Theorem B.2 asks for λ₀ > 1/(4n).
                lambda0 = settings.beta * np.cbrt(np.maximum(noisy, 0) / (n**2 * rho_direction))
                lambda0 = np.maximum(lambda0, 1 / n)
            else:
                # Given, it uses no data: nothing is released for it, and the direction gets its share.
                lambda0 = np.full(len(W), settings.lambda0)
            direction = SOLVE[settings.modification](H, gradient, lambda0)
            norms = np.linalg.norm(gradient, axis=1)
            one, both = sensitivities(n, lambda0, settings.modification, sharp=mechanisms.least_sensitivities)
            W = W - mechanisms.gaussian(
                direction,
                sensitivity=norms * one,
                rho=rho_direction,
                label="direction",
                replaced=norms * both,
            )
            W = back_inside(W, start, farthest)
            trace(t, W, passes=2 * t)
        return W


def peak_of_modification(H: dp.Array, modification: str) -> tuple[int, int]:
    """(resident before, peak while) H (d, d) is modified and solved with, in bytes, in a fresh process."""
    small, large = ((np.eye(2)[None], np.ones((1, 2))), (H[None], np.ones((1, len(H)))))
    lambda0 = np.full(1, 1e-3)
    return peak_of(SOLVE[modification], *large, lambda0, warm_up=(*small, lambda0))


def inverse_sensitivity(n: float, lambda0: float | dp.Array, modification: str) -> float | dp.Array:
    """sup ‖(H̃⁻¹ - H̃'⁻¹) g‖ / ‖g‖ over neighbours: 1/(4nλ₀² ∓ λ₀) (Theorems B.2 for clip, B.3 for add)."""
    sign = -1 if modification == "clip" else 1
    return 1 / (4 * n * lambda0**2 + sign * lambda0)


def sensitivities(n: float, lambda0: dp.Array, modification: str, *, sharp: bool) -> tuple[dp.Array, dp.Array]:
    """Of a direction over ‖g‖, under add/remove and replace-one: the sharp ones, or the paper's and twice that."""
    if sharp:
        return sharp_sensitivities(n, lambda0, modification)
    one = np.asarray(inverse_sensitivity(n, lambda0, modification))
    return one, 2 * one


def sharp_sensitivities(n: float, lambda0: dp.Array, modification: str) -> tuple[dp.Array, dp.Array]:
    """sup ‖(H̃⁻¹ - H̃'⁻¹) g‖ / ‖g‖ under add/remove and under replace-one, from rows of curvature at most 1/4.

    add: R₀ = (H₀ + λ₀I)⁻¹ without the row. Sherman and Morrison: with it the inverse is R₀ less a positive semidefinite
    matrix of norm at most c = 1/(4nλ₀² + λ₀). So both neighbours' inverses lie between R₀ - cI and R₀, and are within c
    of each other under replace-one too; attained by H₀ = 0.

    clip: x ↦ 1/max(x, λ₀) is λ₀⁻²-Lipschitz on the line, hence on symmetric matrices in Frobenius norm (Bhatia 1997,
    Section X.5: in the basis of both spectral decompositions, entry by entry). A row moves H by 1/(4n) in that norm,
    another one in its place by √2/(4n), both terms being positive semidefinite. No condition on λ₀.
    """
    if modification == "add":
        one = 1 / (4 * n * lambda0**2 + lambda0)
        return one, one
    one = 1 / (4 * n * lambda0**2)
    return one, math.sqrt(2) * one


def clip_and_solve(H: dp.Array, G: dp.Array, lambda0: dp.Array) -> dp.Array:
    """Ψ_λ₀(H)⁻¹ g with eigenvalues below λ₀ raised to λ₀. H (k, d, d), G (k, d), lambda0 (k,) → (k, d)."""
    values, vectors = np.linalg.eigh(H)
    coordinates = (G[:, None, :] @ vectors)[:, 0, :] / np.maximum(values, lambda0[:, None])
    return (vectors @ coordinates[:, :, None])[:, :, 0]


def add_and_solve(H: dp.Array, G: dp.Array, lambda0: dp.Array) -> dp.Array:
    """(H + λ₀I)⁻¹ g by Cholesky. H (k, d, d), G (k, d), lambda0 (k,) → (k, d)."""
    from scipy.linalg import cho_factor, cho_solve

    eye = np.eye(H.shape[1])
    return np.stack([cho_solve(cho_factor(h + l * eye), g) for h, g, l in zip(H, G, lambda0, strict=True)])


SOLVE = {"clip": clip_and_solve, "add": add_and_solve}


def _on_a_sample(one: dp.Disclosure) -> dp.Disclosure:
    """What dp-newton says of a direction, with the sample's size b for n."""
    return replace(
        one,
        value=f"{one.value.partition(',')[0]} of the sample's curvature, b its (expected) size",
        mechanism="Gaussian on a sample",
        add_remove=one.add_remove.replace("n", "b"),
        replace_one=one.replace_one.replace("n", "b"),
        why=one.why if "tight" in one.when else f"{one.why}, with b for n",
    )


class DPNewtonMinibatch(dp.Algorithm):
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
        dp.Disclosure(
            "gradient",
            "the sum of the sample's gradients",
            "Gaussian on a sample",
            add_remove="1",
            why="‖x‖₂ ≤ 1 and |ℓ'| ≤ 1",
        ),
        *(_on_a_sample(one) for one in DPNewton.discloses if one.label == "direction"),
    )

    class Settings(dp.BaseSettings, frozen=True):
        T: dp.Count = 20
        curvature: Literal["hess", "qu"] = "hess"
        modification: Literal["clip", "add"] = "add"
        lambda0: dp.Positive = 0.01
        theta: dp.Share = 0.3
        gradient_rate: dp.Share = 0.1
        curvature_rate: dp.Share = 0.1
        reset: Reset = None

    def flaw(self, settings, accounting=""):
        return super().flaw(settings, accounting) or flaw(settings.reset)

    audit_case = dp.AuditCase({"T": 1, "gradient_rate": 0.5, "curvature_rate": 0.5})

    # With 90 of 100 rows in a sample, whose number varies by 3 %, and λ₀ at 0.95 of their mean curvature.
    canaries = _directions(
        {"T": 1, "gradient_rate": 0.5, "theta": 0.9, "curvature_rate": 0.5},
        {"T": 1, "gradient_rate": 0.5, "theta": 0.9, "curvature_rate": 0.9, "lambda0": 0.95 * SMOOTHNESS},
    )

    def work(self, n, d, settings):
        rows = n * (settings.gradient_rate + settings.curvature_rate * (d / 2 + 1))
        return settings.T * (8.0 * rows * d + 20.0 * d**3)

    @staticmethod
    def _calibrated(
        problem: dp.Declaration, mechanisms: dp.Mechanisms, settings: Any
    ) -> tuple[Sampler, Sampler, float, float]:
        """The samples of gradients and of directions, and the noise multiplier of either."""
        n, T, theta = problem.n, settings.T, settings.theta
        p_g, p_H = settings.gradient_rate, settings.curvature_rate
        gradients = mechanisms.poisson(n, p_g, label="gradient")
        directions = mechanisms.poisson(n, p_H, label="direction", replaced=mechanisms.least_sensitivities)
        if mechanisms.least_sensitivities:
            z_g, z_H = p_g / math.sqrt(1 - theta), p_H / math.sqrt(theta)
            # One search for all 2T releases: split budgets would add two tails, each calibrated apart.
            factor = mechanisms.budget.noise_scale((*gradients.plan(T, z_g), *directions.plan(T, z_H)))
            z_g, z_H = z_g * factor, z_H * factor
        else:
            z_g, z_H = gradients.noise_multiplier(T, share=1 - theta), directions.noise_multiplier(T, share=theta)
        return gradients, directions, z_g, z_H

    def plan(self, problem, mechanisms, settings):
        gradients, directions, z_g, z_H = self._calibrated(problem, mechanisms, settings)
        mechanisms.plan_all("gradient", gradients.plan(settings.T, z_g))
        mechanisms.plan_all("direction", directions.plan(settings.T, z_H))

    def run(self, problem, W, mechanisms, settings, trace):
        T = settings.T
        p_g, p_H = settings.gradient_rate, settings.curvature_rate
        gradients, directions, z_g, z_H = self._calibrated(problem, mechanisms, settings)
        b = directions.size
        lambda0 = np.asarray(settings.lambda0)
        if settings.modification == "clip":
            lambda0 = np.maximum(lambda0, 1 / b)
        one, both = sensitivities(b, lambda0, settings.modification, sharp=mechanisms.least_sensitivities)
        start, farthest = W, radius(problem, settings.reset)
        trace(0, W, passes=0)
        for t in range(1, T + 1):
            # Replicates have samples of their own, so no product over the data serves them all.
            total = np.stack([problem.gradient_sum(w, rows) for w, rows in zip(W, gradients.draw(), strict=True)])
            gradient = gradients.gaussian(total, sensitivity=1.0, noise_multiplier=z_g) / gradients.size
            H = np.stack(
                [
                    problem.hessian_sum(w, rows, settings.curvature) / b
                    for w, rows in zip(W, directions.draw(), strict=True)
                ]
            )
            norms = np.linalg.norm(gradient, axis=1)
            # The noisy gradient is released already, so the direction's sensitivity may depend on its norm.
            W = W - directions.gaussian(
                SOLVE[settings.modification](H, gradient, lambda0),
                sensitivity=norms * one,
                noise_multiplier=z_H,
                replaced=norms * both,
            )
            W = back_inside(W, start, farthest)
            trace(t, W, passes=t * (p_g + p_H))
        return W
