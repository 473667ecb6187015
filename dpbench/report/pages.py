"""The static pages of a profile: figures/<profile>/index.html, one page per experiment, the privacy errata.

Made from the manifests that stand beside the figures (and from the errata, which are computed): no clock, no host, so
the same rows give the same bytes. No script, nothing from the network.
"""

from __future__ import annotations

import os
import struct
from collections import Counter
from importlib import resources
from pathlib import Path
from typing import Any

from dpbench import experiments
from dpbench.report import errata_pages, manifest
from dpbench.report.html import Markup, articles, badge, breakable, image, join, link, page, table, tag

SITE = "dpbench"
VERDICTS = ("held", "not held", "not enough data")
MATCHES = ("match", "differs", "not comparable")
JUDGED = ("scorecard", "published_means")


def write(folder: Path, results: Path) -> Path:
    """Write the pages of the profile whose figures lie in `folder` and rows in `results`; the path of index.html."""
    found = {path.parent.name: manifest.read(path) for path in sorted(folder.glob(f"*/{manifest.FILE}"))}
    found = {name: found[name] for name in (*experiments.NAMES, *found) if name in found}
    nav = [("index.html", "Overview"), *((f"{name}/index.html", name) for name in found), ("errata.html", "Errata")]
    (folder / "style.css").write_text((resources.files(__package__) / "style.css").read_text("utf-8"), "utf-8")
    for name, one in found.items():
        rows = Path(os.path.relpath(results / name, folder / name)).as_posix()
        body = _experiment(one, folder / name, rows)
        (folder / name / "index.html").write_text(page(f"{name} – {SITE}", nav, body, root="../"), "utf-8")
    (folder / "errata.html").write_text(page(f"{errata_pages.TITLE} – {SITE}", nav, errata_pages.body()), "utf-8")
    index = folder / "index.html"
    index.write_text(page(f"{SITE}, {folder.name} profile", nav, _overview(folder.name, found)), "utf-8")
    return index


# The overview


def _overview(profile: str, found: dict[str, dict]) -> Markup:
    header = ["experiment", "artefacts", "with gaps", "runs", *VERDICTS]
    compared = any(_words(one, "published_means") for one in found.values())
    rows = []
    for name in dict.fromkeys((*experiments.NAMES, *found)):
        if name not in found:
            command = f"dpbench run --experiment {name} --profile {profile}"
            rows.append([name, breakable(f"no results yet: {command}"), *[""] * (len(header) - 2)])
            continue
        one = found[name]
        built = _built(one)
        claims, means = _words(one, "scorecard"), _words(one, "published_means")
        title = link(f"{name}/index.html", one["title"]) + tag("small", one["citation"])
        counts = [f"{len(built)} of {len(one['planned'])}", sum(bool(a["gaps"]) for a in built), f"{one['runs']:,}"]
        matches = [", ".join(f"{means[w]} {w}" for w in MATCHES if means[w]) or "–"] if compared else []
        rows.append([Markup(title), *counts, *(claims[word] for word in VERDICTS), *matches])
    return join(
        [
            tag("h1", "Differentially private optimisers, side by side"),
            tag("p", _summary(profile, found), cls="lead"),
            table(header + (["published means"] if compared else []), rows),
            tag("h2", "What the papers claim, judged on these rows"),
            *(_claims_in_brief(name, one) for name, one in found.items()),
            tag("h2", errata_pages.TITLE),
            tag("p", Markup(f"{_errata_summary()} {link('errata.html', 'All entries, with the numbers')}.")),
            tag("h2", "To rebuild"),
            tag("pre", f"dpbench run --experiment all --profile {profile}\ndpbench report --profile {profile}"),
            tag(
                "p",
                "Figures, tables and pages are made from the rows alone: no solver runs.",
            ),
        ]
    )


def _summary(profile: str, found: dict[str, dict]) -> str:
    built = [artefact for one in found.values() for artefact in _built(one)]
    planned = sum(len(one["planned"]) for one in found.values())
    words = sum((_words(one, "scorecard") for one in found.values()), Counter())
    gaps = sum(bool(one["gaps"]) for one in built)
    return (
        f"The {profile} profile: {len(found)} experiments, {sum(one['runs'] for one in found.values()):,} runs, "
        f"{len(built)} of {planned} figures and tables rebuilt ({gaps} with gaps). Of {sum(words.values())} claims of "
        f"the papers {words['held']} held, {words['not held']} did not, {words['not enough data']} wait for rows. "
        "A claim that is not held is a result, not an error."
    )


def _claims_in_brief(name: str, one: dict) -> Markup:
    lines = [Markup(f"{badge(word)} {join([text])}") for text, word, _ in _judged(one, "scorecard")]
    heading = tag("h3", Markup(link(f"{name}/index.html#scorecard", name)))
    return heading + tag("ul", join(tag("li", line) for line in lines), cls="claims") if lines else Markup("")


def _errata_summary() -> str:
    counts = errata_pages.counts()
    return (
        f"{sum(counts.values())} published settings whose noise is not what their guarantee asks for: "
        f"{counts['false']} state an ε that some neighbours break, {counts['unproved']} one that is not proved, "
        f"{counts['holds']} hold by wasting noise"
        + (f", {counts['needs data']} need data that are not at hand." if counts["needs data"] else ".")
    )


# An experiment's page


def _experiment(one: dict, folder: Path, rows: str) -> Markup:
    sections = [(a["name"], a["title"], _artefact(a, one, folder, rows)) for a in _scorecard_first(one["artefacts"])]
    if one["published"]:
        sections.append(("published", "Published values, as data", tag("pre", one["published"])))
    sections.append(("environment", "Rows and environment", _environment(one, rows)))
    missing = [name for name in one["planned"] if name not in {a["name"] for a in one["artefacts"]}]
    gap = f"Not built yet: {', '.join(missing)}; run: dpbench report --experiment {one['experiment']}"
    return join(
        [
            tag("h1", one["title"]),
            tag("p", f"{one['citation']}. Profile {one['profile']}, {one['runs']:,} runs.", cls="lead"),
            tag("p", breakable(gap), cls="gap") if missing else "",
            articles(sections),
        ]
    )


def _scorecard_first(artefacts: list[dict]) -> list[dict]:
    return sorted(artefacts, key=lambda a: a["name"] != "scorecard")


def _artefact(artefact: dict, one: dict, folder: Path, rows: str) -> Markup:
    name = artefact["name"]
    if name in JUDGED:
        content = _verdicts(_judged(one, name))
    elif artefact["kind"] == "table":
        content = table(artefact["columns"], artefact["rows"])
    else:
        alt = f"{artefact['title']}. {artefact['caption'].split('. ')[0].rstrip('.')}."
        content = image(f"{name}.png", alt, _png_size(folder / f"{name}.png"))
    gaps = tag("ul", join(tag("li", breakable(f"Gap: {line}")) for line in artefact["gaps"]), cls="gap")
    files = [link(file, file.rpartition(".")[2].upper()) for file in artefact["files"]]
    sources = [*files, link(f"{rows}/runs", "rows (parquet)")]
    if f"[{name}" in one["published"]:
        sources.append(link("#published", "published values"))
    rebuild = f"{artefact['command']}\ndpbench report --experiment {one['experiment']}" + (
        f"/{name}" if name not in JUDGED else ""
    )
    return join(
        [
            content,
            tag("p", breakable(artefact["caption"]), cls="caption"),
            gaps if artefact["gaps"] else "",
            tag("p", join(sources, " · "), cls="files"),
            tag("pre", f"{rebuild} --profile {one['profile']}", cls="rebuild"),
        ]
    )


def _verdicts(judged: list[tuple[str, str, str]]) -> Markup:
    """Word, claim and numbers, one under the other: readable on a phone, where a table of sentences is not."""
    return tag(
        "ul",
        join(
            tag("li", Markup(f"{badge(word)} {join([text])}") + tag("small", breakable(numbers)))
            for text, word, numbers in judged
        ),
        cls="claims",
    )


def _environment(one: dict, rows: str) -> Markup:
    def several(values: list[str]) -> Markup:
        return join((tag("span", value) for value in values), "") if values else Markup("–")

    facts: list[tuple[str, Any]] = [
        ("runs", ", ".join(f"{count:,} {status}" for status, count in one["statuses"].items())),
        ("rows", link(f"{rows}/runs", f"{rows}/runs")),
        ("code", several(one["code_versions"])),
        ("environment", several(one["environments"])),
        ("neighbours", several(one["relations"])),
        ("ε checked by", several(one["checked_by"])),
    ]
    data = table(["problem", "data set", "sha256 of its arrays"], [_data_row(each) for each in one["data"]])
    return tag("dl", join(tag("dt", name) + tag("dd", value) for name, value in facts)) + data


def _data_row(each: dict) -> list[object]:
    hashes = join((tag("code", value[:16] + "…", title=value) for value in each["sha256"]), " ")
    return [each["problem"], each["dataset"], hashes]


# What the manifests say


def _built(one: dict) -> list[dict]:
    return [artefact for artefact in one["artefacts"] if artefact["name"] in one["planned"]]


def _judged(one: dict, name: str) -> list[tuple[str, str, str]]:
    """(text, verdict, numbers) of the scorecard's or the published means' lines."""
    found = [artefact["rows"] for artefact in one["artefacts"] if artefact["name"] == name]
    return [tuple(row[-3:]) for row in found[0]] if found else []


def _words(one: dict, name: str) -> Counter:
    return Counter(word for _, word, _ in _judged(one, name))


def _png_size(path: Path) -> tuple[int, int]:
    """(width, height) from the header of a PNG file."""
    return struct.unpack(">II", path.read_bytes()[16:24])
