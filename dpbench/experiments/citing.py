"""BibTeX of what a figure rests on: this project, the paper, its data sets."""

from __future__ import annotations

import re

from dpbench import datasets, experiments
from dpbench.problems import catalogue
from dpbench.version import __version__

OURS = f"""@software{{dpbench,
  title = {{dpbench: a benchmark of differentially private optimisers}},
  author = {{{{The dpbench developers}}}},
  version = {{{__version__}}},
}}
"""


def cite(experiment: str | None = None) -> str:
    """BibTeX entries of dpbench and, of an experiment, its paper and the data sets of its grids, in this order."""
    if experiment is None:
        return OURS
    one = experiments.get(experiment)
    paper = one.file("paper.bib")
    entries = [OURS, *([paper.read_text(encoding="utf-8")] if paper.is_file() else [])]
    problems = {problem for grid in one.grid().values() for block in grid for problem in block.problems}
    cited: dict[str, list[str]] = {}  # by source: several sets may be made from one
    for name in sorted({catalogue.recipe_of(problem).dataset for problem in problems}):
        if citation := datasets.describe(name).citation:
            cited.setdefault(citation, []).append(name)
    return "\n".join([*entries, *(_entry(names, citation) for citation, names in cited.items())])


def _entry(names: list[str], citation: str) -> str:
    """A data set's entry, from "Authors (year), Title, place, doi:…"."""
    lines = [f"@misc{{{names[0]},"]
    if match := re.match(r"(?P<author>.*?) \((?P<year>\d{4})\), (?P<title>[^,;]+)[,;]? ?(?P<rest>.*)", citation):
        lines.append(f"  title = {{{match['title']}}},")
        lines.append(f"  author = {{{' and '.join(re.split(', | and ', match['author']))}}},")
        lines.append(f"  year = {{{match['year']}}},")
        citation = match["rest"]
    if doi := re.search(r"doi:(\S+)", citation):
        lines.append(f"  doi = {{{doi[1]}}},")
    if arxiv := re.search(r"arXiv:(\S+)", citation):
        lines += [f"  eprint = {{{arxiv[1]}}},", "  archiveprefix = {arXiv},"]
    if rest := re.sub(r",? ?(?:doi|arXiv):\S+", "", citation).strip():
        lines.append(f"  howpublished = {{{rest}}},")
    lines.append(f"  note = {{data {'set' if len(names) == 1 else 'sets'} {', '.join(names)} of dpbench}},")
    return "\n".join([*lines, "}"]) + "\n"
