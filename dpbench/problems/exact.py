"""A problem on rows of a public grid, whose sums over the rows are integers: see `privacy.exact_sums`.

Every number on the way is a multiple of a power of two that float64 holds exactly, and so is every partial sum, in
whatever order BLAS takes them:

  - *rows*: multiples of 2⁻¹⁶, rounded towards zero, so that no row gets longer; ‖x‖² ≤ R² is checked in integers;
  - *margins* <x, w>: w is rounded to multiples of a power of two u, chosen by w alone, with ‖w‖/u < 2^(35 - log₂ R).
    By Cauchy and Schwarz every partial sum of <x, w> is below 2⁵² steps of 2⁻¹⁶u;
  - *weights*: ℓ'(<x, w>, y), a function of one row and public numbers, rounded to a multiple c of 2⁻¹⁶ and then
    clipped to what the loss (or the clipping threshold) admits;
  - *sums* of c·x over b rows: multiples of 2⁻³² below bR·max|c|. Where b rows more might take this to 2²¹, what was
    added so far goes into 64-bit integers, whose range bounds n.

So a sum does not depend on the order of the rows, on blocks or threads, and a row's part of it on no other row.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
import scipy

from dpbench.errors import PrivacyError
from dpbench.privacy.exact_sums import (
    CURVATURE_BITS,
    LARGEST,
    ROW_BITS,
    UP,
    WEIGHT_BITS,
    CertifiedMinimiser,
    Coordinates,
    Deferred,
    Eigenvalue,
    Gram,
    Objective,
    RowSensitivity,
    Sum,
    WeightedParts,
    outer,
    weighted,
)
from dpbench.problems.grid import LARGE, GridRows, SubstitutedRows, on_grid, short_rows, square_bound
from dpbench.problems.losses import Loss, built_in
from dpbench.problems.problem import DataColumns, Problem, columns_of
from dpbench.problems.regularisers import least_subgradient
from dpbench.problems.risk import LARGEST_ITERATE, MeansOfSums
from dpbench.problems.rows import BLOCK, CACHED, LONGEST, Pointwise, Rows

MANTISSA = 2**53
FARTHEST = 1e3  # ‖w‖ up to which a minimiser's certificate has the tolerance that is asked for
SQUARE_BITS = 12  # of a squared derivative: steps of 2⁻¹² of its largest
STEP = 2.0 ** -(ROW_BITS + WEIGHT_BITS)  # of a row's part of a gradient
OUTPUT_BITS = 10  # a minimiser's grid is that much finer than its distance from the exact one
Whole = np.ndarray  # of int64


class HiddenMeans(MeansOfSums):
    """Means over rows that only a release turns into numbers."""

    def gradient(self: Any, W: np.ndarray, rows: np.ndarray | None = None) -> Any:
        """See `EmpiricalRisk`: the regularisers' part is public, and added behind the noise."""
        W = self.batch(W)
        return self.data_gradient(W, rows) + sum((r.gradient(W) for r in self.smooth_regularisers), np.zeros_like(W))


