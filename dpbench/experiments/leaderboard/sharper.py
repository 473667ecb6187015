"""What the better bounds of `tight` save: the noise of each method before and after, at one public (n, d)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from dpbench.algorithms import aop
from dpbench.algorithms.newton import inverse_sensitivity, sharp_sensitivities
from dpbench.errors import UserError
from dpbench.experiments.leaderboard.board import LEVELS
from dpbench.privacy import Budget, Relation
from dpbench.privacy import correlated as matrices
from dpbench.privacy.accounting.gaussian import growth
from dpbench.privacy.ledger import Counts, Gaussian, PoissonReplaced, WithoutReplacement
from dpbench.problems.losses import Logistic, Sigmoid
from dpbench.study.context import Context
from dpbench.study.declare import artefact
from dpbench.study.output import Table

N, D = 45_222, 105  # of adult with an intercept; δ = n⁻²
T, LAMBDA0, THETA, RATE = 10, 0.01, 0.3, 0.1  # dp-newton's defaults, and the minibatch's at T = 10
CONTRACTION, STEPS = 0.96, 300  # of dp-gd-last: step 4 and l2 = 0.01
EPOCHS, BATCHES = 10, 16

Pair = tuple[float, float]  # before and after; inf: out of reach with any noise


@dataclass(frozen=True)
class Bound:
    """One release of one method; `noise(tight, before)` under two budgets of one (ε, δ)."""

    method: str
    what: str
    before: str
    noise: Callable[[Budget, Budget], Pair]


def _objective(logistic: bool = True, *, rows: int = 2) -> Callable[[Budget, Budget], Pair]:
    """b under replace-one, which changes two rows, or under add/remove, which changes one."""

    def noise(tight: Budget, before: Budget) -> Pair:
        split = aop.split_budget(before.epsilon, before.delta)
        tight = tight if rows == 2 else replace(tight, relation=Relation.ADD_REMOVE)
        plan = aop.joint_plan(tight, D, logistic=logistic)
        after = tight.noise_scale(plan) * plan[0][0].noise_multiplier
        return rows * aop.multiplier(split.noise, split.delta), rows * after

    return noise


def _output(tight: Budget, before: Budget) -> Pair:
    split = aop.split_budget(before.epsilon, before.delta)
    plan = aop.joint_plan(tight, D)
    after = tight.noise_scale(plan) * plan[1][0].noise_multiplier * 2 * plan[0][0].curvature / Logistic.smoothness
    multiplier = aop.multiplier(split.output, split.output_delta)
    return multiplier * split.jacobian / Logistic.smoothness, after


def _sampled(rate: float, steps: int, poisson: bool = False) -> Callable[[Budget, Budget], Pair]:
    fixed = ((WithoutReplacement(N, round(rate * N), Gaussian(1.0)), steps),)
    plan: Counts = ((PoissonReplaced(rate, Gaussian(1.0)), steps),) if poisson else fixed
    return lambda tight, before: (2 * _scale(before, fixed), 2 * tight.noise_scale(plan))


def _scale(budget: Budget, plan: Counts, share: float = 1.0) -> float:
    try:
        return budget.noise_scale(plan, share)
    except UserError:
        return math.inf


def _direction(modification: str) -> Callable[[Budget, Budget], Pair]:
    lambda0 = np.array(LAMBDA0)
    before = 2 * inverse_sensitivity(N, lambda0, modification)
    after = sharp_sensitivities(N, lambda0, modification)[1]
    unit = N * math.sqrt(T / (2 * THETA))
    return lambda tight, _: (unit * float(before) / math.sqrt(tight.rho), unit * float(after) / math.sqrt(tight.rho))


def _minibatch(release: int, modification: str = "add") -> Callable[[Budget, Budget], Pair]:
    one = WithoutReplacement(N, round(RATE * N), Gaussian(1.0))
    shares = (1 - THETA, THETA)
    lambda0 = np.array(LAMBDA0)
    paper = 2 * float(inverse_sensitivity(N * RATE, lambda0, modification))
    sharp = float(sharp_sensitivities(N * RATE, lambda0, modification)[1])
    moves = ((2.0, 2.0), (N * RATE * paper, N * RATE * sharp))[release]

    def noise(tight: Budget, before: Budget) -> Pair:
        relative = [1 / math.sqrt(share) for share in shares]
        gradients = PoissonReplaced(RATE, Gaussian(relative[0]))
        plan: Counts = ((gradients, T), (WithoutReplacement(one.n, one.m, Gaussian(relative[1])), T))
        after = tight.noise_scale(plan) * relative[release]
        return moves[0] * _scale(before, ((one, T),), shares[release]), moves[1] * after

    return noise


def _hessian(loss: Logistic | Sigmoid, diagonal: bool) -> Callable[[Budget, Budget], Pair]:
    after = (math.sqrt(2) if loss.convex else 2.0) * loss.smoothness * (1.0 if diagonal else math.sqrt(0.5))
    return lambda tight, _: (2 * math.sqrt(D) / math.sqrt(2 * tight.rho), after / math.sqrt(2 * tight.rho))


def _statistic(sharp: float) -> Callable[[Budget, Budget], Pair]:
    """One of adassp's three releases, in R²: twice the add/remove sensitivity of 1, and the replace-one one."""
    return lambda tight, _: (2 * math.sqrt(1.5 / tight.rho), sharp * math.sqrt(1.5 / tight.rho))


