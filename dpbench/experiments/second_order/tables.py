"""The tables of second_order but run times: best T, hyperparameters, data sets, memory, tuned β and resets."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd

from dpbench import datasets, frames
from dpbench.experiments.second_order.rows import NEWTON, PAPER, tuned
from dpbench.study.context import Context, select
from dpbench.study.output import Table, Words
from dpbench.study.paper import WithWords
from dpbench.study.statistics import means, plus_minus
from dpbench.study.style import look, problem_title
from dpbench.study.tuning import expand_settings

MIB = 2**20
PARAMETERS = {  # of Table 2: their letters, and what they are
    "theta": ("θ", "share of ρ for the direction (trace included)"),
    "gamma": ("γ", "share of that for the trace"),
    "beta": ("β", "coefficient of λ₀"),
    "runs": ("", "independent runs"),
}
MARK = {"": "", "smallest": "↓", "largest": "↑"}


@PAPER.artefact("best_T")
def best_T(context: Context) -> WithWords:
    """The T behind every point of Figs. 2 and 6; an arrow marks a T at an end of its grid."""
    table = tuned(context.rows("best_T", timed=0))
    there = set(zip(table["problem"], table["algorithm"], strict=True))
    keys = itertools.product(context.problems("best_T"), context.algorithms("best_T"))
    return Table.crossed(
        table,
        [{"problem": problem, "algorithm": name} for problem, name in keys if (problem, name) in there],
        {"data set": lambda key: problem_title(key["problem"]), "algorithm": lambda key: look(key["algorithm"]).legend},
        {f"ε = {e:g}": {"epsilon": e} for e in sorted(set(table["epsilon"]))},
        lambda one: f"{one['T']:.0f}{MARK[one['at_end']]}",
        data=table.drop(columns=["settings"]),
    ), {}


@PAPER.artefact("table2")
def table2(context: Context) -> WithWords:
    """DP-Newton's hyperparameters: the paper's, and those of the rows under this profile."""
    theirs, ours = hyperparameters(context)
    rows = [
        [letter, words, *(", ".join(f"{value:g}" for value in of[name]) or "–" for of in (theirs, ours))]
        for name, (letter, words) in PARAMETERS.items()
    ]
    rows.append(["T", "iterations", "tuned", ", ".join(f"{T:g}" for T in ours["T"]) or "–"])
    return Table(pd.DataFrame(rows, columns=["parameter", "meaning", "paper", "here"])), {}


def hyperparameters(context: Context) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """The published values by parameter, and those of the rows behind Fig. 2 and of the tuned β, with their T."""
    published = context.experiment.published()["table2"]
    rows = pd.concat([context.rows("table2"), context.rows("beta")])
    rows = expand_settings(rows[rows["algorithm"].str.startswith("dp-newton-")])
    ours = {name: sorted(set(rows.get(f"set.{name}", ()))) for name in PARAMETERS}
    runs = [rows["seed"].nunique()] if len(rows) else []
    theirs = {name: np.atleast_1d(published[name]).tolist() for name in PARAMETERS}
    return theirs, ours | {"runs": runs, "T": sorted(set(rows["T"]))}


@PAPER.artefact("table3")
def table3(context: Context) -> WithWords:
    """The data sets: rows and columns as published and as prepared."""
    rows, gaps = [], []
    for problem, (n, d) in context.experiment.published()["table3"].items():
        spec = datasets.describe(problem)
        at_hand = datasets.available(problem)
        ours = f"{spec.rows:,} × {spec.columns:,}"
        rows.append([problem_title(problem), f"{n:,} × {d:,}", ours, "yes" if at_hand else "no"])
        if not at_hand:
            gaps.append(f"{problem}: dpbench fetch {problem}")
    header = ["data set", "paper", "here", "fetched"]
    return Table(pd.DataFrame(rows, columns=header), gaps=gaps), {}


@PAPER.artefact("c7")
def c7(context: Context) -> WithWords:
    """App. C.7: measured peak memory of the eigenvalue modification."""
    published, rows = context.experiment.published()["memory"], context.rows("c7").dropna(subset=["measured"])
    data, gaps = list[dict[str, Any]](), list[str]()
    for problem, modification in itertools.product(context.problems("c7"), ("clip", "add")):
        measured = select(rows, problem=problem, algorithm=f"dp-newton-hess-{modification}")
        gaps += [] if len(measured) else [context.gap("c7", problem)]
        extra, process = measured["measured"] / MIB, whole_process(measured)
        data.append({"problem": problem, "d": datasets.describe(problem).columns, "modification": modification,
                     "extra_mib": extra.median(), "process_mib": process.median(), "runs": len(measured),
                     "extra": _median_and_range(extra), "process": _median_and_range(process),
                     "paper": f"{published[problem]:g} MiB" if modification == "clip" else ""})  # fmt: skip
    columns: dict[str, Words] = {
        "data set": lambda one: problem_title(one["problem"]),
        "d": "{d}",
        "modification": "{modification}",
        "on top": "{extra}",
        "whole process": "{process}",
        "paper": "{paper}",
    }
    shown = Table.of(data, columns, gaps, unsaved=("extra", "process", "paper"))  # told beside the numbers
    peaks = pd.DataFrame(data).pivot(index="problem", columns="modification", values="extra_mib")
    ratio = (peaks["clip"] / peaks["add"]).dropna()
    ends = " to ".join(dict.fromkeys(f"{end:.2g}" for end in (ratio.min(), ratio.max())))
    return shown, {"runs": max(one["runs"] for one in data), "found": bool(len(ratio)), "ends": ends}


def whole_process(rows: pd.DataFrame) -> pd.Series:
    """Mebibytes of the whole process, which the rows' notes have in bytes."""
    notes = rows["notes"].astype("string").str.extract(r"(\d+)", expand=False)
    return notes.astype(float).dropna() / MIB


def _median_and_range(values: Any) -> str:
    return f"{values.median():.1f} MiB [{values.min():.1f}, {values.max():.1f}]" if len(values) else "–"


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
    data, asked = [], context.combinations("beta")
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
        if tuple(at.values()) in asked else "",  # the grid tries β in some of them alone
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
