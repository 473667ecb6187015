"""The reader's side of an experiment's archive: its digests and keys, and a sample of its runs, made again here.

A digest says that nothing changed since, not that the numbers are of runs: that is found by running. Runs are made
by what is installed here. Code of the archive runs in a sandbox alone, and only where that is asked for; then the
iterates alone count that come back, and losses and ε are computed here.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import tempfile
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dpbench import algorithms, datasets, experiments
from dpbench.archive import content, paper
from dpbench.archive.compared import ACCEPTABLE, as_far, row_differences, same, trace_differences
from dpbench.datasets.cache import pinned
from dpbench.errors import UserError, at_least, counted
from dpbench.problems import catalogue
from dpbench.run.execute import describe, execute
from dpbench.run.job import JSON, Job, Keys, job_of, seconds, work
from dpbench.run.outcomes import RESULTS
from dpbench.run.row import Row
from dpbench.run.store import Store
from dpbench.study.plan import plan

LONGEST = 1200.0  # seconds that one run may take by a rough estimate
SHOWN = 12
NUDGE = 1e-15  # of the start of a run that does not agree: rounding is of this size


@dataclass
class Verified:
    """What became of an archive.

    problems: what is wrong, a line each. unchecked: what could not be looked at, with why. checked: what was looked at.
    accepted: what the reader took on trust. again: how many runs were made again; seed: repeats their choice.
    rows: how many there are, of which code_versions of dpbench.
    """

    manifest: content.PaperManifest
    digest: str
    seed: int
    rows: int
    code_versions: list[str]
    problems: list[str] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    accepted: list[str] = field(default_factory=list)
    again: int = 0

    @property
    def outcome(self) -> str:
        """ "wrong", "not checked" or "holds": what could not be looked at does not hold."""
        return "wrong" if self.problems else "not checked" if self.unchecked else "holds"


class Stated(NamedTuple):
    """A row of the archive, what its key hashes, and its trace if it has one."""

    identity: dict[str, Any]
    row: Row
    trace: content.Traced | None = None

    def __str__(self) -> str:
        row = self.row
        return f"{row.algorithm} on {row.problem} at ε = {row.epsilon}, seed {row.seed} ({row.key[:8]})"

    @property
    def job(self) -> Job:
        """The job, as its identity says; UserError where it is of no method that is known here."""
        seed, timed = int(self.row.seed or 0), int(self.row.timed or 0)
        return job_of(self.identity, seed=seed, timed=timed, trace=self.trace is not None)


def verify(
    archive: str | os.PathLike[str],
    *,
    sample: int = 5,
    seed: int | None = None,
    accept: Collection[str] = (),
) -> Verified:
    """Check an archive that `dpbench.archive` made, and make a sample of its runs again.

    Args:
        archive: the file.
        sample: how many runs, at random among those that can be made here; one more where only others have a trace.
        seed: of the choice; None draws one, which the result has.
        accept: columns that are taken on trust, as no second run can confirm them: "seconds".

    Returns:
        Its `outcome` ("holds", "wrong" or "not checked"), what is wrong, what could not be checked, and the digest.

    Raises:
        UserError: for a file that is no archive, or that is not what its manifest was made for.
    """
    at_least("sample", sample, 0)
    if unknown := sorted({*accept} - {*ACCEPTABLE}):
        raise UserError(f"accept: {unknown[0]!r} is compared; what can be accepted: {', '.join(ACCEPTABLE)}")
    read = content.read_paper(archive)
    seed = secrets.randbits(32) if seed is None else seed
    versions = sorted({row.code_version or "unknown" for _, row in read.rows})
    result = Verified(read.manifest, read.digest, seed, len(read.rows), versions)
    result.checked.append(f"digests of {len(read.manifest.sha256)} members")
    rows = [Stated(told, row, read.traces.get(row.key)) for told, row in read.rows]
    wrong = [f"{one.row.key[:8]}: {why}" for one in rows for why in _of_its_key(one, read.manifest.experiment)]
    wrong += [*_seeds(rows), *_traces(read)]
    result.problems += wrong[:SHOWN]
    result.checked.append(f"keys and seeds of {counted(len(rows), 'row')}")
    if timed := sum(one.row.seconds is not None for one in rows):
        told = f"seconds of {counted(timed, 'timed run')}: another machine takes other times"
        if "seconds" in accept:
            result.accepted.append(told)
        else:
            result.unchecked.append(f"{told}; --accept seconds takes them on trust")
    _compare_grid(read, rows, result)
    if not result.problems:
        _sampled(rows, sample, result)
    return result


def _of_its_key(one: Stated, experiment: str) -> Iterator[str]:
    """What is wrong with a row's key, which says what the run was of."""
    told, row, trace = one
    try:
        key = Keys(told)(int(row.seed or 0), int(row.timed or 0))
        kept = row.settings or {}
        differs = [name for name in ("problem", "epsilon") if told[name] != getattr(row, name)]
        if not told.get("sweep"):  # a sweep's row has the settings of its best
            differs += [name for name, value in told["settings"].items() if name in kept and kept[name] != value]
        if not isinstance(told["delta"], str) and row.delta is not None and not same(told["delta"], row.delta):
            differs.append("delta")
        if told.get("relation") and row.relation != told["relation"]:
            differs.append("relation")
    except Exception:  # a stranger's JSON
        yield "its identity is none"
        return
    if key != row.key:
        yield "its key is not that of its settings: it draws other noise than the run that it stands for"
    elif differs:
        yield f"it says another {differs[0]} than its key stands for"
    if row.experiment != experiment:
        yield f"it is of the experiment {ascii(row.experiment)[:60]}"
    times = [] if trace is None else [each for each in trace.seconds if each is not None]
    if not row.timed and (row.seconds is not None or times):
        yield "it has seconds, of a run that was not timed"
    if row.timed and row.seconds is None and row.status in RESULTS:
        yield "it has no seconds, of a run that was timed"


