"""The tables of the leaderboard: what to use, places, the price of tuning, who is in it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pandas as pd

from dpbench.experiments.leaderboard.board import PAPER, Board, WithWords, board, marked, track_means
from dpbench.leaderboard import entrants, headline, places, tracks
from dpbench.leaderboard.nulls import nulls
from dpbench.leaderboard.places import AUTO, NOTHING, Placement, two
from dpbench.leaderboard.stored import submissions
from dpbench.study.context import Context, select
from dpbench.study.output import Table
from dpbench.study.style import look, problem_title


@PAPER.artefact("answers")
def answers(context: Context) -> WithWords:
    """A row per kind of problem, a cell per ε: the first optimiser, and what it leaves of the excess loss of w = 0."""
    ranked = board(context)
    lines, data = [], []
    for kind in ("", *ranked.kinds()) if ranked.epsilons else ():
        lined = {e: places.placements(ranked.matrix(e, kind), ranked.unpaid) for e in ranked.epsilons}
        counts = [max(one.families for one in ones) for ones in lined.values()]
        data += [{"epsilon": e, "kind": kind or "all", **one._asdict()} for e, ones in lined.items() for one in ones]
        title = f"{kind or 'all'} ({_families(min(counts), max(counts))})"
        lines.append([title, *(answer(ones, ranked.label) for ones in lined.values())])
    columns = ["problems", *(f"at ε = {e:g}" for e in ranked.epsilons)]
    return _table(context, "answers", lines, columns, pd.DataFrame(data)), {"unscored": unscored(ranked)}


def _table(
    context: Context, name: str, lines: list[list[str]], columns: list[str], data: pd.DataFrame | None = None
) -> Table:
    """The table of these lines; without any, its gap is every row."""
    frame = pd.DataFrame(lines, columns=columns)
    return Table(frame, data, [] if len(frame) else [context.gap(name, "every row")])


def _families(least: int, most: int) -> str:
    """ "41 to 42 families": not all problems are run at every ε."""
    return f"{most} famil{'y' if most == 1 else 'ies'}" if least == most else f"{least} to {most} families"


def answer(lined: list[Placement], label: Callable[[str], str]) -> str:
    """The optimiser to use at one ε, and its share and the default's of the excess loss of w = 0: one line.

    The default is several optimisers, so it is no answer; its share shows what choosing by problem brings.
    """
    first = min((one for one in lined if one.place and one.algorithm != AUTO), key=lambda one: one.place, default=None)
    if first is None:
        return "–"
    by = {one.algorithm: one for one in lined}
    if first.algorithm == NOTHING:
        return "nothing: no method is better than w = 0"
    unsure = ", not distinguishable from w = 0" if first.high >= 0 else ""  # by its interval
    default = f" (default: {share(by[AUTO].score)})" if AUTO in by else ""
    return f"{label(first.algorithm)}: {share(first.score)}{unsure}{default}"


def share(score: float) -> str:
    """What is left of the excess loss of w = 0 at a score, in percent.

    >>> share(-1.13), share(-0.35), share(-2.0)
    ('7.4 %', '45 %', '1 %')
    """
    percent = 100 * 10**score
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.2g} %"


@PAPER.artefact("places")
def placed(context: Context) -> WithWords:
    """A row per method in the order of its mean over all ε: place and score at each ε, scores by kind, cost."""
    ranked = board(context)
    means = {kind: _means(ranked, kind) for kind in ("", *ranked.kinds())}
    lined = {e: ranked.placed(e) for e in ranked.epsilons}
    seconds, lines, data = ranked.seconds, [], []
    for name in map(str, means[""].sort_values(kind="stable").index):
        at = {e: lined[e][name] for e in lined if name in lined[e]}
        data += [{"epsilon": e, **one._asdict()} for e, one in at.items()]
        standings = [f"{at[e].place or '–'}: {at[e].interval}" if e in at else "–" for e in lined]
        kinds = [two(means[kind][name]) if name in means[kind] else "–" for kind in ranked.kinds()]
        lines.append([ranked.label(name), *standings, *kinds, f"{seconds[name]:.2g}" if name in seconds else "–"])
    columns = ["method", *(f"ε = {e:g}: place, score" for e in lined), *ranked.kinds(), "seconds"]
    problems = set(ranked.scores["problem"])
    return _table(context, "places", lines, columns, pd.DataFrame(data)), {
        "problems": len(problems),
        "families": len({tracks.families().get(problem, problem) for problem in problems}),
        "unscored": unscored(ranked),
    }


def _means(ranked: Board, kind: str) -> pd.Series:
    """Each method's score over the families of a kind, the mean over ε; of methods that are on all of them."""
    at = [ranked.matrix(epsilon, kind) for epsilon in ranked.epsilons]
    if not at:
        return pd.Series(dtype=float)
    return pd.concat([one.mean().where(one.notna().all()) for one in at], axis=1).mean(axis=1, skipna=False).dropna()


