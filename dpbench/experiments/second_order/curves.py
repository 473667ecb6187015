"""The figures of second_order that show runs on their way: excess loss against iterations or wall time."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from dpbench import frames
from dpbench.experiments.second_order.rows import NEWTON, PAPER, Run, processors, run_seconds, tuned
from dpbench.study.context import Context, select
from dpbench.study.panels import Panels, curve
from dpbench.study.paper import End, Ends, WithWords
from dpbench.study.statistics import means, span
from dpbench.study.style import BLACK, look, problem_title


@PAPER.artefact("fig3", name="fig3", x="iteration")
@PAPER.artefact("fig4", name="fig4", x="seconds")
@PAPER.artefact("fig7", name="fig7", x="iteration")
@PAPER.artefact("fig8", name="fig8", x="seconds")
def on_the_way(context: Context, name: str, x: str) -> WithWords:
    """Panels by (ε, problem) of means over seeds after each iteration, or at the time it takes when a run is alone."""
    _, traces = traced(context, name)
    guessed: list[str] = []
    if x == "seconds":
        traces, guessed = on_the_clock(context, traces)
    curves = mean_curves(traces)
    asked = list(itertools.product(context.epsilons(name, trace=True), context.problems(name, trace=True)))
    # DP-Newton without a rival, or the other way round, compares nothing: such a panel is a gap.
    sides = curves["algorithm"].str.startswith("dp-newton").groupby([curves["epsilon"], curves["problem"]]).nunique()
    panels = [at for at in asked if sides.get(at, 0) > 1] or asked[:1]
    columns = min(2, len(panels))  # a page of print is 7 inches wide and 9 high
    size = (5.0 if columns == 1 else 3.6, 2.0 if len(panels) > 4 else 2.5)
    page = Panels(context, name, len(panels), columns=columns, size=size, room=0.9)
    for epsilon, problem in asked:
        if (epsilon, problem) not in panels:
            page.note(f"{problem} at ε = {epsilon:g}")
    for axis, (epsilon, problem) in page.over(panels, title=lambda one: f"{problem_title(one[1])}, ε = {one[0]:g}"):
        panel = select(curves, problem=problem, epsilon=epsilon)
        if page.empty(axis, panel, f"{problem} at ε = {epsilon:g}", problem):
            continue
        methods = context.algorithms(name, trace=True)
        for i, algorithm in enumerate(methods):
            line, style = select(panel, algorithm=algorithm), look(algorithm)
            line = line[line["iteration"] > 0].sort_values("iteration")
            if line.empty:
                page.note(f"{style.label} on {problem} at ε = {epsilon:g}")
                continue
            curve(axis, line, x, style, markevery=max(1, len(line) // 8))
            if x == "iteration":  # each method has its own T; all lines fall, so that the corner below left is free
                axis.text(0.03, 0.04 + 0.07 * (len(methods) - 1 - i), f"T = {line['iteration'].max():.0f}", fontsize=7,
                          color=style.colour, transform=axis.transAxes)  # fmt: skip
    page.label(x, "excess loss", scale="log")
    told = f" (≈, of runs at the nearest T that was timed: {'; '.join(guessed)})" if guessed else ""
    repeats = max((block.timed for block in context.blocks(name)), default=0)
    shown = dict.fromkeys(["problem", "epsilon", "algorithm", "iteration", x, "mean", "se", "seeds"])
    return page.figure(curves.reindex(columns=list(shown)), legend=2 if x == "seconds" else 3), {
        "seeds": span(curves["seeds"]), "repeats": repeats, "guessed": told,
        "processors": processors(context, name)}  # fmt: skip


def traced(context: Context, artefact: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(runs, traces) of the jobs that the artefact's traced blocks ask for today: one per seed.

    The first of the timed runs stands in, as one seed, where there are no untimed ones.
    """
    runs = context.runs[context.runs["key"].isin([job.key for job in context.jobs(artefact) if job.trace])]
    if any(block.tuned for block in context.blocks(artefact, trace=True)):
        # The blocks that T is tuned on may trace another T, as Fig. 1's do: one mean is over runs of one T.
        at = ["problem", "algorithm", "epsilon", "settings"]
        best = pd.MultiIndex.from_frame(tuned(context.rows(artefact, timed=0))[at])
        runs = runs[pd.MultiIndex.from_frame(runs[at]).isin(best)]
    cells = list(zip(runs["problem"], runs["algorithm"], runs["epsilon"], strict=True))
    # A timed run has the numbers of an untimed one of the same seed, and would count it twice.
    known = {cell for cell, timed in zip(cells, runs["timed"], strict=True) if not timed}
    runs = runs.loc[[timed <= (cell not in known) for cell, timed in zip(cells, runs["timed"], strict=True)]]
    return runs, context.traces(runs).sort_values(["key", "iteration"])


