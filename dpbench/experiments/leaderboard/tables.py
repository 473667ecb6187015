"""The tables of the leaderboard: what to use, places, head-to-heads, the price of tuning, who is in it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pandas as pd

from dpbench import algorithms
from dpbench.experiments.leaderboard.board import UNPAID, Board, board, marked, track_means, two, version
from dpbench.leaderboard import entrants, places, tracks
from dpbench.leaderboard.places import AUTO, NOTHING, Placement
from dpbench.leaderboard.submitted import submissions
from dpbench.study.context import Context
from dpbench.study.declare import artefact
from dpbench.study.output import Record, Sums, Table
from dpbench.study.style import look, problem_title

RULES = (
    "Settings: each method's public rule in (n, d, ε). Privacy: replace-one neighbours for all methods, δ = n⁻² (0 for "
    "pure DP), each method's best accounting."
)
SCORE = (
    "Score: log10 of the mean excess loss over that of w = 0, averaged over families of problems. -1 means a tenth of "
    "the excess loss of w = 0, and 0 means no better than w = 0; a missing or failed run counts as 3. In brackets: "
    "simultaneous 95 % intervals over families."
)
PAYS = f"{UNPAID}: uses an eigenvalue (or column scales) of the data that its ε does not cover, so it has no place."
THEIRS = "‡: another library's solver."
FIRST = 8  # methods of the head-to-heads, beside w = 0 and the default


@artefact("answers", "Which optimiser to use")
def answers(context: Context) -> Table:
    """A row per kind of problem, a cell per ε: the first optimiser, and what it leaves of the excess loss of w = 0."""
    ranked = board(context)
    records = [
        {"epsilon": epsilon, "kind": kind or "all", "standing": one, **one._asdict()}
        for kind in (("", *ranked.kinds()) if ranked.epsilons else ())
        for epsilon in ranked.epsilons
        for one in places.placements(ranked.matrix(epsilon, kind), ranked.unpaid)
    ]

    def problems(ones: list[Record]) -> str:
        families = [max(one["families"] for one in ones if one["epsilon"] == e) for e in ranked.epsilons]
        return f"{ones[0]['kind']} ({_families(min(families), max(families))})"

    def at(epsilon: float, ones: list[Record]) -> str:
        return answer([one["standing"] for one in ones if one["epsilon"] == epsilon], ranked.label)

    caption = (
        "Per kind of problem: the optimiser with the lowest score, and what it leaves of the excess loss of w = 0, a "
        "geometric mean over families. In brackets: the default, which chooses by problem."
    )
    elsewhere = "Places, intervals and seconds are in the table of places."
    method = f"{SCORE} {elsewhere} {RULES}{unscored(ranked)} {version(context)}"
    gaps = [] if records else [context.gap("answers", "every row")]
    columns = {"problems": problems} | {f"at ε = {e:g}": partial(at, e) for e in ranked.epsilons}
    return Table.grouped(records, "{kind}", columns, caption, gaps, unsaved=["standing"], method=method)


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


def interval(one: Placement) -> str:
    """ "-1.20 [-1.50, -0.90]"."""
    return f"{two(one.score)} [{two(one.low)}, {two(one.high)}]"


@artefact("places", "Places: score over all families, by ε and by kind of problem")
def placed(context: Context) -> Table:
    """A row per method in the order of its mean over all ε: place and score at each ε, scores by kind, cost."""
    ranked = board(context)
    kinds = ranked.kinds()
    means = {kind: _means(ranked, kind) for kind in ("", *kinds)}
    order = {str(name): i for i, name in enumerate(means[""].sort_values(kind="stable").index)}
    records = [
        {"epsilon": epsilon, "standing": one, **one._asdict()}
        for epsilon in ranked.epsilons
        for one in places.placements(ranked.matrix(epsilon), ranked.unpaid)
        if one.algorithm in order
    ]
    records.sort(key=lambda one: order[one["algorithm"]])

    def at(epsilon: float, ones: list[Record]) -> str:
        shown = (f"{one['place'] or '–'}: {interval(one['standing'])}" for one in ones if one["epsilon"] == epsilon)
        return next(shown, "–")

    def by_kind(kind: str, ones: list[Record]) -> str:
        name = ones[0]["algorithm"]
        return two(means[kind][name]) if name in means[kind] else "–"

    def seconds(ones: list[Record]) -> str:
        timed = ranked.seconds.get(ones[0]["algorithm"])
        return "–" if timed is None else f"{timed:.2g}"

    columns: Sums = {
        "method": lambda ones: ranked.label(ones[0]["algorithm"]),
        **{f"ε = {e:g}: place, score": partial(at, e) for e in ranked.epsilons},
        **{kind: partial(by_kind, kind) for kind in kinds},
        "seconds": seconds,
    }
    problems = set(ranked.scores["problem"])
    families = {tracks.families().get(problem, problem) for problem in problems}
    caption = (
        f"{len(problems)} problems in {len(families)} families. Score: log10 of the mean excess loss over that of w = "
        "0; lower is better. A method scores 0 where its proof does not apply. By kind: mean over ε. Brackets: 95 % "
        "intervals."
    )
    method = (
        f"{len(problems)} problems in {len(families)} families.{unscored(ranked)} By kind: the mean over ε. If a "
        f"method's proof does not cover a family, w = 0 takes its place there. {SCORE} {PAYS} {THEIRS} Seconds: of "
        f"one run timed alone at ε = 1, the median over the small problems that it was timed on. {RULES}"
    )
    gaps = [] if records else [context.gap("places", "every row")]
    return Table.grouped(records, "{algorithm}", columns, caption, gaps, unsaved=["standing"], method=method)


def _means(board: Board, kind: str) -> pd.Series:
    """Each method's score over the families of a kind, the mean over ε; of methods that are on all of them."""
    at = [board.matrix(epsilon, kind) for epsilon in board.epsilons]
    if not at:
        return pd.Series(dtype=float)
    return pd.concat([one.mean().where(one.notna().all()) for one in at], axis=1).mean(axis=1, skipna=False).dropna()


