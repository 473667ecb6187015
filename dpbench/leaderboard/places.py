"""From losses to places: a score that depends neither on who else is there nor on what was left out.

A score sets a method's mean loss on a problem against that of w = 0, which costs nothing and knows nothing: 0 is no
better than nothing, lower is better. On held-out rows it is minus the share of the gain that is kept: -1 is the loss of
the optimum without privacy. By the training objective it is log10 of the excess loss over that of w = 0: -1 is a tenth.
Scores are clipped; a problem that the method's needs admit and that has no result, or a run that failed or diverged,
scores the worst. So leaving out problems never improves a place, and an entrant changes the score of no other.

Problems of one origin are a family, whose score is the mean of theirs. Places are by the mean over families; intervals
are simultaneous for all methods of a table.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpbench.run import outcomes
from dpbench.study.statistics import or_infinite

CLIP = 3.0  # decades
EXCESS, HELD = "excess", "held_loss"  # the two losses that are scored, columns of the runs table
NOTHING, AUTO = "nothing", "auto"  # entrants: w = 0, and the method that users get where they name none
DEFAULT = "the default (auto)"  # how tables call the latter
LEVEL = 0.95
COMPARISON = ["problem", "epsilon"]
METHOD = [*COMPARISON, "algorithm"]


class Scale(NamedTuple):
    """How mean losses become scores; nulls, best: problem → the loss of w = 0, and of the optimum without privacy.

    column: of the runs table. best: none for an excess loss, where it is 0 and shares differ by factors of a thousand.
    """

    column: str
    nulls: Mapping[str, float]
    best: Mapping[str, float] | None = None

    @property
    def worst(self) -> float:
        """The score of what is missing or failed; scores lie within ± it."""
        # Within one gain of w = 0, no family counts for more than another in a mean.
        return CLIP if self.best is None else 1.0

    def scores(self, problem: str, means: Any) -> np.ndarray:
        """Of mean losses on a problem; the worst for one that is infinite or no number."""
        means, null = np.asarray(means, float), self.nulls[problem]
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.best is None:
                raw = np.log10(np.maximum(means, 0) / null)
            else:
                raw = (means - null) / (null - self.best[problem])
        return np.clip(np.where(np.isfinite(means) & (null > 0), raw, self.worst), -self.worst, self.worst)

    def kept(self, scores: Any) -> Any:
        """What share of the gain of the optimum without privacy over w = 0 is kept at these scores, at least -1."""
        return np.maximum(1 - 10.0**scores, -1) if self.best is None else -scores


def score(excess: float, null: float) -> float:
    """log10(mean excess / excess of w = 0), within ±CLIP; CLIP for an excess that is infinite or no number.

    >>> score(0.1, 1.0), score(math.inf, 1.0), score(0.0, 1.0), score(5.0, 5.0)
    (-1.0, 3.0, -3.0, 0.0)
    """
    return float(Scale(EXCESS, {"": null}).scores("", excess))


def losses(runs: pd.DataFrame, column: str = EXCESS) -> pd.DataFrame:
    """The untimed runs, with `loss`: that of a column, infinite where one diverged, failed or has none."""
    untimed = runs[runs["timed"].eq(0)]
    ended = untimed["status"].isin(outcomes.RESULTS)
    loss = or_infinite(untimed[column].astype(float), untimed).where(ended, math.inf).fillna(math.inf)
    return untimed.assign(loss=loss.clip(lower=0.0))


def pick(table: pd.DataFrame, group: list[str], by: str) -> pd.DataFrame:
    """Of each group the row with the lowest `by`; of equals the first. The one way in which settings are chosen."""
    # Stable, so that ties fall to the first in the table on every machine.
    return table.sort_values(by, kind="stable").drop_duplicates(group)


def means(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per (problem, ε, algorithm, settings) of `losses`: `mean` and `seeds`, and what the runs took unpaid."""
    grouped = rows.groupby([*METHOD, "settings"], sort=False)
    return grouped.agg(mean=("loss", "mean"), seeds=("loss", "size"), unpaid=("counts_public", "first")).reset_index()


