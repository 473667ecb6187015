"""The figures of second_order: privacy against utility, and runs on their way, by iterations or by the clock."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpbench import frames
from dpbench.experiments.second_order.rows import NEWTON, PAPER, Run, at_zero, processors, run_seconds, tuned
from dpbench.study.context import Context, select
from dpbench.study.output import Figure
from dpbench.study.panels import Panels, curve
from dpbench.study.paper import End, Ends, WithWords
from dpbench.study.statistics import means, mostly_lowest, span
from dpbench.study.style import BLACK, GREY, legend_below, look, problem_title
from dpbench.study.tuning import expand_settings

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@PAPER.artefact("fig2", name="fig2")
@PAPER.artefact("fig6", name="fig6")
def privacy_utility(context: Context, name: str) -> WithWords:
    """Figs. 2 and 6: excess losses above, ratios to DP-GD's below."""
    algorithms = context.algorithms(name)
    rows = context.rows(name, timed=0)
    table, zero = tuned(rows), at_zero(rows)
    problems = context.problems(name)
    some = [problem for problem in problems if problem in set(table["problem"])] or problems[:1]
    wide = max(len(some), 2)  # room for the legend, and for the gap of a second data set
    shown = problems if len(problems) <= wide else some
    # Two panels a data set, the losses above and their ratios below; an empty one beside a single data set is hidden.
    page = Panels(context, name, 2 * wide, columns=wide, size=(2.6 if wide > 2 else 3.4, 2.5), room=0.8)
    for axis in page.axes[:, len(shown) :].flat:
        axis.set_visible(False)
    for problem in problems:
        if problem not in shown:
            page.note(problem, panel=True)
    for (upper, problem), lower in zip(page.over(shown, title=problem_title), page.axes[1], strict=False):
        panel = select(table, problem=problem)
        if page.empty(upper, panel, problem, problem):
            lower.set_visible(False)
            continue
        _note_missing_points(page, upper, name, panel, problem)
        gd = select(panel, algorithm="dp-gd").set_index("epsilon")["mean"].sort_index()
        for algorithm in algorithms:
            line = select(panel, algorithm=algorithm)
            line = line[np.isfinite(line["mean"])]
            curve(upper, line, "epsilon", look(algorithm))
            base = line["epsilon"].map(gd)
            ratio = line.assign(mean=line["mean"] / base, se=line["se"] / base).dropna(subset=["mean"])
            if len(ratio):  # a panel of empty lines has no logarithmic axis
                curve(lower, ratio, "epsilon", look(algorithm), zorder=3 if algorithm == "dp-gd" else 2)
        nothing = zero.get(problem, np.nan)
        upper.axhline(nothing, color=GREY, lw=1, ls=":", label="w = 0 (no data used)")
        if len(gd):
            lower.plot(gd.index, nothing / gd, color=GREY, lw=1, ls=":")
        # Methods without privacy may lie decades below, and would squash those that are compared.
        private = panel[[look(algorithm).private for algorithm in panel["algorithm"]]]["mean"]
        private = private[np.isfinite(private)]
        if len(private):
            upper.set_ylim(private.min() / 2, max(private.max(), nothing) * 3)
        # One scale for all panels; a method that loses by more than this has lost.
        lower.set_ylim(0.3, 6)
    page.label("ε", "excess loss", scale="log")
    page.axes[1, 0].set_ylabel("excess loss / DP-GD's")
    for axis in page.axes[1]:
        axis.set_yticks([0.5, 1, 2, 5], ["0.5", "1", "2", "5"])
        axis.minorticks_off()
    relations = "δ = n⁻², n public, add/remove neighbours"
    if "aop" in algorithms:
        relations += " (AOP: replace-one, so its ε asks for more)"
    unprivate = [look(a).label for a in algorithms if not look(a).private]
    finding = _lowest(table)
    return page.figure(table.drop(columns=["settings"])), {
        "seeds": span(table["seeds"]),
        "relations": relations,
        "unprivate": f" Not private: {', '.join(unprivate)} (its step size looks at the data)." if unprivate else "",
        "found": bool(finding),
        "finding": finding,
    }


def _lowest(table: pd.DataFrame) -> str:
    """The private method with the lowest mean in at least half of the comparisons, as a sentence; or ""."""
    private = table["algorithm"].map(lambda name: look(name).private).astype(bool)
    first = mostly_lowest(table[private], ["problem", "epsilon"])
    if first is None:
        return ""
    name, count, comparisons = first
    return f"{look(name).label} has the lowest excess loss in {count} of {comparisons} comparisons (problem, ε)"


def _note_missing_points(page: Panels, axis: Axes, name: str, panel: pd.DataFrame, problem: str) -> None:
    """The points of the grid that have no rows yet: how many in the panel, which in the figure's gaps."""
    points = {(a, e) for p, a, e in page.context.combinations(name) if p == problem}
    missing = points - set(zip(panel["algorithm"], panel["epsilon"], strict=True))
    for algorithm in dict.fromkeys(a for a, _ in sorted(missing)):
        epsilons = ", ".join(f"{e:g}" for e in sorted(e for a, e in missing if a == algorithm))
        page.note(f"{look(algorithm).label} on {problem} at ε = {epsilons}")
    if missing:
        told = f"{len(points) - len(missing)} of {len(points)} points have rows"
        axis.text(0.02, 0.03, told, transform=axis.transAxes, fontsize=6.5, color=GREY)


