"""Probes: jobs that run no optimiser but measure something that a report needs, so that it lands in a row.

Those of zeroth_order measure what a theorem bounds and return the start as it is. Columns: `measured`, its standard
error `measured_error`, and the theorem's `bound`.
"""

from __future__ import annotations

import json
import math
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import msgspec
import numpy as np

from dpbench.algorithms import zeroth_order
from dpbench.algorithms.base import (
    MEASURED,
    NOTES,
    Algorithm,
    Array,
    BaseSettings,
    Count,
    Declaration,
    Diagnostic,
    Mechanisms,
    Needs,
    Positive,
    Problem,
    Relation,
    RunResult,
    Trace,
)
from dpbench.algorithms.o2nc import O2NC, O2NCTree, Oracle, Rounds, VarianceReduced
from dpbench.errors import UserError
from dpbench.problems.stationarity import Kinks


class Probe(Algorithm):
    """Base of the probes; none is private, none optimises."""

    home = "zeroth_order"
    relation = Relation.REPLACE_ONE
    private = False
    paper_accounting = "standard"
    delta = 1e-6
    needs = O2NC.needs
    diagnostics = (*MEASURED, Diagnostic("bound", "what the theorem bounds `measured` by"))

    def work(self, n: int, d: int, settings: BaseSettings) -> float:
        return 1e6


class EstimatorProbe(Probe):
    """probe-estimator: variance and bias of GRAD and DIFF at the start x, on b rows drawn with replacement.

    directions: to a row, d by default as in the paper.

    quantity "variance": E‖GRAD - ∇F̂(x)‖² ≤ 16dL²/b (Lemma 3.1), E‖DIFF - (∇F̂(x) - ∇F̂(y))‖² ≤ 16dL²‖x-y‖²/(bδ²)
    (Lemma 3.2), y = x + distance·δ in a random direction; as the unbiased sample variance over `draws` estimates.
    "bias": the norm of their mean less ∇F̂ (or the difference), found by another formula, ∇F̂(x) = E ∇F(x + δv) with v
    uniform in the ball (as many draws). It has no bound but chance: `measured_error` is what chance alone gives, the
    root of the expected square.
    """

    name = "probe-estimator"
    title = "probe of GRAD and DIFF"

    class Settings(BaseSettings, frozen=True):
        estimator: Literal["grad", "diff"] = "grad"
        quantity: Literal["variance", "bias"] = "variance"
        radius: Positive = 0.1
        b: Count = 1
        distance: Positive = 0.1
        draws: Annotated[int, msgspec.Meta(ge=2)] = 1000
        directions: Count | None = None

    def run(self, problem: Problem, W: Array, mechanisms: Mechanisms, settings: Settings, trace: Trace) -> RunResult:
        d, L = problem.d, problem.lipschitz
        estimates = [self._one(problem, x, coin, settings) for x, coin in zip(W, mechanisms.coins, strict=True)]
        measured, error = np.array(estimates).T
        bound = 16 * d * L**2 / settings.b * (settings.distance**2 if settings.estimator == "diff" else 1.0)
        bounds = [bound if settings.quantity == "variance" else None] * len(W)
        return RunResult(W, columns={"measured": measured, "measured_error": error, "bound": bounds})

    def _one(self, problem: Problem, x: Array, coin: np.random.Generator, settings: Settings) -> tuple[float, float]:
        y = x + settings.distance * settings.radius * zeroth_order.directions([coin], 1, 1, problem.d)[0, 0, 0]
        estimates = np.stack([self._estimate(problem, x, y, coin, settings) for _ in range(settings.draws)])
        mean = estimates.mean(axis=0)
        squares = ((estimates - mean) ** 2).sum(axis=1) * settings.draws / (settings.draws - 1)
        if settings.quantity == "variance":
            return float(squares.mean()), float(squares.std(ddof=1)) / math.sqrt(settings.draws)
        reference = self._reference(problem, x, y, coin, settings)
        chance = (squares.mean() + reference.var(axis=0, ddof=1).sum()) / settings.draws
        return float(np.linalg.norm(mean - reference.mean(axis=0))), math.sqrt(chance)

    @staticmethod
    def _estimate(problem: Problem, x: Array, y: Array, coin: np.random.Generator, settings: Settings) -> Array:
        rows = coin.integers(problem.n, size=(1, settings.b))
        d, x, y = problem.d, x[None], y[None]

        def once(block: Array, U: Array) -> Array:
            if settings.estimator == "grad":
                return zeroth_order.grad(problem, x, block, radius=settings.radius, U=U)
            return zeroth_order.diff(problem, x, y, block, radius=settings.radius, U=U)

        return np.asarray(zeroth_order.in_blocks(once, rows, [coin], settings.directions or d, d)[0])

    @staticmethod
    def _reference(problem: Problem, x: Array, y: Array, coin: np.random.Generator, settings: Settings) -> Array:
        """(draws, d) gradients of F in the δ-ball around x, less those around y for DIFF; their mean is ∇F̂."""
        from dpbench.problems.stationarity import in_ball

        v = settings.radius * in_ball(coin, settings.draws, problem.d)
        at_x = problem.gradient(x + v)
        return at_x if settings.estimator == "grad" else at_x - problem.gradient(y + v)


