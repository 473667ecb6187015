"""The few pieces of HTML that the pages are made of, from `templates/`. Text is escaped there and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

import jinja2
from markupsafe import Markup, escape

WORDS = {  # verdict → class of its badge
    "held": "good",
    "exact": "good",
    "match": "good",
    "holds, with noise to spare": "good",
    "not held": "bad",
    "differs": "bad",
    "false": "bad",
    "false statement": "bad",
    "harmless": "good",
}


SHORT = 18  # characters of a cell that stays on one line
NUMBER = re.compile(r"[-+−–\d.,:%±×eE()\[\]\s]*\d[-+−–\d.,:%±×eE()\[\]\s]*")
POWER = re.compile(r"\d[\d.,]*e[-+]\d+")  # 8.1e-05: a browser may break it at its hyphen
TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("dpbench.reporting"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    undefined=jinja2.StrictUndefined,
)
PARTS: Any = TEMPLATES.get_template("parts.html").module


def tag(name: str, content: object = "", **attributes: object) -> Markup:
    """One element; `cls` is its class, and _ in the name of an attribute is a hyphen."""
    given = {"class" if key == "cls" else key.replace("_", "-"): value for key, value in attributes.items()}
    return Markup(PARTS.tag(name, content, given))


def join(parts: Iterable[object], between: str = "") -> Markup:
    """The parts as markup, one after another."""
    return Markup(between).join(map(escape, parts))


def link(target: str, text: object, **attributes: object) -> Markup:
    """A link to `target`."""
    # Within a sentence its line end would be a blank before the full stop.
    return Markup(tag("a", text, href=target, **attributes).rstrip("\n"))


def image(source: str, alt: str, size: tuple[int, int]) -> Markup:
    """An image of `size` pixels, drawn at half of it: figures are saved for print."""
    width, height = size
    words = '<img src="{}" alt="{}" width="{}" height="{}">\n'
    return Markup(words).format(source, alt, width // 2, height // 2)


def badge(word: str, count: int = 0) -> Markup:
    """A verdict in its colour; count: how many there are, 0 for one that stands alone."""
    text = f"{count} {word}" if count else word
    return Markup('<span class="badge {}">{}</span>').format(WORDS.get(word, "open"), text)


def breakable(text: str) -> Markup:
    """Text whose commands, and what stands in backticks, are in code type: `dpbench run --experiment x/y`.

    A number and its %, or its power of ten, stay on one line.
    """
    text = re.sub(r"(?<=\d) (?=%)", "\u00a0", text)
    commands = re.sub(r"(dpbench (?:run|fetch|report|diff)(?: [\w./-]+)*)", r"<code>\1</code>", str(escape(text)))
    commands = POWER.sub(r'<span class="whole-number">\g<0></span>', commands)
    return Markup(re.sub(r"`([^`<>]+)`", r"<code>\1</code>", commands))


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    last: Callable[[str], Markup] | None = None,
    whole: bool = False,
) -> Markup:
    """A table in a frame that scrolls by itself; `last` renders the last cell of each row. whole: in full length.

    On a phone it stands cell below cell, each after its column's name.
    """
    body = []
    for row in rows:
        cells = [*row[:-1], last(str(row[-1]))] if last else row
        body.append([_cell(cell, label) for cell, label in zip(cells, columns, strict=True)])
    return Markup(PARTS.table(columns, body, whole))


def _cell(content: object, label: str) -> tuple[str, str, object]:
    """(class, label, content): numbers and names stay on one line, in print too; the first line of several is bold."""
    label = label if content != "" else ""
    if isinstance(content, Markup):
        return "", label, content
    text = str(content)
    first, *further = text.split("\n")
    if further:
        return "", label, join([tag("b", first), *(tag("small", breakable(line)) for line in further)])
    if NUMBER.fullmatch(text):
        return "short number", label, text
    return "short" if len(text) <= SHORT else "", label, breakable(text) if POWER.search(text) else text


def paragraphs(labelled: Iterable[tuple[str, str]]) -> Markup:
    """One paragraph per label and its words."""
    return Markup(PARTS.paragraphs([(label, breakable(words)) for label, words in labelled]))


def articles(sections: Iterable[tuple[str, str, Markup]]) -> Markup:
    """(id, heading, content) as articles after a list of links to them."""
    return Markup(PARTS.articles(list(sections)))


def folding(sections: Iterable[tuple[str, object, Markup]], unfolded: Container[str] = ()) -> Markup:
    """(id, heading, content) as articles folded under their headings, except those whose ids are `unfolded`."""
    return Markup(PARTS.folding(list(sections), unfolded))


def page(
    title: str, nav: Iterable[tuple[str, str]], body: Markup, *, root: str = "", here: str = "", head: str = ""
) -> str:
    """A whole document. nav: (target, text) from the profile's folder; root: the way from the page to that folder.

    here: the page's own target in nav; head: more of the document's head, as HTML.
    """
    template = TEMPLATES.get_template("page.html")
    return template.render(title=title, nav=list(nav), body=body, root=root, here=here, head=Markup(head))
