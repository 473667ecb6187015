"""The figures of second_order that show runs on their way: excess loss against iterations or wall time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from dpbench import frames
from dpbench.experiments.second_order.rows import NEWTON, PAPER, Run, WithWords, run_seconds
from dpbench.study.context import Context, memoised, select
from dpbench.study.output import Table
from dpbench.study.panels import Panels, curve, end_labels
from dpbench.study.statistics import means, span
from dpbench.study.style import look, problem_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes


from dpbench.experiments.second_order.run_times import PUBLISHED, THEIR_COST, Timed, an_iteration, cells, rows_under
from dpbench.study.statistics import Mean, plus_minus
from dpbench.study.style import BLACK

SAMPLED = "RDP for samples, bs16 for DP-GD"


@PAPER.artefact("fig4", name="fig4", columns=2, accounting=SAMPLED)
@PAPER.artefact("fig8", name="fig8", columns=2, accounting=SAMPLED)
def against_time(context: Context, name: str, columns: int, accounting: str) -> WithWords:
    """One panel a problem; means over seeds after each iteration, at the time it takes when a run is alone."""
    _, traces = traced(context, name)
    traces, guessed = on_the_clock(context, traces)
    page, curves = _panels(context, name, traces, "seconds", columns)
    repeats = max((block.timed for block in context.blocks(name)), default=0)
    kept = ["problem", "epsilon", "algorithm", "iteration", "seconds", "mean", "se", "seeds"]
    return page.figure("", curves.reindex(columns=kept), legend=2), {
        "seeds": span(curves["seeds"]),
        "repeats": repeats,
        "guessed": _at_another_T(guessed),
        "accounting": accounting,
    }


def _at_another_T(guessed: list[str]) -> str:
    if not guessed:
        return ""
    return f" (≈, of runs at the nearest T that was timed: {'; '.join(guessed)})"


@PAPER.artefact("fig3", name="fig3")
@PAPER.artefact("fig7", name="fig7")
def against_iterations(context: Context, name: str) -> WithWords:
    """A row of panels for each ε, a column for each problem; lines are means over seeds."""
    _, traces = traced(context, name)
    page, curves = _panels(context, name, traces, "iteration", None)
    return page.figure("", curves.drop(columns=["sd", "seconds"])), {"seeds": span(curves["seeds"])}


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


PROBLEM = "covertype-max"
PAPERS = ("dp-gd", NEWTON, "dp-newton-qu-clip")  # what the paper's figure has
READ_OFF = {NEWTON: 0.0144, "dp-newton-qu-clip": 0.0152, "dp-gd": 0.0120}  # its ends; dp-gd: of the dashed line
OWN_FIGURE = PAPER.phrases["own_figure"].format(
    clip=READ_OFF[NEWTON], qu=READ_OFF["dp-newton-qu-clip"], dashed=READ_OFF["dp-gd"]
)
THEIR_SECONDS = {"dp-gd": 0.0110, NEWTON: 0.0169}  # an iteration, by the clock of its axis


@PAPER.artefact("fig1")
def fig1(context: Context) -> WithWords:
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
    finding = _finding(ends)
    return page.figure("", curves.drop(columns=["sd"], errors="ignore"), legend=2), {
        "seeds": span(curves["seeds"]),
        "clock": clock,
        "last": _ends_sentence(ends),
        "iteration": _clock(context),
        "found": bool(finding),
        "finding": finding,
    }


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


def _ends_sentence(ends: dict[str, Mean]) -> str:
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


class Equal(NamedTuple):
    """A row of `equal`."""

    problem: str
    epsilon: float
    dp_newton_T: float
    dp_newton_excess: float
    equal_T: float
    lowest_T: float
    lowest: float
    own_T: float
    cost: float
    published_ratio: float


@memoised
def equal(context: Context) -> pd.DataFrame:
    """A row per cell of Table 1: DP-Newton's T and loss, and the shortest T tried of DP-GD whose mean is as low.

    equal_T: NaN where no T comes down to it; lowest_T, lowest: DP-GD's lowest mean over the T of the published rule.
    """
    lines = []
    for one in frames.records(select(cells(context, "table1"), rule=PUBLISHED.name), Timed):
        rows = rows_under(context, "table1", PUBLISHED, one.problem, one.epsilon)
        means = select(rows, algorithm="dp-gd").groupby("T")["excess"].mean().dropna().sort_index()
        reached = means.index[means <= one.dp_newton_excess]
        equal_T = float(reached[0]) if len(reached) else np.nan
        lines.append(Equal(one.problem, one.epsilon, one.dp_newton_T, one.dp_newton_excess, equal_T,
                           float(means.index[int(means.argmin())]), float(means.min()), one.dp_gd_T, one.cost,
                           one.published_ratio))  # fmt: skip
    return pd.DataFrame(lines, columns=Equal._fields)


@PAPER.artefact("equal_loss")
def equal_loss(context: Context) -> WithWords:
    """The shortest T of DP-GD that is as low as DP-Newton at its best, over DP-Newton's T; Table 1's ratio beside."""
    table = equal(context)
    theirs = THEIR_COST[PROBLEM]
    lines = []
    for one in frames.records(table, Equal):
        never = np.isnan(one.equal_T)
        at = f"none ({one.lowest:.3g} at {one.lowest_T:,.0f})" if never else f"{one.equal_T:,.0f}"
        ratio = one.equal_T / one.dp_newton_T
        shown = ["–"] * 3 if never else [f"{ratio:.3g}×", f"{ratio / theirs:.2g}×",
                                         "–" if np.isnan(one.cost) else f"{ratio / one.cost:.2g}×"]  # fmt: skip
        lines.append([problem_title(one.problem), f"{one.epsilon:g}", f"{one.dp_newton_T:.0f}",
                      f"{one.dp_newton_excess:.3g}", at, *shown, f"{one.own_T / one.dp_newton_T:.3g}×",
                      f"{one.published_ratio:.2f}×"])  # fmt: skip
    header = ["data set", "ε", "T of DP-Newton", "its excess loss", "DP-GD's T to it", "iterations", "at their cost",
              "at ours", "own losses: iterations", "paper, own losses"]  # fmt: skip
    gaps = [] if lines else [context.gap("table1", "Table 1")]
    return Table(pd.DataFrame(lines, columns=header), "", table, gaps), {
        "theirs": theirs,
        "on_the_way": _on_the_way(context),
        **_worth(table),
    }


def _worth(table: pd.DataFrame) -> dict[str, Any]:
    """What the one published ratio that the paper's first page has comes to at an equal loss."""
    one = select(table, problem=PROBLEM, epsilon=1.0)
    if one.empty or one["equal_T"].isna().all():
        return {"found": False}
    cell = one.iloc[0]
    equal_T, own = (cell[name] / cell["dp_newton_T"] for name in ("equal_T", "own_T"))
    return {"equal_T": equal_T, "own": own}


def _on_the_way(context: Context) -> str:
    """Where the mean curve of DP-GD in Fig. 1 passes the end of DP-Newton's."""
    _, traces = traced(context, "fig1")
    curves = mean_curves(traces[traces["iteration"] > 0])
    gd, newton = (
        select(curves, algorithm=name).sort_values("iteration").set_index("iteration")["mean"]
        for name in ("dp-gd", NEWTON)
    )
    if gd.empty or newton.empty or not (gd <= newton.iloc[-1]).any():
        return ""
    passed, T = gd.index[gd <= newton.iloc[-1]][0], newton.index[-1]
    return (
        f"In Fig. 1 (covertype, ε = 1), DP-Newton ends at {newton.iloc[-1]:.3g} after {T:.0f} iterations. DP-GD, on "
        f"its way to T = {gd.index[-1]:,.0f}, is as low after {passed:,.0f}: {passed / T:.3g} times as many. "
    )