def _gradient(tight: Budget, _: Budget) -> Pair:
    return 2 / math.sqrt(2 * tight.rho), 2 * Sigmoid.lipschitz / math.sqrt(2 * tight.rho)


def _last(final: bool, fast: float = 0.0) -> Callable[[Budget, Budget], Pair]:
    """Final standard deviation over η·2L₀ in a direction that contracts by `fast` (that of c for `final`)."""
    by = CONTRACTION if final else fast
    back = np.arange(STEPS)

    def noise(tight: Budget, _: Budget) -> Pair:
        mu = math.sqrt(2 * tight.rho)
        growing = np.sqrt((CONTRACTION**back).sum()) * CONTRACTION ** (-back / 2) / mu
        constant = growth(STEPS, CONTRACTION) / mu
        return float(np.linalg.norm(growing * by**back)), float(np.linalg.norm(constant * by**back))

    return noise


def _constant_composed(tight: Budget, _: Budget) -> Pair:
    mu = math.sqrt(2 * tight.rho)
    return math.sqrt(STEPS) / mu, growth(STEPS, CONTRACTION) / mu


def _correlated(tight: Budget, _: Budget) -> Pair:
    """Standard deviation of the noise in the sum of all steps, over L₀."""
    steps, errors = EPOCHS * BATCHES, []
    for bands in (1, BATCHES):
        C = sum(c * np.eye(steps, k=-j) for j, c in enumerate(matrices.coefficients(bands)))
        spread = float(np.linalg.norm(np.linalg.solve(C.T, np.ones(steps))))
        errors.append(2 * spread * matrices.sensitivity(steps, BATCHES, bands) / math.sqrt(2 * tight.rho))
    return errors[0], errors[1]


