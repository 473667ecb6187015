"""What figures, tables and claims share: rows with their settings and ρ, means over seeds, fitted exponents."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpbench.experiments.tuning import expand_settings
from dpbench.privacy import zcdp

DELTA = 1e-6
ALGORITHMS = ("o2nc", "o2nc-tree", "o2nc-naive")
FIT_DECADES = 1.0  # exponents are fitted over the last decade of M, where the theorem's bound is lowest
RESAMPLES = 2000
RESOLUTION = 1e-3  # of the measured stationarity: what halving its samples changes
TITLES = {
    "phase-5": "phase retrieval, d = 5",
    "phase-20": "phase retrieval, d = 20",
    "phase-100": "phase retrieval, d = 100",
    "a1a-ramp": "a1a, ramp loss, d = 124",
}
SETTING = (
    "δ_dp = 1e-6, replace-one neighbours, accounting standard (ε = ρ²/2 + ρ sqrt(2 ln(1/δ_dp))); the measure and the "
    "choice of the smoothing radius are non-private"
)


def rho_of(epsilon: float) -> float:
    """The paper's ρ, (α, αρ²/2)-RDP for all α, behind the ε of a row: ρ²/2 + ρ sqrt(2 ln 1/δ) = ε."""
    return math.sqrt(2 * zcdp.rho(epsilon, DELTA, "standard"))


def studied(context, artefact: str):
    """The finished rows of an artefact with a column `set.<name>` per setting and `rho` (∞ where not private)."""
    rows = context.rows(artefact)
    rows = rows[rows["status"].eq("done")]
    if rows.empty:
        return rows.assign(rho=[])
    rho = [rho_of(e) if private else math.inf for e, private in zip(rows["epsilon"], rows["private"], strict=True)]
    return expand_settings(rows).assign(rho=np.round(rho, 3))


def means(rows, by: list[str], value: str = "measured"):
    """Mean of a column, its standard error and the number of seeds, for each group."""
    table = rows.groupby(by, sort=True)[value].agg(mean="mean", sd="std", seeds="count").reset_index()
    return table.assign(se=table["sd"] / np.sqrt(table["seeds"])).drop(columns="sd")


class Slope(NamedTuple):
    """A fitted exponent of M with its 95 % interval, over M from `low` to `high`."""

    value: float
    lower: float
    upper: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.lower:.2f}, {self.upper:.2f}]"


def slope(rows) -> Slope | None:
    """Least squares of log mean measured on log M over the last decade; None with fewer than two M.

    The interval is a percentile bootstrap over the seeds at each M: single values may be 0, so their logs will not do.
    """
    M = np.sort(rows["set.M"].unique())
    M = M[np.log10(M[-1] / M) <= FIT_DECADES + 1e-9] if len(M) else M
    samples = [np.sort(rows.loc[rows["set.M"].eq(m), "measured"]) for m in M]  # whatever the order of the rows
    if len(M) < 2 or min(map(len, samples)) < 2:
        return None
    generator = np.random.Generator(np.random.PCG64DXSM(0))
    drawn = np.stack([s[generator.integers(len(s), size=(RESAMPLES, len(s)))].mean(axis=1) for s in samples])
    centred = np.log(M) - np.log(M).mean()

    def fit(values):
        return centred @ np.log(np.maximum(values, RESOLUTION)) / (centred @ centred)

    lower, upper = np.quantile(fit(drawn), [0.025, 0.975])
    return Slope(float(fit(np.array([s.mean() for s in samples]))), lower, upper, float(M[0]), float(M[-1]))


def exponent(algorithm: str, T: float, T_without_noise: float) -> float:
    """The theorem's exponent of M: -1/3 where the first term of T leads, and for naive noise in any case; -1/2 where
    the tree's noise sets a longer epoch (Theorem 4.9, Appendix E)."""
    return -1 / 2 if T_without_noise < T and algorithm == "o2nc-tree" else -1 / 3
