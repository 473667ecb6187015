"""From parquet to figures and tables. Nothing here runs a solver."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from dpbench import experiments
from dpbench.errors import UserError, nearest
from dpbench.experiments.base import Artefact, Experiment, GridEntry, select
from dpbench.jobs import Job
from dpbench.results import Store

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Context:
    """What an artefact or a claim is made from: the experiment's rows under one profile."""

    experiment: Experiment
    profile: str
    store: Store

    @cached_property
    def runs(self) -> pandas.DataFrame:
        return self.store.runs()

    def rows(self, artefact: str, **equal) -> pandas.DataFrame:
        """The rows that the artefact's own blocks of the grid ask for, further narrowed to `equal` columns."""
        return select(self._of_blocks(artefact), **equal)

    def traces(self, runs: pandas.DataFrame) -> pandas.DataFrame:
        """The traces of these runs, with the runs' columns beside them."""
        traces = self.store.traces(runs["key"])
        return traces.merge(runs.drop(columns=["excess", "seconds"]), on="key")

    def blocks(self, artefact: str) -> list[GridEntry]:
        return self.experiment.blocks(self.profile, artefact)

    def command(self, artefact: str) -> str:
        """The command that fills the artefact's gaps; "" for those of all."""
        part = f"/{artefact}" if artefact else ""
        return f"dpbench run --experiment {self.experiment.name}{part} --profile {self.profile}"

    def jobs(self, artefact: str) -> list[Job]:
        """The jobs that the artefact's blocks ask for; those with "best" settings as tuned on today's rows."""
        from dpbench.experiments.base import plan

        if artefact not in self._jobs:
            self._jobs[artefact] = plan(self.blocks(artefact), self.store).jobs
        return self._jobs[artefact]

    def unfinished(self, artefact: str) -> str:
        """One line on the runs of the artefact's grid that are not there, "" when none is missing."""
        jobs = self.jobs(artefact)
        missing = len({job.key for job in jobs} - set(self.runs["key"]))
        return (
            f"{missing:,} of the {len(jobs):,} runs of its grid are not there yet: {self.command(artefact)}"
            if missing
            else ""
        )

    @cached_property
    def _jobs(self) -> dict[str, list[Job]]:
        return {}

    def _of_blocks(self, artefact):
        import pandas as pd

        keys = {job.key for job in self.jobs(artefact)}
        frame = self.runs
        return frame[frame["key"].isin(keys)] if keys else pd.DataFrame(columns=frame.columns)


def contexts(
    experiment: Experiment, profile: str | None = None, results: str | os.PathLike = "results"
) -> Iterator[Context]:
    """A context for each profile of the experiment (or the one named) that has rows."""
    for each in [profile] if profile else list(experiment.grid()):
        experiment.blocks(each)  # an unknown profile is named before any work
        context = Context(experiment, each, Store(results, each, experiment.name))
        if not context.runs.empty:
            yield context


def build(
    reference: str | None = None,
    profile: str | None = None,
    *,
    results: str | os.PathLike = "results",
    figures: str | os.PathLike = "figures",
) -> Iterator[str]:
    """Rebuild artefacts, scorecards and the pages around them, and yield a line for each.

    reference: "experiment" or "experiment/artefact"; None for all. UserError when the selection has no results.
    """
    from dpbench.report import errata_pages, manifest, pages
    from dpbench.report.scorecard import artefacts

    folders = []
    for experiment, artefact in _selection(reference):
        for context in contexts(experiment, profile, results):
            folder = Path(figures) / context.profile / experiment.name
            folder.mkdir(parents=True, exist_ok=True)
            parts = [one for one in experiment.artefacts if artefact in ("", one.name)]
            entries = []
            for one in parts if artefact else [*parts, *artefacts(experiment)]:
                entries.append(_save(context, one, folder))
                gaps = f"  ({len(entries[-1]['gaps'])} gaps)" if entries[-1]["gaps"] else ""
                yield f"{folder / one.name}.*  {one.title}{gaps}"
            manifest.update(folder, context, entries)
            folders.append(folder.parent)
    for folder in dict.fromkeys(folders):
        yield f"{errata_pages.save(folder)}.*  {errata_pages.TITLE}"
        yield f"to read all of it, open {pages.write(folder, Path(results) / folder.name)}"
    if not folders:
        what = f" for {reference}" if reference else ""
        raise UserError(f"no results{what} in {results}; run: dpbench run --experiment NAME --profile quick")


def _save(context: Context, one: Artefact, folder: Path) -> dict:
    """Render one artefact and save it in every format; its entry in the manifest."""
    from dpbench.report import manifest
    from dpbench.report.style import figure_style

    own = one in context.experiment.artefacts
    with figure_style():
        output = one.render(context)
        unfinished = context.unfinished(one.name) if own else ""
        output.gaps += [unfinished] if unfinished else []
        files = output.save(folder / one.name, one.title)
    return manifest.entry(one.name, one.title, context.command(one.name if own else ""), output, files)


def check(
    reference: str | None = None, profile: str | None = None, *, results: str | os.PathLike = "results"
) -> Iterator[Context | Experiment]:
    """What `report --check` judges: a context per selected experiment and profile; the experiment where no rows are."""
    for experiment, _ in _selection(reference):
        found = list(contexts(experiment, profile, results))
        yield from found or [experiment]


def _selection(reference: str | None) -> list[tuple[Experiment, str]]:
    """(experiment, artefact or "") pairs; UserError for an unknown name."""
    if reference is None:
        return [(experiments.get(name), "") for name in experiments.NAMES]
    name, _, artefact = reference.partition("/")
    experiment = experiments.get(name)
    known = [one.name for one in experiment.artefacts]
    if artefact and artefact not in known:
        raise UserError(f"{name} has no artefact {artefact!r}: {nearest(artefact, known)}")
    return [(experiment, artefact)]
