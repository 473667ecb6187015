"""The few pieces of HTML that the pages are made of. Text is escaped here and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Sequence
from html import escape

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


class Markup(str):
    """A string that is HTML already; what is added to it is escaped unless it is, too."""

    def __add__(self, other: object) -> Markup:
        return Markup(str(self) + html(other))


def html(text: object) -> str:
    """Markup as it is, anything else escaped."""
    return text if isinstance(text, Markup) else escape(str(text))


def tag(name: str, content: object = "", **attributes: object) -> Markup:
    """One element; `cls` is its class."""
    given = "".join(f' {"class" if k == "cls" else k}="{escape(str(v))}"' for k, v in attributes.items())
    return Markup(f"<{name}{given}>{html(content)}</{name}>\n")


def join(parts: Iterable[object], between: str = "") -> Markup:
    """The parts as markup, one after another."""
    return Markup(between.join(html(part) for part in parts))


def link(target: str, text: object) -> Markup:
    """A link to `target`."""
    return Markup(f'<a href="{escape(target)}">{html(text)}</a>')


def image(source: str, alt: str, size: tuple[int, int]) -> Markup:
    """An image of `size` pixels, drawn at half of it: figures are saved for print."""
    width, height = size
    return Markup(f'<img src="{escape(source)}" alt="{escape(alt)}" width="{width // 2}" height="{height // 2}">\n')


def badge(word: str, count: int = 0) -> Markup:
    """A verdict in its colour; count: how many there are, 0 for one that stands alone."""
    text = f"{count} {word}" if count else word
    return Markup(f'<span class="badge {WORDS.get(word, "open")}">{escape(text)}</span>')


def _nav(root: str, target: str, text: str, current: bool) -> Markup:
    whole = link(root + target, text)
    return Markup(whole.replace("<a ", '<a aria-current="page" ', 1)) if current else whole


def breakable(text: str) -> Markup:
    """Text whose commands, and what stands in backticks, are in code type: `dpbench run --experiment x/y`.

    A number and its % stay on one line.
    """
    text = re.sub(r"(?<=\d) (?=%)", "\u00a0", text)
    commands = re.sub(r"(dpbench (?:run|fetch|report|diff)(?: [\w./-]+)*)", r"<code>\1</code>", escape(text))
    return Markup(re.sub(r"`([^`<>]+)`", r"<code>\1</code>", commands))


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    last: Callable[[str], Markup] | None = None,
    whole: bool = False,
) -> Markup:
    """A table in a frame that scrolls by itself; `last` renders the last cell of each row.

    whole: in full length, and on a phone cell below cell, each after its column's name.
    """
    head = tag("tr", join(tag("th", name, scope="col") for name in columns))
    body = []
    for row in rows:
        cells = [*row[:-1], last(str(row[-1]))] if last else row
        named = columns if whole else [""] * len(columns)
        body.append(tag("tr", join(_cell(cell, name) for cell, name in zip(cells, named, strict=True))))
    inside = f"<thead>\n{head}</thead>\n<tbody>\n{join(body)}</tbody>"
    frame = "scroll whole" if whole else "scroll"
    return Markup(f'<div class="{frame}" tabindex="0"><table>\n{inside}\n</table></div>\n')


def _cell(content: object, label: str = "") -> Markup:
    """Numbers and names stay on one line, numbers in print too. Of several lines the first is bold."""
    shown, kinds = content, []
    if not isinstance(content, Markup):
        text = str(content)
        first, *further = text.split("\n")
        if further:
            shown = join([tag("b", first), *(tag("small", breakable(line)) for line in further)])
        elif NUMBER.fullmatch(text):
            kinds = ["short", "number"]
        elif len(text) <= SHORT:
            kinds = ["short"]
    given = ({"cls": " ".join(kinds)} if kinds else {}) | ({"data-label": label} if label and content != "" else {})
    return tag("td", shown, **given)


def paragraphs(labelled: Iterable[tuple[str, str]]) -> Markup:
    """One paragraph per label and its words."""
    return join(Markup(f"<p><b>{escape(label)}.</b> {breakable(words)}</p>\n") for label, words in labelled)


def articles(sections: Iterable[tuple[str, str, Markup]]) -> Markup:
    """(id, heading, content) as articles after a list of links to them."""
    sections = list(sections)
    contents = tag("ul", join(tag("li", link(f"#{name}", heading)) for name, heading, _ in sections), cls="contents")
    told = join(tag("article", tag("h2", heading) + content, id=name) for name, heading, content in sections)
    return tag("div", tag("div", contents, cls="aside") + tag("div", told, cls="told"), cls="beside")


def folding(sections: Iterable[tuple[str, object, Markup]], unfolded: Container[str] = ()) -> Markup:
    """(id, heading, content) as articles that are folded under their headings, except those whose ids are `unfolded`.

    The id is within the fold: a browser that follows a link to it opens it.
    """
    return join(
        tag("article", tag("h2", heading) + content, id=name)
        if name in unfolded
        else tag(
            "article", tag("details", tag("summary", tag("h2", heading)) + tag("div", content, id=name)), cls="fold"
        )
        for name, heading, content in sections
    )


def page(
    title: str, nav: Iterable[tuple[str, str]], body: Markup, *, root: str = "", here: str = "", head: str = ""
) -> str:
    """A whole document. nav: (target, text) from the profile's folder; root: the way from the page to that folder.

    here: the page's own target in nav; head: more of the document's head.
    """
    links = join((_nav(root, target, text, target == here) for target, text in nav), " ")
    return (
        '<!DOCTYPE html>\n<html lang="en-GB">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n"
        '<link rel="icon" href="data:,">\n'
        f'<link rel="stylesheet" href="{root}style.css">\n{head}</head>\n<body>\n'
        f"<nav>{links}</nav>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )
