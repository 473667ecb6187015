"""A checker of static pages: every link resolves, every image is there and says what it shows, every tag is closed."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

PAPERS = {"doi.org", "arxiv.org"}
VOID = {"meta", "link", "img", "br", "hr", "input"}
TAGS = VOID | {
    "a", "article", "aside", "b", "body", "caption", "code", "dd", "details", "div", "dl", "dt", "em", "figcaption",
    "figure", "footer", "h1", "h2", "h3", "h4", "head", "header", "html", "i", "li", "main", "nav", "ol", "p", "pre",
    "script", "section", "small", "span", "strong", "style", "sub", "summary", "sup", "table", "tbody", "td", "th",
    "thead", "title", "tr", "ul",
}  # fmt: skip


class Page(HTMLParser):
    def __init__(self, path: Path):
        super().__init__()
        self.links, self.images, self.ids, self.open, self.wrong = [], [], [], [], []
        self.headings, self.language, self.viewport, self.scripts = [], None, False, 0
        self.feed(path.read_text(encoding="utf-8"))
        self.wrong += [f"<{name}> is not closed" for name in self.open]

    def handle_starttag(self, name, attributes):
        given = dict(attributes)
        if name not in VOID:
            self.open.append(name)
        if name not in TAGS:
            self.wrong.append(f"<{name}> is no tag")
        self.ids += [given["id"]] if "id" in given else []
        self.language = given.get("lang", self.language)
        self.viewport |= given.get("name") == "viewport"
        self.scripts += name == "script"
        if name in ("a", "link", "script"):
            self.links.append((name, given.get("src" if name == "script" else "href", "")))
        if name == "img":
            self.images.append(given)
        if len(name) == 2 and name[0] == "h" and name[1].isdigit():
            self.headings.append(int(name[1]))

    def handle_endtag(self, name):
        if not self.open or self.open.pop() != name:
            self.wrong.append(f"</{name}> closes something else")


def problems(folder: Path) -> list[str]:
    """What is wrong with the pages under `folder`, as lines that name the page; nothing if all is well."""
    pages = {path: Page(path) for path in sorted(folder.rglob("*.html"))}
    found = [] if pages else [f"{folder}: no pages"]
    for path, page in pages.items():
        told = [*page.wrong, *(f"id {name} twice" for name in set(page.ids) if page.ids.count(name) > 1)]
        told += [f"link {target}" for name, target in page.links if not _resolves(name, target, path, page, pages)]
        for one in page.images:
            source = path.parent / unquote(one.get("src", ""))
            if len(one.get("alt", "")) < 10:
                told.append(f"image {one.get('src')} has no telling alt text")
            if not source.is_file() or source.stat().st_size == 0:
                told.append(f"image {one.get('src')} is not there")
        if page.headings.count(1) != 1 or any(
            b > a + 1 for a, b in zip(page.headings, page.headings[1:], strict=False)
        ):
            told.append(f"headings {page.headings}")
        told += ["no language"] * (page.language is None) + ["no viewport"] * (not page.viewport)
        told += ["a script"] * page.scripts
        found += [f"{path.relative_to(folder)}: {one}" for one in told]
    return found


def _resolves(name: str, target: str, path: Path, page: Page, pages: dict) -> bool:
    parts = urlsplit(target)
    if name == "a" and parts.scheme == "https" and parts.netloc in PAPERS:
        return True  # a reader follows it; nothing is loaded from there
    if parts.scheme == "data":
        return True
    if parts.scheme or parts.netloc:
        return False  # nothing comes from the network
    file = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
    if not file.exists():
        return False
    known = {one.resolve(): it for one, it in pages.items()}
    return not parts.fragment or (file in known and parts.fragment in known[file].ids)
