"""artefacts.json: what a folder of figures and tables holds, as data. The pages are made from it and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpbench import files, frames
from dpbench.problems import catalogue
from dpbench.reporting.scorecard import artefacts as judged
from dpbench.study.output import Figure, Table

if TYPE_CHECKING:
    from dpbench.study.context import Context

FILE = "artefacts.json"
JUDGED = SCORECARD, VALUES = "scorecard", "published_values"  # the artefacts whose lines the pages take apart
# A blank would read as none, where the column came after the rows.
RECORDED_LATER = "not recorded in these rows"


def entry(name: str, title: str, command: str, output: Figure | Table, files: list[Path]) -> dict[str, Any]:
    """One artefact: its words, a table's cells, and the files it was saved to."""
    described: dict[str, Any] = {
        "name": name,
        "title": title,
        "kind": "table" if isinstance(output, Table) else "figure",
        "caption": output.caption,
        "method": output.method,
        "gaps": output.gaps,
        "command": command,
        "files": [path.name for path in files],
    }
    if isinstance(output, Table):
        described["columns"] = [str(name) for name in output.frame.columns]
        described["rows"] = [[str(value) for value in row] for row in output.frame.to_numpy()]
        if name in JUDGED and output.data is not None:
            described["records"] = _plain(frames.mappings(output.data))
    return described


def _plain(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without NaN, which JSON does not have: a number that is not there is null."""
    return [{name: None if value != value else value for name, value in one.items()} for one in records]


def update(folder: Path, context: Context, entries: list[dict[str, Any]]) -> None:
    """Put `entries` into the folder's manifest, in the experiment's order; those of artefacts not built now stay."""
    path = folder / FILE
    before = read(path) if path.exists() else {"artefacts": []}
    # One artefact drawn anew leaves the others' words as their files are.
    known = {one["name"]: one for one in before["artefacts"]}
    known |= {one["name"]: one for one in entries}
    order = [one.name for one in (*context.experiment.artefacts, *judged(context.experiment))]
    manifest = about(context) | {"artefacts": [known[name] for name in order if name in known]}
    files.write(path, json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")


def records(manifest: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The lines of one of `JUDGED` as data; none where it was not built, or by an earlier version."""
    return next((one.get("records", []) for one in manifest["artefacts"] if one["name"] == name), [])


def read(path: Path) -> dict[str, Any]:
    """The manifest at `path`."""
    manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return manifest


def about(context: Context) -> dict[str, Any]:
    """The experiment and the environment of its rows, distinct values sorted: the same bytes from the same rows."""
    experiment, runs = context.experiment, context.runs
    data = runs.dropna(subset=["data_sha256"]).groupby("problem")["data_sha256"].unique()
    return {
        "experiment": experiment.name,
        "title": experiment.title,
        "short": experiment.short or experiment.name,
        "about": experiment.about,
        "citation": experiment.citation,
        "links": [list(one) for one in experiment.links],
        "profile": context.profile,
        "planned": [one.name for one in experiment.artefacts],
        "runs": len(runs),
        "statuses": {str(k): int(v) for k, v in sorted(runs["status"].value_counts().items())},
        "code_versions": _distinct(runs, "code_version"),
        "environments": _distinct(runs, "environment"),
        "checked_by": _distinct(runs, "checked_by"),
        "relations": _distinct(runs, "relation"),
        "data": [
            {"problem": problem, "dataset": catalogue.recipe_of(problem).dataset, "sha256": sorted(data[problem])}
            for problem in sorted(data.index)
        ],
        "published": experiment.published_text(),
    }


def _distinct(runs: Any, column: str) -> list[str]:
    values = sorted(set(runs[column].dropna()))
    unknown = column == "environment" and runs[column].isna().any()
    return [*values, RECORDED_LATER] if unknown else values
