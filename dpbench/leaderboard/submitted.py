"""What others submitted: their rows and where these come from, as `dpbench merge` left them."""

from __future__ import annotations

import json
import os
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from dpbench import files
from dpbench.errors import UserError, nearest
from dpbench.run.results import Store

FOLDER = "submissions"
LONGEST = 300  # characters of a reason
RETRACTED = "retracted.json"  # in a submission's folder: {"on": date, "reason": words}


class Submitted(NamedTuple):
    """One method: its manifest, its audits, what was checked of it, its rows; and why it was retracted, {} if not."""

    manifest: dict[str, Any]
    audits: list[dict[str, Any]]
    checked: dict[str, Any]
    rows: pd.DataFrame
    retracted: dict[str, str]

    @property
    def placed(self) -> bool:
        """Whether the receiver ran all of it again and found nothing to flag, and nobody has retracted it."""
        return bool(self.checked.get("placed")) and not self.retracted


def submissions(store: Store) -> list[Submitted]:
    """Those beside the rows of `store`, by name."""
    found = []
    for folder in sorted((store.folder / FOLDER).glob("*/")):
        manifest, audits, checked = (_read(folder / f"{name}.json") for name in ("manifest", "audit", "checked"))
        rows = Store(folder.parent.parent, folder.parent.name, folder.name).runs()
        retracted = _read(folder / RETRACTED) if (folder / RETRACTED).exists() else {}
        found.append(Submitted(manifest, audits, checked, rows, retracted))
    return found


def retract(store: Store, method: str, reason: str) -> Path:
    """Mark a submission as retracted: it stays listed with the reason, without a place. The file; UserError.

    reason: one line of words.
    """
    there = {one.manifest["method"]: one for one in submissions(store)}
    if method not in there:
        raise UserError(f"method: no submission {method!r} in {store.folder}; {nearest(method, there)}")
    if not reason.strip() or not reason.isprintable() or len(reason) > LONGEST:
        raise UserError(f"reason: give one line of at most {LONGEST} characters")
    if there[method].retracted:
        raise UserError(f"method: {method} was retracted on {there[method].retracted['on']}")
    path = store.folder / FOLDER / method / RETRACTED
    told = {"on": date.today().isoformat(), "reason": reason.strip()}
    with files.replacing(path) as staged:
        staged.write_text(json.dumps(told, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return path


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def board_retract(
    method: str, *, reason: str, profile: str = "full", results: str | os.PathLike[str] = "results"
) -> Path:
    """Retract a submission: it stays listed with the reason, without a place; the file that says so.

    Args:
        method: its name.
        reason: one line.
        profile, results: as of `report`.

    Raises:
        UserError: for an unknown method, or one that is retracted already.
    """
    return retract(Store(results, profile, "leaderboard"), method, reason)
