"""The published values of Tables 1 to 12 beside ours: losses, Hessian counts, × or not."""

from __future__ import annotations

from collections.abc import Iterator

from dpbench.experiments.nonconvex.study import END, TARGETS, judged
from dpbench.study.context import Context
from dpbench.study.style import look
from dpbench.study.welch import Match, Place, PublishedMean


def comparisons(context: Context) -> Iterator[PublishedMean]:
    """One per published value that is within the profile's grid, see `study.judged`."""
    for target in TARGETS:
        for cell in judged(context, target).itertuples():
            quantity = {END: "terminated or ×"}.get(cell.quantity, cell.quantity.replace("_", " "))
            method = look(cell.algorithm).label
            name = f"Table {cell.table}, {method} at ε = {cell.epsilon:g}: {cell.quantity.replace('_', ' ')}"
            place = Place(f"Table {cell.table}", method, f"ε = {cell.epsilon:g}: {quantity}")
            yield PublishedMean(name, Match(cell.word, cell.numbers), place, f"table{cell.table}")
