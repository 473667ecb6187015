"""The published numbers of second_order beside ours: run-time ratios (Tables 1 and 4) and memory (App. C.7)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dpbench.experiments.second_order.run_times import published_cells
from dpbench.study import printed
from dpbench.study.context import Context, select
from dpbench.study.printed import Number
from dpbench.study.style import problem_title
from dpbench.study.verdicts import HONEST, Cell, Place, Switch

MIB = 2**20
SWITCHES: tuple[Switch, ...] = ()


def cells(context: Context) -> Iterator[Cell]:
    """24 ratios of seconds and 2 peaks of memory, whose unit costs are not ours; shapes are judged apart (`shapes`)."""
    yield from run_times(context)
    yield from memory(context)


def run_times(context: Context) -> Iterator[Cell]:
    """The ratio that Tables 1 and 4 show here: at the T tuned under the published rule, whatever else was timed."""
    for artefact in ("table1", "table4"):
        for problem, epsilon, theirs, ours in published_cells(context, artefact):
            number = Number("times faster", printed.shown(theirs, 2))
            place = Place(artefact.replace("table", "Table "), problem_title(problem), f"ε = {epsilon:g}")
            runs = {} if np.isnan(ours) else {HONEST: {"times faster": [ours]}}
            yield Cell(place, artefact, (number,), runs, run_time=True)


def memory(context: Context) -> Iterator[Cell]:
    """Mebibytes of a whole process at the paper's modification: one printed number a data set, two in all."""
    published = context.experiment.published()["memory"]
    asked = context.problems("c7")
    rows = select(context.rows("c7"), algorithm="dp-newton-hess-clip")
    for problem, theirs in published.items():
        if problem in asked:
            notes = select(rows, problem=problem).dropna(subset=["measured"])["notes"].astype(str)
            whole = notes.str.extract(r"(\d+)", expand=False).astype(float).dropna() / MIB
            place = Place("App. C.7", problem_title(problem), "MiB of the clipped Hessian")
            number = Number("MiB", printed.shown(theirs, 0))
            yield Cell(place, "c7", (number,), {HONEST: {"MiB": whole.tolist()}}, run_time=True)
