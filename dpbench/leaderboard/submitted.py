"""What others submitted: their rows and where these come from, as `dpbench board merge` left them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from dpbench.run.store import Store

FOLDER = "submissions"


class Submitted(NamedTuple):
    """One method: its manifest, its audits, what was checked of it, its rows."""

    manifest: dict[str, Any]
    audits: list[dict[str, Any]]
    checked: dict[str, Any]
    rows: pd.DataFrame

    @property
    def placed(self) -> bool:
        """Whether the receiver ran all of it again and found nothing to flag."""
        return bool(self.checked.get("placed"))


def submissions(store: Store) -> list[Submitted]:
    """Those beside the rows of `store`, by name."""
    submitted = []
    for folder in sorted((store.folder / FOLDER).glob("*/")):
        manifest, audits, checked = (_read(folder / f"{name}.json") for name in ("manifest", "audit", "checked"))
        rows = Store(folder.parent.parent, folder.parent.name, folder.name).runs()
        submitted.append(Submitted(manifest, audits, checked, rows))
    return submitted


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
