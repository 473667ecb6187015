"""What the authors ran beside what the text says, β tuned, and our first reading of their data: marked variants."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from dpbench.experiments.second_order.rows import NEWTON, PAPER, VARIANTS, WithWords, at_zero, tuned
from dpbench.study.context import Context, select
from dpbench.study.output import Table
from dpbench.study.panels import Panels, curve
from dpbench.study.paper import Ends
from dpbench.study.statistics import means, plus_minus, span
from dpbench.study.style import GREY, look, problem_title
from dpbench.study.tuning import expand_settings


@PAPER.artefact("beta")
def beta(context: Context) -> WithWords:
    """What tuning β with T gains over β = 1, and whether DP-Newton then beats DP-GD."""
    tried = select(context.rows("beta"), timed=0)
    problems, variants, epsilons = context.problems("beta"), context.algorithms("beta"), context.epsilons("beta")
    fixed = select(context.rows("fig2", timed=0), epsilon=epsilons)
    # The same seeds for both, or the side with more of them would have the steadier mean.
    seeds = range(max((block.seeds for block in context.blocks("beta")), default=0))
    rows = pd.concat([fixed, tried]).drop_duplicates("key")
    rows = select(rows, seed=list(seeds), algorithm=["dp-gd", *variants])
    by = ["problem", "algorithm", "epsilon"]
    alone = tuned(select(rows, key=list(fixed["key"]))).set_index(by)
    chosen = expand_settings(tuned(select(rows, algorithm=variants))).set_index(by)
    there = set(zip(*(tried[name] for name in by), strict=True))
    data = []
    for at in itertools.product(problems, variants, epsilons):
        gd = (at[0], "dp-gd", at[2])
        if at in there and at in alone.index and gd in alone.index:
            one, base = chosen.loc[at, :], alone.loc[at, :]
            data.append(dict(zip(by, at, strict=True)) | {
                "beta": one["set.beta"], "T": one["T"], "excess": one["mean"], "se": one["se"], "beta_1_T": base["T"],
                "beta_1_excess": base["mean"], "dp_gd_excess": alone["mean"][gd]})  # fmt: skip
    table = pd.DataFrame(data)
    made = Table.crossed(
        table,
        [{"problem": problem, "algorithm": name} for problem in problems for name in variants],
        {"data set": lambda key: problem_title(key["problem"]) if key["algorithm"] == variants[0] else "",
         "": lambda key: look(key["algorithm"]).label},
        {f"ε = {e:g}": {"epsilon": e} for e in epsilons},
        lambda one: f"β = {one['beta']:g}, T = {one['T']:.0f}: {one['excess'] / one['beta_1_excess']:.2f}×",
        missing=lambda at: context.gap("beta", "{algorithm} on {problem} at ε = {epsilon:g}".format_map(at)),
        data=table,
    )  # fmt: skip
    if table.empty:
        return made, {"found": False, "gain": ""}
    clip, ratio = select(table, algorithm=NEWTON), np.exp(np.log(table["excess"] / table["beta_1_excess"]).mean())
    before, after = ((clip[name] < clip["dp_gd_excess"]).sum() for name in ("beta_1_excess", "excess"))
    values = {"count": len(table), "ratio": ratio, "before": before, "after": after, "of": len(clip)}
    return made, {"gain": PAPER.phrases["gain"].format_map(values), "ratio": ratio}


RESETS = {"": "none", "1000": "beyond ‖w‖ = 1000, a public radius", "optimum": "beyond 100‖w*‖ + 200, as published"}


@PAPER.artefact("reset")
def reset(context: Context) -> WithWords:
    """Means and medians at ε = 10 with and without a reset: one start thrown far off decides a mean."""
    plain = context.rows("fig2", timed=0, algorithm=NEWTON, epsilon=context.epsilons("reset"))
    rows = expand_settings(pd.concat([plain, context.rows("reset", timed=0)]))
    radii = rows.get("set.reset", pd.Series("", rows.index))
    rows["way"] = [
        one if isinstance(one, str) else f"{one:g}" if one == one and one is not None else "" for one in radii
    ]
    tried = {(p, T) for block in context.blocks("reset") for p in block.problems for T in block.values("T")}
    rows = rows[[at in tried for at in zip(rows["problem"], rows["T"], strict=True)]]
    table = means(rows, ["problem", "epsilon", "T", "way"], median=("excess", "median"), largest=("excess", "max"))
    lines, gaps, order = [], [], context.problems("reset").index
    for (problem, T), (way, words) in itertools.product(
        sorted(tried, key=lambda one: (order(one[0]), one[1])), RESETS.items()
    ):
        ends = Ends(table, "", "").matching(problem=problem, T=T, way=way)
        lines += [[problem_title(problem), f"{T}", words, str(end), f"{end['median']:.3g}", f"{end['largest']:.3g}",
                   str(end.seeds)] for end in ends]  # fmt: skip
        if not ends:
            gaps.append(context.gap("reset" if way else "fig2", f"{problem}, T = {T}, {words}"))
    header = ["data set", "T", "back to the start", "mean", "median", "largest", "seeds"]
    return Table(pd.DataFrame(lines, columns=header), "", table, gaps), {}


AMP_VARIANTS = {  # (fraction, smoothness, rows) → words
    ("", "", "divided"): "the published algorithm",
    (0.9, 0.25, "divided"): "ε_p/ε_obj = 0.9",
    (0.9, 1.0, "divided"): "and β = 1",
    (0.9, 1.0, "undivided"): "and rows before their division: as run, no guarantee",
}


@PAPER.artefact("aop")
def aop(context: Context) -> WithWords:
    """Each difference of the authors' AOP on top of the one before, at three ε."""
    problems, epsilons = context.problems("aop"), context.epsilons("aop")
    rows = pd.concat([context.rows("fig2", timed=0, algorithm="aop", epsilon=epsilons), context.rows("aop", timed=0)])
    rows = select(expand_settings(rows), problem=problems)
    settings = ["set.fraction", "set.smoothness", "set.rows"]
    for name, kind in zip(settings, (float, float, object), strict=True):
        rows[name] = rows.get(name, pd.Series(np.nan, rows.index)).astype(kind)
    table = means(rows.fillna({"set.rows": "divided"}), ["problem", "epsilon", *settings])
    known = table[settings].astype(object).where(table[settings].notna(), "").itertuples(index=False, name=None)
    made = Table.crossed(
        table.assign(run=[AMP_VARIANTS.get(one, "") for one in known]),
        [{"problem": problem, "run": words} for problem in problems for words in AMP_VARIANTS.values()],
        {"data set": lambda key: problem_title(key["problem"]), "run": "{run}"},
        {f"ε = {e:g}": {"epsilon": e} for e in epsilons},
        lambda one: plus_minus(one["mean"], one["se"]),
        missing=lambda at: context.gap("fig2" if at["run"] == AMP_VARIANTS["", "", "divided"] else "aop",
                                       "{problem} at ε = {epsilon:g}, {run}".format_map(at)),
        data=table,
    )  # fmt: skip
    return made, {}


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
