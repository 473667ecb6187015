"""The Pareto figures of leaderboard: what an excess loss costs in seconds."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd

from dpbench.experiments.leaderboard.ranking import LEVELS, board, overall
from dpbench.experiments.leaderboard.tables import RULES, seeds_of
from dpbench.study.context import Context, select
from dpbench.study.declare import artefact, each
from dpbench.study.output import Figure
from dpbench.study.panels import Panels, joined
from dpbench.study.style import GREY, look, problem_title

COLUMNS = 4
MOST_NAMED = 10
OTHER = "#c2c6cc"


@each(
    artefact(f"pareto_{name}", f"Excess loss against seconds at ε = {e:g}", epsilon=e, level=name)
    for name, e in LEVELS.items()
)
def pareto(context: Context, epsilon: float, level: str) -> Figure:
    """Mean excess loss against the seconds of one run alone, a panel per problem, the front as a staircase."""
    name = f"pareto_{level}"
    table = board(context.rows(name))
    problems = context.problems(name)
    columns = min(COLUMNS, len(problems)) or 1
    page = Panels(context, name, len(problems), columns=columns, size=(max(3.0, 7.5 / columns), 2.7), room=2.0)
    shown = named(table)
    fills = fill_styles(shown)
    drawn = []
    for axis, problem in page.over(problems, title=problem_title):
        cell = select(table, problem=problem)
        cell = cell[np.isfinite(cell["mean"]) & cell["seconds"].notna() & (cell["mean"] > 0)]
        if page.empty(axis, cell, problem, problem):
            continue
        front = efficient(cell)
        _draw(axis, cell, front, fills)
        drawn.append(cell.assign(efficient=cell["algorithm"].isin(front["algorithm"])))
    page.label("seconds of one run", "excess loss")
    caption = (
        f"Mean excess loss at ε = {epsilon:g} ({seeds_of(table)}; bars: ± 1 standard error) against the seconds of one "
        "run at the chosen settings, timed alone on one core, with the calibration of its noise where no earlier run "
        "had done it. Grey line and names: the front; what lies above and to the right of it is both slower and "
        f"worse than some other method. In colour: the {MOST_NAMED} methods most often on a front, then those that "
        "beat most rivals; grey dots: the others (explore.html names them). Methods at more than three times the "
        f"median leave the panel. {RULES}"
    )
    data = joined(drawn) if drawn else table.assign(efficient=False)
    return page.figure(caption, data, legend=5 if columns >= COLUMNS else 3)


def named(table: pd.DataFrame) -> list[str]:
    """The methods that are drawn in colour: most often on a front, then by the share of rivals beaten."""
    if table.empty:
        return []
    timed = table[np.isfinite(table["mean"]) & table["seconds"].notna() & (table["mean"] > 0)]
    fronts = Counter(name for _, cell in timed.groupby("problem") for name in efficient(cell)["algorithm"])
    order = list(overall(table)["algorithm"])
    return sorted(order, key=lambda name: (-fronts[name], order.index(name)))[:MOST_NAMED]


def fill_styles(names: Any) -> dict[str, str]:
    """Methods of different papers may share colour and marker: the second is drawn hollow, the next half filled."""
    count: dict[tuple[str, str], int] = {}
    fills = {}
    for name in sorted(set(names)):
        style = look(name)
        at = count[style.colour, style.marker] = count.get((style.colour, style.marker), -1) + 1
        fills[name] = ("full", "none", "left", "bottom")[at % 4]
    return fills


def efficient(cell: pd.DataFrame) -> pd.DataFrame:
    """The rows no other row is both faster and better than, fastest first."""
    ordered = cell.sort_values(["seconds", "mean"])
    best_before = ordered["mean"].cummin().shift(fill_value=np.inf)
    return ordered[ordered["mean"] < best_before]


def _draw(axis: Any, cell: pd.DataFrame, front: pd.DataFrame, fills: dict[str, str]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    best, typical = cell["mean"].min(), cell["mean"].median()
    x = [*front["seconds"], cell["seconds"].max() * 2]
    y = [*front["mean"], front["mean"].iloc[-1]]
    axis.step(x, y, where="post", color=GREY, lw=1, alpha=0.7, zorder=1)
    for row in cell.itertuples():
        style = look(row.algorithm)
        if row.algorithm not in fills:
            axis.plot(row.seconds, row.mean, "o", color=OTHER, ms=3, ls="none", label="other methods", zorder=1.5)
            continue
        axis.errorbar(row.seconds, row.mean, yerr=row.se, fmt="none", ecolor=style.colour, elinewidth=0.8, zorder=2)
        axis.plot(
            row.seconds,
            row.mean,
            style.marker,
            color=style.colour,
            ls="none",
            fillstyle=fills[row.algorithm],
            label=style.legend,
            zorder=3,
        )
    axis.set(xscale="log", yscale="log", ylim=(best / 1.7, 3 * max(typical, front["mean"].max())))
    low, high = np.log10(cell["seconds"].min()), np.log10(cell["seconds"].max() * 2)
    axis.set_xlim(10 ** np.floor(low - 0.1), 10 ** np.ceil(high))
    _name(axis, front)
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.yaxis.set_minor_formatter(NullFormatter())


def _name(axis: Any, front: pd.DataFrame) -> None:
    """Names beside the points of the front, the best first; a name that would cover another is left to the legend."""
    from matplotlib.patheffects import withStroke

    to_axes = axis.transData + axis.transAxes.inverted()
    taken: list[tuple[float, float]] = []
    for row in front.sort_values("mean").itertuples():
        x, y = to_axes.transform((row.seconds, row.mean))
        if any(abs(x - a) < 0.5 and abs(y - b) < 0.06 for a, b in taken):
            continue
        taken.append((x, y))
        left = x > 0.6
        axis.annotate(
            look(row.algorithm).label,
            (row.seconds, row.mean),
            xytext=(-4 if left else 4, -4),
            textcoords="offset points",
            ha="right" if left else "left",
            va="top",
            fontsize=6.5,
            color="#333333",
            path_effects=[withStroke(linewidth=2, foreground="white")],  # clear of the front, but below all markers
            zorder=2.5,
        )
