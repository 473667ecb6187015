"""How T is tuned decides the paper's first claim: DP-Newton against DP-GD under several rules. Not in the paper."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd

from dpbench import frames
from dpbench.experiments.second_order.rows import NEWTON, PAPER, VARIANTS, both
from dpbench.experiments.second_order.run_times import CAP, FEBRUARY, an_iteration, floored
from dpbench.study.context import Context, select
from dpbench.study.output import Table
from dpbench.study.paper import WithWords
from dpbench.study.statistics import ProblemEpsilon
from dpbench.study.style import look
from dpbench.study.tuning import best

COMPARISON = [*ProblemEpsilon._fields]
CAPS = (10, 30, 100, 300, 1000, 3000, CAP, 10_000)
FOUR = "best of the four"
PASSES = 2  # over the data, an iteration of DP-Newton: gradient and curvature


class TuningRule(NamedTuple):
    """A way to give T to DP-GD: a name, and the largest T it may have beside a tuned run of DP-Newton.

    cap: (T of DP-Newton, what its iteration costs in DP-GD's) by comparison; released: with February's conversion of ε.
    """

    name: str
    cap: Callable[[pd.Series, pd.Series], pd.Series | float]
    released: bool = False


def _up_to(cap: float) -> Callable[[pd.Series, pd.Series], float]:
    return lambda T, cost: cap


RULES = (
    *(TuningRule(f"T of DP-GD up to {cap:,}", _up_to(cap)) for cap in CAPS),
    TuningRule("T of DP-GD as long as it helps", _up_to(np.inf)),
    TuningRule(f"published: T of DP-GD up to {CAP:,}, February's ρ", _up_to(CAP), released=True),
    TuningRule("equal T", lambda T, cost: T),
    TuningRule("equal passes over the data", lambda T, cost: PASSES * T),
    TuningRule("equal seconds", lambda T, cost: T * cost),
)


def wins(context: Context) -> pd.DataFrame:
    """Comparisons won by DP-Newton, `won` of `cells`: a row per rule and `variant`, or for the best of the four.

    DP-Newton has its best T; DP-GD the best T that the rule allows (the smallest tried where the rule allows none).
    Both are chosen on one half of the seeds and scored on the others.
    """
    scores = {False: _scores(both(context)), True: _scores(as_published(context))}
    parts = [pd.DataFrame(columns=["rule", "variant", "won", "cells"])]
    for rule in RULES:
        newton, gd = scores[rule.released]
        if newton.empty:
            continue
        costs = {problem: _cost(context, problem) for problem in set(newton["problem"])}
        cap = rule.cap(newton["T"], newton["problem"].map(costs))
        # A rule that allows no T that was tried leaves DP-GD the smallest, which is more than its due:
        # no win of DP-Newton comes from where our grid of T begins.
        at = newton.assign(cap=np.maximum(cap, newton["least"])).dropna(subset=["cap"]).sort_values("cap")
        pairs = pd.merge_asof(at, gd, left_on="cap", right_on="up_to", by=COMPARISON)
        won = pairs["mean"].lt(pairs["gd"]).groupby(pairs["variant"]).agg(won="sum", cells="size")
        parts.append(won.reset_index().assign(rule=rule.name))
    return pd.concat(parts, ignore_index=True)


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


def _cost(context: Context, problem: str) -> float:
    table = "table1" if problem in context.problems("fig2") else "table4"
    return an_iteration(context, table, problem, NEWTON) / an_iteration(context, table, problem, "dp-gd")


def _scores(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """DP-Newton at its best T by `variant`, where DP-GD has rows, and DP-GD's best T `up_to` each T, `gd`.

    least: the least T of DP-GD that was tried there.
    """
    rows = rows[rows["excess"].notna()]
    gd, newton = select(rows, algorithm="dp-gd"), select(rows, algorithm=VARIANTS)
    # The best of fewer than four would be compared on some data and the best of four on others.
    of_four = newton[newton.groupby(COMPARISON)["algorithm"].transform("nunique").eq(len(VARIANTS))]
    own, four = best(newton, [*COMPARISON, "algorithm"], split="halves"), best(of_four, COMPARISON, split="halves")
    table = pd.concat([own.assign(variant=own["algorithm"]), four.assign(variant=FOUR)]).astype({"T": float})
    tried = sorted(gd["T"].astype(float).unique())
    tables = [best(gd[gd["T"] <= T], COMPARISON, split="halves").assign(up_to=T) for T in tried]
    scored = pd.concat([best(gd.iloc[:0], COMPARISON).assign(up_to=0.0), *tables])[[*COMPARISON, "up_to", "mean"]]
    least = gd.groupby(COMPARISON)["T"].min().astype(float).rename("least")
    return table.join(least, on=COMPARISON, how="inner"), scored.rename(columns={"mean": "gd"}).sort_values("up_to")


@PAPER.artefact("tuning_rules")
def tuning_rules(context: Context) -> WithWords:
    """A row per rule, a column per variant and for the best of the four."""
    table = wins(context)
    made = Table.crossed(
        table,
        [{"rule": rule.name} for rule in RULES],
        {"rule for DP-GD": "{rule}"},
        {**{look(name).label: {"variant": name} for name in VARIANTS}, FOUR: {"variant": FOUR}},
        lambda one: f"{one['won']} of {one['cells']} ({one['won'] / one['cells']:.0%})",
        data=table,
    )
    told = {one["rule"]: f"{one['won']} of {one['cells']}" for one in frames.mappings(select(table, variant=NEWTON))}
    short, long = (told.get(RULES[i].name, "") for i in (0, len(CAPS)))
    none = "" if len(table) else PAPER.phrases["no_comparisons"] + " "
    return made, {
        "found": bool(short and long), "short": short, "long": long,
        "counted": none or PAPER.phrases["counted"] + " ",
    }  # fmt: skip