class NoiseProbe(Probe):
    """probe-noise: E‖noise‖² that o2nc-tree and o2nc-naive add in round t, at the job's ε and the same M, K and T.

    mechanism "tree": ‖TREE(t)‖², at most (⌊log₂ t⌋ + 1) dσ², σ as in Corollary 4.4 (Corollary 4.5 with the count its
    2 ln t stands for). "naive": B = 2 rows a round make M = 2KT too, and the noise is dσ², σ = 2dL/(Bρ), in all rounds.
    Zeros stand for the running sums, `draws` of them side by side, so only the noise is left.
    """

    name = "probe-noise"
    title = "probe of the noise"
    B: ClassVar[int] = 2

    class Settings(BaseSettings, frozen=True):
        mechanism: Literal["tree", "naive"] = "tree"
        T: Count = 1024
        t: Count = 1
        draws: Count = 1000

    def complete(self, problem: Declaration, settings: Settings) -> Settings:
        if settings.t > settings.T:
            raise UserError(f"{self.name}: t = {settings.t} must be at most T = {settings.T}")
        return settings

    def run(self, problem: Problem, W: Array, mechanisms: Mechanisms, settings: Settings, trace: Trace) -> RunResult:
        k, d, L, rho = len(W), problem.d, problem.lipschitz, float(mechanisms.budget.rho)
        zeros = np.zeros((k, settings.draws, d))
        if settings.mechanism == "tree":
            tree = mechanisms.tree(settings.T, sensitivity=4 * d * L / settings.T, rho=rho, label="tree")
            for _ in range(settings.t):
                noise = tree.release(zeros)
            bound = (math.floor(math.log2(settings.t)) + 1) * d * float(tree.std) ** 2
        else:
            sensitivity = 2 * d * L / self.B
            noise = mechanisms.gaussian(zeros, sensitivity=sensitivity, rho=rho, label="naive")
            bound = d * sensitivity**2 / (2 * rho)
        squares = (noise**2).sum(axis=2)
        columns = {
            "measured": squares.mean(axis=1),
            "measured_error": squares.std(axis=1) / math.sqrt(settings.draws),
            "bound": [bound] * k,
        }
        return RunResult(W, columns=columns)


Mistake: TypeAlias = Literal[
    "", "no DIFF", "DIFF negated", "GRAD doubled", "radius tripled", "a third of the radius", "ascent"
]


