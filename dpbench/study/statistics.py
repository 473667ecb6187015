"""Means over seeds and how they are written: one way for every figure, table and claim."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pandas as pd


class ProblemEpsilon(NamedTuple):
    """Where methods are compared."""

    problem: str
    epsilon: float


class Mean(NamedTuple):
    """What `means` has of a group."""

    mean: float
    se: float
    seeds: int


def excess(runs: pd.DataFrame) -> pd.Series:
    """The runs' excess loss, infinite where a run diverged: see `or_infinite`."""
    return or_infinite(runs["excess"].astype(float), runs)


def or_infinite(values: pd.Series, runs: pd.DataFrame) -> pd.Series:
    """Values of the runs, infinite where a run diverged: a setting is only as good as all of its seeds."""
    return values.where(runs["status"].ne("diverged"), math.inf)


def means(
    rows: pd.DataFrame, by: list[str], value: str = "excess", *, sort: bool = False, **others: tuple[str, Any]
) -> pd.DataFrame:
    """One row per group: `mean`, `sd` (ddof = 1), number of `seeds` and standard error `se` of a column.

    others: more columns, as name = (column, function). An infinite value makes the mean infinite.
    """
    # A group whose δ or T is missing is one too, which pandas drops by default.
    grouped = rows.groupby(by, sort=sort, dropna=False)
    with np.errstate(invalid="ignore"):
        table = grouped.agg(mean=(value, "mean"), sd=(value, "std"), seeds=(value, "size"), **others).reset_index()
    return table.assign(se=table["sd"] / np.sqrt(table["seeds"]))


def mostly_lowest(table: pd.DataFrame, by: list[str], who: str = "algorithm") -> tuple[Any, int, int] | None:
    """Who has the lowest finite mean in half of the groups or more: (name, in how many, of how many); None if nobody.

    >>> table = pd.DataFrame({"at": [1, 1, 2, 2], "algorithm": ["a", "b", "a", "b"], "mean": [0.1, 0.2, 0.1, 0.3]})
    >>> mostly_lowest(table, ["at"])
    ('a', 2, 2)
    >>> mostly_lowest(table.iloc[:0], ["at"]) is None
    True
    """
    known = table[np.isfinite(table["mean"].astype(float))]
    if known.empty:
        return None
    first = known.loc[known.groupby(by, sort=False)["mean"].idxmin(), who]
    name, count = next(iter(first.value_counts().items()))
    return (name, int(count), len(first)) if 2 * count >= len(first) else None


def plus_minus(mean: float, spread: float, digits: str = ".3g", spread_digits: str = ".1g") -> str:
    """A mean and its standard error or deviation; the mean alone where that is unknown, "–" where there is none.

    >>> plus_minus(0.12345, 0.0067), plus_minus(2.0, math.nan, ".2f"), plus_minus(math.nan, math.nan)
    ('0.123 ± 0.007', '2.00', '–')

    The two are read together, so a small spread has an exponent only where the mean has one:

    >>> plus_minus(6.09e-4, 5e-5), plus_minus(6.09e-5, 5e-6)
    ('0.000609 ± 0.00005', '6.09e-05 ± 5e-06')
    """
    if math.isnan(mean):
        return "–"
    value, error = f"{mean:{digits}}", f"{spread:{spread_digits}}"
    if "e-" in error and "e" not in value:
        error = f"{Decimal(error):f}"
    return value + ("" if math.isnan(spread) else f" ± {error}")


def span(counts: Iterable[float]) -> str:
    """How many seeds, or other whole numbers, in words: from the least to the largest.

    >>> span([5, 3, 5]), span([2.0]), span([])
    ('3 to 5', '2', 'no')
    """
    whole = sorted({int(count) for count in counts if not math.isnan(count)})
    return " to ".join(f"{count:,}" for count in dict.fromkeys(whole[:1] + whole[-1:])) or "no"


def listed(values: Mapping[str, float], unit: str = "") -> str:
    """Named numbers, as ratios.

    >>> listed({"adult": 12.345, "covertype": 0.5}, "×")
    'adult 12.3×, covertype 0.5×'
    """
    return ", ".join(f"{name} {value:.3g}{unit}" for name, value in values.items())
