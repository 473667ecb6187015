"""Versions of the board: its rows frozen by a digest, and the places that came of them.

`versions/NAME.json` beside the rows. The digest is of what decides scores and costs, whatever the parts that hold it; a
checkout whose rows have it gives the places of that version again.
"""

from __future__ import annotations

import hashlib
import os

import msgspec
import pandas as pd

from dpbench.leaderboard.submitted import submissions
from dpbench.run.store import Store

FOLDER = "versions"
DECIDING = ("key", "status", "excess", "seconds", "epsilon_planned")  # of a row


class Line(msgspec.Struct, frozen=True):
    """A method's place at one ε; place 0 for none."""

    method: str
    place: int
    score: float
    families: int


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """A frozen board. digest: of its rows; parts: the files that held them then; places: ε → lines, in their order."""

    name: str
    frozen: str
    code_version: str
    rows: int
    digest: str
    parts: list[str]
    submissions: list[str]
    problems: int
    families: int
    places: dict[str, list[Line]]
    notes: str = ""

    def place(self, method: str, epsilon: str) -> int | None:
        """The method's place at an ε as `places` spells it; None where it is not in this version."""
        return next((line.place for line in self.places.get(epsilon, []) if line.method == method), None)


def rows_of(store: Store) -> pd.DataFrame:
    """All rows that a version freezes: those of the grid, and those of submissions."""
    frames = [store.runs(), *(one.rows for one in submissions(store))]
    return pd.concat([one[[*DECIDING]] for one in frames], ignore_index=True)


def digest(rows: pd.DataFrame) -> str:
    """SHA-256 of what decides, in an order of its own: parts may be merged, and rows lie anyhow."""
    lines = sorted(repr(tuple(row)) for row in rows[[*DECIDING]].itertuples(index=False, name=None))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def versions(store: Store) -> list[Version]:
    """Those beside the rows of `store`, the oldest first."""
    frozen = [msgspec.json.decode(path.read_bytes(), type=Version) for path in (store.folder / FOLDER).glob("*.json")]
    return sorted(frozen, key=lambda one: (one.frozen, one.name))


def version_sentence(store: Store) -> str:
    """Which frozen version the rows of `store` are, in one sentence."""
    frozen = versions(store)
    if not frozen:
        return "No version of these rows is frozen."
    rows = rows_of(store)
    current = digest(rows)
    for version in reversed(frozen):  # the latest of two versions with equal rows is the one to cite
        if version.digest == current:
            return f"Version {version.name}, frozen {version.frozen}: {version.rows:,} rows, sha256 {current[:12]}."
    last = frozen[-1]
    return f"Not frozen: {len(rows):,} rows, which are not the {last.rows:,} of version {last.name}."


def board_versions(*, profile: str = "full", results: str | os.PathLike[str] = "results") -> tuple[pd.DataFrame, str]:
    """The frozen versions of the leaderboard, the oldest first, and a sentence on which one the rows are."""
    store = Store(results, profile, "leaderboard")
    rows = [
        {"version": one.name, "frozen": one.frozen, "rows": one.rows, "sha256": one.digest[:12], "notes": one.notes}
        for one in versions(store)
    ]
    return pd.DataFrame(rows), version_sentence(store)


def epsilons_of(known: list[Version]) -> list[str]:
    """The ε of all versions, as they spell them, rising."""
    return sorted({epsilon for one in known for epsilon in one.places}, key=float)


def spelled(place: int | None) -> str:
    """A place; "–" for a method that is listed without one, "" for one that is not there."""
    return "" if place is None else str(place or "–")
