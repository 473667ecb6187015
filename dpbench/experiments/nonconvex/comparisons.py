"""The published values of Tables 1 to 12 beside ours: losses, Hessian counts, × or not, ratios of run times."""

from __future__ import annotations

from collections.abc import Iterator

from dpbench.experiments.nonconvex.study import (
    END,
    TARGETS,
    Target,
    asked,
    finished,
    judged,
    published_cells,
    time_ratio,
)
from dpbench.study.context import Context, select
from dpbench.study.style import look
from dpbench.study.welch import Match, Place, PublishedMean

BASE = ("2opt-ls", 1.0)  # whose seconds a table's others are divided by: the one cell that every table has a time for


def comparisons(context: Context) -> Iterator[PublishedMean]:
    """One per published value that is within the profile's grid, see `study.judged`."""
    for target in TARGETS:
        for cell in judged(context, target).itertuples():
            quantity = {END: "terminated or ×"}.get(cell.quantity, cell.quantity.replace("_", " "))
            method = look(cell.algorithm).label
            name = f"Table {cell.table}, {method} at ε = {cell.epsilon:g}: {cell.quantity.replace('_', ' ')}"
            place = Place(f"Table {cell.table}", method, f"ε = {cell.epsilon:g}: {quantity}")
            yield PublishedMean(name, Match(cell.word, cell.numbers), place, f"table{cell.table}")
        yield from run_times(context, target)


def run_times(context: Context, target: Target) -> Iterator[PublishedMean]:
    """Seconds of every cell that has some over those of `BASE` in its table: other hardware leaves a ratio as it is."""
    paper = select(published_cells(context.experiment.published()), table=target.table)
    paper = {(cell.algorithm, cell.epsilon): cell for cell in paper.dropna(subset=["seconds"]).itertuples()}
    rows = select(finished(context.rows(target.artefact)), variant="")
    there, base = asked(context, target), look(BASE[0]).label
    for algorithm, epsilon in there if BASE in there else []:
        if (algorithm, epsilon) in paper and (algorithm, epsilon) != BASE:
            column = f"ε = {epsilon:g}: seconds / {base}'s at ε = {BASE[1]:g}"
            place = Place(f"Table {target.table}, run times", look(algorithm).label, column)
            match = time_ratio(rows, paper[algorithm, epsilon], paper[BASE])
            yield PublishedMean(str(place), match, place, target.artefact)
