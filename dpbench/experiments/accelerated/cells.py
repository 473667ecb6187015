"""The printed numbers of accelerated: where the curves of Figs. 3 and 4 end, and the T' of the authors' code."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from dpbench.experiments.accelerated.errors import FULL_BATCH, runs_of
from dpbench.experiments.accelerated.tables import full_set, switches_of
from dpbench.study import printed
from dpbench.study.context import Context, select
from dpbench.study.statistics import excess
from dpbench.study.style import look
from dpbench.study.verdicts import FIXED, Cell, Number, Place, Runs, Switch, Switches

SWITCHES = (
    Switch(
        "noise",
        ("noise_scale", "as-published-code"),
        "laprnd.m draws Laplace noise of standard deviation b_t, where the text's b_t is the scale",
    ),
    Switch(
        "weights",
        ("weights", "as-published-code"),
        "opt_noise_dist_NAG.m has 2^{s_T'} E₀ and α/2 (1 + αL); (4.6) and (4.8) have 2^{s_T' - 1} E₀ and α (1 + αL)",
        keeps_epsilon=True,
    ),
)
TS = (100, 200, 500, 1000)
PROBLEM = "accelerated-2020"


def cells(context: Context) -> Iterator[Cell]:
    """The 96 curves of the figures, and T' at T = 1,000, all on the authors' own draw of the data."""
    published = context.experiment.published()
    runs = runs_of(context, "published_curves")
    runs = runs.assign(error=excess(runs), switches=switches_of(runs) if len(runs) else [])
    for one in published["curves"]:
        algorithm, m, c = one["algorithm"], one["m"], one["c"]
        own = select(runs, algorithm=algorithm, m=m, c=c)
        for T, end in zip(TS, one["ends"], strict=True):
            yield Cell(
                Place("Fig. 3" if m == FULL_BATCH else "Fig. 4", look(algorithm).label, f"c = {c:g}, T = {T:,}"),
                "published_curves",
                (Number("final error", end, k=published["seeds"]),),
                by_set(select(own, T_asked=T), "final error", "error"),
                switches=tuple(full_set(algorithm).split(" + ")),
                series=(f"{algorithm}, {m}, {c}",),
            )
    chosen = published["chosen_T"]
    for algorithm in ("dp-nag-opt", "dp-masg-opt"):
        for c, theirs in zip(chosen["c"], chosen[algorithm], strict=True):
            rows = select(runs, algorithm=algorithm, c=c, T_asked=1000, m=FULL_BATCH)
            yield Cell(
                Place("Section 5 (published code)", look(algorithm).label, f"T' at T = 1,000, c = {c:g}"),
                "published_curves",
                (Number("T'", printed.shown(theirs, 0), FIXED),),
                by_set(select(rows, switches=["", "weights"]), "T'", "T"),
                switches=("weights",),
                series=(f"T' of {algorithm}",),
            )


def by_set(runs: pd.DataFrame, quantity: str, column: str) -> dict[Switches, Runs]:
    """A quantity's values per seed, by the set of switches that are on."""
    return {
        frozenset(filter(None, str(names).split(" + "))): {quantity: part[column].astype(float).tolist()}
        for names, part in runs.groupby("switches", sort=False)
    }
