"""The figures of nonconvex: where the runs ended, and the loss on the way. The paper has none."""

from __future__ import annotations

import numpy as np

from dpbench.experiments.nonconvex.study import (
    EPSILONS,
    METHODS,
    TARGETS,
    TERMINATED,
    compared,
    finished,
    most_iterations,
    place,
    problem_name,
)
from dpbench.report.output import Figure
from dpbench.report.style import GREY, gap, legend_below, look

SHOWN = (0.2, 1.0)  # ε with a row of panels of their own
SPREAD = 0.055  # between neighbouring methods at one ε
LOG_TICKS = (0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.5, 2, 3, 5)
ENDED = (
    "filled: terminated, on released quantities only; ×: it did not within the T iterations the noise is set for, nor "
    "within {cap}"
)
COMMON = "Replace-one neighbours, δ = 1/n, zCDP (minibatches: RDP of sampling without replacement). Not in the paper"


def covertype(context) -> Figure:
    """Loss against gradient evaluations on covertype."""
    return convergence(context, "convergence", "covertype12")


def ijcnn(context) -> Figure:
    """Loss against gradient evaluations on ijcnn."""
    return convergence(context, "convergence_ijcnn", "ijcnn")


def convergence(context, artefact: str, dataset: str) -> Figure:
    """A column per loss and target, a row per ε; a line per method, and where each of its seeds ended."""
    import matplotlib.pyplot as plt
    import pandas as pd

    targets = [target for target in TARGETS if target.problem.startswith(f"{dataset}-")]
    rows = finished(context.rows(artefact, timed=0))
    shown = [e for e in SHOWN if any(e in block.epsilon for block in context.blocks(artefact))]
    figure, axes = plt.subplots(
        len(shown), len(targets), figsize=(2.75 * len(targets), 2.5 * len(shown) + 0.7), layout="constrained",
        sharex="col", squeeze=False,
    )  # fmt: skip
    for algorithm in METHODS:  # the legend, in the tables' order
        style = look(algorithm)
        axes[0, 0].plot([], [], line_of(algorithm), marker=style.marker, color=style.colour, label=style.legend)
    drawn, gaps = [], []
    for line_of_axes, epsilon in zip(axes, shown, strict=True):
        for axis, target in zip(line_of_axes, targets, strict=True):
            name = problem_name(target.problem).rpartition(", ")[2]
            axis.set_title(f"{name}, {target.name} (α = {target.alpha:g}), ε = {epsilon:g}", fontsize=8.5)
            panel = rows[rows["problem"].eq(target.problem) & rows["alpha"].eq(target.alpha)]
            panel = panel[panel["epsilon"].eq(epsilon)]
            traces = context.traces(panel) if len(panel) else panel
            if traces.empty:
                gap(axis, f"no rows yet\n{context.command(artefact)}")
                gaps.append(f"{place(target)}, ε = {epsilon:g}: {context.command(artefact)}")
                continue
            for algorithm in METHODS:
                mine = panel[panel["algorithm"].eq(algorithm)]
                if len(mine):
                    line = mean_trace(traces, mine)
                    drawn.append(line.assign(problem=target.problem, alpha=target.alpha, epsilon=epsilon,
                                             algorithm=algorithm))  # fmt: skip
                    draw(axis, line, mine, algorithm)
            axis.set_xscale("log")
            if epsilon == shown[-1]:
                axis.set_xlabel("gradient evaluations")
            if target is targets[0]:
                axis.set_ylabel("loss")
    legend_below(figure, axes.flat, columns=8)
    seeds = rows["seed"].nunique() if len(rows) else 0
    ended = ENDED.format(cap=most_iterations(context, artefact))
    caption = (
        f"{problem_name(targets[0].problem).partition(',')[0]}: loss on all rows against noisy gradients evaluated (-B "
        f"methods, dotted: of ⌊n/50⌋ rows), mean over up to {seeds} seeds, where a run that has ended keeps its last "
        f"loss. Markers: where each seed ended; {ended}. "
        f"The loss is a diagnostic, not released. {COMMON}."
    )
    return Figure(figure, pd.concat(drawn) if drawn else pd.DataFrame(), caption, gaps)


