"""The published numbers of second_order beside ours: run-time ratios (Tables 1 and 4) and memory (App. C.7)."""

from __future__ import annotations

from collections.abc import Iterator

from dpbench.study.context import Context, select
from dpbench.study.style import problem_title
from dpbench.study.welch import Place, PublishedMean, compare

MIB = 2**20


def comparisons(context: Context) -> Iterator[PublishedMean]:
    """One per published number that is within the profile's grid; the paper states no spread, so it counts as exact."""
    yield from run_times(context)
    yield from memory(context)


def run_times(context: Context) -> Iterator[PublishedMean]:
    """The r-th run of DP-GD over the r-th of DP-Newton: one ratio per repetition."""
    published = context.experiment.published()["table1"]
    for artefact in ("table1", "table4"):
        blocks = [block for block in context.blocks(artefact) if block.timed]
        asked = {(p, e) for block in blocks for p in block.problems for e in block.epsilon}
        timed = context.rows(artefact).query("timed > 0")
        for problem, ratios in published["ratio"].items():
            for epsilon, theirs in zip(published["epsilon"], ratios, strict=True):
                if (problem, epsilon) not in asked:
                    continue
                cell = select(timed, problem=problem, epsilon=epsilon)
                gd, newton = (
                    select(cell, algorithm=name).groupby("timed")["seconds"].median()
                    for name in ("dp-gd", "dp-newton-hess-clip")
                )
                place = Place(artefact.replace("table", "Table "), problem_title(problem), f"ε = {epsilon:g}")
                name = f"{place.table}, {place.row} at {place.column}: times faster"
                yield PublishedMean(name, compare((gd / newton).dropna(), theirs), place, artefact)


def memory(context: Context) -> Iterator[PublishedMean]:
    """Mebibytes of the paper's modification; it does not say whether those of the whole process or those on top."""
    published = context.experiment.published()["memory"]
    asked = context.problems("c7")
    runs = select(context.rows("c7"), algorithm="dp-newton-hess-clip")
    for problem, theirs in published.items():
        if problem not in asked:
            continue
        cell = select(runs, problem=problem).dropna(subset=["measured"])
        whole = cell["notes"].astype(str).str.extract(r"(\d+)", expand=False).astype(float)
        for what, ours in (("on top of what was resident", cell["measured"]), ("whole process", whole)):
            name = f"App. C.7, {problem_title(problem)}: MiB of the clipped Hessian, {what}"
            place = Place("App. C.7", problem_title(problem), f"MiB, {what}")
            yield PublishedMean(name, compare(ours / MIB, theirs), place, "c7")
