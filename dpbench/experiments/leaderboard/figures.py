"""The figures of the leaderboard: every method on every problem, and what a score costs in seconds."""

from __future__ import annotations

import pandas as pd

from dpbench.experiments.leaderboard.board import LEVELS, PAPER, Board, WithWords, board
from dpbench.leaderboard import tracks
from dpbench.leaderboard.places import AUTO, NOTHING
from dpbench.study.context import Context, select
from dpbench.study.declare import each
from dpbench.study.output import Figure
from dpbench.study.panels import end_labels
from dpbench.study.style import GREY, look, problem_title

WORST = 2.0  # decades on either side of nothing: the ends of the colours


@each(PAPER.artefact(f"heat_{name}", section="heat", epsilon=e) for name, e in LEVELS.items())
def heat(context: Context, epsilon: float) -> WithWords:
    """A row per method, a column per problem, grouped by kind; blue is better than nothing, red worse."""
    import matplotlib.pyplot as plt

    ranked = board(context)
    table = select(ranked.scores, epsilon=epsilon).sort_values(["algorithm", "problem"])
    columns = sorted(set(table["problem"]), key=lambda p: (tracks.KINDS.index(tracks.kind(p)), tracks.size(p)[0], p))
    order = [*ranked.placed(epsilon)] if len(table) else []
    grid = table.pivot_table(index="algorithm", columns="problem", values="score").reindex(order)[columns]
    size = 2.6 + 0.21 * max(len(columns), 8), 2.2 + 0.2 * max(len(order), 4)
    figure, axis = plt.subplots(figsize=size, layout="constrained")
    if len(order):
        shades = plt.get_cmap("RdBu_r").with_extremes(bad="#ececec")
        drawn = axis.imshow(grid.to_numpy(), cmap=shades, vmin=-WORST, vmax=WORST, aspect="auto")
        axis.set_xticks(range(len(columns)), [problem_title(p) for p in columns], rotation=90, fontsize=6.5)
        axis.set_yticks(range(len(order)), [ranked.label(name) for name in order], fontsize=7.5)
        axis.axhline(order.index(NOTHING), color="black", lw=0.6)
        for kind in ranked.kinds():
            within = [j for j, problem in enumerate(columns) if tracks.kind(problem) == kind]
            if within:
                axis.text(
                    sum(within) / len(within), -0.8, kind.replace(" + ", "\n+ "), ha="center", va="bottom", fontsize=7
                )
                axis.axvline(within[-1] + 0.5, color="white", lw=3)
        bar = figure.colorbar(drawn, ax=axis, shrink=0.6, pad=0.01, extend="both")
        bar.set_label("score: log10 of the excess loss over that of w = 0")
    axis.grid(False)
    axis.tick_params(length=0)
    gaps = [] if len(order) else [context.gap(f"heat_{_level(epsilon)}", "every cell")]
    return Figure(figure, table, gaps), {}


def _level(epsilon: float) -> str:
    return next(name for name, value in LEVELS.items() if value == epsilon)


@PAPER.artefact("cost")
def cost(context: Context) -> WithWords:
    """A point per method: seconds of one run against the score over all families."""
    import matplotlib.pyplot as plt

    ranked = board(context)
    table = priced(ranked)
    figure, axis = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
    styles = [look(name) for name in table["algorithm"]]
    for style, x, y in zip(styles, table["seconds"], table["score"], strict=True):
        axis.plot(x, y, style.marker, color=style.colour, ls="none")
    axis.axhline(0.0, color=GREY, lw=0.9, ls=":")
    axis.annotate("nothing (w = 0)", (0.4, 0.0), xycoords=("axes fraction", "data"), xytext=(0, -2),
                  textcoords="offset points", ha="center", va="top", fontsize=6.5, color=GREY)  # fmt: skip
    axis.set(xscale="log", xlabel="seconds of one run", ylabel="score")
    axis.set_xlim(right=axis.get_xlim()[1] * 6)  # room for the texts
    figure.draw_without_rendering()
    words = [ranked.label(name) for name in table["algorithm"]]
    colours = [style.colour for style in styles]
    end_labels(axis, zip(table["seconds"], table["score"], words, colours, strict=True), near=90)
    untimed = [
        ranked.label(name) for name in ranked.matrix(1.0).columns if name not in {*table["algorithm"], NOTHING, AUTO}
    ]
    gaps = [] if len(table) else [context.gap("cost", "every point")]
    gaps += [context.gap("cost", f"the seconds of {', '.join(untimed)}")] if len(table) and untimed else []
    return Figure(figure, table, gaps), {}


def priced(ranked: Board) -> pd.DataFrame:
    """Methods with a time and a score at ε = 1: `algorithm`, `seconds`, `score`."""
    matrix = ranked.matrix(1.0) if 1.0 in ranked.epsilons else pd.DataFrame()
    rows = [(name, ranked.seconds[name], float(matrix[name].mean())) for name in matrix if name in ranked.seconds]
    return pd.DataFrame(rows, columns=["algorithm", "seconds", "score"])
