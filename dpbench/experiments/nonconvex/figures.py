"""The figure of nonconvex: where the runs ended, beside the published tables. The paper has none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from dpbench import frames
from dpbench.experiments.nonconvex.rows import (
    EPSILONS,
    LOSSES,
    METHODS,
    PAPER,
    PUBLISHED,
    TARGETS,
    TERMINATED,
    Beside,
    Ours,
    compared,
    finished,
    most_iterations,
)
from dpbench.study.context import Context, select
from dpbench.study.panels import Panels, joined
from dpbench.study.paper import WithWords
from dpbench.study.style import BLACK, GREY, look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STEP = 0.27  # between the ε of a method
TOP = 0.9  # losses beyond are written out: one method's would squash all the others
LOG_TICKS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)


@PAPER.artefact("endings")
def endings(context: Context) -> WithWords:
    """Final loss of every seed for each method and ε, the published means, and our runs under the published setting."""
    order = sorted(TARGETS, key=lambda target: ("sigmoid" in target.problem, target.name))  # a loss after the other
    page = Panels(context, "endings", len(order), columns=2, size=(5.6, 2.5), room=0.9)
    drawn = []
    for axis, target in page.over(order, title=lambda t: f"Table {t.table}: {t.place}"):
        rows = finished(context, target.artefact, timed=0)
        if page.empty(axis, rows, f"Table {target.table}", target.problem):
            continue
        ours, code = compared(context, target), compared(context, target, variant=PUBLISHED)
        drawn.append(ours.assign(problem=target.problem, alpha=target.alpha, code=code["loss"]))
        for row, paper, loss in zip(
            frames.records(ours, Ours), frames.records(ours, Beside), code["loss"], strict=True
        ):
            x = METHODS.index(row.algorithm) + (EPSILONS.index(row.epsilon) - 1) * STEP
            seeds = select(rows, algorithm=row.algorithm, epsilon=row.epsilon, variant="")
            ends(axis, x, seeds, row.algorithm)
            beside(axis, x, row.algorithm, paper, loss)
            if row.loss > TOP:
                down = 9 * (1 + EPSILONS.index(row.epsilon))  # a line of its own for each ε, or they run together
                axis.annotate(f"{row.loss:.2g}", (x, TOP), (0, -down), textcoords="offset points", ha="center",
                              fontsize=7, bbox={"fc": "white", "ec": "none", "pad": 0.5})  # fmt: skip
        axis.set_xticks(range(len(METHODS)), [look(method).label for method in METHODS], fontsize=8)
        axis.grid(axis="x", visible=False)
        for edge in range(1, len(METHODS)):
            axis.axvline(edge - 0.5, color=GREY, lw=0.4)
    for first in range(0, len(order), len(order) // len(LOSSES)):
        one_scale(page.axes.flat[first : first + len(order) // len(LOSSES)])
    page.label("", "final loss")
    axis = page.axes[0, 0]
    axis.plot([], [], color=BLACK, lw=1.6, label="published, terminated")
    axis.plot([], [], color=BLACK, lw=1.6, ls=":", label="published, ×")
    axis.plot([], [], color=GREY, lw=1.6, ls="--", label="published setting, ours (not private)")
    axis.plot([], [], "o", color=GREY, label="a seed, terminated")
    axis.plot([], [], "x", color=GREY, label="a seed, ×")
    return page.figure(joined(drawn), legend=5), {"cap": most_iterations(context, "endings"), "top": TOP}


def beside(axis: Axes, x: float, algorithm: str, row: Beside, code: float) -> None:
    """The published mean and deviation, and the published code's mean."""
    around = [x - STEP / 2.6, x + STEP / 2.6]
    # Projecting ends would close the gaps between the ε.
    cut: dict[str, Any] = {"solid_capstyle": "butt", "dash_capstyle": "butt"}
    if row.paper_mean == row.paper_mean:
        axis.plot(around, [row.paper_mean] * 2, color=BLACK, lw=1.5, ls="-" if row.paper_terminated else ":",
                  **cut)  # fmt: skip
        axis.plot([x] * 2, [row.paper_mean - row.paper_std, row.paper_mean + row.paper_std], color=BLACK, lw=0.6)
    axis.plot(around, [code] * 2, color=look(algorithm).colour, lw=1.3, ls=(0, (1.6, 0.8)), **cut)


def one_scale(axes: list[Axes]) -> None:
    """The same logarithmic axis, up to `TOP`, for all panels that have something in them."""
    mine = [axis for axis in axes if axis.has_data()]
    if not mine:
        return
    # From the data: the limits of a linear axis with one run at 4.5 would leave half of each panel empty.
    low, high = 0.95 * min(axis.dataLim.y0 for axis in mine), min(TOP, max(axis.get_ylim()[1] for axis in mine))
    ticks = [tick for tick in LOG_TICKS if low < tick < high]
    for axis in mine:
        axis.set(yscale="log", ylim=(low, high))
        axis.set_yticks([], minor=True)
        axis.set_yticks(ticks, [f"{tick:g}" for tick in ticks])


def ends(axis: Axes, x: float, runs: pd.DataFrame, method: str) -> None:
    """A marker where each seed ended."""
    good = runs["ending"].eq(TERMINATED)
    for chosen, marker in ((good, "o"), (~good, "x")):
        losses = runs.loc[chosen, "objective"]
        axis.plot([x] * len(losses), losses, marker, color=look(method).colour, ms=3.5, mew=0.8, alpha=0.6, ls="none",
                  zorder=2)  # fmt: skip
