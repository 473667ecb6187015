"""Which method to take where nobody has a reason for another: by n, d, the loss and its outputs, and whether δ > 0.

Never by ε: then a model is no worse at a larger ε, as each of the methods is none (their ridges fall, their steps and
their number rise). Nothing of the data enters, so that the choice costs no privacy. Each rule has its reason beside it;
what it was measured on is in docs/guides/defaults.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from dpbench.errors import UserError
from dpbench.problems import Declaration

COLUMNS = 1500  # beyond it a d × d matrix a replicate, and d³ operations on it, take too long
FEW = 50  # columns up to which noise on each costs little beside an l1 penalty


class Rule(NamedTuple):
    """Takes `method` for a loss of the `family` where d ≤ `columns`; l1 is 0 unless `l1`, and δ > 0 unless `pure`."""

    family: str
    method: str
    columns: float = math.inf
    l1: bool = False
    pure: bool = False
    why: str = ""


RULES = (  # the first that applies
    Rule("logistic", "objpert", COLUMNS, why="its noise is one Gaussian's, and its ridge follows it"),
    Rule("logistic", "objpert", FEW, l1=True, why="the same, with l1 in the objective"),
    Rule("logistic", "objpert-pure", COLUMNS, pure=True, why="a Jacobian that is free at δ = 0 too"),
    Rule("logistic", "dp-gd-average", l1=True, why="no matrix of d × d, and no column scales from the data"),
    Rule("softmax", "dp-gd-average", l1=True, why="one gradient of all classes, whose sensitivity does not grow"),
    Rule("squared", "boosted-ssp", COLUMNS, why="one Gram matrix, then moments of clipped residuals"),
    Rule("squared", "dp-gd-average", l1=True, why="any d, and l1"),
    Rule("pseudo-huber", "objpert", COLUMNS, why="as of the logistic loss, with a Jacobian that is paid for"),
    Rule("pseudo-huber", "objpert", FEW, l1=True, why="the same, with l1 in the objective"),
    Rule("pseudo-huber", "dp-gd-average", l1=True, why="any d, and l1"),
)


def method(problem: Declaration, delta: float = 1e-6, suits: Callable[[str], bool] = lambda name: True) -> str:
    """The name of the method; UserError, in one line, where no rule covers the problem.

    suits: whether a method may be taken; one that may not is passed over.

    >>> method(Declaration(1_000, 25)), method(Declaration(1_000, 75, loss="softmax-3"))
    ('objpert', 'dp-gd-average')
    """
    for rule in RULES:
        if (
            rule.family == problem.loss.family
            and problem.d <= rule.columns
            and (rule.l1 or not problem.l1)
            and rule.pure == (delta == 0)
            and not problem.w2
            and suits(rule.method)
        ):
            return rule.method
    pure = " at δ = 0" if delta == 0 else ""
    raise UserError(f"algorithm: no rule chooses one for {problem.loss.name} loss{pure} at d = {problem.d}; name one")
