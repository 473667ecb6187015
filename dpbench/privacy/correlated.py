"""Correlated noise: the banded matrix mechanism for repeated batches, and the tree mechanism for running sums.

*Banded matrix*, for sums over batches in a fixed, repeated order. Released are the T values with noise C⁻¹Z, Z i.i.d.
N(0, std²), C lower triangular with p bands: as much as CG + Z. A row enters the values of rounds that are at least b
apart. For p ≤ b the columns of C at these rounds share no row, so changes of at most s each move CG by
sqrt(Σ ‖column‖²)·s in Frobenius norm, at most √k · max ‖column‖ · s in k rounds (Choquette-Choo, Ganesh, McKenna,
McMahan, Rush, Thakurta and Xu 2023, Theorem 2). C being lower triangular, that holds for adaptively chosen values too
(Denisov, McMahan, Rush, Smith and Thakurta 2022, Theorem 2.1): one Gaussian release. C is the square root of the matrix
of prefix sums, cut off after p bands (Kalinin and Lampert 2024): column entries c_j = C(2j, j)/4^j. With p = 1 the
noise is independent.

*Tree*: running sums released with noise that grows with log₂ of their number (Zhang, Tran and Cutkosky 2024, Algorithm
5 and Theorem 4.3, after Dwork, Naor, Pitassi and Rothblum 2010 and Chan, Shi and Song 2011). A row enters the sums in
one round only.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpbench.errors import PrivacyError
from dpbench.privacy.ledger import Gaussian
from dpbench.privacy.noise import NORMAL, Array, Releases, Scalars


def holders(rounds: int) -> Array:
    """(rounds,) how many of the nodes released in `rounds` rounds hold round q = 1, …, rounds.

    Every right end b has one node, (b - 2^i + 1, b) with 2^i the largest power of two that divides b. Round 1 is in
    those that end at 1, 2, 4, …: ⌊log₂ rounds⌋ + 1 of them, the most there can be; the others are in ⌊log₂ rounds⌋ or
    fewer.
    """
    steps = np.zeros(rounds + 2, dtype=int)
    ends = np.arange(1, rounds + 1)
    np.add.at(steps, ends - (ends & -ends) + 1, 1)
    np.add.at(steps, ends + 1, -1)
    return np.cumsum(steps)[1 : rounds + 1]


def tree_sensitivity(rounds: int, by_round: float | Array) -> float:
    """ℓ₂ sensitivity of all node sums together: max over q of sqrt(holders_q) · s_q.

    by_round: s_q, how far a neighbour moves the term of round q, given everything released before: one number for all
    rounds, or (rounds,). A row is in the term of one round, hence in holders_q node sums, each of which it moves by
    at most s_q; the other nodes are distributed alike on both data sets (Lemma C.1). So the released sums, a function
    of the noisy nodes, cost what one Gaussian release of this sensitivity costs (Theorem 4.3, whose 2 ln n bounds
    holders_q). With one s for all rounds it is sqrt(⌊log₂ rounds⌋ + 1) · s.
    """
    return float(np.max(np.sqrt(holders(rounds)) * by_round))


class _Rounds:
    """Values of `steps` rounds that are one release together; t counts those made.

    std: of the noise that is drawn in a round. count: of the ledger's entries, 0 where another release has counted it.
    """

    def __init__(
        self, releases: Releases, steps: int, std: Scalars, multiplier: Scalars, label: str, count: int = 1
    ) -> None:
        self.steps, self.t = steps, 0
        self._releases, self._multiplier, self._label, self._count = releases, multiplier, label, count
        self.std: Array = np.asarray(releases.scaled_sensitivity(std), dtype=float)

    def _begin(self, shape: tuple[int, ...]) -> None:
        """The next round, of one replicate's values of `shape`: the first enters the ledger for all."""
        if self.t == self.steps:
            raise PrivacyError(f"{self._label}: this noise was paid for {self.steps} rounds; start another")
        self.t += 1
        if self.t == 1:
            z = self._multiplier
            self._event = self._releases.record(Gaussian, z, self._label, shape, self.std, z, self._count)

    def _publish(self, value: Array, mix: list[tuple[int, float]], release: Callable[[], Array]) -> Array:
        return self._releases.publish("normal", self._label, self._event, value, self.std, release, self, mix)


