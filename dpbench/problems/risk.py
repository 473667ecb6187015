"""The empirical risk: data + loss + regularisers, evaluated on a batch of iterates.

F(w) = (1/n) Σ_i ℓ(<x_i, w>, y_i) + l1 ‖w‖₁ + (l2/2) ‖w‖² + w2 Σ_j w_j²/(1 + w_j²).
"""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dpbench.datasets.recipes import one_entry_each, row_norms
from dpbench.errors import DataError, UserError, positive
from dpbench.problems import losses
from dpbench.problems.regularisers import Declaration
from dpbench.problems.rows import Pointwise, Rows

BOUND_SLACK = 1e-12  # relative: a row divided by its norm has norm 1 up to rounding
HESSIAN_BYTES = 4e9
LARGEST_ITERATE = (
    1e100  # an entry of an iterate of a release at which it is stopped: beyond, its margins might not be finite
)


class Diverged(UserError):
    """An iterate is too large to go on with."""


class MeansOfSums:
    """Means over the rows by `gradient_sum` and `hessian_sum` of a class."""

    def data_gradient(self: Any, W: np.ndarray, rows: np.ndarray | None = None) -> Any:
        """Mean gradient of the loss over the given row indices (default all), (k, d)."""
        return self.gradient_sum(self.batch(W), rows) / (self.n if rows is None else len(rows))

    def data_hessian(self: Any, W: np.ndarray, curvature: str = "hess", rows: np.ndarray | None = None) -> Any:
        """Mean Hessian of the loss over the rows (default all), (k, d, d).

        curvature: "hess", or "qu" for the logistic loss: the weights tanh(z/2)/(2z) of the quadratic that
        bounds the loss from above and touches it at w (Ganesh et al. 2023, Section 3).
        """
        return self.hessian_sum(self.batch(W), rows, curvature) / (self.n if rows is None else len(rows))


