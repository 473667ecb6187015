"""The tables of tracks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pandas as pd

from dpbench.experiments.tracks.ranking import KINDS, kind, losses, standing, tuned
from dpbench.leaderboard import tracks
from dpbench.leaderboard.submitted import submissions
from dpbench.study.context import Context, select
from dpbench.study.declare import artefact, each
from dpbench.study.output import Table
from dpbench.study.statistics import capitalised, span
from dpbench.study.style import look

WHAT = {
    "default": "without tuning: every method at its public rule in (n, d, ε)",
    "oracle": (
        f"with an oracle's tuning: the best of 3 values around the rule on seeds 0 to {tracks.TUNED_ON - 1}, scored "
        "on the next 20; the choice itself is free, which no practitioner has"
    ),
    "private": (
        "with tuning that is paid for: the oracle's three values searched within the one ε by a random number of runs, "
        "6 on average, each of which releases model and score together (Papernot and Steinke 2022; Liu and Talwar 2019 "
        "for pure DP); methods on samples, and those with nothing to tune, run at their rule"
    ),
}
TITLES = {"default": "Without tuning", "oracle": "With an oracle's tuning", "private": "With tuning that is paid for"}
RULES = (
    "Replace-one neighbours for all, δ = n⁻² (0 for pure DP), each method's best accounting. In brackets: 95 % "
    "intervals by a bootstrap over problems and seeds."
)
MARKS = (
    "†: a submitted method. ‡: another library's solver, whose noise is drawn over there: its ε is what our "
    "accountants make of the noise that was read (table `submitted`)."
)
MOST_NAMED = 4
ENOUGH = 0.8  # of the methods planned on a problem


def track_rows(context: Context, track: str) -> pd.DataFrame:
    """The rows that score a track, with `loss`; on the default track those of submissions too.

    Without the problems on which too few of the planned methods are there: who is first of a few is not first.
    """
    rows = context.rows(track)
    if track == "oracle":
        found = tuned(rows)
    elif track == "private":
        searched = rows["algorithm"].eq(tracks.PRIVATE)
        method = rows["settings"].where(searched, "{}").map(lambda text: json.loads(text).get("method"))
        found = losses(rows.assign(algorithm=rows["algorithm"].where(~searched, method)))
    else:
        found = losses(rows)
    planned: dict[str, set[str]] = {}
    for block in context.blocks("default"):
        planned.setdefault(block.problems[0], set()).update(block.algorithms)
    there = found.groupby("problem")["algorithm"].nunique()
    enough = [p for p, count in there.items() if count >= ENOUGH * len(planned.get(p, ()))]
    found = found[found["problem"].isin(enough)]
    if track != "default":
        return found
    theirs = [losses(one.rows) for one in submissions(context.store)]
    theirs = [one[one["problem"].isin(enough)] if enough else one for one in theirs]
    return pd.concat([found, *theirs], ignore_index=True)


@each(artefact(track, f"{title}: the standing", track=track) for track, title in TITLES.items())
def table(context: Context, track: str) -> Table:
    """A row per method: how many times the best's excess loss it has, at each ε and over all."""
    rows = track_rows(context, track)
    epsilons = sorted(set(rows["epsilon"]))
    overall = standing(rows)
    at = {e: standing(select(rows, epsilon=e)).set_index("algorithm") for e in epsilons}
    theirs = _submitted(context)
    lines = []
    for i, row in enumerate(overall.itertuples(), 1):
        name = theirs.get(row.algorithm) or look(row.algorithm).label
        cells = [_cell(at[e].loc[row.algorithm]) if row.algorithm in at[e].index else "–" for e in epsilons]
        lines.append([str(i) if row.often else "–", name, _cell(row), *cells, f"{row.share:.2f}", f"{row.problems}"])
    header = ["#", "method", "times the best, all ε", *[f"ε = {e:g}" for e in epsilons], "rivals beaten", "problems"]
    caption = (
        f"{capitalised(WHAT[track])}. Geometric mean over problems of a method's mean excess loss over "
        "the lowest of the cell (at most 1000 times); =: of the group of leaders that 95 % do not tell apart, on the "
        "problems they share. Rivals beaten: the mean share. Methods on fewer than half of the problems come last, "
        "without a place. "
        f"{len(set(rows['problem']))} problems, {_seeds(rows)} seeds. {RULES}"
        + (f" {MARKS}" if theirs and track == "default" else "")
    )
    gaps = [] if lines else [context.gap(track, "every row")]
    return Table(pd.DataFrame(lines, columns=header), caption, overall, gaps)


def _submitted(context: Context) -> dict[str, str]:
    """The marked title of every submission, by its method."""
    return {one.manifest["method"]: marked(one.manifest) for one in submissions(context.store)}


def marked(manifest: dict[str, Any]) -> str:
    """The title of a submission, with its mark."""
    return f"{manifest['title']} {'‡' if manifest.get('library') else '†'}"


def _seeds(rows: pd.DataFrame) -> str:
    return span(rows.groupby(["problem", "epsilon", "algorithm", "settings"]).size())


