"""The privacy errata in words: errata.md, errata.csv, and the body of errata.html."""

from __future__ import annotations

import functools
from pathlib import Path

from dpbench.report import errata
from dpbench.report.html import articles, badge, breakable, paragraphs, table, tag
from dpbench.report.output import markdown

TITLE = "Privacy errata"
INTRO = (
    "Published settings whose noise is not what their stated guarantee asks for, in words and numbers. Each ε is "
    "computed by the accountants of this package, at the δ of the setting, and each is checked by a second route in "
    "the tests. “At most” is proved, “at least” is reached, or approached, by neighbours given with the entry, so the "
    "ε that a setting has lies between them: the statement is false where “at least” exceeds it, unproved where only "
    "“at most” does. The runs of this benchmark draw the noise that the proofs ask for; where a published form is "
    "kept for comparison its rows are marked not private."
)
HEADER = ["setting", "ε stated", "ε at least", "ε at most", "the statement"]
WORDS = (("What was run", "ran"), ("What it misses", "misses"), ("Where the numbers come from", "bounds"))


@functools.cache
def computed() -> tuple[tuple[errata.Erratum, tuple[errata.Case, ...] | str], ...]:
    """Every entry with its cases, or with the line that says which data it needs."""
    return tuple(errata.computed())


def save(folder: Path) -> Path:
    """Write errata.md and errata.csv; their path without the suffix."""
    stem = folder / "errata"
    stem.with_suffix(".md").write_text(text(), encoding="utf-8")
    data().to_csv(stem.with_suffix(".csv"), index=False, float_format="%.8g")
    return stem


def data():
    """One row per case, with the numbers in full."""
    import pandas as pd

    names = ["erratum", "experiment", "setting", "stated", "at_least", "at_most", "verdict"]
    rows = [
        [one.name, one.experiment, case.setting, case.stated, case.at_least, case.at_most, case.verdict]
        for one, cases in computed()
        if not isinstance(cases, str)
        for case in cases
    ]
    return pd.DataFrame(rows, columns=names)


def cells(cases: tuple[errata.Case, ...]) -> list[list[str]]:
    return [
        [one.setting, *(f"{value:.4g}" for value in (one.stated, one.at_least, one.at_most)), one.verdict]
        for one in cases
    ]


def counts() -> dict[str, int]:
    """How many entries have a setting that is false, else one that is unproved; the others; and those without data."""
    found = {"false": 0, "unproved": 0, "holds": 0, "needs data": 0}
    for _, cases in computed():
        verdicts = {"needs data"} if isinstance(cases, str) else {case.verdict for case in cases}
        found[next((word for word in found if word in verdicts), "holds")] += 1
    return found


def text() -> str:
    import pandas as pd

    parts = [f"# {TITLE}\n\n{INTRO}\n"]
    for one, cases in computed():
        parts.append(f"\n## {one.experiment}: {one.title}\n")
        parts += [f"\n**{label}.** {getattr(one, name)}\n" for label, name in WORDS]
        told = f"gap: {cases}\n" if isinstance(cases, str) else markdown(pd.DataFrame(cells(cases), columns=HEADER))
        parts.append(f"\n{told}")
    return "".join(parts)


def body() -> str:
    """The main part of errata.html."""
    sections = []
    for one, cases in computed():
        words = paragraphs([(label, getattr(one, name)) for label, name in WORDS])
        if isinstance(cases, str):
            numbers = tag("p", breakable(f"Gap: {cases}"), cls="gap")
        else:
            rows = cells(cases)
            numbers = table(HEADER, rows, last=badge)
        sections.append((one.name, f"{one.experiment}: {one.title}", words + numbers))
    return tag("h1", TITLE) + tag("p", INTRO, cls="lead") + articles(sections)
