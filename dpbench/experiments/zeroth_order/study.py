"""What figures, tables and claims share: rows with their settings and ρ, means over seeds, failure rates."""

from __future__ import annotations

import json
import math
from typing import NamedTuple

import numpy as np
import pandas as pd

from dpbench.privacy import accounting
from dpbench.study.context import Context
from dpbench.study.statistics import means
from dpbench.study.style import GREEN, GREY, SKY, Look, look
from dpbench.study.tuning import expand_settings
from dpbench.study.verdict import NotEnough

DELTA = 1e-6
TEST = "not in the paper: a test of its"  # in every title
METHODS = {
    "o2nc": look("o2nc"),
    "o2nc-two-point": Look("naive oracle, no noise", SKY, "v", private=False),
    "o2nc-gradient": Look("gradients, no noise", GREY, "d", private=False),
    "o2nc-tree": look("o2nc-tree"),
    "o2nc-naive": look("o2nc-naive"),
    "o2nc-naive-gradient": Look("private gradients (first order)", GREEN, "D"),
}
FLOORS = {"o2nc-tree": "o2nc", "o2nc-naive": "o2nc-two-point", "o2nc-naive-gradient": "o2nc-gradient"}
STATIONARY = 1e-6  # a measure below it counts as 0: 46 % of 912 runs are below 1e-9, 53 % above .06
CARRY = 10  # failed runs at either end of a comparison of rates, from which it is tested
OTHERWISE = "It could have come out otherwise: "
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
SETTING = (
    "Privacy: δ_dp = 1e-6, replace-one neighbours, accounting standard (ε = ρ²/2 + ρ sqrt(2 ln(1/δ_dp))). The "
    "stationarity measure and the choice of the smoothing radius look at the data and are not private"
)


def rho_of(epsilon: float) -> float:
    """The paper's ρ, (α, αρ²/2)-RDP for all α, behind the ε of a row: ρ²/2 + ρ sqrt(2 ln 1/δ) = ε."""
    return math.sqrt(2 * accounting.get("standard").rho(epsilon, DELTA))


def studied(context: Context, artefact: str) -> pd.DataFrame:
    """The finished rows of an artefact with a column `set.<name>` per setting and `rho` (∞ where not private).

    algorithm: a key of `METHODS`, which tells the oracles of o2nc and o2nc-naive apart.
    """
    rows = context.rows(artefact)
    rows = rows[rows["status"].eq("done")]
    if rows.empty:
        return rows.assign(rho=[])
    rho = [rho_of(e) if private else math.inf for e, private in zip(rows["epsilon"], rows["private"], strict=True)]
    rows = expand_settings(rows).assign(rho=np.round(rho, 3))
    if "set.oracle" in rows:
        default = {"o2nc": "variance-reduced", "o2nc-naive": "two-point"}
        own = rows["set.oracle"].isna() | rows["set.oracle"].eq(rows["algorithm"].map(default))
        rows["algorithm"] = rows["algorithm"].where(own, rows["algorithm"] + "-" + rows["set.oracle"].astype(str))
    return rows


def needed(context: Context, artefact: str) -> pd.DataFrame:
    """`studied`; NotEnough without any."""
    rows = studied(context, artefact)
    if rows.empty:
        raise NotEnough("no rows", artefact)
    return rows


def dimension_of(problem: str) -> int:
    """d of a problem of `TITLES`.

    >>> dimension_of("phase-5-in-100"), dimension_of("a1a-ramp")
    (100, 124)
    """
    return int(TITLES[problem].rpartition(" ")[2])


def sphere_rows(context: Context) -> pd.DataFrame:
    """The rows of the sphere family, by the ρ of the method that the probe ran, with what it notes as columns."""
    rows = studied(context, "sphere")
    if rows.empty:
        return rows
    rho = [math.inf if m == "o2nc" else rho_of(e) for m, e in zip(rows["set.method"], rows["epsilon"], strict=True)]
    notes = pd.DataFrame([json.loads(text) for text in rows["notes"]], index=rows.index)
    return rows.assign(rho=np.round(rho, 3)).join(notes)


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


class Method(NamedTuple):
    """A method, by the ρ of its noise."""

    algorithm: str
    rho: float


def over_seeds(rows: pd.DataFrame, by: list[str], value: str = "measured") -> pd.DataFrame:
    """Mean of a column, its standard error and the number of seeds, for each group."""
    return means(rows, by, value, sort=True).drop(columns="sd")


class Fraction(NamedTuple):
    """How many of some runs are not stationary; lower, upper: the 95 % Clopper–Pearson interval of their share."""

    failed: int
    runs: int
    lower: float
    upper: float

    @property
    def share(self) -> float:
        return self.failed / self.runs

    def __str__(self) -> str:
        return f"{self.failed} of {self.runs} [{self.lower:.2f}, {self.upper:.2f}]"


def failures(rows: pd.DataFrame) -> Fraction | None:
    """The runs whose measure is not below `STATIONARY`; None without any.

    The measure has two values, 0 and about .14 on phase retrieval, and hardly any between: its mean is a failure rate
    times .14, and only the rate can be tested.
    """
    from scipy.stats import binomtest

    measured = rows["measured"].dropna()
    if measured.empty:
        return None
    failed = int((measured >= STATIONARY).sum())
    interval = binomtest(failed, len(measured)).proportion_ci(method="exact")
    return Fraction(failed, len(measured), float(interval.low), float(interval.high))


def failed_shares(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """`failures` of each group: the share as `mean`, its interval as `low` and `high`, and the number of `seeds`."""
    found = [(key, failures(part)) for key, part in rows.groupby(by)]
    return pd.DataFrame(
        [(*key, one.share, one.lower, one.upper, one.runs) for key, one in found if one is not None],
        columns=[*by, "mean", "low", "high", "seeds"],
    )


def exponent(algorithm: str, T: float, T_without_noise: float) -> float:
    """The theorem's exponent of M: -1/3 where the first term of T leads, and for naive noise in any case; -1/2 where
    the tree's noise sets a longer epoch (Theorem 4.9, Appendix E)."""
    return -1 / 2 if T_without_noise < T and algorithm == "o2nc-tree" else -1 / 3
