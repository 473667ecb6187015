"""The data sets that an audit distinguishes: neighbours whose gradients differ as much as the declared constants allow.

A proof that names a loss uses its constants: |ℓ'| ≤ L₀, |ℓ''| ≤ L₁. The steepest function they allow is the line
ℓ(z, y) = -L₀ y z, with which a row x of label ±1 has the gradient ∓L₀x everywhere. So the differing row has label +1 in
one world; in the other -1 (replace-one: the gradients differ by 2L₀‖x‖) or 0 (add/remove: a row that is not there). All
rows are x up to signs, so that what an algorithm takes from X as public is equal on both.

Releases of curvature get its largest value, L₁, at every w. No one function has both at all w, but composition holds
for neighbours that an adversary chooses anew for every release, and at any one w some function has them.

On `probes` no release is at its worst, but what is not released shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from dpbench.algorithms.base import Algorithm, AuditCase
from dpbench.errors import DataError
from dpbench.privacy.ledger import Relation
from dpbench.problems import Problem, losses

CLIPPED = 1e6  # a residual far beyond every clipping threshold
MOST_ROWS = 8  # of which each differs in turn
BENT = 3.0  # a label by which a row is as curved as it may be, and not as steep


class Extreme(losses.Loss):
    """ℓ' = -L₀ y and ℓ'' = bend·L₁·|y|, of a nonconvex loss bend·L₁·y, under the name and the constants of `loss`.

    sided: ℓ'' is 0 where y < 0, so that rows of either label differ in their pull and in their curvature. Of the label
    BENT it is a Huber loss: L₁z²/2 while |ℓ'| ≤ L₀.
    """

    def __init__(self, loss: losses.Loss, bend: float = 0.0, *, sided: bool = False) -> None:
        said = ("name", "smooth", "convex", "quadratic", "logistic")
        constants = (*said, "lipschitz", "smoothness", "hessian_lipschitz")
        vars(self).update({name: getattr(loss, name) for name in constants}, binary=False)
        self.curvature, self.sided = bend * loss.smoothness if bend else 0.0, sided

    def check_labels(self, y: np.ndarray) -> None:
        """Any label will do."""

    def value(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        def bent() -> np.ndarray:
            inside = np.minimum(self.lipschitz / self.smoothness, np.abs(z))
            return self.smoothness * inside * (np.abs(z) - inside / 2)

        return self._put(out, y, -self.lipschitz * y * z, bent)

    def derivative(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        return self._put(
            out, y, -self.lipschitz * y, lambda: np.clip(self.smoothness * z, -self.lipschitz, self.lipschitz)
        )

    def second_derivative(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        bent = np.maximum(y, 0.0) if self.sided else np.abs(y) if self.convex else y
        return self._put(
            out, y, self.curvature * bent, lambda: self.smoothness * (abs(self.smoothness * z) <= self.lipschitz)
        )

    @staticmethod
    def _put(out: np.ndarray, y: np.ndarray, plain: np.ndarray, bent: Callable[[], np.ndarray]) -> np.ndarray:
        """Into `out`, which z may be, for rows of the label BENT the latter."""
        out[...] = np.where(y == BENT, bent(), plain) if (y == BENT).any() else plain
        return out

    quadratic_bound = second_derivative


class Neighbours(NamedTuple):
    """The `row` of `first` and `second` differs; in `neither` it pulls nowhere: what is released without it."""

    first: Problem
    second: Problem
    neither: Problem
    row: int = 0

    def turned(self) -> Neighbours:
        """The same the other way round."""
        return self._replace(first=self.second, second=self.first)

    def at(self, row: int) -> Neighbours:
        """The same with what differs at another place."""
        order = np.arange(self.first.n)
        order[[self.row, row]] = row, self.row
        return self._remade(lambda one: _like(one, one.X[order], one.y[order]))._replace(row=row)

    def in_sparse(self) -> Neighbours:
        """The same rows in sparse matrices."""
        return self._remade(lambda one: _like(one, csr_array(one.X), one.y))

    def _remade(self, made: Callable[[Problem], Problem]) -> Neighbours:
        """Of problems that are made of these; one that stands twice is made once."""
        done = {id(one): made(one) for one in self[:3]}
        return Neighbours(done[id(self.first)], done[id(self.second)], done[id(self.neither)], self.row)


def _like(problem: Problem, X: Any, y: np.ndarray) -> Problem:
    """`problem` on other rows."""
    return _problem(X, y, **problem.objective, row_bound=problem.row_bound, row_bound_norm=problem.row_bound_norm)


def _problem(X: Any, y: np.ndarray, **declared: Any) -> Problem:
    # Not to be written to: all runs have the same rows, and a method that changed them would be compared with itself.
    for array in (X if isinstance(X, np.ndarray) else X.data, y):
        array.flags.writeable = False
    return Problem(X, y, **declared)


def neighbours(
    algorithm: Algorithm, case: AuditCase, relation: Relation, *, gone: bool = False, others: float = 1.0
) -> Neighbours:
    """The three problems of an audit of `algorithm` under `relation`.

    gone: under replace-one, the row of the second world pulls and bends nowhere. Where the label alone differs, as by
    default, the pulls are as far apart as they can be, but both rows bend alike. others: what the rows that both
    worlds share are multiplied by.
    """
    said = declared(algorithm, case)
    x, shared = said.corner(), np.broadcast_to(np.asarray(case.background, dtype=float), case.d)
    steep = case.steepest and said.bounded
    loss = Extreme(said.loss, case.bend) if steep else said.loss

    def problem(label: float, row: np.ndarray = x) -> Problem:
        """Row 0 pulls by `label`; where that is 0, like a shared row, or not at all where it would bend."""
        X, y = np.tile(others * x * np.where(shared, shared, 1.0), (case.n, 1)), np.full(case.n, float(shared.any()))
        if label or case.bend or others != 1:
            X[0], y[0] = row, label
        if not steep and not shared.any():
            X[0 if not label else 1 :], y[:] = 0.0, y[0] or 1.0
        return said.problem(X, y * (1.0 if said.bounded else CLIPPED), loss)

    first, neither = problem(1.0), problem(0.0)
    if gone or relation is not Relation.REPLACE_ONE:
        return Neighbours(first, neither, neither)
    other = np.abs(x) if case.across else x  # of d = 2: orthogonal
    return Neighbours(first, problem(1.0 if case.across else -1.0, other), neither)


def probes(algorithm: Algorithm, case: AuditCase, relation: Relation) -> list[Neighbours]:
    """Neighbours of one data set, the first of all; where columns count as public, x differs in its sign alone.

    One row is at the bound and longer than all others: where it is replaced by a short one, their largest norm, median
    and mean move, and whatever a method takes from them without saying so.
    """
    said = declared(algorithm, case)
    generator, n = np.random.default_rng(0), case.n
    rows = said.long(generator.standard_normal((n + 1, case.d)))
    lengths = generator.permutation(np.linspace(0.2, 0.8, n))
    longest = n // 2
    lengths[longest] = 1 - 1e-12
    X, other = rows[:-1] * lengths[:, None], rows[-1]
    labels = generator.choice([-1.0, 1.0], n)
    y, flipped = _labelled(said.loss, labels)

    def problem(row: int = 0, x: np.ndarray = X[0], label: float = y[0]) -> Problem:
        mine, its = X.copy(), y.copy()
        mine[row], its[row] = x, label
        return said.problem(mine, its)

    def pair(row: int, x: np.ndarray | None = None, label: float | None = None) -> Neighbours:
        return Neighbours(
            base,
            problem(row, X[row] if x is None else x, y[row] if label is None else label),
            problem(row, np.zeros(case.d), y[row]),
            row,
        )

    base, places = problem(), np.linspace(0, n - 1, min(n, MOST_ROWS)).astype(int)
    if relation is not Relation.REPLACE_ONE:
        pairs = [pair(row, np.zeros(case.d), flipped[row]) for row in places]
        return [*pairs, pair(longest, np.zeros(case.d))]
    if algorithm.counts_public:
        return [*(pair(row, -X[row], flipped[row]) for row in places), pair(longest, -X[longest]), pair(0, None, -y[0])]
    first, last = 0, n - 1
    return [
        *(pair(row, lengths[row - 1] * other, flipped[row]) for row in places),
        pair(first, None, flipped[first]),
        pair(last, lengths[last] * other),
        pair(longest, 0.05 * X[longest]),
        pair(last, X[last] / lengths[last] * (1 - 1e-12)),
    ]


def replaced_everywhere(pairs: list[Neighbours]) -> Problem:
    """The data set that all `pairs` have in common, with every row replaced that one of them replaces."""
    X, y = pairs[0].first.X.copy(), pairs[0].first.y.copy()
    for one in reversed(pairs):  # the first of them change x and label both, and some later ones but one of the two
        X[one.row], y[one.row] = one.second.X[one.row], one.second.y[one.row]
    return _like(pairs[0].first, X, y)


def drawn(algorithm: Algorithm, case: AuditCase, relation: Relation) -> Neighbours:
    """Of `probes`, a pair whose rows are the same but for a label, or but for whether the row is there."""
    pairs = probes(algorithm, case, relation)
    return next((one for one in pairs if np.array_equal(one.first.X, one.second.X)), pairs[0])


def _labelled(loss: losses.Loss, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n,) labels that the loss takes for these of ±1, and the other of the two."""
    if loss.lipschitz == math.inf:
        return 3 * labels, -3 * labels
    return (labels, -labels) if signs(loss) else (labels + 2, 2 - labels)


