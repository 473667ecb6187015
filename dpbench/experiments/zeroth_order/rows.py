"""The runs of zeroth_order with their settings and ρ, and the shares of them that are not stationary.

Beside them the formulas that they are held against: ρ and ε, the bound of Theorem 4.9 with the constants of its proof.
"""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpbench.privacy import accounting
from dpbench.study.claims import NotEnough
from dpbench.study.context import Context, select
from dpbench.study.laws import Interval, mean_interval, share_interval
from dpbench.study.paper import Paper
from dpbench.study.statistics import means, plus_minus
from dpbench.study.style import GREEN, GREY, SKY, Look, look

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
PAPER = Paper(__package__)


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


def studied(context: Context, artefact: str) -> pd.DataFrame:
    """The finished rows of an artefact with a column `set.<name>` per setting and `rho` (∞ where not private).

    algorithm: a key of `METHODS`, which tells the oracles of o2nc and o2nc-naive apart.
    """
    rows = PAPER.rows(context, artefact)
    rows = rows[rows["status"].eq("done")]
    if rows.empty:
        return rows.assign(rho=[])
    rho = [rho_of(e) if private else math.inf for e, private in zip(rows["epsilon"], rows["private"], strict=True)]
    rows = rows.assign(rho=np.round(rho, 3))
    # One method runs with several oracles, each of which is a line of its own.
    if "set.oracle" in rows:
        default = {"o2nc": "variance-reduced", "o2nc-naive": "two-point"}
        own = rows["set.oracle"].isna() | rows["set.oracle"].eq(rows["algorithm"].map(default))
        rows["algorithm"] = rows["algorithm"].where(own, rows["algorithm"] + "-" + rows["set.oracle"].astype(str))
    return rows


def needed(context: Context, artefact: str, **key: str) -> pd.DataFrame:
    """`studied`, of these by column (`quantity="bias"` is of `set.quantity`); NotEnough without any, or see `whole`."""
    whole(context, artefact)
    rows = studied(context, artefact)
    if len(rows):
        rows = select(rows, **{f"set.{name}": value for name, value in key.items()})
    if rows.empty:
        raise NotEnough("no rows" + (f" of {' '.join(key.values())}" if key else ""), artefact)
    return rows


def whole(context: Context, artefact: str) -> None:
    """NotEnough where runs of the artefact's grid are missing: a verdict on the others might be another one."""
    if missing := context.unfinished(artefact):
        raise NotEnough(missing.partition(":")[0], artefact)


def noted(context: Context, artefact: str) -> pd.DataFrame:
    """The finished rows of a family's probe, by the ρ of the method that ran, with what the probe notes as columns."""
    rows = studied(context, artefact)
    if rows.empty:
        return rows
    # o2nc releases nothing privately: the ε of its rows is a placeholder.
    rho = [math.inf if m == "o2nc" else rho_of(e) for m, e in zip(rows["set.method"], rows["epsilon"], strict=True)]
    notes = pd.DataFrame([json.loads(text) for text in rows["notes"]], index=rows.index)
    return rows.assign(rho=np.round(rho, 3), **{str(name): notes[name] for name in notes})


def over_seeds(rows: pd.DataFrame, by: list[str], value: str = "measured") -> pd.DataFrame:
    """Mean of a column, its standard error and the number of seeds, for each group."""
    return means(rows, by, value, sort=True).drop(columns="sd")


def exponent(rows: pd.DataFrame, x: str, by: list[str], artefact: str) -> Interval:
    """The power of x that the measured number goes with: the mean over groups of the slopes on logarithms.

    Args:
        by: columns whose groups are independent of one another, as points of one fit need not be.
        artefact: whose rows they are; NotEnough where they have fewer than two values of x.
    """
    fits = [
        np.polyfit(np.log(part[x]), np.log(part["measured"]), 1)[0]
        for _, part in (rows.groupby(by) if len(rows) else ())
        if part[x].nunique() > 1
    ]
    if not fits:
        raise NotEnough(f"fewer than two values of {x.removeprefix('set.')}", artefact)
    return mean_interval(fits)


def stderr(values: Any) -> Any:
    """The standard error of the mean along the first axis."""
    return pd.DataFrame(values).sem().to_numpy()


def mean_of(values: Any) -> str:
    """Mean ± standard error."""
    return plus_minus(float(np.mean(values)), float(stderr(values)[0]))


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
    measured = rows["measured"].dropna()
    if measured.empty:
        return None
    failed = int((measured >= STATIONARY).sum())
    _, low, high = share_interval(failed, len(measured))
    return Fraction(failed, len(measured), low, high)


def failed_shares(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """`failures` of each group: the share as `mean`, its interval as `low` and `high`, and the number of `seeds`."""
    shares = [(key, failures(part)) for key, part in rows.groupby(by)]
    return pd.DataFrame(
        [(*key, one.share, one.lower, one.upper, one.runs) for key, one in shares if one is not None],
        columns=[*by, "mean", "low", "high", "seeds"],
    )
