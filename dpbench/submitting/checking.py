"""Checking a submission without running what is in it; and, when asked, running it again in a process of its own.

Found without the code: an archive or schema that is not as it should be, hashes, rows whose keys are not those of
their settings, seeds left out, ε above what was asked, ledgers that do not compose to the ε of their rows,
losses that are not F(w) - F*, an audit that failed. A loss that was made up, consistently, is found by running the code
alone: `rerun`.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpbench import algorithms, datasets
from dpbench.errors import NotAtHand, PrivacyError, UserError
from dpbench.leaderboard import tracks
from dpbench.policy import terms
from dpbench.privacy.check import within
from dpbench.privacy.relation import Relation
from dpbench.privacy.verify import spent
from dpbench.problems import build, catalogue
from dpbench.run import outcomes
from dpbench.run.jobs import delta_value, keys_of
from dpbench.submitting import archive
from dpbench.submitting.archive import Submission
from dpbench.submitting.ledgers import composition_of, replay

SAME = 2e-3  # relative, of two computations of one ε: their grids
SAMPLE = 4  # cells that are run again, at most


@dataclass
class Report:
    """What a check found. problems: one line each, empty for a sound submission; checked: what was looked at."""

    submission: Submission
    problems: list[str] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        return not self.problems

    @property
    def shown(self) -> list[str]:
        """The first of the problems, for a terminal."""
        return lines(self.problems)


def check(path: str | os.PathLike[str], *, rerun: bool = False) -> Report:
    """Check an archive; UserError where it cannot even be read. rerun: run its code, in a process of its own."""
    report = Report(archive.read(path))
    for name, test in CHECKS.items():
        report.problems += list(test(report.submission))
        report.checked.append(name)
    if rerun and report.sound:
        report.problems += _rerun(report.submission)
        report.checked.append(f"its code run again: {len(sample(report.submission))} cells")
    return report


def _name(s: Submission) -> Iterator[str]:
    if s.manifest.method in algorithms.names(plugins=False):
        yield f"method {s.manifest.method}: the name is taken by a method of this dpbench"
    if not s.manifest.method.replace("-", "").replace("_", "").isalnum() or len(s.manifest.method) > 60:
        yield f"method {s.manifest.method!r}: letters, digits, - and _ only, 60 at most"
    if s.manifest.profile not in tracks.grid():
        yield f"profile {s.manifest.profile!r} is none of the leaderboard's"
    if hashlib.blake2b(s.method, digest_size=8).hexdigest() != s.manifest.source:
        yield "method.py is not the code that the rows were made with (its hash is in their keys)"


def _keys(s: Submission) -> Iterator[str]:
    """A row's key is a hash of its settings: of those that it states, of this data, of the code in the archive."""
    if not s.rows:
        yield "rows.jsonl is empty"
    seen: set[str] = set()
    for i, row in enumerate(s.rows, 1):
        told = row.identity
        try:
            recipe = catalogue.recipe_of(row.problem or "")
            key = keys_of(told)(row.seed, row.timed or 0)
        except (UserError, TypeError, AttributeError) as error:
            yield f"row {i}: {error}"
            continue
        if key != row.key:
            yield f"row {i}: its key is not the hash of its settings and seed"
        stated = {"problem": row.problem, "epsilon": row.epsilon, "algorithm": s.manifest.method}
        stated |= {"data_version": recipe.spec.version, "source": s.manifest.source}
        stated |= {"relation": told.get("relation", row.relation)}
        for name, value in stated.items():
            if told.get(name, value if name == "relation" else None) != value:
                yield f"row {i}: {name} is {told.get(name)!r} in its key and {value!r} here"
        if row.algorithm != s.manifest.method or row.timed:
            yield f"row {i}: of {row.algorithm}, timed {row.timed}; a submission has untimed rows of its method alone"
        if not _settings_agree(told.get("settings"), row.settings):
            yield f"row {i}: settings are not those of its key"
        if row.key in seen:
            yield f"row {i}: its key is in the archive twice"
        seen.add(row.key or "")


