"""The Pareto figures of leaderboard: what an excess loss costs in seconds."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from dpbench.experiments.leaderboard.tables import RULES, seeds_of
from dpbench.leaderboard.ranking import LEVELS, board, overall
from dpbench.study.context import Context, select
from dpbench.study.declare import artefact, each
from dpbench.study.output import Figure
from dpbench.study.panels import Panels, joined
from dpbench.study.style import GREY, look, plain, problem_title

COLUMNS = 4
MOST_NAMED = 10
OTHER = "#c2c6cc"
MARKER = 4.5  # pixels around the middle of a marker
PLACES = {
    (-4, -2): "right",
    (4, -2): "left",
    (0, -5): "center",
    (4, 3): "left",
    (0, 5): "center",
    (-4, 3): "right",
}  # (right, up)


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
    fronts = []
    for axis, problem in page.over(problems, title=problem_title):
        cell = select(table, problem=problem)
        cell = cell[np.isfinite(cell["mean"]) & cell["seconds"].notna() & (cell["mean"] > 0)]
        if page.empty(axis, cell, problem, problem):
            continue
        front = efficient(cell)
        _draw(axis, cell, front, fills)
        fronts.append((axis, cell, front))
        drawn.append(cell.assign(efficient=cell["algorithm"].isin(front["algorithm"])))
    page.label("seconds of one run", "excess loss")
    caption = (
        f"Mean excess loss at ε = {epsilon:g} ({seeds_of(table)}; bars: ± 1 standard error) against the seconds of one "
        "run at the chosen settings, timed alone on one core, with the calibration of its noise where no earlier run "
        "had done it. Grey line: the front, named where there is room; what lies above and to the right of it is both "
        f"slower and worse than some other method. In colour: the {MOST_NAMED} methods most often on a front, "
        "then those that beat most rivals; grey dots: the others (explore.html names them). Methods at more than three "
        f"times the median leave the panel. {RULES}"
    )
    data = joined(drawn) if drawn else table.assign(efficient=False)
    figure = page.figure(caption, data, legend=5 if columns >= COLUMNS else 3)
    page.canvas.draw_without_rendering()
    for each_front in fronts:
        name_front(*each_front)
    return figure


def named(table: pd.DataFrame) -> list[str]:
    """The methods that are drawn in colour: most often on a front, then by the share of rivals beaten."""
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
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.yaxis.set_major_formatter(FuncFormatter(plain))
    axis.yaxis.set_minor_formatter(NullFormatter())


def name_front(axis: Any, cell: pd.DataFrame, front: pd.DataFrame) -> None:
    """Names beside the points of the front, the best first, clear of all that is drawn; else left to the legend.

    After the figure has its layout, which names do not change.
    """
    from matplotlib.transforms import Bbox

    def box(x: Sequence[float], y: Sequence[float], room: float) -> Bbox:
        return Bbox(axis.transData.transform(np.column_stack([x, y]))).padded(room)

    def apart(name: Bbox, point: Bbox) -> float:
        gaps = np.maximum(np.subtract(name.min, point.max), np.subtract(point.min, name.max))
        return float(np.hypot(*np.maximum(gaps, 0)))

    within = axis.get_window_extent().padded(-2)
    points = {row.algorithm: box([row.seconds] * 2, [row.mean] * 2, MARKER) for row in cell.itertuples()}
    drawn = [*points.values()]
    x, y = [*front["seconds"], axis.get_xlim()[1]], [*front["mean"]]
    drawn += [box(x[i : i + 2], [y[i]] * 2, 1) for i in range(len(y))]
    drawn += [box([x[i + 1]] * 2, y[i : i + 2], 1) for i in range(len(y) - 1)]
    for row in front.sort_values("mean").itertuples():
        for (right, up), align in PLACES.items():
            name = axis.annotate(
                textwrap.fill(look(row.algorithm).label, 20),
                (row.seconds, row.mean),
                xytext=(right, up),
                textcoords="offset points",
                ha=align,
                va="top" if up < 0 else "bottom",
                multialignment=align,
                fontsize=6.5,
                color="#333333",
                zorder=2.5,
                in_layout=False,
            )
            taken = name.get_window_extent()
            nearest = min(points, key=lambda other: apart(taken, points[other]))
            clear = within.contains(*taken.min) and within.contains(*taken.max) and not taken.count_overlaps(drawn)
            if clear and nearest == row.algorithm:
                drawn.append(taken)
                break
            name.remove()
