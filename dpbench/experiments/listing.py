"""What there is, by name: algorithms, data sets, losses, experiments; and the BibTeX of what a figure rests on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dpbench import algorithms, datasets, experiments
from dpbench.algorithms.base import make_settings
from dpbench.errors import UserError, nearest
from dpbench.problems import catalogue, losses
from dpbench.version import __version__

if TYPE_CHECKING:
    import pandas

LISTINGS = ("algorithms", "datasets", "losses", "experiments")


def listing(what: str) -> pandas.DataFrame:
    """What there is, a row each: see `listed`."""
    import pandas as pd

    return pd.DataFrame(listed(what), dtype=object)


def listed(what: str) -> list[dict[str, Any]]:
    """What there is: "algorithms", "datasets" (with whether each is fetched), "losses" or "experiments", a row each.

    An algorithm's `private`: whether it keeps its ε as `--accounting paper` runs it; `sound`: the accountings under
    which it does, "all" or "none". A loss's `L0`, `L1` and `L2` bound its first, second and third derivative;
    `methods`: how many private ones cover it; `package`: the one that it comes from.
    """
    if what not in LISTINGS:
        raise UserError(f"listing: there is no {what!r}; {nearest(what, LISTINGS)}")
    rows: list[dict[str, Any]] = []
    if what == "algorithms":
        for name in algorithms.names():
            method, fixed = algorithms.resolve(name)
            settings = ", ".join(field for field in method.Settings.__struct_fields__ if field not in fixed)
            sound = method.sound(make_settings(method, fixed))
            told = "all" if len(sound) == len({"paper", *method.accountings}) else ", ".join(sound) or "none"
            rows.append({"algorithm": name, "private": "paper" in sound, "sound": told,
                         "relation": method.relation.value, "home_experiment": method.home,
                         "settings": settings})  # fmt: skip
    elif what == "datasets":
        for name in datasets.names():
            spec = datasets.describe(name)
            state = "generated" if spec.synthetic else "fetched" if datasets.available(name) else "not fetched"
            rows.append({"data_set": name, "rows": spec.rows, "columns": spec.columns, "state": state,
                         "title": spec.title})  # fmt: skip
    elif what == "losses":
        methods = [method for method, _ in map(algorithms.resolve, algorithms.names()) if method.private]
        for name in losses.names():
            loss = losses.get(name)
            covering = {method.name for method in methods if not method.needs.missing_for(loss)}
            rows.append({"loss": name, "labels": "-1, +1" if loss.binary else "numbers", "convex": loss.convex,
                         "L0": loss.lipschitz, "L1": loss.smoothness, "L2": loss.hessian_lipschitz,
                         "methods": len(covering), "package": type(loss).__module__.partition(".")[0]})  # fmt: skip
    else:
        for name in experiments.names():
            one = experiments.get(name)
            artefacts = ", ".join(artefact.name for artefact in one.artefacts)
            rows.append({"experiment": name, "artefacts": artefacts, "paper": one.citation})
    return rows


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
