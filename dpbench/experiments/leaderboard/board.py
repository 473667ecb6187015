"""The board of a context: scores from rows, and what is known of entrants beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from dpbench import algorithms, frames
from dpbench.algorithms.base import make_settings
from dpbench.leaderboard import nulls, places, tracks
from dpbench.leaderboard.stored import Submitted, submissions
from dpbench.run.row import setting, settings_of
from dpbench.study.context import Context, memoised, select
from dpbench.study.grid import GridEntry
from dpbench.study.paper import Paper
from dpbench.study.plan import plan
from dpbench.study.style import look

PAPER = Paper(__package__)
LEVELS = {"low": 0.1, "mid": 1.0, "high": 10.0}  # ε
NAMES = {places.NOTHING: "nothing (w = 0)", places.AUTO: places.DEFAULT}
UNPAID = "¶"


@dataclass(frozen=True)
class Board:
    """scores: (problem, ε, algorithm, score), w = 0 and the default among them; by `scale`. losses: of each run.

    unpaid: method → what it takes from the data without paying. titles: what submitted methods are called. seconds:
    method → those of one run. choice: problem → what the default takes there.
    waiting: how many (problem, ε) are not scored yet, because the runs of some method of dpbench are not made there.
    """

    scale: places.Scale
    scores: pd.DataFrame
    losses: pd.DataFrame
    unpaid: dict[str, str]
    titles: dict[str, str]
    seconds: dict[str, float]
    choice: dict[str, str]
    waiting: int = 0

    def label(self, name: str) -> str:
        """What an entrant is called, with its marks."""
        mark = f" {UNPAID}" if name in self.unpaid else ""
        return (NAMES.get(name) or self.titles.get(name) or look(name).label) + mark

    def kept(self, epsilon: float, name: str = places.AUTO, loss: str = "") -> pd.Series:
        """Family → the share of the gain that a method keeps, on problems of a loss; empty where it is not on all."""
        table = select(self.scores, epsilon=epsilon)
        table = table[table["problem"].map(tracks.kind).astype(str).str.startswith(loss)]
        scores = places.by_family(table, tracks.families()).get(name, pd.Series(dtype=float))
        return pd.Series(self.scale.kept(scores if scores.notna().all() else scores.iloc[:0]))

    def placed(self, epsilon: float) -> list[places.Placement]:
        """The lines of the table of places at one ε; w = 0 stands in where a method is not admitted.

        That is what is left to whoever has that method alone.
        """
        table = places.by_family(select(self.scores, epsilon=epsilon), tracks.families())
        return places.placements(table.fillna(0.0), self.unpaid)

    @property
    def epsilons(self) -> list[float]:
        return sorted(set(self.scores["epsilon"]))


ROWS = {places.HELD: "held_out", places.EXCESS: "places"}  # a loss → the table whose rows are scored by it


@memoised
def board(context: Context, column: str = places.EXCESS) -> Board:
    """The board by one loss, with the submissions that have it."""
    scale = nulls.scale(column)
    placed = [one for one in submissions(context.store) if one.placed]
    theirs = [one.comparable(nulls.nulls()) for one in placed]
    # On private copies nothing is held out, so a submission may have no such loss at all.
    # Of another library too slow to run everywhere, its file says by which losses it is complete.
    both = [
        (one, own) for one, own in zip(placed, theirs, strict=True)
        if own[column].notna().any() and column in one.checked.get("scored", ROWS)
    ]  # fmt: skip
    listed = [places.losses(own, column) for own in (context.rows(ROWS[column]), *(own for _, own in both))]
    losses = pd.concat([own[own["problem"].isin(scale.nulls)] for own in listed], ignore_index=True)
    planned = [at for block in context.blocks(ROWS[column]) for at in _comparisons(block) if at[0] in scale.nulls]
    installed = {name for *_, name in planned} - {*algorithms.names(plugins=False)}
    # A problem counts once all methods of dpbench ran on it: a place must not depend on the order of runs.
    table, planned, waiting = places.finished(places.means(losses), planned, installed)
    planned += [at for one, _ in both for at in _admitted(one, planned)]
    scores = places.scored(table, scale, planned)
    # The default is an entrant: it has the score of the method that it takes on each problem.
    choice = {problem: name for problem in sorted(set(scores["problem"])) if (name := tracks.choice(problem))}
    scores = places.with_auto(scores, choice, scale.worst)
    unpaid = {name: what for name, what in map(_unpaid, frames.mappings(table)) if what}
    titles = {one.manifest["method"]: marked(one.manifest) for one, _ in both}
    return Board(scale, scores, losses, unpaid, titles, _seconds(context), choice, waiting)


def _unpaid(row: dict[str, Any]) -> tuple[str, str]:
    """A method, and what it takes without paying: by its own code where it is of dpbench, else as its rows say."""
    name = row["algorithm"]
    if name not in algorithms.names(plugins=False):
        return name, row["unpaid"] or ""
    method, _ = algorithms.resolve(name)
    return name, method.public(make_settings(method, settings_of(row["settings"])))


def _comparisons(block: GridEntry) -> list[tuple[str, float, str]]:
    return [(problem, epsilon, name) for problem, name, epsilon in block.combinations]


def _admitted(one: Submitted, planned: list[tuple[str, float, str]]) -> list[tuple[str, float, str]]:
    """Where a submission is scored: in all of every kind that it has a row of, so leaving one out costs +CLIP there."""
    kinds = {tracks.kind(problem) for problem in set(one.rows["problem"])}
    comparisons = {(problem, epsilon) for problem, epsilon, _ in planned if tracks.kind(problem) in kinds}
    return [(*at, one.manifest["method"]) for at in sorted(comparisons)]


def _seconds(context: Context) -> dict[str, float]:
    """Method → seconds of a run timed alone at ε = 1: the least of its repetitions, the median over problems."""
    rows = context.rows("places")
    timed = rows[rows["timed"].gt(0) & rows["epsilon"].eq(1.0) & rows["seconds"].notna()]
    least = timed.groupby(["algorithm", "problem"])["seconds"].min()
    return {str(name): float(value) for name, value in least.groupby("algorithm").median().items()}


def marked(manifest: dict[str, object]) -> str:
    """The title of a submission, with its mark."""
    return f"{manifest['title']} {'‡' if manifest.get('library') else '†'}"


@memoised
def track_means(context: Context, track: str) -> pd.DataFrame:
    """`places.means` of the results of a track's runs, one row per (problem, ε) and method."""
    blocks = [b for b in context.experiment.grid()[context.profile] if _serves(b, track)]
    expanded = [one for block in blocks for one in tracks.expand(block)]
    rows = places.losses(context.runs[context.runs["key"].isin(plan(expanded, context.store).keys)])
    if track == "nearby":
        rows = tracks.chosen(rows)
    if track == "private":
        rows = rows[rows["algorithm"].eq(tracks.PRIVATE)]
        rows = rows.assign(algorithm=setting(rows, "method"))
    return places.pick(places.means(rows), places.METHOD, "mean")


def _serves(block: GridEntry, track: str) -> bool:
    named = block.settings.get(tracks.TRACK)
    return not block.timed and (named == track or (track == "nearby" and named == tracks.TUNE))
