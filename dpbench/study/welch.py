"""Ours against a published mean: Welch's t-test for a difference, two one-sided tests for equivalence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpbench.study.statistics import plus_minus

MATCH, DIFFERS, NOT_COMPARABLE = "match", "differs", "not comparable"
NO_DATA = "no data"  # of ours: the data set is not at hand, or its runs are missing
EXPLAINED = "explained"  # a run with one named difference of the published code switched on matches
WORDS = (MATCH, EXPLAINED, DIFFERS, NO_DATA, NOT_COMPARABLE)
LEVEL = 0.05


class Match(NamedTuple):
    """word: one of `WORDS`; numbers: what was compared and the test, in words and digits."""

    word: str
    numbers: str


class Place(NamedTuple):
    """Where the paper prints a value: "Table 1", its row and its column, in the paper's words."""

    table: str
    row: str = ""
    column: str = ""

    def __str__(self) -> str:
        return ", ".join(filter(None, self))


class PublishedMean(NamedTuple):
    """A published mean, named, beside ours: what an experiment's `comparisons(context)` yields.

    place: where it is printed; artefact: ours that shows it and whose grid makes its runs.
    """

    name: str
    match: Match
    place: Place = Place("")
    artefact: str = ""


def compare(
    ours: Sequence[float],
    mean: float | None,
    std: float | None = None,
    n: int = 1,
    *,
    margin: float = 0.1,
    wider: float = 0.0,
    least: float = 0.0,
) -> Match:
    """Whether our values (one per seed) have the published `mean`.

    ours: (m,) independent values; std: published standard deviation of one run (ddof = 1) over `n` runs, None or
    n < 2 where only the mean is known, which then counts as exact; margin > 0: the means are equivalent within
    ± margin · |mean|, or ± least (absolute) where that is more.

    Equivalence is tried first (two one-sided Welch tests, Schuirmann 1987): "match" if both reject at 5 %. Else
    "differs" if Welch's two-sided test rejects at 5 %. Else, "match" if the means are equivalent within the `wider`
    margin. Else the spread leaves it open, which is "not comparable", as are fewer than two finite values of ours and a
    missing mean: that a test finds no difference proves no agreement. Without values of ours it is "no data".
    """
    values = np.asarray(ours, dtype=float)
    if mean is None or not math.isfinite(mean):
        return Match(NOT_COMPARABLE, "no published mean")
    if not len(values):
        return Match(NO_DATA, f"published {mean:.4g}; ours: no rows")
    if len(values) < 2 or not np.isfinite(values).all():
        return Match(NOT_COMPARABLE, f"published {mean:.4g}; ours has {np.isfinite(values).sum()} finite values")
    if not margin > 0 or (mean == 0 and not least > 0):
        raise ValueError(f"margin must be positive and relative to a mean that is not 0: got {margin}, mean {mean}")
    spread = std if std is not None and n > 1 else 0.0
    center, sd = float(values.mean()), float(values.std(ddof=1)) if np.ptp(values) > 0 else 0.0
    given = center - mean, (sd**2 / len(values), spread**2 / n), (len(values), n)
    word, test = _judged(*given, max(margin * abs(mean), least))
    if word == NOT_COMPARABLE and wider > margin:
        word, test = _judged(*given, max(wider * abs(mean), least))
    found = f"{plus_minus(center, sd, '.4g', '.2g')} (n = {len(values)})"
    theirs = f"{plus_minus(mean, spread, '.4g', '.2g')} (n = {n})" if spread else f"{mean:.4g} (taken as exact)"
    return Match(word, f"ours {found}, published {theirs}; {test}")


def _judged(gap: float, variances: tuple[float, float], sizes: tuple[int, int], width: float) -> tuple[str, str]:
    """The word and the tests, for a difference of means whose two parts have these variances."""
    from scipy.stats import t

    error = math.sqrt(sum(variances))
    within = f"equivalence within ±{width:.3g}"
    if error == 0:
        return (MATCH if abs(gap) <= width else DIFFERS), f"no spread, {within}"
    # Welch and Satterthwaite; a part without variance adds no degrees of freedom.
    freedom = error**4 / sum(v**2 / (size - 1) for v, size in zip(variances, sizes, strict=True) if v > 0)
    different = 2 * t.sf(abs(gap) / error, freedom)
    outside = t.sf((width - abs(gap)) / error, freedom)
    test = f"Welch p = {different:.2g}, {within} p = {outside:.2g}"
    return (MATCH if outside < LEVEL else DIFFERS if different < LEVEL else NOT_COMPARABLE), test
