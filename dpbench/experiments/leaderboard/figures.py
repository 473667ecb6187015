"""The figures of the leaderboard: methods on problems, and what the default keeps against n·ε."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpbench.experiments.leaderboard.board import LEVELS, PAPER, board
from dpbench.leaderboard import tracks
from dpbench.leaderboard.headline import is_drawn
from dpbench.leaderboard.places import AUTO, EXCESS, HELD
from dpbench.study.context import Context, select
from dpbench.study.declare import each
from dpbench.study.output import Figure
from dpbench.study.paper import WithWords
from dpbench.study.style import GREY, problem_title

WORST = 2.0  # decades on either side of nothing: the ends of the colours
SHOWN = 16  # methods in a figure: more names do not fit beside one another


@each(PAPER.artefact(f"heat_{name}", section="heat", epsilon=e) for name, e in LEVELS.items())
def heat(context: Context, epsilon: float) -> WithWords:
    """A column per method, a row per problem, by kind, real above drawn; blue is better than nothing, red worse."""
    import matplotlib.pyplot as plt

    ranked = board(context)
    table = select(ranked.scores, epsilon=epsilon).sort_values(["algorithm", "problem"])
    placed = ranked.placed(epsilon) if len(table) else ()
    order = [one.algorithm for one in placed if one.place and one.score < 0][:SHOWN]
    problems = sorted(set(table["problem"]), key=lambda p: (tracks.KINDS.index(tracks.kind(p)), tracks.size(p)[0], p))
    parts = [part for part in ([p for p in problems if is_drawn(p) == drawn] for drawn in (False, True)) if part]
    figure, axes = plt.subplots(
        len(parts) or 1, 1, figsize=(7, 1.6 + 0.15 * max(len(problems), 8)), layout="constrained", sharex=True,
        squeeze=False, height_ratios=[len(part) for part in parts] or None,
    )  # fmt: skip
    shades = plt.get_cmap("RdBu_r").with_extremes(bad="#ececec")
    for axis, part in zip(axes[:, 0], parts, strict=bool(parts)):
        grid = table.pivot_table(index="problem", columns="algorithm", values="score").reindex(part)[order]
        drawn = axis.imshow(grid.to_numpy(), cmap=shades, vmin=-WORST, vmax=WORST, aspect="auto")
        axis.set_yticks(range(len(part)), [problem_title(p) for p in part], fontsize=6.5)
        axis.set_xticks(range(len(order)), [ranked.label(name) for name in order], rotation=55, ha="right", fontsize=7)
        kinds = pd.Series([tracks.kind(problem) for problem in part])
        for kind, rows in kinds.groupby(kinds):
            axis.axhline(rows.index[-1] + 0.5, color="white", lw=2)
            axis.text(len(order) - 0.4, rows.index[0] - 0.5, kind, va="top", fontsize=7)
        axis.set_ylabel("drawn data" if is_drawn(part[0]) else "real data")
        axis.grid(False)
        axis.tick_params(length=0)
    if parts:
        bar = figure.colorbar(drawn, ax=axes, location="top", shrink=0.5, aspect=40, pad=0.01, extend="both")
        bar.set_label("log10 of the excess loss over that of w = 0")
    gaps = [] if parts else [context.gap(f"heat_{_level(epsilon)}", "every cell")]
    return Figure(figure, table, gaps), {"methods": len(order)}


@PAPER.artefact("reach")
def reach(context: Context) -> WithWords:
    """A line per problem: what the default keeps against n·ε, and the median of the real ones by half decades."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained", sharey=True)
    panels = []
    for axis, column, title in zip(axes, (HELD, EXCESS), ("held-out loss", "training objective"), strict=True):
        ranked = board(context, column)
        panel = ranked.scores[ranked.scores["algorithm"].eq(AUTO)].sort_values(["problem", "epsilon"])
        rows = np.array([tracks.size(problem)[0] for problem in panel["problem"]])
        panel = panel.assign(
            loss=column, kept=ranked.scale.kept(panel["score"]), reach=rows * panel["epsilon"].astype(float),
            drawn=panel["problem"].map(is_drawn),
        )  # fmt: skip
        for (_, drawn), line in panel.groupby(["problem", "drawn"]):
            axis.plot(line["reach"], line["kept"], color=GREY if drawn else "C0", lw=0.6, marker="o", ms=2, alpha=0.6)
        real = panel[panel["drawn"].eq(False)]
        median = real.groupby(np.round(2 * np.log10(real["reach"])) / 2)["kept"].median()
        axis.plot(10.0**median.index, median, color="black", lw=1.5)
        axis.axhline(0.0, color="black", lw=0.6, ls=":")
        axis.set(title=title, xscale="log" if len(panel) else "linear", xlabel="n·ε")
        panels.append(panel)
    axes[0].set_ylabel("share of the gain that is kept")
    table = pd.concat(panels, ignore_index=True)
    return Figure(figure, table, [] if len(table) else [context.gap("reach", "every line")]), {}


def _level(epsilon: float) -> str:
    return next(name for name, value in LEVELS.items() if value == epsilon)