def finished(
    table: pd.DataFrame, planned: list[tuple[str, float, str]], installed: Collection[str] = ()
) -> tuple[pd.DataFrame, list[tuple[str, float, str]], int]:
    """The rows and plans of (problem, ε) on which every planned method of dpbench was run; how many of them wait.

    A run that failed is a row as well: what waits was never started. No submission is among the planned, and a method
    of an `installed` package is planned only once it has a row: so none can keep a problem off the board, nor bring
    one. Rows on what is not planned are left out.
    """
    there = set(table[METHOD].itertuples(index=False, name=None))
    entered = {name for *_, name in there}
    planned = [at for at in planned if at[2] not in installed or at[2] in entered]
    # Only dpbench's own methods keep a problem waiting: a stranger's package must not hold up the board.
    own = [at for at in planned if at[2] not in installed]
    waiting = {at[:2] for at in own if at not in there}
    # A problem counts once all are there: else an early table would favour who was run first.
    whole = {at[:2] for at in own} - waiting
    kept = [tuple(at) in whole for at in table[COMPARISON].itertuples(index=False, name=None)]
    begun = {at[:2] for at in there}
    left = [at for at in planned if at[:2] in whole]
    return table[np.array(kept, dtype=bool)], left, len(waiting & begun)


def scored(table: pd.DataFrame, scale: Scale, planned: Iterable[tuple[str, float, str]]) -> pd.DataFrame:
    """One row per (problem, ε, algorithm) with `score`: of `means`, and the worst of what was planned and is not there.

    Problems that the scale has no loss of w = 0 for are left out, and those without a row of anybody. w = 0 is an
    entrant.
    """
    there = pick(table[table["problem"].isin(scale.nulls)], METHOD, "mean")
    comparisons = set(there[COMPARISON].itertuples(index=False, name=None))
    scores = {
        (problem, epsilon, name): float(scale.scores(problem, mean))
        for problem, epsilon, name, mean in there[[*METHOD, "mean"]].itertuples(index=False)
    }
    for problem, epsilon, algorithm in planned:
        if (problem, epsilon) in comparisons:
            # A method that ought to have run and did not is scored as one that failed.
            scores.setdefault((problem, epsilon, algorithm), scale.worst)
    scores |= {(*at, NOTHING): 0.0 for at in comparisons}
    rows = [(*at, value) for at, value in scores.items()]
    return pd.DataFrame(rows, columns=[*METHOD, "score"])


def with_auto(table: pd.DataFrame, choice: Mapping[str, str], worst: float = CLIP) -> pd.DataFrame:
    """`scored` rows with the default's beside: on each problem the method's of `choice`, `worst` where missing."""
    chosen = table[table["algorithm"].eq(table["problem"].map(dict(choice)))].assign(algorithm=AUTO)
    comparisons = table[table["problem"].isin(choice)][COMPARISON].drop_duplicates()
    missing = comparisons.merge(chosen[[*COMPARISON, "score"]], on=COMPARISON, how="left")
    filled = missing.assign(algorithm=AUTO, score=missing["score"].fillna(worst))
    return pd.concat([table, filled[table.columns]], ignore_index=True)


def by_family(table: pd.DataFrame, families: Mapping[str, str]) -> pd.DataFrame:
    """(families × methods): the mean of a method's scores over a family's problems; NaN where it is not admitted."""
    named = table.assign(family=table["problem"].map(lambda problem: families.get(problem, problem)))
    return named.pivot_table(index="family", columns="algorithm", values="score", aggfunc="mean")