def signs(loss: losses.Loss) -> bool:
    """Whether -1 and +1 are labels of it: sizes and counts are positive."""
    try:
        loss.check_labels(np.array([-1.0, 1.0]))
    except DataError:
        return False
    return True


class DeclaredRows(NamedTuple):
    """The loss of a case, and the norm and the bound of its rows."""

    loss: losses.Loss
    kind: str
    bound: float
    case: AuditCase

    @property
    def bounded(self) -> bool:
        """Whether gradients are, so that labels need not be."""
        return self.loss.lipschitz < math.inf

    def long(self, rows: np.ndarray) -> np.ndarray:
        """Rows at the bound, in these directions."""
        return rows * (self.bound / np.linalg.norm(rows, ord=2 if self.kind == "l2" else 1, axis=-1, keepdims=True))

    def corner(self) -> np.ndarray:
        """A row next to the bound, with entries of both signs."""
        return self.long(np.where(np.arange(self.case.d) % 2, -1.0, 1.0)) * (1 - 1e-15)

    def problem(self, X: np.ndarray, y: np.ndarray, loss: losses.Loss | None = None) -> Problem:
        """Of these rows, on this loss instead."""
        one = self.case
        return _problem(
            X, y, loss=loss or self.loss, l1=one.l1, l2=one.l2, row_bound=self.bound, row_bound_norm=self.kind
        )


def declared(algorithm: Algorithm, case: AuditCase) -> DeclaredRows:
    """What the algorithm declares of the rows of a case."""
    loss = losses.get(case.loss or algorithm.needs.covered[0])
    kind, bound = algorithm.needs.row_bound(loss) or ("l2", 1.0)
    return DeclaredRows(loss, kind, bound, case)