class ExactSums(HiddenMeans, Problem):
    """What is exact of a `Problem` on rows that `on_grid` made: its sums over the rows are `Sum`s.

    What else an algorithm may ask of the rows is as of `Problem`; the release of it is refused.
    """

    _rows: Any
    limit = LARGEST_ITERATE
    bits = 0  # of a row's weight: that of `problems.persons`
    hessian_bits = ROW_BITS  # of rows as Hessians are made of them
    steady = False  # whether a solver's work is the same for all data

    def _checked_bound(self, bound: float | None) -> float:
        """The bound, which `on_grid` has seen to."""
        assert bound is not None
        if not 2.0**-8 <= bound <= 2.0**8:
            raise PrivacyError(f"rows of norm {bound:g} do not fit the grid; rescale them to about 1")
        self._square = square_bound(bound)
        self._l1 = math.floor(Fraction(bound) * 2**ROW_BITS) if self.row_bound_norm == "l1" else None
        return float(bound)

    # Iterates

    def margins(self, W: np.ndarray) -> np.ndarray:
        """W (k, d), a row for each output (k·outputs, features), on a public grid on which <x, w> is exact.

        Raises `Diverged` as of `batch`.
        """
        W = self._models(W)
        norms = np.sqrt((W * W).sum(axis=1))
        # A function of ‖w‖ alone, and w is public: the grid tells nothing of the rows.
        exponents = np.frexp(np.maximum(norms, 2.0**-600))[1]  # ‖w‖ < 2^e
        units = np.ldexp(1.0, exponents - self._margin_bits)[:, None]
        return np.rint(W / units) * units

    @functools.cached_property
    def _margin_bits(self) -> int:
        """Below 52 - 16 - log₂ R, less what rounding w may add to its norm: √d/2 steps."""
        longest = math.frexp(self.row_bound)[1]
        bits = 52 - ROW_BITS - max(0, longest) - 1
        if math.sqrt(self.features) >= 2.0**bits:
            raise PrivacyError(f"{self.features} columns are too many for exact margins")
        return bits

    # Sums

    def gradient_sum(self, w: np.ndarray, rows: np.ndarray | None = None) -> Any:
        """See `EmpiricalRisk`; a `Sum` of shape (1, d), whatever the shape of w."""
        return self._bounded(w, self.loss.lipschitz, rows)

    def bounded_gradient(self, W: np.ndarray, bound: float) -> Any:
        """See `EmpiricalRisk`."""
        return self._bounded(W, bound) / self.n

    def clipped_value(self, W: np.ndarray, clip: float) -> Any:
        """See `EmpiricalRisk`; a `Sum` of shape (1,)."""
        self.require_one_output()
        W, most = self.margins(W), math.floor(Fraction(positive_bound(clip)) * 2**WEIGHT_BITS)
        if len(W) != 1 or not most:
            raise PrivacyError("exact values are of one replicate, clipped at 2**-16 or more")
        pointwise = functools.partial(_value, self.loss.value, most * 2.0**-WEIGHT_BITS)
        total = self._whole((1,), value_sum, most, None, pointwise, W)
        # Losses are clipped to one sign, so another row in a row's place moves the sum no further than its absence.
        return Sum(total, 2.0**-WEIGHT_BITS, RowSensitivity(most**2, most**2, most)) / self.n

    def label_moments(self, bound: float) -> Any:
        """See `EmpiricalRisk`."""
        return self._weighted(_labels, np.zeros((1, self.d)), bound)

    def second_moment(self) -> Any:
        """See `EmpiricalRisk`."""
        return self._gram() / self.n

    def _gram(self) -> Sum:
        """XᵀX."""
        self.require_one_output()
        total = self._whole((1, self.d, self.d), gram_sum, self._square, None, None, None, ROW_BITS)
        return Gram(total, 2.0 ** (-2 * ROW_BITS), outer(self._square, 1))

    def hessian_sum(self, w: np.ndarray, rows: np.ndarray | None = None, curvature: str = "hess") -> Any:
        """See `EmpiricalRisk`."""
        if len(np.atleast_2d(w)) != 1:
            raise PrivacyError("exact Hessians are of one replicate")
        W = self.margins(np.atleast_2d(w))
        # In 2⁻⁸ of the largest there can be, so that a sum of h x xᵀ fits 64 bits for as many rows as may be.
        step = self.loss.smoothness * 2.0**-CURVATURE_BITS
        function = functools.partial(_curvature, self._curvature(curvature), step, not self.loss.convex)
        return self._outer(function, W, CURVATURE_BITS, step, rows, self.hessian_bits, signed=not self.loss.convex)

    def score_moment(self, W: np.ndarray, bound: float) -> Any:
        """See `EmpiricalRisk`; squares on a grid of 2⁻¹² of their bound."""
        step = positive_bound(bound) ** 2 * 2.0**-SQUARE_BITS
        function = functools.partial(_square, self.loss.derivative, bound, step)
        return self._outer(function, self.margins(W), SQUARE_BITS, step) / self.n

    def clipped_curvature(self, W: np.ndarray, bound: float) -> Any:
        """See `EmpiricalRisk`."""
        return self._outer(lambda z, y, out: self.loss.inside(z, y, bound, out), self.margins(W), 0, 1.0) / self.n

    def _outer(
        self,
        function: Pointwise,
        W: np.ndarray,
        bits: int,
        step: float,
        rows: Any = None,
        row_bits: int = ROW_BITS,
        *,
        signed: bool = False,
    ) -> Any:
        """Σ h_i x_i x_iᵀ, h = function(z, y, out) integers, in steps, up to 2^bits; of either sign where `signed`.

        x_i are cut towards zero to multiples of 2^-row_bits, which makes no row longer.
        """
        self.require_one_output()
        square = self._square >> 2 * (ROW_BITS - row_bits)
        moved = outer(square, 2**bits, signed=signed)
        total = self._whole((1, self.d, self.d), gram_sum, 2**bits * square, rows, function, W, row_bits)
        return (Sum if signed else Gram)(total, 2.0 ** (-2 * row_bits) * step, moved)

    def least_eigenvalue(self, gram: Any) -> Eigenvalue:
        """See `EmpiricalRisk`; the place where Cholesky's factorisation of A - σI breaks down, found by halving.

        With u = 2⁻⁵³ and a public t ≥ tr A: if it runs to its end, RᵀR = A - σI + E with ‖E‖ ≤ 1.01(d + 1)ut, so no
        eigenvalue is below σ by more (Higham 2002, Theorem 10.3). If it breaks down, the least is at most
        1.01d(d + 1)ut above σ (Theorem 10.7, for A - σI with unit diagonal, the largest entry being at most t). Both
        hold for sums in any order. Integers become float64, and σ is taken off, within 2ut. There are as many halvings
        for all data. PrivacyError for a sum to which a row may add a matrix of both signs: it moves by twice as much.
        """
        if not isinstance(gram, Gram):
            raise PrivacyError(
                "the least eigenvalue is of a sum to which every row adds a positive semidefinite matrix"
            )
        row = math.isqrt(gram.moved.one)  # a row's part, in norm and in trace
        trace = float(self.n * row) * UP
        off = 1.02 * ((self.d + 1) ** 2 + 2) * 2.0**-53 * trace
        step = math.ldexp(1.0, math.frexp(max(off, row * 2.0**-20))[1] - 1)

        def read() -> Whole:
            A = gram.integers[0].astype(np.float64)
            low, high = 0, math.floor(trace / self.d / step) + 2  # the mean of the eigenvalues is below
            # As many factorisations whatever the matrix is: time tells nothing of it.
            for _ in range(math.ceil(math.log2(high))):
                middle = (low + high) // 2
                low, high = (middle, high) if _positive(A, middle * step) else (low, middle)
            return np.array([low])

        unit = step * gram.unit
        return Eigenvalue(Deferred((1,), read), unit, (off * gram.unit + unit) * UP, row * gram.unit * UP)

    def hessian(self, W: np.ndarray, rows: np.ndarray | None = None) -> NoReturn:
        """Raises PrivacyError: the regularisers' part belongs behind the noise."""
        raise PrivacyError("the Hessian of the objective is not a sum over the rows; use data_hessian")

    # Coordinates

    def clipped_gradient(self, W: np.ndarray, clip: np.ndarray, *, even: bool = False) -> Any:
        """See `Problem`; `Coordinates`."""
        self.require_one_output()
        shares = self.even_shares if even else self.clip_shares
        most = _most(float(clip[0]) * shares)
        pointwise = functools.partial(rounded_derivative, self.loss.derivative, False, math.inf)
        W = self.margins(W)
        total = self._whole((1, self.d), clipped_sums, int(most.max()), None, pointwise, W, most)
        return Coordinates(total, STEP, most, self.n) / self.n

    @property
    def _classes(self) -> list[tuple[int, Any]]:
        """(weight, its rows) of each weight that rows have, in 2⁻ᵇⁱᵗˢ."""
        return [(1, self._rows)]

    def coordinate_state(self, W: np.ndarray) -> Any:
        """See `Problem`; its derivatives are `Sum`s."""
        self.require_one_output()
        return ExactState(self, self.batch(W))

    # Minimisers

    def approximate_minimiser(
        self, solve: Callable[..., tuple[np.ndarray, ...]], W: np.ndarray, b: np.ndarray, ridge: float, gamma: float
    ) -> tuple[Any, np.ndarray, np.ndarray]:
        """See `EmpiricalRisk.approximate_minimiser`; the minimiser is a `CertifiedMinimiser`, and the norms are
        bounds of the true ones.

        A point whose gradient (with l1, least subgradient) has norm at most γ is within γ/m of the minimiser of an
        m-strongly convex function. γ is the `gamma` asked for, or twice what float64 may be off by (`_off`) where that
        is more: a public number in either case. The solver, in float64, is asked for γ/4.
        """
        near, read = self._near(solve, W, b, ridge, gamma)
        steps, norms, evaluations = read()
        near = CertifiedMinimiser(steps, near.unit, near.radius, near.objective)
        return near, norms, evaluations

    def minimiser(
        self, solve: Callable[..., Any], W: np.ndarray, b: np.ndarray, ridge: float, gamma: float, public: float = 0.0
    ) -> CertifiedMinimiser:
        """The same, solved when it is released; PrivacyError then where the solver does not reach γ.

        (L₀R + public)/convexity and ‖W‖ ≤ `FARTHEST` are asked for beforehand, `public` being ‖b‖ where b is no random
        term: without a term no minimiser is further from 0, and up to there the solver reached γ on every table tried
        (432). That is evidence and no proof, so a miss ends a check.
        """
        near, read = self._near(solve, W, b, ridge, gamma)
        far = max((near.objective.pull * self.n + public) / near.objective.convexity, float(np.linalg.norm(W)))
        if not far <= FARTHEST:
            raise PrivacyError(f"a minimiser of so little convexity may be too far; raise the ridge, got {ridge:g}")

        def steps() -> Whole:
            near_by, norms, _ = read()
            if not np.isfinite(norms).all():
                raise PrivacyError("the solver did not reach its tolerance")
            return near_by

        return CertifiedMinimiser(Deferred((1, self.d), steps), near.unit, near.radius, near.objective)

    def _near(
        self, solve: Callable[..., tuple[np.ndarray, ...]], W: np.ndarray, b: np.ndarray, ridge: float, gamma: float
    ) -> tuple[CertifiedMinimiser, Callable[[], tuple[Whole, np.ndarray, np.ndarray]]]:
        """(what is public of a minimiser, what solves for (its steps, bounds of the norms, Hessians taken))."""
        tolerance, gamma = gamma, max(gamma, 2 * self._off(FARTHEST))
        if self.loss.outputs > 1 or not built_in(self.loss):
            raise PrivacyError("the error of a minimiser's certificate is not known for this loss")
        convexity = ridge + self.l2
        if not convexity > 0 or self.w2 or not self.loss.convex:
            raise PrivacyError("the minimiser of an objective that is not strongly convex is not covered")
        radius = gamma / convexity
        # A power of two far below the radius; rounding to it adds unit·√d/2 at most, which is counted in.
        unit = math.ldexp(1.0, math.frexp(radius / math.sqrt(self.d))[1] - OUTPUT_BITS)
        objective = Objective(
            np.array(b, dtype=float),
            convexity,
            self.lipschitz / self.n,
            self.smoothness / (self.n * convexity),
            self.loss.logistic,
        )
        radius = (radius + unit * math.sqrt(self.d) / 2) * UP

        def read() -> tuple[Whole, np.ndarray, np.ndarray]:
            steps, norms, evaluations = self._solved(solve, W, b, ridge, gamma, unit)
            return steps, np.where(norms <= gamma, np.minimum(norms, tolerance), np.inf), evaluations  # reached or not

        return CertifiedMinimiser(np.zeros((1, self.d), dtype=np.int64), unit, radius, objective), read

    def _solved(
        self, solve: Any, W: np.ndarray, b: np.ndarray, ridge: float, gamma: float, unit: float
    ) -> tuple[Whole, np.ndarray, np.ndarray]:
        """(the point found, in steps of `unit`; a bound on the norm of its gradient; Hessians taken)."""
        real = self.real
        # The norm that the solver states is not taken: below it is computed anew, with float64's error added.
        W, _, evaluations = solve(real, W, b, ridge, gamma / 4, **({"steady": True} if self.steady else {}))
        G = real.in_order(W) / self.n  # type: ignore[attr-defined]
        public = sum((r.gradient(W) for r in self.smooth_regularisers), ridge * W + b)
        norms = np.linalg.norm(least_subgradient(G + public, W, self.l1), axis=1)
        size = self.loss.lipschitz * self.row_bound + np.linalg.norm(W, axis=1) * (ridge + self.objective_smoothness)
        norms = (norms + 8 * 2.0**-53 * (size + np.linalg.norm(b, axis=1))) * UP + self._off(float(np.linalg.norm(W)))
        steps = np.rint(np.where(np.isfinite(W), W, 0.0) / unit)
        # A point so far off is none that the solver should return; the run is then refused.
        if not (np.abs(steps) < 2.0**52).all():
            norms = np.full_like(norms, np.inf)  # too far for the grid: not reached
            steps = np.zeros_like(steps)
        return steps.astype(np.int64), norms, evaluations

    @property
    def real(self) -> Problem:
        """The problem on the same rows in float64, for a solver whose result is checked."""
        problem = copy.copy(self)
        problem._rows = self._rows.in_float64  # noqa: SLF001 - a copy leaves out what is derived; float32 misses the tolerance
        problem.__class__ = _RealProblem  # type: ignore[assignment]
        return problem

    def _off(self, norm: float) -> float:
        """How far the computed mean gradient of the loss is from the true one at ‖w‖ = norm, in ℓ₂ norm, at most.

        u = 2⁻⁵³. A margin is off by (d + 2)u·R‖w‖ (any order of the sum), its derivative by L₁ times that and by 2⁻⁴⁹
        of its own (exp within 16 units in the last place moves 1/(1 + e^z) by less than 2⁻⁵⁰; three roundings). A sum
        of m numbers in any order is off by mu/(1 - mu) times the sum of their sizes (Higham 2002, Section 4.2): three
        times, as `in_order` adds.
        """
        margin = (self.d + 2) * 2.0**-53 * self.row_bound * norm
        block = Rows.widened_size(self.features)
        depth = BLOCK + block / BLOCK + self.n / block + 8
        weights = self.loss.smoothness * margin + 2.0**-49
        return float(self.row_bound * (weights + 1.01 * depth * 2.0**-53 * self.loss.lipschitz) * UP)

    # Internals

    def require_one_output(self) -> None:
        """PrivacyError for a loss with several outputs, of which gradients alone are derived.

        What multiplies a row is a vector there: k labels of one row would move a sum by √k times what one does.
        """
        if self.loss.outputs > 1:
            raise PrivacyError(f"of {self.loss.name} loss only gradients are sums whose distance is known")

    def _bounded(self, w: np.ndarray, bound: float, rows: np.ndarray | None = None) -> Sum:
        if not bound < math.inf:
            raise PrivacyError(f"{self.loss.name} loss has no bound on its derivative: clip it")
        positive_bound(bound)
        if self.loss.outputs == 1:
            inside = built_in(self.loss) and self.loss.bounded_in_float and bound >= self.loss.lipschitz
            return self._weighted(
                functools.partial(rounded_derivative, self.loss.derivative, not inside), w, bound, rows
            )
        square = square_bound(bound)  # weights have the rows' grid
        return self._total(functools.partial(_vector, self.loss, bound, square), w, square, rows)

    def _weighted(self, function: Callable[..., Any], w: np.ndarray, bound: float, rows: Any = None) -> Sum:
        """Σ c_i x_i, c = function(C, z, y, out) multiples of 2⁻¹⁶ within ±C, C = `bound` rounded down to one."""
        self.require_one_output()
        most = math.floor(Fraction(positive_bound(bound)) * 2**WEIGHT_BITS)
        l1 = None if self._l1 is None else most * self._l1
        return self._total(functools.partial(function, most * 2.0**-WEIGHT_BITS), w, most**2, rows, l1)

    def _total(self, function: Pointwise, w: np.ndarray, square: int, rows: Any, l1: int | None = None) -> Sum:
        """Σ c_i x_iᵀ, c = function(z, y, out) vectors of multiples of 2⁻¹⁶, of ‖c‖² ≤ square in units of them."""
        W = np.atleast_2d(w)
        if len(W) != 1:
            raise PrivacyError("exact sums serve one replicate at a time")
        if square < 1:
            raise PrivacyError("a bound on the rows' weights is below the grid's step of 2**-16")
        W = self.margins(W)
        largest, bits = math.isqrt(square) * math.isqrt(self._square), ROW_BITS + WEIGHT_BITS
        total = self._whole((1, self.d), weighted_sum, largest, rows, function, W, bits)
        return Sum(total, 2.0**-bits, weighted(self._square, square, l1), within=float(self.n * largest) * UP)

    def _whole(
        self,
        shape: tuple[int, ...],
        function: Callable[..., Whole],
        largest: int,
        chosen: np.ndarray | None,
        *arguments: Any,
    ) -> Deferred:
        """function(rows, room, *arguments, chosen), weighed and added up, in 2⁻ᵇⁱᵗˢ of its unit. largest: of a part."""
        if (self.n * largest) << self.bits > LARGEST:
            raise PrivacyError(f"{self.n:,} records with parts of up to {largest:g} do not fit 64 bits; lower the clip")
        room = MANTISSA // largest
        if not room:
            raise PrivacyError(f"one row's part of up to {largest:g} does not fit float64; lower the bounds")

        def read() -> Whole:
            parts = (a * function(rows, room, *arguments, chosen) for a, rows in self._classes)
            return sum(parts, np.zeros(1, dtype=np.int64)).reshape(shape)

        # Weighted parts have no integers until `Sum.finer` says what they count.
        return (WeightedParts if self.bits else Deferred)(shape, read)


