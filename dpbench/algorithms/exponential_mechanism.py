"""Methods that draw by the exponential mechanism: a vertex of an ℓ₁ ball, or a point deep among models.

dp-frank-wolfe draws each vertex; tukey-em fits least squares on m parts of the rows and draws a point deep among the m
models, with no bound on features or labels.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from statistics import NormalDist
from typing import ClassVar

import numpy as np

from dpbench.algorithms import base as dp
from dpbench.errors import UserError
from dpbench.privacy import tukey
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import BoundedRange, DrawAfterTest, scaled
from dpbench.privacy.mechanisms import Score

TEST, EXPONENT = 0.25, 0.375  # of ε: one test, and twice the exponent
SURE = 8.0  # deviations of the test's noise: it passes with probability 1 - e⁻⁸/2
NORMAL = NormalDist()
LEAST = 12  # models: t = 3 is the first depth at which the test can pass


class FrankWolfe(dp.Algorithm):
    """dp-frank-wolfe: w ← (1 - a)w + a·v, a = 2/(t + 2), v ∈ {±B e_j} (or 0, with l1) by the exponential mechanism.

    After Talwar, Thakurta and Zhang (2015). h = (1/n)Σ clip(ℓ'_i, ±c)x_i + l2·w; the score of ±B e_j is ∓B h_j - l1·B,
    that of 0 is 0. With |x_ij| ≤ R (‖x‖₂ ≤ R has it) h_j moves by cR/n at most, either way, and twice that under
    replace-one; so each score by B times that. The log-ratio of an index's probabilities lies in an interval of length
    ε₀: a bounded range, ε₀²/8-zCDP a step, where report-noisy-max with Laplace noise is ε₀-DP alone.

    T: error 8β B²/(T + 2), β = sup ℓ'', and noise (2Δ/ε₀) ln(2d): T = (4βBn√(8ρ)/(c ln 2d))^{2/3}, with ρ of (ε, δ) by
    Bun and Steinke (2016).

    radius: B, public. clip: c; None: what bounds ℓ' by itself, 0.3 for squared loss.
    """

    name = "dp-frank-wolfe"
    title = "DP-Frank-Wolfe"
    home = "greedy_coordinate"
    exact = "sums"
    persons = True
    paper_accounting = "tight"
    accountings: ClassVar = ("tight", "rdp", "pure")
    needs = dp.Needs(convex=True, smooth=True, regularisers=("l1", "l2"))
    discloses = (
        dp.Disclosure(
            "vertex",
            "the vertex whose score is largest, with Gumbel noise",
            "exponential",
            add_remove="B·C·R/n",
            why="each coordinate of the mean gradient moves by C·R/n, derivatives clipped to ±C",
        ),
    )
    tuning: ClassVar = {"radius": [1.0, 3.0, 10.0]}

    class Settings(dp.BaseSettings, frozen=True):
        T: dp.Count | None = None
        radius: dp.Positive = 3.0
        clip: dp.Positive | None = None

    def complete(self, problem, settings):
        return dp.at_default_clip(problem, settings, 0.3)

    audit_case = dp.AuditCase(d=1)

    def work(self, n, d, settings):
        return 4.0 * n * d * (settings.T or 100)

    def batch_size(self, n, d):
        return int(max(1, min(128, 200e6 / (8 * d))))

    def plan(self, problem, mechanisms, settings):
        T, epsilon = self._rounds(problem, mechanisms.budget, settings)
        mechanisms.plan("vertex", BoundedRange(epsilon), T)

    def _rounds(self, problem: dp.Declaration, budget: Budget, settings: Settings) -> tuple[int, float]:
        """T, and the ε₀ of each."""
        T = settings.T or rounds(problem, settings.radius, settings.clip or 1.0, budget.epsilon, budget.delta)
        return T, 1 / budget.noise_scale(((BoundedRange(1.0), T),))

    def run(self, problem, W, mechanisms, settings, trace):
        B, clip, l1 = settings.radius, settings.clip or 1.0, problem.l1
        sensitivity = B * clip * problem.row_bound / problem.n
        T, epsilon = self._rounds(problem, mechanisms.budget, settings)
        k, d = W.shape
        W, each = np.zeros_like(W), np.arange(k)

        score = vertex_score(B, l1)
        trace(0, W, passes=0)
        for t in range(T):
            h = problem.bounded_gradient(W, clip) + problem.l2 * W
            chosen = mechanisms.exponential(h, sensitivity=sensitivity, epsilon=epsilon, label="vertex", score=score)
            a = 2 / (t + 2)
            # A convex combination: the iterate stays in the ball, and starts at a vertex as a = 1 first.
            W *= 1 - a
            vertex = chosen < 2 * d
            W[each[vertex], chosen[vertex] % d] += np.where(chosen[vertex] < d, a * B, -a * B)
            trace(t + 1, W, passes=t + 1)
        return dp.RunResult(W, T=[T] * k)


def rounds(problem: dp.Declaration, radius: float, clip: float, epsilon: float, delta: float) -> int:
    """T by the class's rule; at δ = 0 of ε = T·ε₀ in place of ρ = T·ε₀²/8."""
    curvature = problem.loss.smoothness * problem.row_bound
    if delta == 0:
        balanced = math.sqrt(2 * curvature * radius * problem.n * epsilon / (clip * math.log(2 * problem.d + 1)))
    else:
        log = -math.log(delta)
        rho = (epsilon / (math.sqrt(epsilon + log) + math.sqrt(log))) ** 2
        scale = 4 * curvature * radius * problem.n * math.sqrt(8 * rho) / (clip * math.log(2 * problem.d + 1))
        # Error ∝ 1/T and noise ∝ √T: least together at a power of 2/3.
        balanced = scale ** (2 / 3)
    return int(min(max(3, round(balanced)), max(3, 1e12 / (4 * problem.n * problem.d))))


def vertex_score(radius: float, l1: float) -> Score:
    """Of a gradient h (k, d): ∓B h_j - l1·B for the vertices ±B e_j, all of + first, and with l1 a 0 for the origin."""

    def vertices(h: dp.Array) -> dp.Array:
        return np.hstack(
            [-radius * h - l1 * radius, radius * h - l1 * radius, *([np.zeros((len(h), 1))] if l1 else [])]
        )

    off: Callable[[dp.Array], float] = lambda sizes: 2.0**-51 * radius * (float(sizes.max()) + l1)  # noqa: E731
    return Score(vertices, off, radius, ("vertices", radius, l1))


class TukeyEM(dp.Algorithm):
    """tukey-em: a random point of large Tukey depth among m least-squares models, each of its own part of the rows.

    After Amin, Joseph, Ribero and Vassilvitskii (2023), derived anew in `dpbench.privacy.tukey`. The parts are drawn
    without a look at the data, so that a row is in one of them, and a neighbour replaces one model of the m:

        θ_i = argmin F on part i
        draw a point of density ∝ e^{ε₁·depth} on {depth ≥ m/4}, where a test with Laplace noise finds that safe; else 0

    ε = ε_p + 2ε₁ + ϑ with ε_p = ε/4, and δ = max(δ_p, ϑ). Nothing is clipped, and no bound on x or y is needed: what it
    takes instead is many rows, about 1,000 for each column at ε = 1.

    m: the number of models. None: the fewest with which models of a normal law would pass the test by SURE deviations
    of its noise, since every row that a model has more makes it better; a line says so where the rows are too few for
    that many. With an m of one's own the test may fail, and 0 is released. ridge: whether the problem's l2 is in each
    model, as it is in F; False: plain least squares, as published, whose medians are biased where parts are small.
    """

    name = "tukey-em"
    title = "TukeyEM"
    home = "greedy_coordinate"
    relation = dp.Relation.REPLACE_ONE
    either = True
    in_reals = "it draws from a density on boxes whose ends float64 rounds"
    paper_accounting = "tight"
    accountings: ClassVar = ("tight",)
    needs = dp.Needs(quadratic=True, row_norm=None, regularisers=("l2",))
    discloses = (
        dp.Disclosure(
            "model",
            "a point deep among the models, behind a test",
            "draw by depth",
            "1",
            add_remove="1",
            replace_one="1",
            why="a row is in one part, and one model of m replaced moves every depth by one at most",
        ),
    )
    diagnostics = (dp.NOTES,)

    class Settings(dp.BaseSettings, frozen=True):
        m: dp.Count | None = None
        ridge: bool = True

    def complete(self, problem, settings):
        if settings.m and settings.m * problem.d > problem.n:
            raise UserError(
                f"m: {settings.m} models of d = {problem.d} columns take {settings.m * problem.d} rows, and there are "
                f"n = {problem.n}; m is at most {problem.n // problem.d}"
            )
        return settings

    audit_case = dp.AuditCase({"m": 120}, loss="squared", n=120, d=1, steepest=False, drawn=True)

    def inspection_case(self):
        return dp.AuditCase({"m": 24}, loss="squared", n=72, d=2, steepest=False, drawn=True)

    def work(self, n, d, settings):
        return 4.0 * n * d * d + 20.0 * (settings.m or n // d) * d**3

    def batch_size(self, n, d):
        return int(max(1, min(128, 200e6 / (8 * n))))

    def public_settings(self, n, d, epsilon):
        return {"m": max(1, min(n // d, fewest(d, calibrated(epsilon, n**-2.0), n // d)))}

    def plan(self, problem, mechanisms, settings):
        event = _event(mechanisms.budget)
        self._models(problem, event, mechanisms.budget, settings)
        mechanisms.plan("model", event, 1)

    def _models(self, problem: dp.Declaration, event: DrawAfterTest, budget: Budget, settings: Settings) -> int:
        if settings.m:
            return settings.m
        most = problem.n // problem.d
        m = fewest(problem.d, event, most)
        if m > most:
            raise UserError(
                f"epsilon: at ε = {budget.epsilon:g} tukey-em takes more than {most} models of {problem.d} rows each, "
                f"and there are n = {problem.n} rows; raise epsilon, or use boosted-ssp"
            )
        return m

    def run(self, problem, W, mechanisms, settings, trace):
        event = _event(mechanisms.budget)
        m = self._models(problem, event, mechanisms.budget, settings)
        parts = [coins.permutation(problem.n) for coins in mechanisms.coins]
        models = np.stack([least_squares(problem, rows, m, problem.l2 if settings.ridge else 0.0) for rows in parts])
        models = np.repeat(models, [s.stop - s.start for s in mechanisms.streams], axis=0)
        W, passed = mechanisms.deep_point(models, event, label="model")
        trace(1, W, passes=1)
        return dp.RunResult(W, {"notes": ["" if fine else "the test failed: 0 was released" for fine in passed]})


def least_squares(problem: dp.Problem, rows: np.ndarray, m: int, l2: float) -> dp.Array:
    """The least-squares models (m, d) of m parts of `rows`, with a ridge of weight l2; at 0 those of least norm."""
    n, d = problem.n, problem.d
    size = n // m
    # All parts at once as one array: m small systems in one call of LAPACK.
    X, y = (part.astype(float, copy=False) for part in problem.take(rows))
    left = n - m * size  # one row more for the first parts
    A, b = X[: m * size].reshape(m, size, d), y[: m * size].reshape(m, size)
    gram, moments = np.einsum("pij,pik->pjk", A, A), np.einsum("pij,pi->pj", A, b)
    gram[:left] += X[m * size :, :, None] * X[m * size :, None, :]
    moments[:left] += X[m * size :] * y[m * size :, None]
    if l2:
        # F is a mean over rows, so a part's ridge grows with its rows.
        ridge = l2 * (size + (np.arange(m) < left))
        gram += ridge[:, None, None] * np.eye(d)
        try:
            return np.linalg.solve(gram, moments[:, :, None])[:, :, 0]
        except np.linalg.LinAlgError:  # rows so long that the ridge is lost in rounding; to stop would tell of them
            return np.concatenate([_solved(one, b) for one, b in zip(gram[:, None], moments[:, None], strict=True)])
    return _least_norm(gram, moments)


def _solved(gram: dp.Array, moments: dp.Array) -> dp.Array:
    """The model of one part, which no other part changes: the one of least norm where the matrix is singular."""
    try:
        return np.linalg.solve(gram, moments[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        return _least_norm(gram, moments)


def _least_norm(gram: dp.Array, moments: dp.Array) -> dp.Array:
    return np.asarray(np.einsum("pjk,pk->pj", np.linalg.pinv(gram, hermitian=True), moments))


def calibrated(epsilon: float, delta: float) -> DrawAfterTest:
    """What one draw may be at (ε, δ), but for the accountant's last digits."""
    return DrawAfterTest(TEST * epsilon, EXPONENT * epsilon, delta, min(delta, epsilon / 10))


def _event(budget: Budget) -> DrawAfterTest:
    unit = calibrated(budget.epsilon, budget.delta)
    # Scaled to what the accountant gives, which is not the simple sum to the last digit.
    return scaled(unit, budget.noise_scale(((unit, 1),)))  # type: ignore[return-value]


@functools.lru_cache(maxsize=256)
def _log_widths(m: int) -> dp.Array:
    """(⌊m/2⌋,) ln of the distance of two quantiles of a normal law, from the outermost of m."""
    quantiles = ((np.arange(m // 2) + 0.5) / m).tolist()  # by `statistics`, as to load scipy.special takes far longer
    return np.log(-2 * np.fromiter(map(NORMAL.inv_cdf, quantiles), dtype=float))


def fewest(d: int, event: DrawAfterTest, most: int) -> int:
    """The least m, at most `most` + 1, at which models at the quantiles of a normal law pass the test surely."""

    def passes(m: int) -> bool:
        far = tukey.distance(d * _log_widths(m), m, event.exponent, event.leak)
        return far >= tukey.threshold(event) + SURE / event.test

    low, high = LEAST - 1, LEAST
    # Doubling and then bisection: `passes` takes O(m) each time. It is not monotone in m, so the midpoints decide which
    # of several m it is: others would be other settings than those of the kept rows.
    while high <= most and not passes(high):
        low, high = high, 2 * high
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(middle) else (middle, high)
    return high
