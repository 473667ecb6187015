"""Approximate objective perturbation (Iyengar et al. 2019, Algorithm 1: "AMP").

Where a solver starts on many rows: the minimiser on some of them, and from there by gradients of all rows alone.

With m of n rows, the minimiser is off by about √(d/m) and the Hessian by as much, relatively. So a step by the sample's
Hessian takes the gradient down by a factor of about √(m/d), and BFGS updates of it by more each time: five gradients or
so take the place of seven Hessians. Of rows kept as float32 these are float32 gradients, down to what float32 tells;
there one float32 Hessian of all rows, for the price of a float64 gradient or two, leaves a single step to be made in
float64. What is returned is a start, however good: the caller sees to the rest.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from dpbench.algorithms import base as dp
from dpbench.errors import UserError
from dpbench.privacy import Budget
from dpbench.privacy.accounting.objective_perturbation import free_curvature
from dpbench.privacy.accounting.pure import likely_multiplier
from dpbench.privacy.ledger import ConvexPerturbation, Gaussian, LogisticPerturbation, ObjectivePerturbation, scaled
from dpbench.problems import optimum

MANY = 2**17  # rows from which a Hessian of all costs more than this saves
SHARE, LEAST, MOST = 64, 2**14, 2**18  # of the rows, one in so many; no fewer, no more
ROWS_A_COLUMN, ENTRIES = 16, 2**26  # of a sample, which is dense: at least, and at most
STEPS = 15
FALL = 1 / 2  # of the gradient's norm by a step, or what comes next goes on
SINGLE = 3e-8  # a mean gradient's norm from which float32 gets no nearer
NARROW = 64  # columns up to which a float32 Hessian costs less than the float64 gradients that it spares

Minimise = Callable[..., tuple[dp.Array, dp.Array, np.ndarray]]
Gradient = Callable[[dp.Problem, dp.Array, np.ndarray], dp.Array]


def from_sample(
    minimise: Minimise, gradient: Gradient, problem: dp.Problem, W: dp.Array, b: dp.Array, ridge: float, gamma: float
) -> tuple[dp.Array, dp.Array, np.ndarray]:
    """(iterates (k, d), their gradients, the Hessians that each took), of few rows W and theirs.

    gradient: (problem, iterates, which of b they have) → those of the objective. Every so-manieth row makes the sample:
    where rows come in an order, the order is in it.
    """
    n, (k, d) = problem.n, W.shape
    everyone = np.arange(k)
    step = max(1, n // max(LEAST, min(MOST, n // SHARE)))
    if n < MANY or problem.loss.outputs > 1 or not d * ROWS_A_COLUMN <= n // step <= ENTRIES / d:
        return W, gradient(problem, W, everyone), np.zeros(k, dtype=int)
    declared: dict[str, Any] = {"l2": problem.l2, "w2": problem.w2}
    X, y = problem.take(np.arange(step // 2, n, step))
    sample = dp.Problem(np.asarray(X, dtype=float), y, loss=problem.loss, **declared)
    W, _, evaluations = minimise(sample, W, b, ridge, 1e-2 / np.sqrt(sample.n))
    inverses = np.linalg.inv(sample.hessian(W) + ridge * np.eye(d))
    evaluations = evaluations + 1
    rough = problem.in_float32
    if rough is not None:
        W, _, inverses = _descended(functools.partial(gradient, rough), W, inverses, max(gamma, SINGLE))
        if d <= NARROW:
            inverses = np.linalg.inv(rough.hessian(W) + ridge * np.eye(d))
            evaluations = evaluations + 1
    W, G, _ = _descended(functools.partial(gradient, problem), W, inverses, gamma)
    return W, G, evaluations


def _descended(
    gradient: Callable[[dp.Array, np.ndarray], dp.Array], W: dp.Array, inverses: dp.Array, gamma: float
) -> tuple[dp.Array, dp.Array, dp.Array]:
    """(iterates, gradients, inverse Hessians) after BFGS steps, while they take the gradients down, to γ at best."""
    d = W.shape[1]
    active = np.arange(len(W))
    G = gradient(W, active)
    for _ in range(STEPS):
        active = active[np.linalg.norm(G[active], axis=1) > gamma]
        if not len(active):
            break
        moves = -(inverses[active] @ G[active][:, :, None])[:, :, 0]
        ends = W[active] + moves
        slopes = gradient(ends, active)
        # A step that does not halve the gradient ends this: Newton's steps on all rows go on from there.
        fell = np.linalg.norm(slopes, axis=1) <= FALL * np.linalg.norm(G[active], axis=1)
        changes = slopes - G[active]
        active, moves, changes = active[fell], moves[fell], changes[fell]
        W[active], G[active] = ends[fell], slopes[fell]
        for i, s, c in zip(active, moves, changes, strict=True):
            # Else the secant condition has no positive definite solution, and the old inverse stays.
            if (bend := s @ c) > 0:
                left = np.eye(d) - np.outer(s, c) / bend
                inverses[i] = left @ inverses[i] @ left.T + np.outer(s, s) / bend
    return W, G, inverses


OUTPUT_SHARE = 0.01  # of ε and of δ, for the noise that hides the solver's inexactness
MAX_ITERATIONS = 200
STEADY, HALVINGS = 30, 16  # iterations, and steps that each tries, where their number may not depend on the data


class BudgetShares(NamedTuple):
    """How (ε, δ) is spent: on b (noise), on the ratio of Jacobians (jacobian), and on the output."""

    noise: float
    jacobian: float
    delta: float
    output: float
    output_delta: float


SOLVER = (replace(dp.HESSIANS, meaning="Hessians that the solver took", of_data=True),)


def objective_disclosure(why: str, mechanism: str = "objective perturbation") -> dp.Disclosure:
    """The minimiser itself, which is charged for and never seen."""
    return dp.Disclosure(
        "objective",
        "the exact minimiser of the objective with <b, w> added, seen through the next release",
        mechanism,
        "1",
        add_remove="L₀/n",
        why=f"‖∇f_i‖ ≤ L₀; {why}",
    )


def output_disclosure(mechanism: str = "Gaussian", where: str = "") -> dp.Disclosure:
    """What hides the error of a solver that promises a gradient of norm at most γ."""
    return dp.Disclosure(
        "output",
        "the solver's approximate minimiser",
        mechanism,
        "1",
        add_remove="2·γ/ridge",
        replace_one="2·γ/ridge",
        why=f"two γ-approximate minima of a ridge-strongly convex objective{where}; ridge = Λ/n",
    )


def solved(W: dp.Array, norms: dp.Array, gamma: float, evaluations: np.ndarray) -> dp.RunResult:
    """The outcome of released W (k, d), whose solver promised norms of at most gamma: else not fit to be released."""
    reached = norms <= gamma
    # The noise hides a point within γ of the minimiser, and this is none: not fit to be released.
    W[~reached] = np.nan
    return dp.RunResult(
        W,
        {"hessian_evaluations": evaluations},
        refusals=[
            "" if fine else f"solver stopped at ‖∇‖ = {norm:.3g}, above the γ = {gamma:.3g} it promised"
            for fine, norm in zip(reached, norms, strict=True)
        ],
    )


class ReleasedMinimiser(dp.Algorithm):
    """What the methods share that find a minimiser to a public tolerance, and release it with noise."""

    relation = dp.Relation.REPLACE_ONE
    either = True
    exact = "minimiser"
    paper_accounting = "tight"
    accountings: ClassVar[tuple[str, ...]] = ("tight", "pure")
    needs = dp.Needs(convex=True, lipschitz=True, smooth=True, regularisers=("l1", "l2"))
    diagnostics = SOLVER

    def work(self, n, d, settings):
        return newton_work(n, d)


class ApproximateObjectivePerturbation(ReleasedMinimiser):
    """aop: minimise f(w) + Λ/(2n)‖w‖² + <b, w> to ‖∇‖ ≤ γ = 1/n², then add noise to the minimiser.

    Replace-one neighbours differ in r = 2 rows, add/remove ones in r = 1: the gradient moves by Δ = rL₀/n, and
    b ~ N(0, (Δ(1 + √(2 ln(1/δ_obj)))/ε_p)²I) costs ε_p at δ_obj = 0.99δ; the Hessian changes by rank r, so
    Λ = rL₁/(ε_obj - ε_p) bounds the log-ratio of the Jacobians by ε_obj - ε_p, ε_obj = 0.99ε (Kifer, Smith and Thakurta
    2012, Theorem 2). Two γ-approximate minima of the Λ/n-strongly convex objective are within 2nγ/Λ: noise of that
    times (1 + √(2 ln(1/δ_out)))/ε_out hides which, with the ε_out = 0.01ε, δ_out = 0.01δ that are left (the published
    code has nγ/Λ). The (ε, δ) add up.

    With `tight`, gradient and Hessian are bounded together and the output's noise is composed with them exactly
    (`privacy.accounting.objective_perturbation`). Λ is a number of ε and δ alone: of the logistic loss the least at
    which the Jacobian is free, of any other the L₁/(e^J - 1) that takes the published share J = ε_obj - ε_p of ε for
    it. The output gets a share 1/(1 + dΛ/L₁) of μ², as the public guess of a Hessian L₁/d I has it: the excess loss of
    both noises, d²σ_b²/(2L₁) + L₁σ_out²/2, is then least.

    `fraction` and `smoothness` stand in for the published share ε_p/ε_obj and for L₁, both under `basic` alone; with
    rows = "undivided" the minimiser is that of the rows before their division by max(1, ‖x‖₂), while noise and Λ are
    for ‖x‖₂ ≤ 1: what second_order's authors ran (0.9, 1, undivided), and no guarantee.

    No iterations to tune. A solver that does not reach γ makes the run fail: the guarantee rests on it.
    """

    name = "aop"
    title = "AOP"
    paper_accounting = "basic"
    accountings: ClassVar = ("tight", "basic")
    needs = dp.Needs(convex=True, lipschitz=True, smooth=True)
    discloses = (
        objective_disclosure("the Hessian's part: one rank a row, or jointly with the gradient under tight"),
        output_disclosure(where=", γ = 1/n²"),
    )

    class Settings(dp.BaseSettings, frozen=True):
        fraction: dp.Share | None = None
        smoothness: dp.Positive | None = None
        rows: Literal["divided", "undivided"] = "divided"

    def flaw(self, settings, accounting=""):
        if settings.rows == "undivided":
            return "it sees rows of norms above 1, and its noise is for norms up to 1"
        return super().flaw(settings, accounting)

    def complete(self, problem, settings):
        if settings.smoothness is not None and settings.smoothness < problem.smoothness:
            raise UserError(
                f"aop: smoothness = {settings.smoothness:g} is below the loss's {problem.smoothness:g}; raise it"
            )
        return settings

    # Where the noise on the output, 1/n² to the solver's tolerance, is small beside b's, and its share of μ² too.
    audit_case = dp.AuditCase(accounting="tight", n=300, d=16)

    @staticmethod
    def _calibrated(
        problem: dp.Declaration, mechanisms: dp.Mechanisms, settings: Any
    ) -> tuple[Gaussian, LogisticPerturbation | ObjectivePerturbation]:
        """The release of the output, and that of the objective."""
        budget = mechanisms.budget
        if mechanisms.least_sensitivities:
            if problem.loss.logistic:
                curvature = free_curvature(budget.epsilon, budget.delta, budget.relation)
            else:
                curvature = math.expm1(split_budget(budget.epsilon, budget.delta).jacobian)
            event, output = jointly(problem, budget, curvature)
            return output, event
        split = split_budget(budget.epsilon, budget.delta, settings.fraction)
        objective = ObjectivePerturbation(likely_multiplier(split.noise, split.delta), split.jacobian, split.delta)
        return Gaussian(likely_multiplier(split.output, split.output_delta)), objective

    def plan(self, problem, mechanisms, settings):
        output, objective = self._calibrated(problem, mechanisms, settings)
        mechanisms.plan("objective", objective, 1)
        mechanisms.plan("output", output, 1)

    def run(self, problem, W, mechanisms, settings, trace):
        n, gamma = problem.n, problem.n**-2
        rows = mechanisms.budget.relation.rows
        sensitivity = rows * problem.lipschitz / n
        output, event = self._calibrated(problem, mechanisms, settings)
        if isinstance(event, LogisticPerturbation):
            ridge = problem.smoothness / event.curvature / n
        else:
            ridge = rows * (settings.smoothness or problem.smoothness) / event.jacobian / n
        b = mechanisms.linear_term(problem.d, sensitivity=sensitivity, event=event, label="objective")
        seen = problem if settings.rows == "divided" else undivided(problem)
        W, norms, evaluations = seen.approximate_minimiser(minimise, np.zeros_like(W), b, ridge, gamma)
        # The solver stops anywhere within γ/ridge of the exact minimiser: two points of that ball are 2γ/ridge apart.
        W = mechanisms.gaussian(
            W, sensitivity=2 * gamma / ridge, noise_multiplier=output.noise_multiplier, label="output"
        )
        return solved(W, norms, gamma, evaluations)


def jointly(problem: dp.Declaration, budget: Budget, curvature: float) -> tuple[LogisticPerturbation, Gaussian]:
    """b at `curvature` = β/Λ and the output, which spend the budget together; the output's share of μ² as of `aop`."""
    share = 1 / (1 + problem.d / curvature)
    kind = LogisticPerturbation if problem.loss.logistic else ConvexPerturbation
    event, output = kind((1 - share) ** -0.5, curvature, budget.relation), Gaussian(share**-0.5)
    scale = budget.noise_scale(((event, 1), (output, 1)))
    return scaled(event, scale), scaled(output, scale)  # type: ignore[return-value]