def on_the_clock(context: Context, traces: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Traces with the seconds up to each iteration of a run alone, and which are of runs at another T.

    In proportion to the iterations. What no run was timed of is left out.
    """
    parts, guessed = [traces.iloc[:0]], []
    for run, part in frames.groups(traces, Run):
        seconds, exact = run_seconds(context, *run)
        if len(seconds):
            parts.append(part.assign(seconds=part["iteration"] * (np.median(seconds) / run.T)))
            if not exact:
                guessed.append(f"{look(run.algorithm).label} on {problem_title(run.problem)}")
    return pd.concat(parts), guessed


def mean_curves(traces: pd.DataFrame) -> pd.DataFrame:
    """Mean, standard error and number of seeds of the excess by (problem, ε, algorithm, iteration)."""
    table = means(traces, ["problem", "epsilon", "algorithm", "iteration"], seconds=("seconds", "mean"))
    # The mean of one seed has no error, and its band is its line.
    return table.assign(se=table["se"].fillna(0.0))


PROBLEM = "covertype-max"
PAPERS = ("dp-gd", NEWTON, "dp-newton-qu-clip")  # what the paper's figure has


@PAPER.artefact("fig1")
def fig1(context: Context) -> WithWords:
    """Above as the paper has it: linear time, three methods, the dashed best loss; below all methods to their ends."""
    read_off = {name: float(end) for name, end in context.experiment.published()["fig1"]["ends"].items()}
    _, traces = traced(context, "fig1")
    traces, guessed = on_the_clock(context, traces)
    curves = mean_curves(traces)
    curves = curves[curves["iteration"] > 0].sort_values("iteration")
    ends = ends_of(context)
    page = Panels(context, "fig1", 2, columns=1, size=(5.2, 2.7), room=0.7)
    titles = ("as the paper draws it", "all methods, to their ends")
    for (axis, title), named in zip(
        page.over(titles, title=str), (PAPERS, tuple(context.algorithms("fig1", trace=True))), strict=True
    ):
        lines = [(name, select(curves, algorithm=name)) for name in named]
        if page.empty(axis, pd.concat([line for _, line in lines]), title, PROBLEM):
            continue
        # The paper cuts its axis where DP-Newton ends, long before DP-GD does.
        last = max((line["seconds"].max() for name, line in lines if name != "dp-gd" and len(line)), default=np.inf)
        for name, line in lines:
            if line.empty:
                page.note(f"{look(name).label}, {title}")
                continue
            shown = line[line["seconds"] <= last] if title == titles[0] else line
            curve(axis, shown, "seconds", look(name), markevery=max(1, len(shown) // 8))
            if name in read_off and name != "dp-gd":
                end = shown["seconds"].iloc[-1]
                axis.plot(end, read_off[name], "x", color=look(name).colour, label="end of the published curve")
        axis.set(yscale="log", ylabel="excess loss")
        if title == titles[0]:
            axis.set_xlim(left=0)
            if gd := ends.get("dp-gd"):
                axis.axhline(gd.mean, color=BLACK, ls="--", lw=1, label="DP-GD's end (the paper: best loss)")
        else:
            axis.set_xscale("log")
        axis.set_xlabel("seconds")
    clock = f" (≈ of shorter runs, in proportion: {'; '.join(guessed)})" if guessed else ""
    at_end = [f"{look(name).label} {ends[name]} over {ends[name].seeds} seeds ({read_off[name]:g})"
             for name in PAPERS if name in ends]  # fmt: skip
    order = sorted(PAPERS, key=lambda name: ends[name].mean) if set(PAPERS) <= ends.keys() else []
    lowest = [f"{look(name).label} ({ends[name].mean:.3g})" for name in order]
    return page.figure(curves.drop(columns=["sd"], errors="ignore"), legend=2), {
        "seeds": span(curves["seeds"]),
        "clock": clock,
        "processors": processors(context, "fig1"),
        "last": PAPER.phrases["last"].format(ends=", ".join(at_end)) if at_end else "",
        "found": bool(order),
        "finding": f"{lowest[0]} ends lower than {' and '.join(lowest[1:])}" if order else "",
    }


def ends_of(context: Context) -> dict[str, End]:
    """Where the untimed runs at the figure's T end, by algorithm."""
    return {end["algorithm"]: end for end in Ends(means(rows_of_ends(context), ["algorithm"]), "fig1", "").matching()}


def rows_of_ends(context: Context) -> pd.DataFrame:
    """The untimed runs at the figure's T, of all seeds."""
    T = {a: T for block in context.blocks("fig1", trace=True) for a in block.algorithms for T in block.values("T")}
    beside = context.rows("fig2", timed=0, problem=PROBLEM, epsilon=1.0)  # the same runs, more seeds
    rows = pd.concat([context.rows("fig1", timed=0, problem=PROBLEM, epsilon=1.0), beside]).drop_duplicates("key")
    return rows[rows["T"].eq(rows["algorithm"].map(T)) & rows["excess"].notna()]
