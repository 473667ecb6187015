"""The board's versions: freezing the rows, and what was frozen."""

from __future__ import annotations

import os

import pandas as pd

from dpbench.leaderboard import versions
from dpbench.run.store import Store


def board_versions(*, profile: str = "full", results: str | os.PathLike[str] = "results") -> tuple[pd.DataFrame, str]:
    """The frozen versions of the leaderboard, the oldest first, and a sentence on which one the rows are."""
    store = Store(results, profile, "leaderboard")
    rows = [
        {"version": one.name, "frozen": one.frozen, "rows": one.rows, "sha256": one.digest[:12], "notes": one.notes}
        for one in versions.versions(store)
    ]
    return pd.DataFrame(rows), versions.version_sentence(store)
