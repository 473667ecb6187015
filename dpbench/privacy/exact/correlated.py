"""Correlated noise on integers: `dpbench.privacy.correlated` for `Sum`s, with noise that is rounded.

The coefficients of C are cut to multiples of 2⁻¹⁰, its diagonal being 1: no column gets longer, so its sensitivity is
none the larger. For integers T_t (see `releases`) 2¹⁰ Σ_j c_j T_{t-j} is an integer M_t, and M_t + round(σN) a function
of the Gaussian mechanism on it. A round's T differs between neighbours only where the row is in its batch: on the
others' rows, and at what was released, both compute the same. What is shown of T is solved from released numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpbench.errors import PrivacyError
from dpbench.privacy import correlated
from dpbench.privacy.exact import rounded
from dpbench.privacy.exact.sums import UP, Sum
from dpbench.privacy.ledger import Gaussian
from dpbench.privacy.release import NORMAL, Array

COEFFICIENT_BITS = 10
FURTHEST, LARGEST = 2**44, 2**61  # of T, ten thousand of which fit the latter with their weights; of what is released


class ExactCorrelated:
    """The interface of `correlated.Correlated`, for `Sum`s of one unit. Made by `ExactMechanisms.correlated`.

    releases: an `ExactReleases`.
    """

    def __init__(
        self,
        releases: Any,
        steps: int,
        *,
        separation: int,
        bands: int,
        sensitivity: float,
        multiplier: float,
        label: str,
    ) -> None:
        self.steps, self.t = steps, 0
        self._releases, self._label, self._sensitivity, self._multiplier = releases, label, sensitivity, multiplier
        self._rows = correlated.sensitivity(steps, separation, bands)  # with the coefficients as they are: no less
        self._weights = np.floor(correlated.coefficients(bands) * 2**COEFFICIENT_BITS).astype(np.int64)
        self._whole: list[NDArray[np.int64]] = []  # T of the rounds before, the last one first
        self._shown: list[Array] = []  # and what was released of them

    def release(self, value: Any) -> Array:
        """`value`, a `Sum` (1, d), of the next round with its noise."""
        if self.t == self.steps:
            raise PrivacyError(f"{self._label}: this noise was paid for {self.steps} rounds")
        if not isinstance(value, Sum):
            raise PrivacyError(
                f"{self._label}: released as it is computed in float64, which arithmetic='bytes' does not cover"
            )
        T, units, grid = self._releases.on_steps(value, NORMAL, self._sensitivity, self._label)
        scale = 2.0**COEFFICIENT_BITS * units * self._rows * self._multiplier * UP
        if not 0 < scale <= rounded.LARGEST:
            raise PrivacyError(f"{self._label}: noise of {scale:g} steps cannot be drawn exactly; take fewer rounds")
        std = scale * grid * 2.0**-COEFFICIENT_BITS
        self.t += 1
        if self.t == 1:
            z, shape = self._multiplier, T.shape[1:]
            self._first, self._steps = self._releases.record(Gaussian, z, self._label, shape, std, z), (units, grid)
        elif (units, grid) != self._steps:
            raise PrivacyError(f"{self._label}: the sums of all rounds must have one unit and one sensitivity")
        self._whole = [np.clip(T, -FURTHEST, FURTHEST), *self._whole][: len(self._weights)]
        weights = self._weights[1:] * 2.0**-COEFFICIENT_BITS
        mix = [(self.t - j, float(c)) for j, c in enumerate(weights, 1) if j < self.t]

        def release() -> Array:
            return np.asarray(self._noisy(scale) * grid + value.offset, dtype=float)

        shown: Array = self._releases.publish(
            "normal", self._label, self._first, T * grid, np.asarray(std), release, self, mix
        )
        return shown

    def _noisy(self, scale: float) -> Array:
        M = np.asarray(sum(c * T for c, T in zip(self._weights, self._whole, strict=False)))
        K = np.clip(M + self._releases.integers(NORMAL, scale, M.shape), -LARGEST, LARGEST)
        past = sum(c * one for c, one in zip(self._weights[1:], self._shown, strict=False))
        found = np.asarray((K - past) * 2.0**-COEFFICIENT_BITS, dtype=float)
        self._shown = [found, *self._shown][: len(self._weights) - 1]
        return found
