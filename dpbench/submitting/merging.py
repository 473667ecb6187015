"""Adding a checked submission to a results folder, where the report finds it, with its provenance."""

from __future__ import annotations

import ast
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from dpbench import files
from dpbench.archive.content import Submission, read_submission
from dpbench.errors import UserError, silent
from dpbench.leaderboard import shipped
from dpbench.leaderboard.submitted import FOLDER
from dpbench.run.results import Store
from dpbench.submitting import checking
from dpbench.submitting.making import EXPERIMENT
from dpbench.submitting.replaying import Replay, kept


def merge(
    archive: str | os.PathLike[str],
    *,
    results: str | os.PathLike[str] = "results",
    replace: bool = False,
    rerun: bool = False,
    seed: str | os.PathLike[str] | None = None,
    notify: Callable[[str], None] = silent,
) -> Path:
    """Check an archive of `submit` and add it under `results/PROFILE/leaderboard/submissions/METHOD`; that folder.

    Args:
        archive: the file.
        results: the folder of all results.
        replace: take the place of an earlier one.
        rerun, seed: as of `check_submission`; without `rerun` it is listed as "not re-run" and has no place.
        notify: gets a line on what is being done.

    Raises:
        UserError: for one that is not sound.
    """
    folder = add(archive, results, replace=replace, rerun=checking.rerun_of(seed, notify) if rerun else None)
    shipped.lay_out(results, notify)
    return folder


def add(
    path: str | os.PathLike[str],
    results: str | os.PathLike[str],
    *,
    replace: bool = False,
    rerun: Callable[[Submission], Replay] | None = None,
) -> Path:
    """Check an archive and add it under `results/PROFILE/leaderboard/submissions/METHOD`; the folder.

    The rows that are added are those of the receiver's own runs where it was run again, else the archive's, which have
    no place. UserError for one that is not sound, or a method that is there already (unless `replace`).
    """
    submission = read_submission(path)
    home = Store(results, submission.manifest.profile, EXPERIMENT).folder
    target = home / FOLDER / submission.manifest.method
    _refused(path, submission, home, target, replace)  # before its runs, which take long
    report = checking.check(path, rerun=rerun)
    if not report.sound:
        told = "; ".join(checking.lines(report.problems, 3))
        raise UserError(f"{path} is not merged: {told}; dpbench submit --check shows all")
    with files.staging(target) as staged:
        store = Store(staged.parent, staged.name, "rows")
        stated = [kept(row) for row in submission.rows]
        store.write(report.replay.rows if report.placed and report.replay else stated, [])
        (store.folder / "runs").rename(staged / "runs")
        shutil.rmtree(store.folder)
        (staged / "method.py").write_bytes(submission.method)
        for name, part in (("manifest.json", submission.manifest), ("audit.json", submission.audit)):
            (staged / name).write_bytes(msgspec.json.format(msgspec.json.encode(part), indent=1) + b"\n")
        checked = {
            "archive_sha256": hashlib.sha256(Path(path).read_bytes()).hexdigest(),
            "code_sha256": code_hash(submission.method, submission.manifest.class_name),
            "checked": report.checked,
            "unchecked": report.unchecked,
            "placed": report.placed,
            "flags": report.replay.flags if report.replay else [],
            "scores": report.replay.scores if report.replay else [],
        }
        (staged / "checked.json").write_bytes(msgspec.json.format(msgspec.json.encode(checked), indent=1) + b"\n")
        if target.exists():
            shutil.rmtree(target)
        os.rename(staged, target)
    return target


def _refused(path: str | os.PathLike[str], submission: Submission, home: Path, target: Path, replace: bool) -> None:
    """UserError for code that is there under another name, and for a name that is there."""
    mine = code_hash(submission.method, submission.manifest.class_name)
    for other in home.glob(f"{FOLDER}/*/method.py"):
        named = msgspec.json.decode((other.parent / "manifest.json").read_bytes())["class_name"]
        if other.parent != target and code_hash(other.read_bytes(), named) == mine:
            raise UserError(
                f"{path} is not merged: its code is that of {other.parent.name}, but for names and comments"
            )
    if target.exists() and not replace:
        raise UserError(f"{target} is there already; --replace takes the new one")


def code_hash(source: bytes, class_name: str) -> str:
    """A hash of what a class and its file do: without comments, layout, names of classes and the values of strings.

    Two classes of one file differ.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return hashlib.sha256(source).hexdigest()
    chosen: list[ast.AST] = [tree]
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            chosen += [node] if node.name == class_name else []
            node.name = "C"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return hashlib.sha256("\n".join(map(ast.dump, chosen)).encode()).hexdigest()