@artefact("duels", "Head to head")
def duels(context: Context) -> Table:
    """The share of families on which the row's method has a lower score than the column's, at ε = 1 or the only ε."""
    ranked = board(context)
    epsilon = 1.0 if 1.0 in ranked.epsilons else next(iter(ranked.epsilons), 1.0)
    matrix = ranked.matrix(epsilon)
    named = [n for n in (NOTHING, AUTO) if n in matrix]
    order = [one.algorithm for one in places.placements(matrix, ranked.unpaid) if one.algorithm not in named][:FIRST]
    table = places.duels(matrix[[*order, *named]])
    labels = [ranked.label(name) for name in table.index]
    cells = [["–" if i == j else f"{x:.2f}" for j, x in enumerate(row)] for i, row in enumerate(table.to_numpy())]
    frame = pd.DataFrame([[label, *row] for label, row in zip(labels, cells, strict=True)], columns=["beats", *labels])
    caption = (
        f"Share of {len(matrix)} families of problems on which the row's method has a lower score "
        f"than the column's, at ε = {epsilon:g}. Ties count half."
    )
    gaps = [] if len(frame) else [context.gap("duels", "every row")]
    return Table(frame, caption, table.reset_index(), gaps)


@artefact("price", "The price of tuning")
def price(context: Context) -> Table:
    """A row per way to settings, a column per ε: mean excess loss over that of the public rule, in shared cells."""
    ways = {
        "private": "tuned within ε: three values around the rule",
        "nearby": "the best of three values around the rule (free here, not private)",
    }
    rule = track_means(context, "default")
    epsilons = sorted(set(rule["epsilon"]))
    data: list[dict[str, Any]] = []
    for track in ways:
        other = track_means(context, track)
        for epsilon in epsilons:
            one = places.price(rule[rule["epsilon"] == epsilon], other[other["epsilon"] == epsilon], tracks.families())
            data.append({"track": track, "epsilon": epsilon, **one._asdict()})
    caption = (
        "Mean excess loss with tuned settings over that at the public rule, geometric mean over families. Above 1 "
        "tuning costs more than it brings. In brackets: 95 % intervals."
    )
    method = (
        "A (problem, ε, method) counts if it was run both with tuned settings and at the method's public rule. The "
        "ratio of the two mean excess losses is averaged within each family, then over families, both times as a "
        "geometric mean."
    )
    shown = "{ratio:.2f} [{low:.2f}, {high:.2f}] (cells: {cells}, families: {families})"
    return Table.spread(
        data,
        "settings",
        lambda one: ways[one["track"]],
        "ε = {epsilon:g}",
        lambda one: shown.format_map(one) if one["cells"] else "–",
        caption,
        [] if epsilons else [context.gap("price", "every row")],
        method=method,
        finding=_price(data),
    )