class EmpiricalRisk(MeansOfSums, Declaration):
    """What a `Declaration` says, with the n rows in d dimensions: every sum over them is taken here.

    Iterates are batches `W` (k, d). "data" methods leave the regularisers out; gradients and Hessians are
    those of the smooth part: everything but l1.

    X: (n, d) float64 array (a read-only np.memmap is shared, never copied) or scipy.sparse matrix. A float32 array is
        worked on in float32, block by block, and summed in float64 (see `rows`).
    y: (n,) labels: ±1 for logistic and sigmoid, real for squared.
    row_bound: declared without looking at the data; rows beyond it are a DataError. None: the largest norm measured,
        which then counts as public. inf: there is none.
    folder: where what is derived from the data may be cached; None keeps it in memory only.
    data_hash: what names the data in that cache; computed from X and y when not given.
    rows_checked: whether the caller has just seen that all rows are numbers within the bound.
    declared: loss, weights, `row_bound_norm` and name, as of a `Declaration`.
    """

    derived: ClassVar[tuple[str, ...]] = ("_rows",)  # made anew where it is unpickled
    weighted: ClassVar[bool] = False  # whether a row counts other than once
    limit: float = math.inf  # of an iterate's entries, see `batch`

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        row_bound: float | None = None,
        folder: str | Path | None = None,
        data_hash: str | None = None,
        rows_checked: bool = False,
        **declared: Any,
    ) -> None:
        self.X, self.y = _checked(X, y)
        rows, self.features = self.X.shape
        super().__init__(rows, self.features * losses.get(declared.get("loss", "logistic")).outputs, **declared)
        self.loss.check_labels(self.y)
        self.folder = None if folder is None else Path(folder)
        if data_hash is not None:
            self.data_hash = data_hash
        if rows_checked and row_bound is not None and row_bound < math.inf:
            self.row_bound = positive("row_bound", row_bound)
        else:
            self.row_bound = self._checked_bound(row_bound)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in self.derived}

    @cached_property
    def _rows(self) -> Rows:
        return Rows(self.X, self.y)

    @cached_property
    def data_hash(self) -> str:
        """sha256 of X and y, or what the caller gave."""
        arrays = (self.X.data, self.X.indices, self.X.indptr) if self._rows.sparse else (self.X,)
        sha = hashlib.sha256(repr(self.X.shape).encode())
        for array in (*arrays, self.y):
            sha.update(memoryview(array).cast("B"))
        return sha.hexdigest()

    @property
    def is_sparse(self) -> bool:
        """Whether X is a scipy.sparse matrix (CSR)."""
        return self._rows.sparse

    # Values and gradients

    def predictions(self, W: np.ndarray) -> np.ndarray:
        """<x_i, w>, (k, n); of a loss with several outputs (k·outputs, n)."""
        return self._rows.all_predictions(self._models(W))

    def value(self, W: np.ndarray) -> np.ndarray:
        """F(w), (k,), with every regulariser."""
        return self._sum(self.loss.value, W) / self.n + self._penalty(self.batch(W))

    def gradient(self, W: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """Gradient of the smooth part of F, its mean over the given row indices (default all), (k, d)."""
        return self._add_slopes(self.data_gradient(W, rows), self.batch(W))

    def value_and_gradient(self, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(`value`, `gradient`) for the price of about one and a half gradients."""
        W = self.batch(W)
        total, weighted = self._rows.sum_and_weighted_sum(self.loss.value, self.loss.derivative, self._models(W))
        value = total.reshape(len(W), -1).sum(axis=1) / self.n + self._penalty(W)
        return value, self._add_slopes(weighted.reshape(W.shape) / self.n, W)

    def gradient_sum(self, w: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """Sum (not mean) of the loss gradients of the given row indices (default all), the data part only.

        w is (d,) or a batch (k, d) that shares the rows; the result has its shape.
        """
        W = np.atleast_2d(w)
        return self._rows.weighted_sum(self.loss.derivative, self._models(W), rows).reshape(np.shape(w))

    def bounded_gradient(self, W: np.ndarray, bound: float) -> np.ndarray:
        """(k, d) means of the rows' loss gradients a_i x_i with the derivative a_i = ℓ' clipped to ±bound.

        Of several outputs a_i xᵀ_i, with ‖a_i‖₂ ≤ bound.
        """
        total = self._rows.weighted_sum(lambda z, y, out: self.loss.bounded(z, y, bound, out), self._models(W))
        return total.reshape(len(W), self.d) / self.n

    def clipped_curvature(self, W: np.ndarray, bound: float) -> np.ndarray:
        """(k, d, d) sums over the rows with |ℓ'_i| ≤ bound of x_i x_iᵀ, over n; of a loss with one output."""
        return self._rows.gram(lambda z, y, out: self.loss.inside(z, y, bound, out), self.batch(W)) / self.n

    def score_moment(self, W: np.ndarray, bound: float) -> np.ndarray:
        """(k, d, d) means of a_i² x_i x_iᵀ, a_i = ℓ' clipped to ±bound, of a loss with one output."""

        def squares(z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
            return np.square(self.loss.bounded(z, y, bound, out), out=out)

        return self._rows.gram(squares, self.batch(W)) / self.n

    def accuracy(self, W: np.ndarray) -> np.ndarray:
        """Fraction of rows with y <x, w> > 0, or of which the label's score is the largest, (k,); for classes."""
        return self._sum(self.loss.correct, W) / self.n

    # Curvature

    def hessian(self, W: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """Hessian of the smooth part of F, its mean over the given row indices (default all), (k, d, d)."""
        W = self.batch(W)
        H = self.data_hessian(W, rows=rows)
        diagonal = np.einsum("kii->ki", H)
        for r in self.smooth_regularisers:
            diagonal += r.hessian_diagonal(W)
        return H

    def hessian_sum(self, w: np.ndarray, rows: np.ndarray | None = None, curvature: str = "hess") -> np.ndarray:
        """Sum (not mean) of the loss Hessians of the given rows (default all), the data part only.

        w is (d,), result (d, d), or a batch (k, d) that shares the rows, result (k, d, d).
        """
        W = np.atleast_2d(w)
        # Refused before it is tried: the operating system would kill the process without a word.
        if len(W) * self.d**2 * 8 > HESSIAN_BYTES:
            raise UserError(f"a Hessian at d = {self.d} does not fit in memory; use a method that asks for none")
        weights = self._curvature(curvature)
        H = self._rows.gram(weights, W, rows, convex=self.loss.convex)
        return H if np.ndim(w) == 2 else H[0]

    def hessian_root(self, w: np.ndarray) -> Any:
        """A (n, d), dense or CSR, with AᵀA the mean Hessian at w (d,) of a convex loss with one output."""
        z = self.predictions(w[None]).astype(np.float64, copy=False)
        root = np.sqrt(self.loss.second_derivative(z, self.y, np.empty_like(z))[0] / self.n)[:, None]
        return self.X.multiply(root).tocsr() if self.is_sparse else self.X * root

    def least_eigenvalue(self, gram: np.ndarray) -> Any:
        """(1,), of a positive semidefinite sum over the rows (d, d), as `hessian_sum` gives it."""
        return np.linalg.eigvalsh(gram)[:1]

    def second_moment(self) -> np.ndarray:
        """XᵀX/n, (d, d)."""
        return self._rows.weighted_gram() / self.n

    # Minimisers

    def smallest_margins(self, W: np.ndarray) -> np.ndarray:
        """(k,) min_i y_i <x_i, w>."""
        return np.asarray((self._rows.all_predictions(self.batch(W)) * self._rows.y).min(axis=1))

    def mean_conjugate(self, w: np.ndarray, scale: float) -> float:
        """Mean over the rows of ℓ*(ℓ'(<x, w>)/scale) for w (d,), ℓ* the convex conjugate of a loss with one output."""
        loss = self.loss
        total = self._rows.sum(lambda z, y, out: loss.conjugate(loss.derivative(z, y, out) / scale, y), w[None])
        return float(total[0]) / self.n

    @property
    def in_float32(self) -> Any:
        """The same with sums from float32 products, where X is float32 and this problem's are float64; else None."""
        rows = self._rows.in_float32
        if rows is None:
            return None
        problem = copy.copy(self)
        problem._rows = rows  # noqa: SLF001 - a copy leaves out what is derived
        return problem

    def approximate_minimiser(
        self, solve: Callable[..., tuple[np.ndarray, ...]], W: np.ndarray, b: np.ndarray, ridge: float, gamma: float
    ) -> tuple[Any, np.ndarray, np.ndarray]:
        """solve(self, W, b, ridge, gamma): minimisers of F + ridge/2 ‖w‖² + <b, w>, norms of gradients, Hessians taken.

        In float64, whatever the rows are kept in: the noise rests on the norms, and in float32 a norm is off by as much
        as is asked for. On rows of a grid: with a certificate that the release needs (`exact.ExactSums`).
        """
        problem = self
        if self._rows.single:
            problem = copy.copy(self)
            problem._rows = self._rows.in_float64  # noqa: SLF001 - a copy leaves out what is derived
        W, norms, evaluations = solve(problem, W, b, ridge, gamma)
        return W, norms, evaluations

    # Labels and single rows

    def clipped_value(self, W: np.ndarray, clip: float) -> np.ndarray:
        """Mean of each row's loss, at most clip (> 0) and clip where it is no number, (k,)."""

        def clipped(z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
            return np.maximum(np.fmin(self.loss.value(z, y, out), clip, out=out), 0.0, out=out)

        return self._sum(clipped, W) / self.n

    def label_moments(self, bound: float) -> np.ndarray:
        """Σ_i y_i x_i, labels clipped to ±bound, (d,)."""
        return self._rows.label_moments(bound)

    @cached_property
    def mean_label(self) -> float:
        """Σ_i y_i / n."""
        return self._rows.label_sum() / self.n

    def take(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows of these indices, of any shape: features (..., d), dense, and labels (...)."""
        A, y = self._rows.take(rows.ravel())
        return A.reshape(*rows.shape, self.d), y.reshape(rows.shape)

    # Constants of the data

    @cached_property
    def row_norms(self) -> np.ndarray:
        """‖x_i‖₂, (n,)."""
        return row_norms(self.X)

    @cached_property
    def row_norm(self) -> float:
        """max_i ‖x_i‖₂, measured."""
        return self._rows.largest_norm(2)

    @cached_property
    def row_norm_l1(self) -> float:
        """max_i ‖x_i‖₁, measured."""
        return self._rows.largest_norm(1)

    @cached_property
    def coordinate_constants(self) -> np.ndarray:
        """M_j = L1 · mean_i x_ij² + the regularisers' smoothness, (d,)."""
        penalty = sum(r.smoothness for r in self.smooth_regularisers)
        return self.loss.smoothness * self._rows.column_squares() / self.n + penalty

    @cached_property
    def clip_shares(self) -> np.ndarray:
        """sqrt(M_j / Σ_k M_k), (d,): how greedy_coordinate shares one clipping threshold among the coordinates."""
        return np.sqrt(self.coordinate_constants / self.coordinate_constants.sum())

    @property
    def even_shares(self) -> np.ndarray:
        """1/√d, (d,): the shares where nothing tells the coordinates apart."""
        return np.full(self.d, self.d**-0.5)

    @cached_property
    def top_eigenvalue(self) -> float:
        """Largest eigenvalue of XᵀX/n, measured."""
        if self.d <= 2000:
            return float(np.linalg.eigvalsh(self._rows.weighted_gram())[-1]) / self.n
        from scipy.sparse.linalg import svds

        # A fixed start: ARPACK's own is random, and the constant is part of a job's result.
        start = np.ones(min(self.n, self.d))
        return float(svds(self.X, k=1, v0=start, return_singular_vectors=False)[0] ** 2) / self.n

    # Internals

    def batch(self, W: np.ndarray) -> np.ndarray:
        """W as (k, d) float64; ValueError for another shape.

        Raises Diverged for an entry beyond `limit`, or that is no number, where one is set. Where it then overflowed
        would depend on the data, and reveal something about them; that a released iterate is so large tells no more
        than it does.
        """
        W = np.asarray(W, dtype=float)
        if self.limit < math.inf and not (np.abs(W) <= self.limit).all():
            raise Diverged("a released iterate went beyond 1e100; choose a smaller step")
        if W.ndim != 2 or W.shape[1] != self.d:
            raise ValueError(f"W: expected shape (k, {self.d}), got {W.shape}")
        return W

    def _models(self, W: np.ndarray) -> np.ndarray:
        """W (k, d) with a row for each output of the loss, (k·outputs, features)."""
        return self.batch(W).reshape(-1, self.features)

    def _sum(self, function: Pointwise, W: np.ndarray) -> np.ndarray:
        """(k,) sums over rows, and over the outputs of each, of function(<x_i, w>, y_i)."""
        return self._rows.sum(function, self._models(W)).reshape(len(W), -1).sum(axis=1)

    def _penalty(self, W: np.ndarray) -> np.ndarray:
        return sum((r.value(W) for r in self.regularisers.values()), np.zeros(len(W)))

    def _add_slopes(self, G: np.ndarray, W: np.ndarray) -> np.ndarray:
        for r in self.smooth_regularisers:
            G += r.gradient(W)
        return G

    def _curvature(self, name: str) -> Pointwise:
        if name == "qu" and self.loss.convex:
            return self.loss.quadratic_bound
        if name == "hess":
            return self.loss.second_derivative
        raise UserError(f"curvature: must be hess or qu (logistic loss only), got {name!r}")

    def _checked_bound(self, bound: float | None) -> float:
        order = 2 if self.row_bound_norm == "l2" else 1
        if bound is not None and 0 < bound < math.inf and self._rows.within(order, bound):
            return float(bound)
        measured = self.row_norm if self.row_bound_norm == "l2" else self.row_norm_l1
        if not np.isfinite(measured):
            raise DataError("X: contains NaN or infinite values; drop or impute those rows")
        if bound is None or bound == math.inf:
            return float(measured if bound is None else bound)
        positive("row_bound", bound)
        if measured > bound * (1 + BOUND_SLACK):
            sign = "₂" if self.row_bound_norm == "l2" else "₁"
            raise DataError(
                f"X: the largest row has ‖x‖{sign} = {measured:.4g}, beyond row_bound = {bound:g}; "
                f"divide each row by max(1, ‖x‖{sign}/{bound:g}) or declare a larger bound"
            )
        return float(bound)


def _checked(X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """X as C-ordered float64 (or float32) or CSR, without a copy where it already is, y as (n,) float64."""
    if hasattr(X, "tocsr"):
        X = one_entry_each(X.tocsr().astype(np.float64, copy=False))
    elif not (isinstance(X, np.ndarray) and X.dtype in (np.float64, np.float32) and X.flags.c_contiguous):
        X = np.ascontiguousarray(X, dtype=np.float64)
    if X.ndim != 2 or 0 in X.shape:
        raise DataError(f"X: expected a non-empty table of shape (n, d), got shape {X.shape}")
    single = X.dtype == np.float32 and getattr(y, "dtype", None) == np.float32
    y = np.ascontiguousarray(y, dtype=np.float32 if single else np.float64)
    if y.shape != (X.shape[0],):
        raise DataError(f"y: expected shape ({X.shape[0]},), one label per row of X, got {y.shape}")
    if not np.isfinite(y).all():
        raise DataError("y: contains NaN or infinite values; drop those rows")
    return X, y
