"""The board's versions: freezing the rows, and what was frozen."""

from __future__ import annotations

import os

import pandas as pd

from dpbench.experiments.leaderboard import EXPERIMENT
from dpbench.experiments.leaderboard.board import frozen
from dpbench.experiments.rows import compact
from dpbench.leaderboard import versions
from dpbench.leaderboard.versions import Version
from dpbench.run.results import Store
from dpbench.study.context import Context


def board_freeze(
    version: str, *, notes: str = "", profile: str = "full", results: str | os.PathLike[str] = "results"
) -> Version:
    """Freeze the leaderboard's rows as a version: a digest of them, and the places that come of them.

    Rows that the grid no longer asks for are dropped first.

    Args:
        version: its name.
        notes: a line on what is new.
        profile, results: as of `report`.

    Raises:
        UserError: for a name that is taken, and where there are no rows.
    """
    compact(EXPERIMENT.name, profile=profile, results=results)
    return frozen(Context(EXPERIMENT, profile, Store(results, profile, EXPERIMENT.name)), version, notes)


def board_versions(*, profile: str = "full", results: str | os.PathLike[str] = "results") -> tuple[pd.DataFrame, str]:
    """The frozen versions of the leaderboard, the oldest first, and a sentence on which one the rows are."""
    store = Store(results, profile, "leaderboard")
    rows = [
        {"version": one.name, "frozen": one.frozen, "rows": one.rows, "sha256": one.digest[:12], "notes": one.notes}
        for one in versions.versions(store)
    ]
    return pd.DataFrame(rows), versions.told(store)