# By what is wrong: (a, b, c, s), where g = a·g₁ + b·(g_t - g₁) by c times the radius, and the learner gets s·g̃.
MISTAKES: dict[Mistake, tuple[float, float, float, float]] = {
    "": (1, 1, 1, 1),
    "no DIFF": (1, 0, 1, 1),
    "DIFF negated": (1, -1, 1, 1),
    "GRAD doubled": (2, 1, 1, 1),
    "radius tripled": (1, 1, 3, 1),
    "a third of the radius": (1, 1, 1 / 3, 1),
    "ascent": (1, 1, 1, -1),
}


class Watched(O2NC):
    """O2NC by an oracle of `MISTAKES`, with sums over rounds of what its oracle is off by: for `KinksProbe` alone.

    error, noise (k,): Σ ‖g - ∇F̂(w_t)‖² and Σ ‖g̃ - g‖²; off (k, 2): Σ g - ∇F̂(w_t) in the two coordinates that turn.
    """

    def __init__(self, wrong: Mistake, replicates: int) -> None:
        self.wrong, self.rounds = wrong, 0
        self.error, self.noise, self.off = np.zeros(replicates), np.zeros(replicates), np.zeros((replicates, 2))

    def _oracle(self, problem: Any, rows: Any, mechanisms: Any, settings: Any, T: int, coins: Any) -> Oracle:
        grad, diff, radius, sign = MISTAKES[self.wrong]
        release = self._release(problem, rows, mechanisms, settings, T)
        oracle = VarianceReduced(problem, rows, coins, settings.radius * radius, T, lambda g: g)
        first: Array | None = None

        def ask(w: Array) -> Array:
            nonlocal first
            right = oracle(w)
            first = right if first is None else first
            g = grad * first + diff * (right - first)
            released = release(g)
            off = g - problem.smoothed(w, settings.radius)
            self.rounds += 1
            self.error += (off**2).sum(axis=1)
            self.noise += ((released - g) ** 2).sum(axis=1)
            self.off += off[:, :2]
            return sign * released

        return ask


class WatchedTree(Watched, O2NCTree):
    """`Watched` with the tree's noise."""


