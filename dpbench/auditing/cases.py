"""The cases that an audit looks at: a method's own, under which terms, on which loss, and at which sizes."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from dpbench.algorithms.base import Algorithm, AuditCase
from dpbench.auditing.search import at_size
from dpbench.auditing.transcript import Leak
from dpbench.auditing.worlds import STEPS, Setup, paper_terms, within
from dpbench.errors import UserError
from dpbench.problems import Declaration, losses

ROWS, COLUMNS, ITERATIONS = (4, 50, 500), (2, 30, 100), (STEPS, 30, 100)  # of the sizes at which a method is looked at


def setups_of(
    algorithm: Algorithm,
    fixed: Mapping[str, Any],
    epsilon: float,
    case: AuditCase | None = None,
    papers: bool = False,
    loss: str = "",
) -> tuple[list[Setup], list[Setup], list[Setup]]:
    """What is inspected and tested, what is inspected alone, and what of that under the terms of the method's paper."""

    def setup(one: AuditCase, papers: bool = papers) -> Setup:
        one = _with_loss(algorithm, one, loss) if loss else one
        return Setup(algorithm, one, fixed, epsilon, paper_terms(algorithm, one) if papers else None)

    if case:
        return [setup(case)], [], []
    cases = [algorithm.audit_case, *algorithm.canaries]
    cases = [one for one in cases if all(one.settings.get(key, value) == value for key, value in fixed.items())]
    setups, further = [setup(one) for one in cases], [setup(algorithm.inspection_case())]
    others = []
    for one in [*setups, *further] if not papers else []:
        with contextlib.suppress(UserError):  # a calibration with a flaw makes no claim to look at
            other = setup(one.case, True)
            others += [other] if other.budget != one.budget else []
    return setups, further, others


def _with_loss(algorithm: Algorithm, case: AuditCase, loss: str) -> AuditCase:
    """The case with another loss, and a step where that has none of its own: noise does not follow it."""
    algorithm.needs.check(Declaration(case.n, 1, loss=loss), algorithm.name, rows=False)  # in the words of a fit
    settings = dict(case.settings)
    if losses.get(loss).smoothness == math.inf and "step" in algorithm.Settings.__struct_fields__:
        settings.setdefault("step", 1.0)
    return replace(case, loss=loss, settings=settings)


def sizes(*, thorough: bool = False) -> list[tuple[int, int, int]]:
    """(rows, columns, steps) of the grid, all 27 or the 9 in which every pair of two of the three occurs once."""
    places = itertools.product(range(3), repeat=3)
    return [(ROWS[i], COLUMNS[j], ITERATIONS[t]) for i, j, t in places if thorough or (i + j + t) % 3 == 0]


def at_sizes(
    setups: list[Setup], grid: list[tuple[int, int, int]], farthest: Collection[str], seed: int
) -> None:  # fmt: skip
    """Leak where a run of another size moves further, or gives away more, than it says: what is wrong there alone."""
    for n, d, T in grid:
        for setup in setups:
            try:
                resized = setup.resized(n, d, T)
            except UserError:  # by public numbers: the method is not for this size, so it does no harm there
                continue
            try:
                within(resized.inspect(seed, few=True))
                if setup is setups[0]:
                    at_size(resized, farthest, seed)
            except Leak as leak:
                raise Leak(f"n = {n}, d = {d}, T = {T}: {leak}") from leak
