"""The board's rows that wheels carry, so that a submission can be merged and drawn beside them without a clone."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from importlib import resources
from pathlib import Path

from dpbench import files
from dpbench.errors import silent
from dpbench.run import store

PROFILE, EXPERIMENT = "full", "leaderboard"


def folder() -> Path | None:
    """Where they lie: inside the package in a wheel, results/full/leaderboard in a checkout; None where nowhere."""
    packed = Path(str(resources.files("dpbench.leaderboard"))) / "shipped"
    checkout = Path(__file__).parents[2] / "results" / PROFILE / EXPERIMENT
    return next((path for path in (packed, checkout) if store.list_parts(path / "runs")), None)


def lay_out(results: str | os.PathLike[str], notify: Callable[[str], None] = silent) -> Path | None:
    """Copy them to `results/full/leaderboard` where no rows of the board are; that folder, None where nothing was done.

    Submissions that are there stay as they are. notify: gets a line where something was copied.
    """
    target, source = Path(results) / PROFILE / EXPERIMENT, folder()
    if source is None or store.list_parts(target / "runs") or source.resolve() == target.resolve():
        return None
    for path in [*source.glob("submissions/*"), source / "runs"]:  # the rows last: where they are, all is
        place = target / path.relative_to(source)
        # What a user merged before is not overwritten by what comes with the wheel.
        if store.list_parts(place) or (path.name != "runs" and place.exists()):
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        # Copied beside and moved in one step: half a copy would pass for the whole board.
        with files.staging(place) as staged:
            copied = staged / path.name
            shutil.copytree(path, copied)
            os.replace(copied, place)
    notify(f"{target}: the board's rows that come with this version were copied there")
    return target
