"""Random bits for releases, and the samples and coins that are drawn from them without a rounding."""

from __future__ import annotations

import os
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
DRAWN_AHEAD = 2**14  # words of one call of the operating system where many small draws follow each other


class Bits(Protocol):
    """A source of independent, uniformly random bits."""

    def words(self, count: int) -> Words:
        """(count,) words of 64 bits."""
        ...


class SystemBits:
    """The operating system's cryptographic generator: the process keeps nothing that would predict later noise."""

    def words(self, count: int) -> Words:
        """See `Bits`."""
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


class SeededBits:
    """Bits of a seeded generator, for runs that are to be repeated and are no releases."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._raw = generator.bit_generator

    def words(self, count: int) -> Words:
        """See `Bits`."""
        return np.atleast_1d(np.asarray(self._raw.random_raw(count), dtype=np.uint64))


class Draws:
    """What samplers and algorithms ask of `np.random.Generator` for samples and coins, each law exactly, from `bits`.

    It has no other method, so an algorithm that would draw anything else, such as noise of its own, fails.
    """

    def __init__(self, bits: Bits) -> None:
        self._bits = bits

    def integers(self, high: int, size: int | None = None) -> Any:
        """Uniform on 0, …, high - 1, by rejection; `size` of them as an array, or one as an int."""
        count, high = 1 if size is None else int(size), int(high)
        if not 0 < high <= 2**63:
            raise ValueError(f"high: must be in 1 … 2**63, got {high}")
        below = 2**64 // high * high - 1  # the largest word that is kept
        kept = np.empty(0, dtype=np.uint64)
        while len(kept) < count:
            fresh = self._bits.words(count - len(kept))
            kept = np.concatenate([kept, fresh[fresh <= np.uint64(below)]])
        drawn = (kept % np.uint64(high)).astype(np.int64)
        return int(drawn[0]) if size is None else drawn

    def binomial(self, n: int, p: float) -> int:
        """The number of heads of n coins of probability ⌊p·2⁶⁴⌋/2⁶⁴ ≤ p.

        A Poisson sample's amplification grows with its rate, so a rate that is less by 2⁻⁶⁴ costs nothing more.
        """
        if not 0 <= p <= 1:
            raise ValueError(f"p: must be in [0, 1], got {p}")
        numerator, denominator = float(p).as_integer_ratio()
        threshold = (numerator << 64) // denominator
        if threshold >= 2**64:
            return int(n)
        return int(np.count_nonzero(self._bits.words(n) < np.uint64(threshold)))

    def choice(self, n: int, m: int, *, replace: bool, shuffle: bool) -> NDArray[np.int64]:
        """A uniformly random subset of m of 0, …, n - 1, in any order."""
        if replace or shuffle:
            raise ValueError("choice: only subsets without replacement, unordered")
        if m == 0:
            return np.empty(0, dtype=np.int64)
        keys = self._distinct(n)
        return np.argpartition(keys, m - 1)[:m] if m < n else np.arange(n)

    def permutation(self, n: int) -> NDArray[np.int64]:
        """A uniformly random order of 0, …, n - 1."""
        return np.argsort(self._distinct(n), kind="stable")

    def _distinct(self, n: int) -> Words:
        """n words; given that no two are equal, every order of them is as likely as every other."""
        while True:
            keys = self._bits.words(n)
            ordered = np.sort(keys)
            if not (ordered[1:] == ordered[:-1]).any():
                return keys
