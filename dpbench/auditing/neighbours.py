"""The data sets an audit tells apart: neighbours whose gradients differ as much as the declared constants allow.

A proof that names a loss uses its constants: |ℓ'| ≤ L₀, |ℓ''| ≤ L₁. The steepest function they allow is the line
ℓ(z, y) = -L₀ y z, to which the logistic loss itself tends far from the data. With it a row x of label ±1 has the
gradient ∓L₀x everywhere, whatever has been released before. So the differing row has label +1 in one world; in the
other -1 (replace-one: the gradients differ by 2L₀‖x‖) or 0 (add/remove: a label of 0 is a row that is not there). The
entries of x have both signs and its norm is the bound. All rows are x up to signs, so that what an algorithm takes from
X as public is equal on both.

Releases of curvature get its largest value, L₁, at every w. No one function has both at all w, but composition holds
for neighbours that an adversary chooses anew for every release, and at any one w some function has them.

`probes` are pairs of another kind: the losses as they are, rows and labels at random, and one row that differs in y, in
x, or in both. No release is at its worst there, but what is not released shows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dpbench.algorithms.base import Algorithm, AuditCase
from dpbench.privacy.relation import Relation
from dpbench.problems import Problem, losses

CLIPPED = 1e6  # a residual far beyond every clipping threshold


class Extreme(losses.Loss):
    """ℓ' = -L₀ y and ℓ'' = bend·L₁·|y|, of a nonconvex loss bend·L₁·y, under the name and the constants of `loss`."""

    def __init__(self, loss: losses.Loss, bend: float = 0.0) -> None:
        said = ("name", "smooth", "convex", "quadratic", "logistic")
        constants = (*said, "lipschitz", "smoothness", "hessian_lipschitz")
        vars(self).update({name: getattr(loss, name) for name in constants}, binary=False)
        self.curvature = bend * loss.smoothness if bend else 0.0

    def check_labels(self, y: np.ndarray) -> None:
        """Any label will do."""

    def value(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        return np.multiply(z, -self.lipschitz * y, out=out)

    def derivative(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        out[...] = -self.lipschitz * y
        return out

    def second_derivative(self, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        out[...] = self.curvature * (np.abs(y) if self.convex else y)
        return out

    quadratic_bound = second_derivative


class Neighbours(NamedTuple):
    """The row 0 of `first` and `second` differs; in `neither` it pulls nowhere: what is released without it."""

    first: Problem
    second: Problem
    neither: Problem


def neighbours(algorithm: Algorithm, case: AuditCase) -> Neighbours:
    """The three problems of an audit of `algorithm`."""
    name, kind, bound = declared(algorithm, case)
    x = np.where(np.arange(case.d) % 2, -1.0, 1.0)
    x *= bound / np.linalg.norm(x, ord=2 if kind == "l2" else 1) * (1 - 1e-15)
    shared = np.broadcast_to(np.asarray(case.background, dtype=float), case.d)
    steep = case.steepest and name != "squared"
    loss = Extreme(losses.get(name), case.bend) if steep else losses.get(name)
    size = CLIPPED if name == "squared" else 1.0

    def problem(label: float, row: np.ndarray = x) -> Problem:
        """Row 0 pulls by `label`; where that is 0, like a shared row, or not at all where it would bend."""
        X, y = np.tile(x * np.where(shared, shared, 1.0), (case.n, 1)), np.full(case.n, float(shared.any()))
        if label or case.bend:
            X[0], y[0] = row, label
        if not steep and not shared.any():
            X[0 if not label else 1 :], y[:] = 0.0, y[0] or 1.0
        return Problem(X, y * size, loss=loss, l1=case.l1, l2=case.l2, row_bound=bound, row_bound_norm=kind)

    first, neither = problem(1.0), problem(0.0)
    if algorithm.relation is not Relation.REPLACE_ONE:
        return Neighbours(first, neither, neither)
    other = np.abs(x) if case.across else x  # of d = 2: orthogonal
    return Neighbours(first, problem(1.0 if case.across else -1.0, other), neither)


def probes(algorithm: Algorithm, case: AuditCase) -> list[Neighbours]:
    """Pairs that differ in y, in x and in both. Where columns count as public, x differs in its sign alone."""
    name, kind, bound = declared(algorithm, case)
    generator = np.random.default_rng(0)
    rows = generator.standard_normal((case.n + 1, case.d))
    lengths = generator.uniform(0.3, 1, case.n + 1)
    lengths[[0, -1]] = 1 - 1e-12  # of the row that differs, and of the one in its place
    rows *= lengths[:, None] * bound
    rows /= np.linalg.norm(rows, ord=2 if kind == "l2" else 1, axis=1, keepdims=True)
    X, other = rows[:-1], -rows[0] if algorithm.counts_public else rows[-1]
    labels = generator.choice([-1.0, 1.0], case.n)
    labels = {"squared": 3 * labels, "phase": labels + 2}.get(name, labels)
    flipped = {"phase": 4 - labels[0]}.get(name, -labels[0])
    gone = algorithm.relation is not Relation.REPLACE_ONE

    def problem(row: np.ndarray, label: float) -> Problem:
        mine, y = X.copy(), labels.copy()
        mine[0], y[0] = row, label
        return Problem(mine, y, loss=name, l1=case.l1, l2=case.l2, row_bound=bound, row_bound_norm=kind)

    first, nothing = problem(X[0], labels[0]), problem(np.zeros(case.d), labels[0])
    if gone:
        seconds = [nothing, problem(np.zeros(case.d), flipped)]
    else:
        seconds = [problem(X[0], flipped), problem(other, labels[0]), problem(other, flipped)]
    return [Neighbours(first, second, nothing) for second in seconds]


def declared(algorithm: Algorithm, case: AuditCase) -> tuple[str, str, float]:
    """The loss, and the norm and the bound of the rows."""
    needs = algorithm.needs
    name = case.loss or _loss(needs)
    kind, bound = needs.row_bound(losses.get(name)) or ("l2", 1.0)
    return name, kind, bound


def _loss(needs: Any) -> str:
    return "squared" if needs.row_norm is None and "squared" in needs.covered else needs.covered[0]
