"""The tables of second_order, and its printed numbers beside ours: ratios of run time, and memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from dpbench import datasets
from dpbench.experiments.second_order.rows import NEWTON, PAPER, VARIANTS, WithWords, seconds_per_iteration, tuned
from dpbench.experiments.second_order.run_times import printed_ratios
from dpbench.run.row import settings_of
from dpbench.study import printed
from dpbench.study.context import Context, select
from dpbench.study.output import Table, Words
from dpbench.study.printed import Number
from dpbench.study.style import look, problem_title
from dpbench.study.verdicts import HONEST, Cell, Place

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
    return Table(pd.DataFrame(rows, columns=["parameter", "meaning", "paper", "here"]), ""), {}


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
            extra, process = measured["measured"] / MIB, _whole_process(measured)
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


def _whole_process(rows: pd.DataFrame) -> pd.Series:
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


def cells(context: Context) -> Iterator[Cell]:
    """24 ratios of seconds and 2 peaks of memory, whose unit costs are not ours; shapes are judged apart (`shapes`)."""
    yield from printed_ratios(context)
    asked, rows = context.problems("c7"), select(context.rows("c7"), algorithm="dp-newton-hess-clip")
    for problem, theirs in context.experiment.published()["memory"].items():
        if problem in asked:
            whole = _whole_process(select(rows, problem=problem).dropna(subset=["measured"]))
            place = Place("App. C.7", problem_title(problem), "MiB of the clipped Hessian")
            number = Number("MiB", printed.shown(theirs, 0))
            yield Cell(place, "c7", (number,), {HONEST: {"MiB": whole.tolist()}}, run_time=True)
