"""What became of the published values, and whether a wrong run would have been noticed: the picture, and lists in HTML.

Made from the manifests of the experiments alone; the picture stands at the top of a profile's folder as reproduction.*
and opens the overview. In HTML the values are a field of squares over a list, claims a list with all of their verdicts.
Run times are not in it: other hardware cannot reproduce them, and they are no verdict.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup

from dpbench import files, frames
from dpbench.reporting import glossary
from dpbench.reporting.html import badge, breakable, join, link, table, tag
from dpbench.reporting.manifest import VALUES, records
from dpbench.study import laws
from dpbench.study.claims import BOTH
from dpbench.study.headline import Headline, headline
from dpbench.study.output import Figure, markdown
from dpbench.study.style import figure_style
from dpbench.study.value_verdict import (
    BLIND,
    DIFFERS,
    EXACT,
    LEFT_OUT,
    MATCH,
    NO_DATA,
    NOT_COMPARABLE,
    SURVIVES,
    TRIVIAL,
    UNPLANTED,
    WORDS,
)

NAME, TITLE = "reproduction", "Published values, and what became of each"
LEFT = "left out"
FILLS = {
    EXACT: "#009E73",
    MATCH: "#7BCDB4",
    DIFFERS: "#D55E00",
    BLIND: "#F0E442",
    UNPLANTED: "#56B4E9",
    LEFT: "#BDBDBD",
}
MEANINGS = {
    EXACT: "every printed digit, from the authors' own random stream (or from none); wrong noise would not give it",
    MATCH: "within statistical error, where half and twice the noise would have failed",
    DIFFERS: "neither, under the published setting",
    BLIND: "it agrees, and would also agree with half or twice the noise: it says nothing about the noise",
    UNPLANTED: "it agrees, and runs with half and twice the noise are not made yet",
    TRIVIAL: "it could not have come out otherwise",
    NOT_COMPARABLE: "the problem is not public, or it counts seconds or bytes of a machine",
    NO_DATA: "our runs are missing, or the data are not fetched",
}
MARKS = (
    "A square is one published value, and its colour is the verdict on it. ●: runs at a proven ε give it too. "
    "×: it differs. –: left out."
)


def frame_of(manifests: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """One row per published value of every manifest: the columns of `Judged.record`, and the experiment."""
    rows = [
        {"experiment": name, "short": one["short"], **record}
        for name, one in manifests.items()
        for record in records(one, VALUES)
    ]
    return pd.DataFrame(rows)


def of_values(frame: pd.DataFrame) -> pd.DataFrame:
    """The published values that are no run times."""
    return frame[~frame["run_time"].astype(bool)] if len(frame) else frame


def headlines(frame: pd.DataFrame) -> list[tuple[str, str, Headline]]:
    """(experiment, short title, headline numbers), paper by paper; none without published values."""
    return [
        (str(name), str(part["short"].iloc[0]), in_all(part))
        for name, part in (frame.groupby("experiment", sort=False) if len(frame) else ())
    ]


def in_all(frame: pd.DataFrame) -> Headline:
    """The headline numbers of all papers."""
    numbers = [name for name in frame if name in ("chance", "resolution") or str(name).startswith("ratio")]
    return headline(frames.mappings(frame.astype(dict.fromkeys(numbers, float))))


def save(folder: Path, manifests: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """Write reproduction.{pdf,svg,png,csv,md} of a profile's folder; the verdicts, none of which writes nothing."""
    frame = frame_of(manifests)
    if len(of_values(frame)):
        with figure_style():
            written = Figure(_drawn(frame), frame, caption=in_all(frame).sentence()).save(folder / NAME, TITLE)
        text = next(file for file in written if file.suffix == ".md")
        told = [f"\n{short}\n\n" + "".join(f"- {line}\n" for line in (one.paragraph(), *one.lines()))
                for _, short, one in _and_all(frame)]  # fmt: skip
        said = text.read_text(encoding="utf-8") + "\n" + markdown(counts_table(frame)) + "".join(told)
        files.write(text, said)
    return frame


def _and_all(frame: pd.DataFrame) -> list[tuple[str, str, Headline]]:
    return [*headlines(frame), ("", "all papers", in_all(frame))]


