"""Regularisers of a batch of iterates W (k, d): they use no data and so cost no privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpbench.errors import UserError


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


def soft_threshold(w: np.ndarray, threshold: float | np.ndarray) -> np.ndarray:
    """The proximal operator of threshold·‖·‖₁: each entry of w moved to 0 by `threshold`, which broadcasts."""
    return np.copysign(np.maximum(np.abs(w) - threshold, 0), w)


KINDS = {"l1": L1, "l2": L2, "w2": SaturatingL2}


def make(**weights: float) -> dict[str, Regulariser]:
    """Regularisers with a non-zero weight, by name; UserError for a negative or infinite weight."""
    made = {}
    for name, weight in weights.items():
        if not (isinstance(weight, float | int | np.number) and 0 <= weight < np.inf):
            raise UserError(f"{name} must be a number >= 0, got {weight!r}")
        if weight:
            made[name] = KINDS[name](float(weight))
    return made
