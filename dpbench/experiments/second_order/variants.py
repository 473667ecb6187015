"""What the authors ran beside what the text says, β tuned, and our first reading of their data: marked variants."""

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
