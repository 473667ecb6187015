"""What the nonconvex methods ask of the data: noisy gradients and Hessians, step lengths, and the driver that answers.

A method looks for an (α, √(Mα))-second-order necessary solution (2NS): ‖∇f(w)‖ ≤ α and λ_min(∇²f(w)) ≥ -√(Mα). Every
constant of the experiments stands beside the formula it belongs to.

A method for one replicate, `g = yield Gradient(w)` and so on, yields `Iterate(w)` at the start of each iteration and
returns (w, how it ended). Replicates advance in step, iteration by iteration, so that what they ask for at the
same time costs one product over the data; one that has returned leaves the batch.

A guard says where the logistic loss overflows in float32: a published run is lost there, ours is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from dpbench.algorithms import base as dp
from dpbench.privacy.ledger import Gaussian, PureDP, Release, WithoutReplacement
from dpbench.privacy.sampling import WithoutReplacementSampler

# Of the losses with ‖x‖ ≤ 1 (Assumptions 1 and 2): bounds on one example's loss, gradient and Hessian (spectral norm),
# and the Lipschitz constants of gradient and Hessian. The losses' own constants are smaller; the paper takes 1. The
# logistic loss has no bound B, and nothing private rests on it.
B = B_g = B_H = G = M = 1.0
GAP = 0.5  # what the published runs take for f(w₀) - inf f, so no noisy f(w₀) is released (equation 6)

c, c1, c2 = 0.1, 0.1, 1 / 12  # relative errors of H̃, g̃ and, against curvature steps, g̃ (equation 9)

# Line search (Algorithms 2 and 3): multiples of the fallback step to start from, shrinking, sufficient decrease.
b_g = b_H = 20.0
beta_g, c_g = 0.6, 0.6
beta_H, c_H = 0.5, 0.25
FALLBACK_g = 2 * (1 - c1 - c_g) / G  # γ̄_g (Lemma 6)
t2 = 1.5 * (1 - c - c_H) + 3 * math.sqrt((1 - c - c_H) ** 2 / 4 - 2 * c2 / 3)  # γ̄_H = t₂|λ̃|/M (equation 15)


class Tolerances(NamedTuple):
    """A method stops once ‖g̃‖ ≤ gradient and λ̃_min ≥ -curvature."""

    gradient: float
    curvature: float


def target(alpha: float) -> Tolerances:
    """(α, √(Mα))."""
    return Tolerances(alpha, math.sqrt(M * alpha))


def working(alpha: float) -> Tolerances:
    """Tolerances on noisy quantities that imply the target on true ones: (α/(1+c₁), √(Mα)/(1+c)) (Corollary 3)."""
    return Tolerances(alpha / (1 + c1), math.sqrt(M * alpha) / (1 + c))


def short_step_iterations(alpha: float) -> int:
    """T = ⌈gap / MIN_DEC⌉ (equation 6) with MIN_DEC of equation 10."""
    gradient, curvature = working(alpha)
    decrease = min((1 - 2 * c1) * gradient**2 / (2 * G), 2 * (1 / 3 - c2 - c) * curvature**3 / M**2)
    return math.ceil(GAP / decrease)


def line_search_iterations(alpha: float) -> int:
    """T = ⌈gap / MIN_DEC⌉ (equation 6) with MIN_DEC of equation 17."""
    gradient, curvature = working(alpha)
    decrease = min((1 - c1 - c_g) * c_g * gradient**2 / G, c_H * t2**2 * curvature**3 / (4 * M**2))
    return math.ceil(GAP / decrease)


def trust_region_iterations(alpha: float) -> int:
    """T = ⌈6 √M gap / α^{3/2}⌉ (Wang and Xu 2021)."""
    return math.ceil(6 * math.sqrt(M) * GAP / alpha**1.5)


def gd_2ns_iterations(alpha: float, d: int) -> int:
    """T = ⌈gap / min(α²/(4G), φ/γ)⌉ of dp-gd-2ns (Wang, Chen and Xu 2019)."""
    c, C1, xi = 0.7, 0.1, 0.1
    chi = max(1.0, C1 * math.log(d * G * B / (M * alpha * xi)))
    phi = chi**-3 * c**-5 * math.sqrt(alpha**3 / M)
    gamma = chi * c * G / math.sqrt(M * alpha)
    return math.ceil(GAP / min(alpha**2 / (4 * G), phi / gamma))


@dataclass(frozen=True)
class Request:
    """Something about the objective at `w` (d,), on the row indices `rows` (default: all)."""

    w: np.ndarray
    rows: np.ndarray | None = None


class Gradient(Request):
    """∇f(w), (d,): mean over the rows, and the regularisers'."""


