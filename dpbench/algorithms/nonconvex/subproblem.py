"""The trust-region subproblem, exactly: min <g, s> + <s, Hs>/2 over ‖s‖ ≤ r."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Step(NamedTuple):
    """The minimiser s (d,), the multiplier λ ≥ 0 of ‖s‖ ≤ r, and the smallest eigenvalue of H."""

    s: np.ndarray
    multiplier: float
    smallest: float


def solve(H: np.ndarray, g: np.ndarray, radius: float) -> Step:
    """(H + λI)s = -g with H + λI positive semidefinite, ‖s‖ ≤ r and λ(r - ‖s‖) = 0 (Moré and Sorensen 1983).

    In the eigenbasis of the symmetric H (d, d), with gaps λ_i - λ_1 and μ = λ + λ_1 ≥ max(0, λ_1), s_i(μ) is
    -g_i/(μ + gap_i). Solving for μ rather than λ keeps all digits when g has next to no component along the
    first eigenvector. With none at all (the hard case) ‖s(0)‖ may fall short of r: that eigenvector makes up for it.
    """
    values, vectors = np.linalg.eigh(H)
    smallest, gaps = float(values[0]), values - values[0]
    g = vectors.T @ g

    def s(mu: float) -> np.ndarray:
        return -np.divide(g, mu + gaps, out=np.zeros_like(g), where=g != 0)

    with np.errstate(divide="ignore", over="ignore"):
        least = max(smallest, 0.0)
        inside = s(least)
        if np.linalg.norm(inside) > radius:
            mu = _root(s, least, g, gaps, radius)
            return Step(vectors @ s(mu), mu - smallest, smallest)
    if smallest < 0:  # on the boundary all the same, in the direction nothing else points to
        inside[0] += np.sqrt(max(0.0, radius**2 - inside @ inside))
    return Step(vectors @ inside, max(-smallest, 0.0), smallest)


def _root(s: Callable[[float], np.ndarray], least: float, g: np.ndarray, gaps: np.ndarray, radius: float) -> float:
    """μ with ‖s(μ)‖ = r: of 1/r - 1/‖s(μ)‖, which is nearly linear, to the last digits."""
    from scipy.optimize import brentq

    def norm(v: np.ndarray) -> float:
        return float(np.linalg.norm(v))

    low, high = max(least, norm(g[gaps == 0]) / radius * (1 - 1e-15)), norm(g) / radius * (1 + 1e-15)
    return brentq(lambda mu: 1 / radius - 1 / norm(s(mu)), low, high, xtol=1e-300, rtol=1e-15, maxiter=1000)