def undivided(problem: dp.Problem) -> dp.Problem:
    """The rows as they were before the division by max(1, ‖x‖₂), which a column of ones in front tells.

    UserError without such a column.
    """
    X, y = problem.take(np.arange(problem.n))
    # The column was 1 before the division, so it is 1/max(1, ‖x‖) now.
    first = X[:, :1]
    if not ((first > 0) & (first <= 1)).all():
        raise UserError("aop: rows = undivided needs a column of ones in front, as the rows had before their division")
    return dp.Problem(X / first, y, loss=problem.loss.name, row_bound=None)


def split_budget(epsilon: float, delta: float, fraction: float | None = None) -> BudgetShares:
    """The published split of (ε, δ), or with this ε_p/ε_obj; UserError where 0 < ε_obj - ε_p < 1 fails."""
    objective = (1 - OUTPUT_SHARE) * epsilon
    if fraction is None:
        fraction = published_fraction(epsilon)
    jacobian = objective * (1 - fraction)
    if not 0 < jacobian < 1:
        raise UserError(f"aop: at epsilon = {epsilon:g} its split leaves {jacobian:g} for the Hessian, not in (0, 1)")
    return BudgetShares(
        objective - jacobian, jacobian, (1 - OUTPUT_SHARE) * delta, OUTPUT_SHARE * epsilon, OUTPUT_SHARE * delta
    )


