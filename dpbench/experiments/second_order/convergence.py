"""The figures of second_order that show runs on their way: excess loss against iterations or wall time."""

from __future__ import annotations

import numpy as np

from dpbench.experiments.second_order.figures import why_missing
from dpbench.report.output import Figure
from dpbench.report.style import gap, legend_below, look, problem_title

TUNING = "T (and λ₀ and the rates, for minibatches) tuned non-privately, as in the paper"
PRIVACY = "δ = n⁻², add/remove neighbours, n public"


def fig1(context) -> Figure:
    """Excess loss against wall time on covertype at ε = 1: DP-GD and the DP-Newton variants."""
    return against_time(context, "fig1", columns=1, accounting="bs16")


def fig4(context) -> Figure:
    """Minibatch variants against DP-SGD and DP-GD: excess loss against wall time."""
    return against_time(context, "fig4", columns=2, accounting="RDP for samples, bs16 for DP-GD")


def fig8(context) -> Figure:
    """Fig. 4 on the appendix's data sets."""
    return against_time(context, "fig8", columns=2, accounting="RDP for samples, bs16 for DP-GD")


def fig3(context) -> Figure:
    """Convergence per iteration against DP-GD with the oracle's step, at high and at low privacy."""
    return against_iterations(context, "fig3")


def fig7(context) -> Figure:
    """Fig. 3 on the appendix's data sets."""
    return against_iterations(context, "fig7")


def against_time(context, artefact: str, columns: int, accounting: str) -> Figure:
    """One panel a problem; each line is the run of median duration of one (algorithm, tuned settings)."""
    runs, traces = traced(context, artefact)
    panels = [
        (problem, epsilon) for epsilon in _epsilons(context, artefact) for problem in _problems(context, artefact)
    ]
    shown = median_runs(runs)
    figure, gaps = _panels(context, artefact, panels, traces[traces["key"].isin(shown["key"])], "seconds", columns)
    repeats = max((block.timed for block in context.blocks(artefact)), default=0)
    caption = (
        f"Excess loss against the wall time of one replicate, run alone, on one core with one BLAS thread, warm; of "
        f"{repeats} run{'s' if repeats > 1 else ''} the one of median duration (they differ in time only); evaluating "
        f"the objective and calibrating the noise of samples are not timed. {TUNING}. {PRIVACY}, accounting "
        f"{accounting}."
    )
    columns = ["problem", "epsilon", "algorithm", "settings", "iteration", "passes", "seconds", "excess"]
    return Figure(figure, traces[traces["key"].isin(shown["key"])].reindex(columns=columns), caption, gaps)


def against_iterations(context, artefact: str) -> Figure:
    """A row of panels for each ε, a column for each problem; lines are means over seeds."""
    problems = _problems(context, artefact)
    _, traces = traced(context, artefact)
    panels = [(problem, epsilon) for epsilon in _epsilons(context, artefact) for problem in problems]
    figure, gaps = _panels(context, artefact, panels, traces, "iteration", len(problems))
    seeds = traces["seed"].nunique()
    caption = (
        f"Mean excess loss over {seeds} seeds after each iteration; bands: ± 1 standard error of the mean. Each method "
        f"has the T that is best for it, {TUNING}, so its noise per iteration is its own. DP-GD with the oracle's step "
        f"looks at the true loss for its step and is not private. {PRIVACY}, accounting bs16."
    )
    return Figure(figure, mean_curves(traces).drop(columns=["sd", "seconds"]), caption, gaps)


def traced(context, artefact: str):
    """(runs, traces) of the jobs that the artefact's traced blocks ask for today; seconds count from iteration 0 on.

    What comes before is the calibration of the noise of samples: up to 0.1 s that depend on public values only.
    """
    keys = [job.key for job in context.jobs(artefact) if job.trace]
    runs = context.runs[context.runs["key"].isin(keys)]
    traces = context.traces(runs).sort_values(["key", "iteration"])
    return runs, traces.assign(seconds=traces["seconds"] - traces.groupby("key")["seconds"].transform("first"))


def median_runs(runs):
    """Of the repetitions of each timed run, the one of median duration (the faster of two in the middle)."""
    ordered = runs.sort_values("seconds")
    groups = ordered.groupby(["problem", "algorithm", "epsilon", "seed", "settings"], sort=False)
    rank, size = groups.cumcount(), groups["key"].transform("size")
    return ordered[rank == (size - 1) // 2]


def mean_curves(traces):
    """Mean, standard error and number of seeds of the excess by (problem, ε, algorithm, iteration)."""
    grouped = traces.groupby(["problem", "epsilon", "algorithm", "iteration"], sort=False)
    table = grouped.agg(mean=("excess", "mean"), sd=("excess", "std"), seeds=("excess", "size"),
                        seconds=("seconds", "mean")).reset_index()  # fmt: skip
    return table.assign(se=(table["sd"] / np.sqrt(table["seeds"])).fillna(0.0))


def _panels(context, artefact, panels, traces, x, columns):
    import matplotlib.pyplot as plt

    rows = -(-len(panels) // columns)
    width = {1: 5.0, 2: 3.6}.get(columns, 2.45)
    figure, axes = plt.subplots(
        rows, columns, figsize=(width * columns, 2.5 * rows + 0.9), layout="constrained", squeeze=False
    )
    curves, gaps = mean_curves(traces), []
    for axis, (problem, epsilon) in zip(axes.flat, panels, strict=False):
        axis.set_title(f"{problem_title(problem)}, ε = {epsilon:g}")
        panel = curves[(curves["problem"] == problem) & (curves["epsilon"] == epsilon)]
        if panel.empty:
            gap(axis, why_missing(context, artefact, problem))
            gaps.append(f"{problem} at ε = {epsilon:g}: {context.command(artefact)}")
            continue
        for algorithm in _algorithms(context, artefact):
            line = panel[(panel["algorithm"] == algorithm) & (panel["iteration"] > 0)].sort_values("iteration")
            style = look(algorithm)
            every = max(1, len(line) // 8)
            axis.plot(line[x], line["mean"], style.line, color=style.colour, marker=style.marker, markevery=every,
                      label=style.legend)  # fmt: skip
            low = np.maximum(line["mean"] - line["se"], line["mean"] * 0.05)
            axis.fill_between(line[x], low, line["mean"] + line["se"], color=style.colour, alpha=0.18, lw=0)
        axis.set_xscale("log")
        axis.set_yscale("log")
    for axis in axes[:, 0]:
        axis.set_ylabel("excess loss")
    for axis in axes[-1]:
        axis.set_xlabel("seconds" if x == "seconds" else "iteration")
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    legend_below(figure, axes.flat, columns=2 if columns <= 2 else 3)
    return figure, gaps


def _problems(context, artefact) -> list[str]:
    return list(dict.fromkeys(p for block in context.blocks(artefact) if block.trace for p in block.problems))


def _epsilons(context, artefact) -> list[float]:
    return sorted({e for block in context.blocks(artefact) if block.trace for e in block.epsilon})


def _algorithms(context, artefact) -> list[str]:
    return list(dict.fromkeys(a for block in context.blocks(artefact) if block.trace for a in block.algorithms))