def _seeds(rows: list[Stated]) -> Iterator[str]:
    """Seeds that were left out, as the best of many would stand for all, and rows of one run."""
    if twice := len(rows) - len({one.row.key for one in rows}):
        yield f"{counted(twice, 'row')} of a run that has another row"
    seeds_of = defaultdict(set)
    for told, row, _ in rows:
        seeds_of[json.dumps(told, sort_keys=True)].add(int(row.seed or 0))
    # Seeds count from 0, so that whoever dropped the bad ones leaves a gap; dropped last ones the grid's plan misses.
    gaps = sum(seeds != set(range(len(seeds))) for seeds in seeds_of.values())
    if gaps:
        yield f"{counted(gaps, 'setting')} without the first of their seeds: some are left out"


def _traces(archive: content.PaperArchive) -> Iterator[str]:
    """Traces of no row."""
    keys = {row.key for _, row in archive.rows}
    if orphans := len(archive.traces.keys() - keys):
        yield f"{counted(orphans, 'trace')} of a run that has no row"


def _compare_grid(archive: content.PaperArchive, rows: list[Stated], result: Verified) -> None:
    """Whether its code is that which is installed here, and every run that its grid asks for has a row, and no other.

    The grid is planned on the archive's own rows, as it was when they were run: some settings are the best of others.
    """
    name, profile = archive.manifest.experiment, archive.manifest.profile
    if name not in experiments.names():
        result.unchecked.append(f"its experiment {name} is not installed here; code in the archive is not run")
        return
    here, _ = paper.files_of(experiments.get(name))
    # The metadata let its entry points be found where the archive lies: `files_of` has none.
    there = {file: text for file, text in archive.code.items() if not file.partition("/")[0].endswith(".dist-info")}
    differs = sorted(file for file in here.keys() | there.keys() if here.get(file) != there.get(file))
    if differs:
        result.unchecked.append(f"the installed {name} is another version of it: {', '.join(differs[:3])} differ")
    else:
        result.checked.append(f"the code of {name} is that which is installed here")
    with tempfile.TemporaryDirectory(prefix="dpbench-verify-") as home:
        store = Store(home, profile, name)
        try:
            store.write([one.row for one in rows], [])
            planned = plan(experiments.get(name).blocks(profile), store)
        except Exception as error:  # a stranger's rows
            result.unchecked.append(f"its grid cannot be planned here on its rows ({type(error).__name__})")
            return
    asked, keys = planned.by_key, {one.row.key for one in rows}
    if missing := len(asked.keys() - keys):
        result.unchecked.append(f"{counted(missing, 'run')} of its grid without a row in it")
    if waiting := len(planned.waiting):
        result.unchecked.append(f"{counted(waiting, 'combination')} of its grid, for want of rows that are not in it")
    if other := len(keys - asked.keys()):
        result.unchecked.append(f"{counted(other, 'row')} of runs that its grid, as installed here, does not ask for")
    done = {one.row.key for one in rows if one.row.status in RESULTS}
    if untraced := sum(job.trace and key in done - archive.traces.keys() for key, job in asked.items()):
        result.unchecked.append(f"{counted(untraced, 'run')} of its grid without a trace in it")


