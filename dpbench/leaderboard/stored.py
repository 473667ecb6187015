"""The board's rows on the disk: those that wheels carry, and what others submitted, as `dpbench board merge` left it.

With the first a submission can be merged and drawn beside them without a clone.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dpbench import files
from dpbench.errors import silent
from dpbench.problems import catalogue
from dpbench.run.store import Store, list_parts

if TYPE_CHECKING:
    import pandas

PROFILE, EXPERIMENT = "full", "leaderboard"
FOLDER = "submissions"


def shipped() -> Path | None:
    """Where the shipped rows lie: inside the package in a wheel, below results/ in a checkout; None where nowhere."""
    packed = Path(str(resources.files("dpbench.leaderboard"))) / "shipped"
    checkout = Path(__file__).parents[2] / "results" / PROFILE / EXPERIMENT
    return next((path for path in (packed, checkout) if list_parts(path / "runs")), None)


def lay_out(results: str | os.PathLike[str], notify: Callable[[str], None] = silent) -> Path | None:
    """Copy the shipped rows to `results/full/leaderboard`; that folder, None where rows of the board are there already.

    Submissions that are there stay as they are. notify: gets a line where something was copied.
    """
    target, source = Path(results) / PROFILE / EXPERIMENT, shipped()
    if source is None or list_parts(target / "runs") or source.resolve() == target.resolve():
        return None
    for path in [*source.glob(f"{FOLDER}/*"), source / "runs"]:  # the rows last: where they are, all is
        place = target / path.relative_to(source)
        # What a user merged before is not overwritten by what comes with the wheel.
        if list_parts(place) or (path.name != "runs" and place.exists()):
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        # Copied beside and moved in one step: half a copy would pass for the whole board.
        with files.staging(place) as staged:
            copied = staged / path.name
            shutil.copytree(path, copied)
            os.replace(copied, place)
    notify(f"{target}: the board's rows that come with this version were copied there")
    return target


class Submitted(NamedTuple):
    """One submitted method: its manifest, what was checked of it, the rows that the receiver ran."""

    manifest: dict[str, Any]
    checked: dict[str, Any]
    rows: pandas.DataFrame

    @property
    def placed(self) -> bool:
        """Whether the receiver ran it where it could reach nothing else, or ran it as trusted code."""
        return bool(self.checked["placed"])

    def comparable(self, nulls: Mapping[str, float]) -> pandas.DataFrame:
        """Its rows, those on private copies with the excess loss that is as many times `nulls`, of the public ones.

        nulls: problem → excess loss of w = 0. A score is of their ratio, so it stays that of the copy.
        """
        own = self.checked["nulls"]
        scale = self.rows["problem"].map({name: nulls[name] / own[name] for name in own if name in nulls}).fillna(1.0)
        return self.rows.assign(excess=self.rows["excess"] * scale)


def submissions(store: Store) -> list[Submitted]:
    """The submissions beside the rows of `store`, by name."""
    submitted = []
    for folder in sorted((store.folder / FOLDER).glob("*/")):
        manifest, checked = (
            json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in ("manifest", "checked")
        )
        rows = Store(folder.parent.parent, folder.parent.name, folder.name).runs()
        # Problems that have left the board since are in nobody's score.
        submitted.append(Submitted(manifest, checked, rows[rows["problem"].isin(catalogue.names())]))
    return submitted
