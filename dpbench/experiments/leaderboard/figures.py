"""The figures of the leaderboard: every method on every problem, and the default's score against n·ε."""

from __future__ import annotations

import numpy as np

from dpbench.experiments.leaderboard.board import LEVELS, PAPER, WithWords, board
from dpbench.leaderboard import tracks
from dpbench.leaderboard.headline import is_drawn
from dpbench.leaderboard.places import AUTO, NOTHING
from dpbench.study.context import Context, select
from dpbench.study.declare import each
from dpbench.study.output import Figure
from dpbench.study.style import GREY, problem_title

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


@PAPER.artefact("reach")
def reach(context: Context) -> WithWords:
    """A line per problem: the default's score against n·ε, and the median of the real ones by half decades."""
    import matplotlib.pyplot as plt

    table = board(context).scores
    table = table[table["algorithm"].eq(AUTO)].sort_values(["problem", "epsilon"])
    rows = [tracks.size(problem)[0] for problem in table["problem"]]
    table = table.assign(reach=np.array(rows) * table["epsilon"].astype(float), drawn=table["problem"].map(is_drawn))
    figure, axes = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained", sharey=True)
    for axis, title, loss in zip(axes, ("two classes", "numbers"), ("logistic", "squared"), strict=True):
        panel = table[table["problem"].map(tracks.kind).astype(str).str.startswith(loss)]
        for (_, drawn), line in panel.groupby(["problem", "drawn"]):
            axis.plot(line["reach"], line["score"], color=GREY if drawn else "C0", lw=0.6, marker="o", ms=2, alpha=0.6)
        real = panel[panel["drawn"].eq(False)]
        median = real.groupby(np.round(2 * np.log10(real["reach"])) / 2)["score"].median()
        axis.plot(10.0**median.index, median, color="black", lw=1.5)
        axis.axhline(0.0, color="black", lw=0.6, ls=":")
        axis.set(title=title, xscale="log" if len(panel) else "linear", xlabel="n·ε")
    axes[0].set_ylabel("score of the default")
    return Figure(figure, table, [] if len(table) else [context.gap("reach", "every line")]), {}


def _level(epsilon: float) -> str:
    return next(name for name, value in LEVELS.items() if value == epsilon)
