"""The greedy rules GS-s, GS-r and GS-q for a smooth function plus λ‖w‖₁ (Mangold et al. 2023, Appendix C).

Each is the argmax of a score (k, d) of the gradient G, the iterates W, both (k, d), and M (d,); with λ = 0 all three
are |G_j|/sqrt(M_j). Each score is 1/sqrt(M_j)-Lipschitz in G_j, so Δ_j ∝ sqrt(M_j) gives all one sensitivity.
"""

from __future__ import annotations

import numpy as np


def gs_s(G, W, M, l1):
    """|the subgradient of least magnitude|/sqrt(M_j): G + λ sign(W) off zero, the soft threshold of G at λ at zero."""
    return np.where(W != 0, np.abs(G + l1 * np.sign(W)), np.maximum(np.abs(G) - l1, 0)) / np.sqrt(M)


def gs_r(G, W, M, l1):
    """sqrt(M_j)·|prox step|; the prox is nonexpansive, so the step moves by at most |change of G_j|/M_j."""
    return np.sqrt(M) * np.abs(_step(G, W, M, l1))


def gs_q(G, W, M, l1):
    """sqrt(2·decrease) of the model Gα + Mα²/2 + λ|w + α| - λ|w| at its minimiser α, the prox step.

    The text's rule is an argmin over j of the model. d sqrt(2D)/dG = -α/sqrt(2D), and D ≥ Mα²/2 by strong convexity.
    """
    step = _step(G, W, M, l1)
    decrease = l1 * (np.abs(W) - np.abs(W + step)) - step * (G + 0.5 * M * step)
    return np.sqrt(2 * np.maximum(decrease, 0))


def _step(G, W, M, l1):
    target = W - G / M
    return np.copysign(np.maximum(np.abs(target) - l1 / M, 0), target) - W


SCORES = {"gs-s": gs_s, "gs-r": gs_r, "gs-q": gs_q}
