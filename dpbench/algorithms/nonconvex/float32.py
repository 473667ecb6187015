"""Where the logistic loss overflows in float32: a published run without a guard is lost there, ours is not."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

import numpy as np

from dpbench.algorithms.base import Array, Declaration
from dpbench.algorithms.nonconvex.driver import FloatMethod, Request, Smallest, Value

OVERFLOW = math.log(float(np.finfo(np.float32).max))  # 88.72: exp of more is infinite in float32


class RunLost(Exception):
    """∇f is no number in float32; the published scripts catch the eigensolver's error there and write no row."""


class Guard:
    """log1p(exp(-t)) in float32 is infinite, and its derivative no number, for margins t below -88.72.

    Switched off, nothing overflows. Margins are looked at only where ‖w‖ times the longest row reaches that.
    """

    def __init__(self, problem: Declaration, on: bool = False) -> None:
        self._on = on and problem.loss.name == "logistic"
        self._problem = problem

    def check(self, w: Array, rows: Array | None) -> Generator[Request, Any, None]:
        """Generator that raises RunLost where ∇f(w) on these rows is no number."""
        if (yield from self._overflows(w, rows)):
            raise RunLost

    def value(self, w: Array) -> FloatMethod:
        """Generator that returns f(w), infinite where it overflows: such a trial step is merely refused."""
        if (yield from self._overflows(w, None)):
            return math.inf
        return (yield Value(w))

    def _overflows(self, w: Array, rows: Array | None) -> Generator[Request, Any, bool]:
        if not self._on or np.linalg.norm(w) * self._problem.row_norm < OVERFLOW:
            return False
        return bool((yield Smallest(w, rows)) < -OVERFLOW)
