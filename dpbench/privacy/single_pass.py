"""Rows that are used once: releases on disjoint rows cost what the dearest of them costs.

Replace-one neighbours differ in one row, and a row is handed out at most once, so all releases but the one on its
block have the same distribution on both data sets, given what was released before (Zhang, Tran and Cutkosky 2024,
Lemma C.1; McSherry 2009, Theorem 4, for pure DP). The order is a uniform permutation and independent of the data: the
guarantee holds for each order, hence for their mixture.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dpbench.errors import PrivacyError
from dpbench.privacy.ledger import Gaussian
from dpbench.privacy.relation import Relation
from dpbench.privacy.tree import node_std

if TYPE_CHECKING:
    from dpbench.privacy.mechanisms import Mechanisms
    from dpbench.privacy.tree import Tree


class SinglePass:
    """The n rows in a random order of each replicate's own, handed out once, with the releases made on them.

    The ledger gets one entry for the whole pass; every release of the pass must have that noise multiplier.
    """

    def __init__(self, mechanisms: Mechanisms, n: int, label: str) -> None:
        if mechanisms.budget.relation is not Relation.REPLACE_ONE:
            raise PrivacyError(f"{label}: a single pass is accounted under {Relation.REPLACE_ONE} neighbours only")
        self._mechanisms, self._label = mechanisms, label
        self._order = np.stack([generator.permutation(n) for generator in mechanisms._sampling])
        self._used = 0
        self._open = False  # whether the last block still admits a release
        self._multiplier: float | None = None

    def take(self, b: int) -> np.ndarray:
        """The next b rows: (k, b) indices. PrivacyError when fewer are left."""
        block = self._order[:, self._used : self._used + b]
        if block.shape[1] < b:
            raise PrivacyError(f"{self._label}: all {self._order.shape[1]} rows are used; a row is used once")
        self._used += b
        self._open = True
        return block

    def gaussian(self, value: np.ndarray, *, sensitivity: float, noise_multiplier: float) -> np.ndarray:
        """`Mechanisms.gaussian` on the block last taken, once; sensitivity: ℓ₂, replace-one within the block."""
        from dpbench.privacy.mechanisms import _normal

        self._admit()
        self._record(noise_multiplier)
        return self._mechanisms._noisy(value, sensitivity, noise_multiplier, _normal)

    def tree(self, rounds: int, *, sensitivity: float | np.ndarray, rho: float) -> Tree:
        """`Mechanisms.tree` on the next `rounds` blocks, one to a round, all of them disjoint."""
        self._open = False
        self._record(math.sqrt(0.5 / rho))
        return self._mechanisms._tree(rounds, node_std(rounds, sensitivity, rho), self._label, self._admit)

    def _admit(self) -> None:
        if not self._open:
            raise PrivacyError(f"{self._label}: a release needs a fresh block of rows; call take first")
        self._open = False

    def _record(self, noise_multiplier: float) -> None:
        if self._multiplier is None:
            self._mechanisms._record(Gaussian, noise_multiplier, self._label)
        elif self._multiplier != noise_multiplier:
            raise PrivacyError(
                f"{self._label}: releases of one pass must have one noise multiplier, got {noise_multiplier:g} "
                f"after {self._multiplier:g}"
            )
        self._multiplier = noise_multiplier