class ExactProblem(SubstitutedRows, ExactSums):
    """A `Problem` whose X is put on the grid, every row within `row_bound`. Declared as of `EmpiricalRisk`.

    Many float32 rows are put there block by block as they are read, with no copy of them (`grid.GridRows`).

    steady: what is done, and how often, is the same for all data of one shape. owned: X may be written to.
    """

    rows_of = GridRows

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        row_bound: float,
        row_bound_norm: str = "l2",
        steady: bool = False,
        owned: bool = False,
        **declared: Any,
    ) -> None:
        lazy = not steady and not owned and getattr(X, "nbytes", 0) >= LARGE
        # Few rows are beyond the bound as a rule: only those are copied.
        short = short_rows(X, row_bound, row_bound_norm) if lazy else None
        if short is None:
            X = on_grid(X, row_bound, row_bound_norm, steady=steady, owned=owned)
        super().__init__(X, y, row_bound=row_bound, row_bound_norm=row_bound_norm, **declared)
        self.steady = steady
        if short is not None:
            self._short, self._raw = short, self.__dict__.pop("X")


class ExactState:
    """The exact margins of one model w, kept up to date while single coordinates of it move, on w's public grid."""

    def __init__(self, problem: ExactSums, W: np.ndarray) -> None:
        self._problem, self._w = problem, W[0].copy()
        self._moves: list[tuple[int, float]] = []
        self._made, self._settled = 0, False

    def _settle(self) -> None:
        """A grid for up to twice ‖w‖ (1 at least), and the margins on it."""
        problem = self._problem
        self._longest = 2.0 * max(1.0, float(np.linalg.norm(problem.batch(self._w[None]))))
        exponent = math.frexp(self._longest)[1]
        self._unit = math.ldexp(1.0, exponent - problem._margin_bits)  # noqa: SLF001
        self._on_grid = np.rint(self._w / self._unit) * self._unit
        of = problem.loss, problem.even_shares
        self._margins = [(a, Margins(columns_of(rows, *of), self._on_grid)) for a, rows in problem._classes]  # noqa: SLF001
        self._settled = True

    def derivative(self, j: int, threshold: np.ndarray) -> Sum:
        """(1,) mean over the rows of clip(r_i x_ij, ±threshold), r_i = ℓ'_i rounded; threshold (1,).

        The rows are read when it is released, which has to be before the model moves further.
        """
        most, moves = int(_most(threshold)[0]), len(self._moves)
        problem = self._problem
        if (problem.n * most) << problem.bits > LARGEST:
            raise PrivacyError(f"{problem.n:,} rows clipped at {threshold[0]:g} do not fit 64 bits; clip more")

        def read() -> Whole:
            if self._made > moves:
                raise PrivacyError("a derivative is of a model that has moved since; take it anew")
            self._make(moves)
            parts = (a * one.derivative(problem.loss.derivative, j, most) for a, one in self._margins)
            return sum(parts, np.zeros(1, dtype=np.int64))

        moved = RowSensitivity(most**2, 4 * most**2, most)
        total = Sum(WeightedParts((1,), read), STEP, moved, within=float(problem.n * most) * UP)
        return total.finer(problem.bits) / problem.n

    def move(self, j: int, change: np.ndarray) -> None:
        """Coordinate j has changed by `change` (1,)."""
        self._moves.append((j, float(change[0])))

    def _make(self, moves: int) -> None:
        """Bring the margins to the model after so many moves."""
        if not self._settled:
            self._settle()
        for j, change in self._moves[self._made : moves]:
            self._move(j, change)
        self._made = moves

    def _move(self, j: int, change: float) -> None:
        self._w[j] += change
        # The grid was chosen for a norm: once w has outgrown it, margins would no longer be exact.
        if not np.linalg.norm(self._w) <= self._longest:
            self._settle()
            return
        new = float(np.rint(self._w[j] / self._unit) * self._unit)
        moved = new - float(self._on_grid[j])
        self._on_grid[j] = new
        for _, one in self._margins:
            one.move(j, moved)