BOUNDS = (
    Bound("aop", "b, sum of gradients, in L₀", "basic composition", _objective()),
    Bound("aop, any other convex loss", "b, sum of gradients, in L₀", "basic composition", _objective(False)),
    Bound("aop, add/remove", "b, sum of gradients, in L₀", "basic composition", _objective(rows=1)),
    Bound("aop, add/remove, any other loss", "b, sum of gradients, in L₀", "basic composition",
          _objective(False, rows=1)),
    Bound("aop", "output, in nγ (L₀ = 1)", "its own 1 % of ε", _output),
    Bound("dp-sgd", "sum of gradients, in L₀ (q = 0.02, T = 1,000)", "Rényi DP, fixed size",
          _sampled(0.02, 1000, poisson=True)),
    Bound("the same on samples of fixed size", "sum of gradients, in L₀", "Rényi DP", _sampled(0.02, 1000)),
    Bound("opt-b, dp-tr-b", "sum of gradients, in L₀ (q = 0.02, 2T = 842)", "Rényi DP", _sampled(0.02, 842)),
    *(Bound(f"dp-newton, {m}", f"direction, in ‖g̃‖/n (λ₀ = {LAMBDA0}, T = {T})", "twice add/remove", _direction(m))
      for m in ("add", "clip")),
    Bound("dp-newton-minibatch", f"sum of gradients, in L₀ (q = {RATE}, T = {T})", "Rényi DP, two shares",
          _minibatch(0)),
    *(Bound(f"dp-newton-minibatch, {m}", f"direction, in ‖g̃‖/(nq) (λ₀ = {LAMBDA0})", "the same, twice add/remove",
            _minibatch(1, m)) for m in ("add", "clip")),
    Bound("opt, dp-tr: loss A", "one Hessian at all of ε, diagonal, times n", "2√d", _hessian(Logistic(), True)),
    Bound("opt, dp-tr: loss A", "the same, off the diagonal", "2√d", _hessian(Logistic(), False)),
    Bound("opt, dp-tr: loss B", "one Hessian at all of ε, diagonal, times n", "2√d", _hessian(Sigmoid(), True)),
    Bound("opt, dp-tr: loss B", "one gradient at all of ε, times n", "2", _gradient),
    Bound("adassp", "λ_min(XᵀX), in R²", "twice add/remove", _statistic(1.0)),
    Bound("adassp", "XᵀX, diagonal, in R²", "twice add/remove", _statistic(math.sqrt(2))),
    Bound("dp-gd-last", f"a step, in 2L₀/n (c = {CONTRACTION}, T = {STEPS})", "plain composition", _constant_composed),
    Bound("dp-gd-last", "last iterate, slowest direction, in 2ηL₀/n", "composition, growing variances", _last(True)),
    Bound("dp-gd-last", "last iterate, direction that contracts by 1/2", "composition, growing variances",
          _last(False, 0.5)),
    Bound("dp-mf", f"noise in the sum of all steps, in L₀ (k = {EPOCHS}, b = {BATCHES})", "independent noise",
          _correlated),
)  # fmt: skip


def bounds() -> Iterator[tuple[Bound, float, Pair]]:
    """(bound, ε, noise before and after)."""
    for one in BOUNDS:
        for epsilon in LEVELS.values():
            tight, rdp = (Budget(epsilon, N**-2.0, Relation.REPLACE_ONE, mode) for mode in ("tight", "rdp"))
            yield one, epsilon, one.noise(tight, rdp)


@artefact("sharper_bounds", "Noise before and after the better bounds")
def sharper_bounds(context: Context) -> Table:
    """A row per release, a column per ε: before → after. Formulas: no rows."""
    rows_of = list(bounds())
    data = pd.DataFrame(
        [(b.method, b.what, b.before, e, *pair, pair[1] / pair[0]) for b, e, pair in rows_of],
        columns=["method", "noise", "before_by", "epsilon", "before", "after", "ratio"],
    )
    rows = [[one.method, one.what, one.before, *[_cell(*pair) for b, _, pair in rows_of if b is one]] for one in BOUNDS]
    header = ["method", "noise of", "before", *[f"ε = {e:g}" for e in LEVELS.values()]]
    caption = (
        f"Standard deviation of the noise before → after the better bounds (and their ratio), at n = {N:,}, d = {D}, "
        "δ = n⁻². ∞: no noise is enough. A formula: no runs."
    )
    method = (
        "A formula, no runs. Numbers are standard deviations before → after (and after over before), at replace-one "
        f"unless the line says otherwise, n = {N:,}, d = {D}, δ = n⁻². ∞: no amount of noise gives this ε. Before: "
        "the noise of `tight`, or of the method's best accounting, at that time. For dp-gd-last and dp-mf it is that "
        "of an alternative method with the same privacy; a ratio above 1 means that the alternative is better."
    )
    return Table(pd.DataFrame(rows, columns=header), caption, data, method=method)


def _cell(before: float, after: float) -> str:
    if math.isinf(before):
        return f"∞ → {after:.4g}"
    return f"{before:.4g} → {after:.4g} ({after / before:.2f})"