class Hessian(Request):
    """∇²f(w), (d, d): mean over the rows, and the regularisers'."""


class Value(Request):
    """f(w), regularisers included. All rows only."""


class SmallestMargin(Request):
    """min_i y_i <x_i, w> over the rows: for what a published run's arithmetic made of it."""


class Iterate(Request):
    """Not a request: an iteration starts at w. Answered with None once all replicates are here."""


Ending: TypeAlias = Literal["terminated", "not terminated", "crashed"]
Method: TypeAlias = Generator[Request, Any, tuple[dp.Array, Ending]]
ArrayMethod: TypeAlias = Generator[Request, Any, dp.Array]  # a part of a method that returns an array
FloatMethod: TypeAlias = Generator[Request, Any, float]


@dataclass
class BatchEnd:
    """What came of k replicates: final iterates (k, d), how each ended (k), and how often each asked (k,).

    passes: over the data, for whatever was asked; NaN in a replicate's place once it has left the batch.
    """

    W: np.ndarray
    endings: list[Ending]
    gradients: np.ndarray
    hessians: np.ndarray
    passes: np.ndarray = field(repr=False)


def run_in_step(problem: dp.Problem, methods: list[Method], W: dp.Array, trace: dp.Trace) -> BatchEnd:
    """Run the replicates to their ends. W (k, d): where they start.

    trace(t, W, passes=…, final=…) after t iterations, which is t gradients: all replicates that are still running, and
    those that ended since (`final`).
    """
    k = len(methods)
    run = BatchEnd(W.copy(), ["not terminated"] * k, np.zeros(k, int), np.zeros(k, int), np.zeros(k))
    pending = {i: next(method) for i, method in enumerate(methods)}
    ended = np.zeros(k, bool)
    iteration = 0
    while True:
        requests = {i: request for i, request in pending.items() if not isinstance(request, Iterate)}
        # A search takes one replicate several answers and another none: all wait until each is at an iterate.
        if requests:
            answers = _answer(problem, requests, run)
        else:
            for i, iterate in pending.items():
                run.W[i] = iterate.w
            trace(iteration, run.W, passes=run.passes, final=ended)
            if not pending:
                return run
            # A replicate that has left is traced once more, as final, and never after.
            run.passes[ended] = np.nan
            ended[:] = False
            iteration += 1
            answers = dict.fromkeys(pending)
        for i, answer in answers.items():
            try:
                pending[i] = methods[i].send(answer)
            except StopIteration as end:
                run.W[i], run.endings[i] = end.value
                ended[i] = True
                del pending[i]


def _answer(problem: dp.Problem, requests: dict[int, Request], run: BatchEnd) -> dict[int, Any]:
    """Answers by replicate; requests of a kind that share their rows in one call."""
    answers: dict[int, Any] = {}
    kinds: list[tuple[type[Request], Callable[..., dp.Array], np.ndarray | None]] = [
        (Gradient, problem.gradient, run.gradients),
        (Hessian, problem.hessian, run.hessians),
        (Value, problem.value, None),
        (SmallestMargin, partial(_smallest, problem), None),
    ]
    for kind, ask, count in kinds:
        of_kind = {i: request for i, request in requests.items() if isinstance(request, kind)}
        full = [i for i, request in of_kind.items() if request.rows is None]
        if full:
            answers |= zip(full, ask(np.stack([of_kind[i].w for i in full])), strict=True)
        # A minibatch is a replicate's own: no product over the data is shared.
        for i in of_kind.keys() - set(full):
            answers[i] = ask(of_kind[i].w[None], rows=of_kind[i].rows)[0]
        for i, request in of_kind.items() if kind is not SmallestMargin else ():
            run.passes[i] += 1.0 if request.rows is None else len(request.rows) / problem.n
            if count is not None:
                count[i] += 1
    return answers


def _smallest(problem: dp.Problem, W: dp.Array, rows: dp.Array | None = None) -> dp.Array:
    """(k,) the smallest margin y<x, w> over the given rows (default all)."""
    if rows is None:
        return problem.smallest_margins(W)
    X, y = problem.take(rows)
    return np.asarray((W @ X.T * y).min(axis=1))


OVERFLOW = math.log(float(np.finfo(np.float32).max))  # 88.72: exp of more is infinite in float32


class RunLost(Exception):
    """∇f is no number in float32; the published scripts catch the eigensolver's error there and write no row."""


