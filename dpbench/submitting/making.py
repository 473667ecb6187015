"""Making a submission: the default track's cells of one method, its ledgers, its audit, its code."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import msgspec

from dpbench import algorithms, frames
from dpbench.archive import content
from dpbench.archive.content import worded
from dpbench.auditing.verbs import audit
from dpbench.errors import UserError, nearest, silent
from dpbench.leaderboard import entrants, tracks
from dpbench.run import outcomes, runner
from dpbench.run.bound import bind_jobs
from dpbench.run.environment import environment, machine
from dpbench.run.execute import code_version
from dpbench.run.jobs import Job, identity
from dpbench.run.results import Store
from dpbench.run.threads import one_thread
from dpbench.study.plan import plan
from dpbench.submitting.replaying import SUBMITTED

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
    archive: str | os.PathLike[str] | None = None,
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
        archive: where to write; None: NAME.dpbench.zip here.
        results, jobs, progress, notify: as of `run_algorithm`; rows are kept in `results/adhoc/submit-NAME`, so a
            killed call goes on.

    Raises:
        UserError: for a method that is not private, has a taken name, fits nothing, or has failed runs.
    """
    stated = {"author": _fitting("author", author), "licence": _fitting("licence", licence)}
    method, _ = algorithms.resolve(algorithm)
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
    audited = [_audit(one) for one in audit(algorithm, 1.0, runs=runs)]  # before the runs, which take longer
    runner.run(planned.runnable, store, workers=jobs, report=progress)
    by_key = {job.key: job for job in planned.runnable}
    rows = store.runs()
    rows = rows[rows["key"].isin(by_key)].sort_values(["problem", "epsilon", "seed"])
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
    target = Path(archive or f"{method.name}.dpbench.zip")
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
        found = tracks.expand(msgspec.structs.replace(cell, algorithms=[reference]))
        blocks += found
        if not found:
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


def _audit(found: Any) -> dict[str, Any]:
    """A `dpbench.auditing.Audit` as `content.AuditRecord`."""
    return {
        "epsilon": found.epsilon,
        "runs": found.runs,
        "passed": bool(found.passed),
        "defect": worded(found.defect),
        "tests": [
            {
                "test": worded(name),
                "bound": float(one.bound),
                "claim": float(one.claim),
                "unit": found.units[name],
            }
            for name, one in found.verdicts.items()
        ],
    }
