"""The tables of second_order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dpbench import datasets
from dpbench.experiments.second_order.tuned import NEWTON, RULE, VARIANTS, seconds_per_iteration, tuned
from dpbench.run.row import settings_of
from dpbench.study.context import Context, select
from dpbench.study.declare import artefact
from dpbench.study.output import Table, Words
from dpbench.study.style import look, problem_title

LONGER, SEEDS = 3, 5  # the next T of a grid, and the seeds of its long runs
MIB = 2**20
WITHIN = 1.7  # a published difference of memory matches ours within this factor
MARK = {"": "", "smallest": "↓", "largest": "↑"}
# Whose iterations tell what those of a method take that was not timed, and how they compare.
LIKE = {
    **dict.fromkeys(VARIANTS, (NEWTON, "")),  # the same work
    "damped-newton": (NEWTON, "≈ "),  # a Hessian and an eigendecomposition, too
    "dp-sgd": ("dp-gd", "≤ "),  # a sample of the rows, where it takes all
}


@artefact("best_T", "The tuned number of iterations behind Figs. 2 and 6")
def best_T(context: Context) -> Table:
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
    caption = (
        "The number of iterations T with the lowest mean excess loss, for every point of Figs. 2 and 6. ↑ or ↓: the "
        "largest or smallest T tried is best, so a wider grid might do better."
    )
    method = (
        f"{RULE}. ↑ or ↓: the best T is the largest or smallest of its grid, so a wider grid might do better. To go "
        f"on: the core-minutes that the next T, {LONGER} times as long, would take with {SEEDS} seeds in the cells "
        "marked ↑. They follow from the seconds of runs timed alone. All variants of DP-Newton are assumed to cost "
        "as much as hess, clip. Methods that were not timed: damped Newton (≈) is assumed to cost as much as "
        "DP-Newton, since it computes a Hessian and its eigenvalues too; DP-SGD (≤) is assumed to cost at most as "
        "much as DP-GD, since it takes a sample of the rows. A T shorter than one marked ↓ costs less than a run of "
        "the table."
    )
    header = ["data set", "algorithm", *[f"ε = {e:g}" for e in epsilons], "to go on"]
    return Table(pd.DataFrame(rows, columns=header), caption, table.drop(columns=["settings"]), method=method)


def _to_go_on(context: Context, problem: str, algorithm: str, cells: pd.DataFrame) -> str:
    """What the next T costs where the best is the largest tried; "" where none is."""
    longest = cells.loc[cells["at_end"] == "largest", "T"]
    if longest.empty:
        return ""
    own = seconds_per_iteration(context, problem, algorithm) if algorithm not in VARIANTS else np.nan
    like, sign = (algorithm, "") if not np.isnan(own) else LIKE.get(algorithm, (algorithm, ""))
    minutes = LONGER * SEEDS * longest.sum() * seconds_per_iteration(context, problem, like) / 60
    return "not timed" if np.isnan(minutes) else f"{sign}{minutes:.2g} min"


@artefact("table2", "Table 2: hyperparameters of DP-Newton")
def table2(context: Context) -> Table:
    """DP-Newton's hyperparameters: the paper's, and those of the rows under this profile."""
    published = context.experiment.published()["table2"]
    runs = context.rows("table2")
    newton = runs[runs["algorithm"].str.startswith("dp-newton-")]
    used = [settings_of(text) for text in newton["settings"].drop_duplicates()]

    def values(name: str) -> str:
        return ", ".join(f"{v:g}" for v in sorted({one[name] for one in used})) or "–"

    rows = [
        ["θ", "share of ρ for the direction (trace included)", f"{published['theta']:g}", values("theta")],
        ["γ", "share of that for the trace", f"{published['gamma']:g}", values("gamma")],
        ["β", "coefficient of λ₀", ", ".join(f"{b:g}" for b in published["beta"]), values("beta")],
        ["", "independent runs", f"{published['runs']}", f"{newton['seed'].nunique() or '–'}"],
        ["T", "iterations", "tuned", values("T")],
    ]
    caption = (
        "Hyperparameters of DP-Newton (Algorithm 5): the paper's, and those of the runs behind this report. β stands "
        "outside the cube root, as in Algorithm 5."
    )
    return Table(pd.DataFrame(rows, columns=["parameter", "meaning", "paper", "here"]), caption)


@artefact("table3", "Table 3: data sets")
def table3(context: Context) -> Table:
    """The data sets: rows and columns as published and as prepared."""
    rows, gaps = [], []
    for problem, (n, d) in context.experiment.published()["table3"].items():
        spec = datasets.describe(problem)
        at_hand = datasets.available(problem)
        ours = f"{spec.rows:,} × {spec.columns:,}"
        rows.append([problem_title(problem), f"{n:,} × {d:,}", ours, "yes" if at_hand else "no"])
        if not at_hand:
            gaps.append(f"{problem}: dpbench fetch {problem}")
    caption = "Rows × columns of each data set: as the paper prints them, and as prepared here with the column of ones."
    method = (
        "Sizes are rows × columns, with the column of ones. The paper's 134 columns of a1a are a misprint: there are "
        "123 features and a column of ones. Its adult data lack the last row of each file. Its 104 columns of adult "
        "and 74 of protein do not count the column of ones."
    )
    header = ["data set", "paper", "here", "fetched"]
    return Table(pd.DataFrame(rows, columns=header), caption, gaps=gaps, method=method)


@artefact("c7", "App. C.7: peak memory of the eigenvalue modification")
def c7(context: Context) -> Table:
    """App. C.7: measured peak memory of the eigenvalue modification."""
    published = context.experiment.published()["memory"]
    rows = context.rows("c7")
    data, gaps, runs = [], [], []
    for problem in context.problems("c7"):
        for modification in ("clip", "add"):
            measured = select(rows, problem=problem, algorithm=f"dp-newton-hess-{modification}")
            measured = measured.dropna(subset=["measured"])
            if measured.empty:
                gaps.append(context.gap("c7", problem))
            runs.append(len(measured))
            extra = measured["measured"] / MIB
            process = (
                measured["notes"].astype("string").str.extract(r"(\d+)", expand=False).astype(float).dropna() / MIB
            )
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
    words = ("extra", "process", "paper")  # told beside the numbers
    caption = (
        "Peak memory while DP-Newton modifies the eigenvalues of the curvature: what this step adds, and the whole "
        "process. Median [lowest, highest] of repeated measurements. What it adds carries over to other machines."
    )
    method = (
        "Peak resident memory is measured while the eigenvalues of the curvature are modified and the direction is "
        "solved for. The first number is what this step adds; the second is the whole process, with interpreter and "
        f"libraries. Numbers are medians of {max(runs, default=0)} measurements, each in a "
        "fresh process on one core; lowest and highest are in brackets. clip uses an eigendecomposition, add a "
        "Cholesky factorisation. The paper uses an eigendecomposition and does not say which of the two numbers it "
        "prints; its values have the size of a whole process. Only the increment carries over to other machines. "
        f"{_difference([one for one in data if one['runs']], published)}"
    )
    finding = _memory(pd.DataFrame(data, columns=["problem", "modification", "extra_mib"]))
    return Table.of(data, columns, caption, gaps, unsaved=words, method=method, finding=finding)


def _memory(data: pd.DataFrame) -> str:
    """How much more memory the eigendecomposition takes, in one sentence; "" without measurements of both."""
    extra = data.pivot_table(index="problem", columns="modification", values="extra_mib")
    if not {"clip", "add"} <= set(extra):
        return ""
    ratio = (extra["clip"] / extra["add"]).dropna()
    ends = " to ".join(dict.fromkeys(f"{end:.2g}" for end in (ratio.min(), ratio.max())))
    return f"An eigendecomposition takes {ends} times the memory of a Cholesky factorisation"


def _difference(data: list[dict[str, Any]], published: dict[str, float]) -> str:
    """Whether the published difference between the data sets is that of ours, within a factor `WITHIN`."""
    clip = {row["problem"]: row for row in data if row["modification"] == "clip"}
    if not set(published) <= set(clip):
        return ""
    small, large = sorted(published, key=lambda problem: published[problem])
    theirs = published[large] - published[small]
    told = []
    for name, words in (("extra_mib", "increments"), ("process_mib", "whole processes")):
        ours = clip[large][name] - clip[small][name]
        same = theirs / WITHIN <= ours <= theirs * WITHIN
        told.append(f"of the {words} {ours:.1f} MiB ({'a match' if same else 'no match'})")
    return (
        f"Between {problem_title(large)} and {problem_title(small)} the paper has {theirs:g} MiB; here the difference "
        "is "
        f"{' and '.join(told)}, to within a factor of {WITHIN:g}."
    )


def _median_and_range(values: Any) -> str:
    if values.empty:
        return "–"
    return f"{values.median():.1f} MiB [{values.min():.1f}, {values.max():.1f}]"
