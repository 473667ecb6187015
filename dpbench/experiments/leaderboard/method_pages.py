"""A page per method of the leaderboard: what it is, its privacy, where it wins, what it costs, its history."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import TypeAlias

import pandas as pd

from dpbench import algorithms
from dpbench.algorithms import rules
from dpbench.algorithms.base import make_settings
from dpbench.algorithms.rules import public_settings
from dpbench.experiments.leaderboard.board import UNPAID, Board, board, marked
from dpbench.leaderboard import places, tracks
from dpbench.leaderboard.places import AUTO, NOTHING, two
from dpbench.leaderboard.submitted import Submitted, submissions
from dpbench.leaderboard.versions import epsilons_of, spelled, versions
from dpbench.study.context import Context
from dpbench.study.output import Page

SIZE = (10_000, 100)  # n and d that the settings of the public rule are shown for
EXTREMES = 5  # families at either end

Sections: TypeAlias = "list[tuple[str, str | pd.DataFrame]]"


def pages(context: Context) -> Iterator[Page]:
    """Of every method with a score, and of every submission; the file of one is `method-NAME.html`."""
    ranked = board(context)
    theirs = {one.manifest["method"]: one for one in submissions(context.store)}
    scored = set(ranked.scores["algorithm"]) - {NOTHING, AUTO}
    for name in sorted(scored | theirs.keys()):
        one = theirs.get(name)
        title = marked(one.manifest) if one else ranked.label(name).removesuffix(f" {UNPAID}")
        about = _submission(one) if one else _own(name)
        told: Sections = [*about, *(_results(context, ranked, name) if name in scored else [])]
        history = _history(context, name)
        if len(history):
            told.append(("Its history: places per version", history))
        yield Page(f"method-{name}", title, _lead(ranked, name), told)


def _lead(ranked: Board, name: str) -> str:
    """Its places, in a sentence."""
    if name not in set(ranked.scores["algorithm"]):
        return "Without a place: the receiver has not run it again."
    at = []
    for epsilon in ranked.epsilons:
        lined = ranked.placed(epsilon)
        one, last = lined[name], max(line.place for line in lined.values())
        rank = f"place {one.place} of {last}" if one.place else "no place"
        at.append(f"{rank} at ε = {epsilon:g} (score {two(one.score)})")
    why = f" It takes {ranked.unpaid[name]} from the data without paying." if name in ranked.unpaid else ""
    return f"Over all families: {', '.join(at)}.{why}"


def _own(name: str) -> Sections:
    """What a method of dpbench is, and its privacy."""
    method, fixed = algorithms.resolve(name)
    rule = [
        [f"{epsilon:g}", ", ".join(f"{key} = {value}" for key, value in (fixed | by_rule).items()) or "its defaults"]
        for epsilon in (0.1, 1.0, 10.0)
        if (by_rule := public_settings(name, *SIZE, epsilon)) is not None
    ]
    settings = make_settings(method, fixed | public_settings(name, *SIZE, 1.0))
    facts = [
        ["proved for", f"{method.relation.value} neighbours; here replace-one"],
        ["accounting here", rules.accounting(method)],
        # A method of pure DP keeps δ = 0 on the board, which is more than is asked.
        ["δ here", "0" if rules.delta(method) == 0 else "n⁻²"],
        ["losses", ", ".join(method.needs.covered)],
        ["regularisers", ", ".join(method.needs.regularisers) or "none"],
        ["takes from the data unpaid", method.public(settings) or "nothing but n"],
    ]
    releases = [[one.label, one.value, one.mechanism, one.count, one.replace_one, one.why] for one in method.discloses]
    header = ["release", "of", "mechanism", "how often", "sensitivity, replace-one", "why"]
    return [
        ("What it is", inspect.getdoc(type(method)) or ""),
        ("Its privacy", pd.DataFrame(facts, columns=["", " "])),
        ("What it releases", pd.DataFrame(releases, columns=header)),
        (f"Its public rule, at n = {SIZE[0]:,} and d = {SIZE[1]}", pd.DataFrame(rule, columns=["ε", "settings"])),
    ]


def _submission(one: Submitted) -> Sections:
    told, checked = one.manifest, one.checked
    facts = [
        ["author", told.get("author") or "not stated"],
        ["licence", told.get("licence") or "not stated"],
        ["code", told["source"]],
        ["made with", told["code_version"]],
        ["hardware", told.get("hardware") or told["environment"]],
        ["archive", checked["archive_sha256"]],
        ["checked", "; ".join(checked["checked"])],
        ["not checked", "; ".join(checked.get("unchecked") or []) or "–"],
        ["flags", "; ".join(checked.get("flags") or []) or "none"],
    ]
    audits = [
        [f"{a['epsilon']:g}", t["test"], f"{t['bound']:.3g}", f"{t['claim']:.3g} {t['unit']}"]
        for a in one.audits
        for t in a["tests"]
    ]
    gaps = [[name, two(public), two(private)] for name, public, private in checked.get("scores") or []]
    sections: Sections = [
        ("What it is", pd.DataFrame(facts, columns=["", " "])),
        ("Its own audit", pd.DataFrame(audits, columns=["ε", "test", "bound", "claim"])),
    ]
    if gaps:
        sections.append(("Scores on public problems and on their private copies",
                      pd.DataFrame(gaps, columns=["problem", "public", "private copy"])))  # fmt: skip
    return sections


def _results(context: Context, ranked: Board, name: str) -> Sections:
    """Where it wins, and what it costs."""
    rows = []
    for epsilon in ranked.epsilons:
        for kind in ("", *ranked.kinds()):
            lined = ranked.placed(epsilon, kind)
            one, first = lined.get(name), next((one for one in lined.values() if one.place == 1), None)
            if one is None or first is None:
                continue
            leads = "first" if one.place == 1 else "" if one.apart else "not distinguishable from the first"
            who = ranked.label(first.algorithm)
            rows.append([f"{epsilon:g}", kind or "all", one.interval,
                         spelled(one.place), str(one.families), leads, f"{who}, {two(first.score)}"])  # fmt: skip
    header = ["ε", "problems", "score", "place", "families", "", "the first, and its score"]
    told: Sections = [("Where it wins: scores by ε and kind of problem", pd.DataFrame(rows, columns=header))]
    epsilon = 1.0 if 1.0 in ranked.epsilons else ranked.epsilons[0]
    scores = places.by_family(
        ranked.scores[ranked.scores["epsilon"].eq(epsilon)], tracks.families()
    )[name].dropna().sort_values(kind="stable")  # fmt: skip
    ends = scores if len(scores) <= 2 * EXTREMES else pd.concat([scores.iloc[:EXTREMES], scores.iloc[-EXTREMES:]])
    best = pd.DataFrame([[family, two(score)] for family, score in ends.items()], columns=["family", "score"])
    told.append((f"Its best and worst families at ε = {epsilon:g}", best))
    timed = context.rows("cost", algorithm=name)
    timed = timed[timed["timed"].gt(0) & timed["seconds"].notna()]
    seconds = timed.groupby("problem")["seconds"].min()
    cost = []
    for problem, least in seconds.items():
        n, d = tracks.size(str(problem))
        cost.append([problem, f"{n:,}", f"{d:,}", f"{least:.2g}"])
    if cost:
        told.append(("What it costs: one run at ε = 1, alone on one core",
                     pd.DataFrame(cost, columns=["problem", "n", "d", "seconds"])))  # fmt: skip
    return told


def _history(context: Context, name: str) -> pd.DataFrame:
    boards = versions(context.store)
    epsilons = epsilons_of(boards)
    rows = [
        [one.name, one.frozen, *(spelled(one.place(name, e)) for e in epsilons), one.notes]
        for one in boards
        if any(one.place(name, e) is not None for e in epsilons)
    ]
    return pd.DataFrame(rows, columns=["version", "frozen", *(f"ε = {e}" for e in epsilons), "notes"])
