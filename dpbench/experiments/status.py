"""The rows that there are: read, counted against the grids, rid of what no grid asks for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from dpbench import algorithms, experiments
from dpbench.errors import UserError
from dpbench.leaderboard import stored
from dpbench.run.store import Store
from dpbench.study.plan import RunCounts, plan, run_counts

if TYPE_CHECKING:
    import pandas


def results(experiment: str, profile: str = "full", *, results: str | os.PathLike[str] = "results") -> pandas.DataFrame:
    """The rows of an experiment under a profile, one per run; profile "adhoc" has those of `run_algorithm`.

    The full profile's rows of the leaderboard come with the package where `results` has none.

    Args:
        experiment: its name; of the profile "adhoc", the algorithm's.
        profile: "full", "quick" or "adhoc".
        results: the folder of all results.

    Raises:
        UserError: where there are no rows, with the command that makes them.
    """
    runs = Store(results, profile, experiment).runs()
    if runs.empty and (profile, experiment) == (stored.PROFILE, stored.EXPERIMENT) and (home := stored.shipped()):
        runs = Store(home.parent.parent, profile, experiment, folder=home).runs()
    if runs.empty:
        if profile == "adhoc":
            told = f"dpbench run --algo {experiment}"
        else:
            experiments.get(experiment).blocks(profile)  # a name that is not known is told as such
            told = f"dpbench run --experiment {experiment} --profile {profile}"
        raise UserError(f"no rows of {experiment}, profile {profile}, in {os.fspath(results)}; run: {told}")
    return runs


def status(
    experiment: str | None = None, profile: str | None = None, *, results: str | os.PathLike[str] = "results"
) -> pandas.DataFrame:
    """A row per artefact and profile: how many of its runs are done, missing and failed, and notes.

    Args:
        experiment, profile: one of them, None for all.
        results: the folder of all results.

    Raises:
        UserError: for an unknown one.
    """
    import pandas as pd

    counts = standings(experiment, profile, results=results)
    return pd.DataFrame(counts, columns=list(RunCounts.__dataclass_fields__))


def standings(
    experiment: str | None = None,
    profile: str | None = None,
    *,
    results: str | os.PathLike[str] = "results",
) -> list[RunCounts]:
    """The rows of `status` as a list.

    Args:
        experiment, profile, results: as of `status`.
    """
    asked = [experiments.get(name) for name in ([experiment] if experiment else experiments.names())]
    if profile is not None and not any(profile in one.grid() for one in asked):
        asked[0].blocks(profile)  # raises, with the nearest profile
    todo = [
        (one, each)
        for one in asked
        for each in ([profile] if profile else one.grid())
        if experiment is not None or each in one.grid()  # a package's paper may have profiles of its own
    ]

    return [row for one, each in todo for row in run_counts(one, each, Store(results, each, one.name))]


def compact(
    experiment: str, *, profile: str = "full", results: str | os.PathLike[str] = "results"
) -> dict[str, tuple[int, int]]:
    """Drop the rows of an experiment, or of "all", that its grid no longer asks for: name → (rows kept, rows dropped).

    A row goes stale when its algorithm, data or settings change, and is known by its key alone. What cannot be decided
    from the rows that exist, as a method's settings that wait for tuning, is kept.

    Args:
        experiment: its name, or "all".
        profile: "full" or "quick".
        results: the folder of all results; one that does not exist is a UserError.
    """
    if not (folder := Path(results) / profile).is_dir():
        raise UserError(f"results: there are no rows in {folder}; run: dpbench run --experiment NAME")
    sizes = {}
    for one in map(experiments.get, experiments.names() if experiment == "all" else [experiment]):
        store = Store(results, profile, one.name)
        rows = [*zip(*store.lists("key", "problem", "algorithm"), strict=True)]
        planned = plan(one.blocks(profile), store)
        there = {key for key, *_ in rows}
        missing = (job for key, job in planned.by_key.items() if key not in there)
        partial = {(job.problem, algorithms.display_name(job.algorithm, job.parsed())) for job in missing}
        tuned = {at[:2] for block in one.blocks(profile) if block.tuned for at in block.combinations}
        unknown = planned.unknown | (partial & tuned)  # with more rows another setting may be the best
        stale = {key for key, *at in rows if key not in planned.keys and tuple(at) not in unknown}
        if stale:
            store.compact(stale)
        sizes[one.name] = (len(rows) - len(stale), len(stale))
    return sizes
