"""Every constant of the nonconvex experiments, beside the formula it belongs to.

A method looks for an (α, √(Mα))-second-order necessary solution (2NS): ‖∇f(w)‖ ≤ α and λ_min(∇²f(w)) ≥ -√(Mα).
"""

from __future__ import annotations

import math
from typing import NamedTuple

# Of the losses with ‖x‖ ≤ 1 (Assumptions 1 and 2): bounds on one example's loss, gradient and Hessian (spectral norm),
# and the Lipschitz constants of gradient and Hessian. The losses' own constants are smaller; the paper takes 1. The
# logistic loss has no bound B, and nothing private rests on it.
B = B_g = B_H = G = M = 1.0
GAP = 0.5  # what the published runs take for f(w₀) - inf f, so no noisy f(w₀) is released (equation 6)

c, c1, c2 = 0.1, 0.1, 1 / 12  # relative errors of H̃, g̃ and, against curvature steps, g̃ (equation 9)

# Line search (Algorithms 2 and 3): multiples of the fallback step to start from, shrinking, sufficient decrease.
b_g = b_H = 20.0
beta_g, c_g = 0.6, 0.6
beta_H, c_H = 0.5, 0.25
FALLBACK_g = 2 * (1 - c1 - c_g) / G  # γ̄_g (Lemma 6)
t2 = 1.5 * (1 - c - c_H) + 3 * math.sqrt((1 - c - c_H) ** 2 / 4 - 2 * c2 / 3)  # γ̄_H = t₂|λ̃|/M (equation 15)


class Tolerances(NamedTuple):
    """A method stops once ‖g̃‖ ≤ gradient and λ̃_min ≥ -curvature."""

    gradient: float
    curvature: float


def target(alpha: float) -> Tolerances:
    """(α, √(Mα))."""
    return Tolerances(alpha, math.sqrt(M * alpha))


def working(alpha: float) -> Tolerances:
    """Tolerances on noisy quantities that imply the target on true ones: (α/(1+c₁), √(Mα)/(1+c)) (Corollary 3)."""
    return Tolerances(alpha / (1 + c1), math.sqrt(M * alpha) / (1 + c))


def short_step_iterations(alpha: float) -> int:
    """T = ⌈gap / MIN_DEC⌉ (equation 6) with MIN_DEC of equation 10."""
    gradient, curvature = working(alpha)
    decrease = min((1 - 2 * c1) * gradient**2 / (2 * G), 2 * (1 / 3 - c2 - c) * curvature**3 / M**2)
    return math.ceil(GAP / decrease)


def line_search_iterations(alpha: float) -> int:
    """T = ⌈gap / MIN_DEC⌉ (equation 6) with MIN_DEC of equation 17."""
    gradient, curvature = working(alpha)
    decrease = min((1 - c1 - c_g) * c_g * gradient**2 / G, c_H * t2**2 * curvature**3 / (4 * M**2))
    return math.ceil(GAP / decrease)


def trust_region_iterations(alpha: float) -> int:
    """T = ⌈6 √M gap / α^{3/2}⌉ (Wang and Xu 2021)."""
    return math.ceil(6 * math.sqrt(M) * GAP / alpha**1.5)


def gd_2ns_iterations(alpha: float, d: int) -> int:
    """T = ⌈gap / min(α²/(4G), φ/γ)⌉ of dp-gd-2ns (Wang, Chen and Xu 2019)."""
    c, C1, xi = 0.7, 0.1, 0.1
    chi = max(1.0, C1 * math.log(d * G * B / (M * alpha * xi)))
    phi = chi**-3 * c**-5 * math.sqrt(alpha**3 / M)
    gamma = chi * c * G / math.sqrt(M * alpha)
    return math.ceil(GAP / min(alpha**2 / (4 * G), phi / gamma))