def _settings_agree(identity: Any, shown: str | None) -> bool:
    try:
        full = json.loads(shown or "")
    except ValueError:
        return False
    return isinstance(identity, dict) and all(full.get(name) == value for name, value in identity.items())


def _cells(s: Submission) -> Iterator[str]:
    """All seeds of every cell, of the profile's problems and ε, at one setting."""
    asked = {
        (cell.problems[0], cell.epsilon[0]): cell.seeds for cell in tracks.cells(s.manifest.profile, tracks.grid())
    }
    found: dict[tuple[Any, Any], list[Any]] = defaultdict(list)
    for row in s.rows:
        found[row.problem, row.epsilon].append(row)
    for at, rows in found.items():
        where = f"{at[0]} at ε = {at[1]}"
        if at not in asked:
            yield f"{where} is no cell of the {s.manifest.profile} profile"
        elif sorted(row.seed for row in rows) != list(range(asked[at])):
            yield f"{where}: has not all of the seeds 0 to {asked[at] - 1}, each once"
        if len({row.settings for row in rows}) > 1:
            yield f"{where}: several settings; the default track has one"
    for problem, epsilon in asked:
        if (problem, epsilon) not in found and problem not in s.manifest.left_out:
            yield f"{problem} at ε = {epsilon:g}: no rows, and no reason in the manifest"


def _guarantees(s: Submission) -> Iterator[str]:
    for i, row in enumerate(s.rows, 1):
        if row.status not in outcomes.RESULTS or not row.private:
            yield f"row {i}: {row.status}, private: {row.private}"
        used = row.epsilon_planned
        if used is None or not within(used, row.epsilon):
            yield f"row {i}: spends ε = {used}, more than the {row.epsilon} asked for"
        if row.relation != terms.RELATION.value:
            yield f"row {i}: {row.relation} neighbours; the leaderboard's are {terms.RELATION.value}"
        size = tracks.size(row.problem)[0]
        if row.delta not in (0.0, delta_value(terms.DELTA, size)):
            yield f"row {i}: δ = {row.delta}; the leaderboard's is n⁻² (or 0 for pure DP)"


def _ledgers(s: Submission) -> Iterator[str]:
    """ε composed anew, by the second route, from every ledger in the archive; one for each cell."""
    rows = {row.key: row for row in s.rows}
    for one in s.ledgers:
        row = rows.get(one.key)
        if row is None:
            yield f"ledger {one.key}: of no row"
            continue
        try:
            found = spent(composition_of(one.releases), row.delta, Relation(row.relation)).epsilon
        except (UserError, PrivacyError, ValueError, TypeError) as error:
            yield f"ledger of {row.problem} at ε = {row.epsilon:g}: {error}"
            continue
        if not one.releases or not within(found, row.epsilon):
            yield f"ledger of {row.problem} at ε = {row.epsilon:g}: its noise composes to ε = {found:.6g}"
        elif not math.isclose(found, row.epsilon_planned or 0.0, rel_tol=SAME, abs_tol=1e-4 * row.epsilon):
            told = f"its rows say ε = {row.epsilon_planned:.6g}, its ledger {found:.6g}"
            yield f"{row.problem} at ε = {row.epsilon:g}: {told}"
    covered = {(rows[one.key].problem, rows[one.key].epsilon) for one in s.ledgers if one.key in rows}
    for problem, epsilon in sorted({(row.problem, row.epsilon) for row in s.rows} - covered):
        yield f"{problem} at ε = {epsilon:g}: no ledger"


def _losses(s: Submission) -> Iterator[str]:
    """Where the data are at hand: the rows' data are these, and the excess loss is F(w) - F*, with F* ours."""
    for name in sorted({row.problem for row in s.rows}):
        if not datasets.available(catalogue.recipe_of(name).dataset):
            continue
        try:
            problem = build(name)
        except NotAtHand:
            continue
        best = problem.optimum()
        slack = 1e-7 * max(1.0, abs(best.value))
        for row in (row for row in s.rows if row.problem == name):
            if row.data_sha256 != problem.data_hash:
                yield f"{name}: made on other data (sha256 {str(row.data_sha256)[:12]}…)"
                break
            if row.status == "diverged" and row.excess is None:
                continue
            if row.objective is None or row.excess is None:
                yield f"{name} at ε = {row.epsilon:g}, seed {row.seed}: no loss"
            elif abs(row.objective - best.value - row.excess) > slack or row.excess < -slack:
                yield f"{name} at ε = {row.epsilon:g}, seed {row.seed}: excess {row.excess:.6g} is not F(w) - F*"


