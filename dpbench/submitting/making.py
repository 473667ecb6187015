"""Making a submission, and adding a checked one to a results folder.

Making a submission: the default track's cells of one method, its ledgers, its audit, its code.

Adding a checked submission to a results folder, where the report finds it, with its provenance.
"""

from __future__ import annotations

import ast
import hashlib
import os
import shutil
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import msgspec

from dpbench import algorithms, files, frames
from dpbench.archive import content
from dpbench.archive.content import Submission, read_submission, worded
from dpbench.auditing.functions import audit
from dpbench.errors import UserError, nearest, silent
from dpbench.leaderboard import entrants, shipped, tracks
from dpbench.leaderboard.submitted import FOLDER
from dpbench.run import outcomes, runner
from dpbench.run.bind import bind_jobs
from dpbench.run.execute import code_version, environment, machine, one_thread
from dpbench.run.job import Job, identity
from dpbench.run.store import Store
from dpbench.study.plan import plan
from dpbench.submitting import checking
from dpbench.submitting.replaying import SUBMITTED, ReceiverRuns, kept

if TYPE_CHECKING:
    from dpbench.run.runner import Progress


EXPERIMENT = "leaderboard"


def submit(
    algorithm: str,
    *,
    profile: str = "full",
    problems: Collection[str] = (),
    author: str = "",
    licence: str = "",
    runs: int | None = None,
    out: str | os.PathLike[str] | None = None,
    results: str | os.PathLike[str] = "results",
    jobs: int | None = None,
    progress: Callable[[Progress], None] = silent,
    notify: Callable[[str], None] = silent,
) -> Path:
    """Run the leaderboard's default track for one method, audit it at ε = 1, and write one archive; its path.

    Args:
        algorithm: "path/to/file.py:Class"; it runs at its `public_settings`, on every problem it fits.
        profile: "full", or "quick" for a rehearsal.
        problems: these alone, for a slow method; the archive says that the others were not run.
        author, licence: of the method, as tables show them; the licence as SPDX spells it.
        runs: of the audit, as of `audit`.
        out: the archive to write; None: NAME.dpbench.zip here.
        results, jobs, progress, notify: as of `run_algorithm`; rows are kept in `results/adhoc/submit-NAME`, so a
            killed call goes on.

    Raises:
        UserError: for a method that is not private, has a taken name, fits nothing, or has failed runs.
    """
    stated = {"author": _fitting("author", author), "licence": _fitting("licence", licence)}
    method, _ = algorithms.resolve(algorithm)
    # The receiver runs the one file of the archive, so what lies in an installed package cannot go into it.
    if ".py:" not in algorithm:
        raise UserError(f"algo: {algorithm}: a submission is one file with one class; give path/to/file.py:Class")
    if method.name in algorithms.names(plugins=False):
        raise UserError(f"algo: the name {method.name} is taken; give the class another `name`")
    if not method.private:
        raise UserError(f"algo: {method.name} is not private: the leaderboard has private methods alone")
    blocks, left_out = _blocks(algorithm, profile, problems)
    if not blocks:
        raise UserError(f"{method.name} fits no problem of the {profile} profile: {'; '.join(set(left_out.values()))}")
    store = Store(results, "adhoc", SUBMITTED + method.name)
    planned = plan(blocks, store)
    for problem, dataset in planned.missing_data.items():
        left_out[problem] = f"its data are not fetched (dpbench fetch {dataset})"
    for problem, why in left_out.items():
        notify(f"left out: {problem}: {why}")
    if not planned.runnable:
        raise UserError(f"{method.name}: no problem's data are fetched: {', '.join(sorted(left_out))}")
    # Before the runs, which take longer; beside the rows, as the archive has the verdicts of its releases.
    audited = [_audit(one) for one in audit(algorithm, 1.0, runs=runs, in_process=True)]
    runner.run(planned.runnable, store, workers=jobs, report=progress)
    by_key = {job.key: job for job in planned.runnable}
    rows = store.runs()
    # The folder may have rows of earlier code or other cells, which are not of this submission.
    rows = rows[rows["key"].isin(by_key)].sort_values(["problem", "epsilon", "seed"])
    # A failed run would score as the worst there is; its author should mend it before.
    if failed := sorted(set(rows[~outcomes.has_result(rows["status"])]["error"])):
        raise UserError(f"{method.name}: some runs failed, and are not submitted: {failed[0]}")
    notify("ledgers: the first seed of every cell again")
    path, class_name, source = _code(algorithm)
    members = {
        "rows.jsonl": b"".join(content.line(identity(by_key[row["key"]]), row) for row in frames.mappings(rows)),
        "ledgers.json": msgspec.json.encode([_ledger(job) for job in by_key.values() if job.seed == 0]),
        "audit.json": msgspec.json.encode(audited),
        "method.py": path.read_bytes(),
    }
    manifest = {
        "method": method.name,
        "title": method.title or method.name,
        "library": getattr(method, "library", ""),
        "class_name": class_name,
        "source": source,
        "profile": profile,
        "code_version": code_version(),
        "environment": worded(environment()),
        "hardware": worded(machine()),
        **stated,
        "left_out": {problem: worded(why) for problem, why in left_out.items()},
    }
    target = Path(out or f"{method.name}.dpbench.zip")
    content.write(target, content.SUBMISSION, manifest, members)
    return target


