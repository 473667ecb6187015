"""The printed cells of Tables 1 to 12: loss, deviation, × and, with loss B, the Hessian count of the same runs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pandas as pd

from dpbench.experiments.nonconvex.study import TARGETS, TERMINATED, asked, finished, published_cells
from dpbench.study import printed
from dpbench.study.context import Context, select
from dpbench.study.style import look
from dpbench.study.verdicts import ALL, HONEST, STD, Cell, Number, Place, Runs, Switch

SWITCHES: tuple[Switch, ...] = ()


def cells(context: Context) -> Iterator[Cell]:
    """One per (table of losses, method, ε) within the profile's grid; its Hessian count is part of it."""
    paper = published_cells(context.experiment.published())
    for target in TARGETS:
        rows = finished(context.rows(target.artefact, timed=0))
        counts = {(c.algorithm, c.epsilon): c for c in select(paper, table=target.hessians).itertuples()}
        there = set(asked(context, target))
        for cell in select(paper, table=target.table).itertuples():
            at = (cell.algorithm, cell.epsilon)
            if at in there:
                honest = select(rows, algorithm=at[0], epsilon=at[1], variant="")
                method = look(cell.algorithm).label
                yield Cell(
                    Place(f"Table {cell.table}", method, f"ε = {cell.epsilon:g}"),
                    target.artefact,
                    numbers(cell, counts.get(at)),
                    {HONEST: runs_of(honest)} if len(honest) else {},
                    series=(f"{target.artefact}, {method}",),
                )
                if not math.isnan(cell.seconds):
                    place = Place(f"Table {cell.table}", method, f"ε = {cell.epsilon:g}: run time")
                    yield Cell(
                        place, target.artefact, (Number("seconds", printed.shown(cell.seconds, 1)),), run_time=True
                    )


def numbers(loss: Any, count: Any) -> tuple[Number, ...]:
    """All that a cell prints of the same runs."""
    k = int(loss.runs)
    found = [
        Number("loss", printed.shown(loss.mean, 3), k=k),
        Number("loss", printed.shown(loss.std, 3), STD, k=k),
        Number("terminated", "yes" if loss.terminated else "×", ALL, k=k),
    ]
    if count is not None:
        k = int(count.runs)
        found += [
            Number("Hessians", printed.shown(count.mean, 1 if k == 5 else 2), k=k, count=True),
            Number("Hessians", printed.shown(count.std, 3), STD, k=k),
        ]
    return tuple(found)


def runs_of(rows: pd.DataFrame) -> Runs:
    """The quantities of a cell, a value per seed."""
    return {
        "loss": rows["objective"].astype(float).tolist(),
        "terminated": rows["status"].eq(TERMINATED).astype(float).tolist(),
        "Hessians": rows["hessian_evaluations"].astype(float).tolist(),
    }
