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
from dpbench.study.tuner import choose

IDENTITY = ["problem", "algorithm", "epsilon", "accounting"]


def expand_settings(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with one more column `set.<name>` per setting that any of them has."""
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


def best(runs: pd.DataFrame, by: list[str] = IDENTITY, *, held_out: bool = False) -> pd.DataFrame:
    """The chosen setting of each group, summarised over the seeds it is scored on, and whether its T ends the grid.

    Adds `at_end`: "" or "smallest"/"largest" when the best T is an end of the T values tried for its group and could go
    on there; no T is smaller than 1.
    """
    known = _tried(runs)
    known = known[known["excess"].notna()].sort_values("T", kind="stable")  # no excess: no optimum to measure from
    values = {name: known[name].to_numpy(object) for name in {*by, "settings", "accounting", "seed", "T"}}
    losses = known["excess"].to_numpy()[:, None]
    groups: dict[tuple[Any, ...], dict[tuple[str, str], dict[int, list[int]]]] = {}  # … → setting → seed → rows
    for i, group in enumerate(zip(*(values[name] for name in by), strict=True)):
        cell = groups.setdefault(group, {}).setdefault((values["settings"][i], values["accounting"][i]), {})
        cell.setdefault(values["seed"][i], []).append(i)
    scored: list[int] = []
    tried = {}
    for group, cells in groups.items():  # of equals the smallest T
        choice = choose({cell: {s: losses[at[-1]] for s, at in one.items()} for cell, one in cells.items()}, held_out)
        if choice is None:
            continue
        winner, _, seeds = choice
        scored += [row for seed in seeds for row in cells[winner][seed]]
        T = values["T"][[row for one in cells.values() for rows in one.values() for row in rows]].astype(float)
        tried[group] = {"": None, "smallest": np.fmin.reduce(T), "largest": np.fmax.reduce(T)}
    table = means(known.iloc[scored].sort_index(), [*IDENTITY, "settings", "T"])
    at_end = []
    for row in table.to_dict("records"):
        ends = tried[tuple(row[name] for name in by)]
        no_end = ends["smallest"] == ends["largest"] or row["T"] == 1
        at_end.append("" if no_end else next((end for end, T in ends.items() if row["T"] == T), ""))
    return table.assign(at_end=at_end)