@PAPER.artefact("left")
def left(context: Context) -> WithWords:
    """A row per group of families, a cell per ε: what the default leaves of the excess loss of w = 0."""
    ranked = board(context)
    members: dict[str, list[str]] = {}
    for problem in sorted(ranked.choice.keys() & set(ranked.scores["problem"])):
        members.setdefault(tracks.families().get(problem, problem), []).append(problem)
    scored = {e: ranked.matrix(e).get(AUTO, pd.Series(dtype=float)) for e in ranked.epsilons}
    lines, data = [], []
    for group, names in headline.groups(members).items() if members else ():
        ones = {e: headline.left(group, scores[scores.index.isin(names)]) for e, scores in scored.items()}
        data += [{"epsilon": e, **one._asdict()} for e, one in ones.items()]
        most = max(one.families for one in ones.values())
        lines.append([f"{group} ({_families(most, most)})", *(_left(one) for one in ones.values())])
    columns = ["families", *(f"at ε = {e:g}" for e in ranked.epsilons)]
    return _table(context, "left", lines, columns, pd.DataFrame(data)), {}


def _left(one: headline.Left) -> str:
    """ "10 % (2.1 % to 33 %); 40 of 42, p = 1e-10"."""
    if not one.families:
        return "–"
    median, low, high = (share(math.log10(value)) for value in (one.median, one.low, one.high))
    return f"{median} ({low} to {high}); {one.better} of {one.families}, p = {one.sign:.1g}"


@PAPER.artefact("needed")
def needed(context: Context) -> WithWords:
    """A row per problem by n: the least n·ε at which the default, and at which any method, is better than w = 0."""
    ranked = board(context)
    rows = places.losses(context.rows("places"))
    rows = rows[rows["problem"].isin(ranked.choice) & ~rows["algorithm"].isin(ranked.unpaid)]
    ones = headline.reach(rows, nulls(), ranked.choice) if len(rows) else []
    lines = [
        [problem_title(one.problem), "drawn" if headline.is_drawn(one.problem) else "real", f"{one.n:,}",
         _rows(one.default), _rows(one.any) + (f" ({ranked.label(one.method)})" if one.method else "")]
        for one in ones
    ]  # fmt: skip
    columns = ["problem", "data", "n", "n·ε of the default", "n·ε of any method"]
    return _table(context, "needed", lines, columns, pd.DataFrame([one._asdict() for one in ones])), {}


def _rows(count: float) -> str:
    return "–" if math.isnan(count) else f"{count:,.0f}"


@PAPER.artefact("against")
def against(context: Context) -> WithWords:
    """A row per method, a cell per ε: the default's score less the method's, and whether they can be told apart."""
    ranked = board(context)
    losses, by = places.losses(context.rows("places")), {}
    for e in ranked.epsilons:
        at, scores = (select(table, epsilon=e) for table in (losses, ranked.scores))
        scores = scores[~scores["algorithm"].isin([*ranked.unpaid, NOTHING])]
        ones = headline.against(at, scores, nulls(), ranked.choice, tracks.families())
        by[e] = {one.algorithm: one for one in ones}
    names = sorted({name for ones in by.values() for name in ones}, key=ranked.label)
    lines = [
        [ranked.label(name), *(_against(ones[name]) if name in ones else "–" for ones in by.values())] for name in names
    ]
    data = pd.DataFrame([{"epsilon": e, **one._asdict()} for e, ones in by.items() for one in ones.values()])
    return _table(context, "against", lines, ["method", *(f"ε = {e:g}" for e in by)], data), {}


def _against(one: headline.Against) -> str:
    return f"{two(one.difference)} [{two(one.low)}, {two(one.high)}] on {one.families}: {one.words}"


TUNED = {
    "private": "tuned within ε: three values around the rule",
    "nearby": "the best of three values around the rule (free here, not private)",
}


