"""What the authors ran beside what the text says, β tuned, and our first reading of their data: marked variants."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpbench.experiments.second_order.rows import NEWTON, PAPER, VARIANTS, WithWords, at_zero, tuned
from dpbench.study.context import Context, select
from dpbench.study.output import Table
from dpbench.study.panels import Panels, curve
from dpbench.study.statistics import means, plus_minus, span
from dpbench.study.style import GREY, look, problem_title
from dpbench.study.tuning import expand_settings


@PAPER.artefact("beta")
def beta(context: Context) -> WithWords:
    """What tuning β with T gains over β = 1, and whether DP-Newton then beats DP-GD."""
    tried = select(context.rows("beta"), timed=0)
    fixed = select(context.rows("fig2", timed=0), epsilon=context.epsilons("beta"))
    rows = pd.concat([fixed, tried]).drop_duplicates("key")
    seeds = range(max((block.seeds for block in context.blocks("beta")), default=0))
    variants = context.algorithms("beta")
    rows = select(rows, seed=list(seeds), algorithm=["dp-gd", *variants])
    by = ["problem", "algorithm", "epsilon"]
    alone = tuned(select(rows, key=list(fixed["key"]))).set_index(by)
    at_settings = expand_settings(tuned(select(rows, algorithm=variants))).set_index(by)
    lines, data, gaps = [], [], []
    epsilons = context.epsilons("beta")
    for problem in context.problems("beta"):
        for algorithm in variants:
            cells = []
            for epsilon in epsilons:
                at = (problem, algorithm, epsilon)
                there = not select(tried, problem=problem, algorithm=algorithm, epsilon=epsilon).empty
                if not there or at not in alone.index or (problem, "dp-gd", epsilon) not in alone.index:
                    cells.append("–")
                    gaps.append(context.gap("beta", f"{algorithm} on {problem} at ε = {epsilon:g}"))
                    continue
                one, base, gd = at_settings.loc[at, :], alone["mean"][at], alone["mean"][problem, "dp-gd", epsilon]
                cells.append(f"β = {one['set.beta']:g}, T = {one['T']:.0f}: {one['mean'] / base:.2f}×")
                data.append(dict(zip(by, at, strict=True)) | {"beta": one["set.beta"], "T": one["T"],
                            "excess": one["mean"], "se": one["se"], "beta_1_T": alone["T"][at],
                            "beta_1_excess": base, "dp_gd_excess": gd})  # fmt: skip
            lines.append([problem_title(problem) if algorithm == variants[0] else "", look(algorithm).label, *cells])
    table = pd.DataFrame(data)
    header = ["data set", "", *[f"ε = {e:g}" for e in epsilons]]
    return Table(pd.DataFrame(lines, columns=header), "", table, gaps), {
        "gain": _beta_told(table),
        "found": bool(len(table)),
        **({"ratio": _beta_ratio(table)} if len(table) else {}),
    }


def _beta_ratio(table: pd.DataFrame) -> float:
    return float(np.exp(np.log(table["excess"] / table["beta_1_excess"]).mean()))


def _beta_told(table: pd.DataFrame) -> str:
    if table.empty:
        return ""
    one = select(table, algorithm=NEWTON)
    before, after = ((one[name] < one["dp_gd_excess"]).sum() for name in ("beta_1_excess", "excess"))
    return (
        f"Over {len(table)} cells the geometric mean of the ratios is {_beta_ratio(table):.3g}. hess clip is below "
        f"DP-GD in "
        f"{before} of {len(one)} cells with β = 1, in {after} with β tuned."
    )


RESETS = {"": "none", "1000": "beyond ‖w‖ = 1000, a public radius", "optimum": "beyond 100‖w*‖ + 200, as published"}


@PAPER.artefact("reset")
def reset(context: Context) -> WithWords:
    """Means and medians at ε = 10 with and without a reset: one start thrown far off decides a mean."""
    plain = context.rows("fig2", timed=0, algorithm=NEWTON, epsilon=context.epsilons("reset"))
    rows = pd.concat([plain, context.rows("reset", timed=0)])
    rows = expand_settings(rows).assign(way="")
    if "set.reset" in rows:
        told = [
            f"{v:g}" if isinstance(v, float) and not np.isnan(v) else v if isinstance(v, str) else ""
            for v in rows["set.reset"]
        ]
        rows["way"] = told
    tried = {(p, T) for block in context.blocks("reset") for p in block.problems for T in block.values("T")}
    rows = rows[[at in tried for at in zip(rows["problem"], rows["T"], strict=True)]]
    table = means(rows, ["problem", "epsilon", "T", "way"], median=("excess", "median"), largest=("excess", "max"))
    lines, gaps = [], []
    for problem, T in sorted(tried, key=lambda one: (context.problems("reset").index(one[0]), one[1])):
        for way, words in RESETS.items():
            one = select(table, problem=problem, T=T, way=way)
            if one.empty:
                gaps.append(context.gap("reset" if way else "fig2", f"{problem}, T = {T}, {words}"))
                continue
            (row,) = one.to_dict("records")
            lines.append([problem_title(problem), f"{T}", words, plus_minus(row["mean"], row["se"]),
                          f"{row['median']:.3g}", f"{row['largest']:.3g}", str(row["seeds"])])  # fmt: skip
    header = ["data set", "T", "back to the start", "mean", "median", "largest", "seeds"]
    return Table(pd.DataFrame(lines, columns=header), "", table, gaps), {}


AMP_VARIANTS = {  # (fraction, smoothness, rows) → words
    (None, None, "divided"): "the published algorithm",
    (0.9, 0.25, "divided"): "ε_p/ε_obj = 0.9",
    (0.9, 1.0, "divided"): "and β = 1",
    (0.9, 1.0, "undivided"): "and rows before their division: as run, no guarantee",
}


@PAPER.artefact("aop")
def aop(context: Context) -> WithWords:
    """Each difference of the authors' AOP on top of the one before, at three ε."""
    epsilons = context.epsilons("aop")
    rows = pd.concat([context.rows("fig2", timed=0, algorithm="aop", epsilon=epsilons), context.rows("aop", timed=0)])
    rows = expand_settings(rows)
    for name in ("fraction", "smoothness", "rows"):
        rows[f"set.{name}"] = rows.get(f"set.{name}")
    rows = rows.astype({"set.fraction": float, "set.smoothness": float}).assign(
        **{"set.rows": rows["set.rows"].fillna("divided")}
    )
    rows = select(rows, problem=context.problems("aop"))
    by = ["problem", "epsilon", "set.fraction", "set.smoothness", "set.rows"]
    table = means(rows, by)
    lines, gaps = [], []
    for problem in context.problems("aop"):
        for (fraction, smoothness, seen), words in AMP_VARIANTS.items():
            cells = []
            for epsilon in epsilons:
                one = select(table, problem=problem, epsilon=epsilon)
                one = one[one["set.rows"].eq(seen)]
                for name, value in (("set.fraction", fraction), ("set.smoothness", smoothness)):
                    one = one[one[name].isna() if value is None else one[name].eq(value)]
                cells.append(plus_minus(one["mean"].iloc[0], one["se"].iloc[0]) if len(one) else "–")
                if one.empty:
                    gaps.append(context.gap("aop" if fraction else "fig2", f"{problem} at ε = {epsilon:g}, {words}"))
            lines.append([problem_title(problem), words, *cells])
    header = ["data set", "run", *[f"ε = {e:g}" for e in epsilons]]
    return Table(pd.DataFrame(lines, columns=header), "", table, gaps), {}


