"""The formulas of zeroth_order: ρ and ε, the bound of Theorem 4.9 with the constants of its proof, its exponents."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from dpbench.privacy import accounting

DELTA = 1e-6
GAP, RADIUS = 1.0, 0.1  # the defaults of the settings
TITLES = {
    "phase-5": "phase retrieval, d = 5",
    "phase-5-long": "phase retrieval, d = 5",
    "phase-5-in-20": "phase retrieval in 5 of d = 20",
    "phase-5-in-100": "phase retrieval in 5 of d = 100",
    "phase-20": "phase retrieval, d = 20",
    "phase-100": "phase retrieval, d = 100",
    "a1a-ramp": "a1a, ramp loss, d = 124",
}


def rho_of(epsilon: float) -> float:
    """The paper's ρ, (α, αρ²/2)-RDP for all α, behind the ε of a row: ρ²/2 + ρ sqrt(2 ln 1/δ) = ε."""
    return math.sqrt(2 * accounting.get("standard").rho(epsilon, DELTA))


def dimension_of(problem: str) -> int:
    """d of a problem of `TITLES`.

    >>> dimension_of("phase-5-in-100"), dimension_of("a1a-ramp")
    (100, 124)
    """
    return int(TITLES[problem].rpartition(" ")[2])


def first_term(rows: pd.DataFrame) -> pd.Series:
    """(F + 2Lδ)/(DKT) of Corollary 4.7, row by row: D = δ/T, KT = M/2, L = 1, F the `gap`. Of the variance-reduced
    oracle; all other terms of the bound come on top."""
    gap, radius = rows["set.gap"].fillna(GAP), rows["set.radius"].fillna(RADIUS)
    return 2 * (gap + 2 * radius) * rows["T"] / (radius * rows["set.M"])


def whole_bound(rows: pd.DataFrame) -> pd.Series:
    """The right-hand side of Theorem 4.9 row by row, with the constants its proof prints; for o2nc and o2nc-tree.

    Corollary 4.7's three terms, L = B₂ = 1: `first_term`; the regret over DT, sqrt(mean E‖g̃‖²)/√T with E‖g̃‖² ≤
    3(v + 1 + n²), v = 80d/T the variance of Lemma 4.8 and n² = h²d(4d/(Tρ))² the noise of h = ⌊log₂ T⌋ + 1 nodes
    (Corollaries 4.4 and 4.5, their 2 ln T replaced by the count it bounds); and 2 sqrt(v + n²), for ‖Δ - û‖ ≤ 2D.
    """
    d, T = rows["problem"].map(dimension_of), rows["T"].astype(float)
    nodes = np.floor(np.log2(T)) + 1
    variance = 80 * d / T
    noise = np.where(np.isinf(rows["rho"]), 0.0, nodes**2 * d * (4 * d / (T * rows["rho"])) ** 2)
    bound: pd.Series = first_term(rows) + np.sqrt(3 * (variance + 1 + noise) / T) + 2 * np.sqrt(variance + noise)
    return bound


def enough(rows: pd.DataFrame, start: float) -> float:
    """The M (a power of 10^(1/4)) from which `whole_bound` is below the start, T chosen as Theorem 4.9 says."""
    one = rows.iloc[[0]]
    d, rho = dimension_of(one["problem"].iloc[0]), float(one["rho"].iloc[0])
    radius, gap = float(one["set.radius"].fillna(RADIUS).iloc[0]), float(one["set.gap"].fillna(GAP).iloc[0])
    for M in 10.0 ** np.arange(3, 16, 0.25):
        scale = radius * M / (gap + radius)
        T = max((math.sqrt(d) * scale) ** (2 / 3), (d**1.5 * scale / rho) ** 0.5)
        if whole_bound(one.assign(**{"set.M": M, "T": round(T)})).iloc[0] < start:
            return float(M)
    return math.inf


def exponent(algorithm: str, T: float, T_without_noise: float) -> float:
    """The theorem's exponent of M: -1/3 where the first term of T leads, and for naive noise in any case; -1/2 where
    the tree's noise sets a longer epoch (Theorem 4.9, Appendix E)."""
    return -1 / 2 if T_without_noise < T and algorithm == "o2nc-tree" else -1 / 3
