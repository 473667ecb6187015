"""Regularisers, and the declaration of a problem: what is known of it without its data.

Regularisers of a batch of iterates W (k, d) use no data and so cost no privacy. A declaration has all that a proof, a
noise scale or a plan may rest on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpbench.errors import UserError, nearest
from dpbench.problems import losses


@dataclass(frozen=True)
class Regulariser:
    """weight · r(w). A smooth one has a gradient and a Hessian."""

    weight: float
    smooth: ClassVar[bool] = True
    convex: ClassVar[bool] = True

    def value(self, W: np.ndarray) -> np.ndarray:
        """(k,) values."""
        raise NotImplementedError

    def gradient(self, W: np.ndarray) -> np.ndarray:
        """(k, d) gradients."""
        raise NotImplementedError

    def hessian_diagonal(self, W: np.ndarray) -> np.ndarray:
        """(k, d) diagonals of the (diagonal) Hessians."""
        raise NotImplementedError

    @property
    def smoothness(self) -> float:
        """sup |r''|, times the weight."""
        raise NotImplementedError


class L1(Regulariser):
    """‖w‖₁."""

    smooth = False

    def value(self, W: np.ndarray) -> np.ndarray:
        return self.weight * np.abs(W).sum(axis=1)


class L2(Regulariser):
    """‖w‖²/2."""

    def value(self, W: np.ndarray) -> np.ndarray:
        return 0.5 * self.weight * np.einsum("ij,ij->i", W, W)

    def gradient(self, W: np.ndarray) -> np.ndarray:
        return self.weight * W

    def hessian_diagonal(self, W: np.ndarray) -> np.ndarray:
        return np.full_like(W, self.weight)

    @property
    def smoothness(self) -> float:
        return self.weight


class SaturatingL2(Regulariser):
    """Σ_j w_j²/(1 + w_j²): a nonconvex penalty that levels off at 1 a coordinate (nonconvex, loss A)."""

    convex = False

    def value(self, W: np.ndarray) -> np.ndarray:
        square = W * W
        return self.weight * (square / (1 + square)).sum(axis=1)

    def gradient(self, W: np.ndarray) -> np.ndarray:
        return self.weight * 2 * W / (1 + W * W) ** 2

    def hessian_diagonal(self, W: np.ndarray) -> np.ndarray:
        square = W * W
        return self.weight * 2 * (1 - 3 * square) / (1 + square) ** 3

    @property
    def smoothness(self) -> float:
        return 2 * self.weight  # |r''| is largest at w = 0


def least_subgradient(G: np.ndarray, W: np.ndarray, l1: float) -> np.ndarray:
    """The subgradient of least norm of a function with gradient G at W (both (d,) or (k, d)), and l1‖w‖₁.

    Where a row moves G, it moves no further than G.
    """
    return np.where(W != 0, G + l1 * np.sign(W), np.sign(G) * np.maximum(np.abs(G) - l1, 0.0))


def soft_threshold(w: np.ndarray, threshold: float | np.ndarray) -> np.ndarray:
    """The proximal operator of threshold·‖·‖₁: each entry of w moved to 0 by `threshold`, which broadcasts."""
    return np.copysign(np.maximum(np.abs(w) - threshold, 0), w)


KINDS = {"l1": L1, "l2": L2, "w2": SaturatingL2}


def make(**weights: float) -> dict[str, Regulariser]:
    """Regularisers with a non-zero weight, by name; UserError for another name, or a negative or infinite weight."""
    made = {}
    for name, weight in weights.items():
        if name not in KINDS:
            raise UserError(f"no regulariser {name!r}; {nearest(name, KINDS)}")
        if not (isinstance(weight, float | int | np.number) and 0 <= weight < np.inf):
            raise UserError(f"{name} must be a number >= 0, got {weight!r}")
        if weight:
            made[name] = KINDS[name](float(weight))
    return made


class Declaration:
    """n rows in d dimensions, a loss, regularisers, a bound on the rows, and the constants that follow.

    loss: "logistic", "sigmoid", "squared", "pseudo-huber", "ramp", "phase", that of a package, or a `losses.Loss`.
    l1, l2, w2: weights ≥ 0 of the regularisers.
    row_bound: bound on the norm of a row that privacy proofs may rely on, inf for none.
    row_bound_norm: "l2", or "l1" for a bound on ‖x‖₁.
    name: for messages and result rows.
    """

    def __init__(
        self,
        n: int,
        d: int,
        *,
        loss: str | losses.Loss = "logistic",
        l1: float = 0.0,
        l2: float = 0.0,
        w2: float = 0.0,
        row_bound: float = math.inf,
        row_bound_norm: str = "l2",
        name: str = "",
    ) -> None:
        if row_bound_norm not in ("l1", "l2"):
            raise UserError(f"row_bound_norm: must be l1 or l2, got {row_bound_norm!r}")
        self.n, self.d, self.name = n, d, name
        self.loss = losses.get(loss)
        self.regularisers = make(l1=l1, l2=l2, w2=w2)
        self.l1, self.l2, self.w2 = float(l1), float(l2), float(w2)
        self.row_bound, self.row_bound_norm = row_bound, row_bound_norm

    @property
    def bare(self) -> Declaration:
        """What is declared, without the data of a problem that has some."""
        rows: dict[str, Any] = {"row_bound": self.row_bound, "row_bound_norm": self.row_bound_norm}
        return Declaration(self.n, self.d, **self.objective, **rows, name=self.name)

    @property
    def objective(self) -> dict[str, Any]:
        """The loss and the weights, as another problem is declared by them."""
        return {"loss": self.loss, "l1": self.l1, "l2": self.l2, "w2": self.w2}

    def __repr__(self) -> str:
        terms = "".join(f" + {name}={r.weight:g}" for name, r in self.regularisers.items())
        return f"<{type(self).__name__} {self.name or '(unnamed)'}: {self.loss.name}{terms}, {self.n} x {self.d}>"

    @property
    def convex(self) -> bool:
        """Whether loss and regularisers are all convex."""
        return self.loss.convex and all(r.convex for r in self.regularisers.values())

    @property
    def smooth_regularisers(self) -> list[Regulariser]:
        """All but l1."""
        return [r for r in self.regularisers.values() if r.smooth]

    @property
    def row_norm(self) -> float:
        """max_i ‖x_i‖₂: the most that the bound admits."""
        return self.row_bound

    @property
    def row_norm_l1(self) -> float:
        """max_i ‖x_i‖₁: the most that the bound admits."""
        return self.row_bound * (math.sqrt(self.d) if self.row_bound_norm == "l2" else 1.0)

    @property
    def top_eigenvalue(self) -> float:
        """Largest eigenvalue of XᵀX/n: the most that the bound admits."""
        return self.row_bound**2

    @property
    def lipschitz(self) -> float:
        """L0·row_bound: bound on a row's loss gradient, in the norm of `row_bound_norm`."""
        return self.loss.lipschitz * self.row_bound

    @property
    def smoothness(self) -> float:
        """L1·row_bound²: smoothness of the data part for any data within the bound (‖x‖₂ ≤ ‖x‖₁)."""
        return self.loss.smoothness * self.row_bound**2

    @property
    def trace(self) -> float:
        """row_bound² times the loss's `trace`: bound on that of the data part's Hessian, for data within the bound."""
        return self.loss.trace * self.row_bound**2

    @property
    def hessian_lipschitz(self) -> float:
        """L2·row_bound³: Lipschitz constant of the data part's Hessian for any data within the bound."""
        return self.loss.hessian_lipschitz * self.row_bound**3

    @property
    def objective_smoothness(self) -> float:
        """Smoothness of the smooth part of F: `smoothness` plus that of the regularisers."""
        return self.smoothness + sum(r.smoothness for r in self.smooth_regularisers)