class Placement(NamedTuple):
    """A line of a table of places. place: 0 for none; low, high: simultaneous bounds on the score.

    apart: whether it is distinguishable from the first at LEVEL.
    """

    algorithm: str
    place: int
    score: float
    low: float
    high: float
    apart: bool

    @property
    def interval(self) -> str:
        """The score and its bounds in words, as "-1.20 [-1.50, -0.90]"."""
        return f"{two(self.score)} [{two(self.low)}, {two(self.high)}]"


def two(value: float) -> str:
    """Two decimals, and no "-0.00".

    >>> two(-0.001), two(-0.42)
    ('0.00', '-0.42')
    """
    return f"{round(float(value), 2) + 0.0:.2f}"


def placements(scores: pd.DataFrame, unpaid: Collection[str] = ()) -> list[Placement]:
    """Lines by mean score, of a (families × methods) table without gaps.

    unpaid: methods that take something from the data without paying, which are listed and have no place.
    """
    if scores.empty:
        return []
    mean = scores.mean()
    order = sorted(scores.columns, key=lambda name: (mean[name], name))
    # w = 0 is the unit of the score, so its own has no error.
    half = dict(zip(scores.columns, simultaneous(scores.to_numpy()), strict=True)) | {NOTHING: 0.0}  # by definition
    first = next((name for name in order if name not in unpaid), order[0])
    # Paired by family: what a family does to all methods alike cancels.
    gaps = scores.sub(scores[first], axis=0)
    behind = dict(zip(scores.columns, gaps.mean() - simultaneous(gaps.to_numpy()), strict=True))
    lines, place = [], 0
    for name in order:
        place += name not in unpaid
        low, high = max(-CLIP, mean[name] - half[name]), min(CLIP, mean[name] + half[name])
        shown = 0 if name in unpaid else place
        apart = bool(behind[name] > 0)
        lines.append(Placement(name, shown, float(mean[name]), float(low), float(high), apart))
    return lines


def simultaneous(values: np.ndarray, level: float = LEVEL) -> np.ndarray:
    """Half-widths around the means of the columns of (families, methods), which hold for all at once at `level`.

    Student's t over families with Šidák's correction for the number of methods: a percentile bootstrap of three
    families covers 73 % where it says 95.
    """
    from scipy.stats import t

    count = len(values)
    if count < 2:
        return np.full(values.shape[1], np.inf)
    errors = values.std(axis=0, ddof=1) / math.sqrt(count)
    # Columns without any spread make no error, so they do not count among the tests.
    several = max(1, int((errors > 0).sum()))
    return float(t.ppf((1 + level ** (1 / several)) / 2, count - 1)) * errors


class Price(NamedTuple):
    """What another way to settings costs: the ratio of mean excess losses to the rule's, over `combinations`."""

    ratio: float
    low: float
    high: float
    combinations: int
    families: int


def price(rule: pd.DataFrame, other: pd.DataFrame, families: Mapping[str, str]) -> Price:
    """The geometric mean over families of other's mean loss over the rule's, where both have a mean.

    rule, other: rows of `means`, one per (problem, ε) and method. Losses are clipped at 10^±CLIP of one another.
    """
    shared = rule[[*METHOD, "mean"]].merge(other[[*METHOD, "mean"]], on=METHOD, suffixes=("", "_other"))
    logs = [
        0.0 if a == b else score(b, a) if a > 0 and math.isfinite(a) else -CLIP
        for a, b in zip(shared["mean"], shared["mean_other"], strict=True)
    ]
    if not logs:
        return Price(math.nan, math.nan, math.nan, 0, 0)
    # The mean over families, as places are: ten problems of one origin are one observation.
    named = shared.assign(log=logs, family=shared["problem"].map(lambda problem: families.get(problem, problem)))
    by = named.groupby("family")["log"].mean().to_numpy()[:, None]
    half, mean = float(simultaneous(by)[0]), float(by.mean())
    # The interval of two families may span hundreds of decades, on which 10 ** overflows.
    return Price(10**mean, 10 ** (mean - half), 10 ** min(mean + half, 99.0), len(logs), len(by))
