"""The figures of nonconvex: where the runs ended, and the loss on the way. The paper has none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
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
    LossTable,
    Ours,
    compared,
    finished,
    most_iterations,
    problem_name,
)
from dpbench.study.context import Context, select
from dpbench.study.output import Figure
from dpbench.study.panels import Panels, joined
from dpbench.study.style import BLACK, GREY, look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = {0.2: 0.45, 1.0: 1.0}  # ε with a curve of its own: how opaque
FAMILIES = (("dp-tr", "dp-tr-b"), ("opt", "opt-b"), ("opt-ls",), ("2opt", "2opt-b"), ("2opt-ls",))
STEP = 0.27  # between the ε of a method
TOP = 0.9  # losses beyond are written out: one method's would squash all the others
LOG_TICKS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
WithWords: TypeAlias = tuple[Figure, dict[str, Any]]


@PAPER.artefact("endings")
def endings(context: Context) -> WithWords:
    """Final loss of every seed for each method and ε, the published means, and our runs under the published setting."""
    order = [t for loss in LOSSES for name in ("loose", "tight") for t in TARGETS if of(t) == loss and t.name == name]
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
            ends(axis, np.full(len(seeds), x), seeds, row.algorithm, 3.5)
            beside(axis, x, row.algorithm, paper, loss)
            if row.loss > TOP:
                down = 9 * (1 + EPSILONS.index(row.epsilon))  # a line of its own for each ε, or they run together
                axis.annotate(f"{row.loss:.2g}", (x, TOP), (0, -down), textcoords="offset points", ha="center",
                              fontsize=7, bbox={"fc": "white", "ec": "none", "pad": 0.5})  # fmt: skip
        axis.set_xticks(range(len(METHODS)), [look(method).label for method in METHODS], fontsize=8)
        axis.grid(axis="x", visible=False)
        for edge in range(1, len(METHODS)):
            axis.axvline(edge - 0.5, color=GREY, lw=0.4)
    one_scale([(axis, of(target)) for axis, target in page.over(order)])
    page.label("", "final loss")
    axis = page.axes[0, 0]
    axis.plot([], [], color=BLACK, lw=1.6, label="published, terminated")
    axis.plot([], [], color=BLACK, lw=1.6, ls=":", label="published, ×")
    axis.plot([], [], color=GREY, lw=1.6, ls="--", label="published setting, ours (not private)")
    axis.plot([], [], "o", color=GREY, label="a seed, terminated")
    axis.plot([], [], "x", color=GREY, label="a seed, ×")
    return page.figure("", joined(drawn), legend=5), {"cap": most_iterations(context, "endings"), "top": TOP}


def of(target: LossTable) -> str:
    """What a target's problem is called after its family."""
    return target.problem.partition("-")[2]


def beside(axis: Axes, x: float, algorithm: str, row: Beside, code: float) -> None:
    """The published mean and deviation, and the published code's mean."""
    around = [x - STEP / 2.6, x + STEP / 2.6]
    cut: dict[str, Any] = {
        "solid_capstyle": "butt",
        "dash_capstyle": "butt",
    }  # projecting ends close the gaps between the ε
    if row.paper_mean == row.paper_mean:
        axis.plot(around, [row.paper_mean] * 2, color=BLACK, lw=1.5, ls="-" if row.paper_terminated else ":",
                  **cut)  # fmt: skip
        axis.plot([x] * 2, [row.paper_mean - row.paper_std, row.paper_mean + row.paper_std], color=BLACK, lw=0.6)
    axis.plot(around, [code] * 2, color=look(algorithm).colour, lw=1.3, ls=(0, (1.6, 0.8)), **cut)


def one_scale(axes: list[tuple[Axes, str]]) -> None:
    """The same logarithmic axis, up to `TOP`, for all panels of one loss that have something in them."""
    for loss in LOSSES:
        mine = [axis for axis, name in axes if name == loss and axis.has_data()]
        for axis in mine:
            axis.set_yscale("log")
        if mine:
            low, high = min(axis.get_ylim()[0] for axis in mine), min(TOP, max(axis.get_ylim()[1] for axis in mine))
            ticks = [tick for tick in LOG_TICKS if low < tick < high]
            for axis in mine:
                axis.set_ylim(low, high)
                axis.set_yticks([], minor=True)
                axis.set_yticks(ticks, [f"{tick:g}" for tick in ticks])


