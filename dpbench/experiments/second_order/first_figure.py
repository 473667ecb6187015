"""Fig. 1: covertype at ε = 1 against wall time, as the paper draws it, and with every method below."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpbench import frames
from dpbench.experiments.second_order.convergence import mean_curves, on_the_clock, traced
from dpbench.experiments.second_order.run_times import an_iteration
from dpbench.study.context import Context, select
from dpbench.study.declare import artefact
from dpbench.study.output import Figure
from dpbench.study.panels import Panels, curve
from dpbench.study.statistics import Mean, means, plus_minus, span
from dpbench.study.style import BLACK, look

PROBLEM, NEWTON = "covertype-max", "dp-newton-hess-clip"
PAPERS = ("dp-gd", NEWTON, "dp-newton-qu-clip")  # what the paper's figure has
READ_OFF = {NEWTON: 0.0144, "dp-newton-qu-clip": 0.0152, "dp-gd": 0.0120}  # its ends; dp-gd: of the dashed line
THEIR_SECONDS = {"dp-gd": 0.0110, NEWTON: 0.0169}  # an iteration, by the clock of its axis


@artefact("fig1", "Fig. 1: excess loss against wall time, covertype, ε = 1")
def fig1(context: Context) -> Figure:
    """Above as the paper has it: linear time, three methods, the dashed best loss; below all methods to their ends."""
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
        last = max((line["seconds"].max() for name, line in lines if name != "dp-gd" and len(line)), default=np.inf)
        for name, line in lines:
            if line.empty:
                page.note(f"{look(name).label}, {title}")
                continue
            shown = line[line["seconds"] <= last] if title == titles[0] else line
            curve(axis, shown, "seconds", look(name), markevery=max(1, len(shown) // 8))
        axis.set(yscale="log", ylabel="excess loss")
        if title == titles[0]:
            axis.set_xlim(left=0)
            if gd := ends.get("dp-gd"):
                axis.axhline(gd.mean, color=BLACK, ls="--", lw=1, label="DP-GD's end (the paper: best loss)")
        else:
            axis.set_xscale("log")
        axis.set_xlabel("seconds")
    clock = f" (≈ of shorter runs, in proportion: {'; '.join(guessed)})" if guessed else ""
    caption = (
        "Covertype at ε = 1: mean excess loss against the seconds of one run alone on one core. Above as the paper "
        "draws it, below with all methods to their ends. Bands: ± 1 standard error of the mean."
    )
    finding = _finding(ends)
    method = (
        f"A line is the mean excess loss over {span(curves['seeds'])} seeds after each iteration. Bands: ± 1 standard "
        f"error of the mean. Time: one run alone on one core with one BLAS thread{clock}. DP-GD runs to T = 8,000 and "
        f"DP-Newton to T = 200, which follow from the time axis of the paper's figure. {_told(ends)} "
        f"{_clock(context)} In the paper's own figure, both Newton curves end above its dashed line, which "
        "contradicts its text. The paper does not say whose best loss the dashed line is; it is at the height of "
        "DP-GD's. Privacy: δ = n⁻², add/remove neighbours, n public, accounting bs16. At ε = 1 every version of the "
        "released code has the same ρ."
    )
    return page.figure(caption, curves.drop(columns=["sd"], errors="ignore"), legend=2, method=method, finding=finding)


def ends_of(context: Context) -> dict[str, Mean]:
    """Mean excess, standard error and number of the untimed runs at the figure's T, by algorithm: its ends."""
    T = {a: T for block in context.blocks("fig1", trace=True) for a in block.algorithms for T in block.values("T")}
    rows = context.rows("fig1").query("timed == 0")
    beside = context.rows("fig2", timed=0, problem=PROBLEM, epsilon=1.0)  # the same runs, more seeds
    rows = select(pd.concat([rows, beside]).drop_duplicates("key"), problem=PROBLEM, epsilon=1.0)
    rows = rows[rows["T"].eq(rows["algorithm"].map(T)) & rows["excess"].notna()]
    table = means(rows, ["algorithm"])
    return dict(zip(table["algorithm"], frames.records(table, Mean), strict=True))


def _finding(ends: dict[str, Mean]) -> str:
    """Which of the paper's three methods ends lowest; "" where one has no runs."""
    if not set(PAPERS) <= ends.keys():
        return ""
    order = sorted(PAPERS, key=lambda name: ends[name].mean)
    told = [f"{look(name).label} ({ends[name].mean:.3g})" for name in order]
    return f"{told[0]} ends lower than {' and '.join(told[1:])}"


def _told(ends: dict[str, Mean]) -> str:
    shown = [
        f"{look(name).label} {plus_minus(one.mean, one.se)} over {one.seeds} seeds ({READ_OFF[name]:g})"
        for name in PAPERS
        if (one := ends.get(name))
    ]
    return f"Last values, and in brackets those read off the paper's figure: {', '.join(shown)}." if shown else ""


def _clock(context: Context) -> str:
    gd, newton = (an_iteration(context, "table1", PROBLEM, name) for name in ("dp-gd", NEWTON))
    if np.isnan(gd) or np.isnan(newton):
        return ""
    theirs = THEIR_SECONDS[NEWTON] / THEIR_SECONDS["dp-gd"]
    return (
        f"Here an iteration of DP-GD takes {1e3 * gd:.2g} ms and one of DP-Newton {1e3 * newton:.2g} ms "
        f"({newton / gd:.2g} times as long). On the paper's axis these are {1e3 * THEIR_SECONDS['dp-gd']:.0f} and "
        f"{1e3 * THEIR_SECONDS[NEWTON]:.0f} ms ({theirs:.1f} times). So here DP-GD is further down when DP-Newton ends."
    )