@PAPER.artefact("c5")
def c5(context: Context) -> WithWords:
    """DP-GD with other learning rates: excess loss at the tuned T against ε, a line per step."""
    import matplotlib.pyplot as plt

    problems = context.problems("c5")
    steps = sorted({s for block in context.blocks("c5") for s in block.settings["step"]})
    longest = max(T for block in context.blocks("c5") for T in block.values("T"))
    rows = expand_settings(context.rows("c5", timed=0))
    by_step = {step: select(rows, **{"set.step": step}) if len(rows) else rows for step in steps}
    table = pd.concat([tuned(part).assign(step=step) for step, part in by_step.items()], ignore_index=True)
    page = Panels(context, "c5", len(problems), columns=len(problems), size=(2.5, 2.5), room=0.6)
    colours = plt.get_cmap("viridis")(np.linspace(0, 0.85, len(steps)))
    for axis, problem in page.over(problems, title=problem_title):
        panel = select(table, problem=problem)
        if page.empty(axis, panel, problem, problem):
            continue
        for step, colour, marker in zip(steps, colours, "osD^v<>ph*", strict=False):
            line = select(panel, step=step)
            label = f"step {step:g}" + (" = 1/smoothness" if step == 4 else "")
            curve(axis, line, "epsilon", look("dp-gd"), label, color=colour, marker=marker)
            ended = line[line["at_end"] == "largest"]
            axis.plot(ended["epsilon"], ended["mean"], ls="", marker=marker, mfc="white", mec=colour)
    page.label("ε", "excess loss", scale="log")
    first = mostly_lowest(table, ["problem", "epsilon"], who="step")
    rate = f"{first[0]:g} in {first[1]} of {first[2]} comparisons (problem, ε)" if first else ""
    return page.figure(table.drop(columns=["settings"]), legend=5), {
        "seeds": span(table["seeds"]),
        "longest": longest,
        "found": bool(rate),
        **({"rate": rate} if rate else {}),
    }


@PAPER.artefact("fig5")
def fig5(context: Context) -> WithWords:
    """log(1 + eˣ) at x₀ with its second-order Taylor polynomial, the bound of Lemma 5.1, the smoothness bound."""
    import matplotlib.pyplot as plt

    x, x0 = np.linspace(-10, 10, 401), 3.0
    curves = logistic_approximations(x, x0)
    styles = {
        "log(1 + eˣ)": ("#000000", "-"),
        "Taylor, second order": ("#0072B2", ":"),
        "quadratic upper bound (Lemma 5.1)": ("#D55E00", "-"),
        "smoothness bound": ("#009E73", "--"),
    }
    figure, axis = plt.subplots(figsize=(4.6, 3.3), layout="constrained")
    for label, values in curves.items():
        colour, line = styles[label]
        axis.plot(x, values, line, color=colour, label=label, lw=2.2 if colour == "#000000" else 1.5)
    axis.plot([x0], [np.logaddexp(0, x0)], "o", color="#000000", ms=5)
    axis.annotate(f"x₀ = {x0:g}", (x0, np.logaddexp(0, x0)), xytext=(6, -12), textcoords="offset points")
    axis.set(ylim=(-3, 14), xlabel="x", ylabel="value")
    legend_below(figure, [axis], columns=2)
    return Figure(figure, pd.DataFrame({"x": x} | curves)), {"x0": x0}


def logistic_approximations(x: Any, x0: float) -> dict[str, np.ndarray]:
    """log(1+eˣ) and its quadratics around x₀: curvature σ'(x₀), tanh(x₀/2)/(2x₀) (Lemma 5.1), and 1/4."""
    value, slope = np.logaddexp(0, x0), 1 / (1 + np.exp(-x0))
    curvature = {
        "Taylor, second order": slope * (1 - slope),
        "quadratic upper bound (Lemma 5.1)": np.tanh(x0 / 2) / (2 * x0) if x0 else 0.25,
        "smoothness bound": 0.25,
    }
    step = np.asarray(x) - x0
    quadratics = {name: value + slope * step + c / 2 * step**2 for name, c in curvature.items()}
    return {"log(1 + eˣ)": np.logaddexp(0, x)} | quadratics


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
            page.note(f"{problem} at ε = {epsilon:g}", panel=True)
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
    combinations = list(zip(runs["problem"], runs["algorithm"], runs["epsilon"], strict=True))
    # A timed run has the numbers of an untimed one of the same seed, and would count it twice.
    known = {at for at, timed in zip(combinations, runs["timed"], strict=True) if not timed}
    runs = runs.loc[[timed <= (at not in known) for at, timed in zip(combinations, runs["timed"], strict=True)]]
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
