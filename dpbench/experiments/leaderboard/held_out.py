"""The first score of the board: the loss on rows that nobody was trained on."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from dpbench.experiments.leaderboard.board import PAPER, WithWords, board
from dpbench.experiments.leaderboard.tables import share
from dpbench.leaderboard import places, tracks
from dpbench.leaderboard.nulls import nulls
from dpbench.leaderboard.places import AUTO, METHOD, NOTHING, two
from dpbench.run import outcomes
from dpbench.study.context import Context
from dpbench.study.output import Record, Table


def scores(rows: pd.DataFrame, choice: dict[str, str]) -> pd.DataFrame:
    """(problem, ε, algorithm, score): log10 of the mean held-out loss over that of w = 0; with the default's.

    rows: of the runs table. A run that failed, diverged or has no score counts as the worst there is.
    """
    ended = rows["status"].isin(outcomes.RESULTS) & rows["held_loss"].notna()
    loss = rows["held_loss"].astype(float).where(ended, math.inf)
    losses = rows.assign(loss=loss).groupby(METHOD, as_index=False)["loss"].mean()
    null = losses["problem"].map(nulls("held"))
    losses["score"] = [places.score(one, other) for one, other in zip(losses["loss"], null, strict=True)]
    cells = losses[["problem", "epsilon"]].drop_duplicates()
    table = pd.concat([losses[[*METHOD, "score"]], cells.assign(algorithm=NOTHING, score=0.0)], ignore_index=True)
    return places.with_auto(table, choice)


@PAPER.artefact("held_out")
def held_out(context: Context) -> WithWords:
    """A row per method: place and held-out loss at each ε, in the order of the mean; w = 0 where it is not admitted."""
    ranked, rows = board(context), context.rows("held_out")
    rows = rows[rows["timed"].eq(0)]
    choice = {p: name for p in sorted(set(rows["problem"])) if (name := tracks.choice(p))}
    table = scores(rows, choice)
    epsilons = sorted(set(table["epsilon"]))
    by = {e: places.by_family(table[table["epsilon"].eq(e)], tracks.families()).fillna(0.0)
          for e in epsilons}  # fmt: skip
    lined = {e: {one.algorithm: one for one in places.placements(by[e], ranked.unpaid) if one.families == len(by[e])}
             for e in epsilons}  # fmt: skip
    names = [name for name in (lined[epsilons[0]] if epsilons else ()) if all(name in lined[e] for e in epsilons)]
    names.sort(key=lambda name: sum(lined[e][name].score for e in epsilons))
    data = pd.DataFrame([{"epsilon": e, **lined[e][name]._asdict()} for name in names for e in epsilons])
    made = Table.crossed(
        data, [{"algorithm": name} for name in names], {"method": lambda key: ranked.label(key["algorithm"])},
        {f"ε = {e:g}": {"epsilon": e} for e in epsilons if names}, _left, data=data,
    )  # fmt: skip
    made.gaps = [] if names else [context.gap("held_out", "every row")]
    agree = ", ".join(f"{two(_agreement(rows, by[e], e))} at ε = {e:g}" for e in epsilons)
    families = len(by[epsilons[0]]) if epsilons else 0
    first = ranked.label(names[0]) if names else ""
    words = {"found": bool(names), "first": first, "families": families, "agree": agree or "–"}
    return made, words


def _left(one: Record) -> str:
    """A place, and what is left of the loss of w = 0, with its interval."""
    return f"{one['place'] or '–'}: {share(one['score'])} [{share(one['low'])}, {share(one['high'])}]"


def _agreement(rows: pd.DataFrame, held: pd.DataFrame, epsilon: float) -> float:
    """Spearman's correlation of the methods' mean held-out scores and their mean scores by excess loss."""
    excess = places.scored(places.means(places.losses(rows[rows["epsilon"].eq(epsilon)])), nulls(), [])
    other = places.by_family(excess, tracks.families())
    shared = [name for name in held if name in other and held[name].notna().all() and name != AUTO]
    return float(held[shared].mean().corr(other[shared].mean(), method="spearman")) if len(shared) > 2 else np.nan
