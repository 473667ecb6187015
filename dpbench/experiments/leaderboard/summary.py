"""The numbers in words: sentences that are computed, not written."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpbench.experiments.leaderboard.tables import RULES, of_problem, seeds_of
from dpbench.leaderboard.ranking import board, overall
from dpbench.study.context import Context
from dpbench.study.declare import artefact
from dpbench.study.output import Table
from dpbench.study.statistics import plus_minus
from dpbench.study.style import look, problem_title

MOST_NAMED = 3  # methods in one sentence


@artefact("summary", "What the numbers say, in words")
def summary(context: Context) -> Table:
    """Who leads where, by how much, and over all."""
    table = board(context.rows("summary"))
    rows = [["over all", sentence] for sentence in over_all(table)]
    for problem, epsilon in table[["problem", "epsilon"]].drop_duplicates().itertuples(index=False):
        rows.append([f"{problem_title(problem)}, ε = {epsilon:g}", leader(of_problem(table, problem, epsilon))])
    gaps = [] if rows else [context.gap("summary", "every sentence")]
    caption = f"Computed from the rows of this profile. {seeds_of(table)}. {RULES}"
    return Table(pd.DataFrame(rows, columns=["where", "what the numbers say"]), caption, table, gaps)


def over_all(table: pd.DataFrame) -> list[str]:
    """Sentences on all cells together."""
    if table.empty:
        return []
    ranks = overall(table)
    often = ranks[ranks["often"]]
    cells = len(table[["problem", "epsilon"]].drop_duplicates())
    best = often if len(often) else ranks
    first = best.iloc[0]
    text = [
        f"{label(first.algorithm)} does best over all: it beats {100 * first.share:.0f} % of its rivals on average and "
        f"leads or ties with the leader in {first.leads} of the {first.cells} cells it is in, of {cells}."
    ]
    if len(best) > 1:
        text[0] += f" Next: {names(list(best['algorithm'][1 : 1 + MOST_NAMED]))}."
    for epsilon in sorted(set(table["epsilon"])):
        at = overall(table[table["epsilon"] == epsilon])
        top = at.iloc[0]
        on = f"{top.cells} of {len(table[table['epsilon'] == epsilon]['problem'].unique())} problems"
        text.append(
            f"At ε = {epsilon:g} {label(top.algorithm)} beats most of its rivals, {100 * top.share:.0f} %, on {on}."
        )
    return text


def leader(cell: pd.DataFrame) -> str:
    """One sentence or two on one problem at one ε; `cell` has the best method first."""
    finite = cell[np.isfinite(cell["mean"])]
    if finite.empty:
        return "No method ends with a finite loss."
    first = finite.iloc[0]
    tied = list(finite[(finite["beaten_by"] == 0)]["algorithm"][1:])
    reached = plus_minus(first["mean"], first["se"])
    text = f"{label(first.algorithm)} has the lowest mean excess loss, {reached}, of {len(cell)} methods"
    text += f"; {names(tied)} {'is' if len(tied) == 1 else 'are'} within two standard errors of it." if tied else "."
    worse = finite[finite["beaten_by"] > 0]
    if len(worse) and first["mean"] > 0:
        runner_up = worse.iloc[0]
        ratio = runner_up["mean"] / first["mean"]
        text += f" The next, {label(runner_up.algorithm)}, is at {ratio:.3g} times that"
        text += f", the median method at {finite['mean'].median() / first['mean']:.3g} times."
    return text


def label(algorithm: str) -> str:
    """The name of an algorithm in words."""
    return look(algorithm).label


def names(algorithms: list[str]) -> str:
    """A list in words, cut short."""
    shown = [label(name) for name in algorithms[:MOST_NAMED]]
    more = len(algorithms) - len(shown)
    if more:
        return f"{', '.join(shown)} and {more} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