class Guard:
    """log1p(exp(-t)) in float32 is infinite, and its derivative no number, for margins t below -88.72.

    Switched off, nothing overflows. Margins are looked at only where ‖w‖ times the longest row reaches that.
    """

    def __init__(self, problem: dp.Declaration, on: bool = False) -> None:
        self._on = on and problem.loss.name == "logistic"
        self._problem = problem

    def check(self, w: dp.Array, rows: dp.Array | None) -> Generator[Request, Any, None]:
        """Generator that raises RunLost where ∇f(w) on these rows is no number."""
        if (yield from self._overflows(w, rows)):
            raise RunLost

    def value(self, w: dp.Array) -> FloatMethod:
        """Generator that returns f(w), infinite where it overflows: such a trial step is merely refused."""
        if (yield from self._overflows(w, None)):
            return math.inf
        return (yield Value(w))

    def _overflows(self, w: dp.Array, rows: dp.Array | None) -> Generator[Request, Any, bool]:
        # By Cauchy and Schwarz no margin is that large at a short w: the rows need not be read.
        if not self._on or np.linalg.norm(w) * self._problem.row_norm < OVERFLOW:
            return False
        return bool((yield SmallestMargin(w, rows)) < -OVERFLOW)


class FullBatch:
    """g̃ = ∇f(w) + N(0, (Δ_g σ)² I) and H̃ = ∇²f(w) + E, E symmetric with entries N(0, (Δ_H σ)²).

    Replacing one of m examples moves the mean gradient by at most Δ_g = 2B_g/m, and the mean Hessian by 2B_H/m in
    spectral norm, hence by Δ_H = 2B_H√d/m in Frobenius norm (equation 4). The regularisers use no data. Both
    are 1/(2σ²)-zCDP; `hessian_sigma`, where it is given, is the Hessian's σ.

    With `tight`, those of the loss itself: a row's Hessian is ℓ''xxᵀ. Convex losses: two positive semidefinite matrices
    of rank one are within √2 sup ℓ'' R² of each other in Frobenius norm; else ℓ'' may change its sign, and 2 sup|ℓ''|R²
    is attained by one x with two labels. Gradients move by 2 sup|ℓ'|R. E has half the variance off the diagonal.
    """

    def __init__(
        self,
        problem: dp.Declaration,
        mechanisms: dp.Mechanisms,
        sigma: float,
        hessian_sigma: float | None = None,
        guard: Guard | None = None,
    ) -> None:
        self._mechanisms, self._guard = mechanisms, guard or Guard(problem)
        self.sigma = sigma
        self.hessian_sigma = sigma if hessian_sigma is None else hessian_sigma
        self.size = problem.n
        # As the paper has it: B_g and B_H are 1, whatever the loss, and √d for the Frobenius norm.
        self.gradient_moves, self.hessian_moves = 2 * B_g, 2 * B_H * math.sqrt(problem.d)
        if mechanisms.least_sensitivities:
            self.gradient_moves = 2 * problem.lipschitz
            self.hessian_moves = (math.sqrt(2) if problem.loss.convex else 2.0) * problem.smoothness
        self._release_gradient: Callable[..., dp.Array] = mechanisms.gaussian
        self._release_hessian: Callable[..., dp.Array] = mechanisms.gaussian

    def plan(self, T: int) -> None:
        """T gradients and T Hessians at most: see `Mechanisms.plan`."""
        self._mechanisms.plan("gradient", self.event(self.sigma), T)
        self._mechanisms.plan("hessian", self.event(self.hessian_sigma), T)

    def event(self, sigma: float) -> Release:
        """What the ledger gets for a release at noise multiplier σ."""
        return Gaussian(sigma)

    def gradient(self, w: dp.Array) -> ArrayMethod:
        """Generator that returns g̃ (d,); raises RunLost where the guard finds that it overflows."""
        rows = self._gradient_rows()
        yield from self._guard.check(w, rows)
        g = yield Gradient(w, rows)
        return self._release_gradient(
            g[None], sensitivity=self.gradient_moves / self.size, noise_multiplier=self.sigma, label="gradient"
        )[0]

    def hessian(self, w: dp.Array) -> ArrayMethod:
        """Generator that returns H̃ (d, d), symmetric."""
        H = yield Hessian(w, self._hessian_rows())
        return self._release_hessian(
            H[None],
            sensitivity=self.hessian_moves / self.size,
            noise_multiplier=self.hessian_sigma,
            label="hessian",
            symmetric=True,
        )[0]

    def _gradient_rows(self) -> np.ndarray | None:
        """The rows that the next gradient is a mean over; None for all."""
        return None

    def _hessian_rows(self) -> np.ndarray | None:
        return None


