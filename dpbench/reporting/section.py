"""A section of a paper, in LaTeX, from what `report` has drawn of an experiment: `section.tex` and `references.bib`.

Made from the manifest of the experiment's folder alone, like the pages. A document needs graphicx, booktabs and
longtable, and says where the folder is:

    \\newcommand{\\dpbenchfolder}{figures/full/my_paper}
    \\input{\\dpbenchfolder/section}
    \\bibliography{figures/full/my_paper/references}
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dpbench import files
from dpbench.errors import counted
from dpbench.experiments.listing import cite
from dpbench.reporting import manifest
from dpbench.study.output import escaped
from dpbench.study.statistics import capitalised

FILE, REFERENCES = "section.tex", "references.bib"
MOST = 3  # versions of the code that are named
WIDE = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{"


def write(folder: Path) -> list[Path]:
    """Write both files of an experiment's folder; their paths."""
    record = manifest.read(folder / manifest.FILE)
    entries = cite(record["experiment"])
    files.write(folder / FILE, "\n".join(_lines(record, _keys(entries))) + "\n")
    files.write(folder / REFERENCES, entries)
    return [folder / FILE, folder / REFERENCES]


def _keys(entries: str) -> list[str]:
    return re.findall(r"^@\w+\{([^,\s]+),", entries, flags=re.MULTILINE)


def _lines(record: dict[str, Any], cited: list[str]) -> Iterator[str]:
    name = record["experiment"]
    yield r"% Needs \usepackage{graphicx,booktabs,longtable}; \input this file after saying where it lies:"
    yield r"% \newcommand{\dpbenchfolder}{path/of/this/folder}"
    yield r"\providecommand{\dpbenchfolder}{.}"
    yield rf"\section{{{escaped(record['title'])}}}"
    yield rf"\label{{sec:{name}}}"
    yield _setting(record, cited)
    for one in record["artefacts"]:
        if one["name"] not in manifest.JUDGED:
            yield ""
            yield from _figure(name, one) if one["kind"] == "figure" else _table(name, one)
    if claims := manifest.records(record, manifest.SCORECARD):
        yield ""
        yield from _claims(name, claims)
    values = next((one for one in record["artefacts"] if one["name"] == manifest.VALUES), None)
    if values is not None:
        yield ""
        yield escaped(values["caption"])


def _setting(record: dict[str, Any], cited: list[str]) -> str:
    """What the rows are: how many, by what, under which neighbours, and who checked their ε."""
    statuses = ", ".join(f"{count:,} {status}" for status, count in record["statuses"].items())
    sentences = [
        f"All figures and tables are made from {counted(record['runs'], 'run')} ({statuses}) of the "
        f"{record['profile']} profile, by {_either(record['code_versions'])}"
    ]
    if record["relations"]:
        sentences.append(f"Neighbours: {' and '.join(record['relations'])}")
    if record["checked_by"]:
        sentences.append(
            f"Every ε was computed a second time from the noise that was drawn ({record['checked_by'][0]})"
        )
    citation = rf"~\cite{{{','.join(cited)}}}" if cited else ""
    first, *rest = map(escaped, sentences)
    return " ".join(f"{each}." for each in [first + citation, *rest])


def _either(versions: list[str]) -> str:
    return ", ".join(versions) if len(versions) <= MOST else f"{len(versions)} versions of the code"


def _figure(name: str, one: dict[str, Any]) -> Iterator[str]:
    yield r"\begin{figure}"
    yield r"\centering"
    yield rf"\includegraphics[width=\linewidth]{{\dpbenchfolder/{one['name']}.pdf}}"
    yield from _caption("fig", name, one)
    yield r"\end{figure}"


def _table(name: str, one: dict[str, Any]) -> Iterator[str]:
    yield r"\begin{table}"
    yield r"\centering"
    yield from _caption("tab", name, one)
    yield WIDE + rf"\begin{{tabular}}{{{'l' * len(one['columns'])}}}"
    yield r"\toprule"
    yield _row(one["columns"])
    yield r"\midrule"
    yield from map(_row, one["rows"])
    yield r"\bottomrule"
    yield r"\end{tabular}}"
    yield r"\end{table}"


def _row(cells: list[str]) -> str:
    told = [rf"\shortstack[l]{{{escaped(cell)}}}" if "\n" in cell else escaped(cell) for cell in cells]
    return " & ".join(told) + r" \\"


def _caption(kind: str, name: str, one: dict[str, Any]) -> Iterator[str]:
    printed, _, rest = one["title"].partition(": ")
    title = capitalised(rest) if rest and re.fullmatch(r"(Fig\.|Table|App\.) [\w.]+", printed) else one["title"]
    yield rf"\caption{{{escaped(title)}. {escaped(one['caption'])}}}"
    yield rf"\label{{{kind}:{name}:{one['name']}}}"


def _claims(name: str, claims: list[dict[str, Any]]) -> Iterator[str]:
    words = ", ".join(f"{count} {word}" for word, count in Counter(one["verdict"] for one in claims).most_common())
    head = r"claim & in the paper & verdict & numbers \\"
    yield r"\begin{footnotesize}"
    widths = "".join(rf"p{{{share}\linewidth}}" for share in (0.34, 0.13, 0.11, 0.27))
    yield rf"\begin{{longtable}}{{{widths}}}"
    yield rf"\caption{{The claims, judged on these runs: {escaped(words)}.}}\label{{tab:{name}:claims}}\\"
    yield rf"\toprule {head} \midrule \endfirsthead"
    yield rf"\toprule {head} \midrule \endhead"
    yield r"\bottomrule \endfoot"
    for one in claims:
        text = f"{one['text']} ({one['case']})" if one.get("case") else one["text"]
        yield _row([text, one["place"] or "–", one["verdict"], one["numbers"].replace("\n", " ")])
    yield r"\end{longtable}"
    yield r"\end{footnotesize}"