def _cell(row: Any) -> str:
    return f"{'= ' if row.leads else ''}{row.times:.2f} [{row.low:.2f}, {row.high:.2f}]"


@artefact("answers", "Which method: without tuning, with an oracle's, with paid tuning, per ε and kind of problem")
def answers(context: Context) -> Table:
    """A row per ε and kind of problem, a column per track: the leaders, computed from the rows."""
    rows = {track: track_rows(context, track) for track in TITLES}
    epsilons = sorted({e for found in rows.values() for e in found["epsilon"]})
    kinds = {track: found["problem"].map({p: kind(p) for p in set(found["problem"])}) for track, found in rows.items()}
    theirs = _submitted(context)
    lines, data = [], []
    for epsilon in epsilons:
        for which in ("all", *KINDS):
            line = [f"{epsilon:g}", which]
            for track, found in rows.items():
                chosen = found[found["epsilon"].eq(epsilon) & (kinds[track].eq(which) | (which == "all"))]
                result = standing(chosen)
                data.append(result.assign(track=track, epsilon=epsilon, kind=which))
                line.append(leaders(result, theirs))
            lines.append(line)
    caption = (
        "The first of each cell with its mean excess loss in times of the best of each problem (1 is the best on every "
        "one), then those that 95 % do not tell from it. "
        + "; ".join(f"{TITLES[track].lower()}: {WHAT[track].partition(': ')[2]}" for track in TITLES)
        + f". {RULES}"
        + (f" {MARKS}" if theirs else "")
    )
    gaps = [context.gap(track, f"{TITLES[track]}") for track, found in rows.items() if found.empty]
    filled = [one for one in data if len(one)]
    return Table(
        pd.DataFrame(lines, columns=["ε", "problems", *TITLES.values()]),
        caption,
        pd.concat(filled, ignore_index=True) if filled else standing(next(iter(rows.values()))),
        gaps,
    )


def leaders(result: pd.DataFrame, theirs: Mapping[str, str]) -> str:
    """The first, its distance, and the rest of its group, in words; theirs: what submitted methods are called."""
    group = result[result["leads"]] if len(result) else result
    if group.empty:
        return "–"
    first = group.iloc[0]
    titles = [theirs.get(name) or look(name).label for name in group["algorithm"]]
    names = titles[1:]
    text = f"{titles[0]}, {first.times:.2f} [{first.low:.2f}, {first.high:.2f}]"
    if not names:
        return text
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{text}; not told apart: {', '.join(names[:MOST_NAMED])}{more}"


@artefact("submitted", "Submitted methods: where their rows come from")
def submitted(context: Context) -> Table:
    """A row per submission that `dpbench merge` added."""
    lines = []
    for one in submissions(context.store):
        told = one.manifest
        bounds = [f"{t['test']}: {t['bound']:.3g} of {t['claim']:.3g} {t['unit']}" for a in one.audits
                  for t in a["tests"]]  # fmt: skip
        lines.append(
            [
                marked(told),
                f"{len(one.rows):,} on {one.rows['problem'].nunique()} problems",
                _guarantee(one.rows),
                told["source"],
                told["code_version"],
                told["environment"],
                "; ".join(bounds),
                one.checked["archive_sha256"][:16],
            ]
        )
    header = ["method", "rows", "ε", "code", "dpbench", "environment", "audit: bound of claim", "archive"]
    caption = (
        f"Rows that came by `dpbench submit`. {MARKS} Checked before they were merged, without running "
        "their code: schema, hashes, keys, seeds, ε ≤ asked with every ledger composed anew, losses against our "
        "optimum, the audit's verdict. Their losses are as stated: submit --check ARCHIVE --rerun runs the code."
        + ("" if lines else " None so far.")
    )
    return Table(pd.DataFrame(lines, columns=header), caption)


def _guarantee(rows: pd.DataFrame) -> str:
    """How much of the ε asked for was planned, by which accountant, and what the rows note of it."""
    share = rows["epsilon_planned"] / rows["epsilon"]
    told = f"{share.min():.2f} to {share.max():.2f} of what was asked, by {', '.join(sorted(set(rows['checked_by'])))}"
    return ". ".join([told, *rows["notes"].dropna()[:1]])


@artefact("problems", "The problems, and who is on none of the tracks")
def problems(context: Context) -> Table:
    """A row per problem: size, kind, and how many methods are on it; then the methods left out."""
    rows = context.rows("default")
    lines = []
    for problem in context.problems("default"):
        n, d = tracks.size(problem)
        there = rows[rows["problem"] == problem]
        lines.append([problem, f"{n:,}", f"{d:,}", kind(problem), str(there["algorithm"].nunique())])
    left_out = "; ".join(f"{look(name).label}: {why}" for name, why in tracks.excluded().items())
    caption = f"All with rows within ‖x‖₂ ≤ 1 and a certified optimum. Methods on no track: {left_out}."
    return Table(pd.DataFrame(lines, columns=["problem", "n", "d", "kind", "methods"]), caption)
