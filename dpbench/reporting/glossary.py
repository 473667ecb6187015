"""The glossary as a page, and links to its terms from other pages. Its text is docs/glossary.md; wheels carry it."""

from __future__ import annotations

import functools
import re
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from dpbench import files
from dpbench.reporting.html import breakable, join, page, tag

TITLE, PAGE, FILE = "Glossary", "glossary.html", "glossary.md"
ORDINARY = {"exact", "match", "differs", "place"}  # in a sentence they mean what they always mean
ENTRY = re.compile(r"^\*\*(?P<name>[^*]+)\*\*\n: (?P<text>.+(?:\n  .+)*)$", re.MULTILINE)
CODE = re.compile(r"(<code>.*?</code>|<[^>]*>)")


class Entry(NamedTuple):
    """One entry. names: the words that it explains; "Exact, match, differs" explains three."""

    section: str
    title: str
    names: tuple[str, ...]
    text: str

    @property
    def anchor(self) -> str:
        """Its id on the page.

        >>> Entry("", "Planned ε", ("planned ε",), "").anchor
        'planned-ε'
        """
        return re.sub(r"\W+", "-", self.title.lower()).strip("-")


def source() -> str:
    """The text: beside this module in a wheel, in docs/ in a checkout."""
    packed = resources.files(__package__) / FILE
    if packed.is_file():
        return packed.read_text("utf-8")
    return (Path(__file__).parents[2] / "docs" / FILE).read_text("utf-8")


@functools.cache
def entries() -> tuple[Entry, ...]:
    """All entries, in the order of the page."""
    entries = []
    for part in source().split("\n## ")[1:]:
        section, _, rest = part.partition("\n")
        for one in ENTRY.finditer(rest):
            plain = one["name"].partition(":")[0].lower()
            names = tuple(name.strip() for name in plain.split(","))
            entries.append(Entry(section.strip(), one["name"], names, re.sub(r"\s+", " ", one["text"])))
    return tuple(entries)


@functools.cache
def terms() -> tuple[re.Pattern[str], dict[str, str]]:
    """What finds any term, the longest first, and the anchor of each; neither a tight target nor a missing cell."""
    anchors = {name: one.anchor for one in entries() for name in one.names if name not in ORDINARY}
    names = "|".join(re.escape(name) for name in sorted(anchors, key=len, reverse=True))
    return re.compile(rf"\b(?<!missing )({names})(s?)\b(?! target)", re.IGNORECASE), anchors


def linked(text: str, root: str) -> Markup:
    """Text as `breakable` has it, the first mention of each term a link; root: the way to the glossary's folder."""
    finds, anchors = terms()
    seen: set[str] = set()

    def replaced(match: re.Match[str]) -> str:
        anchor = anchors[match[1].lower()]
        if anchor in seen:
            return match[0]
        seen.add(anchor)
        return f'<a class="term" href="{root}{PAGE}#{anchor}">{match[0]}</a>'

    parts = CODE.split(str(breakable(text)))
    return Markup("".join(part if part.startswith("<") else finds.sub(replaced, part) for part in parts))


def body() -> Markup:
    """The main part of glossary.html."""
    sections: dict[str, list[Markup]] = {}
    for one in entries():
        told = tag("dt", one.title, id=one.anchor) + tag("dd", _plain(one.text))
        sections.setdefault(one.section, []).append(told)
    lead = tag("p", "One word for one thing, on every page and in every message.", cls="lead")
    parts = (tag("h2", name) + tag("dl", join(each), cls="glossary") for name, each in sections.items())
    return tag("h1", TITLE) + lead + join(parts)


def save(folder: Path, nav: list[tuple[str, str]]) -> None:
    """Write what every page of a folder leads to: this page, and the style of all."""
    files.write(folder / PAGE, page(f"{TITLE} – dpbench", nav, body(), here=PAGE))
    files.write(folder / "style.css", (resources.files(__package__) / "style.css").read_text("utf-8"))


def _plain(text: str) -> Markup:
    """Emphasis as HTML; the rest as `breakable` has it."""
    return Markup(re.sub(r"\*([^*]+)\*", r"<em>\1</em>", str(breakable(text))))