def _sampled(rows: list[Stated], sample: int, result: Verified) -> None:
    """Compare all rows with what is known before their runs; make a sample of these again and compare it whole.

    What cannot be made again here is counted over all rows, not over those that the sample happens to draw.
    """
    reasons: Counter[str] = Counter()
    known: dict[str, Row | str] = {}  # of an identity, but for its seed
    able: list[Stated] = []
    for one in rows:
        like = JSON.encode([one.identity, one.row.timed, one.row.status in RESULTS]).decode()
        if like not in known:
            known[like] = _not_here(one) or _before(one)
        before = known[like]
        if one.row.status == "died":  # a process may live here
            before = "its process died, which another machine need not do"
        if isinstance(before, str):
            reasons[before] += 1
            continue
        able.append(one)
        unlike = [f"{one}: it says another {name} than its key stands for" for name in _unlike(one.row, before)]
        result.problems += unlike[:1]
    if result.problems:
        del result.problems[SHOWN:]
        return
    lacking = Counter[str]()
    rng, traced = random.Random(result.seed), [one for one in able if one.trace is not None]
    chosen = rng.sample(able, min(sample, len(able)))
    drawn = len(chosen)
    if chosen and traced and all(one.trace is None for one in chosen):
        chosen.append(rng.choice(traced))  # traces may be few, and figures are drawn from them alone
    for one in chosen:
        ((again,), points) = execute([one.job])
        result.again += 1
        differences = [*row_differences(one.row, again)]
        if one.trace is not None:
            differences += trace_differences(one.trace, points, again)
        wrong = {column: problem for column, problem in differences if problem}
        if _as_pinned(one.row, again):
            wrong.pop("data_sha256", None)
        if wrong and one.row.status in RESULTS:
            # Another processor rounds otherwise, and some methods magnify it: where the smallest change of the start
            # moves the result as far as the row differs, the difference is no sign of forgery, nor the row confirmed.
            ((nudged,), _) = execute([one.job], nudge=NUDGE)
            chaotic = {column for column in wrong if as_far(one.row, again, nudged, column)}
            reasons[f"chaotic: moved by {NUDGE:g} at its start, it differs as much as its row does"] += bool(chaotic)
            wrong = {column: problem for column, problem in wrong.items() if column not in chaotic}
        result.problems += [f"{one}: {problem}" for problem in wrong.values()][:1]
        lacking.update(column for column, problem in differences if not problem)
    result.unchecked += [f"{counted(count, 'run')}: {why}" for why, count in reasons.items() if count]
    result.unchecked += [
        f"{column}: {counted(count, 'row')} of the {result.again:,} made again do not have it; made today they do"
        for column, count in lacking.items()
    ]
    if not result.again:
        result.unchecked.append("no run was made again")
        return
    result.checked.append(
        f"{counted(result.again, 'run')} of {len(able):,} made again, chosen by the seed {result.seed}; if a tenth of "
        f"the rows were made up, such a sample would miss them with a probability of {0.9**drawn:.2g}"
    )


def _unlike(row: Row, before: Row) -> Iterator[str]:
    """The columns in which a row says another thing than is known before its run, by `before`: seen without a run."""
    for name in ("algorithm", "sweep", "planted", "accounting", "relation", "counts_public"):
        if not same(getattr(row, name), getattr(before, name)):
            yield name
    kept = row.settings or {}
    # A setting that is None here gets its value from the problem.
    for name, value in (before.settings or {}).items():
        if value is not None and name in kept and not same(kept[name], value):
            yield name
    if row.private and not before.private:
        yield "private"


def _as_pinned(stated: Row, again: Row) -> bool:
    """Whether a row is of the arrays that are pinned for its data set, which those here equal up to rounding.

    A data set that is drawn by linear algebra has other last digits on another processor; `load` has checked it here.
    """
    spec = datasets.describe(catalogue.recipe_of(str(stated.problem)).dataset)
    pin = pinned().get(spec.versioned)
    here = datasets.load(spec.name).sha256
    return pin is not None and (again.data_sha256 or "").replace(here, pin.sha256) == stated.data_sha256


def _not_here(one: Stated) -> str:
    """Why a run cannot be made by what is installed here; "" where it can."""
    name = str(one.identity["algorithm"])
    if one.identity.get("source") or ".py:" in name:  # a name may not make a file of the reader's run
        return "its method is in a file that the archive has not"
    try:
        algorithms.get(name)
    except UserError:
        return "its method is not installed here"
    return _no_problem(one)


def _before(one: Stated) -> Row | str:
    """What is known of a run of an installed method before it is made; in words, why it is not made again."""
    try:
        job = one.job
        if job.key != one.row.key:
            return "another version of its method, data or problem is installed here"
        if seconds(work(job), getattr(job.parsed(), "T", 0) or 0, 1) > LONGEST:
            return f"it would take more than {LONGEST / 60:.0f} minutes"
        row = describe(job, job.parsed())
        row.private = job.private
    except Exception as error:  # a stranger's JSON
        return f"it is no run that can be made here ({type(error).__name__})"
    return row


def _no_problem(one: Stated) -> str:
    name = str(one.row.problem)
    if datasets.is_own(name):  # of the reader's own data nobody else's archive has runs
        return f"{name} is of data of somebody's own"
    try:
        if not datasets.available(catalogue.recipe_of(name).dataset):
            return f"the data of {name} are not fetched"
    except UserError:
        return f"{name} is no problem of what is installed here"
    return ""