def _fitting(name: str, text: str) -> str:
    """A text that the manifest may hold; UserError for another."""
    kind = get_type_hints(content.SubmissionManifest, include_extras=True)[name]
    try:
        return str(msgspec.convert(text, kind))
    except msgspec.ValidationError:
        raise UserError(f"{name}: letters, digits and common marks, in a line; got {ascii(text)[:60]}") from None


def _blocks(reference: str, profile: str, wanted: Collection[str]) -> tuple[list[Any], dict[str, str]]:
    """The blocks of the method's cells on the problems `wanted` (all if empty), and problem → why it is not on it."""
    grid = tracks.grid()
    if profile not in grid:
        raise UserError(f"unknown profile {profile!r}: {nearest(profile, grid)}")
    blocks, left_out = [], {}
    cells = tracks.cells(profile, grid)
    known = sorted({cell.problems[0] for cell in cells})
    for problem in wanted:
        if problem not in known:
            raise UserError(f"problem: there is no {problem!r} on the {profile} board; {nearest(problem, known)}")
    for cell in cells:
        (problem,) = cell.problems
        if wanted and problem not in wanted:
            left_out[problem] = "not run"
            continue
        blocks_of = tracks.expand(msgspec.structs.replace(cell, algorithms=[reference]))
        blocks += blocks_of
        if not blocks_of:
            left_out[problem] = entrants.reason(problem, reference) or "its public settings are refused there"
    return blocks, left_out


def _code(reference: str) -> tuple[Path, str, str]:
    located, source = algorithms.reference(reference)
    path, _, class_name = located.rpartition(":")
    return Path(path), class_name, source


def _ledger(job: Job) -> dict[str, Any]:
    """Everything that the run of a job could have released; it is made again for that."""
    with one_thread():
        run = bind_jobs([job]).run()
    return {"key": job.key, "releases": content.releases(run.mechanisms.ledger.planned(0))}


def _audit(row: Any) -> dict[str, Any]:
    """A `dpbench.auditing.Audit` as `content.AuditRecord`."""
    return {
        "epsilon": row.epsilon,
        "runs": row.runs,
        "passed": bool(row.passed),
        "defect": worded(row.defect),
        "tests": [
            {
                "test": worded(name),
                "bound": float(one.bound),
                "claim": float(one.claim),
                "unit": row.units[name],
            }
            for name, one in row.verdicts.items()
        ],
    }


def merge(
    archive: str | os.PathLike[str],
    *,
    results: str | os.PathLike[str] = "results",
    replace: bool = False,
    rerun: bool = False,
    trusted: bool = False,
    seed: str | os.PathLike[str] | None = None,
    notify: Callable[[str], None] = silent,
) -> Path:
    """Check an archive of `submit` and add it under `results/PROFILE/leaderboard/submissions/METHOD`; that folder.

    Args:
        archive: the file.
        results: the folder of all results.
        replace: take the place of an earlier one.
        rerun, trusted, seed: as of `check_submission`; without `rerun` it is listed as "not re-run" and has no place.
        notify: gets a line on what is being done.

    Raises:
        UserError: for one that is not sound.
    """
    folder = add(archive, results, replace=replace, rerun=checking.rerun_of(seed, notify, trusted) if rerun else None)
    # A wheel has the board's rows inside; without them there is nothing to be placed among.
    shipped.lay_out(results, notify)
    return folder


def add(
    path: str | os.PathLike[str],
    results: str | os.PathLike[str],
    *,
    replace: bool = False,
    rerun: Callable[[Submission], ReceiverRuns] | None = None,
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
        # The author's own rows are kept for show only; places come from the receiver's runs.
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
        # Removed last, when the new one is whole on disk: a merge that fails before leaves the old one.
        if target.exists():
            shutil.rmtree(target)
        os.rename(staged, target)
    return target


def _refused(path: str | os.PathLike[str], submission: Submission, home: Path, target: Path, replace: bool) -> None:
    """UserError for code that is there under another name, and for a name that is there."""
    # One method under two names would take two places.
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
