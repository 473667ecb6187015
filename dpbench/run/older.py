"""What older rows lack, filled from what they say, so that every reader sees today's columns and no run is repeated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dpbench import algorithms
from dpbench.algorithms.base import Algorithm
from dpbench.errors import UserError

if TYPE_CHECKING:
    import pandas

# Columns of older parts under today's names.
RENAMED = {"runs": {"epsilon_realised": "epsilon_spent"}}


def filled(runs: pandas.DataFrame) -> pandas.DataFrame:
    """Rows with `epsilon_planned` and `counts_public` where they have none and these follow from what they say.

    Before these columns `epsilon_spent` was of what a run released: that is what it planned, unless it stopped early.
    Of the methods that may (`Algorithm.stops_early`) only the runs that made all their planned releases can tell; of
    the others `epsilon`, which the plan was calibrated to, is all that is guaranteed. `epsilon_accounted` of such a run
    was of what it released, too, and is dropped.
    """
    older = runs["epsilon_planned"].isna() & runs["epsilon_realised"].notna()
    unknown = runs["counts_public"].isna()
    if older.any():
        early = older & runs["algorithm"].map(_stops_early) & ~_all_released(runs)
        runs = runs.assign(
            epsilon_planned=runs["epsilon_planned"].where(~older | early, runs["epsilon_realised"]),
            epsilon_accounted=runs["epsilon_accounted"].where(~early),
        )
    if unknown.any():
        pairs = runs.loc[unknown, ["algorithm", "settings"]].drop_duplicates()
        pairs = pairs.assign(found=[_public(*pair) for pair in pairs.itertuples(index=False)])
        found = runs.loc[unknown, ["algorithm", "settings"]].merge(pairs, on=["algorithm", "settings"], how="left")
        column = runs["counts_public"].astype(object)
        column[unknown] = found["found"].to_numpy()
        runs = runs.assign(counts_public=column)
    return runs


def _all_released(runs: pandas.DataFrame) -> pandas.Series:
    """Whether a run that may stop early made all its T iterations, each with a Hessian."""
    return (runs["gradient_evaluations"] >= runs["T"]) & (runs["hessian_evaluations"] >= runs["T"])


def _stops_early(name: object) -> bool:
    try:
        return algorithms.resolve(str(name))[0].stops_early
    except UserError:  # a file's, or another machine's plug-in: its rows do not say
        return True


def _public(name: object, settings: str) -> str | None:
    try:
        method, _ = algorithms.resolve(str(name))
        if type(method).public is Algorithm.public:  # whatever the settings
            return method.counts_public
        return method.public(msgspec.json.decode(settings, type=method.Settings))
    except (UserError, msgspec.ValidationError):
        return None
