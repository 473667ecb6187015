"""The reproduction matrix: every published value of every paper as one square, coloured by its class.

Made from the manifests of the experiments alone; it stands at the top of a profile's folder as reproduction.* and opens
the overview. Run times are not in it: other hardware cannot reproduce them, and they are no verdict.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd

from dpbench import files, frames
from dpbench.reporting.manifest import VALUES, records
from dpbench.study.headline import CELL, Headline, headline
from dpbench.study.output import Figure, markdown
from dpbench.study.style import figure_style
from dpbench.study.verdicts import DIFFERS, EXACT, EXPLAINED, MATCH, NO_DATA, NOT_COMPARABLE, SURVIVES, WORDS

NAME, TITLE = "reproduction", "Published values, and what became of each"
FILLS = {EXACT: "#009E73", MATCH: "#7BCDB4", DIFFERS: "#D55E00", NOT_COMPARABLE: "#BDBDBD", NO_DATA: "#FFFFFF"}
MEANINGS = {
    EXACT: "every printed number, from the authors' own random stream (or from none)",
    MATCH: "statistically compatible, where a difference would have shown",
    DIFFERS: "neither, under the published setting",
    NOT_COMPARABLE: "the problem is not public, or too wide a spread on either side",
    NO_DATA: "our runs are missing, or the data are not fetched",
}
PALE = 0.35  # opacity of what no share counts
SURVIVAL = {SURVIVES: "●", EXPLAINED: "○"}  # drawn into a cell's square


def frame_of(found: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """One row per verdict of every manifest, placebos included: the columns of `Judged.record`, and the experiment."""
    rows = [
        {"experiment": name, "short": one["short"], **record}
        for name, one in found.items()
        for record in records(one, VALUES)
    ]
    return pd.DataFrame(rows)


def cells_of(frame: pd.DataFrame) -> pd.DataFrame:
    """The published values that are no run times."""
    return frame[frame["kind"].eq(CELL) & ~frame["run_time"].astype(bool)] if len(frame) else frame


def headlines(frame: pd.DataFrame) -> list[tuple[str, str, Headline]]:
    """(experiment, short title, headline numbers), paper by paper; none without cells."""
    return [
        (str(name), str(part["short"].iloc[0]), headline(_records(part)))
        for name, part in (frame.groupby("experiment", sort=False) if len(frame) else ())
    ]


def in_all(frame: pd.DataFrame) -> Headline:
    """The headline numbers of all papers."""
    return headline(_records(frame))


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return frames.mappings(frame.assign(chance=frame["chance"].astype(float)))


def save(folder: Path, found: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """Write reproduction.{pdf,svg,png,csv,md} of a profile's folder; the verdicts, none of which writes nothing."""
    frame = frame_of(found)
    if len(cells_of(frame)):
        caption = (
            f"{in_all(frame).sentence()} One square per value, one row per published table. Full circle: also from "
            "runs that keep their ε."
        )
        with figure_style():
            written = Figure(_drawn(cells_of(frame)), frame, caption).save(folder / NAME, TITLE)
        text = next(file for file in written if file.suffix == ".md")
        told = [f"\n{short}\n\n" + "".join(f"- {line}\n" for line in one.lines()) for _, short, one in _and_all(frame)]
        said = text.read_text(encoding="utf-8") + "\n" + markdown(table(frame)) + "".join(told)
        files.write(text, said)
    return frame


def _and_all(frame: pd.DataFrame) -> list[tuple[str, str, Headline]]:
    return [*headlines(frame), ("", "all papers", in_all(frame))]


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """The headline numbers as a table, with a last line for all papers."""
    rows = []
    for _, short, one in _and_all(frame):
        shares = [one.exact, one.match, one.survives, sum(one.explained.values()), len(one.differs)]
        rows.append([
            short, one.cells, one.trivial, one.copies, sum(one.not_comparable.values()), one.no_data,
            *(_share(share, one.comparable) for share in shares), _share(*one.placebo),
        ])  # fmt: skip
    return pd.DataFrame(rows, columns=COLUMNS)


def _share(some: int, of: int) -> str:
    return f"{some} of {of}" if of else "–"


COLUMNS = [
    "paper", "values", "trivial", "of the same runs", "not comparable", "no data", "exact", "match",
    "also from runs that keep their ε", "explained", "differs", "placebo",
]  # fmt: skip


def _drawn(frame: pd.DataFrame) -> Any:
    """A row of squares per published table, the papers under one another, counts at the right."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch, Rectangle

    groups = list(frame.groupby(["experiment", "table"], sort=False))
    heads = len({name for (name, _), _ in groups})
    longest = max(len(part) for _, part in groups)
    unit = 0.145  # inches a square
    height = unit * (1.25 * len(groups) + 1.7 * heads) + 0.75
    figure = plt.figure(figsize=(2.2 + unit * max(longest, 36) + 1.9, height))
    axis = figure.add_axes((0, 0, 1, 1))
    width = figure.get_figwidth() / unit
    axis.set(xlim=(0, width), ylim=(height / unit, 0))
    axis.axis("off")
    left, y, paper = 2.2 / unit, 0.4, ""
    uncounted = frame["verdict"].isin((EXACT, MATCH, DIFFERS)) & ~frame["counts"].astype(bool)
    for (name, printed), part in groups:
        if name != paper:
            paper, y = str(name), y + (1.7 if paper else 1.0)
            axis.text(0.6, y - 0.55, part["short"].iloc[0], fontsize=9, weight="bold", va="center")
        axis.text(left - 0.8, y + 0.5, str(printed), fontsize=7.5, ha="right", va="center")
        squares = zip(part["verdict"], part["survives"], uncounted[part.index], strict=True)
        for i, (verdict, survives, pale) in enumerate(squares):
            edge = "#8a8a8a" if verdict == NO_DATA else "white"
            fill = FILLS[verdict]
            alpha = PALE if pale else 1.0
            axis.add_patch(Rectangle((left + i + 0.06, y + 0.06), 0.88, 0.88, fc=fill, ec=edge, lw=0.5, alpha=alpha))
            mark = {DIFFERS: "×", NOT_COMPARABLE: "–"}.get(verdict, "")
            mark = SURVIVAL.get(survives, mark) if verdict in (EXACT, MATCH, DIFFERS) else mark
            axis.text(left + i + 0.5, y + 0.5, mark, fontsize=6, ha="center", va="center", color="#1d1d1f")
        counted = part[part["counts"].astype(bool)]
        words = Counter(counted["verdict"])
        told = f"{words[EXACT]} exact, {words[MATCH]} match of {len(counted)}" if len(counted) else "–"
        axis.text(left + len(part) + 0.6, y + 0.5, told, fontsize=7, va="center", color="#5a5f66")
        y += 1.25
    strong = frame[~uncounted]
    handles = [
        Patch(fc=FILLS[word], ec="#8a8a8a", lw=0.5, label=f"{word}: {(strong['verdict'] == word).sum():,}")
        for word in WORDS
    ]
    if uncounted.any():
        label = f"pale, not counted: {uncounted.sum():,}"
        handles.append(Patch(fc=FILLS[MATCH], ec="#8a8a8a", lw=0.5, alpha=PALE, label=label))
    figure.legend(handles=handles, loc="lower left", ncols=len(handles), fontsize=8, bbox_to_anchor=(0.0, 0.0))
    said = (
        "● also from runs that keep their ε   ○ explained by switches of the authors' code   × or no mark: neither\n"
        "pale: trivial (could not have come out otherwise), or of the same runs as another value"
    )
    figure.text(0.01, 0.32 / height, said, fontsize=7.5, color="#5a5f66")
    return figure
