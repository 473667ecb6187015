"""The terms under which methods are compared and offered: one relation, one δ, a method's best accounting."""

from __future__ import annotations

from dpbench.algorithms.base import Algorithm
from dpbench.privacy.relation import Relation

RELATION = Relation.REPLACE_ONE
DELTA = "n^-2"
# The best first: an accounting is the first of these that the algorithm has.
ACCOUNTINGS = ("tight", "rdp", "cks20", "bs16", "standard", "text", "advanced", "basic", "pure")
# Where it is not the best: tight draws less noise at small ε and on few rows, but takes seconds for each ε, n and T.
INSTEAD = {"dp-sgd-1": "rdp"}


def accounting(method: Algorithm) -> str:
    """The best of the accountings the method has; "paper" where it has none of ours."""
    if method.name in INSTEAD:
        return INSTEAD[method.name]
    return next((mode for mode in ACCOUNTINGS if mode in method.accountings), "paper")


def delta(method: Algorithm) -> str | float:
    """n⁻² for all; 0 for a pure-DP method, whose (ε, 0) is (ε, n⁻²) too."""
    return 0.0 if method.accounting(accounting(method)) == "pure" else DELTA
