"""Other ways to score the board's runs: regret against the best method of each problem, log loss on held-out rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from dpbench.experiments.leaderboard.board import PAPER, Board, WithWords, board
from dpbench.leaderboard import places, tracks
from dpbench.leaderboard.nulls import nulls
from dpbench.leaderboard.places import AUTO, CELL, METHOD, NOTHING, two
from dpbench.run import outcomes
from dpbench.study.context import Context
from dpbench.study.output import Record, Table, Words

NULL = math.log(2)  # log loss of w = 0, whatever the rows


def by_method(
    context: Context, artefact: str, lead: str, data: Sequence[Record], epsilons: Sequence[float], cell: Words
) -> tuple[Table, str]:
    """A row per method in the order of `data`, a column per ε; and the label of the first method, "" without rows."""
    names, table = list(dict.fromkeys(one["algorithm"] for one in data)), pd.DataFrame(data)
    label = board(context).label
    made = Table.crossed(
        table, [{"algorithm": name} for name in names], {lead: lambda key: label(key["algorithm"])},
        {f"ε = {e:g}": {"epsilon": e} for e in epsilons if data}, cell, data=table,
    )  # fmt: skip
    made.gaps = [] if data else [context.gap(artefact, "every row")]
    return made, label(names[0]) if names else ""


@PAPER.artefact("regret")
def regret(context: Context) -> WithWords:
    """A row per method that is admitted everywhere, and the default: mean over families of score less the best's."""
    ranked = board(context)
    table = regrets(ranked, places.losses(context.rows("places")))
    data: list[dict[str, Any]] = []
    # One method for all problems: who is not admitted on one cannot be it.
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
    made, first = by_method(context, "regret", "always", data, ranked.epsilons, _interval)
    return made, {"found": bool(first), "first": first}


def _interval(one: Record) -> str:
    mean, half = one["regret"], one["half"]
    return f"{two(mean)} [{two(mean - half)}, {two(mean + half)}]"


def regrets(ranked: Board, losses: pd.DataFrame) -> pd.DataFrame:
    """(problem, ε, algorithm, score): a method's score less that of the best, which other seeds have chosen.

    losses: of `places.losses`. Of the cells that the board scores; w = 0 is among the choices.
    """
    if ranked.scores.empty:
        return ranked.scores
    scored = ranked.scores[CELL].drop_duplicates()
    losses = losses.merge(scored, on=CELL)
    folds = []
    # Who is best on some seeds is partly lucky there: others score it, and both ways use all seeds.
    for fold in (0, 1):
        even = losses["seed"] % 2 == fold
        chosen, judged = (_scores(one) for one in (losses[even], losses[~even]))
        paid = chosen[~chosen["algorithm"].isin(ranked.unpaid)]
        best = places.pick(paid, CELL, "score")[[*CELL, "algorithm"]]
        reached = best.merge(judged, on=[*CELL, "algorithm"])[[*CELL, "score"]].rename(columns={"score": "best"})
        both = places.with_auto(judged, ranked.choice).merge(reached, on=CELL)
        folds.append(both.assign(score=both["score"] - both["best"]).drop(columns="best"))
    return pd.concat(folds).groupby([*CELL, "algorithm"])["score"].mean().reset_index()


def _scores(losses: pd.DataFrame) -> pd.DataFrame:
    """`places.scored` of what is there, without penalties for what is not."""
    return places.scored(places.means(losses), nulls(), [])


def scores(rows: pd.DataFrame, choice: dict[str, str]) -> pd.DataFrame:
    """(problem, ε, algorithm, score): log10 of the mean held-out log loss over that of w = 0; with the default's.

    rows: of the runs table. A run that failed, diverged or has no score counts as the worst there is.
    """
    ended = rows["status"].isin(outcomes.RESULTS) & rows["held_loss"].notna()
    loss = rows["held_loss"].astype(float).where(ended, math.inf)
    losses = rows.assign(loss=loss).groupby(METHOD, as_index=False)["loss"].mean()
    losses["score"] = [places.score(one, NULL) for one in losses["loss"]]
    cells = losses[["problem", "epsilon"]].drop_duplicates()
    table = pd.concat([losses[[*METHOD, "score"]], cells.assign(algorithm=NOTHING, score=0.0)], ignore_index=True)
    return places.with_auto(table, choice)


@PAPER.artefact("held_out")
def held_out(context: Context) -> WithWords:
    """A row per method that is on all families: place and log loss at each ε, in the order of the mean."""
    ranked, rows = board(context), context.rows("held_out")
    rows = rows[rows["timed"].eq(0)]
    choice = {p: name for p in sorted(set(rows["problem"])) if (name := tracks.choice(p))}
    table = scores(rows, choice)
    epsilons = sorted(set(table["epsilon"]))
    by = {e: places.by_family(table[table["epsilon"].eq(e)], tracks.families()) for e in epsilons}
    lined = {e: {one.algorithm: one for one in places.placements(by[e], ranked.unpaid) if one.families == len(by[e])}
             for e in epsilons}  # fmt: skip
    names = [name for name in (lined[epsilons[0]] if epsilons else ()) if all(name in lined[e] for e in epsilons)]
    names.sort(key=lambda name: sum(lined[e][name].score for e in epsilons))
    data = [{"epsilon": e, **lined[e][name]._asdict()} for name in names for e in epsilons]
    made, first = by_method(context, "held_out", "method", data, epsilons, _nats)
    agree = ", ".join(f"{two(_agreement(rows, by[e], e))} at ε = {e:g}" for e in epsilons)
    families = len(by[epsilons[0]]) if epsilons else 0
    words = {"found": bool(first), "first": first, "null": NULL, "families": families, "agree": agree or "–"}
    return made, words


def _nats(one: Record) -> str:
    """A place, and the log loss that its score and its interval stand for."""
    loss, low, high = (f"{NULL * 10 ** one[name]:.3f}" for name in ("score", "low", "high"))
    return f"{one['place'] or '–'}: {loss} [{low}, {high}]"


def _agreement(rows: pd.DataFrame, held: pd.DataFrame, epsilon: float) -> float:
    """Spearman's correlation of the methods' mean held-out scores and their mean scores by excess loss."""
    excess = places.scored(places.means(places.losses(rows[rows["epsilon"].eq(epsilon)])), nulls(), [])
    other = places.by_family(excess, tracks.families())
    shared = [name for name in held if name in other and held[name].notna().all() and name != AUTO]
    return float(held[shared].mean().corr(other[shared].mean(), method="spearman")) if len(shared) > 2 else np.nan