def _price(data: list[dict[str, Any]]) -> str:
    """By how much tuning within ε changes the excess loss, as a sentence; "" without rows."""
    ratios = [one["ratio"] for one in data if one["track"] == "private" and one["cells"]]
    ends = " to ".join(dict.fromkeys(f"{end:.2f}" for end in (min(ratios), max(ratios)))) if ratios else ""
    return f"Tuning within ε multiplies the excess loss by {ends}" if ratios else ""


@artefact("methods", "Every method: what it is, where it wins, what it costs")
def methods(context: Context) -> Table:
    """A row per method: title, guarantee, what it releases, the kinds it leads, best and worst families, seconds."""
    ranked = board(context)
    lines = []
    at = {
        (e, kind): places.placements(ranked.matrix(e, kind), ranked.unpaid)
        for e in ranked.epsilons
        for kind in ranked.kinds()
    }
    epsilon = 1.0 if 1.0 in ranked.epsilons else next(iter(ranked.epsilons), 1.0)
    matrix = ranked.matrix(epsilon)
    for name in sorted(set(ranked.scores["algorithm"]) - {NOTHING, AUTO}):
        leads = [f"{kind} at ε = {e:g}" for (e, kind), ones in at.items() for one in ones
                 if one.algorithm == name and one.place and not one.apart]  # fmt: skip
        scores = matrix[name].sort_values()
        extremes = (
            "–"
            if scores.empty
            else f"{scores.index[0]} {two(scores.iloc[0])}; {scores.index[-1]} {two(scores.iloc[-1])}"
        )
        seconds = ranked.seconds.get(name)
        lines.append(
            [ranked.label(name), *_guarantee(name), "; ".join(leads) or "–", extremes,
             ranked.unpaid.get(name, "–"), "–" if seconds is None else f"{seconds:.2g}"]
        )  # fmt: skip
    header = ["method", "proof for", "releases", "first, or not distinguishable from it, on", "best and worst family",
              "takes unpaid", "seconds"]  # fmt: skip
    caption = (
        "What each method releases, on which kinds of problems it is first or not distinguishable from the first, and "
        f"its best and worst family at ε = {epsilon:g}."
    )
    method = (
        f"Best and worst family: by the score at ε = {epsilon:g}. Methods for add/remove neighbours run here at twice "
        f"their sensitivities. {RULES}"
    )
    gaps = [] if lines else [context.gap("methods", "every row")]
    return Table(pd.DataFrame(lines, columns=header), caption, gaps=gaps, method=method)


def _guarantee(name: str) -> list[str]:
    if name not in algorithms.names(plugins=False):
        return ["as submitted", "–"]
    method, _ = algorithms.resolve(name)
    return [method.relation.value, ", ".join(one.label for one in method.discloses) or "–"]