@PAPER.artefact("price")
def price(context: Context) -> WithWords:
    """A row per way to settings, a column per ε: mean excess loss over that of the public rule, in shared cells."""
    rule = track_means(context, "default")
    epsilons = sorted(set(rule["epsilon"]))
    data: list[dict[str, Any]] = []
    for track in TUNED:
        other = track_means(context, track)
        for epsilon in epsilons:
            one = places.price(rule[rule["epsilon"] == epsilon], other[other["epsilon"] == epsilon], tracks.families())
            data.append({"track": track, "epsilon": epsilon, **one._asdict()})
    shown = "{ratio:.2f} [{low:.2f}, {high:.2f}] (cells: {cells}, families: {families})"
    table, ways = pd.DataFrame(data), [{"track": track} for track in TUNED if epsilons]
    made = Table.crossed(
        table, ways, {"settings": lambda key: TUNED[key["track"]]}, {f"ε = {e:g}": {"epsilon": e} for e in epsilons},
        lambda one: shown.format_map(one) if one["cells"] else "–", data=table,
    )  # fmt: skip
    made.gaps = [] if epsilons else [context.gap("price", "every row")]
    ratios = [one["ratio"] for one in data if one["track"] == "private" and one["cells"]]
    ends = " to ".join(dict.fromkeys(f"{end:.2f}" for end in (min(ratios), max(ratios)))) if ratios else ""
    return made, {"found": bool(ratios), "ratios": ends}


@PAPER.artefact("problems")
def problems(context: Context) -> WithWords:
    """A row per problem: size, kind, family, what w = 0 loses, how many methods are on it; then who is left out."""
    on = board(context).scores.groupby("problem")["algorithm"].nunique()
    lines = []
    for problem in context.problems("problems"):
        n, d = tracks.size(problem)
        family = tracks.families().get(problem, problem)
        null = f"{nulls()[problem]:.3g}" if problem in nulls() else "–"
        count = int(on.get(problem, 2)) - 2  # without w = 0 and the default
        lines.append([problem, f"{n:,}", f"{d:,}", tracks.kind(problem), family, null, str(max(count, 0))])
    header = ["problem", "n", "d", "kind", "family", "excess loss of w = 0", "methods"]
    left_out = "; ".join(f"{look(name).label}: {why}" for name, why in tracks.excluded().items())
    return Table(pd.DataFrame(lines, columns=header)), {"left_out": left_out}


@PAPER.artefact("fits")
def fits(context: Context) -> WithWords:
    """Every method that is left out of a problem, with the reason."""
    asked = context.problems("fits")
    where: dict[tuple[str, str], list[str]] = {}  # (method, reason) → problems
    for problem in asked:
        for name in entrants.entrants():
            if name not in tracks.excluded() and (why := entrants.reason(problem, name)):
                where.setdefault((name, why), []).append(problem_title(problem))
    names: dict[tuple[str, str], list[str]] = {}  # (problems, reason) → methods
    for (name, why), on in where.items():
        names.setdefault(("all" if len(on) == len(asked) else ", ".join(on), why), []).append(look(name).label)
    rows = [[on, "; ".join(labels), why] for (on, why), labels in names.items()]
    return Table(pd.DataFrame(rows, columns=["not on", "methods", "why"])), {}


@PAPER.artefact("submitted")
def submitted(context: Context) -> WithWords:
    """A row per submission that `dpbench board merge` added."""
    lines = []
    for one in submissions(context.store):
        told, checked = one.manifest, one.checked
        how = checked["how"] + ("" if one.placed else ": no place")
        planned = one.rows["epsilon_planned"] / one.rows["epsilon"]
        lines.append(
            [marked(told), how, f"{len(one.rows):,} on {one.rows['problem'].nunique()} problems",
             f"{planned.min():.2f} to {planned.max():.2f} of what was asked", told["author"] or "–",
             told["licence"] or "–", told["sha256"]["method.py"][:16], checked["code_version"],
             checked["archive_sha256"][:16]]
        )  # fmt: skip
    header = ["method", "how it was run", "rows", "planned ε", "author", "licence", "code", "dpbench", "archive"]
    return Table(pd.DataFrame(lines, columns=header)), {"none": "" if lines else " None so far."}


def unscored(ranked: Board) -> str:
    """A sentence on the (problem, ε) that are not scored yet; "" without any."""
    if not ranked.waiting:
        return ""
    return f" {ranked.waiting} (problem, ε) are not scored yet: the runs of some method on them are not made."
