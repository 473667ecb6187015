"""A Problem: data + loss + regularisers, evaluated on a batch of iterates.

F(w) = (1/n) Σ_i ℓ(<x_i, w>, y_i) + l1 ‖w‖₁ + (l2/2) ‖w‖² + w2 Σ_j w_j²/(1 + w_j²).
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy import sparse

from dpbench.errors import DataError, UserError
from dpbench.problems import losses, regularisers
from dpbench.problems.columns import Columns, CompiledState, CoordinateState, coordinate_state
from dpbench.problems.kernels import Rows
from dpbench.problems.optimum import Optimum
from dpbench.problems.optimum import optimum as find_optimum

BOUND_SLACK = 1e-12  # relative: a row divided by its norm has norm 1 up to rounding
HESSIAN_BYTES = 4e9


class Problem:
    """Empirical risk minimisation over n rows in d dimensions.

    Iterates are batches `W` (k, d). "data" methods leave the regularisers out; gradients and Hessians are
    those of the smooth part: everything but l1.

    X: (n, d) float64 array (a read-only np.memmap is shared, never copied) or scipy.sparse matrix.
    y: (n,) labels: ±1 for logistic and sigmoid, real for squared.
    loss: "logistic", "sigmoid", "squared" or a `losses.Loss`.
    l1, l2, w2: weights ≥ 0 of the regularisers.
    row_bound: the bound on the norm of a row that privacy proofs may rely on, declared without looking at
        the data; rows beyond it are a DataError. None: the largest norm measured, which then counts as public.
    row_bound_norm: "l2", or "l1" for a bound on ‖x‖₁.
    name: for messages and result rows.
    folder: where the optimum is cached; None keeps it in memory only.
    data_hash: what names the data in that cache; computed from X and y when not given.
    """

    def __init__(
        self,
        X,
        y,
        *,
        loss: str | losses.Loss = "logistic",
        l1: float = 0.0,
        l2: float = 0.0,
        w2: float = 0.0,
        row_bound: float | None = None,
        row_bound_norm: str = "l2",
        name: str = "",
        folder: str | Path | None = None,
        data_hash: str | None = None,
    ):
        self.name = name
        self.loss = losses.get(loss)
        self.l1, self.l2, self.w2 = float(l1), float(l2), float(w2)
        self.regularisers = regularisers.make(l1=self.l1, l2=self.l2, w2=self.w2)
        self.X, self.y = _checked(X, y)
        self.n, self.d = self.X.shape
        self.loss.check_labels(self.y)
        self.folder = None if folder is None else Path(folder)
        if data_hash is not None:
            self.data_hash = data_hash
        if row_bound_norm not in ("l1", "l2"):
            raise UserError(f"row_bound_norm: must be l1 or l2, got {row_bound_norm!r}")
        self.row_bound_norm = row_bound_norm
        self.row_bound = self._checked_bound(row_bound)

    def __repr__(self) -> str:
        terms = "".join(f" + {name}={r.weight:g}" for name, r in self.regularisers.items())
        return f"<Problem {self.name or '(unnamed)'}: {self.loss.name}{terms}, {self.n} x {self.d}>"

    def __getstate__(self):
        return {key: value for key, value in self.__dict__.items() if key not in ("_rows", "_columns")}

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

    @property
    def convex(self) -> bool:
        """Whether loss and regularisers are all convex."""
        return self.loss.convex and all(r.convex for r in self.regularisers.values())

    @property
    def _smooth(self) -> list[regularisers.Regulariser]:
        return [r for r in self.regularisers.values() if r.smooth]

    # Values and gradients

    def predictions(self, W: np.ndarray) -> np.ndarray:
        """<x_i, w>, (k, n)."""
        W = self._batch(W)
        return (self.X @ W.T).T if self._rows.sparse else W @ self._rows.X.T

    def data_value(self, W: np.ndarray) -> np.ndarray:
        """Mean loss, (k,)."""
        return self._rows.sum(self.loss.value, self._batch(W)) / self.n

    def value(self, W: np.ndarray) -> np.ndarray:
        """F(w), (k,), with every regulariser."""
        return self.data_value(W) + self._penalty(self._batch(W))

    def data_gradient(self, W: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """Mean gradient of the loss over the given row indices (default all), (k, d)."""
        return self.gradient_sum(self._batch(W), rows) / (self.n if rows is None else len(rows))

    def gradient(self, W: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """Gradient of the smooth part of F, its mean over the given row indices (default all), (k, d)."""
        return self._add_slopes(self.data_gradient(W, rows), self._batch(W))

    def value_and_gradient(self, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(`value`, `gradient`) for the price of about one and a half gradients."""
        W = self._batch(W)
        total, weighted = self._rows.sum_and_weighted_sum(self.loss.value, self.loss.derivative, W)
        return total / self.n + self._penalty(W), self._add_slopes(weighted / self.n, W)

    def gradient_sum(self, w: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """Sum (not mean) of the loss gradients of the given row indices (default all), the data part only.

        w is (d,) or a batch (k, d) that shares the rows; the result has its shape.
        """
        W = np.atleast_2d(w)
        return self._rows.weighted_sum(self.loss.derivative, W, rows).reshape(np.shape(w))

    def accuracy(self, W: np.ndarray) -> np.ndarray:
        """Fraction of rows with y <x, w> > 0, (k,); for losses with labels ±1."""
        return self._rows.sum(_correct, self._batch(W)) / self.n

    # Curvature

    def data_hessian(self, W: np.ndarray, curvature: str = "hess", rows: np.ndarray | None = None) -> np.ndarray:
        """Mean Hessian of the loss (or its quadratic upper bound, "qu") over the rows (default all), (k, d, d)."""
        return self.hessian_sum(self._batch(W), rows, curvature) / (self.n if rows is None else len(rows))

    def hessian(self, W: np.ndarray, curvature: str = "hess", rows: np.ndarray | None = None) -> np.ndarray:
        """Hessian of the smooth part of F, its mean over the given row indices (default all), (k, d, d).

        curvature: "hess", or "qu" for the logistic loss: the weights tanh(z/2)/(2z) of the quadratic that
        bounds the loss from above and touches it at w (Ganesh et al. 2023, Section 3); regularisers exact.
        """
        W = self._batch(W)
        H = self.data_hessian(W, curvature, rows)
        diagonal = np.einsum("kii->ki", H)
        for r in self._smooth:
            diagonal += r.hessian_diagonal(W)
        return H

    def hessian_sum(self, w: np.ndarray, rows: np.ndarray | None = None, curvature: str = "hess") -> np.ndarray:
        """Sum (not mean) of the loss Hessians of the given rows (default all), the data part only.

        w is (d,), result (d, d), or a batch (k, d) that shares the rows, result (k, d, d).
        """
        W = np.atleast_2d(w)
        if len(W) * self.d**2 * 8 > HESSIAN_BYTES:
            raise UserError(f"a Hessian at d = {self.d} does not fit in memory; use hessian_product")
        weights = self._curvature(curvature)
        H = self._rows.gram(weights, W, rows, convex=self.loss.convex)
        return H if np.ndim(w) == 2 else H[0]

    def hessian_product(self, w: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Hessian of the smooth part of F at one w (d,) times v (d,), without forming it."""
        product = self._rows.product(self.loss.second_derivative, w, v) / self.n
        for r in self._smooth:
            product += r.hessian_diagonal(w[None])[0] * v
        return product

    # Constants

    @cached_property
    def row_norm(self) -> float:
        """max_i ‖x_i‖₂, measured."""
        return max(_row_norms(A, 2).max() for A, _ in self._rows.blocks())

    @cached_property
    def row_norm_l1(self) -> float:
        """max_i ‖x_i‖₁, measured."""
        return max(_row_norms(A, 1).max() for A, _ in self._rows.blocks())

    @property
    def lipschitz(self) -> float:
        """L0·row_bound: bound on a row's loss gradient, in the norm of `row_bound_norm`."""
        return self.loss.lipschitz * self.row_bound

    @property
    def smoothness(self) -> float:
        """L1·row_bound²: smoothness of the data part for any data within the bound (‖x‖₂ ≤ ‖x‖₁)."""
        return self.loss.smoothness * self.row_bound**2

    @property
    def hessian_lipschitz(self) -> float:
        """L2·row_bound³: Lipschitz constant of the data part's Hessian for any data within the bound."""
        return self.loss.hessian_lipschitz * self.row_bound**3

    @property
    def objective_smoothness(self) -> float:
        """Smoothness of the smooth part of F: `smoothness` plus that of the regularisers."""
        return self.smoothness + sum(r.smoothness for r in self._smooth)

    @cached_property
    def coordinate_constants(self) -> np.ndarray:
        """M_j = L1 · mean_i x_ij² + the regularisers' smoothness, (d,)."""
        squares = np.zeros(self.d)
        for A, _ in self._rows.blocks():
            squares += np.asarray(A.power(2).sum(axis=0)).ravel() if self._rows.sparse else (A * A).sum(axis=0)
        return self.loss.smoothness * squares / self.n + sum(r.smoothness for r in self._smooth)

    @cached_property
    def clip_shares(self) -> np.ndarray:
        """sqrt(M_j / Σ_k M_k), (d,): how greedy_coordinate shares one clipping threshold among the coordinates."""
        return np.sqrt(self.coordinate_constants / self.coordinate_constants.sum())

    @cached_property
    def _columns(self) -> Columns:
        return Columns(self)

    def clipped_gradient(self, W: np.ndarray, clip: np.ndarray) -> np.ndarray:
        """(k, d) means of the rows' loss gradients, clipped per coordinate at ±clip·`clip_shares`; clip (k,)."""
        return self._columns.clipped_gradient(self._batch(W), clip)

    def coordinate_state(self, W: np.ndarray) -> CoordinateState | CompiledState:
        """The predictions of W (k, d), kept up to date while single coordinates move."""
        return coordinate_state(self._columns, self._batch(W))

    @cached_property
    def top_eigenvalue(self) -> float:
        """Largest eigenvalue of XᵀX/n."""
        if self.d <= 2000:
            return float(np.linalg.eigvalsh(self._rows.weighted_gram(np.ones(self.n)))[-1]) / self.n
        from scipy.sparse.linalg import svds

        start = np.ones(min(self.n, self.d))
        return float(svds(self.X, k=1, v0=start, return_singular_vectors=False)[0] ** 2) / self.n

    # Optimum

    @cached_property
    def _optimum(self) -> Optimum:
        return find_optimum(self)

    def optimum(self) -> Optimum:
        """F* with a certificate: ‖∇F‖₂ ≤ 1e-9, or with l1 a relative duality gap ≤ 1e-10.

        Read from `folder` where it was computed before. Raises NoOptimum (a UserError) if F is not convex, or
        the data are linearly separable (inf F = 0 is not attained), or no certificate is reached. Where only
        some rows can be separated from the rest (a1a, covertype: rare categories with one label), the infimum
        is positive and not attained either: then w is a point within the certificate of it.
        """
        return self._optimum

    # Internals

    def _batch(self, W: np.ndarray) -> np.ndarray:
        W = np.asarray(W, dtype=float)
        if W.ndim != 2 or W.shape[1] != self.d:
            raise ValueError(f"W: expected shape (k, {self.d}), got {W.shape}")
        return W

    def _penalty(self, W: np.ndarray) -> np.ndarray:
        return sum((r.value(W) for r in self.regularisers.values()), np.zeros(len(W)))

    def _add_slopes(self, G: np.ndarray, W: np.ndarray) -> np.ndarray:
        for r in self._smooth:
            G += r.gradient(W)
        return G

    def _curvature(self, name: str):
        if name == "qu" and self.loss.convex:
            return self.loss.quadratic_bound
        if name == "hess":
            return self.loss.second_derivative
        raise UserError(f"curvature: must be hess or qu (logistic loss only), got {name!r}")

    def _checked_bound(self, bound: float | None) -> float:
        measured = self.row_norm if self.row_bound_norm == "l2" else self.row_norm_l1
        if not np.isfinite(measured):
            raise DataError("X: contains NaN or infinite values; drop or impute those rows")
        if bound is None:
            return float(measured)
        if not 0 < bound < np.inf:
            raise UserError(f"row_bound: must be a positive number, got {bound}")
        if measured > bound * (1 + BOUND_SLACK):
            sign = "₂" if self.row_bound_norm == "l2" else "₁"
            raise DataError(
                f"X: the largest row has ‖x‖{sign} = {measured:.4g}, beyond row_bound = {bound:g}; "
                f"divide each row by max(1, ‖x‖{sign}/{bound:g}) or declare a larger bound"
            )
        return float(bound)


def _checked(X, y) -> tuple:
    """X as C-ordered float64 or CSR (without a copy where it already is), y as (n,) float64."""
    if sparse.issparse(X):
        X = X.tocsr().astype(np.float64, copy=False)
    elif not (isinstance(X, np.ndarray) and X.dtype == np.float64 and X.flags.c_contiguous):
        X = np.ascontiguousarray(X, dtype=np.float64)
    if X.ndim != 2 or 0 in X.shape:
        raise DataError(f"X: expected a non-empty table of shape (n, d), got shape {X.shape}")
    y = np.ascontiguousarray(y, dtype=np.float64)
    if y.shape != (X.shape[0],):
        raise DataError(f"y: expected shape ({X.shape[0]},), one label per row of X, got {y.shape}")
    if not np.isfinite(y).all():
        raise DataError("y: contains NaN or infinite values; drop those rows")
    return X, y


def _row_norms(A, order: int) -> np.ndarray:
    if sparse.issparse(A):
        powers = abs(A) if order == 1 else A.power(2)
        sums = np.asarray(powers.sum(axis=1)).ravel()
    else:
        sums = np.abs(A).sum(axis=1) if order == 1 else np.einsum("ij,ij->i", A, A)
    return sums if order == 1 else np.sqrt(sums)


def _correct(z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
    return np.greater(np.multiply(z, y, out=out), 0, out=out)
