"""The static pages of a profile: figures/<profile>/index.html, one page per experiment, the privacy errata.

An experiment's page has the verdicts first, then the published values, then every figure and table.

Made from the manifests that stand beside the figures (and from the errata, which are computed): no clock, no host, so
the same rows give the same bytes. No script, nothing from the network.
"""

from __future__ import annotations

import os
import struct
from collections import Counter
from pathlib import Path
from typing import Any

from markupsafe import Markup

from dpbench import experiments, files
from dpbench.errors import counted
from dpbench.reporting import errata_pages, glossary, manifest, reproduction
from dpbench.reporting.html import articles, badge, breakable, folding, image, join, link, page, table, tag
from dpbench.study.claims import HELD, NOT_ENOUGH, NOT_HELD, NOT_TESTABLE, OPEN

SITE = "dpbench"
DESCRIPTION = "Differentially private optimisers, side by side"
LINES = 3  # of gaps: more are folded
CLAIMS = (
    "“As published” is the paper's own setting; “at a proven ε” are runs whose guarantee holds. Where the paper's own "
    "setting has one, one verdict stands for both. Open: these runs cannot decide. Not testable: it could not have "
    "failed. Not enough data: our runs are missing."
)
UNFOLDED = 4  # figures and tables of a page: more do not fit into ten screens with the claims


def read(folder: Path) -> dict[str, dict[str, Any]]:
    """The manifests of a profile's folder by experiment, in the experiments' order."""
    manifests = {path.parent.name: manifest.read(path) for path in sorted(folder.glob(f"*/{manifest.FILE}"))}
    return {name: manifests[name] for name in (*experiments.names(), *manifests) if name in manifests}


def write(folder: Path, results: Path) -> Path:
    """Write the pages of the profile whose figures lie in `folder` and rows in `results`; the path of index.html."""
    manifests = read(folder)
    values = reproduction.save(folder, manifests)
    nav = [
        ("index.html", "Overview"),
        *((f"{name}/index.html", one["short"]) for name, one in manifests.items()),
        ("errata.html", "Errata"),
        (glossary.PAGE, glossary.TITLE),
    ]
    for name, one in manifests.items():
        # Relative, so that figures and results can be moved, or zipped, together.
        rows = Path(os.path.relpath(results / name, folder / name)).as_posix()
        content = body(one, folder / name, rows)
        title = f"{one.get('short', name)} – {SITE}"
        here = f"{name}/index.html"
        files.write(folder / name / "index.html", page(title, nav, content, root="../", here=here))
    errata = page(f"{errata_pages.TITLE} – {SITE}", nav, errata_pages.body(), here="errata.html")
    files.write(folder / "errata.html", errata)
    glossary.save(folder, nav)
    index = folder / "index.html"
    overview = _overview(folder, manifests, values)
    files.write(index, page(f"{SITE}, {folder.name} profile", nav, overview, here="index.html"))
    return index


def _overview(folder: Path, manifests: dict[str, dict[str, Any]], values: Any) -> Markup:
    profile = folder.name
    sections = []
    if len(reproduction.of_values(values)):
        picture = figure(folder, reproduction.NAME, f"{reproduction.TITLE}: {reproduction.in_all(values).sentence()}")
        sections.append((reproduction.NAME, reproduction.TITLE, picture + reproduction.headline_table(values)))
    sections.append(("experiments", "Figures and tables", _experiments(profile, manifests)))
    errata = Markup(
        f"{errata_pages.INTRO} {errata_pages.summary()} {link('errata.html', 'All entries, with the numbers')}."
    )
    sections.append(("errata", errata_pages.TITLE, tag("p", errata)))
    rebuild = f"dpbench run --experiment all --profile {profile}\ndpbench report --profile {profile}"
    made = tag("p", "Figures, tables and pages are made from the rows alone: no solver runs.")
    sections.append(("rebuild", "To rebuild", tag("pre", rebuild) + made))
    lead = tag("p", _summary(profile, manifests, values), cls="lead")
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
                f"without privacy: the median of up to {families.partition('(')[2].rstrip(')')} real tables ("
            )
            return tag("p", join([lead, where, ")."]), cls="answer")
    return Markup("")


def _summary(profile: str, manifests: dict[str, dict[str, Any]], values: Any) -> str:
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
        (f"Do the papers reproduce? {reproduction.in_all(values).paragraph()} " if len(values) else "")
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
        title = link(f"{name}/index.html", one["title"]) + tag("small", citation(one))
        gaps = sum(bool(a["gaps"]) for a in built)
        words = Counter(record["verdict"] for record in _claims(one))
        claims = join((badge(word, count) for word, count in words.most_common()), " ") if words else Markup("–")
        rows.append([Markup(title), f"{len(built)} of {len(one['planned'])}", gaps, f"{one['runs']:,}", claims])
    return table(["experiment", "figures and tables", "with gaps", "runs", "verdicts"], rows)


def body(one: dict[str, Any], folder: Path, rows: str) -> Markup:
    """The main part. one: its manifest; folder: its figures; rows: the way from there to its rows."""
    artefacts = {artefact["name"]: artefact for artefact in one["artefacts"]}
    sections: list[tuple[str, object, Markup]] = [
        _judged(artefacts[name], one) for name in manifest.JUDGED if name in artefacts
    ]
    sections += [
        (name, artefact["title"], _artefact(artefact, one, folder, rows))
        for name, artefact in artefacts.items()
        if name not in manifest.JUDGED
    ]
    if one["published"]:
        folded = tag("summary", "The file behind it") + tag("pre", one["published"])
        sections.append(("published", "Published values, as data", tag("details", folded)))
    sections.append(("environment", "Rows and environment", _environment(one, rows)))
    missing = [name for name in one["planned"] if name not in artefacts]
    gap = f"Not built yet: {', '.join(missing)}; run: dpbench report --experiment {one['experiment']}"
    shown = _unfolded(one, list(artefacts))
    source = f". Profile {one['profile']}, {counted(one['runs'], 'run')}; {one['experiment']} on the command line."
    about = one.get("about", "")
    return join(
        [
            tag("h1", one["title"]),
            tag("p", breakable(about), cls="lead") if about else "",
            answer(artefacts),
            tag("p", citation(one) + source, cls="caption"),
            tag("p", breakable(gap), cls="gap") if missing else "",
            folding(sections, {manifest.SCORECARD, "values", *shown}),
        ]
    )


