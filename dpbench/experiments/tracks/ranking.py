"""From rows to a standing with intervals: how far a method is from the best, over problems and seeds."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd

from dpbench.leaderboard.tracks import TUNED_ON, candidates
from dpbench.problems import catalogue
from dpbench.run import outcomes
from dpbench.study.statistics import excess

CELL = ["problem", "epsilon"]
DRAWS = 1000
WORST = 3.0  # decades above the best: farther, or diverged, counts as this
LEAST = 1e-12  # an excess below the certificate of its optimum
KINDS = ("logistic", "logistic + ridge", "squared + ridge", "with L1")


def kind(problem: str) -> str:
    """Of the KINDS, by loss and regulariser."""
    recipe = catalogue.recipe_of(problem)
    if recipe.weights.get("l1"):
        return KINDS[3]
    return f"{recipe.loss} + ridge" if recipe.weights else recipe.loss


def losses(runs: pd.DataFrame) -> pd.DataFrame:
    """Untimed runs that ended, with `loss`: the excess, infinite where one diverged."""
    found = runs[runs["timed"].eq(0) & outcomes.has_result(runs["status"])]
    return found.assign(loss=excess(found).fillna(np.inf).clip(lower=LEAST))


def tuned(runs: pd.DataFrame) -> pd.DataFrame:
    """Of each cell and method the setting with the lowest mean on the first seeds, by its other seeds alone."""
    table = losses(runs)
    seen = table[table["seed"] < TUNED_ON]
    means = seen.groupby([*CELL, "algorithm", "settings"], sort=True)["loss"].agg(["mean", "size"])
    means = means[means["size"] == TUNED_ON].reset_index()
    tried = means.groupby([*CELL, "algorithm"])["size"].transform("size")
    asked = [max(1, len(candidates(p, name, e))) for p, e, name in means[[*CELL, "algorithm"]].itertuples(index=False)]
    means = means[tried >= np.array(asked, dtype=int)]  # a cell whose candidates are not all there is not tuned yet
    best = means.sort_values("mean", kind="stable").drop_duplicates([*CELL, "algorithm"])
    scored = table[table["seed"] >= TUNED_ON]
    return scored.merge(best[[*CELL, "algorithm", "settings"]], on=[*CELL, "algorithm", "settings"])


def standing(table: pd.DataFrame, draws: int = DRAWS) -> pd.DataFrame:
    """One row per method, best first, from `losses` rows of one track.

    times: the geometric mean over its cells of (mean excess)/(the lowest of the cell); low, high: its 95 % interval by
    a bootstrap over problems, all ε of one together, and over the seeds of each method. share: of rivals beaten, the
    mean over cells. problems: how many it is on. leads: in the group of those whose distance from the first, on the
    problems they share, is not above 0 at 95 %. Methods on fewer than half of the problems come last and never lead.
    """
    columns = ["algorithm", "times", "low", "high", "share", "problems", "often", "leads"]
    if table.empty:
        return pd.DataFrame(columns=columns)
    methods = sorted(set(table["algorithm"]))
    cells = sorted(set(table[CELL].itertuples(index=False, name=None)))
    problems = sorted({problem for problem, _ in cells})
    rng = np.random.Generator(np.random.PCG64DXSM(20220))
    point = np.full((len(cells), len(methods)), np.nan)
    drawn = np.full((draws, *point.shape), np.nan)
    for (problem, epsilon, method), rows in table.groupby([*CELL, "algorithm"]):
        at = cells.index((problem, epsilon)), methods.index(method)
        values = rows["loss"].to_numpy()
        point[at] = np.log10(values.mean())
        drawn[:, at[0], at[1]] = np.log10(values[rng.integers(len(values), size=(draws, len(values)))].mean(axis=1))
    weights = rng.multinomial(len(problems), np.full(len(problems), 1 / len(problems)), size=draws)
    weights = weights[:, [problems.index(problem) for problem, _ in cells]].astype(float)
    behind, behind_drawn = _behind(point), _behind(drawn)
    score = np.nanmean(behind, axis=0)
    scores = _weighted(behind_drawn, weights)
    present = ~np.isnan(point)
    on = np.array([len({problem for (problem, _), there in zip(cells, column, strict=True) if there})
                   for column in present.T])  # fmt: skip
    often = 2 * on >= len(problems)
    first = min(range(len(methods)), key=lambda i: (not often[i], score[i]))
    with np.errstate(invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a method that shares no problem with the first
        gap = _weighted(behind_drawn - behind_drawn[:, :, [first]], weights)
        low, high = np.nanquantile(scores, [0.025, 0.975], axis=0)
        leads = often & (np.nanquantile(gap, 0.025, axis=0) <= 0)
    frame = pd.DataFrame(
        dict(zip(columns, (methods, 10**score, 10**low, 10**high, _share(point), on, often, leads), strict=True))
    )
    return frame.sort_values(["often", "times"], ascending=[False, True], kind="stable").reset_index(drop=True)


def _behind(logs: Any) -> Any:
    """Decades above the best of each cell, at most WORST; NaN where a method is not in it."""
    with np.errstate(invalid="ignore"):
        best = np.nanmin(np.where(np.isinf(logs), np.nan, logs), axis=-1, keepdims=True)
        return np.where(np.isnan(logs), np.nan, np.minimum(np.where(np.isinf(logs), np.inf, logs - best), WORST))


def _weighted(values: Any, weights: Any) -> Any:
    """(draws, methods): means over the cells (draws, cells, methods) that are there, by weights (draws, cells)."""
    there = ~np.isnan(values)
    total = (weights[:, :, None] * there).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return (weights[:, :, None] * np.where(there, values, 0.0)).sum(axis=1) / total


def _share(point: Any) -> Any:
    """(methods,): mean over its cells of the share of rivals with a larger mean; ties count half."""
    from scipy.stats import rankdata

    shares = np.full(point.shape, np.nan)
    for i, row in enumerate(point):
        there = np.flatnonzero(~np.isnan(row))
        if len(there) > 1:
            shares[i, there] = (len(there) - rankdata(row[there])) / (len(there) - 1)
    return np.nanmean(shares, axis=0) if np.isfinite(shares).any() else np.ones(point.shape[1])
