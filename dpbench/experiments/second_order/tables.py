"""The tables of second_order but those of run times: best T, hyperparameters, data sets, memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dpbench import datasets
from dpbench.experiments.second_order.rows import NEWTON, PAPER, VARIANTS, WithWords, seconds_per_iteration, tuned
from dpbench.study.context import Context, select
from dpbench.study.output import Table, Words
from dpbench.study.style import look, problem_title
from dpbench.study.tuning import expand_settings

LONGER, SEEDS = 3, 5  # the next T of a grid, and the seeds of its long runs
MIB = 2**20
WITHIN = 1.7  # a published difference of memory matches ours within this factor
PARAMETERS = {  # of Table 2: their letters, and what they are
    "theta": ("θ", "share of ρ for the direction (trace included)"),
    "gamma": ("γ", "share of that for the trace"),
    "beta": ("β", "coefficient of λ₀"),
    "runs": ("", "independent runs"),
}
MARK = {"": "", "smallest": "↓", "largest": "↑"}
# Whose iterations tell what those of a method take that was not timed, and how they compare.
LIKE = {
    **dict.fromkeys(VARIANTS, (NEWTON, "")),  # the same work
    "damped-newton": (NEWTON, "≈ "),  # a Hessian and an eigendecomposition, too
    "dp-sgd": ("dp-gd", "≤ "),  # a sample of the rows, where it takes all
}


@PAPER.artefact("best_T")
def best_T(context: Context) -> WithWords:
    """The T behind every point of Figs. 2 and 6; an arrow marks a T at an end of its grid."""
    table = tuned(context.rows("best_T", timed=0))
    order = {"problem": context.problems("best_T"), "algorithm": context.algorithms("best_T")}
    table = table.sort_values(list(order), key=lambda column: column.map(order[str(column.name)].index), kind="stable")
    epsilons = sorted(table["epsilon"].unique())
    rows = []
    for key, group in table.groupby(["problem", "algorithm"], sort=False):
        problem, algorithm = map(str, key)
        ends = zip(group["epsilon"], group["T"], group["at_end"], strict=True)
        told = {epsilon: f"{T:.0f}{MARK[at_end]}" for epsilon, T, at_end in ends}
        line = [problem_title(problem), look(algorithm).legend, *[told.get(e, "–") for e in epsilons]]
        rows.append([*line, _to_go_on(context, problem, algorithm, group)])
    header = ["data set", "algorithm", *[f"ε = {e:g}" for e in epsilons], "to go on"]
    return Table(pd.DataFrame(rows, columns=header), "", table.drop(columns=["settings"])), {
        "longer": LONGER,
        "seeds": SEEDS,
    }


def _to_go_on(context: Context, problem: str, algorithm: str, cells: pd.DataFrame) -> str:
    """What the next T costs where the best is the largest tried; "" where none is."""
    longest = cells.loc[cells["at_end"] == "largest", "T"]
    if longest.empty:
        return ""
    own = seconds_per_iteration(context, problem, algorithm) if algorithm not in VARIANTS else np.nan
    like, sign = (algorithm, "") if not np.isnan(own) else LIKE.get(algorithm, (algorithm, ""))
    minutes = LONGER * SEEDS * longest.sum() * seconds_per_iteration(context, problem, like) / 60
    return "not timed" if np.isnan(minutes) else f"{sign}{minutes:.2g} min"


@PAPER.artefact("table2")
def table2(context: Context) -> WithWords:
    """DP-Newton's hyperparameters: the paper's, and those of the rows under this profile."""
    theirs, ours = hyperparameters(context)
    rows = [
        [letter, words, *(", ".join(f"{value:g}" for value in of[name]) or "–" for of in (theirs, ours))]
        for name, (letter, words) in PARAMETERS.items()
    ]
    rows.append(["T", "iterations", "tuned", ", ".join(f"{T:g}" for T in ours["T"]) or "–"])
    return Table(pd.DataFrame(rows, columns=["parameter", "meaning", "paper", "here"]), ""), {}


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
    return Table(pd.DataFrame(rows, columns=header), "", gaps=gaps), {}


@PAPER.artefact("c7")
def c7(context: Context) -> WithWords:
    """App. C.7: measured peak memory of the eigenvalue modification."""
    published = context.experiment.published()["memory"]
    rows = context.rows("c7")
    data: list[dict[str, Any]] = []
    gaps = []
    for problem in context.problems("c7"):
        for modification in ("clip", "add"):
            measured = select(rows, problem=problem, algorithm=f"dp-newton-hess-{modification}")
            measured = measured.dropna(subset=["measured"])
            if measured.empty:
                gaps.append(context.gap("c7", problem))
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
    shown = Table.of(data, columns, "", gaps, unsaved=("extra", "process", "paper"))  # told beside the numbers
    peaks = pd.DataFrame(data, columns=["problem", "modification", "extra_mib"]).pivot_table(
        index="problem", columns="modification", values="extra_mib")  # fmt: skip
    both = {"clip", "add"} <= set(peaks)
    ratio = (peaks["clip"] / peaks["add"]).dropna() if both else pd.Series([np.nan])
    ends = " to ".join(dict.fromkeys(f"{end:.2g}" for end in (ratio.min(), ratio.max())))
    return shown, {
        "runs": max((one["runs"] for one in data), default=0),
        "difference": _difference([one for one in data if one["runs"]], published),
        "found": both,
        "ends": ends,
    }


def whole_process(rows: pd.DataFrame) -> pd.Series:
    """Mebibytes of the whole process, which the rows' notes have in bytes."""
    notes = rows["notes"].astype("string").str.extract(r"(\d+)", expand=False)
    return notes.astype(float).dropna() / MIB


def _difference(data: list[dict[str, Any]], published: dict[str, float]) -> str:
    """Whether the published difference between the data sets is that of ours, within a factor `WITHIN`."""
    clip = {row["problem"]: row for row in data if row["modification"] == "clip"}
    if not set(published) <= set(clip):
        return ""
    small, large = sorted(published, key=lambda problem: published[problem])
    theirs = published[large] - published[small]
    ours = {name: clip[large][name] - clip[small][name] for name in ("extra_mib", "process_mib")}
    match = {name: theirs / WITHIN <= mib <= theirs * WITHIN for name, mib in ours.items()}
    return PAPER.phrases["difference"].format(
        large=problem_title(large), small=problem_title(small), theirs=theirs, within=WITHIN, **ours,
        extra="a match" if match["extra_mib"] else "no match",
        process="a match" if match["process_mib"] else "no match",
    )  # fmt: skip


def _median_and_range(values: Any) -> str:
    if values.empty:
        return "–"
    return f"{values.median():.1f} MiB [{values.min():.1f}, {values.max():.1f}]"
