"""Verdicts in HTML: published values as a field of squares over a list, claims with all of their verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

from markupsafe import Markup

from dpbench.reporting import glossary, reproduction
from dpbench.reporting.html import badge, breakable, join, link, table, tag
from dpbench.study.declare import BOTH
from dpbench.study.headline import Headline
from dpbench.study.value_verdict import DIFFERS, LEFT_OUT, SURVIVES, WORDS

MARKS = (
    "A square is one published value, and its colour is the verdict on it. ●: runs at a proven ε give it too. "
    "×: it differs. –: left out."
)


def headline_table(frame: Any) -> Markup:
    """The headline numbers per paper, each paper a link to its values, and the lines of all papers."""
    told = reproduction.table(frame)
    pages = [f"{name}/index.html#values" for name, _, _ in reproduction.headlines(frame)]
    rows = [[link(page, row[0]), *row[1:]] for page, row in zip(pages, told.to_numpy().tolist(), strict=False)]
    rows.append(told.to_numpy().tolist()[-1])
    files = [link(f"{reproduction.NAME}.{suffix}", suffix.upper()) for suffix in ("pdf", "svg", "csv", "md")]
    meanings = "; ".join(f"{word}: {reproduction.MEANINGS[word]}" for word in WORDS)
    return (
        headline_list(reproduction.in_all(frame))
        + table(list(told.columns), rows)
        + tag("details", tag("summary", "Method") + tag("p", glossary.linked(f"{meanings}.", ""), cls="caption"))
        + tag("p", join(files, " · "), cls="files")
    )


def headline_list(one: Headline) -> Markup:
    """The lines below the sentence; a list that is long is folded."""
    items = []
    for line in one.lines():
        short, _, rest = line.partition(" (")
        folded = tag("details", tag("summary", "each of them") + tag("small", line))
        items.append(tag("li", join([short, folded]) if rest and len(line) > 200 else line))
    return tag("ul", join(items), cls="headline")


def values(records: list[dict[str, Any]], commands: Mapping[str, str]) -> Markup:
    """Published values table by table: a square each, and below, folded, what was compared, and where it stands.

    commands: artefact → the command that makes its rows, or draws it.
    """
    parts, at = [], 0
    for printed, group in groupby(records, key=lambda record: record["table"]):
        squares, lines = [], []
        for record in group:
            at += 1
            place = ", ".join(filter(None, (record["row"], record["column"])))
            title = f"{printed}, {place}: {_verdict_sentence(record)}"
            # A run time is no verdict, and a square would be counted by the eye.
            if not record["run_time"]:
                squares.append(_square(f"#value-{at}", record["verdict"], title, _mark(record)))
            lines.append(tag("li", _value(record, place), id=f"value-{at}"))
            artefact = record["artefact"]
        command = commands.get(artefact, "dpbench report")
        told = tag("summary", f"{printed}: what was compared, cell by cell") + tag("ul", join(lines), cls="claims")
        parts.append(
            tag("h3", printed)
            + (tag("p", join(squares), cls="squares") if squares else "")
            + tag("details", told + tag("p", join(["ours: ", link(f"#{artefact}", artefact)])) + tag("pre", command))
        )
    return join(parts)


def legend() -> Markup:
    """What the colours and the marks of the squares mean."""
    colours = (join([tag("span", "", cls=f"square {word.replace(' ', '-')}"), f" {word}"]) for word in WORDS)
    return tag("p", join(colours, ""), cls="squares legend") + tag("p", MARKS, cls="caption")


def _mark(record: dict[str, Any]) -> str:
    left = not record["counts"]
    return "●" if record["survives"] == SURVIVES and not left else {DIFFERS: "×"}.get(record["verdict"], "–" * left)


def _verdict_sentence(record: dict[str, Any]) -> str:
    """A cell's class with its reason, what it would have noticed, and its survival."""
    flags = [record["reason"], f"copy of {record['copy_of']}" if record["copy_of"] else ""]
    word = str(record["verdict"]) + (f" ({'; '.join(filter(None, flags))})" if any(flags) else "")
    if record["verdict"] in LEFT_OUT:
        return word
    word += "" if record["private"] else ", in a setting that does not keep its ε"
    seen = [f"{text} {record[name]}" for name, text in (("notices", "notices"), ("misses", "does not notice"))
            if record[name]]  # fmt: skip
    if record["survives"]:
        by = f", comes back with {record['by']}" if record["by"] else ""
        how = f" ({record['how']})" if record["how"] else ""
        seen.append(f"at a proven ε: {record['survives']}{by}{how}")
    return "; ".join([word, *seen])


def _square(target: str, word: str, title: str, mark: str) -> Markup:
    shown = tag("span", mark, cls=f"square {word.replace(' ', '-')}", title=title)
    return link(target, shown.strip(), aria_label=title)


def _value(record: dict[str, Any], place: str) -> Markup:
    fits = f" Fits, which explain nothing: {record['fits']}." if record["fits"] else ""
    told = _verdict_sentence(record)[len(record["verdict"]) :]
    return badge(record["verdict"]) + join([" ", place, told, tag("small", record["numbers"] + fits)])


def claims_list(records: list[dict[str, Any]]) -> Markup:
    """Verdicts first, the numbers folded: readable on a phone, where a table of sentences is not."""
    items = []
    for (_, text, place, shows), group in groupby(records, key=itemgetter("claim", "text", "place", "shows")):
        lines = []
        for record in group:
            case = record.get("case") or ("" if record["setting"] == BOTH else record["setting"])
            setting = f" ({case})" if case else ""
            why = Markup("")
            if record["why"]:
                by = record["demonstrated_by"]
                why = join([f" Why: {record['why']} (", link(f"#{by}", by), ")"])
            numbers = tag("details", tag("summary", "numbers") + tag("small", breakable(record["numbers"])))
            lines.append(tag("div", badge(record["verdict"]) + setting + why + numbers, cls="verdict"))
        shown = join([" · shown by ", link(f"#{shows}", shows)]) if shows else ""
        items.append(tag("li", tag("b", text) + tag("small", join([place, shown])) + join(lines)))
    return tag("ul", join(items), cls="claims")
