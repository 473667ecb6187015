"""The privacy errata in words: errata.md, errata.csv, and the body of errata.html."""

from __future__ import annotations

import dataclasses
import functools
import math
from pathlib import Path

import pandas as pd
from markupsafe import Markup

from dpbench import experiments, files
from dpbench.reporting.html import badge, breakable, folding, join, link, paragraphs, table, tag
from dpbench.study.claims import FALSE, HARMLESS, NEEDS_DATA, UNPROVED, Case, Erratum
from dpbench.study.output import markdown

TITLE = "Privacy errata"
INTRO = "These are published settings whose noise is not what their stated guarantee asks for, in words and numbers."
READING = (
    "Each ε is computed by the accountants of this package, at the δ of the setting, and checked by a second route in "
    "the tests. “At most” is proved. “At least” is reached or approached by the neighbours given with the entry. So "
    "the true ε of a setting is between the two. The statement is false if “at least” exceeds the stated ε, and "
    "unproved if only “at most” does. Each entry is labelled by its worst complete run. “Harmless” means that every "
    "run still meets its ε. Where a published form is kept for comparison, its rows are marked not private."
)
HEADER = ["setting", "ε stated", "ε at least", "ε at most", "the statement"]
WORDS = (("What was run", "ran"), ("What it misses", "misses"), ("Where the numbers come from", "bounds"))


# Once: the accountants take seconds, and page, overview and counts all ask.
@functools.cache
def computed() -> tuple[tuple[str, Erratum, tuple[Case, ...] | str], ...]:
    """(experiment, entry, its cases or the line that says which data they need), paper by paper."""
    return tuple((name, one, one.computed()) for name in experiments.names() for one in experiments.get(name).errata)


def save(folder: Path) -> Path:
    """Write errata.md and errata.csv; their path without the suffix."""
    stem = folder / "errata"
    files.write(stem.with_suffix(".md"), text())
    files.write(stem.with_suffix(".csv"), data().to_csv(index=False, float_format="%.8g"))
    return stem


def data() -> pd.DataFrame:
    """One row per case, with the numbers in full."""
    names = ["erratum", "experiment", "category", "setting", "stated", "at_least", "at_most", "verdict"]
    rows = [
        [one.name, experiment, one.category(cases), *dataclasses.astuple(case)[:4], case.verdict]
        for experiment, one, cases in computed()
        if not isinstance(cases, str)
        for case in cases
    ]
    return pd.DataFrame(rows, columns=names)


def cells(cases: tuple[Case, ...]) -> list[list[str]]:
    """The cells of a table of cases."""
    return [
        [one.setting, *(f"{value:.4g}" for value in (one.stated, one.at_least, one.at_most)), one.verdict]
        for one in cases
    ]


# The worst first, as this is what a reader looks for.
CATEGORIES = (FALSE, UNPROVED, HARMLESS, NEEDS_DATA)
OVERVIEW = ["entry", "part of a run, at least", "complete run, at least", "complete run, at most", "what it is"]
UNIT = (
    "A number is the true ε divided by the stated ε: “2 times” is twice what was stated. “At least” is a lower bound "
    "and “at most” an upper bound. A part of a run is a single release. The runs of this benchmark draw the noise "
    "that the proofs ask for."
)


def counts() -> dict[str, int]:
    """How many entries there are of each category."""
    categories = [one.category(cases) for _, one, cases in computed()]
    return {category: categories.count(category) for category in CATEGORIES}


def summary() -> str:
    """How many entries there are of each category, as a sentence."""
    numbers = counts()
    return (
        f"Of {sum(numbers.values())} entries, {numbers[FALSE]} state an ε that some neighbours break, "
        f"{numbers[UNPROVED]} state an ε that is not proved, and {numbers[HARMLESS]} are harmless"
        + (f"; {numbers[NEEDS_DATA]} need data that are not fetched." if numbers[NEEDS_DATA] else ".")
    )


def overview() -> list[tuple[str, str, list[str]]]:
    """(name, category, cells of the overview) of each entry, the worst category first.

    Cells: the most that a stated ε is exceeded by, of a part of a run and of whole runs.
    """
    rows = []
    for experiment, one, cases in computed():
        known = [] if isinstance(cases, str) else [c for c in cases if not c.part]
        parts = [] if isinstance(cases, str) else [c for c in cases if c.part]
        worst = [_times([c.at_least / c.stated for c in some]) for some in (parts, known)]
        category = one.category(cases)
        most = _times([c.at_most / c.stated for c in known])
        rows.append((one.name, category, [f"{experiment}: {one.title}", *worst, most, category]))
    return sorted(rows, key=lambda each: CATEGORIES.index(each[1]))


def _times(ratios: list[float]) -> str:
    """The largest, "1.66 times"; of what is far below 1 no digits matter."""
    if not ratios:
        return "–"
    most = max(ratios)
    return "no bound" if math.isinf(most) else "below 0.01 times" if most < 0.01 else f"{_three(most)} times"


def _three(value: float) -> str:
    """Three digits, never as a power of ten.

    >>> _three(2321.4), _three(0.893), _three(7.0)
    ('2,320', '0.893', '7')
    """
    return f"{float(f'{value:.3g}'):,.4g}" if value < 1000 else f"{float(f'{value:.3g}'):,.0f}"


def text() -> str:
    """All errata as one page of Markdown."""
    table_ = markdown(pd.DataFrame([cells_ for _, _, cells_ in overview()], columns=OVERVIEW))
    parts = [f"# {TITLE}\n\n{INTRO} {summary()} {UNIT}\n\n{READING}\n\n{table_}"]
    for experiment, one, cases in computed():
        parts.append(f"\n## {experiment}: {one.title} ({one.category(cases)})\n")
        parts += [f"\n**{label}.** {getattr(one, name)}\n" for label, name in WORDS]
        told = f"gap: {cases}\n" if isinstance(cases, str) else markdown(pd.DataFrame(cells(cases), columns=HEADER))
        parts.append(f"\n{told}")
    return "".join(parts)


def body() -> Markup:
    """The main part of errata.html."""
    sections: list[tuple[str, object, Markup]] = []
    for experiment, one, cases in computed():
        words = paragraphs([(label, getattr(one, name)) for label, name in WORDS])
        if isinstance(cases, str):
            numbers = tag("p", breakable(f"Gap: {cases}"), cls="gap")
        else:
            rows = cells(cases)
            numbers = table(HEADER, rows, last=badge)
        heading = join([f"{experiment}: {one.title} ", badge(one.category(cases))])
        sections.append((one.name, heading, words + numbers))
    linked = [[link(f"#{name}", cells_[0]), *cells_[1:]] for name, _, cells_ in overview()]
    seen = table(OVERVIEW, linked, last=badge, whole=True)
    reading = tag("details", tag("summary", "How to read it") + tag("p", breakable(READING), cls="caption"))
    return tag("h1", TITLE) + tag("p", f"{INTRO} {summary()} {UNIT}", cls="lead") + reading + seen + folding(sections)
