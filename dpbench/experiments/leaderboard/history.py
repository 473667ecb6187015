"""What became of earlier versions: places per version, and the leaders that fell."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pandas as pd

from dpbench import leaderboard
from dpbench.experiments.leaderboard.board import Board, board, two, version
from dpbench.files import read_toml
from dpbench.leaderboard import places
from dpbench.leaderboard.places import NOTHING
from dpbench.leaderboard.versions import Version, versions
from dpbench.study.context import Context
from dpbench.study.declare import artefact
from dpbench.study.output import Record, Sums, Table


def epsilons_of(versions: list[Version]) -> list[str]:
    """The ε of all versions, as they spell them, rising."""
    return sorted({epsilon for one in versions for epsilon in one.places}, key=float)


def spelled(place: int | None) -> str:
    """A place; "–" for a method that is listed without one, "" for one that is not there."""
    return "" if place is None else str(place or "–")


@artefact("history", "Places per version")
def history(context: Context) -> Table:
    """A row per method, a column per version and ε: the place, – for none, empty where it was not there."""
    former, label = versions(context.store), board(context).label
    epsilons = epsilons_of(former)
    newest = (line.method for one in reversed(former) for e in epsilons for line in one.places.get(e, []))
    order = {name: i for i, name in enumerate(dict.fromkeys(newest))}
    records = [
        {"version": one.name, "epsilon": e, "algorithm": line.method, "place": line.place, "score": line.score}
        for one in former
        for e in epsilons
        for line in one.places.get(e, [])
    ]
    records.sort(key=lambda one: order[str(one["algorithm"])])

    def place(version: str, epsilon: str, ones: list[Record]) -> str:
        there = (one["place"] for one in ones if (one["version"], one["epsilon"]) == (version, epsilon))
        return spelled(next(there, None))

    frozen = "; ".join(
        f"{one.name}: {one.frozen}, {one.problems} problems in {one.families} families, {one.rows:,} rows, sha256 "
        f"{one.digest[:12]}{f', {one.notes}' if one.notes else ''}"
        for one in former
    )
    caption = "The place of each method in each frozen version of the board; –: listed without a place."
    method = f"{version(context)}" + (f" Versions: {frozen}." if frozen else "")
    columns: Sums = {"method": lambda ones: label(ones[0]["algorithm"])} | {
        f"{one.name}, ε = {e}": partial(place, one.name, e) for one in former for e in epsilons if e in one.places
    }
    return Table.grouped(records, "{algorithm}", columns, caption, method=method)


@artefact("fallen", "Leaders of version 1, and what beats them now")
def former_leaders(context: Context) -> Table:
    """A row per ε and kind of version 1: its leader, that method's place and score now, and the first of today."""
    ranked = board(context)
    told = read_toml(Path(leaderboard.__file__).with_name("fallen.toml"))["leaders"]
    rows = [_row(ranked, **one) for one in told if one["epsilon"] in ranked.epsilons]
    header = ["ε", "problems", "led in version 1", "its place now", "its score", "first now", "score of the first",
              "families on which the first is ahead"]  # fmt: skip
    caption = "Every leader of version 1 without tuning, where it stands now, and the method that leads today."
    method = (
        "Version 1 was scored by the ratio to the best method of each problem. It had 25 problems in 15 families, "
        "and neither w = 0 nor the default was in it. The scores in this table are today's: log10 of the excess loss "
        "over that of w = 0. In version 1, DP-GCD took its scales M_j from the data; now it takes them from the "
        "bound on the rows."
    )
    gaps = [] if rows else [context.gap("fallen", "every row")]
    return Table(pd.DataFrame(rows, columns=header), caption, gaps=gaps, method=method)


def _row(board: Board, *, epsilon: float, kind: str, method: str, times: float) -> list[str]:
    """One leader of version 1 on the board of today."""
    matrix = board.matrix(epsilon, kind)
    lined = {one.algorithm: one for one in places.placements(matrix, board.unpaid)}
    first = next((one for one in lined.values() if one.place == 1), None)
    head = [f"{epsilon:g}", kind or "all", f"{board.label(method)}, {times:.2f} times the best"]
    if first is None:
        return [*head, *["–"] * 5]
    now = lined.get(method)
    where = "not on it" if now is None else spelled(now.place)
    score = "–" if now is None else two(now.score)
    ahead = "–"
    if now is not None and first.algorithm != method:
        both = matrix[[first.algorithm, method]].dropna()
        share = places.duels(both)[method][first.algorithm]
        ahead = f"{share * len(both):g} of {len(both)}"
    who = "nothing (w = 0)" if first.algorithm == NOTHING else board.label(first.algorithm)
    return [*head, where, score, who, two(first.score), ahead]
