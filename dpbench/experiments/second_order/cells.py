"""The published numbers of second_order beside ours: run-time ratios (Tables 1 and 4) and memory (App. C.7)."""

from __future__ import annotations

from collections.abc import Iterator

from dpbench.study import printed
from dpbench.study.context import Context, select
from dpbench.study.style import problem_title
from dpbench.study.verdicts import HONEST, Cell, Number, Place, Switch

MIB = 2**20
SWITCHES: tuple[Switch, ...] = ()


def cells(context: Context) -> Iterator[Cell]:
    """One per published number that is within the profile's grid: seconds and bytes, whose unit costs are not ours."""
    yield from run_times(context)
    yield from memory(context)


def run_times(context: Context) -> Iterator[Cell]:
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
                number = Number("times faster", printed.shown(theirs, 2))
                place = Place(artefact.replace("table", "Table "), problem_title(problem), f"ε = {epsilon:g}")
                ours = {"times faster": (gd / newton).dropna().tolist()}
                yield Cell(place, artefact, (number,), {HONEST: ours}, run_time=True)


def memory(context: Context) -> Iterator[Cell]:
    """Mebibytes of the paper's modification, on top of what was resident; the paper does not say of what they are."""
    published = context.experiment.published()["memory"]
    asked = context.problems("c7")
    runs = select(context.rows("c7"), algorithm="dp-newton-hess-clip")
    for problem, theirs in published.items():
        if problem in asked:
            used = select(runs, problem=problem)["measured"].dropna() / MIB
            place = Place("App. C.7", problem_title(problem), "MiB of the clipped Hessian")
            number = Number("MiB", printed.shown(theirs, 0))
            yield Cell(place, "c7", (number,), {HONEST: {"MiB": used.tolist()}}, run_time=True)
