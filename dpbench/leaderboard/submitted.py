"""What others submitted: the receiver's runs of it and what was checked, as `dpbench board merge` left them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

from dpbench.run.store import Store

FOLDER = "submissions"


class Submitted(NamedTuple):
    """One method: its manifest, what was checked of it, its rows."""

    manifest: dict[str, Any]
    checked: dict[str, Any]
    rows: pd.DataFrame

    @property
    def placed(self) -> bool:
        """Whether the receiver ran it where it could reach nothing else, or ran it as trusted code."""
        return bool(self.checked["placed"])

    def comparable(self, nulls: Mapping[str, float]) -> pd.DataFrame:
        """Its rows, those on private copies with the excess loss that is as many times `nulls`, of the public ones.

        nulls: problem → excess loss of w = 0. A score is of their ratio, so it stays that of the copy.
        """
        own = self.checked["nulls"]
        scale = self.rows["problem"].map({name: nulls[name] / own[name] for name in own if name in nulls}).fillna(1.0)
        return self.rows.assign(excess=self.rows["excess"] * scale)


def submissions(store: Store) -> list[Submitted]:
    """Those beside the rows of `store`, by name."""
    submitted = []
    for folder in sorted((store.folder / FOLDER).glob("*/")):
        manifest, checked = (
            json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in ("manifest", "checked")
        )
        rows = Store(folder.parent.parent, folder.parent.name, folder.name).runs()
        submitted.append(Submitted(manifest, checked, rows))
    return submitted
