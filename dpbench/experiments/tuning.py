"""Tuning as the papers do it: the setting with the lowest mean excess loss over seeds. It is not private."""

from __future__ import annotations

import itertools
import json
import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas

IDENTITY = ["problem", "algorithm", "epsilon", "accounting"]


def expand_settings(runs: pandas.DataFrame) -> pandas.DataFrame:
    """The runs with one more column `set.<name>` per setting that any of them has."""
    import pandas as pd

    distinct = runs["settings"].drop_duplicates()
    parsed = pd.DataFrame([json.loads(text) for text in distinct], index=distinct.to_numpy()).add_prefix("set.")
    return runs.join(parsed, on="settings")


def summarise(runs: pandas.DataFrame) -> pandas.DataFrame:
    """One row per (problem, algorithm, ε, accounting, settings): mean excess, its standard error, and counts.

    A diverged replicate counts as an infinite excess: a setting is only as good as all of its seeds.
    """
    import numpy as np

    untimed = runs[(runs["timed"] == 0) & runs["status"].ne("failed") & runs["sweep"].isna()]
    excess = untimed["excess"].where(untimed["status"].ne("diverged"), np.inf)
    grouped = untimed.assign(excess=excess).groupby([*IDENTITY, "settings", "T"], dropna=False, sort=False)["excess"]
    with np.errstate(invalid="ignore"):
        table = grouped.agg(mean="mean", sd="std", seeds="size").reset_index()
    return table.assign(se=table["sd"] / np.sqrt(table["seeds"]))


def best(runs: pandas.DataFrame, by: list[str] = IDENTITY) -> pandas.DataFrame:
    """The summary row with the lowest mean excess in each group, and whether its T ends the grid.

    Adds `at_end`: "" or "smallest"/"largest" when the best T is an end of the T values tried for its group.
    """
    table = summarise(runs)
    table = table[table["mean"].notna()]  # no excess: no optimum to measure from
    if table.empty:
        return table.assign(at_end="")
    winners = table.sort_values("T", kind="stable").groupby(by, sort=False)["mean"].idxmin()  # of equals the smallest T
    chosen = table.loc[sorted(winners)]
    spans = table.groupby(by, sort=False)["T"].agg(["min", "max"]).reset_index()
    chosen = chosen.merge(spans, on=by)
    at_end = [
        "" if low == high else "smallest" if low == T else "largest" if high == T else ""
        for T, low, high in zip(chosen["T"], chosen["min"], chosen["max"], strict=True)
    ]
    return chosen.assign(at_end=at_end).drop(columns=["min", "max"])


def best_settings(
    runs: pandas.DataFrame,
    problem: str,
    algorithm: str,
    epsilon: float,
    fixed: dict[str, Any],
    tuned: list[str],
    accounting: str = "paper",
    delta: str | float | None = None,
    relation: str | None = None,
) -> dict[str, Any] | None:
    """Values of the `tuned` settings with the lowest mean excess over seeds, or None if there are no rows.

    algorithm may be an alias. Only rows count that differ from `fixed` and the defaults in the tuned settings alone
    (their keys tell): a sweep over another setting does not decide here. A diverged run, or NaN, counts as infinite; a
    setting with less than half the seeds of another, and fewer than five, is not compared: its grid is still being run.
    """
    import numpy as np

    from dpbench import algorithms
    from dpbench.algorithms.base import make_settings
    from dpbench.jobs import make_job

    method, alias_settings = algorithms.resolve(algorithm)
    shown = algorithms.display_name(algorithms.reference(algorithm)[0], make_settings(method, alias_settings | fixed))
    rows = runs[
        (runs["problem"] == problem)
        & (runs["algorithm"] == shown)
        & (runs["epsilon"] == epsilon)
        & (runs["timed"] == 0)
        & (runs["status"] != "failed")
    ]
    # Plain Python: this runs for every cell of a grid, on few rows. A single run is a sweep over nothing.
    cells = defaultdict(list)
    for row in rows[["key", "seed", "settings", "sweep", "status", "excess", "values"]].itertuples():
        axes = json.loads(row.sweep) if isinstance(row.sweep, str) else {}
        values = json.loads(row.settings)
        chosen = {name: values[name] for name in tuned if name not in axes}
        if not set(axes) <= set(tuned):
            continue
        job = make_job(
            problem=problem,
            algorithm=algorithm,
            epsilon=epsilon,
            seed=int(row.seed),
            settings=fixed | chosen,
            accounting=accounting,
            delta=delta,
            relation=relation,
            sweep=axes,
        )
        if job.key == row.key:
            excess = np.array(row.values if axes else [math.inf if row.status == "diverged" else row.excess])
            cells[json.dumps([chosen, axes])].append(np.nan_to_num(excess, nan=math.inf))
    best, winner = math.inf, None
    enough = min(5, max(map(len, cells.values()), default=0) / 2)
    compared = [cell for cell, seeds in cells.items() if len(seeds) >= enough]
    for cell in sorted(compared, key=lambda cell: [*json.loads(cell)[0].values()]):  # of equals the smallest
        with np.errstate(over="ignore"):  # sums of nearly diverged runs may become infinite
            means = np.mean(cells[cell], axis=0)
        if winner is None or means.min() < best:
            best, winner = means.min(), (cell, int(means.argmin()))
    if winner is None:
        return None
    chosen, axes = json.loads(winner[0])
    swept = next(itertools.islice(itertools.product(*axes.values()), winner[1], None))
    found = chosen | dict(zip(axes, swept, strict=True))
    return {name: found[name] for name in tuned}
