"""Classification by log loss on rows that nobody was trained on."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from dpbench.experiments.leaderboard.board import board, two
from dpbench.experiments.leaderboard.tables import RULES
from dpbench.leaderboard import places, tracks
from dpbench.leaderboard.nulls import nulls
from dpbench.leaderboard.places import AUTO, METHOD, NOTHING
from dpbench.run import outcomes
from dpbench.study.context import Context
from dpbench.study.declare import artefact
from dpbench.study.output import Table

NULL = math.log(2)  # log loss of w = 0, whatever the rows


def scores(rows: pd.DataFrame, choice: dict[str, str]) -> pd.DataFrame:
    """(problem, ε, algorithm, score): log10 of the mean held-out log loss over that of w = 0; with the default's.

    rows: of the runs table. A run that failed, diverged or has no score counts as the worst there is.
    """
    ended = rows["status"].isin(outcomes.RESULTS) & rows["held_loss"].notna()
    loss = rows["held_loss"].astype(float).where(ended, math.inf)
    means = rows.assign(loss=loss).groupby(METHOD, as_index=False)["loss"].mean()
    means["score"] = [places.score(one, NULL) for one in means["loss"]]
    cells = means[["problem", "epsilon"]].drop_duplicates()
    table = pd.concat([means[[*METHOD, "score"]], cells.assign(algorithm=NOTHING, score=0.0)], ignore_index=True)
    return places.with_auto(table, choice)


@artefact("held_out", "Classification by log loss on held-out rows")
def held_out(context: Context) -> Table:
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
    agree = ", ".join(f"{two(_agreement(rows, by[e], e))} at ε = {e:g}" for e in epsilons)
    caption = (
        "Place, and log loss in nats on held-out rows: geometric mean over families, with simultaneous 95 % intervals. "
        f"w = 0 has {NULL:.3f}."
    )
    method = (
        f"A quarter of the rows of each problem is held out; there are {len(by[epsilons[0]]) if epsilons else 0} "
        f"families. Rank correlation with the order by excess loss of the same runs: {agree or '–'}. {RULES}"
    )
    return Table.spread(
        data,
        "method",
        lambda one: ranked.label(one["algorithm"]),
        "ε = {epsilon:g}",
        lambda one: f"{one['place'] or '–'}: {nats(one['score'])} [{nats(one['low'])}, {nats(one['high'])}]",
        caption,
        [] if data else [context.gap("held_out", "every row")],
        method=method,
        finding=f"On held-out rows, {ranked.label(names[0])} has the lowest mean log loss over all ε" if names else "",
    )


def nats(score: float) -> str:
    """The log loss that a score stands for."""
    return f"{NULL * 10**score:.3f}"


def _agreement(rows: pd.DataFrame, held: pd.DataFrame, epsilon: float) -> float:
    """Spearman's correlation of the methods' mean held-out scores and their mean scores by excess loss."""
    excess = places.scored(places.means(places.losses(rows[rows["epsilon"].eq(epsilon)])), nulls(), [])
    other = places.by_family(excess, tracks.families())
    shared = [name for name in held if name in other and held[name].notna().all() and name != AUTO]
    return float(held[shared].mean().corr(other[shared].mean(), method="spearman")) if len(shared) > 2 else np.nan
