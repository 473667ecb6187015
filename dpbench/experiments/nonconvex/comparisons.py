"""The published means of Tables 1 to 12 beside ours."""

from __future__ import annotations

from collections.abc import Iterator

from dpbench.experiments.base import select
from dpbench.experiments.nonconvex.study import TARGETS, finished, published_cells
from dpbench.report.compare import Comparison, compare
from dpbench.report.style import look

MARGIN = 0.05  # of the published mean: about the standard deviation of a loss over seeds
COLUMNS = {"loss": "objective", "hessian_evaluations": "hessian_evaluations"}


def comparisons(context) -> Iterator[Comparison]:
    """One per published cell that is within the profile's grid. A mean of 0 Hessians has no relative margin."""
    paper = published_cells(context.experiment.published())
    for target in TARGETS:
        asked = {(a, e) for block in context.blocks(target.artefact) for a in block.algorithms for e in block.epsilon}
        rows = finished(context.rows(target.artefact, timed=0))
        for cell in paper[paper["table"].isin([target.table, target.hessians])].itertuples():
            if (cell.algorithm, cell.epsilon) in asked and cell.mean:
                ours = select(rows, algorithm=cell.algorithm, epsilon=cell.epsilon)[COLUMNS[cell.quantity]]
                name = f"Table {cell.table}, {look(cell.algorithm).label} at ε = {cell.epsilon:g}: "
                name += cell.quantity.replace("_", " ")
                yield Comparison(name, compare(ours, cell.mean, cell.std, cell.runs, margin=MARGIN))