@artefact("problems", "The problems, and the methods that are not on the board")
def problems(context: Context) -> Table:
    """A row per problem: size, kind, family, what w = 0 loses, how many methods are on it; then who is left out."""
    on = board(context).scores.groupby("problem")["algorithm"].nunique()
    from dpbench.leaderboard.nulls import nulls

    lines = []
    for problem in context.problems("problems"):
        n, d = tracks.size(problem)
        family = tracks.families().get(problem, problem)
        null = f"{nulls()[problem]:.3g}" if problem in nulls() else "–"
        count = int(on.get(problem, 2)) - 2
        lines.append([problem, f"{n:,}", f"{d:,}", tracks.kind(problem), family, null, str(max(count, 0))])
    left_out = "; ".join(f"{look(name).label}: {why}" for name, why in tracks.excluded().items())
    caption = "The problems: all have rows within ‖x‖₂ ≤ 1 and a certified optimum. Last: how many methods run on each."
    method = f"All problems have rows within ‖x‖₂ ≤ 1 and a certified optimum. Not on the board: {left_out}."
    header = ["problem", "n", "d", "kind", "family", "excess loss of w = 0", "methods"]
    return Table(pd.DataFrame(lines, columns=header), caption, method=method)


@artefact("fits", "Methods left out of a problem, and why")
def fits(context: Context) -> Table:
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
    caption = (
        "Methods that are not run on a problem, and the requirement of their privacy proof that it does not meet: on "
        "the loss, the rows, the regulariser or the settings."
    )
    method = (
        "A method does not run on a problem if its privacy proof does not cover the loss, the rows, the regulariser "
        "or the settings. This is decided from the public description of the problem, not from its data."
    )
    return Table(pd.DataFrame(rows, columns=["not on", "methods", "why"]), caption, method=method)


@artefact("submitted", "Submitted methods: where their rows come from, and whether they were run again")
def submitted(context: Context) -> Table:
    """A row per submission that `dpbench board merge` added."""
    lines = []
    for one in submissions(context.store):
        told, checked = one.manifest, one.checked
        again = "run again here" if one.placed else "; ".join(checked.get("flags") or ["not re-run: no place"])
        bounds = [f"{t['test']}: {t['bound']:.3g} of {t['claim']:.3g} {t['unit']}" for a in one.audits
                  for t in a["tests"]]  # fmt: skip
        planned = one.rows["epsilon_planned"] / one.rows["epsilon"]
        lines.append(
            [marked(told), again, f"{len(one.rows):,} on {one.rows['problem'].nunique()} problems",
             f"{planned.min():.2f} to {planned.max():.2f} of what was asked", told.get("author") or "–",
             told.get("licence") or "–", told["source"], told["code_version"],
             told.get("hardware") or told["environment"],
             "; ".join(bounds), str(checked["archive_sha256"])[:16]]
        )  # fmt: skip
    header = ["method", "standing", "rows", "planned ε", "author", "licence", "code", "dpbench", "made on",
              "its audit: bound of claim", "archive"]  # fmt: skip
    caption = (
        "Methods submitted from outside, and whether their runs were made again here: only those have a place. †: "
        "submitted. ‡: another library's solver." + ("" if lines else " None so far.")
    )
    method = (
        "These rows came by `dpbench submit`. †: a submitted method. ‡: another library's solver. A method gets a "
        "place "
        "only if the receiver ran it again: all cells under new seeds, private copies of problems, and an audit, in a "
        "sandbox." + ("" if lines else " None so far.")
    )
    return Table(pd.DataFrame(lines, columns=header), caption, method=method)


def unscored(board: Board) -> str:
    """A sentence on the (problem, ε) that are not scored yet; "" without any."""
    if not board.waiting:
        return ""
    return f" {board.waiting} (problem, ε) are not scored yet: the runs of some method on them are not made."
