"""The figure of tracks: what tuning hides."""

from __future__ import annotations

import pandas as pd

from dpbench.experiments.tracks.ranking import CELL, standing
from dpbench.experiments.tracks.tables import RULES, TITLES, track_rows
from dpbench.study.context import Context, select
from dpbench.study.declare import artefact
from dpbench.study.output import Figure
from dpbench.study.panels import Panels, joined
from dpbench.study.style import GREY, look

FEWEST = 3  # problems of a method that is ranked
SHORT = {"default": "none", "oracle": "oracle", "private": "paid"}


@artefact("moves", "How ranks move between the tracks")
def moves(context: Context) -> Figure:
    """A panel per ε: each method's rank on the cells that all tracks have, a line from track to track."""
    from matplotlib.ticker import MaxNLocator

    found = {track: track_rows(context, track) for track in TITLES}
    epsilons = context.epsilons("moves")
    page = Panels(context, "moves", len(epsilons), columns=3, size=(3.2, 4.2), room=0.6)
    drawn = []
    for axis, epsilon in page.over(epsilons, title=lambda e: f"ε = {e:g}"):
        table = ranks({track: select(rows, epsilon=epsilon) for track, rows in found.items()})
        if page.empty(axis, table, f"ε = {epsilon:g}"):
            continue
        drawn.append(table.assign(epsilon=epsilon))
        for method, rows in table.groupby("algorithm", sort=False):
            style = look(method)
            moved = rows["rank"].nunique() > 1
            axis.plot(
                [list(SHORT).index(track) for track in rows["track"]],
                rows["rank"],
                marker=style.marker,
                color=style.colour if moved else GREY,
                lw=1.4 if moved else 0.8,
            )
            last = rows.iloc[-1]
            axis.annotate(
                style.label, (2, last["rank"]), xytext=(6, 0), textcoords="offset points", va="center", fontsize=6.5
            )
        axis.set_xticks(range(3), list(SHORT.values()))
        axis.set_xlim(-0.2, 4.2)
        axis.yaxis.set_major_locator(MaxNLocator(integer=True))
        axis.invert_yaxis()
    page.label("tuning", "rank")
    caption = (
        "Rank by the geometric mean of excess losses over the best, on the problems and methods that all three tracks "
        f"have, of methods on at least {FEWEST} of them. Coloured: methods whose rank moves. {RULES}"
    )
    return page.figure(caption, joined(drawn) if drawn else ranks(found), legend=1)


def ranks(found: pd.DataFrame) -> pd.DataFrame:
    """One row per (track, method) with `rank` and `times`, on the (problem, ε, method) that all tracks have."""
    key = [*CELL, "algorithm"]
    shared = None
    for rows in found.values():
        cells = rows[key].drop_duplicates()
        shared = cells if shared is None else shared.merge(cells, on=key)
    frames = []
    for track, rows in found.items():
        table = standing(rows.merge(shared, on=key)).sort_values("times", kind="stable")
        table = table[table["problems"] >= FEWEST]
        frames.append(table[["algorithm", "times"]].assign(track=track, rank=range(1, len(table) + 1)))
    return pd.concat(frames, ignore_index=True)
