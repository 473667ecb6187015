"""Run time to an equal excess loss, beside Table 1's, each of whose sides stops at a loss of its own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from dpbench import frames
from dpbench.experiments.second_order.convergence import mean_curves, traced
from dpbench.experiments.second_order.first_figure import PROBLEM
from dpbench.experiments.second_order.run_times import PUBLISHED, THEIR_COST, Timed, cells, rows_under
from dpbench.experiments.second_order.tuned import NEWTON, RULE
from dpbench.study.context import Context, kept, select
from dpbench.study.declare import artefact
from dpbench.study.output import Table
from dpbench.study.style import problem_title


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


@kept
def equal(context: Context) -> pd.DataFrame:
    """A row per cell of Table 1: DP-Newton's T and loss, and the shortest T tried of DP-GD whose mean is as low.

    equal_T: NaN where no T comes down to it; lowest_T, lowest: DP-GD's lowest mean over the T of the published rule.
    """
    found = []
    for one in frames.records(select(cells(context, "table1"), rule=PUBLISHED.name), Timed):
        rows = rows_under(context, "table1", PUBLISHED, one.problem, one.epsilon)
        means = select(rows, algorithm="dp-gd").groupby("T")["excess"].mean().dropna().sort_index()
        reached = means.index[means <= one.dp_newton_excess]
        equal_T = float(reached[0]) if len(reached) else np.nan
        found.append(Equal(one.problem, one.epsilon, one.dp_newton_T, one.dp_newton_excess, equal_T,
                           float(means.index[int(means.argmin())]), float(means.min()), one.dp_gd_T, one.cost,
                           one.published_ratio))  # fmt: skip
    return pd.DataFrame(found, columns=Equal._fields)


@artefact("equal_loss", "Run time of DP-GD over DP-Newton to an equal excess loss")
def equal_loss(context: Context) -> Table:
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
    caption = (
        "The shortest T of DP-GD that is as low as DP-Newton (hess, clip) at its best, over DP-Newton's T. The "
        "published ratios compare full runs, each to its own best loss. none: no T reaches it (lowest mean)."
    )
    method = (
        "Equal loss: of the T that were tried, we take the shortest at which DP-GD's mean excess loss is at or below "
        f"that of DP-Newton at its best T. We divide its iterations by {theirs:g}, the cost of an iteration of "
        "DP-Newton on the paper's clock (Fig. 1, covertype), and by the cost measured here. The table also has the "
        "iterations of Table 1, where each method runs to its own best loss, and the published ratio. "
        f"{_on_the_way(context)}The rule for T is the published one, as in Table 1. {RULE}; DP-GD's means are over "
        "all seeds."
    )
    header = ["data set", "ε", "T of DP-Newton", "its excess loss", "DP-GD's T to it", "iterations", "at their cost",
              "at ours", "own losses: iterations", "paper, own losses"]  # fmt: skip
    gaps = [] if lines else [context.gap("table1", "Table 1")]
    return Table(pd.DataFrame(lines, columns=header), caption, table, gaps, method=method, finding=_finding(table))


def _finding(table: pd.DataFrame) -> str:
    """What the one published ratio that the paper's first page has comes to at an equal loss."""
    one = select(table, problem=PROBLEM, epsilon=1.0)
    if one.empty or one["equal_T"].isna().all():
        return ""
    cell = one.iloc[0]
    equal_T, own = (cell[name] / cell["dp_newton_T"] for name in ("equal_T", "own_T"))
    return (
        f"On covertype at ε = 1, one iteration of DP-Newton is worth {equal_T:.3g} of DP-GD's at equal loss, {own:.3g} "
        "at each one's best"
    )


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
