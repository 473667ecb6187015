"""What the paper's tables leave open: β tuned with T, and three rules of reset."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from dpbench import frames
from dpbench.experiments.second_order.rows import NEWTON, PAPER, tuned
from dpbench.study.context import Context, select
from dpbench.study.output import Table, Words
from dpbench.study.paper import WithWords
from dpbench.study.statistics import means, plus_minus
from dpbench.study.style import look, problem_title
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
    data, asked = [], context.cells("beta")
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
        missing=lambda at: context.gap("beta", "{algorithm} on {problem} at ε = {epsilon:g}".format_map(at))
        if tuple(at.values()) in asked else "",  # the grid tries β in some of the cells alone
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
    radii = rows.get("set.reset", pd.Series("", rows.index, dtype=object))
    rows["way"] = radii.map(lambda one: one if isinstance(one, str) else "" if pd.isna(one) else f"{one:g}")
    tried = {(p, T) for block in context.blocks("reset") for p in block.problems for T in block.values("T")}
    rows = rows[pd.MultiIndex.from_frame(rows[["problem", "T"]]).isin(tried)]
    table = means(rows, ["problem", "epsilon", "T", "way"], median=("excess", "median"), largest=("excess", "max"))
    order = {"problem": context.problems("reset"), "way": [*RESETS]}
    table = table.sort_values(["problem", "T", "way"], key=lambda each: (
        each.map(order[str(each.name)].index) if each.name in order else each))  # fmt: skip
    columns: dict[str, Words] = {
        "data set": lambda one: problem_title(one["problem"]),
        "T": "{T:.0f}",
        "back to the start": lambda one: RESETS[one["way"]],
        "mean": lambda one: plus_minus(one["mean"], one["se"]),
        "median": "{median:.3g}",
        "largest": "{largest:.3g}",
        "seeds": "{seeds}",
    }
    return Table.of(frames.mappings(table), columns), {}