class KinksProbe(Probe):
    """probe-kinks: what o2nc or o2nc-tree reaches on `Kinks` in R^d, where the smoothed gradient turns within an epoch.

    The method's own epochs run on M fresh samples; the job's problem lends nothing, the tree's noise is that of the
    job's ε. `measured`: ‖∇F‖_{2δ} of an epoch's mean w_t, the mean over all K epochs: the expectation over the drawn
    one that Theorem 4.9 bounds, with less chance. `measured_error`: as that of o2nc. `notes`, JSON: the measure at x₁
    as `start`, that of the `first` epoch, how many of the `epochs` have `failed` (1e-6 or more), F at x₁ as `F_start`
    and at the last epoch's mean as `F`; and as means over all rounds ‖g - ∇F̂(w_t)‖² as `error` (Lemma 4.8), ‖g̃ - g‖²
    as `noise` (Corollary 4.5), and g - ∇F̂(w_t) in the coordinates that turn as `off` (0 in the mean, as GRAD and DIFF
    are unbiased).

    wrong: one of `MISTAKES`, for runs that are wrong on purpose.
    """

    name = "probe-kinks"
    title = "probe of the kinks family"
    diagnostics = (*MEASURED, NOTES)
    STATIONARY: ClassVar[float] = 1e-6

    class Settings(Rounds, frozen=True):
        method: Literal["o2nc", "o2nc-tree"] = "o2nc"
        gap: Positive = 0.02
        M: Annotated[int, msgspec.Meta(ge=2)] = 100_000
        d: Annotated[int, msgspec.Meta(ge=2)] = 2
        wrong: Mistake = ""

    def iterations(self, problem: Declaration, settings: Settings) -> None:
        # Its T is that of an epoch, which follows from ρ and not from a user.
        return None

    def complete(self, problem: Declaration, settings: Settings) -> Settings:
        if settings.T is not None and 2 * settings.T > settings.M:
            raise UserError(f"{self.name}: T = {settings.T} needs {2 * settings.T} samples, M is {settings.M}")
        return settings

    def work(self, n: int, d: int, settings: BaseSettings) -> float:
        return 1e4 * getattr(settings, "M", n)

    def run(self, problem: Problem, W: Array, mechanisms: Mechanisms, settings: Settings, trace: Trace) -> RunResult:
        from dpbench.problems.stationarity import goldstein_norm

        k, d = len(W), settings.d
        samples, balls = ([np.random.default_rng(coin.integers(2**63)) for coin in mechanisms.coins] for _ in range(2))
        family, start = Kinks(settings.M, d, samples), np.zeros((k, d))
        start[:, : len(family.start)] = family.start
        start[:, len(family.start) - 1] += [family.scatter * (ball.random() - 0.5) for ball in balls]
        method = (Watched if settings.method == "o2nc" else WatchedTree)(settings.wrong, k)
        own = method.Settings(radius=settings.radius, gap=settings.gap, M=settings.M, T=settings.T)
        norms, radius = [], 2 * settings.radius

        def measured(at: Array, points: Array) -> Array:
            each = zip(at, points, balls, strict=True)
            return np.array([goldstein_norm(family, w, radius, seen, ball) for w, seen, ball in each])

        before = measured(start, start[:, None])[:, 0]
        for mean, points in method.epochs(family, start, mechanisms, own):
            norms.append(measured(mean, points))
        values, errors = np.stack(norms, axis=2)[:, 0], np.stack(norms, axis=2)[:, 1]
        F_start, F = family.value(start), family.value(mean)
        error, noise, off = (each / method.rounds for each in (method.error, method.noise, method.off))
        notes = [
            json.dumps({
                "start": before[i], "first": values[i, 0], "epochs": len(norms),
                "failed": int((values[i] >= self.STATIONARY).sum()), "F_start": F_start[i], "F": F[i],
                "error": error[i], "noise": noise[i], "off": off[i].tolist(),
            })
            for i in range(k)
        ]  # fmt: skip
        T, _ = method.lengths(family, mechanisms, own)
        columns = {"measured": values.mean(axis=1), "measured_error": errors.mean(axis=1), "notes": notes}
        return RunResult(W, columns, T=[T] * k)


class OptimumProbe(Probe):
    """probe-optimum: the non-private optimum w* of a convex problem, and the constants of its coordinates.

    Columns: `measured`, the certificate of w* (see `problems.optimum`); `values`, the non-zero |w*_j| in falling order;
    `notes`, JSON with n, d, the regularisers' weights, mean, least and largest M_j, and F(0) as `start`.
    """

    name = "probe-optimum"
    title = "the optimum"
    home = "greedy_coordinate"
    needs = Needs(row_norm=None, regularisers=("l1", "l2"))
    diagnostics = (MEASURED[0], Diagnostic("values", "the non-zero |w*_j| in falling order", of_data=True), NOTES)

    def run(
        self, problem: Problem, W: Array, mechanisms: Mechanisms, settings: BaseSettings, trace: Trace
    ) -> RunResult:
        best, M = problem.optimum(), problem.coordinate_constants
        sizes = np.sort(np.abs(best.w[best.w != 0]))[::-1]
        facts = {
            "n": problem.n,
            "d": problem.d,
            "weights": {name: regulariser.weight for name, regulariser in problem.regularisers.items()},
            "M": [float(f"{value:.6g}") for value in (M.mean(), M.min(), M.max())],
            "start": float(problem.value(np.zeros((1, problem.d)))[0]),
        }
        k = len(W)
        columns = {"measured": [best.certificate] * k, "values": [sizes] * k, "notes": [json.dumps(facts)] * k}
        return RunResult(np.tile(best.w, (k, 1)), columns=columns)
