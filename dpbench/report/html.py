"""The few pieces of HTML that the pages are made of. Text is escaped here and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from html import escape

WORDS = {  # verdict → class of its badge
    "held": "good",
    "match": "good",
    "holds, with noise to spare": "good",
    "not held": "bad",
    "differs": "bad",
    "false": "bad",
}


SHORT = 36  # characters


class Markup(str):
    """A string that is HTML already; what is added to it is escaped unless it is, too."""

    def __add__(self, other: object) -> Markup:
        return Markup(str(self) + html(other))


def html(text: object) -> str:
    return text if isinstance(text, Markup) else escape(str(text))


def tag(name: str, content: object = "", **attributes: object) -> Markup:
    """One element; `cls` is its class."""
    given = "".join(f' {"class" if k == "cls" else k}="{escape(str(v))}"' for k, v in attributes.items())
    return Markup(f"<{name}{given}>{html(content)}</{name}>\n")


def join(parts: Iterable[object], between: str = "") -> Markup:
    return Markup(between.join(html(part) for part in parts))


def link(target: str, text: object) -> Markup:
    return Markup(f'<a href="{escape(target)}">{html(text)}</a>')


def image(source: str, alt: str, size: tuple[int, int]) -> Markup:
    """An image of `size` pixels, drawn at half of it: figures are saved for print."""
    width, height = size
    return Markup(f'<img src="{escape(source)}" alt="{escape(alt)}" width="{width // 2}" height="{height // 2}">\n')


def badge(word: str) -> Markup:
    return Markup(f'<span class="badge {WORDS.get(word, "open")}">{escape(word)}</span>')


def breakable(text: str) -> Markup:
    """Text whose commands stand in code type, as `dpbench run --experiment x/y --profile full`."""
    return Markup(re.sub(r"(dpbench (?:run|fetch|report)(?: [\w./-]+)*)", r"<code>\1</code>", escape(text)))


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, last: Callable[[str], Markup] | None = None
) -> Markup:
    """A table in a container that scrolls by itself; `last` renders the last cell of each row."""
    head = tag("tr", join(tag("th", name, scope="col") for name in columns))
    body = []
    for row in rows:
        cells = [*row[:-1], last(row[-1])] if last else row
        body.append(tag("tr", join(_cell(cell) for cell in cells)))
    whole = f"<thead>\n{head}</thead>\n<tbody>\n{join(body)}</tbody>"
    return Markup(f'<div class="scroll" tabindex="0"><table>\n{whole}\n</table></div>\n')


def _cell(content: object) -> Markup:
    """Numbers and names stay on one line, sentences do not."""
    short = not isinstance(content, Markup) and len(str(content)) <= SHORT
    return tag("td", content, cls="short") if short else tag("td", content)


def paragraphs(labelled: Iterable[tuple[str, str]]) -> Markup:
    return join(Markup(f"<p><b>{escape(label)}.</b> {breakable(words)}</p>\n") for label, words in labelled)


def articles(sections: Iterable[tuple[str, str, Markup]]) -> Markup:
    """(id, heading, content) as articles after a list of links to them."""
    sections = list(sections)
    contents = tag("ul", join(tag("li", link(f"#{name}", heading)) for name, heading, _ in sections), cls="contents")
    return contents + join(tag("article", tag("h2", heading) + content, id=name) for name, heading, content in sections)


def page(title: str, nav: Iterable[tuple[str, str]], body: Markup, *, root: str = "") -> str:
    """A whole document. nav: (target, text) from the profile's folder; root: the way from the page to that folder."""
    links = join((link(root + target, text) for target, text in nav), " ")
    return (
        '<!DOCTYPE html>\n<html lang="en-GB">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n"
        '<link rel="icon" href="data:,">\n'
        f'<link rel="stylesheet" href="{root}style.css">\n</head>\n<body>\n'
        f"<nav>{links}</nav>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )
