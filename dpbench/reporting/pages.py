"""The static pages of a profile: figures/<profile>/index.html, one page per experiment, the privacy errata.

Made from the manifests that stand beside the figures (and from the errata, which are computed): no clock, no host, so
the same rows give the same bytes. No script, nothing from the network.
"""

from __future__ import annotations

import os
from collections import Counter
from importlib import resources
from pathlib import Path
from typing import Any

from markupsafe import Markup

from dpbench import experiments, files
from dpbench.errors import counted
from dpbench.reporting import (
    errata_pages,
    experiment_page,
    glossary,
    manifest,
    matrix,
    reproduction,
)
from dpbench.reporting.html import articles, badge, breakable, join, link, page, table, tag
from dpbench.study.declare import HELD, NOT_ENOUGH, NOT_HELD, NOT_TESTABLE, OPEN

SITE = "dpbench"
DESCRIPTION = "Differentially private optimisers, side by side"


def read(folder: Path) -> dict[str, dict[str, Any]]:
    """The manifests of a profile's folder by experiment, in the experiments' order."""
    manifests = {path.parent.name: manifest.read(path) for path in sorted(folder.glob(f"*/{manifest.FILE}"))}
    return {name: manifests[name] for name in (*experiments.names(), *manifests) if name in manifests}


def write(folder: Path, results: Path) -> Path:
    """Write the pages of the profile whose figures lie in `folder` and rows in `results`; the path of index.html."""
    manifests = read(folder)
    cells = reproduction.save(folder, manifests)
    nav = [
        ("index.html", "Overview"),
        *((f"{name}/index.html", one["short"]) for name, one in manifests.items()),
        ("errata.html", "Errata"),
        (glossary.PAGE, glossary.TITLE),
    ]
    files.write(folder / "style.css", (resources.files(__package__) / "style.css").read_text("utf-8"))
    for name, one in manifests.items():
        # Relative, so that figures and results can be moved, or zipped, together.
        rows = Path(os.path.relpath(results / name, folder / name)).as_posix()
        body = experiment_page.body(one, folder / name, rows)
        title = f"{one.get('short', name)} – {SITE}"
        here = f"{name}/index.html"
        files.write(folder / name / "index.html", page(title, nav, body, root="../", here=here))
    errata = page(f"{errata_pages.TITLE} – {SITE}", nav, errata_pages.body(), here="errata.html")
    files.write(folder / "errata.html", errata)
    words = page(f"{glossary.TITLE} – {SITE}", nav, glossary.body(), here=glossary.PAGE)
    files.write(folder / glossary.PAGE, words)
    index = folder / "index.html"
    overview = _overview(folder, manifests, cells)
    files.write(index, page(f"{SITE}, {folder.name} profile", nav, overview, here="index.html"))
    return index


def _overview(folder: Path, manifests: dict[str, dict[str, Any]], cells: Any) -> Markup:
    profile = folder.name
    sections = []
    if len(reproduction.cells_of(cells)):
        figure = experiment_page.figure(
            folder, reproduction.NAME, f"{reproduction.TITLE}: {reproduction.in_all(cells).sentence()}"
        )
        sections.append((reproduction.NAME, reproduction.TITLE, figure + matrix.headline_table(cells)))
    sections.append(("experiments", "Figures and tables", _experiments(profile, manifests)))
    errata = Markup(
        f"{errata_pages.INTRO} {errata_pages.summary()} {link('errata.html', 'All entries, with the numbers')}."
    )
    sections.append(("errata", errata_pages.TITLE, tag("p", errata)))
    rebuild = f"dpbench run --experiment all --profile {profile}\ndpbench report --profile {profile}"
    made = tag("p", "Figures, tables and pages are made from the rows alone: no solver runs.")
    sections.append(("rebuild", "To rebuild", tag("pre", rebuild) + made))
    lead = tag("p", _summary(profile, manifests, cells), cls="lead")
    return tag("h1", DESCRIPTION) + _which_method(manifests) + lead + articles(sections)


def _which_method(manifests: dict[str, dict[str, Any]]) -> Markup:
    """What the default keeps on the median family, as the README has it; nothing where no experiment has the table."""
    for name, one in manifests.items():
        kept = next((a for a in one["artefacts"] if a["name"] == "kept" and a["rows"]), None)
        if kept is not None:
            loss, families, *cells = kept["rows"][0]
            said = ", ".join(
                f"{cell.partition(' (')[0]} {at}" for at, cell in zip(kept["columns"][2:], cells, strict=True)
            )
            where = link(f"{name}/index.html#held_out", "every method")
            lead = (
                f"Which method to use? By {loss}, the default keeps {said} of the gain from w = 0 to the optimum "
                f"without privacy: the median of {families.partition('(')[2].rstrip(')')} real tables ("
            )
            return tag("p", join([lead, where, ")."]), cls="answer")
    return Markup("")


def _summary(profile: str, manifests: dict[str, dict[str, Any]], cells: Any) -> str:
    words = sum((Counter(r["verdict"] for r in _claims(one)) for one in manifests.values()), Counter[str]())
    told = [
        f"{words[word]} {text}"
        for word, text in (
            (HELD, "held"),
            (NOT_HELD, "not held"),
            (OPEN, "open (these runs cannot decide)"),
            (NOT_TESTABLE, "not testable (could not have failed)"),
            (NOT_ENOUGH, "with not enough data"),
        )
        if words[word]
    ]
    runs = sum(one["runs"] for one in manifests.values())
    return (
        (f"Do the papers reproduce? {reproduction.in_all(cells).paragraph()} " if len(cells) else "")
        + (f"Of {counted(sum(words.values()), 'verdict')} on their claims: {', '.join(told)}. " if told else "")
        + "A claim that is not held is a result, not an error. "
        + f"These pages show the {profile} profile: {counted(len(manifests), 'experiment')}, {counted(runs, 'run')}."
    )


def _claims(one: dict[str, Any]) -> list[dict[str, Any]]:
    return manifest.records(one, manifest.SCORECARD)


def _experiments(profile: str, manifests: dict[str, dict[str, Any]]) -> Markup:
    rows: list[list[object]] = []
    for name in dict.fromkeys((*experiments.names(), *manifests)):
        if name not in manifests:
            command = f"dpbench run --experiment {name} --profile {profile}"
            rows.append([name, breakable(f"no results yet: {command}"), "", "", ""])
            continue
        one = manifests[name]
        built = [artefact for artefact in one["artefacts"] if artefact["name"] in one["planned"]]
        title = link(f"{name}/index.html", one["title"]) + tag("small", experiment_page.citation(one))
        gaps = sum(bool(a["gaps"]) for a in built)
        words = Counter(record["verdict"] for record in _claims(one))
        claims = join((badge(word, count) for word, count in words.most_common()), " ") if words else Markup("–")
        rows.append([Markup(title), f"{len(built)} of {len(one['planned'])}", gaps, f"{one['runs']:,}", claims])
    return table(["experiment", "figures and tables", "with gaps", "runs", "verdicts"], rows)
