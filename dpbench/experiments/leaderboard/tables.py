"""The tables of leaderboard."""

from __future__ import annotations

import numpy as np

from dpbench.experiments.base import select
from dpbench.experiments.leaderboard import entrants
from dpbench.experiments.leaderboard.ranking import board
from dpbench.experiments.leaderboard.ranking import overall as over_all
from dpbench.report.output import Table
from dpbench.report.style import look, problem_title

RULES = (
    "Replace-one neighbours for all: add/remove methods at twice their sensitivities, Poisson samples replaced by "
    "samples of a fixed size. δ = n⁻² (0 for pure DP); n public. The best accounting each method has. Each method at "
    "the best of its candidate settings (tuning.toml), chosen on the same seeds by the mean: that is not private, and "
    "the mean of the best is a little too good."
)


def overall(context) -> Table:
    """Mean rank and share of rivals beaten over all cells."""
    import pandas as pd

    table = board(context.rows("overall"))
    result = over_all(table)
    rows = [
        [
            str(i + 1),
            look(row.algorithm).label,
            f"{row.share:.2f}",
            f"{row.mean_rank:.1f}",
            f"{row.cells}",
            f"{row.leads}",
            row.accounting,
        ]
        for i, row in enumerate(result.itertuples())
    ]
    gaps = [] if rows else [f"every row: {context.command('overall')}"]
    cells = table[["problem", "epsilon"]].drop_duplicates()
    caption = (
        f"Over {len(cells)} cells (problem × ε), {seeds_of(table)}. Share: the mean share of rivals beaten, 1 if best "
        "in every cell and 0 if last in every cell; leads: in how many cells no method is better by more than two "
        f"standard errors of the difference. Methods in fewer than half of the cells come last. {RULES}"
    )
    header = ["#", "method", "share of rivals beaten", "mean rank", "cells", "leads", "accounting"]
    return Table(pd.DataFrame(rows, columns=header), caption, result.drop(columns="often"), gaps)


def ranking(context, epsilon: float, level: str) -> Table:
    """Mean excess ± s.e. and rank at one ε: a row per method, a column per problem."""
    import pandas as pd

    artefact = f"ranking_{level}"
    runs = context.rows(artefact)
    table = board(runs)
    problems = list(dict.fromkeys(p for block in context.blocks(artefact) for p in block.problems))
    order = list(over_all(table)["algorithm"]) if len(table) else []
    lookup = {(row.problem, row.algorithm): row for row in table.itertuples()}
    rows = [[look(name).label, *[_cell(lookup.get((p, name))) for p in problems]] for name in order]
    gaps = [
        f"{problem} at ε = {epsilon:g}: {context.command(artefact)}"
        for problem in problems
        if problem not in set(table["problem"])
    ]
    gaps += failures(runs)
    caption = (
        f"Mean excess loss ± its standard error and, in brackets, the rank in its column, at ε = {epsilon:g}; =: not "
        "worse than the column's best by more than two standard errors of the difference; –: not on this problem (see "
        f"fits); ∞: a seed diverged at every candidate. Methods in the order of the mean share of rivals beaten here. "
        f"{seeds_of(table)}. {RULES}"
    )
    return Table(pd.DataFrame(rows, columns=["method", *map(problem_title, problems)]), caption, table, gaps)


def failures(runs) -> list[str]:
    """One line for each reason that runs failed for."""
    failed = runs[runs["status"] == "failed"].drop_duplicates(["algorithm", "problem", "error"])
    return [f"{row.algorithm} on {row.problem}: {row.error}" for row in failed.itertuples()]


def _cell(row) -> str:
    if row is None:
        return "–"
    if not np.isfinite(row.mean):
        return f"∞ ({row.rank})"
    error = "" if np.isnan(row.se) else f" ± {row.se:.1g}"
    return f"{row.mean:.3g}{error} ({row.rank}{'=' if row.beaten_by == 0 else ''})"


def seeds_of(table) -> str:
    if table.empty:
        return "No rows"
    low, high = table["seeds"].min(), table["seeds"].max()
    return f"{low} seeds" if low == high else f"{low} to {high} seeds"


def fits(context) -> Table:
    """Every method that is left out of a problem, with the reason."""
    import pandas as pd

    problems = list(dict.fromkeys(p for block in context.blocks("fits") for p in block.problems))
    where: dict[tuple[str, str], list[str]] = {}  # (method, reason) → problems
    for problem in problems:
        for name in entrants.entrants():
            if why := entrants.reason(problem, name):
                where.setdefault((name, why), []).append(problem_title(problem))
    methods: dict[tuple[str, str], list[str]] = {}  # (problems, reason) → methods
    for (name, why), on in where.items():
        methods.setdefault(("all" if len(on) == len(problems) else ", ".join(on), why), []).append(look(name).label)
    rows = [[on, "; ".join(labels), why] for (on, why), labels in methods.items()]
    caption = (
        "Methods that are not run on a problem of this grid, and the check that keeps them off: what the privacy proof "
        "asks of loss, rows and regulariser, or of the settings; decided on what is declared of the problem."
    )
    return Table(pd.DataFrame(rows, columns=["not on", "methods", "why"]), caption)


def of_problem(table, problem: str, epsilon: float):
    """The board's rows of one cell, best first."""
    return select(table, problem=problem, epsilon=epsilon).sort_values("rank", kind="stable")