class Tree(_Rounds):
    """Adds TREE(t) to the t-th running sum; one ξ ~ N(0, std² I) per node, drawn once. Made by `Mechanisms.tree`.

    Holds the ⌊log₂ t⌋ + 1 noise vectors that NODE(t) may share with later rounds, and no more.
    """

    def __init__(
        self,
        releases: Releases,
        rounds: int,
        std: float,
        multiplier: float,
        label: str,
        admit: Callable[[], None] = lambda: None,
        count: int = 1,
    ) -> None:
        super().__init__(releases, rounds, std, multiplier, label, count)
        self._admit = admit
        self._noise: list[tuple[int, Array]] = []  # (right end, ξ summed over the nodes up to it)

    def release(self, running_sum: Array) -> Array:
        """`running_sum` (k, d), the sum of the terms of rounds 1, …, t, plus TREE(t)."""
        self._admit()
        value = np.asarray(running_sum, dtype=float)
        self._begin(value.shape[1:])
        before = self.t & (self.t - 1)  # the right end of the node before the one that ends at t
        mix = [(before, -1.0)] if before else []  # what is left of a sum is a node and its noise
        return self._publish(value, mix, lambda: self._noisy(value, before))

    def _noisy(self, running_sum: Array, before: int) -> Array:
        while self._noise and self._noise[-1][0] > before:
            self._noise.pop()
        fresh = self._releases.hidden_noise(running_sum.shape, self.std, NORMAL, "the tree mechanism")
        total = self._noise[-1][1] + fresh if self._noise else fresh
        self._noise.append((self.t, total))
        noisy: Array = running_sum + total
        return noisy


def node_std(rounds: int, by_round: float | Array, rho: float) -> float:
    """The noise per node and coordinate that makes the released sums ρ-zCDP: `sensitivity` / sqrt(2ρ).

    In the paper's units, (α, αρ'²/2)-RDP with ρ' = sqrt(2ρ), and one s for all rounds: sqrt(h)·s/ρ', h = ⌊log₂ T⌋ + 1.
    """
    return tree_sensitivity(rounds, by_round) / math.sqrt(2 * rho)


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


class Correlated(_Rounds):
    """Adds (C⁻¹Z)_t to the t-th value; made by `Mechanisms.correlated`. Holds the last `bands` - 1 noise vectors."""

    def __init__(
        self, releases: Releases, steps: int, separation: int, bands: int, moved: float, multiplier: Scalars, label: str
    ) -> None:
        self._moved, self._rows = moved, sensitivity(steps, separation, bands)
        super().__init__(releases, steps, moved * self._rows * multiplier, multiplier, label)
        self._weights: Array = coefficients(bands)
        self._noise: list[Array] = []  # of the rounds before, the last one first

    def _mix(self, weights: Array) -> list[tuple[int, float]]:
        """(round, weight) of the earlier rounds: C times what is released has independent noise."""
        return [(self.t - j, float(c)) for j, c in enumerate(weights, 1) if j < self.t]

    def release(self, value: Array) -> Array:
        """`value` (k, d) of the next round with its noise."""
        self._begin(value.shape[1:])
        return self._publish(value, self._mix(self._weights[1:]), lambda: self._noisy(value))

    def _noisy(self, value: Array) -> Array:
        fresh = self._releases.hidden_noise(value.shape, self.std, NORMAL, "correlated noise")
        noise = fresh - sum(c * past for c, past in zip(self._weights[1:], self._noise, strict=False))
        self._noise = [noise, *self._noise][: len(self._weights) - 1]
        noisy: Array = value + noise
        return noisy