def published_fraction(epsilon: float) -> float:
    """ε_p/ε_obj as Iyengar et al. (2019) fitted it."""
    return max(min(0.88671 + 0.0186607 / epsilon**0.372906, 0.99), 1 - 1 / epsilon + 0.001)


def newton_work(n: int, d: int) -> float:
    """Flops of a minimiser by some twenty Newton steps, each with a system of min(n, d) equations."""
    size = float(min(n, d))
    return 20 * (2 * n * d * (size + 2) + size**3)


def minimise(
    problem: dp.Problem, W: dp.Array, b: dp.Array, ridge: float, gamma: float, *, steady: bool = False
) -> tuple[dp.Array, dp.Array, np.ndarray]:
    """Newton's method with Armijo's rule on f(w) + ridge/2 ‖w‖² + <b, w> for each row of W and b (k, d).

    Returns the minimisers, their gradient norms (k,) and the number of Hessians each took (k,), on many rows those of a
    sample (`sampled_start`). steady: `STEADY` of them, of which the best iterate, whatever γ.
    """

    def value(V: dp.Array, rows: np.ndarray) -> dp.Array:
        return problem.value(V) + ridge / 2 * (V * V).sum(axis=1) + (b[rows] * V).sum(axis=1)

    def gradient_of(some: dp.Problem, V: dp.Array, rows: np.ndarray) -> dp.Array:
        return some.gradient(V) + ridge * V + b[rows]

    gradient = functools.partial(gradient_of, problem)
    W = W.copy()
    if steady:
        G = gradient(W, np.arange(len(W)))
        for i in range(len(W)):
            one = np.array([i])
            W[one], G[one] = _steadily(
                functools.partial(value, rows=one),
                functools.partial(gradient, rows=one),
                lambda V, g: _newton(problem, V, ridge, g),
                W[one],
            )
        return W, np.linalg.norm(G, axis=1), np.full(len(W), STEADY)
    W, G, evaluations = from_sample(minimise, gradient_of, problem, W, b, ridge, gamma)
    for _ in range(MAX_ITERATIONS):
        # Each replicate stops at its own iterate, so that a batch changes no replicate's result.
        active = np.flatnonzero(np.linalg.norm(G, axis=1) > gamma)
        if not len(active):
            break
        evaluations[active] += 1
        direction = _newton(problem, W[active], ridge, -G[active])
        slope = (G[active] * direction).sum(axis=1)
        start, step = value(W[active], active), np.ones(len(active))
        linear = (b[active] * W[active]).sum(axis=1)  # it may cancel the rest, to a value far below its rounding
        rounding = 1e-14 * (np.abs(start - linear) + np.abs(linear))
        for _ in range(40):
            ends = value(W[active] + step[:, None] * direction, active)
            # Near the minimum the values differ by rounding only: the slack lets the last full steps through.
            poor = ~(ends <= start + 1e-4 * step * slope + rounding)
            if not poor.any():
                break
            step[poor] /= 2
        W[active] += step[:, None] * direction
        G[active] = gradient(W[active], active)
    return W, np.linalg.norm(G, axis=1), evaluations


