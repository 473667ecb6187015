"""Where a run starts: a rule per problem, drawn from the job's own stream."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpbench.errors import UserError, nearest


def _unit(d: int, generator: np.random.Generator) -> np.ndarray:
    w = generator.standard_normal(d)
    return w / np.linalg.norm(w)


def _first_five(d: int, generator: np.random.Generator) -> np.ndarray:
    return np.pad(_unit(5, generator), (0, d - 5))


RULES: dict[str, Callable[[int, np.random.Generator], np.ndarray]] = {
    "zero": lambda d, generator: np.zeros(d),
    "unit": _unit,  # uniform on the unit sphere (second_order)
    "first five": _first_five,  # the same in the first five coordinates, 0 in the others (zeroth_order)
    "normal": lambda d, generator: generator.standard_normal(d),  # nonconvex
    "tens": lambda d, generator: np.full(d, 10.0),  # accelerated
}


def draw(rule: str, d: int, generator: np.random.Generator) -> np.ndarray:
    """A starting point (d,) by `rule`, a key of RULES; UserError for an unknown one."""
    if rule not in RULES:
        raise UserError(f"unknown start {rule!r}: {nearest(rule, RULES)}")
    return RULES[rule](d, generator)
