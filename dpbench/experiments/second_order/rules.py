"""How T is tuned decides the paper's first claim: DP-Newton against DP-GD under several rules. Not in the paper."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpbench import frames
from dpbench.experiments.second_order.rows import NEWTON, PAPER, VARIANTS, WithWords, both
from dpbench.experiments.second_order.run_times import CAP, FEBRUARY, an_iteration, floored
from dpbench.study.context import Context, memoised, select
from dpbench.study.output import Table
from dpbench.study.statistics import ProblemEpsilon
from dpbench.study.style import look
from dpbench.study.tuning import best

CELL = [*ProblemEpsilon._fields]
CAPS = (10, 30, 100, 300, 1000, 3000, CAP, 10_000)
FOUR = "best of the four"
PASSES = 2  # over the data, an iteration of DP-Newton: gradient and curvature


AS_PUBLISHED = f"published: T of DP-GD up to {CAP:,}, February's ρ"
Costs = Callable[[str], float]  # problem → iterations of DP-GD in the seconds of one of DP-Newton's (hess, clip)


class TuningRule(NamedTuple):
    """A way to give T to DP-GD: a name, and the largest T it may have beside a tuned run of DP-Newton."""

    name: str
    cap: Callable[[Costs, str, float], float]  # (costs, problem, T of DP-Newton)
    exactly: bool = False  # the largest T up to the cap, not the best
    released: bool = False  # with February's conversion of ε, for both methods


def _costs(context: Context, problem: str) -> float:
    table = "table1" if problem in context.problems("fig2") else "table4"
    return an_iteration(context, table, problem, NEWTON) / an_iteration(context, table, problem, "dp-gd")


def _fixed(cap: float) -> Callable[[Costs, str, float], float]:
    return lambda costs, problem, T: cap


RULES = (
    *(TuningRule(f"T of DP-GD up to {cap:,}", _fixed(cap)) for cap in CAPS),
    TuningRule("T of DP-GD as long as it helps", _fixed(np.inf)),
    TuningRule("T of DP-GD = 100, as released", _fixed(100), exactly=True),
    TuningRule(AS_PUBLISHED, _fixed(CAP), released=True),
    TuningRule("equal T", lambda costs, problem, T: T),
    TuningRule("equal passes over the data", lambda costs, problem, T: PASSES * T),
    TuningRule("equal seconds", lambda costs, problem, T: T * costs(problem)),
)


@memoised
def wins(context: Context) -> pd.DataFrame:
    """Cells won by DP-Newton: a row per rule, with two columns per variant and for the best of the four.

    DP-Newton has its best T; DP-GD the best T that the rule allows (the smallest tried where the rule allows none).
    Both are chosen on one half of the seeds and scored on the others.
    """
    scores = {False: _scores(both(context)), True: _scores(as_published(context))}
    costs = functools.cache(functools.partial(_costs, context))
    return pd.DataFrame([_wins(costs, rule, scores[rule.released]) for rule in RULES])


def as_published(context: Context) -> pd.DataFrame:
    """The rows of DP-GD and hess clip that the published tables would have: those of February's ρ where it has its own.

    One calibration stands for every ε at which the root finder returns its start.
    """
    plain = select(context.rows("fig2", timed=0), algorithm=["dp-gd", NEWTON])
    february = context.rows("table1", timed=0, accounting=FEBRUARY)
    parts = [plain.iloc[:0]]
    for (problem, epsilon), rows in frames.groups(plain, ProblemEpsilon):
        own = floored(problem, epsilon)
        parts.append(select(february, problem=problem).assign(epsilon=epsilon) if own else rows)
    return pd.concat(parts, ignore_index=True)


class Best(NamedTuple):
    """A method's best T on a cell, and its held-out score there."""

    T: float
    mean: float


class Scores(NamedTuple):
    """By cell: DP-Newton at its best T, and DP-GD by the largest T it may have."""

    newton: dict[str, dict[ProblemEpsilon, Best]]
    tried: dict[ProblemEpsilon, np.ndarray]  # DP-GD's T
    up_to: dict[int, dict[ProblemEpsilon, Best]]  # the best T up to this one
    only: dict[int, dict[ProblemEpsilon, Best]]  # this T


def _scores(rows: pd.DataFrame) -> Scores:
    def scored(rows: pd.DataFrame) -> dict[ProblemEpsilon, Best]:
        table = best(rows, CELL, split="halves")
        return dict(zip(frames.records(table, ProblemEpsilon), frames.records(table, Best), strict=True))

    gd = select(rows[rows["excess"].notna()], algorithm="dp-gd")
    newton = select(rows, algorithm=VARIANTS)
    # The best of fewer than four would be compared in some cells and the best of four in others.
    whole = newton.groupby(CELL)["algorithm"].nunique().eq(len(VARIANTS))
    at = pd.MultiIndex.from_frame(newton[CELL])
    of_four = newton[whole.reindex(at).fillna(False).to_numpy(dtype=bool)]
    tables = {name: scored(select(newton, algorithm=name)) for name in VARIANTS} | {FOUR: scored(of_four)}
    return Scores(
        tables,
        {cell: one["T"].unique() for cell, one in frames.groups(gd, ProblemEpsilon)},
        {T: scored(gd[gd["T"] <= T]) for T in gd["T"].unique()},
        {T: scored(gd[gd["T"] == T]) for T in gd["T"].unique()},
    )


def _wins(costs: Costs, rule: TuningRule, scores: Scores) -> dict[str, Any]:
    """The row of one rule: cells won, and of how many: with rows of DP-GD and the variant, and a T by the rule."""
    row: dict[str, Any] = {"rule": rule.name}
    for name in (*VARIANTS, FOUR):
        outcomes = []
        for cell, tried in scores.tried.items() if name in scores.newton else ():
            one = scores.newton[name].get(cell)
            if one is None:
                continue
            cap = rule.cap(costs, cell.problem, one.T)
            if not np.isnan(cap):
                gd = scores.only if rule.exactly else scores.up_to
                outcomes.append(one.mean < gd[tried[tried <= max(cap, tried.min())].max()][cell].mean)
        row |= {name: sum(outcomes), _of(name): len(outcomes)}
    return row | {"cells": row[_of(NEWTON)]}


def _of(name: str) -> str:
    """The column with the number of cells that a variant is compared in."""
    return f"{name}: cells"


@PAPER.artefact("tuning_rules")
def tuning_rules(context: Context) -> WithWords:
    """A row per rule, a column per variant and for the best of the four."""
    table = wins(context)
    shown = pd.DataFrame({"rule for DP-GD": table["rule"]})
    for name in (*VARIANTS, FOUR):
        title = name if name == FOUR else look(name).label
        shown[title] = [
            f"{won} of {cells} ({won / cells:.0%})" if cells else "–"
            for won, cells in zip(table[name], table[_of(name)], strict=True)
        ]
    short, long = (table.set_index("rule").loc[RULES[i].name] for i in (0, len(CAPS)))
    found = bool(short[_of(NEWTON)] and long[_of(NEWTON)])
    none = "" if table["cells"].max() else PAPER.phrases["no_cells"] + " "
    return Table(shown, "", table), {
        "found": found, "counted": none or PAPER.phrases["counted"] + " ",
        "short": f"{short[NEWTON]} of {short[_of(NEWTON)]}", "long": f"{long[NEWTON]} of {long[_of(NEWTON)]}",
    }  # fmt: skip
