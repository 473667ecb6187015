"""From parquet to figures and tables. Nothing here runs a solver."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from dpbench import experiments
from dpbench.errors import UserError, counted, nearest, silent
from dpbench.leaderboard import stored
from dpbench.reporting.scorecard import in_words, judged, statement, verdicts
from dpbench.run.executors import pooled
from dpbench.study.claims import Artefact
from dpbench.study.context import Context, contexts
from dpbench.study.experiment import PLANTED, Experiment

PRINTED = ("Fig.", "Table", "App.")  # how the title of what is in the paper begins


def build(
    reference: str | None = None,
    profile: str | None = None,
    *,
    results: str | os.PathLike[str] = "results",
    figures: str | os.PathLike[str] = "figures",
) -> Iterator[str]:
    """Rebuild artefacts, scorecards and the pages around them, and yield a line for each.

    reference: "experiment" or "experiment/artefact"; None for all, runs of one's own among them, which profile "adhoc"
    selects alone. UserError when the selection has no results.
    """
    from dpbench.reporting import adhoc, errata_pages, pages

    if profile == adhoc.PROFILE and reference is not None:
        raise UserError("--profile adhoc goes without --experiment: it is of runs that dpbench run --algo made")
    own = reference is None and profile in (None, adhoc.PROFILE) and adhoc.folders(Path(results))
    folders = []
    selected = [] if profile == adhoc.PROFILE else _selection(reference, profile)
    parts = [
        (experiment.name, artefact, context.profile, results, figures)
        for experiment, artefact in selected
        for context in contexts(experiment, profile, results)
    ]
    # Matplotlib holds the interpreter's lock while it draws, so threads would not help.
    if len(parts) > 1:
        yield f"{len(parts)} experiments, each drawn in a process of its own; lines come when one is done"
    for lines, folder in pooled(_drawn, parts, None if len(parts) > 1 else 1, ordered=True):
        yield from lines
        folders.append(folder)
    # After all experiments: these pages sum up over what every one of them wrote.
    for folder in dict.fromkeys(folders):
        yield f"{errata_pages.save(folder)}.*  {errata_pages.TITLE}"
        yield f"to read all of it, open {pages.write(folder, Path(results) / folder.name)}"
    if own:
        yield from adhoc.build(results, figures)
    if not folders and not own:
        what = f" for {reference}" if reference else ""
        example = "--algo dp-gd --dataset synthetic --eps 1" if profile == adhoc.PROFILE else "--experiment NAME"
        raise UserError(f"no results{what} in {results}; run: dpbench run {example}")


def _drawn(
    name: str,
    artefact: str,
    profile: str,
    results: str | os.PathLike[str],
    figures: str | os.PathLike[str],
) -> tuple[list[str], Path]:
    """Draw the artefacts of one experiment and profile: a line for each, and the profile's folder."""
    from dpbench.reporting import manifest
    from dpbench.reporting.scorecard import artefacts

    experiment = experiments.get(name)
    (context,) = contexts(experiment, profile, results)
    folder = Path(figures) / profile / name
    own = [one for one in experiment.artefacts if artefact in ("", one.name)]
    entries, lines = [], []
    for one in own if artefact else [*own, *artefacts(experiment)]:
        entries.append(_save(context, one, folder))
        gaps = f"  ({counted(len(entries[-1]['gaps']), 'gap')})" if entries[-1]["gaps"] else ""
        lines.append(f"{folder / one.name}.*  {entries[-1]['title']}{gaps}")
    manifest.update(folder, context, entries)
    return lines, folder.parent


def headed(title: str, finding: str) -> str:
    """The heading of an artefact: what it shows, between its number in the paper and whether it is in the paper.

    >>> headed("Fig. 2: loss against ε", "A is lowest"), headed("Noise (not in the paper)", "A adds less")
    ('Fig. 2: A is lowest', 'A adds less (not in the paper)')
    """
    if not finding:
        return title
    printed = title.partition(":")[0]
    number = f"{printed}: " if printed.startswith(PRINTED) else ""
    ours = re.search(r" [(]not in the paper[^)]*[)]$", title)
    return f"{number}{finding}{ours[0] if ours else ''}"


