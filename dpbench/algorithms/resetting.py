"""Runs that go back to their start when an iterate has left a ball: by a public radius, or by second_order's.

A start from which Newton's method is thrown far off never comes back, and one such seed of thirty ruins a mean. What
has been released decides whether an iterate is outside the ball, so that with a radius known before the run going back
is post-processing and costs nothing. The published radius, 100‖w*‖ + 200, is of the optimum of the data.
"""

from __future__ import annotations

import functools
import weakref
from typing import Annotated, Literal, TypeAlias

import msgspec
import numpy as np

from dpbench.problems import Problem, damped_newton

AT_OPTIMUM = "optimum"
Reset: TypeAlias = Annotated[float, msgspec.Meta(gt=0)] | Literal["optimum"] | None
FLAW = "it goes back to its start at ‖w‖ > 100‖w*‖ + 200, and w* is the optimum of the data"
TOLERANCE = 1e-9  # ‖∇F‖ at which ‖w*‖ is taken: where there is no minimum it grows with each digit (covertype-max: 171)


def flaw(reset: Reset) -> str:
    """Why a run with this setting keeps no ε; "" where it does."""
    return FLAW if reset == AT_OPTIMUM else ""


def radius(problem: Problem, reset: Reset) -> float:
    """The ‖w‖ beyond which a run goes back to its start; infinite for none."""
    if reset is None:
        return np.inf
    if reset == AT_OPTIMUM:
        return 100 * _norm_of_optimum(weakref.ref(problem)) + 200
    return float(reset)


@functools.lru_cache(maxsize=32)
def _norm_of_optimum(problem: weakref.ref[Problem]) -> float:
    alive = problem()
    assert alive is not None
    return float(np.linalg.norm(damped_newton.solve(alive, TOLERANCE)))


def back_inside(W: np.ndarray, start: np.ndarray, radius: float) -> np.ndarray:
    """W (k, d) with the rows of `start` (k, d) where ‖w‖₂ > radius, or w is no longer a number."""
    if radius == np.inf:
        return W
    with np.errstate(all="ignore"):
        inside = np.linalg.norm(W, axis=1) <= radius
    return np.where(inside[:, None], W, start)
