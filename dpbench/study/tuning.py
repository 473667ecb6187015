"""Tuned settings in tables and figures: those with the lowest mean excess loss over seeds. Not private.

They are chosen by the rule of `tuner.choose`, as the "best" settings of a grid are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dpbench.run import outcomes
from dpbench.run.row import settings_of
from dpbench.study.statistics import excess, means
from dpbench.study.tuner import Split, choose

# The same ε under another accounting is another amount of noise, so its runs are tuned apart.
IDENTITY = ["problem", "algorithm", "epsilon", "accounting"]


def expand_settings(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with one more column `set.<name>` per setting that any of them has."""
    # Seeds share their settings, so that there are far fewer texts to parse than runs.
    distinct = runs["settings"].drop_duplicates()
    parsed = pd.DataFrame([dict(settings_of(text)) for text in distinct], index=distinct.to_numpy()).add_prefix("set.")
    return runs.join(parsed, on="settings")


def summarise(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per (problem, algorithm, ε, accounting, settings): mean excess, its standard error, and counts.

    A diverged replicate counts as an infinite excess: a setting is only as good as all of its seeds.
    """
    return means(_tried(runs), [*IDENTITY, "settings", "T"])


def _tried(runs: pd.DataFrame) -> pd.DataFrame:
    right = runs["sweep"].isna() & runs["planted"].isna()
    untimed = runs[(runs["timed"] == 0) & outcomes.has_result(runs["status"]) & right]
    return untimed.assign(excess=excess(untimed))


def chosen(
    rows: pd.DataFrame, by: list[str], settings: list[str], value: str = "excess", split: Split = "none"
) -> pd.DataFrame:
    """The rows of each group's chosen setting, on the seeds that it is scored on: see `tuner.choose`.

    Args:
        rows: of runs, with a `seed`; of equal settings the one that comes first is chosen.
        by: the columns that a group has in common.
        settings: those that tell its settings apart.
        value: the column whose lowest mean decides.
    """
    losses = rows[value].to_numpy(float)[:, None]
    groups: dict[tuple[Any, ...], dict[tuple[Any, ...], dict[int, list[int]]]] = {}  # … → setting → seed → rows
    names = [rows[name].to_numpy(object) for name in (*by, *settings, "seed")]
    for i, (*at, seed) in enumerate(zip(*names, strict=True)):
        cell = groups.setdefault(tuple(at[: len(by)]), {}).setdefault(tuple(at[len(by) :]), {})
        cell.setdefault(seed, []).append(i)
    scored: list[int] = []
    for cells in groups.values():
        # A seed has several rows of one setting where an -opt method is asked for T and 2T and runs the same T'.
        means_of = {
            cell: {s: losses[at[0]] if len(at) == 1 else losses[at].mean(axis=0) for s, at in one.items()}
            for cell, one in cells.items()
        }
        choice = choose(means_of, split)
        if choice is not None:
            winner, _, seeds = choice
            scored += [row for seed in seeds for row in cells[winner][seed]]
    return rows.iloc[sorted(scored)]


def best(runs: pd.DataFrame, by: list[str] = IDENTITY, *, split: Split = "none") -> pd.DataFrame:
    """The chosen setting of each group, summarised over the seeds it is scored on, and whether its T ends the grid.

    Adds `at_end`: "" or "smallest"/"largest" when the best T is an end of the T values tried for its group and could go
    on there; no T is smaller than 1.
    """
    known = _tried(runs)
    known = known[known["excess"].notna()].sort_values("T", kind="stable")  # no excess: no optimum to measure from
    scored = chosen(known, by, ["settings", "accounting"], split=split).sort_index()  # of equals the smallest T
    table = means(scored, [*IDENTITY, "settings", "T"])
    ends = known.assign(T=known["T"].astype(float)).groupby(by)["T"].agg(["min", "max"])
    low, high = (table[by].merge(ends.reset_index(), on=by, how="left")[end] for end in ("min", "max"))
    T = table["T"].astype(float)
    at_end = np.select([(low == high) | (T == 1), low == T, high == T], ["", "smallest", "largest"], "")
    return table.assign(at_end=at_end)
