"""The greedy rules GS-s, GS-r and GS-q for a smooth function plus λ‖w‖₁ (Mangold et al. 2023, Appendix C).

Each is the argmax of a score (k, d) of the gradient G, the iterates W, both (k, d), and M (d,); with λ = 0 all three
are |G_j|/sqrt(M_j). Each score is 1/sqrt(M_j)-Lipschitz in G_j, so Δ_j ∝ sqrt(M_j) gives all one sensitivity.

Where w_j = 0 the three agree: max(|G_j| - λ, 0)/sqrt(M_j). There the score is (|G_j| - λ)/sqrt(M_j), not cut off at 0.
Without noise the choice is the same: the scores off zero are never negative and the cut changes no positive score, so
wherever some score is positive the largest is one and the same; where none is, w is optimal. It is as Lipschitz, as
|·| is, so it takes the same noise. But the cut would lift every coordinate that is far below λ to 0, and each of d
noises then competes from there.
"""

from __future__ import annotations

import numpy as np

from dpbench.algorithms.base import Array
from dpbench.problems.regularisers import soft_threshold


def scores(rule: str, G: Array, W: Array, M: Array, l1: float) -> Array:
    """The scores (k, d) of `rule`, a key of `RULES`."""
    found = (np.abs(G) - l1) / np.sqrt(M)
    moved = np.nonzero(W)
    found[moved] = RULES[rule](G[moved], W[moved], M[moved[1]], l1)
    return found


def rounding(rule: str, G: Array, w: Array, M: Array, l1: float) -> float:
    """How far float64 may take a score of gradients up to G from what it is in real numbers; G, w, M > 0 (d,), sizes.

    With u = 2⁻⁵³ and A = G + λ + Mw, a prox step is computed within 8uA/M, being fewer than eight operations on numbers
    up to 2A/M; so are the first two scores within 16uA/√M. The decrease moves by at most 3A times the step's error, and
    is computed within 16u·2A²/M: together 2⁻⁴⁷A²/M, and √(2a), √(2b) differ by √(2|a - b|) at most.
    """
    A = G + l1 + M * w
    return float((A / np.sqrt(M)).max()) * (2.0**-22 if rule == "gs-q" else 2.0**-48)


def gs_s(G: Array, w: Array, M: Array, l1: float) -> Array:
    """|the subgradient|/sqrt(M_j), which off zero is G + λ sign(w)."""
    return np.abs(G + l1 * np.sign(w)) / np.sqrt(M)


def gs_r(G: Array, w: Array, M: Array, l1: float) -> Array:
    """sqrt(M_j)·|prox step|; the prox is nonexpansive, so the step moves by at most |change of G_j|/M_j."""
    return np.sqrt(M) * np.abs(_step(G, w, M, l1))


def gs_q(G: Array, w: Array, M: Array, l1: float) -> Array:
    """sqrt(2·decrease) of the model Gα + Mα²/2 + λ|w + α| - λ|w| at its minimiser α, the prox step.

    The text's rule is an argmin over j of the model. d sqrt(2D)/dG = -α/sqrt(2D), and D ≥ Mα²/2 by strong convexity.
    """
    step = _step(G, w, M, l1)
    decrease = l1 * (np.abs(w) - np.abs(w + step)) - step * (G + 0.5 * M * step)
    return np.sqrt(2 * np.maximum(decrease, 0))


def _step(G: Array, w: Array, M: Array, l1: float) -> Array:
    return soft_threshold(w - G / M, l1 / M) - w


RULES = {"gs-s": gs_s, "gs-r": gs_r, "gs-q": gs_q}