class Margins:
    """The margins on some rows, of which `columns` has the columns, of a model w (d,) on a public grid: exact."""

    def __init__(self, columns: DataColumns, w: np.ndarray) -> None:
        self._X, self._y, self._sparse = columns.X, columns.rows.y, columns.rows.sparse
        z = self._X @ w if self._sparse else w @ self._X.astype(np.float64, copy=False)
        self._z = np.ascontiguousarray(z)[None]

    def derivative(self, loss: Pointwise, j: int, most: int) -> Whole:
        """(1,) Σ clip(r_i x_ij, ±most) in steps of 2⁻³²."""
        r = rounded_derivative(loss, False, math.inf, self._z, self._y, np.empty_like(self._z))[0]
        rows, x = self._column(j)
        return np.array([_added(_within(r[rows] * x, most * STEP), MANTISSA // most)])

    def move(self, j: int, change: float) -> None:
        """Coordinate j has changed by so much, on the grid."""
        rows, x = self._column(j)
        self._z[0, rows] += x * change  # both terms and their sum are on the margins' grid

    def _column(self, j: int) -> tuple[Any, np.ndarray]:
        X: Any = self._X
        if self._sparse:
            part = slice(X.indptr[j], X.indptr[j + 1])
            return X.indices[part], X.data[part]
        return slice(None), X[j].astype(np.float64, copy=False)


def weighted_sum(
    rows: Rows, room: int, function: Pointwise, W: np.ndarray, bits: int, chosen: np.ndarray | None = None
) -> Whole:
    """(k, d) Σ c_i x_i in steps of 2^-bits, c = function(<x_i, w>, y_i, out). room: rows whose sum float64 holds."""
    total, partial, added = np.zeros(W.shape, dtype=np.int64), np.zeros(W.shape), 0
    fitting = BLOCK if rows.sparse else min(LONGEST, max(1, CACHED // ((rows.d + len(W)) * 8) // BLOCK) * BLOCK)
    # Products and sums of multiples of 2⁻¹⁶ are exact in float64 up to `room` rows; then integers take over.
    for A, y, z in rows.in_float64.predictions(W, chosen, min(room, fitting)):
        if added + len(y) > room:  # beyond, float64 might round
            total += (partial * 2.0**bits).astype(np.int64)
            partial[...], added = 0.0, 0
        added += len(y)
        c = function(z, y, z)
        partial += (A.T @ c.T).T if rows.sparse else c @ A
    total += (partial * 2.0**bits).astype(np.int64)
    return total


def value_sum(rows: Rows, room: int, function: Pointwise, W: np.ndarray, chosen: np.ndarray | None) -> Whole:
    """(1,) Σ function(<x_i, w>, y_i, out), multiples of 2⁻¹⁶, in these steps."""
    parts = (function(z, y, z).sum() for _, y, z in rows.in_float64.predictions(W, chosen, min(room, BLOCK)))
    return np.array([sum(int(part * 2.0**WEIGHT_BITS) for part in parts)], dtype=np.int64)


def clipped_sums(
    rows: Rows, room: int, function: Pointwise, W: np.ndarray, most: np.ndarray, chosen: np.ndarray | None
) -> Whole:
    """(1, d) Σ clip(c_i x_ij, ±most_j) in steps of 2⁻³², c = function(<x_i, w>, y_i, out), most in these steps."""
    total, limits = np.zeros(W.shape, dtype=np.int64), most * STEP
    for A, y, z in rows.in_float64.predictions(W, chosen, min(room, BLOCK)):
        c = function(z, y, z)[0]
        if rows.sparse:
            parts = A.multiply(c[:, None]).tocsr()
            parts.data = _within(parts.data, limits[parts.indices])
            part = np.asarray(parts.sum(axis=0)).ravel()
        else:
            part = _within(A * c[:, None], limits).sum(axis=0)
        total[0] += (part / STEP).astype(np.int64)
    return total


def _positive(A: np.ndarray, shift: float) -> bool:
    """Whether Cholesky's factorisation of A - shift·I runs to its end."""
    A = A.copy()
    np.einsum("ii->i", A)[:] -= shift
    return bool(scipy.linalg.lapack.dpotrf(A, overwrite_a=1)[1] == 0)


def _most(thresholds: np.ndarray) -> np.ndarray:
    """Thresholds in steps of 2⁻³², rounded down."""
    if not (np.asarray(thresholds) >= 0).all():
        raise PrivacyError("a clipping threshold must not be negative; raise clip")
    if not (np.asarray(thresholds) < 2.0**20).all():
        raise PrivacyError("a clipping threshold of 2**20 or more does not fit the grid; lower clip")
    most = np.floor(np.asarray(thresholds) / STEP).astype(np.int64)
    if not most.any():
        raise PrivacyError("a clipping threshold below 2**-32 does not fit the grid; raise clip")
    return most


def positive_bound(bound: float) -> float:
    """The bound on the rows' weights; PrivacyError where it is none: a negative one would make distances negative."""
    if not 0 < bound < math.inf:
        raise PrivacyError(f"a bound on the rows' weights must be positive and finite, got {bound:g}")
    return bound


def _added(parts: np.ndarray, room: int) -> int:
    """Σ parts in steps of 2⁻³², `room` of them at a time."""
    return sum(int(float(parts[i : i + room].sum()) / STEP) for i in range(0, len(parts), room))


class _RealProblem(SubstitutedRows, Problem):
    """What `ExactSums.real` is: it takes float32 rows' gradients by `in_order`, and keeps the last.

    So the gradient that a solver stopped at, and that the certificate is of, is taken once.
    """

    _kept: tuple[np.ndarray, np.ndarray] | None = None

    def in_order(self, W: np.ndarray) -> np.ndarray:
        """(k, d) sums over all rows, by `in_order`."""
        if self._kept is None or not np.array_equal(self._kept[0], W):
            self._kept = W.copy(), in_order(self._rows, self.loss.derivative, W)
        return self._kept[1].copy()

    def gradient_sum(self, w: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """See `EmpiricalRisk`."""
        if rows is not None or self._rows.in_float32 is None:
            return super().gradient_sum(w, rows)
        return self.in_order(self.batch(np.atleast_2d(w))).reshape(np.shape(w))


def in_order(rows: Rows, loss: Pointwise, W: np.ndarray) -> np.ndarray:
    """(k, d) Σ ℓ'_i x_i in float64, for which `ExactSums._off` is a bound on the error.

    BLOCK rows at a time are added, of these the sums of `widened_size` rows, and then all of those.
    """
    total = np.zeros(W.shape)
    for A, y in rows.in_float64.blocks(None, Rows.widened_size(rows.d)):
        z = np.ascontiguousarray((A @ W.T).T)
        c = loss(z, y, z)
        partial = np.zeros(W.shape)
        for start in range(0, len(y), BLOCK):
            here = slice(start, start + BLOCK)
            partial += (A[here].T @ c[:, here].T).T if rows.sparse else c[:, here] @ A[here]
        total += partial
    return total


def gram_sum(
    rows: Rows, room: int, function: Pointwise | None, W: np.ndarray | None, bits: int, chosen: np.ndarray | None
) -> Whole:
    """(1, d, d) Σ h_i x_i x_iᵀ in squares of 2^-bits, h = function(<x_i, w>, y_i, out) integers, or 1."""
    total = np.zeros((1, rows.d, rows.d), dtype=np.int64)
    for A, y in rows.in_float64.blocks(chosen, min(room, BLOCK)):
        if bits < ROW_BITS:
            A = (A * 2.0**bits).trunc() / 2.0**bits if rows.sparse else np.trunc(A * 2.0**bits) / 2.0**bits
        if function is None or W is None:
            weighted = A
        else:
            z = np.ascontiguousarray((A @ W.T).T)
            h = function(z, y, z)[0]
            weighted = A.multiply(h[:, None]).tocsr() if rows.sparse else A * h[:, None]
        part = (A.T @ weighted).toarray() if rows.sparse else A.T @ weighted
        total[0] += (part * 2.0 ** (2 * bits)).astype(np.int64)
    return total


def rounded_derivative(
    loss: Pointwise, clip: bool, most: float, z: np.ndarray, y: np.ndarray, out: np.ndarray
) -> np.ndarray:
    """c = ℓ'(z, y) rounded to multiples of 2⁻¹⁶, clipped to ±most where asked; `out` has room for it."""
    c = _rounded(loss(z, y, out))
    return _within(c, most) if clip else c


def _value(loss: Pointwise, most: float, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
    c = _rounded(loss(z, y, out))
    return np.fmax(np.fmin(c, most, out=c), 0.0, out=c)


def _vector(loss: Loss, bound: float, square: int, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
    """(outputs, b) derivatives rounded towards zero, which shortens them, to integers of ‖c‖² ≤ square, times 2⁻¹⁶."""
    c = loss.bounded(z, y, bound, out)
    c *= 2.0**WEIGHT_BITS
    np.trunc(c, out=c)
    sizes = np.einsum("ij,ij->j", c, c)
    # Rounding towards zero shortens; only a norm at the bound itself can be above it by a rounding.
    beyond = np.flatnonzero(~(sizes <= square))  # by a rounding of float64
    if len(beyond):
        c[:, beyond] = np.trunc(c[:, beyond] * (math.sqrt(square) * (1 - 2.0**-20) / np.sqrt(sizes[beyond])))
        if not (np.einsum("ij,ij->j", c, c) <= square).all():
            raise PrivacyError("derivatives could not be brought within their bound on the grid")
    c *= 2.0**-WEIGHT_BITS
    return c


def _labels(most: float, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
    return _within(_rounded(np.add(np.multiply(z, 0, out=out), y, out=out)), most)


def _within(c: np.ndarray, most: Any) -> np.ndarray:
    """c in place, clipped to ±most, and -most where it is no number: such is no row's part of a sum."""
    # fmin and fmax, not minimum and maximum: they take the number where the other is none.
    return np.fmin(np.fmax(c, -most, out=c), most, out=c)


def _rounded(c: np.ndarray) -> np.ndarray:
    """c rounded to multiples of 2⁻¹⁶, in place, where |c| < 2³⁵; what is larger stays as large, to be clipped.

    The float64 numbers next to 1.5·2³⁶ are the multiples of 2⁻¹⁶: adding it rounds. A third of the time of np.rint.
    """
    np.add(c, 1.5 * 2.0 ** (52 - WEIGHT_BITS), out=c)
    return np.subtract(c, 1.5 * 2.0 ** (52 - WEIGHT_BITS), out=c)


def _square(loss: Pointwise, most: float, step: float, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
    c = _within(loss(z, y, out), most)
    return np.rint(np.divide(np.square(c, out=c), step, out=c), out=c)


def _curvature(loss: Pointwise, step: float, signed: bool, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
    h = loss(z, y, out)
    h = np.rint(np.divide(h, step, out=h), out=h)
    return np.fmin(np.fmax(h, -(2**CURVATURE_BITS) if signed else 0, out=h), 2**CURVATURE_BITS, out=h)
