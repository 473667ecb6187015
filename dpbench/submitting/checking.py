"""The receiver decides: a submitted method runs on private copies of the problems, and only those runs count.

Nothing that an archive says is believed, so nothing in it is compared; what is done is on docs/guides/joining.md.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import secrets
import tempfile
import unicodedata
from collections.abc import Callable, Collection
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from dpbench import algorithms, datasets
from dpbench.algorithms.base import Algorithm
from dpbench.algorithms.registry import SERVED
from dpbench.archive.content import Submission, SubmissionManifest, read_submission
from dpbench.errors import PrivacyError, UserError, in_words, nearest, silent
from dpbench.leaderboard import entrants, places, tracks
from dpbench.leaderboard.nulls import null_excess
from dpbench.leaderboard.places import AUTO, DEFAULT
from dpbench.leaderboard.stored import EXPERIMENT, FOLDER
from dpbench.problems import Problem, catalogue
from dpbench.run.bind import bind_jobs
from dpbench.run.execute import describe, fill_guarantee, one_thread
from dpbench.run.executors import pooled
from dpbench.run.job import Job
from dpbench.run.outcomes import RESULTS
from dpbench.run.row import Row
from dpbench.run.store import Store
from dpbench.serving import wire
from dpbench.serving.client import MechanismClient, PreparedMethod
from dpbench.serving.method import ServedMethod
from dpbench.serving.process import FILE, OPEN, MethodCode, ServedRun, Transcript, isolation, repeat
from dpbench.serving.sandbox import Limits
from dpbench.study.plan import plan
from dpbench.study.style import look
from dpbench.submitting import copies

TRUSTED = "foreign code, trusted, run by us"
COPYING = Limits(seconds=60, wall=120)  # of an earlier submission that is held against a new one, and may sleep there
KEPT = 1 << 30  # bytes of all transcripts
SUBMITTED = "submit-"  # what stands before a method's name in `experiment`


class Replicates(NamedTuple):
    """The runs on the private copy of a problem at one ε; null: the excess loss of w = 0 there; error: if any."""

    problem: str
    epsilon: float
    rows: list[Row]
    null: float
    evidence: ServedRun | None = None
    error: str = ""

    @property
    def score(self) -> float:
        """As of `places.score`."""
        done = [row.excess if row.status == "done" and row.excess is not None else np.inf for row in self.rows]
        return places.score(float(np.mean(done)), self.null)


@dataclass
class Report:
    """What a check found.

    problems: what is wrong, a line each; the check stops at the first. how: the way in which the method ran. left_out:
    problem → why it is not on it.
    """

    submission: Submission
    how: str
    problems: list[str] = field(default_factory=list)
    replicates: list[Replicates] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def sound(self) -> bool:
        return not self.problems

    @property
    def placed(self) -> bool:
        """Whether the board gives it a place: a method without a sandbox around it may have looked elsewhere."""
        return self.sound and self.how != OPEN


def check_submission(
    archive: str | os.PathLike[str] | Submission, *, profile: str = "full", problems: Collection[str] = (),
    trusted: bool = False, results: str | os.PathLike[str] = "results", jobs: int | None = None,
    notify: Callable[[str], None] = silent,
) -> Report:  # fmt: skip
    """Run what an archive of `submit` holds on private copies of the board's problems; what was found.

    Args:
        archive: the file, or the folder of a submission that was merged; or what was read of either.
        profile: "full", or "quick" for a rehearsal.
        problems: these alone, for a slow method; a problem that is left out scores as the worst there is.
        trusted: run it beside the rows of the copies: for another library's solver, which cannot be served, and whose
            code the receiver has read.
        results: the folder of all results, with the submissions whose names are taken.
        jobs: how many processes; all cores by default.
        notify: gets a line for each problem.

    Raises:
        UserError: where the archive cannot be read, or its method cannot be served.
    """
    submission = archive if isinstance(archive, Submission) else read_submission(archive)
    secret = secrets.token_bytes(32)  # after the archive was read, so that no method can know its copies
    manifest = submission.manifest
    report = Report(submission, TRUSTED if trusted else isolation())
    others = Store(results, profile, EXPERIMENT).folder / FOLDER
    if told := taken(manifest.method, manifest.title, others):
        report.problems.append(told)
        return report
    with tempfile.TemporaryDirectory(prefix="dpbench-submitted-") as home:
        file = Path(home) / FILE
        file.write_bytes(submission.method)
        reference = f"{'' if trusted else SERVED}{file}:{manifest.class_name}"
        method, _ = algorithms.resolve(reference)
        if told := _otherwise(method, manifest):
            report.problems.append(told)
            return report
        tasks = _tasks(reference, profile, problems, report.left_out)
        try:
            for ran in pooled(_run_problem, ((name, runs, secret, manifest) for name, runs in tasks.items()), jobs):
                report.replicates += ran
                report.problems += [one.error for one in ran if one.error][:1]
                lines = [one.error or f"score {places.two(one.score)} at ε = {one.epsilon:g}" for one in ran]
                notify(f"{ran[0].problem}: {'; '.join(lines)}")
                if sum(one.evidence.size for one in report.replicates if one.evidence) > KEPT:
                    report.problems.append(f"its transcripts have more than {KEPT:,} bytes, which are not kept")
                if report.problems:
                    return report
        except BrokenProcessPool:
            raise UserError(f"{manifest.method}: a process of the check died; try --jobs 1, or more memory") from None
    if not report.replicates:
        raise UserError(f"{manifest.method}: no problem to run it on: {'; '.join({*report.left_out.values()})}")
    first = min((one.evidence for one in report.replicates if one.evidence), key=lambda one: one.size, default=None)
    if first is not None and (known := _copied(first, manifest, others)):
        report.problems.append(f"it asks for and returns what {known} does: a copy under another name")
    return report


def taken(method: str, title: str, others: Path | None = None) -> str:
    """Why a method may not have this name and title; "" where it may. others: the folder of those submitted before."""
    names = [(name, look(name).label, f"{name} of this dpbench") for name in algorithms.names(plugins=False)]
    names += [(AUTO, DEFAULT, "the default of this dpbench")]
    for path in sorted(others.glob("*/manifest.json")) if others else ():
        told = json.loads(path.read_text(encoding="utf-8"))
        # One of its own name is an earlier version of it, which a merge replaces where that is asked for.
        names += [(told["method"], told["title"], "another submission")] if told["method"] != method else []
    for name, label, whose in names:
        # Titles as well as names: a table shows titles, so one in another's name would mislead its readers.
        for what, mine in (("name", method), ("title", title)):
            if _bare(mine) in (_bare(name), _bare(label)):
                return f"the {what} {mine} is that of {whose}; give the class another `{what}`"
    return ""


# Letters of Greek that look like ours, which titles may have, and digits that look like letters.
ALIKE = str.maketrans("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧαινορτυχ01Il", "ABEZHIKMNOPTYXaivoptuxoiii")


def _bare(name: str) -> str:
    """What is left of a name to the eye: no case, no width, no marks between letters, no other alphabet."""
    # NFKD first: letters of full width or in one glyph would pass for other names otherwise.
    folded = unicodedata.normalize("NFKD", name).translate(ALIKE).casefold()
    return "".join(letter for letter in folded if letter.isalnum())


def _tasks(reference: str, profile: str, wanted: Collection[str], left_out: dict[str, str]) -> dict[str, list[Job]]:
    """Problem → its runs, at the public rule, under seeds that nobody knew; why others are not among them."""
    grid = tracks.grid()
    if profile not in grid:
        raise UserError(f"unknown profile {profile!r}: {nearest(profile, grid)}")
    default = tracks.default_blocks(profile, grid)
    known = sorted({block.problems[0] for block in default})
    for problem in wanted:
        if problem not in known:
            raise UserError(f"problems: there is no {problem!r} on the {profile} board; {nearest(problem, known)}")
    tasks: dict[str, list[Job]] = {}
    for block in default:
        (problem,), data = block.problems, catalogue.recipe_of(block.problems[0]).dataset
        expanded = tracks.expand(msgspec.structs.replace(block, algorithms=[reference]))
        if wanted and problem not in wanted:
            left_out[problem] = "not run"
        elif not expanded:
            left_out[problem] = entrants.reason(problem, reference) or "its public settings are refused there"
        elif not datasets.available(data):
            left_out[problem] = f"its data are not fetched (dpbench fetch {data})"
        else:
            runs = [msgspec.structs.replace(job, seed=secrets.randbits(39)) for job in plan(expanded, None).jobs]
            tasks.setdefault(problem, []).extend(runs)
    return tasks


def _otherwise(method: Algorithm, manifest: SubmissionManifest) -> str:
    """By what the code calls itself otherwise than its manifest does; "" where they agree."""
    told = (method.name, method.title or method.name, getattr(method, "library", ""))
    differs = told != (manifest.method, manifest.title, manifest.library)
    by = f", by {told[2]}" if told[2] else ""
    return f"its code calls itself {told[0]} ({told[1]}{by}), its manifest otherwise" if differs else ""


def _run_problem(name: str, jobs: list[Job], secret: bytes, manifest: SubmissionManifest) -> list[Replicates]:
    """The runs of a problem on its private copy, by ε, up to the first that is wrong."""
    copy = copies.draw(name, secret)
    null = null_excess(copy)
    replicates: dict[float, Replicates] = {}
    for job in jobs:
        at_epsilon = replicates.setdefault(job.epsilon, Replicates(name, job.epsilon, [], null))
        where = f"{name} at ε = {job.epsilon:g}"
        try:
            method = algorithms.get(job.algorithm)
            # Asked anew in each process: rows go by what it says here.
            if told := _otherwise(method, manifest):
                raise PrivacyError(told)
            row, evidence = _run(job, copy)
            if row.status not in RESULTS:
                raise PrivacyError(row.error or str(row.status))
            if isinstance(method, ServedMethod) and not at_epsilon.rows:
                replicates[job.epsilon] = at_epsilon = at_epsilon._replace(evidence=evidence)
                if evidence and (differs := repeat(method.code, evidence)):
                    raise PrivacyError(f"it {differs}")
            at_epsilon.rows.append(row)
        except Exception as error:  # a stranger's code may fail in any way
            return [at_epsilon._replace(error=f"{where}: {in_words(error)}")]
    return list(replicates.values())


def _run(job: Job, copy: Problem) -> tuple[Row, ServedRun | None]:
    """One run on a private copy; its row, which no key of a public run may name."""
    with one_thread():
        bound = bind_jobs([job], lambda _: copy)
        run = bound.run()
    row = describe(job, bound.settings[0])
    row.key, row.experiment = secrets.token_hex(16), SUBMITTED + bound.algorithm.name
    row.delta, row.status, row.objective = bound.budgets[0].delta, run.status[0], float(run.objective[0])
    row.excess = float(run.objective[0] - copy.optimum().value)
    fill_guarantee(row, bound, run, 0)
    return row, run.evidence if isinstance(run.evidence, ServedRun) else None


class _Recorded(MechanismClient):
    """Replies as they were to a run before, as long as the same is asked for."""

    def __init__(self, transcript: Transcript) -> None:
        self._frames = iter(transcript)

    def ask(self, request: wire.Frame) -> Any:
        asked, reply = next(self._frames, (b"", b""))
        if not wire.alike(wire.encoded(request), asked):
            raise PrivacyError("it asks for something else")
        value = wire.decoded(reply, wire.Reply).value
        return value.array if isinstance(value, wire.SentArray) else value


def _copied(found: ServedRun, manifest: SubmissionManifest, others: Path) -> str:
    """The known method that asks for and returns the same on the replies that a run had; "" where there is none."""
    given = found.given
    assert given.start is not None
    # At the settings of this run, which a copy has under the same names, and at its own public ones.
    tried = (given.settings, None)
    names = [name for name in algorithms.names(plugins=False) if name not in tracks.excluded()]
    # A number beyond what a run may ask is a stranger's way to keep us calibrating for hours.
    small = all(_size(one) <= wire.MOST for one in (given.settings or {}).values())
    for name, settings in itertools.product(names, tried if small else (None,)):
        with contextlib.suppress(Exception):  # of one that asks for something else, or cannot be served
            known = PreparedMethod(msgspec.structs.replace(given, reference=name, settings=settings))
            W = known.run(_Recorded(found.transcript), given.start.array)
            if np.allclose(W, found.W, rtol=wire.ROUNDING, atol=wire.ROUNDING):
                return str(name)
    for file in sorted(others.glob("*/method.py")):
        told = json.loads((file.parent / "manifest.json").read_text(encoding="utf-8"))
        code = MethodCode(told["class_name"], file.read_bytes())
        for settings in tried if told["method"] != manifest.method else ():
            again = msgspec.structs.replace(given, reference=code.called, settings=settings)
            if not repeat(code, found._replace(given=again), COPYING, wire.alike):
                return str(told["method"])
    return ""


def _size(setting: Any) -> float:
    """The number that a setting is, or is read as where it is text, or one over it (of a rate); 0 for others."""
    with contextlib.suppress(TypeError, ValueError, ZeroDivisionError):
        return max(abs(float(setting)), 1 / abs(float(setting)))
    return 0.0
