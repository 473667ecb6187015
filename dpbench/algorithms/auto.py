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

COLUMNS = 1500  # beyond it a square matrix a replicate, and the cube of it in operations, take too long
FEW = 50  # columns up to which noise on each costs little beside an l1 penalty


class Rule(NamedTuple):
    """Takes `method` for a loss of the `family`, where the side of its matrix is at most `side`; δ > 0 unless `pure`.

    l1: with an l1 penalty alone (True), without one alone (False), or both. few: with FEW columns alone. rows: whether
    the matrix has a side of min(n, d), as a minimiser's, and not of d.
    """

    family: str
    method: str
    side: float = math.inf
    l1: bool | None = None
    few: bool = False
    rows: bool = False
    pure: bool = False
    why: str = ""

    def takes(self, problem: Declaration, delta: float) -> bool:
        """Whether it applies, the method apart."""
        side = min(problem.n, problem.d) if self.rows else problem.d
        return (
            self.family == problem.loss.family
            and side <= self.side
            and self.l1 in (None, bool(problem.l1))
            and (problem.d <= FEW or not self.few)
            and self.pure == (delta == 0)
            and not problem.w2
        )


SPARSE = "it moves one coordinate at a time, so that noise on the others costs no l1"
RULES = (  # the first that applies
    Rule("logistic", "objpert", COLUMNS, l1=False, rows=True, why="its noise is one Gaussian's, its ridge follows it"),
    Rule("logistic", "objpert", l1=True, few=True, why="the same, with l1 in the objective"),
    Rule("logistic", "objpert-pure", COLUMNS, l1=False, pure=True, why="a Jacobian that is free at δ = 0 too"),
    Rule("logistic", "dp-gcd", l1=True, why=SPARSE),
    Rule("logistic", "dp-gd-average", why="no matrix of d × d, and no column scales from the data"),
    Rule("softmax", "dp-gd-average", why="one gradient of all classes, whose sensitivity does not grow"),
    Rule("squared", "boosted-ssp", COLUMNS, l1=False, why="one Gram matrix, then moments of clipped residuals"),
    Rule("squared", "dp-gd-average", l1=True, few=True, why="any d, and l1"),
    Rule("squared", "dp-gcd", l1=True, why=SPARSE),
    Rule("squared", "dp-gd-average", why="any d"),
    Rule("pseudo-huber", "objpert", COLUMNS, l1=False, rows=True, why="as of the logistic loss; its Jacobian is paid"),
    Rule("pseudo-huber", "objpert", l1=True, few=True, why="the same, with l1 in the objective"),
    Rule("pseudo-huber", "dp-gcd", l1=True, why=SPARSE),
    Rule("pseudo-huber", "dp-gd-average", why="any d"),
)


def method(problem: Declaration, delta: float = 1e-6, suits: Callable[[str], bool] = lambda name: True) -> str:
    """The name of the method; UserError, in one line, where no rule covers the problem.

    suits: whether a method may be taken; one that may not is passed over.

    >>> method(Declaration(1_000, 25)), method(Declaration(1_000, 75, loss="softmax-3"))
    ('objpert', 'dp-gd-average')
    """
    for rule in RULES:
        if rule.takes(problem, delta) and suits(rule.method):
            return rule.method
    pure = " at δ = 0" if delta == 0 else ""
    raise UserError(f"algorithm: no rule chooses one for {problem.loss.name} loss{pure} at d = {problem.d}; name one")