def answer(artefacts: dict[str, Any]) -> Markup:
    """What came out, in counts: of the claims and of the published values; nothing of an experiment without either."""
    told = [artefacts[name]["caption"] for name in manifest.JUDGED if name in artefacts]
    return tag("p", breakable(" ".join(told)), cls="answer") if told else Markup("")


def _unfolded(one: dict[str, Any], names: list[str]) -> list[str]:
    """The first figures and tables that show a claim, or the first of all where nothing is claimed."""
    shows = {record["shows"] for record in manifest.records(one, manifest.SCORECARD)}
    drawn = [name for name in names if name not in manifest.JUDGED]
    return [name for name in drawn if name in shows or not shows][:UNFOLDED]


def citation(one: dict[str, Any]) -> Markup:
    """Who and where, with links to the paper."""
    return join([one["citation"], *(link(address, text) for text, address in one["links"])], ", ")


def figure(folder: Path, name: str, alt: str) -> Markup:
    """A figure that opens large: the bitmap in the page, the drawing behind it."""
    drawn = image(f"{name}.png", alt, _png_size(folder / f"{name}.png"))
    return Markup(f'<a class="figure" href="{name}.svg" title="open large">{drawn}</a>\n')


def method(artefact: dict[str, Any], root: str) -> Markup:
    """How an artefact was made, folded, its terms links to the glossary; nothing where nothing is said of it."""
    text = artefact.get("method", "")
    folded = tag("summary", "Method") + tag("p", glossary.linked(text, root), cls="caption")
    return tag("details", folded, cls="method") if text else Markup("")


def _judged(artefact: dict[str, Any], one: dict[str, Any]) -> tuple[str, str, Markup]:
    """Claims or published values: (id, heading, content)."""
    records = artefact.get("records", [])
    files = tag("p", join((_file(name) for name in artefact["files"]), " · "), cls="files")
    told = method(artefact, "../")
    if artefact["name"] == manifest.SCORECARD:
        read = tag("p", glossary.linked(CLAIMS, "../"), cls="caption")
        return artefact["name"], "Claims, judged on these rows", read + reproduction.claims_list(records) + told + files
    report = f"dpbench report --experiment {one['experiment']} --profile {one['profile']}"
    listed = reproduction.values(records, {each["name"]: each["command"] or report for each in one["artefacts"]})
    return "values", artefact["title"], reproduction.legend() + told + listed + files


def _file(name: str) -> Markup:
    return link(name, name.rpartition(".")[2].upper())


def _artefact(artefact: dict[str, Any], one: dict[str, Any], folder: Path, rows: str) -> Markup:
    name = artefact["name"]
    if artefact["kind"] == "table":
        lines = any("\n" in cell for row in artefact["rows"] for cell in row)
        content = table(artefact["columns"], artefact["rows"], whole=lines)
    elif not (folder / f"{name}.png").is_file():  # another experiment's report makes this page, too
        gap = f"Its files are gone; run: dpbench report --experiment {one['experiment']} --profile {one['profile']}"
        content = tag("p", breakable(gap), cls="gap")
    else:
        alt = f"{artefact['title']}. {artefact['caption'].split('. ')[0].rstrip('.')}."
        content = figure(folder, name, alt)
    gaps = tag("ul", join(tag("li", breakable(f"Gap: {line}")) for line in artefact["gaps"]), cls="gap")
    if len(artefact["gaps"]) > LINES:
        gaps = tag("details", tag("summary", counted(len(artefact["gaps"]), "gap")) + gaps)
    sources = [_file(file) for file in artefact["files"] if (folder / file).is_file()]
    sources.append(link(f"{rows}/runs", "rows (parquet)"))
    if f"[{name}" in one["published"]:
        sources.append(link("#published", "published values"))
    # What sums up over the judged values is drawn with the whole experiment alone.
    drawn = f"{one['experiment']}/{name}" if name in one["planned"] else one["experiment"]
    report = f"dpbench report --experiment {drawn} --profile {one['profile']}"
    rebuild = "\n".join(filter(None, [artefact["command"], report]))
    return join(
        [
            content,
            tag("p", breakable(artefact["caption"]), cls="caption"),
            method(artefact, "../"),
            gaps if artefact["gaps"] else "",
            tag("p", join(sources, " · "), cls="files"),
            tag("details", tag("summary", "commands") + tag("pre", rebuild), cls="rebuild"),
        ]
    )


def _environment(one: dict[str, Any], rows: str) -> Markup:
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


def _data_row(each: dict[str, Any]) -> list[object]:
    hashes = join((tag("code", value[:16] + "…", title=value) for value in each["sha256"]), " ")
    return [each["problem"], each["dataset"], hashes]


def _png_size(path: Path) -> tuple[int, int]:
    """(width, height) from the header of a PNG file."""
    # Two numbers at a fixed place: no need to decode the picture.
    width, height = struct.unpack(">II", path.read_bytes()[16:24])
    return width, height
