"""Adding a checked submission to a results folder, where the report finds it, with its provenance."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import msgspec

from dpbench import files
from dpbench.errors import UserError
from dpbench.leaderboard.submitted import FOLDER
from dpbench.run.results import RUNS, Store
from dpbench.submitting import checking
from dpbench.submitting.making import EXPERIMENT


def merge(path: str | os.PathLike[str], results: str | os.PathLike[str], *, replace: bool = False) -> Path:
    """Check an archive and add it under `results/PROFILE/tracks/submissions/METHOD`; the folder.

    UserError for one that is not sound, or a method that is there already (unless `replace`).
    """
    report = checking.check(path)
    if not report.sound:
        told = "; ".join(checking.lines(report.problems, 3))
        raise UserError(f"{path} is not merged: {told}; dpbench submit --check shows all")
    submission = report.submission
    home = Store(results, submission.manifest.profile, EXPERIMENT).folder
    target = home / FOLDER / submission.manifest.method
    if target.exists() and not replace:
        raise UserError(f"{target} is there already; --replace takes the new one")
    with files.staging(target) as staged:
        store = Store(staged.parent, staged.name, "rows")
        store.write([{name: getattr(row, name) for name in RUNS} for row in submission.rows], [])
        (store.folder / "runs").rename(staged / "runs")
        shutil.rmtree(store.folder)
        (staged / "method.py").write_bytes(submission.method)
        for name, part in (("manifest.json", submission.manifest), ("audit.json", submission.audit)):
            (staged / name).write_bytes(msgspec.json.format(msgspec.json.encode(part), indent=1) + b"\n")
        checked = {"archive_sha256": hashlib.sha256(Path(path).read_bytes()).hexdigest(), "checked": report.checked}
        (staged / "checked.json").write_bytes(msgspec.json.format(msgspec.json.encode(checked), indent=1) + b"\n")
        if target.exists():
            shutil.rmtree(target)
        os.rename(staged, target)
    return target
