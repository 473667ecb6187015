"""Rows that are used once: releases on disjoint rows cost what the most expensive of them costs.

Replace-one neighbours differ in one row, and a row is handed out at most once, so all releases but the one on its
block have the same distribution on both data sets, given what was released before (Zhang, Tran and Cutkosky 2024,
Lemma C.1; McSherry 2009, Theorem 4, for pure DP). The order is a uniform permutation and independent of the data: the
guarantee holds for each order, hence for their mixture.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from dpbench.errors import PrivacyError
from dpbench.privacy.ledger import Gaussian
from dpbench.privacy.relation import Relation
from dpbench.privacy.release import NORMAL, Array, Releases, RoundsAhead
from dpbench.privacy.tree import Tree, node_std


class SinglePass:
    """The n rows in a random order of each replicate's own, handed out once, with the releases made on them.

    The ledger gets one entry for the whole pass; every release of the pass must have that noise multiplier.
    """

    def __init__(self, releases: Releases, relation: Relation, n: int, label: str) -> None:
        if relation is not Relation.REPLACE_ONE:
            raise PrivacyError(f"{label}: a single pass is accounted under {Relation.REPLACE_ONE} neighbours only")
        self._releases, self._label = releases, label
        self._order = np.stack([generator.permutation(n) for generator in releases.sampling])
        self._used = 0
        self._open = False  # whether the last block still admits a release
        self._multiplier: float | None = None

    def take(self, b: int) -> Array:
        """The next b rows: (k, b) indices. PrivacyError when fewer are left."""
        block = self._order[:, self._used : self._used + b]
        if block.shape[1] < b:
            raise PrivacyError(f"{self._label}: all {self._order.shape[1]} rows are used; a row is used once")
        self._used += b
        self._open = True
        return block

    def gaussian(self, value: Array, *, sensitivity: float, noise_multiplier: float) -> Array:
        """`Mechanisms.gaussian` on the block last taken, once; sensitivity: ℓ₂, replace-one within the block."""
        self._admit()
        return self._releases.release(
            value,
            NORMAL,
            Gaussian,
            self._label,
            sensitivity=sensitivity,
            multiplier=noise_multiplier,
            count=self._count(noise_multiplier),
        )

    def gaussians(
        self, rounds: int, shape: tuple[int, ...], *, sensitivity: float, noise_multiplier: float
    ) -> Callable[[Array], Array]:
        """`gaussian` of each of the next `rounds` blocks, for values of `shape` (k, …): call it after each `take`.

        The same noise from the same streams, drawn ahead: for rounds of a few rows, where drawing it for each costs
        more than the round.
        """
        if not self._releases.ahead:
            one = functools.partial(self.gaussian, sensitivity=sensitivity, noise_multiplier=noise_multiplier)
            return lambda value: one(value)
        noise = RoundsAhead(self._releases, rounds)
        scale = np.asarray(self._releases.moved(sensitivity) * noise_multiplier, dtype=float)
        count = self._count(noise_multiplier)
        event = self._releases.record(
            Gaussian, noise_multiplier, self._label, shape[1:], scale, noise_multiplier, count
        )

        def release(value: Array) -> Array:
            self._admit()
            return self._releases.publish(
                NORMAL.name, self._label, event, value, scale, lambda: value + noise.next(shape, scale, self._label)
            )

        return release

    def tree(self, rounds: int, *, sensitivity: float | Array, rho: float) -> Tree:
        """`Mechanisms.tree` on the next `rounds` blocks, one to a round, all of them disjoint."""
        self._open = False
        z, std = math.sqrt(0.5 / rho), node_std(rounds, sensitivity, rho)
        return Tree(self._releases, rounds, std, z, self._label, self._admit, self._count(z))

    def _admit(self) -> None:
        if not self._open:
            raise PrivacyError(f"{self._label}: a release needs a fresh block of rows; call take first")
        self._open = False

    def _count(self, noise_multiplier: float) -> int:
        """What the next release adds to the ledger: 1 for the first of the pass, 0 for the others."""
        if self._multiplier not in (None, noise_multiplier):
            raise PrivacyError(
                f"{self._label}: releases of one pass must have one noise multiplier, got {noise_multiplier:g} "
                f"after {self._multiplier:g}"
            )
        first, self._multiplier = self._multiplier is None, noise_multiplier
        return int(first)
