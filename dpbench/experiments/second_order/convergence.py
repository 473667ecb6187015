"""The figures of second_order that show runs on their way: excess loss against iterations or wall time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dpbench import frames
from dpbench.experiments.second_order.tuned import Run, run_seconds
from dpbench.study.context import Context, select
from dpbench.study.declare import artefact
from dpbench.study.output import Figure
from dpbench.study.panels import Panels, curve, end_labels
from dpbench.study.statistics import means, span
from dpbench.study.style import look, problem_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TUNING = "T (for minibatches also λ₀ and the rates) has the lowest mean on one half of the seeds, which is not private"
PRIVACY = "δ = n⁻², add/remove neighbours, n public"


SAMPLED = "RDP for samples, bs16 for DP-GD"


@artefact("fig4", "Fig. 4: minibatch variants against wall time", name="fig4", columns=2, accounting=SAMPLED)
@artefact("fig8", "Fig. 8: minibatch variants, Fashion-MNIST and protein", name="fig8", columns=2, accounting=SAMPLED)
def against_time(context: Context, name: str, columns: int, accounting: str) -> Figure:
    """One panel a problem; means over seeds after each iteration, at the time it takes when a run is alone."""
    _, traces = traced(context, name)
    traces, guessed = on_the_clock(context, traces)
    page, curves = _panels(context, name, traces, "seconds", columns)
    repeats = max((block.timed for block in context.blocks(name)), default=0)
    caption = (
        "Mean excess loss against the seconds of one run alone on one core, each method at its best T. Calibrating the "
        "noise is not timed. Bands: ± 1 standard error of the mean."
    )
    method = (
        f"A line is the mean excess loss over {span(curves['seeds'])} seeds after each iteration. Bands: ± 1 standard "
        "error of the mean. Time: a run alone on one core with one BLAS thread, after a warm-up. The median duration "
        f"of {repeats} runs is divided evenly among the iterations{_at_another_T(guessed)}. Evaluating the objective "
        f"and calibrating the noise of samples are not timed. Settings: {TUNING}. Privacy: {PRIVACY}, accounting "
        f"{accounting}."
    )
    kept = ["problem", "epsilon", "algorithm", "iteration", "seconds", "mean", "se", "seeds"]
    return page.figure(caption, curves.reindex(columns=kept), legend=2, method=method)


def _at_another_T(guessed: list[str]) -> str:
    if not guessed:
        return ""
    return f" (≈, of runs at the nearest T that was timed: {'; '.join(guessed)})"


@artefact("fig3", "Fig. 3: convergence against DP-GD with the oracle's step", name="fig3")
@artefact("fig7", "Fig. 7: convergence against the oracle's step, Fashion-MNIST and protein", name="fig7")
def against_iterations(context: Context, name: str) -> Figure:
    """A row of panels for each ε, a column for each problem; lines are means over seeds."""
    _, traces = traced(context, name)
    page, curves = _panels(context, name, traces, "iteration", None)
    caption = (
        "Mean excess loss after each iteration, at the T that is best for each method (written at its end). DP-GD with "
        "the oracle's step looks at the true loss: not private. Bands: ± 1 standard error."
    )
    method = (
        f"A line is the mean excess loss over {span(curves['seeds'])} seeds after each iteration. Bands: ± 1 standard "
        f"error of the mean. Settings: {TUNING}. Each method has its own T, written at the end of its line, and a "
        "longer run has more noise per iteration. So compare the ends rather than the slopes. DP-GD with the "
        f"oracle's step looks at the true loss to choose its step, so it is not private. Privacy: {PRIVACY}, "
        "accounting bs16."
    )
    return page.figure(caption, curves.drop(columns=["sd", "seconds"]), method=method)


def traced(context: Context, artefact: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(runs, traces) of the jobs that the artefact's traced blocks ask for today: one per seed.

    The first of the timed runs stands in, as one seed, where there are no untimed ones.
    """
    runs = context.runs[context.runs["key"].isin([job.key for job in context.jobs(artefact) if job.trace])]
    cells = list(zip(runs["problem"], runs["algorithm"], runs["epsilon"], strict=True))
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
    return table.assign(se=table["se"].fillna(0.0))


def _panels(
    context: Context, artefact: str, traces: pd.DataFrame, x: str, columns: int | None
) -> tuple[Panels, pd.DataFrame]:
    """Panels by (ε, problem); problems without any rows are a note, not an empty box, unless all are."""
    curves = mean_curves(traces)
    named = context.problems(artefact, trace=True)
    problems = [problem for problem in named if problem in set(curves["problem"])] or named[:1]
    panels = [(problem, epsilon) for epsilon in context.epsilons(artefact, trace=True) for problem in problems]
    columns = min(columns or max(len(problems), 2), len(panels))
    width = {1: 5.0, 2: 3.6}.get(columns, 2.45)
    page = Panels(context, artefact, len(panels), columns=columns, size=(width, 2.5), room=0.9)
    for problem in named:
        if problem not in problems:
            page.note(problem)
    ends: dict[Axes, list[tuple[float, float, str, str]]] = {}
    for axis, (problem, epsilon) in page.over(panels, title=lambda one: f"{problem_title(one[0])}, ε = {one[1]:g}"):
        panel = select(curves, problem=problem, epsilon=epsilon)
        if page.empty(axis, panel, f"{problem} at ε = {epsilon:g}", problem):
            continue
        for algorithm in context.algorithms(artefact, trace=True):
            line = select(panel, algorithm=algorithm)
            line = line[line["iteration"] > 0].sort_values("iteration")
            if line.empty:
                page.note(f"{look(algorithm).label} on {problem} at ε = {epsilon:g}")
                continue
            curve(axis, line, x, look(algorithm), markevery=max(1, len(line) // 8))
            if x == "iteration":
                end = line.iloc[-1]
                ends.setdefault(axis, []).append((end[x], end["mean"], f"{end[x]:.0f}", look(algorithm).colour))
    page.label(x if x == "seconds" else "iteration", "excess loss", scale="log")
    for axis, labels in ends.items():
        end_labels(axis, labels)
    return page, curves
