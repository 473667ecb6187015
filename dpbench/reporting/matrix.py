"""Verdicts in HTML: published values as a field of squares over a list, claims with both of their verdicts."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from dpbench.reporting import reproduction
from dpbench.reporting.html import Markup, badge, breakable, join, link, table, tag
from dpbench.study.verdict import AS_PUBLISHED, BOTH, PROVEN
from dpbench.study.welch import WORDS


def counts_table(cells: Any) -> Markup:
    """Per paper how many published values match, …; each number leads to the values."""
    rows = []
    for name, short, words in reproduction.counts(cells):
        page = f"{name}/index.html#values"
        rows.append(
            [link(page, short), sum(words.values()), *(link(page, words[w]) if words[w] else "" for w in WORDS)]
        )
    total = [(cells["verdict"] == word).sum() for word in WORDS]
    rows.append(["all", len(cells), *total])
    files = [link(f"{reproduction.NAME}.{suffix}", suffix.upper()) for suffix in ("pdf", "svg", "csv", "md")]
    meanings = "; ".join(f"{word}: {reproduction.MEANINGS[word]}" for word in WORDS)
    return (
        table(["paper", "values", *WORDS], rows)
        + tag("p", f"{meanings}.", cls="caption")
        + tag("p", join(files, " · "), cls="files")
    )


def values(records: list[dict[str, Any]], experiment: str, profile: str) -> Markup:
    """Published values table by table: a square each, and below, folded, what was compared, and where it stands."""
    parts, at = [], 0
    for printed, group in groupby(records, key=lambda record: record["table"]):
        squares, lines = [], []
        for record in group:
            at += 1
            word, place = record["verdict"], ", ".join(filter(None, (record["row"], record["column"])))
            title = f"{printed}, {place}: {word}"
            mark = reproduction.MARKS[word] or " "
            squares.append(_square(f"#value-{at}", word, title, mark))
            lines.append(tag("li", _value(record, place), id=f"value-{at}"))
            artefact = record["artefact"]
        command = f"dpbench run --experiment {experiment}/{artefact} --profile {profile}"
        told = tag("summary", f"{printed}: what was compared, value by value") + tag("ul", join(lines), cls="claims")
        parts.append(
            tag("h3", printed)
            + tag("p", join(squares), cls="squares")
            + tag("details", told + tag("p", join(["ours: ", link(f"#{artefact}", artefact)])) + tag("pre", command))
        )
    return join(parts)


def _square(target: str, word: str, title: str, mark: str) -> Markup:
    shown = tag("span", mark, cls=f"square {word.replace(' ', '-')}", title=title)
    return Markup(str(link(target, Markup(str(shown).strip()))).replace("<a ", f'<a aria-label="{_quoted(title)}" '))


def _quoted(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")


def _value(record: dict[str, Any], place: str) -> Markup:
    return badge(record["verdict"]) + join([" ", place, tag("small", record["numbers"])])


def claims_table(records: list[dict[str, Any]], page: str) -> Markup:
    """A claim a row: its text and place, the verdict under either setting, the figure, and why."""
    rows: list[list[object]] = []
    for (_, text, place), group in _by_claim(records):
        first = group[0]
        where = tag("small", place) if place else Markup("")
        shown = link(f"{page}#{first['shows']}", first["shows"]) if first["shows"] else "–"
        published, proven = (_badges(group, setting) for setting in (AS_PUBLISHED, PROVEN))
        rows.append([Markup(str(join([text])) + where), published, proven, shown, _why(group, page)])
    return table(
        ["claim, and where it is made", "the paper's setting", "at a proven ε", "shown by", "why"], rows, whole=True
    )


def _badges(records: Iterable[dict[str, Any]], setting: str) -> Markup:
    """The words of one claim's verdicts under a setting, each once."""
    words = dict.fromkeys(record["verdict"] for record in records if record["setting"] in (setting, BOTH))
    return join(map(badge, words), " ") if words else Markup('<span class="none">not judged</span>')


def _why(records: Iterable[dict[str, Any]], page: str) -> Markup:
    told = {record["why"]: record["demonstrated_by"] for record in records if record["why"]}
    return join(
        (join([f"{text} (", link(f"{page}#{artefact}", artefact), ")"]) for text, artefact in told.items()), "; "
    )


def claims_list(records: list[dict[str, Any]]) -> Markup:
    """Verdicts first, the numbers folded: readable on a phone, where a table of sentences is not."""
    items = []
    for (_, text, place), group in _by_claim(records):
        lines = []
        for record in group:
            case = record.get("case") or ("" if record["setting"] == BOTH else record["setting"])
            setting = f" ({case})" if case else ""
            why = join([" Why: ", _why([record], "")]) if record["why"] else Markup("")
            numbers = tag("details", tag("summary", "numbers") + tag("small", breakable(record["numbers"])))
            lines.append(tag("div", badge(record["verdict"]) + setting + why + numbers, cls="verdict"))
        first = group[0]
        shown = join([" · shown by ", link(f"#{first['shows']}", first["shows"])]) if first["shows"] else ""
        items.append(tag("li", tag("b", text) + tag("small", join([place, shown])) + join(lines)))
    return tag("ul", join(items), cls="claims")


def _by_claim(records: list[dict[str, Any]]) -> list[tuple[tuple[str, str, str], list[dict[str, Any]]]]:
    keyed = groupby(records, key=lambda r: (r["claim"], r["text"], r["place"]))
    return [(key, list(group)) for key, group in keyed]
