"""Tables 1 and 4: what a run of DP-GD takes over one of DP-Newton, as iterations, as seconds here, and as a shape.

A ratio of seconds is T of DP-GD over T of DP-Newton, divided by what an iteration of DP-Newton costs in DP-GD's, which
belongs to a machine and an implementation. Within a data set that cost cancels in ratio(ε)/ratio(1), the shape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpbench import datasets, frames
from dpbench.experiments.second_order.rows import NEWTON, PAPER, processors, tuned
from dpbench.privacy import accounting
from dpbench.problems import catalogue
from dpbench.run import outcomes
from dpbench.run.row import setting
from dpbench.study.context import Context, memoised, select
from dpbench.study.output import Table
from dpbench.study.paper import WithWords
from dpbench.study.statistics import excess
from dpbench.study.style import problem_title

FEBRUARY = "released-february"
CAP, LONGER_CAP = 8_000, 10_000  # on DP-GD's T as published, which is inferred: see docs/papers/second_order.md
THEIR_COST = 1.6  # of an iteration of DP-Newton in DP-GD's: from the clock of the paper's Fig. 1
FIGURE = {"table1": "fig2", "table4": "fig6"}  # whose rows a table has


class TimingRule(NamedTuple):
    """How a comparison gets its T: which conversion of ε, the largest T of DP-GD."""

    name: str
    accounting: str
    cap: float


PUBLISHED = TimingRule("published", FEBRUARY, CAP)
LONGER = TimingRule("published, T to 10,000", FEBRUARY, LONGER_CAP)
PROVEN = TimingRule("proven ε", "bs16", np.inf)


def floored(problem: str, epsilon: float) -> bool:
    """Whether the root finder of February returns its start at this ε, so that one run stands for all such ε."""
    rows = datasets.describe(catalogue.recipe_of(problem).dataset).rows
    mode: Any = accounting.get(FEBRUARY)
    return rows is not None and mode.rho(epsilon, float(rows) ** -2) == mode.start


def rows_under(context: Context, name: str, rule: TimingRule, problem: str, epsilon: float) -> pd.DataFrame:
    """The untimed rows of DP-GD and DP-Newton (hess, clip) that a rule chooses from, for one comparison of a table.

    Where February's ρ is that of `bs16`, its rows are; DP-Newton's then without the reset, which acts at ε = 10
    and there has rows of its own (artefact `reset`).
    """
    figure = FIGURE[name]
    own = context.rows(name, timed=0, problem=problem)
    # One run stands for all such ε: the start of the root finder does not depend on ε.
    if rule.accounting == FEBRUARY and floored(problem, epsilon):
        rows = own[own["accounting"].eq(FEBRUARY)]
    else:
        rows = context.rows(figure, timed=0, problem=problem, epsilon=epsilon)
        resets = context.rows("reset", timed=0, problem=problem, epsilon=epsilon) if name == "table1" else rows.iloc[:0]
        resets = resets[setting(resets, "reset").eq("optimum")]
        if rule.accounting == FEBRUARY and not resets.empty:
            rows = pd.concat([rows[rows["algorithm"].ne(NEWTON)], resets])
    rows = select(rows, algorithm=["dp-gd", NEWTON])
    return rows[rows["algorithm"].ne("dp-gd") | rows["T"].le(rule.cap)]


class Timed(NamedTuple):
    """A row of `timed_ratios`."""

    problem: str
    epsilon: float
    rule: str
    dp_gd_T: float
    dp_newton_T: float
    at_end: str
    iterations: float
    shape: float
    equal_T: float  # the shortest T tried of DP-GD whose mean is at or below DP-Newton's; NaN where none is
    dp_gd_excess: float
    dp_newton_excess: float
    dp_gd_seconds: float
    dp_newton_seconds: float
    ratio: float
    cost: float
    published_ratio: float
    published_shape: float


@memoised
def timed_ratios(context: Context, name: str) -> pd.DataFrame:
    """A row per (problem, ε, rule) with rows of both methods: T, iterations, seconds, cost, and what is published."""
    published = context.experiment.published()["table1"]
    lines = []
    for problem in context.problems(FIGURE[name]):
        each = {method: an_iteration(context, name, problem, method) for method in ("dp-gd", NEWTON)}
        theirs = dict(zip(published["epsilon"], published["ratio"][problem], strict=True))
        for rule in (PUBLISHED, LONGER, PROVEN):
            own = {e: one for e in published["epsilon"] if (one := _tuned_pair(context, name, rule, problem, e))}
            for epsilon, one in own.items():
                gd, newton = one["dp_gd_T"] * each["dp-gd"], one["dp_newton_T"] * each[NEWTON]
                lines.append({"problem": problem, "epsilon": epsilon, "rule": rule.name, **one,
                              "shape": one["dp_gd_T"] / own[1.0]["dp_gd_T"] if 1.0 in own else np.nan,
                              "dp_gd_seconds": gd, "dp_newton_seconds": newton, "ratio": gd / newton,
                              "cost": each[NEWTON] / each["dp-gd"], "published_ratio": theirs[epsilon],
                              "published_shape": theirs[epsilon] / theirs[1.0]})  # fmt: skip
    return pd.DataFrame(lines, columns=Timed._fields)


def an_iteration(context: Context, name: str, problem: str, method: str) -> float:
    """Median seconds of an iteration of the runs that the table times today; NaN without any.

    The same at any T and ε. Runs timed for another table, or at a T that was tuned before, are not among them.
    """
    timed = context.rows(name, problem=problem, algorithm=method).query("timed > 0")
    return float((timed["seconds"].astype(float) / timed["T"].astype(float)).median())


def _tuned_pair(context: Context, name: str, rule: TimingRule, problem: str, epsilon: float) -> dict[str, Any] | None:
    rows = rows_under(context, name, rule, problem, epsilon)
    # Both methods at the best T of the same rows, as the ratio is of two tuned methods.
    best = tuned(rows).drop_duplicates("algorithm").set_index("algorithm")
    if not {"dp-gd", NEWTON} <= set(best.index):
        return None
    gd, newton = best.loc["dp-gd"], best.loc[NEWTON]
    losses = select(rows, algorithm="dp-gd").groupby("T")["excess"].mean()
    return {
        "dp_gd_T": gd["T"],
        "dp_newton_T": newton["T"],
        "at_end": gd["at_end"] if gd["T"] < rule.cap else "cap",
        "iterations": gd["T"] / newton["T"],
        "equal_T": float(losses.index[losses <= newton["mean"]].min()),
        "dp_gd_excess": gd["mean"],
        "dp_newton_excess": newton["mean"],
    }


RESAMPLES = 100  # of the seeds that T is chosen on


@memoised
def drawn_T(context: Context, name: str, rule: TimingRule, problem: str, epsilon: float) -> dict[str, np.ndarray]:
    """By method: (RESAMPLES,) the T that has the lowest mean on half of the seeds, drawn with replacement."""
    rows = rows_under(context, name, rule, problem, epsilon)
    rows = rows[outcomes.has_result(rows["status"])]
    chosen = {}
    # Each method by itself: their seeds are drawn apart, as their noise is.
    for method in ("dp-gd", NEWTON):
        own = select(rows, algorithm=method)
        table = own.assign(excess=excess(own)).pivot_table(index="seed", columns="T", values="excess")
        half = max(1, len(table) // 2)
        draws = np.random.Generator(np.random.PCG64DXSM(0)).integers(len(table), size=(RESAMPLES, half))
        # Without a seed in the draw a T has no mean, and is not chosen.
        chosen[method] = np.array([table.iloc[draw].mean().idxmin() for draw in draws], dtype=float)
    return chosen


def _T_of_both(one: Timed) -> str:
    mark = {"largest": "↑", "smallest": "↓", "cap": " (cap)"}.get(one.at_end, "")
    return f"{one.dp_gd_T:.0f}{mark} / {one.dp_newton_T:.0f}"


def _times(ratio: float, form: str = ".3g") -> str:
    return "–" if np.isnan(ratio) else f"{ratio:{form}}×"


LINES: dict[str, tuple[TimingRule, Callable[[Timed], str]]] = {  # of the table → whose T, and the words of a cell
    "T of DP-GD / DP-Newton": (PUBLISHED, _T_of_both),
    "iterations": (PUBLISHED, lambda one: _times(one.iterations)),
    "iterations to an equal loss": (PUBLISHED, lambda one: _times(one.equal_T / one.dp_newton_T)),
    "seconds here": (PUBLISHED, lambda one: _times(one.ratio, ".2f")),
    "seconds, paper": (PUBLISHED, lambda one: _times(one.published_ratio, ".2f")),
    "shape, ours": (PUBLISHED, lambda one: f"{one.shape:.2f}"),
    "shape, paper": (PUBLISHED, lambda one: f"{one.published_shape:.2f}"),
    "T to 10,000: iterations": (LONGER, lambda one: _times(one.iterations)),
    "proven ε: T": (PROVEN, _T_of_both),
    "proven ε: seconds": (PROVEN, lambda one: _times(one.ratio, ".2f")),
}


@PAPER.artefact("table1", name="table1")
@PAPER.artefact("table4", name="table4")
def run_time_ratios(context: Context, name: str) -> WithWords:
    """Iterations, seconds here and the shape within the data set, under the published rule and at a proven ε."""
    published = context.experiment.published()["table1"]
    table, epsilons = timed_ratios(context, name), published["epsilon"]
    february = any(block.accounting == FEBRUARY for block in context.blocks(name))
    rows, gaps = [], []
    for problem in context.problems(FIGURE[name]):
        here = {(one.rule, one.epsilon): one for one in frames.records(select(table, problem=problem), Timed)}
        own = [one for one in here.values() if one.rule == PUBLISHED.name]
        asked = [e for e in context.epsilons(FIGURE[name]) if e in epsilons and (PUBLISHED.name, e) not in here]
        # Without runs under February's ρ, the ε at which its root finder returns its start have no published column.
        asked = [e for e in asked if february or not floored(problem, e)]
        gaps += [context.gap(name, f"{problem} at ε = {e:g}") for e in asked]
        seconds = [one.dp_newton_seconds for one in own if not np.isnan(one.dp_newton_seconds)]
        beside = {
            "seconds here": [f"{end(seconds):.3g}" for end in (min, max)] if seconds else ["–", "–"],
            "seconds, paper": [f"{end:g}" for end in published["seconds"][problem]],
        }
        title = f", an iteration of DP-Newton costs {own[0].cost:.2g} of DP-GD's" if own else ""
        title = problem_title(problem) + title
        for line, (rule, show) in LINES.items():
            shown = [show(here[rule.name, e]) if (rule.name, e) in here else "–" for e in epsilons]
            rows.append([title, line, *shown, *beside.get(line, ["", ""])])
            title = ""
    header = ["data set", "", *[f"ε = {e:g}" for e in epsilons], "min s", "max s"]
    ratio = select(table, rule=PUBLISHED.name)["ratio"].dropna()
    return Table(pd.DataFrame(rows, columns=header), table, gaps), {
        "cap": CAP, "longer_cap": LONGER_CAP, "processors": processors(context, name), "found": bool(len(ratio)),
        **({"least": ratio.min(), "most": ratio.max()} if len(ratio) else {}),
    }  # fmt: skip