def _save(context: Context, one: Artefact, folder: Path) -> dict[str, Any]:
    """Render one artefact and save it in every format; its entry in the manifest."""
    from dpbench.reporting import manifest
    from dpbench.study.style import figure_style

    own = one in context.experiment.artefacts
    printed = one.title.partition(":")[0]
    is_printed = printed.startswith(PRINTED)
    cited = context.experiment.cited(printed) if own and is_printed else printed
    # The style is global in Matplotlib; left on, it would change a user's own figures.
    with figure_style():
        output = one.render(context)
        runs = one.name if own or one.name == PLANTED else ""  # whose runs it is of; "" for those of all
        unfinished = context.unfinished(runs) if runs else ""
        output.gaps += [unfinished] if unfinished else []
        title = headed(one.title, output.finding)
        method = [output.method, context.behind(one.name) if own else ""]
        method += [f"In the paper: {cited}."] if cited != printed else []
        output.method = " ".join(filter(None, method))
        files = output.save(folder / one.name, title)
    # A formula, say, has no runs: the report alone draws it.
    command = context.command(runs) if not runs or context.blocks(runs) else ""
    return manifest.entry(one.name, title, command, output, files)


def check(
    reference: str | None = None, profile: str | None = None, *, results: str | os.PathLike[str] = "results"
) -> Iterator[Context | Experiment]:
    """What `report --check` judges: a context per selected experiment and profile; the experiment where no rows are."""
    if profile == "adhoc":
        raise UserError("--profile adhoc goes without --check: runs of your own have no claims to judge")
    for experiment, _ in _selection(reference, profile):
        profiles = list(contexts(experiment, profile, results))
        yield from profiles
        if not profiles:
            yield experiment


def _selection(reference: str | None, profile: str | None) -> list[tuple[Experiment, str]]:
    """(experiment, artefact or "") pairs, of all those that have the profile; UserError for an unknown name."""
    if reference is None:
        all_of = [experiments.get(name) for name in experiments.names()]  # a package's paper may have other profiles
        profiles = list(dict.fromkeys(each for one in all_of for each in one.grid()))
        if profile is not None and profile not in profiles:
            raise UserError(f"unknown profile {profile!r}: {nearest(profile, [*profiles, 'adhoc'])}")
        return [(one, "") for one in all_of if profile is None or profile in one.grid()]
    name, _, artefact = reference.partition("/")
    experiment = experiments.get(name)
    known = [one.name for one in experiment.artefacts]
    if artefact and artefact not in known:
        raise UserError(f"{name} has no artefact {artefact!r}: {nearest(artefact, known)}")
    return [(experiment, artefact)]


def report(
    reference: str | None = None,
    *,
    profile: str | None = None,
    results: str | os.PathLike[str] = "results",
    figures: str | os.PathLike[str] = "figures",
    notify: Callable[[str], None] = silent,
) -> None:
    """Rebuild figures, tables and pages from the rows, under `figures/PROFILE/index.html`; no solver runs.

    Args:
        reference: an experiment or "experiment/artefact"; None for all.
        profile: "quick", "full" or another of the experiment; None for each that has rows.
        results: the folder of all results.
        figures: the folder to write to.
        notify: gets a line for each file group written.

    Raises:
        UserError: when the selection has no results.
    """
    if (reference or "").partition("/")[0] == stored.EXPERIMENT and profile in (None, "full"):
        stored.lay_out(results, notify)
    for line in build(reference, profile, results=results, figures=figures):
        notify(line)


@dataclass(frozen=True)
class Scorecard:
    """verdicts: a row per claim and per published mean: experiment, profile, name, text, verdict, numbers.

    missing: the experiments asked for that have no rows to judge.
    """

    verdicts: pd.DataFrame
    missing: list[str]


def scorecard(
    reference: str | None = None, *, profile: str | None = None, results: str | os.PathLike[str] = "results"
) -> Scorecard:
    """Judge the papers' claims and the values that they print, on the rows that exist; nothing is written.

    Args:
        reference, profile, results: as of `report`.
    """
    rows, missing = [], []
    for context in check(reference, profile, results=results):
        if not isinstance(context, Context):
            missing.append(context.name)
            continue
        where = (context.experiment.name, context.profile)
        rows += [(*where, one.name, statement(one, v), v.word, v.numbers) for one, v in verdicts(context)]
        for each in judged(context):
            words = f"at a proven ε: {in_words(each)}" if each.survival else ""
            rows.append((*where, each.value.name, words, each.word, each.outcome.numbers))
    columns = ["experiment", "profile", "name", "text", "verdict", "numbers"]
    return Scorecard(pd.DataFrame(rows, columns=columns), missing)
