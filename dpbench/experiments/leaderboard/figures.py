"""The Pareto figures of leaderboard: what an excess loss costs in seconds."""

from __future__ import annotations

import numpy as np

from dpbench.experiments.base import select
from dpbench.experiments.leaderboard.ranking import board
from dpbench.experiments.leaderboard.tables import RULES, seeds_of
from dpbench.report.output import Figure
from dpbench.report.style import GREY, gap, legend_below, look, problem_title

COLUMNS = 4


def pareto(context, epsilon: float, level: str) -> Figure:
    """Mean excess loss against the seconds of one run alone, a panel per problem, the front as a staircase."""
    import matplotlib.pyplot as plt

    artefact = f"pareto_{level}"
    table = board(context.rows(artefact))
    problems = list(dict.fromkeys(p for block in context.blocks(artefact) for p in block.problems))
    columns = min(COLUMNS, len(problems)) or 1
    rows = -(-len(problems) // columns) or 1
    figure, axes = plt.subplots(
        rows, columns, figsize=(max(3.0 * columns, 7.5), 2.7 * rows + 2.0), layout="constrained", squeeze=False
    )
    fills = fill_styles(table["algorithm"])
    gaps, drawn = [], []
    for axis, problem in zip(axes.flat, problems, strict=False):
        axis.set_title(problem_title(problem))
        cell = select(table, problem=problem)
        cell = cell[np.isfinite(cell["mean"]) & cell["seconds"].notna() & (cell["mean"] > 0)]
        if cell.empty:
            gap(axis, "no timed rows yet\n" + context.command(artefact))
            gaps.append(f"{problem}: {context.command(artefact)}")
            continue
        front = efficient(cell)
        _draw(axis, cell, front, fills)
        drawn.append(cell.assign(efficient=cell["algorithm"].isin(front["algorithm"])))
    for axis in axes.flat[len(problems) :]:
        axis.set_visible(False)
    for axis in axes[:, 0]:
        axis.set_ylabel("excess loss")
    for axis in axes[-1]:
        axis.set_xlabel("seconds of one run")
    legend_below(figure, axes.flat, columns=5 if columns >= COLUMNS else 3)
    import pandas as pd

    data = pd.concat(drawn) if drawn else table.assign(efficient=False)
    caption = (
        f"Mean excess loss at ε = {epsilon:g} ({seeds_of(table)}; bars: ± 1 standard error) against the seconds of one "
        "run at the chosen settings, timed alone on one core, with the calibration of its noise where no earlier run "
        "had done it. Grey line and names: the front; what lies above and to the right of it is both slower and "
        f"worse than some other method. Methods at more than three times the median leave the panel. {RULES}"
    )
    return Figure(figure, data, caption, gaps)


def fill_styles(names) -> dict[str, str]:
    """Methods of different papers may share colour and marker: the second is drawn hollow, the next half filled."""
    count: dict[tuple[str, str], int] = {}
    fills = {}
    for name in sorted(set(names)):
        style = look(name)
        at = count[style.colour, style.marker] = count.get((style.colour, style.marker), -1) + 1
        fills[name] = ("full", "none", "left", "bottom")[at % 4]
    return fills


def efficient(cell):
    """The rows no other row is both faster and better than, fastest first."""
    ordered = cell.sort_values(["seconds", "mean"])
    best_before = ordered["mean"].cummin().shift(fill_value=np.inf)
    return ordered[ordered["mean"] < best_before]


def _draw(axis, cell, front, fills: dict[str, str]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    best, typical = cell["mean"].min(), cell["mean"].median()
    x = [*front["seconds"], cell["seconds"].max() * 2]
    y = [*front["mean"], front["mean"].iloc[-1]]
    axis.step(x, y, where="post", color=GREY, lw=1, alpha=0.7, zorder=1)
    for row in cell.itertuples():
        style = look(row.algorithm)
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


def _name(axis, front) -> None:
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
