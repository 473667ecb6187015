"""Solvers of other libraries as algorithms: noise drawn over there, and read back into the ledger here.

Kept submissions import this module by its name: what is in their keys cannot change.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dpbench.algorithms import base as dp
from dpbench.privacy.budget import Budget
from dpbench.privacy.ledger import Release

LABEL = "model"


class Solved(NamedTuple):
    """One fit. w: (d,) coefficients. releases: (release, count) of the noise that the library drew, in the ledger's
    terms. notes: what the library itself says of its ε, and how its noise was read."""

    w: Any
    releases: Sequence[tuple[Release, int]]
    notes: str


class LibrarySolver(dp.Algorithm):
    """Base of a solver that draws its own noise. A subclass gives `solve` and declares with `released` what it is.

    Nothing passes through `mechanisms` but the ledger, so a row's ε is as good as the reading of the noise. `dpbench
    audit` sees what it returns alone (`auditing.functions.of_solver`). library: the distribution it is of, which a
    submission and its tables name.
    """

    home: ClassVar[str] = "leaderboard"
    relation: ClassVar[dp.Relation] = dp.Relation.REPLACE_ONE
    library: ClassVar[str] = ""
    diagnostics = (dp.NOTES,)

    def solve(self, problem: dp.Problem, budget: Budget, settings: Any, rng: np.random.Generator) -> Solved:
        """Fit one model; rng is for seeds: all of the library's randomness has to follow from it."""
        raise NotImplementedError

    def run(self, problem, W, mechanisms, settings, trace):
        iterates, notes = np.empty_like(W), []
        for i, rng in enumerate(mechanisms.coins):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of solvers that stop early: the row's loss tells
                solved = self.solve(problem, mechanisms.budget, settings, rng)
            iterates[i] = np.ravel(solved.w)
            notes.append(solved.notes)
            for release, count in solved.releases:
                mechanisms.ledger.record(release, LABEL, [i], count)
        return dp.RunResult(iterates, columns={"notes": notes})


def released(mechanism: str, replace_one: str, why: str, count: str = "1") -> tuple[dp.Disclosure, ...]:
    """What such a solver discloses: one entry under the label of its ledger."""
    return (dp.Disclosure(LABEL, "the model", mechanism, count, replace_one=replace_one, why=why),)
