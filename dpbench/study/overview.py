"""A summary of the runs of one method, as `dpbench run --algo` and `dpbench compare` tell it; settings in words."""

from __future__ import annotations

import functools
from typing import Any

import pandas as pd

from dpbench import algorithms
from dpbench.algorithms.base import make_settings
from dpbench.errors import UserError
from dpbench.run import outcomes
from dpbench.run.row import settings_of
from dpbench.study.tuning import summarise


def by_setting(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per configuration: `tuning.summarise`, the mean objective, the ε planned and realised, who checked it."""
    configuration = ["problem", "algorithm", "epsilon", "settings"]
    spent = rows.groupby(configuration, sort=False).agg(
        private=("private", "all"),
        planned=("epsilon_planned", "max"),
        realised=("epsilon_realised", "median"),
        objective=("objective", "mean"),
        checked=("checked_by", "first"),
        code=("code", "first"),
    )
    return summarise(rows).join(spent, on=configuration)


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


def in_words(settings: str) -> str:
    """ "T=100, clip=0.5" of a row's settings, what is not set left out."""
    given = settings_of(settings)
    return ", ".join(f"{name}={_written(value)}" for name, value in given.items() if value is not None)


@functools.lru_cache(maxsize=65536)
def flags(algorithm: str, settings: str, accounting: str, relation: str) -> str:
    """What `dpbench run --algo ALGORITHM` takes beside data set, ε and seeds to repeat the run.

    Settings that are the method's own defaults, and an accounting and a relation that are, too, are left out.
    """
    given = {name: value for name, value in settings_of(settings).items() if value is not None}
    own = {"accounting": "", "relation": ""}
    try:
        method, fixed = algorithms.resolve(algorithm)
        default = make_settings(method, fixed)
        given = {name: value for name, value in given.items() if getattr(default, name, None) != value}
        own = {"accounting": method.accounting("paper"), "relation": method.relation.value}
    except UserError:  # rows of a user's file, or of a package that is not installed here
        pass
    told = [f"--{name} {value}" for name, value in (("accounting", accounting), ("relation", relation))
            if value != own[name]]  # fmt: skip
    return " ".join([*told, *(f"--set {name}={_written(value)}" for name, value in given.items())])


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.12g}" if isinstance(value, float) else str(value)
