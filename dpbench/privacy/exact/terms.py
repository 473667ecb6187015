"""What a random linear term covers: the premises of each proof of objective perturbation, checked where it is used.

The accounting of each event is a theorem about argmin F(w) + ridge/2 ‖w‖² + <b, w> that presumes something of F: which
loss, how much curvature a row adds against the strong convexity, and how far a row moves the gradient against b's
scale. The event names the numbers it was computed for; here they are held against the objective that was solved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from numpy.typing import NDArray

from dpbench.privacy.exact.sums import Objective
from dpbench.privacy.ledger import (
    ConvexPerturbation,
    LogisticPerturbation,
    ObjectivePerturbation,
    RadialPerturbation,
    Relation,
    Release,
)

ROUNDING = 1e-9  # of numbers that an algorithm computes from one another in float64


def _joint(event: Any, objective: Objective, relation: Relation) -> str:
    """Of gradient and curvature accounted together: β/Λ as the event has it, and its loss and relation."""
    if event.relation is not relation:
        return f"its linear term is accounted under {event.relation} neighbours"
    if getattr(event, "logistic", type(event) is LogisticPerturbation) and not objective.logistic:
        return "its linear term's proof is for the logistic loss"
    if not event.curvature * (1 + ROUNDING) >= objective.curvature:
        return "its linear term was drawn for less curvature, or more ridge"
    return ""


def _separately(event: Any, objective: Objective, relation: Relation) -> str:
    """Of gradient and Jacobian apart: ln det of (A + βxxᵀ)A⁻¹ is at most β/(nm) for each row that differs."""
    if not event.jacobian * (1 + ROUNDING) >= relation.rows * objective.curvature:
        return "its linear term was drawn for a smaller Jacobian, or more ridge"
    return ""


PREMISES: dict[type, Callable[[Any, Objective, Relation], str]] = {
    LogisticPerturbation: _joint,
    ConvexPerturbation: _joint,
    RadialPerturbation: _joint,
    ObjectivePerturbation: _separately,
}


class Term(NamedTuple):
    """A linear term that was drawn.

    drawn: b (1, d). off: how far it may be from the ideal one, in ℓ₂ norm. sensitivity: of the gradient, in the run's
    relation, that its scale was set for. event: what the ledger has of it. used: whether a minimiser was released.
    """

    drawn: NDArray[Any]
    off: float
    sensitivity: float
    event: Release
    used: bool = False

    def missing_for(self, objective: Objective, relation: Relation) -> str:
        """Why the event does not account for the minimiser of `objective`; "" where it does."""
        if self.used:
            # Given the first minimiser, b differs between neighbours: a second one tells of that, uncharged.
            return "a linear term belongs to one minimiser; draw another, and pay for it"
        if not self.sensitivity >= relation.rows * objective.pull * (1 - ROUNDING):
            return f"its linear term was drawn for a sensitivity of {self.sensitivity:g}, a row's part moves more"
        if (premise := PREMISES.get(type(self.event))) is None:
            return "no proof of objective perturbation covers this release"
        return premise(self.event, objective, relation)
