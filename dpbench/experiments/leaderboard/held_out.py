"""The second score of the board: log loss on rows that nobody was trained on."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from dpbench.experiments.leaderboard.board import PAPER, WithWords, board
from dpbench.leaderboard import places, tracks
from dpbench.leaderboard.nulls import nulls
from dpbench.leaderboard.places import AUTO, METHOD, NOTHING, two
from dpbench.run import outcomes
from dpbench.study.context import Context
from dpbench.study.output import Record, Table

NULL = math.log(2)  # log loss of w = 0, whatever the rows


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
    data = pd.DataFrame([{"epsilon": e, **lined[e][name]._asdict()} for name in names for e in epsilons])
    made = Table.crossed(
        data, [{"algorithm": name} for name in names], {"method": lambda key: ranked.label(key["algorithm"])},
        {f"ε = {e:g}": {"epsilon": e} for e in epsilons if names}, _nats, data=data,
    )  # fmt: skip
    made.gaps = [] if names else [context.gap("held_out", "every row")]
    agree = ", ".join(f"{two(_agreement(rows, by[e], e))} at ε = {e:g}" for e in epsilons)
    families = len(by[epsilons[0]]) if epsilons else 0
    first = ranked.label(names[0]) if names else ""
    words = {"found": bool(names), "first": first, "null": NULL, "families": families, "agree": agree or "–"}
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