def counts_table(frame: pd.DataFrame) -> pd.DataFrame:
    """The headline numbers as a table, with a last line for all papers; no share without its denominator."""
    rows, words = [], [word for word in FILLS if word != LEFT]
    for _, short, one in _and_all(frame):
        lives = f"{one.survival[SURVIVES]} of {one.reproduced}" if one.reproduced else "–"
        rows.append([short, one.total, sum(one.left.values()), *(one.words[word] for word in words), lives])
    return pd.DataFrame(rows, columns=["paper", "values", LEFT, *words, "still come out at a proven ε"])


def _drawn(frame: pd.DataFrame) -> Any:
    """Three panels: what became of the values, which wrong runs would have passed, and the pooled ratios."""
    import matplotlib.pyplot as plt

    told, whole = headlines(of_values(frame)), in_all(frame)
    figure, (bars, seen, pooled) = plt.subplots(
        1, 3, figsize=(12.5, 1.6 + 0.42 * max(len(told), len(whole.placebo) + 1, 4)), layout="constrained",
        width_ratios=(1.3, 1, 1),
    )  # fmt: skip
    for y, (_, _, one) in enumerate(told):
        at = 0
        for word, fill in FILLS.items():
            n = sum(one.left.values()) if word == LEFT else one.words[word]
            bars.barh(y, n, left=at, color=fill, label=word if not y else "", edgecolor="white", lw=0.5)
            if n:  # above a bar that is narrower than its number
                bars.text(at + n / 2, y - 0.47 * (n < 4), str(n), ha="center", va="center", fontsize=7)
            at += n
    bars.set_yticks(range(len(told)), [short for _, short, _ in told], fontsize=8)
    bars.tick_params(axis="y", length=0, pad=6)
    bars.grid(axis="y", visible=False)
    bars.set(title="What became of the published values", xlabel="values", ylim=(len(told) - 0.4, -0.6))
    figure.legend(*bars.get_legend_handles_labels(), ncols=len(FILLS), loc="outside lower center", fontsize=8)
    shares = {"the right runs": (whole.reproduced, whole.reproduced), **whole.placebo}
    for y, (name, (some, of)) in enumerate(shares.items()):
        seen.barh(y, some / of if of else 0, color=FILLS[MATCH] if not y else FILLS[DIFFERS])
        seen.text(0.01, y, f"{name}: {some} of {of}", va="center", fontsize=8)
    seen.set(title="Would we have noticed a wrong run?", xlabel="share of values it would pass", xlim=(0, 1), yticks=[],
             ylim=(len(shares) - 0.4, -0.6))  # fmt: skip
    pooled.axvspan(1 / laws.MARGIN, laws.MARGIN, color="#e4efe9")
    for y, (name, (ratio, *_)) in enumerate(whole.pooled.items()):
        pooled.plot([ratio.low, ratio.high], [y, y], color="#1d1d1f")
        pooled.plot(ratio.value, y, "o", color="#1d1d1f")
        pooled.text(ratio.value, y - 0.25, f"{name}: {ratio.value:.2f}", ha="center", fontsize=8)
    pooled.margins(x=0.2)  # room for the words above the outer points
    pooled.set(title="Ours over published, pooled", xscale="log", xlabel="ratio", yticks=[],
               ylim=(max(len(whole.pooled), 1) - 0.4, -0.6))  # fmt: skip
    return figure


def headline_table(frame: Any) -> Markup:
    """The headline numbers per paper, each paper a link to its values, and the lines of all papers."""
    told = counts_table(frame)
    pages = [f"{name}/index.html#values" for name, _, _ in headlines(frame)]
    rows = [[link(page, row[0]), *row[1:]] for page, row in zip(pages, told.to_numpy().tolist(), strict=False)]
    rows.append(told.to_numpy().tolist()[-1])
    files = [link(f"{NAME}.{suffix}", suffix.upper()) for suffix in ("pdf", "svg", "csv", "md")]
    meanings = "; ".join(f"{word}: {MEANINGS[word]}" for word in WORDS)
    return (
        headline_list(in_all(frame))
        + table(list(told.columns), rows)
        + tag("details", tag("summary", "Method") + tag("p", glossary.linked(f"{meanings}.", ""), cls="caption"))
        + tag("p", join(files, " · "), cls="files")
    )


def headline_list(one: Headline) -> Markup:
    """The lines below the sentence; a list that is long is folded."""
    items = []
    for line in one.lines():
        short, _, rest = line.partition(" (")
        folded = tag("details", tag("summary", "each of them") + tag("small", line))
        items.append(tag("li", join([short, folded]) if rest and len(line) > 200 else line))
    return tag("ul", join(items), cls="headline")