def _audit(s: Submission) -> Iterator[str]:
    if not s.audit:
        yield "audit.json is empty: dpbench submit audits the method"
    for one in s.audit:
        if not one.passed or one.defect or any(test.bound > test.claim for test in one.tests):
            yield f"its audit at ε = {one.epsilon:g} failed {one.defect}".strip()
        elif not one.tests:
            yield f"its audit at ε = {one.epsilon:g} has no test"


CHECKS = {
    "name, code and hashes": _name,
    "keys": _keys,
    "cells and seeds": _cells,
    "ε, δ and neighbours": _guarantees,
    "ledgers composed anew": _ledgers,
    "losses against our optimum": _losses,
    "audit": _audit,
}


# Running the code


def sample(submission: Submission) -> list[Any]:
    """The rows that are run again: the first seed of SAMPLE cells, those of the smallest problems at hand."""
    rows = [row for row in submission.rows if row.seed == 0]
    rows = [row for row in rows if datasets.available(catalogue.recipe_of(row.problem).dataset)]
    return sorted(rows, key=lambda row: (math.prod(tracks.size(row.problem)), row.epsilon))[:SAMPLE]


def _rerun(submission: Submission) -> list[str]:
    """In a folder and a process of its own, which is no sandbox: the code runs with the user's rights."""
    wanted = [
        {"identity": row.identity, "seed": row.seed, "objective": row.objective, "accounting": row.accounting}
        for row in sample(submission)
    ]
    if not wanted:
        return ["nothing to run again: no problem's data are at hand"]
    with tempfile.TemporaryDirectory(prefix="dpbench-rerun-") as folder:
        (Path(folder) / "method.py").write_bytes(submission.method)
        reference = f"{folder}/method.py:{submission.manifest.class_name}"
        told = json.dumps({"reference": reference, "rows": wanted})
        code = "import sys; from dpbench.submitting.checking import again; again(sys.stdin.read())"
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        done = subprocess.run([sys.executable, "-c", code], input=told, capture_output=True, text=True, cwd=folder,
                              timeout=3600, env=environ)  # fmt: skip
    if done.returncode:
        return [f"its code, run again: {(done.stderr.strip().splitlines() or ['died'])[-1]}"]
    return list(json.loads(done.stdout.splitlines()[-1]))


def again(told: str) -> None:
    """What the process does: print the lines of what differs, as JSON."""
    from dpbench.run.jobs import make_job

    given = json.loads(told)
    lines = []
    for row in given["rows"]:
        identity = row["identity"]
        job = make_job(
            problem=identity["problem"],
            algorithm=given["reference"],
            epsilon=identity["epsilon"],
            seed=row["seed"],
            settings=identity["settings"],
            accounting=identity["accounting"],
            delta=identity["delta"],
            relation=identity.get("relation"),
        )
        where = f"{identity['problem']} at ε = {identity['epsilon']:g}"
        if job.key != keys_of(identity)(row["seed"], 0):
            lines.append(f"{where}: its code makes another key")
        found = replay(job)
        if not math.isclose(found.objective, row["objective"] or math.nan, rel_tol=1e-6, abs_tol=1e-9):
            lines.append(f"{where}: its code gives F = {found.objective:.9g}, its row says {row['objective']:.9g}")
    print(json.dumps(lines))


def lines(problems: Iterable[str], most: int = 12) -> list[str]:
    """The first of many lines."""
    found = list(problems)
    return found if len(found) <= most else [*found[:most], f"and {len(found) - most:,} more"]