def mean_trace(traces, runs):
    """Mean loss over the runs at every iteration that any of them recorded; ended runs keep their last loss.

    Between recorded iterations a run's loss is interpolated.
    """
    import pandas as pd

    own = traces[traces["key"].isin(runs["key"])]
    ends = runs.set_index("key")["iterations"].astype(float)
    own = own[own["iteration"] <= own["key"].map(ends)]
    iterations = np.unique(np.append(own["iteration"], ends))
    values = []
    for key, part in own.groupby("key", sort=True):
        part = part.sort_values("iteration")
        last = float(runs.loc[runs["key"].eq(key), "objective"].iloc[0])
        at, loss = np.append(part["iteration"], ends[key]), np.append(part["excess"], last)
        values.append(np.interp(iterations, at, loss))
    return pd.DataFrame({"iteration": iterations, "loss": np.mean(values, axis=0), "seeds": len(values)})


def line_of(algorithm: str) -> str:
    """Minibatches are dotted: they often run on top of their full-batch sibling."""
    return ":" if algorithm.endswith("-b") else look(algorithm).line


def draw(axis, line, runs, algorithm: str) -> None:
    """The mean line and a marker for each seed's end."""
    style = look(algorithm)
    line = line[line["iteration"] > 0]
    axis.plot(line["iteration"], line["loss"], line_of(algorithm), color=style.colour, lw=1.2, alpha=0.85)
    good = runs["status"].eq(TERMINATED)
    for ended, marker, size in ((runs[good], style.marker, 4), (runs[~good], "x", 5)):
        axis.plot(ended["iterations"], ended["objective"], marker, color=style.colour, ms=size, alpha=0.8)


def endings(context) -> Figure:
    """Final loss of every seed for each method and ε, and the published means: Tables 1 to 12 in one picture."""
    import matplotlib.pyplot as plt
    import pandas as pd

    figure, axes = plt.subplots(2, 4, figsize=(11, 5.9), layout="constrained")
    order = [target for data in ("covertype", "ijcnn") for target in TARGETS if target.problem.startswith(data)]
    drawn, gaps = [], []
    for axis, target in zip(axes.flat, order, strict=True):
        axis.set_title(f"Table {target.table}: {problem_name(target.problem)}, {target.name}", fontsize=8.5)
        rows = finished(context.rows(target.artefact, timed=0))
        if rows.empty:
            gap(axis, f"no rows yet\n{context.command('endings')}")
            gaps.append(f"Table {target.table}: {context.command('endings')}")
            continue
        table = compared(context, target)
        drawn.append(table.assign(problem=target.problem, alpha=target.alpha))
        for row in table.itertuples():
            style = look(row.algorithm)
            x = EPSILONS.index(row.epsilon) + (METHODS.index(row.algorithm) - (len(METHODS) - 1) / 2) * 2 * SPREAD
            seeds = rows[rows["algorithm"].eq(row.algorithm) & rows["epsilon"].eq(row.epsilon)]
            good = seeds["status"].eq(TERMINATED)
            for part, marker, size in ((seeds[good], style.marker, 4), (seeds[~good], "x", 4.5)):
                label = style.legend if marker != "x" else None
                axis.plot(np.full(len(part), x), part["objective"], marker, color=style.colour, ms=size, alpha=0.75,
                          label=label, ls="none")  # fmt: skip
            if row.paper_mean == row.paper_mean:
                ls = "-" if row.paper_terminated is True else ":"
                axis.plot([x - SPREAD, x + SPREAD], [row.paper_mean] * 2, color="black", lw=1.3, ls=ls)
        axis.set_xticks(range(len(EPSILONS)), [f"ε = {e:g}" for e in EPSILONS])
        axis.grid(axis="x", visible=False)
        for edge in (0.5, 1.5):
            axis.axvline(edge, color=GREY, lw=0.5)
        if table["paper_mean"].max() > 2 * table["paper_mean"].median():
            axis.set_yscale("log")
            axis.set_yticks([], minor=True)
            ticks = [t for t in LOG_TICKS if axis.get_ylim()[0] < t < axis.get_ylim()[1]]
            axis.set_yticks(ticks, [f"{t:g}" for t in ticks])
    for axis in axes[:, 0]:
        axis.set_ylabel("final loss")
    axes[0, 0].plot([], [], color="black", lw=1.3, label="published mean, terminated")
    axes[0, 0].plot([], [], color="black", lw=1.3, ls=":", label="published mean, ×")
    legend_below(figure, axes.flat, columns=5)
    ended = ENDED.format(cap=most_iterations(context, "endings"))
    caption = (
        f"Final loss of every seed by method and ε; {ended}. Black bars: the published means, solid where all the "
        f"paper's runs terminated, dotted where it prints ×. {COMMON}, whose tables hold the bars' values."
    )
    return Figure(figure, pd.concat(drawn) if drawn else pd.DataFrame(), caption, gaps)