def values(records: list[dict[str, Any]], commands: Mapping[str, str]) -> Markup:
    """Published values table by table: a square each, and below, folded, what was compared, and where it stands.

    commands: artefact → the command that makes its rows, or draws it.
    """
    parts, at = [], 0
    for printed, group in groupby(records, key=lambda record: record["table"]):
        squares, lines = [], []
        for record in group:
            at += 1
            place = ", ".join(filter(None, (record["row"], record["column"])))
            title = f"{printed}, {place}: {_verdict_sentence(record)}"
            # A run time is no verdict, and a square would be counted by the eye.
            if not record["run_time"]:
                squares.append(_square(f"#value-{at}", record["verdict"], title, _mark(record)))
            lines.append(tag("li", _value(record, place), id=f"value-{at}"))
            artefact = record["artefact"]
        command = commands.get(artefact, "dpbench report")
        told = tag("summary", f"{printed}: what was compared, cell by cell") + tag("ul", join(lines), cls="claims")
        parts.append(
            tag("h3", printed)
            + (tag("p", join(squares), cls="squares") if squares else "")
            + tag("details", told + tag("p", join(["ours: ", link(f"#{artefact}", artefact)])) + tag("pre", command))
        )
    return join(parts)


def legend() -> Markup:
    """What the colours and the marks of the squares mean."""
    colours = (join([tag("span", "", cls=f"square {word.replace(' ', '-')}"), f" {word}"]) for word in WORDS)
    return tag("p", join(colours, ""), cls="squares legend") + tag("p", MARKS, cls="caption")


def _mark(record: dict[str, Any]) -> str:
    left = not record["counts"]
    return "●" if record["survives"] == SURVIVES and not left else {DIFFERS: "×"}.get(record["verdict"], "–" * left)


def _verdict_sentence(record: dict[str, Any]) -> str:
    """A value's class with its reason, what it would have noticed, and its survival."""
    flags = [record["reason"], f"copy of {record['copy_of']}" if record["copy_of"] else ""]
    word = str(record["verdict"]) + (f" ({'; '.join(filter(None, flags))})" if any(flags) else "")
    if record["verdict"] in LEFT_OUT:
        return word
    word += "" if record["private"] else ", in a setting that does not keep its ε"
    seen = [f"{text} {record[name]}" for name, text in (("notices", "notices"), ("misses", "does not notice"))
            if record[name]]  # fmt: skip
    if record["survives"]:
        by = f", comes back with {record['by']}" if record["by"] else ""
        how = f" ({record['how']})" if record["how"] else ""
        seen.append(f"at a proven ε: {record['survives']}{by}{how}")
    return "; ".join([word, *seen])


def _square(target: str, word: str, title: str, mark: str) -> Markup:
    shown = tag("span", mark, cls=f"square {word.replace(' ', '-')}", title=title)
    return link(target, shown.strip(), aria_label=title)


def _value(record: dict[str, Any], place: str) -> Markup:
    fits = f" Fits, which explain nothing: {record['fits']}." if record["fits"] else ""
    told = _verdict_sentence(record)[len(record["verdict"]) :]
    return badge(record["verdict"]) + join([" ", place, told, tag("small", record["numbers"] + fits)])


def claims_list(records: list[dict[str, Any]]) -> Markup:
    """Verdicts first, the numbers folded: readable on a phone, where a table of sentences is not."""
    items = []
    for (_, text, place, shows), group in groupby(records, key=itemgetter("claim", "text", "place", "shows")):
        lines = []
        for record in group:
            case = record.get("case") or ("" if record["setting"] == BOTH else record["setting"])
            setting = f" ({case})" if case else ""
            why = Markup("")
            if record["why"]:
                by = record["demonstrated_by"]
                why = join([f" Why: {record['why']} (", link(f"#{by}", by), ")"])
            numbers = tag("details", tag("summary", "numbers") + tag("small", breakable(record["numbers"])))
            lines.append(tag("div", badge(record["verdict"]) + setting + why + numbers, cls="verdict"))
        shown = join([" · shown by ", link(f"#{shows}", shows)]) if shows else ""
        items.append(tag("li", tag("b", text) + tag("small", join([place, shown])) + join(lines)))
    return tag("ul", join(items), cls="claims")
