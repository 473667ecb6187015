"""The formulas of zeroth_order: ρ and ε, the bound of Theorem 4.9 with the constants of its proof, its exponents."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from dpbench.privacy import accounting

# Of the (ε, δ) that our rows state; the paper states Rényi bounds alone.
DELTA = 1e-6
GAP, RADIUS = 1.0, 0.1  # the defaults of the settings
TITLES = {
    "phase-5": "phase retrieval, d = 5",
    "phase-5-long": "phase retrieval, d = 5",
    "phase-20": "phase retrieval, d = 20",
    "phase-100": "phase retrieval, d = 100",
    "a1a-ramp": "a1a, ramp loss, d = 124",
}


def rho_of(epsilon: float) -> float:
    """The paper's ρ, (α, αρ²/2)-RDP for all α, behind the ε of a row: ρ²/2 + ρ sqrt(2 ln 1/δ) = ε."""
    return math.sqrt(2 * accounting.get("standard").rho(epsilon, DELTA))


def dimension_of(problem: str) -> int:
    """d of a problem of `TITLES`.

    >>> dimension_of("phase-100"), dimension_of("a1a-ramp")
    (100, 124)
    """
    return int(TITLES[problem].rpartition(" ")[2])


def dimensions(rows: pd.DataFrame) -> pd.Series:
    """d row by row: that of the family, where a probe has one of its own, or of the problem."""
    return rows["set.d"] if "set.d" in rows else rows["problem"].map(dimension_of)


def first_term(rows: pd.DataFrame) -> pd.Series:
    """(F + 2Lδ)/(DKT) of Corollary 4.7, row by row: D = δ/T, KT = M/2, L = 1, F the `gap`. Of the variance-reduced
    oracle; all other terms of the bound come on top."""
    gap, radius = rows["set.gap"].fillna(GAP), rows["set.radius"].fillna(RADIUS)
    return 2 * (gap + 2 * radius) * rows["T"] / (radius * rows["set.M"])


def nodes_of(rows: pd.DataFrame) -> pd.Series:
    """The variance h(4d/(Tρ))² of one node of the tree in each coordinate, row by row, h = ⌊log₂ T⌋ + 1, L = B₂ = 1."""
    d, T = dimensions(rows), rows["T"].astype(float)
    variance: pd.Series = (np.floor(np.log2(T)) + 1) * (4 * d / (T * rows["rho"])) ** 2
    return variance


def noise_of(rows: pd.DataFrame) -> pd.Series:
    """E‖TREE(t)‖² = |NODE(t)| d times `nodes_of`, the mean over the T rounds, row by row."""
    taken = rows["T"].map(lambda T: np.mean([t.bit_count() for t in range(1, int(T) + 1)]))
    noise: pd.Series = taken * dimensions(rows) * nodes_of(rows)
    return noise


def variance_of(rows: pd.DataFrame) -> pd.Series:
    """Lemma 4.8's bound 80d/T on E‖g_t - ∇F̂(w_t)‖², row by row: 16d/(T + 1) of GRAD and 64d/T of DIFF, L = 1."""
    return 80 * dimensions(rows) / rows["T"].astype(float)


def whole_bound(rows: pd.DataFrame) -> pd.Series:
    """The right-hand side of Theorem 4.9 row by row, with the constants its proof prints; for o2nc and o2nc-tree.

    Corollary 4.7's three terms, L = B₂ = 1: `first_term`; the regret over DT, sqrt(mean E‖g̃‖²)/√T with E‖g̃‖² ≤
    3(v + 1 + n²), v = `variance_of` and n² the noise of h = ⌊log₂ T⌋ + 1 nodes (Corollaries 4.4 and 4.5, their 2 ln T
    replaced by the count it bounds); and 2 sqrt(v + n²), for ‖Δ - û‖ ≤ 2D.
    """
    T, v = rows["T"].astype(float), variance_of(rows)
    # A round has |NODE(t)| nodes; the proof takes the most that it can have.
    noise = (np.floor(np.log2(T)) + 1) * dimensions(rows) * nodes_of(rows)
    bound: pd.Series = first_term(rows) + np.sqrt(3 * (v + 1 + noise) / T) + 2 * np.sqrt(v + noise)
    return bound
