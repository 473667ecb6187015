"""The data sets an audit tells apart: neighbours whose gradients differ as much as the declared constants allow.

A proof that names a loss uses its constants: |ℓ'| ≤ L₀, |ℓ''| ≤ L₁. The steepest function they allow is the line
ℓ(z, y) = -L₀ y z, to which the logistic loss itself tends far from the data. With it a row x of label ±1 has the
gradient ∓L₀x everywhere, whatever has been released before. So the differing row has label +1 in one world; in the
other -1 (replace-one: the gradients differ by 2L₀‖x‖) or 0 (add/remove: a label of 0 is a row that is not there). The
entries of x have both signs and its norm is the bound. All rows are x up to signs, so that what an algorithm takes from
X as public is equal on both.

For releases that read curvature there is the loss as it is, on one row alone or none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpbench.algorithms.audit_case import AuditCase
from dpbench.algorithms.base import Algorithm
from dpbench.privacy.relation import Relation
from dpbench.problems import Problem, losses

CLIPPED = 1e6  # a residual far beyond every clipping threshold


class Line(losses.Loss):
    """ℓ(z, y) = -L₀ y z under the name and the constants of `loss`."""

    def __init__(self, loss: losses.Loss):
        self.name, self.binary, self.smooth, self.convex = loss.name, False, loss.smooth, loss.convex
        self.lipschitz, self.smoothness, self.hessian_lipschitz = (
            loss.lipschitz,
            loss.smoothness,
            loss.hessian_lipschitz,
        )

    def check_labels(self, y):
        """Any label will do."""

    def value(self, z, y, out):
        return np.multiply(z, -self.lipschitz * y, out=out)

    def derivative(self, z, y, out):
        out[...] = -self.lipschitz * y
        return out

    def second_derivative(self, z, y, out):
        out[...] = 0
        return out

    quadratic_bound = second_derivative


class Neighbours(NamedTuple):
    """The row 0 of `first` and `second` differs; in `neither` it pulls nowhere: what is released without it."""

    first: Problem
    second: Problem
    neither: Problem


def neighbours(algorithm: Algorithm, case: AuditCase) -> Neighbours:
    """The three problems of an audit of `algorithm`."""
    needs = algorithm.needs
    name = case.loss or _loss(needs)
    kind, bound = needs.row_norm or ("l2", 1.0)
    x = np.where(np.arange(case.d) % 2, -1.0, 1.0)
    x *= bound / np.linalg.norm(x, ord=2 if kind == "l2" else 1) * (1 - 1e-15)
    shared = np.broadcast_to(np.asarray(case.background, dtype=float), case.d)
    steep = case.steepest and name != "squared"
    loss = Line(losses.get(name)) if steep else losses.get(name)
    size = CLIPPED if name == "squared" else 1.0

    def problem(label: float) -> Problem:
        """Row 0 pulls by `label`; where that is 0, like a shared row."""
        X, y = np.tile(x * np.where(shared, shared, 1.0), (case.n, 1)), np.full(case.n, float(shared.any()))
        if label:
            X[0], y[0] = x, label
        if not steep and not shared.any():
            X[0 if not label else 1 :], y[:] = 0.0, y[0] or 1.0
        return Problem(X, y * size, loss=loss, l1=case.l1, l2=case.l2, row_bound=bound, row_bound_norm=kind)

    first, neither = problem(1.0), problem(0.0)
    return Neighbours(first, problem(-1.0) if algorithm.relation is Relation.REPLACE_ONE else neither, neither)


def _loss(needs) -> str:
    if needs.losses is None:
        return "logistic"
    return "squared" if needs.row_norm is None and "squared" in needs.losses else needs.losses[0]
