"""The tables of leaderboard."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dpbench.leaderboard import entrants
from dpbench.leaderboard.ranking import LEVELS, board
from dpbench.leaderboard.ranking import overall as over_all
from dpbench.run import outcomes
from dpbench.study.context import Context, select
from dpbench.study.declare import artefact, each
from dpbench.study.output import Table
from dpbench.study.statistics import plus_minus, span
from dpbench.study.style import look, problem_title

RULES = (
    "Replace-one neighbours for all: add/remove methods at twice their sensitivities, Poisson samples, where the "
    "accounting is not `tight`, replaced by samples of a fixed size. δ = n⁻² (0 for pure DP); n public. The best "
    "accounting each method has. Each method at the best of its candidate settings (tuning.toml), chosen on the same "
    "seeds by the mean: that is not private, and the mean of the best is a little too good."
)


@artefact("overall", "All methods over all problems and ε")
def overall(context: Context) -> Table:
    """Mean rank and share of rivals beaten over all cells."""
    table = board(context.rows("overall"))
    result = over_all(table)
    if len(table):
        spent = table.assign(planned=table["planned"] / table["epsilon"]).groupby("algorithm")
        result = result.join(spent.agg({"planned": "min", "counts_public": "first"}), on="algorithm")
    rows = [
        [
            str(i + 1) if row.often else "–",
            look(row.algorithm).label,
            f"{row.share:.2f}",
            f"{row.mean_rank:.1f}",
            f"{row.cells}",
            f"{row.leads}",
            row.accounting,
            "–" if np.isnan(row.planned) else f"{row.planned:.3f}",
            row.counts_public or "",
        ]
        for i, row in enumerate(result.itertuples())
    ]
    gaps = [] if rows else [context.gap("overall", "every row")]
    cells = table[["problem", "epsilon"]].drop_duplicates()
    caption = (
        f"Over {len(cells)} cells (problem × ε), {seeds_of(table)}. Share: the mean share of rivals beaten, 1 if best "
        "in every cell and 0 if last in every cell; leads: in how many cells no method is better by more than two "
        "standard errors of the difference; ε planned / ε: the least share of ε that all its planned releases add up "
        "to, by the independent accountant (below 1 the accounting or the method leaves some unused); public: what, "
        "beside n, its runs took from the data. Methods in fewer than half of the cells come last, without a place. "
        f"{RULES}"
    )
    header = ["#", "method", "share of rivals beaten", "mean rank", "cells", "leads", "accounting", "ε planned / ε",
              "public"]  # fmt: skip
    return Table(pd.DataFrame(rows, columns=header), caption, result.drop(columns="often"), gaps)


@each(artefact(f"ranking_{name}", f"Ranking at ε = {e:g}", epsilon=e, level=name) for name, e in LEVELS.items())
def ranking(context: Context, epsilon: float, level: str) -> Table:
    """Mean excess ± s.e. and rank at one ε: a row per method, a column per problem."""
    name = f"ranking_{level}"
    runs = context.rows(name)
    table = board(runs)
    problems = context.problems(name)
    order = list(over_all(table)["algorithm"])
    lookup = {(row.problem, row.algorithm): row for row in table.itertuples()}
    rows = [[look(method).label, *[_cell(lookup.get((p, method))) for p in problems]] for method in order]
    gaps = [
        context.gap(name, f"{problem} at ε = {epsilon:g}")
        for problem in problems
        if problem not in set(table["problem"])
    ]
    gaps += failures(runs)
    caption = (
        f"Mean excess loss ± its standard error and, in brackets, the rank in its column, at ε = {epsilon:g}; =: not "
        "worse than the column's best by more than two standard errors of the difference; –: not applicable (see fits; "
        "or ε is out of reach of the method's accounting); ∞: a seed diverged at every candidate. Methods in the order "
        f"of the mean share of rivals beaten here. {seeds_of(table)}. {RULES}"
    )
    return Table(pd.DataFrame(rows, columns=["method", *map(problem_title, problems)]), caption, table, gaps)


def failures(runs: pd.DataFrame) -> list[str]:
    """One line for each reason that runs failed for; an ε out of reach is not applicable, and no failure."""
    failed = runs[~outcomes.has_result(runs["status"]) & runs["status"].ne("out of reach")]
    failed = failed.drop_duplicates(["algorithm", "problem", "error"])
    return [f"{row.algorithm} on {row.problem}: {row.error}" for row in failed.itertuples()]


def _cell(row: Any) -> str:
    if row is None:
        return "–"
    if not np.isfinite(row.mean):
        return f"∞ ({row.rank})"
    return f"{plus_minus(row.mean, row.se)} ({row.rank}{'=' if row.beaten_by == 0 else ''})"


def seeds_of(table: pd.DataFrame) -> str:
    """How many seeds the rows of a table have, in words."""
    return "No rows" if table.empty else f"{span(table['seeds'])} seeds"


@artefact("fits", "Who is not on which problem, and why")
def fits(context: Context) -> Table:
    """Every method that is left out of a problem, with the reason."""
    problems = context.problems("fits")
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


def of_problem(table: pd.DataFrame, problem: str, epsilon: float) -> pd.DataFrame:
    """The board's rows of one cell, best first."""
    return select(table, problem=problem, epsilon=epsilon).sort_values("rank", kind="stable")
