"""What the default, or any one method for all problems, costs against the best private method of each problem."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dpbench.experiments.leaderboard.board import Board, board, two
from dpbench.leaderboard import places, tracks
from dpbench.leaderboard.nulls import nulls
from dpbench.leaderboard.places import CELL
from dpbench.study.context import Context
from dpbench.study.declare import artefact
from dpbench.study.output import Record, Table


@artefact("regret", "Regret: what one method for all costs against the best private method of each problem")
def regret(context: Context) -> Table:
    """A row per method that is admitted everywhere, and the default: mean over families of score less the best's."""
    ranked = board(context)
    table = regrets(ranked, places.losses(context.rows("places")))
    data: list[dict[str, Any]] = []
    everywhere = table.groupby("algorithm")["problem"].nunique() if len(table) else pd.Series(dtype=int)
    names = [name for name in everywhere.index if everywhere[name] == table["problem"].nunique()]
    by = {}
    for epsilon in ranked.epsilons:
        at = table[table["epsilon"].eq(epsilon) & table["algorithm"].isin(names)]
        by[epsilon] = places.by_family(at, tracks.families()).reindex(columns=names)
    for name in sorted(names, key=lambda name: sum(one[name].mean() for one in by.values())):
        for epsilon, one in by.items():
            mean, half = float(one[name].mean()), float(places.simultaneous(one.to_numpy())[names.index(name)])
            data.append({"epsilon": epsilon, "algorithm": name, "regret": mean, "half": half, "families": len(one)})
    caption = (
        "Decades of excess loss above the best private method of each problem, mean over families, with simultaneous "
        "95 % intervals; 0.30 is twice its excess loss."
    )
    method = (
        "The best method of a problem is chosen on half of the seeds and scored on the other half, and then the "
        "other way round, so that luck does not count as regret. Methods that use something from the data without "
        "paying for it cannot be the best."
    )
    return Table.spread(
        data,
        "always",
        lambda one: ranked.label(one["algorithm"]),
        "ε = {epsilon:g}",
        _interval,
        caption,
        [] if data else [context.gap("regret", "every row")],
        method=method,
        finding=f"As one method for all problems, {ranked.label(data[0]['algorithm'])} loses least" if data else "",
    )


def _interval(one: Record) -> str:
    mean, half = one["regret"], one["half"]
    return f"{two(mean)} [{two(mean - half)}, {two(mean + half)}]"


def regrets(board: Board, losses: pd.DataFrame) -> pd.DataFrame:
    """(problem, ε, algorithm, score): a method's score less that of the best, which other seeds have chosen.

    losses: of `places.losses`. Of the cells that the board scores; w = 0 is among the choices.
    """
    if board.scores.empty:
        return board.scores
    scored = board.scores[CELL].drop_duplicates()
    losses = losses.merge(scored, on=CELL)
    folds = []
    for fold in (0, 1):
        even = losses["seed"] % 2 == fold
        chosen, judged = (_scores(one) for one in (losses[even], losses[~even]))
        paid = chosen[~chosen["algorithm"].isin(board.unpaid)]
        best = places.pick(paid, CELL, "score")[[*CELL, "algorithm"]]
        reached = best.merge(judged, on=[*CELL, "algorithm"])[[*CELL, "score"]].rename(columns={"score": "best"})
        both = places.with_auto(judged, board.choice).merge(reached, on=CELL)
        folds.append(both.assign(score=both["score"] - both["best"]).drop(columns="best"))
    return pd.concat(folds).groupby([*CELL, "algorithm"])["score"].mean().reset_index()


def _scores(losses: pd.DataFrame) -> pd.DataFrame:
    """`places.scored` of what is there, without penalties for what is not."""
    return places.scored(places.means(losses), nulls(), [])
