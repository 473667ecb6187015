"""An experiment in one file, for reviewers: its rows and traces, its code and grid, the environment; no raw data."""

from __future__ import annotations

import importlib.metadata
import os
import re
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from dpbench import experiments, frames
from dpbench.archive import content
from dpbench.archive.content import CODE, CODE_FILE, CODE_NAME, worded
from dpbench.errors import UserError
from dpbench.run.execute import code_version
from dpbench.run.job import identity
from dpbench.run.row import TRACES
from dpbench.run.store import Store
from dpbench.study.experiment import Experiment
from dpbench.study.plan import plan

if TYPE_CHECKING:
    import pandas


class Made(NamedTuple):
    """digest: what a paper can print; left_out: files of the package that are too large to be code."""

    path: Path
    digest: str
    rows: int
    planned: int
    left_out: list[str]


def archive(
    experiment: str,
    profile: str = "full",
    *,
    results: str | os.PathLike[str] = "results",
    out: str | os.PathLike[str] | None = None,
) -> Made:
    """Put an experiment into one file for reviewers: rows, traces, code, grid, environment and lock; no raw data.

    Args:
        experiment: by name.
        profile: whose rows.
        results: where the rows lie.
        out: the file to write; NAME-PROFILE.zip by default.

    Returns:
        The file, its digest (of its manifest, which has the digests of all members), how many rows it has of how many
        its grid asks for, and the files of the package that were left out as too large for code.

    Raises:
        UserError: for an unknown experiment or profile, one without rows, or a file that cannot be written.
    """
    one = experiments.get(experiment)
    store = Store(results, profile, one.name)
    jobs = plan(one.blocks(profile), store).by_key
    runs = store.runs()
    runs = runs[runs["key"].isin(jobs)].sort_values("key").assign(experiment=one.name)  # older rows: an older name
    if runs.empty:
        raise UserError(f"no rows in {store.folder}; run: dpbench run --experiment {one.name} --profile {profile}")
    rows = b"".join(content.line(identity(jobs[row["key"]]), row) for row in frames.mappings(runs))
    members = {"rows.jsonl": rows, "lock.txt": _lock().encode()}
    if traces := _traces(store.traces(runs["key"])):
        members["traces.jsonl"] = traces
    code, left_out = files_of(one)
    members |= {f"{CODE}{name}": text for name, text in {**code, **_metadata(one)}.items()}
    manifest = {
        "experiment": one.name,
        "title": worded(one.title),
        "profile": profile,
        "distribution": experiments.distribution(one.name),
        "code_version": worded(code_version()),
    }
    target = Path(out or f"{one.name}-{profile}.zip")
    digest = content.write(target, content.PAPER, manifest, members)
    return Made(target, digest, len(runs), len(jobs), left_out)


def _traces(points: pandas.DataFrame) -> bytes:
    """A line of JSON for each run, with its recorded iterations by column; what is not finite is null."""
    columns = [name for name in TRACES if name != "key"]
    lines = []
    for key, own in points.sort_values(["key", "iteration"]).groupby("key"):
        lines.append(msgspec.json.encode({"key": key} | {name: own[name].tolist() for name in columns}) + b"\n")
    return b"".join(lines)


def files_of(experiment: Experiment) -> tuple[dict[str, bytes], list[str]]:
    """The files of an experiment's package by their place on the import path, and those that are too large for code.

    Of a package outside dpbench all of it: the experiment may import the rest.
    """
    package = experiment.package if experiment.package.startswith("dpbench.") else experiment.package.partition(".")[0]
    root = Path(str(resources.files(package)))
    contents, left_out = {}, []
    for path in sorted(root.rglob("*")):
        name = "/".join([*package.split("."), *path.relative_to(root).parts])
        if path.is_symlink() or not path.is_file() or "__pycache__" in path.parts or path.suffix == ".pyc":
            continue
        if path.stat().st_size > CODE_FILE or not CODE_NAME.fullmatch(f"{CODE}{name}") or ".." in name:
            left_out.append(name)
        else:
            contents[name] = path.read_bytes()
    return contents, left_out


def _metadata(experiment: Experiment) -> dict[str, bytes]:
    """What makes the code's entry points be found where it lies: the metadata of its distribution."""
    distribution = experiments.distribution_of(experiment.name)
    if distribution is None:
        return {}
    name = re.sub(r"[^A-Za-z0-9.]+", "_", distribution.metadata["Name"])
    folder = f"{name}-{distribution.version}.dist-info"
    kept = {each: distribution.read_text(each) for each in ("METADATA", "entry_points.txt")}
    return {f"{folder}/{each}": text.encode() for each, text in kept.items() if text}


def _lock() -> str:
    """Every distribution that is installed here, a line each."""
    installed = {f"{one.metadata['Name']}=={one.version}" for one in importlib.metadata.distributions()}
    return "".join(f"{line}\n" for line in sorted(installed, key=str.lower))