class Minibatch(FullBatch):
    """The same on m rows without replacement: each release on a subset of its own, its sensitivity that of m rows.

    A subset shared by a gradient and a Hessian would not be two amplified releases, as equation 29 has it.
    """

    def __init__(
        self,
        problem: dp.Declaration,
        mechanisms: dp.Mechanisms,
        sigma: float,
        m: int,
        hessian_sigma: float | None = None,
        guard: Guard | None = None,
    ) -> None:
        super().__init__(problem, mechanisms, sigma, hessian_sigma, guard)
        self.size = m
        self._gradients, self._hessians = self._samplers(mechanisms, problem.n, m)
        self._release_gradient, self._release_hessian = self._gradients.gaussian, self._hessians.gaussian
        self._rows_of = problem.n, m

    def _samplers(
        self, mechanisms: dp.Mechanisms, n: int, m: int
    ) -> tuple[WithoutReplacementSampler, WithoutReplacementSampler]:
        """Of the gradients' rows, and of the Hessians'."""
        gradients, hessians = (mechanisms.without_replacement(n, m, label=label) for label in ("gradient", "hessian"))
        return gradients, hessians

    def event(self, sigma):
        return WithoutReplacement(*self._rows_of, Gaussian(sigma))

    def _gradient_rows(self):
        return self._gradients.draw()[0]

    def _hessian_rows(self):
        return self._hessians.draw()[0]


class ShortSteps:
    """1/G along -g̃ and 2|λ̃|/M along p̃ (equation 7): nothing is released."""

    def plan(self, T: int) -> None:
        """Nothing."""

    def along_gradient(self, w: dp.Array, g: dp.Array) -> FloatMethod:
        return 1 / G
        yield  # a generator, as the line search is

    def along_curvature(self, w: dp.Array, p: dp.Array, curvature: float) -> FloatMethod:
        return 2 * abs(curvature) / M
        yield


class LineSearch:
    """Backtracking by the sparse vector technique (Algorithms 2 and 3); 1/λ-DP a call, found a step or not.

    f(w) - f(w + γv) is a mean over n examples of differences of at most γ B_g ‖v‖, so replacing one moves a query by
    Δ_q = 2 γ_init B_g ‖v‖ / n at most, for every γ ≤ γ_init; the rest of it is public. 1/λ-DP is 1/(2λ²)-zCDP
    (Theorem 5).
    """

    def __init__(
        self, problem: dp.Declaration, mechanisms: dp.Mechanisms, scale: float, guard: Guard | None = None
    ) -> None:
        self.n, self.mechanisms, self.scale = problem.n, mechanisms, scale
        self._value = (guard or Guard(problem)).value

    def plan(self, T: int) -> None:
        """A search in each of T iterations at most."""
        self.mechanisms.plan("line search", PureDP(1 / self.scale), T)

    def along_gradient(self, w: dp.Array, g: dp.Array) -> FloatMethod:
        """γ with f(w - γg̃) ≤ f(w) - c_g γ ‖g̃‖² (SD1), as far as the noise lets one see."""
        square = float(g @ g)
        return self._search(w, -g, FALLBACK_g, b_g, beta_g, lambda step: c_g * step * square)

    def along_curvature(self, w: dp.Array, p: dp.Array, curvature: float) -> FloatMethod:
        """γ with f(w + γp̃) ≤ f(w) - c_H γ² |λ̃|/2 (SD2)."""
        fallback = t2 * abs(curvature) / M
        return self._search(w, p, fallback, b_H, beta_H, lambda step: 0.5 * c_H * step**2 * abs(curvature))

    def _search(
        self,
        w: dp.Array,
        direction: dp.Array,
        fallback: float,
        multiple: float,
        shrink: float,
        decrease: Callable[[float], float],
    ) -> FloatMethod:
        """Algorithm 2: the first of γ_init, βγ_init, … that is seen to decrease f enough, else the fallback."""
        step = multiple * fallback
        # Noise for the longest step serves all: shorter ones move a query by less.
        enough = self.mechanisms.above_threshold(
            sensitivity=2 * step * B_g * float(np.linalg.norm(direction)) / self.n,
            epsilon=1 / self.scale,
            label="line search",
        )
        value = yield from self._value(w)
        # Down to the fallback's length and no further: that step is sure to decrease f enough.
        for _ in range(math.floor(math.log(1 / multiple, shrink)) + 1):
            trial = yield from self._value(w + step * direction)
            if enough(float(value - trial - decrease(step))):
                return step
            step *= shrink
        return fallback
