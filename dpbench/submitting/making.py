"""A method put into an archive, and a checked one added to a results folder, where the report finds it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from dpbench import algorithms, files
from dpbench.archive import content
from dpbench.archive.content import worded
from dpbench.errors import UserError, silent
from dpbench.leaderboard import stored
from dpbench.leaderboard.stored import EXPERIMENT, FOLDER
from dpbench.run.execute import code_version, environment
from dpbench.run.store import Store
from dpbench.serving.process import FILE
from dpbench.submitting.checking import check_submission, taken


def submit(algorithm: str, *, author: str = "", licence: str = "", out: str | os.PathLike[str] | None = None) -> Path:
    """Put a method into one archive, its file and a manifest; the path. `check_submission` runs it.

    Args:
        algorithm: "path/to/file.py:Class"; the board runs it at its `public_settings`, on every problem it fits.
        author, licence: as tables show them, the licence as SPDX spells it. A method of its own has an author.
        out: the archive to write; None: NAME.dpbench.zip here.

    Raises:
        UserError: for a method that is not private or has no author, or whose name or title is taken.
    """
    # The receiver runs the one file of the archive, so what lies in an installed package cannot go into it.
    if ".py:" not in algorithm:
        raise UserError(f"algo: {algorithm}: a submission is one file with one class; give path/to/file.py:Class")
    method, _ = algorithms.resolve(algorithm)
    title = method.title or method.name
    if told := taken(method.name, title):
        raise UserError(f"algo: {told}")
    if not method.private:
        raise UserError(f"algo: {method.name} is not private: the leaderboard has private methods alone")
    path, _, class_name = algorithms.reference(algorithm)[0].rpartition(":")
    manifest = {
        "method": method.name, "title": title, "class_name": class_name, "library": getattr(method, "library", ""),
        "author": author, "licence": licence, "code_version": worded(code_version()),
    }  # fmt: skip
    target = Path(out or f"{method.name}.dpbench.zip")
    try:
        content.write(target, content.SUBMISSION, manifest, {FILE: Path(path).read_bytes()})
    except msgspec.ValidationError as error:
        told, _, field = str(error).rstrip("`").partition(" - at `$.")
        if field:
            told = f"{field}: letters, digits and common marks, in a line; got {ascii(manifest[field])[:60]}"
        raise UserError(told) from None
    return target


def merge(
    archive: str | os.PathLike[str], *, profile: str = "full", results: str | os.PathLike[str] = "results",
    replace: bool = False, trusted: bool = False, jobs: int | None = None, notify: Callable[[str], None] = silent,
) -> Path:  # fmt: skip
    """Check an archive of `submit` and add it under `results/PROFILE/leaderboard/submissions/METHOD`; that folder.

    The folder has the rows of the receiver's runs, a transcript per problem and ε, the method and what was checked.

    Args:
        archive: the file, or the folder of one that was merged.
        profile, trusted, results, jobs, notify: as of `check_submission`.
        replace: take the place of an earlier one.

    Raises:
        UserError: for one that is not sound.
    """
    submission = content.read_submission(archive)  # once: a file that changes meanwhile changes nothing
    method = submission.manifest.method
    target = Store(results, profile, EXPERIMENT).folder / FOLDER / method
    if target.exists() and not replace:
        raise UserError(f"{target} is there already; --replace takes the new one")
    report = check_submission(submission, profile=profile, trusted=trusted, results=results, jobs=jobs, notify=notify)
    if not report.sound:
        raise UserError(f"{archive} is not merged: {report.problems[0]}")
    checked = {
        "archive_sha256": submission.digest,
        "how": report.how,
        "placed": report.placed,
        "nulls": {one.problem: one.null for one in report.replicates},
        "left_out": {problem: worded(why) for problem, why in report.left_out.items()},
        "code_version": worded(code_version()),
        "environment": worded(environment()),
    }
    with files.staging(target) as staged:
        store = Store(staged.parent, staged.name, "rows")
        store.write([row for one in report.replicates for row in one.rows], [])
        (store.folder / "runs").rename(staged / "runs")
        shutil.rmtree(store.folder)
        (staged / FILE).write_bytes(submission.method)
        content.write_zip(
            staged / "transcripts.zip",
            {f"{one.problem}/{one.epsilon:g}": one.evidence.encoded for one in report.replicates if one.evidence},
        )
        for name, part in (("manifest.json", submission.manifest), ("checked.json", checked)):
            (staged / name).write_bytes(msgspec.json.format(msgspec.json.encode(part), indent=1) + b"\n")
        # Removed last, when the new one is whole on disk: a merge that fails before leaves the old one.
        if target.exists():
            shutil.rmtree(target)
        os.rename(staged, target)
    # A wheel has the board's rows inside; without them there is nothing to be placed among.
    stored.lay_out(results, notify)
    return target
