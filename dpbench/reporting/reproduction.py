"""The reproduction matrix: every published value of every paper as one square, coloured by what came of it.

Made from the manifests of the experiments alone; it stands at the top of a profile's folder as reproduction.* and opens
the overview.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd

from dpbench.reporting.manifest import MEANS, records
from dpbench.study.output import Figure, markdown
from dpbench.study.style import figure_style
from dpbench.study.welch import DIFFERS, EXPLAINED, MATCH, NO_DATA, NOT_COMPARABLE, WORDS

NAME, TITLE = "reproduction", "Published values, and what came of each"
FILLS = {MATCH: "#009E73", EXPLAINED: "#56B4E9", DIFFERS: "#D55E00", NO_DATA: "#FFFFFF", NOT_COMPARABLE: "#BDBDBD"}
MARKS = {MATCH: "", EXPLAINED: "e", DIFFERS: "×", NO_DATA: "", NOT_COMPARABLE: "–"}  # told without colour, too
MEANINGS = {
    MATCH: "equivalent to the published value",
    EXPLAINED: "a run with one named difference of the published code matches",
    DIFFERS: "and no run of ours shows why",
    NO_DATA: "our runs are missing, or the data are not at hand",
    NOT_COMPARABLE: "the spread, a single value, or a run time that one side has not, does not tell",
}


def cells(found: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """One row per published value: experiment, short title, table, row, column, value, artefact, verdict, numbers."""
    rows = [
        {"experiment": name, "short": one["short"], **record}
        for name, one in found.items()
        for record in records(one, MEANS)
    ]
    columns = ["experiment", "short", "table", "row", "column", "value", "artefact", "verdict", "numbers"]
    return pd.DataFrame(rows, columns=columns)


def counts(frame: pd.DataFrame) -> list[tuple[str, str, Counter[str]]]:
    """(experiment, short title, how many cells of each verdict), paper by paper."""
    return [
        (str(name), str(part["short"].iloc[0]), Counter(part["verdict"]))
        for name, part in frame.groupby("experiment", sort=False)
    ]


def in_words(frame: pd.DataFrame) -> str:
    """One sentence on all of them.

    >>> import pandas as pd
    >>> in_words(pd.DataFrame({"verdict": ["match", "match", "explained", "no data"]}))
    'Of 3 published values that can be compared 2 match, 1 are explained by a run that matches, 0 differ; 1 no data.'
    """
    words = Counter(frame["verdict"])
    judged = words[MATCH] + words[EXPLAINED] + words[DIFFERS]
    rest = [f"{words[word]} {word}" for word in (NO_DATA, NOT_COMPARABLE) if words[word]]
    return (
        f"Of {judged:,} published values that can be compared {words[MATCH]:,} match, {words[EXPLAINED]:,} are "
        f"explained by a run that matches, {words[DIFFERS]:,} differ" + (f"; {', '.join(rest)}" if rest else "") + "."
    )


def save(folder: Path, found: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """Write reproduction.{pdf,svg,png,csv,md} of a profile's folder; the cells, none of which writes nothing."""
    frame = cells(found)
    if len(frame):
        caption = (
            f"{in_words(frame)} A square per published value, a row per published table: "
            + "; ".join(f"{word}: {MEANINGS[word]}" for word in WORDS)
            + ". Theory papers publish no values."
        )
        with figure_style():
            files = Figure(_drawn(frame), frame, caption).save(folder / NAME, TITLE)
        text = next(file for file in files if file.suffix == ".md")
        text.write_text(text.read_text(encoding="utf-8") + "\n" + markdown(table(frame)), encoding="utf-8")
    return frame


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """The counts as a table, with a last line for all papers."""
    rows = [[short, sum(words.values()), *(words[word] for word in WORDS)] for _, short, words in counts(frame)]
    rows.append(["all", len(frame), *(Counter(frame["verdict"])[word] for word in WORDS)])
    return pd.DataFrame(rows, columns=["paper", "values", *WORDS])


def _drawn(frame: pd.DataFrame) -> Any:
    """A row of squares per published table, the papers under one another, counts at the right."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch, Rectangle

    groups = list(frame.groupby(["experiment", "table"], sort=False))
    heads = len({name for (name, _), _ in groups})
    longest = max(len(part) for _, part in groups)
    unit = 0.145  # inches a square
    height = unit * (1.25 * len(groups) + 1.7 * heads) + 0.55
    figure = plt.figure(figsize=(2.2 + unit * max(longest, 36) + 1.2, height))
    axis = figure.add_axes((0, 0, 1, 1))
    width = figure.get_figwidth() / unit
    axis.set(xlim=(0, width), ylim=(height / unit, 0))
    axis.axis("off")
    left, y, paper = 2.2 / unit, 0.4, ""
    for (name, printed), part in groups:
        if name != paper:
            paper, y = name, y + (1.7 if paper else 1.0)
            axis.text(0.6, y - 0.55, part["short"].iloc[0], fontsize=9, weight="bold", va="center")
        axis.text(left - 0.8, y + 0.5, printed, fontsize=7.5, ha="right", va="center")
        for i, word in enumerate(part["verdict"]):
            edge = "#8a8a8a" if word == NO_DATA else "white"
            axis.add_patch(Rectangle((left + i + 0.06, y + 0.06), 0.88, 0.88, fc=FILLS[word], ec=edge, lw=0.5))
            axis.text(left + i + 0.5, y + 0.5, MARKS[word], fontsize=6, ha="center", va="center", color="#1d1d1f")
        judged = part["verdict"].isin([MATCH, EXPLAINED, DIFFERS]).sum()
        good = part["verdict"].isin([MATCH, EXPLAINED]).sum()
        told = f"{good} of {judged}" if judged else "–"
        axis.text(left + len(part) + 0.6, y + 0.5, told, fontsize=7, va="center", color="#5a5f66")
        y += 1.25
    handles = [Patch(fc=FILLS[word], ec="#8a8a8a", lw=0.5, label=_legend(word, frame)) for word in WORDS]
    figure.legend(handles=handles, loc="lower left", ncols=len(WORDS), fontsize=8, bbox_to_anchor=(0.0, 0.0))
    return figure


def _legend(word: str, frame: pd.DataFrame) -> str:
    mark = f" ({MARKS[word]})" if MARKS[word] else ""
    return f"{word}{mark}: {(frame['verdict'] == word).sum():,}"
