"""A summary of the runs of one method, as `dpbench run --algo` and `dpbench compare` tell it."""

from __future__ import annotations

import pandas as pd

from dpbench.run import outcomes
from dpbench.study.tuning import summarise


def by_setting(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per setting: `tuning.summarise`, the mean objective, the ε planned and realised, who checked it."""
    cell = ["problem", "algorithm", "epsilon", "settings"]
    spent = rows.groupby(cell, sort=False).agg(
        private=("private", "all"),
        planned=("epsilon_planned", "max"),
        realised=("epsilon_realised", "median"),
        objective=("objective", "mean"),
        checked=("checked_by", "first"),
        code=("code", "first"),
    )
    return summarise(rows).join(spent, on=cell)


def not_private(rows: pd.DataFrame) -> list[str]:
    """One line for each way in which runs that ended do not keep their ε."""
    flawed = rows[rows["private"].eq(False) & outcomes.has_result(rows["status"])].drop_duplicates(
        ["algorithm", "error"]
    )
    return [
        f"not private: {name}: {flaw or 'it looks at the data without paying'}"
        for name, flaw in zip(flawed["algorithm"], flawed["error"], strict=True)
    ]


def counts_as_public(rows: pd.DataFrame) -> list[str]:
    """One line for each thing, beside n, that runs took from the data and count as public."""
    named = rows["algorithm"].where(rows["private"], rows["algorithm"] + ", not private")
    methods = named[rows["counts_public"].fillna("").ne("")].groupby(rows["counts_public"]).unique()
    return [f"counts as public, beside n: {what} ({'; '.join(names)})" for what, names in methods.items()]