def _newton(problem: dp.Problem, W: dp.Array, ridge: float, G: dp.Array) -> dp.Array:
    """H⁻¹g (k, d) at each row of W for that of G, H the Hessian of the objective with this ridge."""
    if optimum.fits(problem, ridge):
        m = ridge + problem.l2
        return np.stack([optimum.solve_wide(problem.hessian_root(w), m, g) for w, g in zip(W, G, strict=True)])
    H = problem.hessian(W) + ridge * np.eye(problem.d)
    return np.linalg.solve(H, G[:, :, None])[:, :, 0]


def _steadily(
    value: Callable[[dp.Array], dp.Array],
    gradient: Callable[[dp.Array], dp.Array],
    newton: Callable[[dp.Array, dp.Array], dp.Array],
    w: dp.Array,
) -> tuple[dp.Array, dp.Array]:
    """(w, gradient), each (1, d), of the best of `STEADY` iterates; all steps that Armijo's rule may take are tried.

    newton: (w, g) → H⁻¹g at w.
    """
    steps = np.ldexp(1.0, -np.arange(HALVINGS))
    g = gradient(w)
    best, least = w, g
    for _ in range(STEADY):
        direction = newton(w, -g)[0]
        start, ends = value(w)[0], value(w + steps[:, None] * direction)
        fine = ends <= start + 1e-4 * steps * (g[0] @ direction) + 1e-14 * abs(start)
        # The last halving is taken whatever it does, so that there is always a step.
        fine[-1] = True
        w = w + steps[np.argmax(fine)] * direction
        g = gradient(w)
        better = np.linalg.norm(g) < np.linalg.norm(least)
        best, least = np.where(better, w, best), np.where(better, g, least)
    return best, least