@PAPER.artefact("convergence", section="convergence", name="convergence", data="covertype")
@PAPER.artefact("convergence_ijcnn", section="convergence", name="convergence_ijcnn", data="ijcnn")
def convergence(context: Context, name: str, data: str) -> WithWords:
    """A row per loss and target, a column per family of methods; a line per ε, and where each of its seeds ended."""
    targets = [target for target in TARGETS if target.problem.startswith(data)]
    rows = finished(context, name, timed=0)
    shown = [e for e in SHOWN if e in context.epsilons(name)]
    panels = [(target, family) for target in targets for family in FAMILIES]
    page = Panels(context, name, len(panels), columns=len(FAMILIES), size=(2.25, 1.9), room=0.7,
                  sharex=True, sharey="row")  # fmt: skip
    drawn = []
    for axis, (target, family) in page.over(panels):
        if target is targets[0]:
            axis.set_title(" and ".join(look(method).label for method in family))
        panel = select(rows, problem=target.problem, alpha=target.alpha, algorithm=list(family), epsilon=shown)
        traces = context.traces(panel) if len(panel) else panel
        if page.empty(axis, traces, f"{target.place}, {family[0]}", target.problem):
            continue
        for method in family:
            for epsilon in shown:
                mine = select(panel, algorithm=method, epsilon=epsilon, variant="")
                if mine["key"].isin(traces["key"]).any():  # runs that were made without a trace have no line
                    line = mean_trace(traces, mine).assign(
                        problem=target.problem, alpha=target.alpha, epsilon=epsilon, algorithm=method
                    )
                    drawn.append(line)
                    draw(axis, line[line["iteration"] > 0], method, epsilon)
                    ends(axis, mine["iterations"], mine, method, 2.6, alpha=SHOWN[epsilon] / 2)
        axis.set(xscale="log", xlim=(0.8, 3000))
    one_scale([(axis, of(target)) for axis, (target, _) in page.over(panels)])
    page.label("gradient evaluations", "")
    for line_of_axes, target in zip(page.axes, targets, strict=True):
        line_of_axes[0].set_ylabel(f"{problem_name(target.problem).rpartition(', ')[2]}, {target.name}")
    axis = page.axes[0, 0]
    for label, style, alpha in (
        ("ε = 1", "-", 1.0), ("ε = 0.2", "-", SHOWN[0.2]), ("-B, of ⌊n/100⌋ rows", ":", 1.0),
    ):  # fmt: skip
        axis.plot([], [], style, color=GREY, alpha=alpha, lw=1.6, label=label)
    axis.plot([], [], "o", color=GREY, ms=3, label="a seed's end, terminated")
    axis.plot([], [], "x", color=GREY, ms=3, label="a seed's end, ×")
    return page.figure("", joined(drawn), legend=5), {
        "seeds": len(set(rows["seed"])), "cap": most_iterations(context, name), "top": TOP}  # fmt: skip


def mean_trace(traces: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Mean loss over the runs at every iteration that any of them recorded; ended runs keep their last loss.

    Between recorded iterations a run's loss is interpolated.
    """
    own = traces[traces["key"].isin(runs["key"])]
    ends = runs.set_index("key")["iterations"].astype(float)
    # Traces are recorded at fixed iterations, which may lie beyond the last step of a run that stopped.
    own = own[own["iteration"] <= own["key"].map(ends)]
    iterations = np.unique(np.append(own["iteration"], ends))
    values = []
    for key, part in own.groupby("key", sort=True):
        part = part.sort_values("iteration")
        last = float(runs.loc[runs["key"].eq(key), "objective"].iloc[0])
        at, loss = np.append(part["iteration"], ends[key]), np.append(part["excess"], last)
        values.append(np.interp(iterations, at, loss))
    return pd.DataFrame({"iteration": iterations, "loss": np.mean(values, axis=0), "seeds": len(values)})


def draw(axis: Axes, line: pd.DataFrame, method: str, epsilon: float) -> None:
    """The mean line, over the markers; minibatches are dotted, as they often run on top of their full-batch sibling."""
    style = ":" if method.endswith("-b") else look(method).line
    axis.plot(line["iteration"], line["loss"], style, color=look(method).colour, lw=1.6, alpha=SHOWN[epsilon], zorder=3)


def ends(axis: Axes, x: Any, runs: pd.DataFrame, method: str, size: float, alpha: float = 0.6) -> None:
    """A marker where each seed ended."""
    good = runs["ending"].eq(TERMINATED).to_numpy()
    for chosen, marker in ((good, "o"), (~good, "x")):
        axis.plot(np.asarray(x, dtype=float)[chosen], runs["objective"][chosen], marker, color=look(method).colour,
                  ms=size, mew=0.8, alpha=alpha, ls="none", zorder=2)  # fmt: skip