@PAPER.artefact("standardised")
def standardised(context: Context) -> WithWords:
    """Best excess loss against ε on the standardised data sets; no published value is of them."""
    rows = context.rows("standardised", timed=0)
    table, zero = tuned(rows), at_zero(rows)
    problems = context.problems("standardised")
    page = Panels(context, "standardised", len(problems), columns=len(problems), size=(3.4, 2.7), room=0.8)
    for axis, problem in page.over(problems, title=lambda one: f"{problem_title(one)}, standardised"):
        panel = select(table, problem=problem)
        if page.empty(axis, panel, problem, problem):
            continue
        for algorithm in context.algorithms("standardised"):
            line = select(panel, algorithm=algorithm)
            curve(axis, line[np.isfinite(line["mean"])], "epsilon", look(algorithm))
        axis.axhline(zero.get(problem, np.nan), color=GREY, lw=1, ls=":", label="w = 0 (no data used)")
    page.label("ε", "excess loss", scale="log")
    newton, gd = (
        select(table, algorithm=list(names)).groupby(["problem", "epsilon"])["mean"].min()
        for names in (VARIANTS, ["dp-gd"])
    )
    won = int((newton < gd.reindex(newton.index)).sum())
    return page.figure("", table.drop(columns=["settings"])), {
        "seeds": span(table["seeds"]),
        "won": won,
        "cells": len(newton),
        "found": bool(len(newton)),
    }
