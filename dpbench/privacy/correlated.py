"""Correlated noise for sums over batches in a fixed, repeated order: the banded matrix mechanism.

Released are the T values with noise C⁻¹Z, Z i.i.d. N(0, std²), C lower triangular with p bands: as much as CG + Z. A
row enters the values of rounds that are at least b apart. For p ≤ b the columns of C at these rounds share no row, so
changes of at most s each move CG by sqrt(Σ ‖column‖²)·s in Frobenius norm, at most √k · max ‖column‖ · s in k rounds
(Choquette-Choo, Ganesh, McKenna, McMahan, Rush, Thakurta and Xu 2023, Theorem 2). C being lower triangular, that holds
for adaptively chosen values too (Denisov, McMahan, Rush, Smith and Thakurta 2022, Theorem 2.1): one Gaussian release.

C is the square root of the matrix of prefix sums, cut off after p bands (Kalinin and Lampert 2024): column entries
c_j = C(2j, j)/4^j. With p = 1 the noise is independent.
"""

from __future__ import annotations

import math

import numpy as np

from dpbench.errors import PrivacyError
from dpbench.privacy.ledger import Gaussian
from dpbench.privacy.release import NORMAL, Array, Releases, Scalars


def coefficients(bands: int) -> Array:
    """(bands,) entries of a column of C from the diagonal down: 1, 1/2, 3/8, 5/16, …"""
    j = np.arange(1, bands)
    return np.concatenate([[1.0], np.cumprod((2 * j - 1) / (2 * j))])


def sensitivity(steps: int, separation: int, bands: int) -> float:
    """sup of the Frobenius norm of C(G - G') over rows that move a round's value by 1, `separation` rounds apart.

    Exact: the columns of the last rounds are cut off by the end. PrivacyError where the proof does not hold.
    """
    if not 1 <= bands <= separation:
        raise PrivacyError(f"bands must be in 1..{separation}, the rounds between two uses of a row, got {bands}")
    squares = np.cumsum(coefficients(bands) ** 2)
    norms = squares[np.minimum(bands, steps - np.arange(steps)) - 1]  # ‖column‖² of every round
    return math.sqrt(max(float(norms[first::separation].sum()) for first in range(min(separation, steps))))


class Correlated:
    """Adds (C⁻¹Z)_t to the t-th value; made by `Mechanisms.correlated`. Holds the last `bands` - 1 noise vectors."""

    def __init__(
        self, releases: Releases, steps: int, bands: int, std: Scalars, multiplier: Scalars, label: str
    ) -> None:
        self.steps, self.t = steps, 0
        self._releases, self._multiplier, self._label = releases, multiplier, label
        self.std: Array = np.asarray(releases.moved(std), dtype=float)
        self._weights = coefficients(bands)[1:]
        self._noise: list[Array] = []  # of the rounds before, the last one first

    def release(self, value: Array) -> Array:
        """`value` (k, d) of the next round with its noise."""
        if self.t == self.steps:
            raise PrivacyError(f"{self._label}: this noise was paid for {self.steps} rounds")
        self.t += 1
        if self.t == 1:
            z, shape = self._multiplier, value.shape[1:]
            self._event = self._releases.record(Gaussian, z, self._label, shape, self.std, z)
        # C times what is released is C times the values with independent noise.
        mix = [(self.t - j, float(c)) for j, c in enumerate(self._weights, 1) if j < self.t]
        return self._releases.publish(
            "normal", self._label, self._event, value, self.std, lambda: self._noisy(value), self, mix
        )

    def _noisy(self, value: Array) -> Array:
        fresh = self._releases.draw(value.shape, self.std, NORMAL, "correlated noise")
        noise = fresh - sum(c * past for c, past in zip(self._weights, self._noise, strict=False))
        self._noise = [noise, *self._noise][: len(self._weights)]
        noisy: Array = value + noise
        return noisy
