"""From rows to ranks: every method at its best settings, and which differences are larger than their error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dpbench.run import outcomes
from dpbench.study.statistics import means, or_infinite

LEVELS = {"low": 0.1, "mid": 1.0, "high": 10.0}  # ε
CELL = ["problem", "epsilon"]
TIE = 2.0  # standard errors of a difference


def board(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per (problem, ε, method): its best settings, `mean`, `se`, `seeds`, `seconds`, `rank` and `beaten_by`.

    `mean` is of the excess loss, or of the objective where the optimum is not known. Best: the lowest mean over seeds,
    where a diverged seed counts as infinite. `rank` is by mean; `beaten_by` counts the methods that are better by more
    than two standard errors of the difference, so 0 marks the leader and those tied with it. `seconds` is of the timed
    run, NaN without one.
    """
    columns = ["algorithm", "settings", "accounting", "relation", "delta"]
    untimed = runs[(runs["timed"] == 0) & outcomes.has_result(runs["status"])]
    known = untimed.groupby("problem")["excess"].transform(lambda excess: excess.notna().any())
    loss = or_infinite(untimed["excess"].where(known, untimed["objective"]), untimed).fillna(np.inf)
    others: dict[str, Any] = {
        "planned": ("epsilon_planned", "min"),
        "private": ("private", "all"),
        "counts_public": ("counts_public", "first"),
        "accuracy": ("accuracy", "mean"),
    }
    table = means(untimed.assign(loss=loss), [*CELL, *columns], "loss", **others)
    if table.empty:
        return table.assign(seconds=[], rank=[], beaten_by=[]).drop(columns="sd")
    timed = runs[(runs["timed"] > 0) & outcomes.has_result(runs["status"])]
    seconds = timed.groupby([*CELL, "algorithm", "settings"])["seconds"].median()
    table = table.join(seconds.rename("seconds"), on=[*CELL, "algorithm", "settings"]).drop(columns="sd")
    table = table.sort_values(["mean", "seconds"], kind="stable")  # of equals one that was timed
    table = table.drop_duplicates([*CELL, "algorithm"]).reset_index(drop=True)
    table["rank"] = table.groupby(CELL)["mean"].rank(method="min").astype(int)
    table["beaten_by"] = pd.concat([beaten_by(cell) for _, cell in table.groupby(CELL)])
    return table.sort_values([*CELL, "rank", "algorithm"], kind="stable").reset_index(drop=True)


def beaten_by(cell: pd.DataFrame) -> pd.Series:
    """How many of the cell's methods are better by more than two standard errors of the difference, each."""
    mean, se = cell["mean"].to_numpy(), cell["se"].fillna(0).to_numpy()
    with np.errstate(invalid="ignore"):
        gap = mean[:, None] - mean[None, :]
        clear = gap > TIE * np.hypot(se[:, None], se[None, :])
    clear |= np.isinf(mean)[:, None] & np.isfinite(mean)[None, :]
    return pd.Series(clear.sum(axis=1), index=cell.index)


def overall(table: pd.DataFrame) -> pd.DataFrame:
    """Per method: the number of cells it is in, mean rank, mean share of rivals beaten, and how often it leads.

    A rank in a cell of three methods is not one in a cell of thirty: `share` is the mean of (size - rank)/(size - 1),
    1 for the best of every cell and 0 for the last. Sorted by it, methods in at least half the cells first.
    """
    sizes = table.groupby(CELL)["algorithm"].transform("size")
    table = table.assign(share=(sizes - table["rank"]) / (sizes - 1).clip(lower=1), leads=table["beaten_by"] == 0)
    result = table.groupby("algorithm", sort=False).agg(
        cells=("rank", "size"),
        mean_rank=("rank", "mean"),
        share=("share", "mean"),
        leads=("leads", "sum"),
        accounting=("accounting", "first"),
    )
    total = len(table[CELL].drop_duplicates())
    result = result.assign(often=2 * result["cells"] >= total).reset_index()
    return result.sort_values(["often", "share"], ascending=False, kind="stable").reset_index(drop=True)
