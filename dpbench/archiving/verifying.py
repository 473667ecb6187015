"""The reader's side of an experiment's archive: its digests and keys, and a sample of its runs, made again here.

A digest says that nothing changed since, not that the numbers are of runs: that is found by running. Runs are made
by what is installed here. Code of the archive runs in a sandbox alone, and only where that is asked for; then the
iterates alone count that come back, and losses and ε are computed here.
"""

from __future__ import annotations

import json
import math
import os
import random
import re
import secrets
import tempfile
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from dpbench import algorithms, datasets, experiments
from dpbench.archiving import bundle
from dpbench.errors import NotAtHand, PrivacyError, UserError, at_least, counted
from dpbench.privacy.relation import Relation
from dpbench.privacy.streams import stream
from dpbench.privacy.verify import spent
from dpbench.problems import Problem, build, catalogue, starts
from dpbench.run import pace, runner
from dpbench.run.execute import execute
from dpbench.run.jobs import JSON, Job, Keys, check_delta, delta_value
from dpbench.run.outcomes import RESULTS
from dpbench.run.results import Store
from dpbench.run.row import Point, Row
from dpbench.study.plan import plan
from dpbench.submitting import sandbox
from dpbench.submitting.archive import ReleaseCount
from dpbench.submitting.harness import Task, Tasks
from dpbench.submitting.ledgers import composition_of

AGREE = 1e-6  # relative: what another summation order may change
SINGLE = 1e-4  # relative, of numbers that are kept in single precision
SAME_EPSILON = 2e-3  # relative, of two computations of one ε: their grids
SECONDS = 3600
LONGEST = 1200.0  # seconds that one run may take by a rough estimate
SHOWN = 12
# The columns of a row in which a second run is not compared, and why not. Every other column is compared, also one that
# comes tomorrow: this is a list of exceptions.
NOT_COMPARED = {
    "key": "it is the hash of the identity, which is made anew",
    "experiment": "it is that of the manifest",
    "seconds": "times are of the machine: a timed run is `not checked` unless they are accepted",
    "code_version": "of the author's dpbench, not of the reader's",
    "environment": "of the author's machine",
    "traceback": "it is in no archive",
}
ACCEPTABLE = ("seconds",)  # columns of NOT_COMPARED that figures and tables are drawn from
EPSILONS = ("epsilon_planned", "epsilon_realised", "epsilon_accounted")
# Differences of losses, whose rounding is that of the objective.
IN_LOSS = ("objective", "excess", "gradient_norm", "lambda_min", "measured", "measured_error", "bound", "diagnostics",
           "held_loss", "held_loss_se", "held_gain", "held_gain_se", "held_loss_gain", "held_loss_gain_se")  # fmt: skip
PLACE = re.compile(r" \([\w.]+\.py:\d+\)$")  # at the end of an error: the line moves from version to version


@dataclass
class Verified:
    """What became of an archive.

    problems: what is wrong, a line each. unchecked: what could not be looked at, with why. checked: what was looked at.
    accepted: what the reader took on trust. again: how many runs were made again; seed: repeats their choice.
    """

    manifest: bundle.Manifest
    digest: str
    seed: int
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
    trace: bundle.Traced | None = None

    def __str__(self) -> str:
        row = self.row
        return f"{row.algorithm} on {row.problem} at ε = {row.epsilon}, seed {row.seed} ({row.key[:8]})"

    @property
    def job(self) -> Job:
        """The job, as its identity says; UserError where it is of no method that is known here."""
        told = self.identity
        algorithms.get(told["algorithm"])
        return Job(
            problem=told["problem"],
            algorithm=told["algorithm"],
            epsilon=told["epsilon"],
            seed=int(self.row.seed or 0),
            settings=JSON.encode(told["settings"]).decode(),
            accounting=told["accounting"],
            delta=told["delta"],
            timed=int(self.row.timed or 0),
            trace=self.trace is not None,
            relation=told.get("relation", ""),
            sweep=JSON.encode(told["sweep"]).decode() if told.get("sweep") else "",
            planted=told.get("planted", 1.0),
        )


def verify(
    archive: str | os.PathLike[str],
    *,
    sample: int = 5,
    seed: int | None = None,
    run_code: bool = False,
    accept: Collection[str] = (),
) -> Verified:
    """Check an archive that `dpbench.archive` made, and make a sample of its runs again.

    Args:
        archive: the file.
        sample: how many runs, at random among those that can be made here.
        seed: of the choice; None draws one, which the result has.
        run_code: run methods that are not installed here from the archive's code, in a sandbox. Without it nothing in
            the archive is run.
        accept: columns that are taken on trust, as no second run can confirm them: "seconds".

    Returns:
        Its `outcome` ("holds", "wrong" or "not checked"), what is wrong, what could not be checked, and the digest.

    Raises:
        UserError: for a file that is no archive, or that is not what its manifest was made for.
    """
    return verified(archive, sample=sample, seed=seed, run_code=run_code, accept=accept)


def verified(
    path: str | os.PathLike[str],
    *,
    sample: int = 5,
    seed: int | None = None,
    run_code: bool = False,
    accept: Collection[str] = (),
    run: sandbox.Runs = sandbox.frames,
) -> Verified:
    """`verify`; run: what runs the archive's own code."""
    at_least("sample", sample, 0)
    if unknown := sorted({*accept} - {*ACCEPTABLE}):
        raise UserError(f"accept: {unknown[0]!r} is compared; what can be accepted: {', '.join(ACCEPTABLE)}")
    found = bundle.read(path)
    seed = secrets.randbits(32) if seed is None else seed
    result = Verified(found.manifest, found.digest, seed)
    result.checked.append(f"digests of {len(found.manifest.sha256)} members")
    rows = [Stated(told, row, found.traces.get(row.key)) for told, row in found.rows]
    wrong = [f"{one.row.key[:8]}: {why}" for one in rows for why in _of_its_key(one, found.manifest.experiment)]
    wrong += [*_seeds(rows), *_traces(found)]
    result.problems += wrong[:SHOWN]
    result.checked.append(f"keys and seeds of {counted(len(rows), 'row')}")
    if timed := sum(one.row.seconds is not None for one in rows):
        told = f"seconds of {counted(timed, 'timed run')}: another machine takes other times"
        if "seconds" in accept:
            result.accepted.append(told)
        else:
            result.unchecked.append(f"{told}; --accept seconds takes them on trust")
    _compare_grid(found, rows, result)
    if not result.problems:
        _sampled(found, rows, sample, run_code, run, result)
    return result


def _of_its_key(one: Stated, experiment: str) -> Iterator[str]:
    """What is wrong with a row's key, which says what the run was of."""
    told, row, trace = one
    try:
        key = Keys(told)(int(row.seed or 0), int(row.timed or 0))
        kept = row.settings or {}
        differs = [name for name in ("problem", "epsilon") if told[name] != getattr(row, name)]
        differs += [name for name, value in told["settings"].items() if name in kept and kept[name] != value]
        if not isinstance(told["delta"], str) and row.delta is not None and not _same(told["delta"], row.delta):
            differs.append("delta")
        if told.get("relation") and row.relation != told["relation"]:
            differs.append("relation")
    except Exception:  # a stranger's JSON
        yield "its identity is none"
        return
    if key != row.key:
        yield "its key is not that of its settings: it draws other noise than the run that it stands for"
    elif differs and not told.get("sweep"):
        yield f"it says another {differs[0]} than its key stands for"
    if row.experiment != experiment:
        yield f"it is of the experiment {ascii(row.experiment)[:60]}"
    times = [] if trace is None else [each for each in trace.seconds if each is not None]
    if not row.timed and (row.seconds is not None or times):
        yield "it has seconds, of a run that was not timed"


def _seeds(rows: list[Stated]) -> Iterator[str]:
    """Seeds that were left out, as the best of many would stand for all, and rows of one run."""
    if twice := len(rows) - len({one.row.key for one in rows}):
        yield f"{counted(twice, 'row')} of a run that has another row"
    found = defaultdict(set)
    for told, row, _ in rows:
        found[json.dumps(told, sort_keys=True)].add(int(row.seed or 0))
    gaps = sum(seeds != set(range(len(seeds))) for seeds in found.values())
    if gaps:
        yield f"{counted(gaps, 'setting')} without the first of their seeds: some are left out"


def _traces(found: bundle.Bundle) -> Iterator[str]:
    """Traces of no row, and those that are no list of iterations."""
    keys = {row.key for _, row in found.rows}
    if orphans := len(found.traces.keys() - keys):
        yield f"{counted(orphans, 'trace')} of a run that has no row"
    for key, one in found.traces.items():
        lengths = {len(one.iteration), len(one.passes), len(one.seconds), len(one.excess)}
        if len(lengths) > 1 or one.iteration != sorted({*one.iteration}):
            yield f"{key[:8]}: its trace is no list of iterations"


def _compare_grid(found: bundle.Bundle, rows: list[Stated], result: Verified) -> None:
    """Whether its code is that which is installed here, and every run that its grid asks for has a row, and no other.

    The grid is planned on the archive's own rows, as it was when they were run: some settings are the best of others.
    """
    name, profile = found.manifest.experiment, found.manifest.profile
    if name not in experiments.names():
        result.unchecked.append(f"its experiment {name} is not installed here; code in the archive is not run")
        return
    here, _ = bundle.files_of(experiments.get(name))
    there = {file: text for file, text in found.code.items() if not file.partition("/")[0].endswith(".dist-info")}
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
        result.unchecked.append(
            f"{counted(missing, 'run')} of its grid {'has' if missing == 1 else 'have'} no row in it"
        )
    if planned.waiting:
        result.unchecked.append(f"{counted(len(planned.waiting), 'cell')} of its grid wait for rows that are not in it")
    if other := len(keys - asked.keys()):
        result.unchecked.append(f"{counted(other, 'row')} of runs that its grid, as installed here, does not ask for")
    done = {one.row.key for one in rows if one.row.status in RESULTS}
    if untraced := sum(job.trace and key in done - found.traces.keys() for key, job in asked.items()):
        result.unchecked.append(f"{counted(untraced, 'run')} of its grid have no trace in it")


def _sampled(
    archive: bundle.Bundle, rows: list[Stated], sample: int, run_code: bool, run: sandbox.Runs, result: Verified
) -> None:
    """Make a sample of the runs again, by what is installed or else in the sandbox, and compare.

    What cannot be made again here is counted over all rows, not over those that the sample happens to draw.
    """
    reasons: Counter[str] = Counter()
    known: dict[str, str] = {}  # of an identity, but for its seed
    why_not: dict[str, str] = {}
    able: list[Stated] = []
    for one in rows:
        like = JSON.encode([one.identity, one.row.timed, one.row.status in RESULTS]).decode()
        if like not in known:
            known[like] = _not_here(one) or _not_so(one)
        why = known[like]
        if one.row.status == "died":  # a process may live here
            why = "its process died, which another machine need not do"
        elif why == ELSEWHERE and one.row.status not in RESULTS:
            why = UNJUDGED
        if not why or (why == ELSEWHERE and run_code and _public(one)):
            able.append(one)
            why_not[one.row.key] = why
        else:
            reasons[why] += 1
    foreign, lacking = [], Counter[str]()
    for one in random.Random(result.seed).sample(able, min(sample, len(able))):
        if why_not[one.row.key]:
            foreign.append(one)
            continue
        ((again,), points) = execute([one.job])
        result.again += 1
        found = [*_differences(one, again), *_trace_differences(one, points)]
        result.problems += [problem for _, problem in found if problem][:1]
        lacking.update(column for column, problem in found if not problem)
    if foreign:
        _in_sandbox(archive, foreign, run, result)
    result.unchecked += [f"{counted(count, 'run')}: {why}" for why, count in reasons.items()]
    result.unchecked += [
        f"{column}: {counted(count, 'row')} of the {result.again:,} made again do not have it; made today they do"
        for column, count in lacking.items()
    ]
    if not result.again:
        result.unchecked.append("no run was made again")
        return
    result.checked.append(
        f"{counted(result.again, 'run')} of {len(able):,} made again, chosen by the seed {result.seed}; if a tenth of "
        f"the rows were made up, such a sample would miss them with a probability of {0.9**result.again:.2g}"
    )


ELSEWHERE = "its method is not installed here; --run-code runs that of the archive, in a sandbox"
UNJUDGED = "it ended in an error, by a method that is not installed here"


def _not_here(one: Stated) -> str:
    """Why a run cannot be made by what is installed here; "" where it can."""
    name = str(one.identity["algorithm"])
    if one.identity.get("source") or ".py:" in name:  # a name may not make a file of the reader's run
        return "its method is in a file that the archive has not"
    try:
        algorithms.get(name)
    except UserError:
        return ELSEWHERE
    return _no_problem(one)


def _not_so(one: Stated) -> str:
    """Why this run of a method that is installed is not made again; "" where it is."""
    try:
        job = one.job
        if job.key != one.row.key:
            return "another version of its method, data or problem is installed here"
        if pace.seconds(runner.work(job), getattr(job.parsed(), "T", 0) or 0, 1) > LONGEST:
            return f"it would take more than {LONGEST / 60:.0f} minutes"
    except Exception as error:  # a stranger's JSON
        return f"it is no run that can be made here ({type(error).__name__})"
    return ""


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


def _public(one: Stated) -> bool:
    """Whether a run of code of the archive's own can be judged here: its problem is known, and it is no sweep."""
    return not _no_problem(one) and not one.identity.get("sweep")


def _differences(one: Stated, again: Row) -> Iterator[tuple[str, str]]:
    """(column, what is wrong) of every compared column that differs; "" for what the row does not have at all."""
    stated = one.row
    scale = abs(again.objective or 0.0)
    for name in again.__struct_fields__:
        if name in NOT_COMPARED:
            continue
        there, here = (_plain(name, getattr(row, name, None)) for row in (stated, again))
        relative = SAME_EPSILON if name in EPSILONS else SINGLE if name == "values" else AGREE
        if _same(there, here, scale if name in IN_LOSS else 0.0, relative):
            continue
        why = f": {again.error}" if name == "status" and again.error else ""
        told = f"{one}: its row says {name} = {_told(there)}, run again it is {_told(here)}{why}"
        yield name, "" if _lacks(there, here) else told


def _plain(name: str, value: Any) -> Any:
    """A column's value as JSON has it; an error without its line of code, which moves from version to version."""
    if name == "error":
        return PLACE.sub("", value or "")
    if isinstance(value, np.ndarray):
        return value.tolist()
    return msgspec.to_builtins(dict(value)) if isinstance(value, Mapping) else value


def _trace_differences(one: Stated, points: list[Point]) -> Iterator[tuple[str, str]]:
    """The same of the recorded iterations, but for their seconds."""
    if one.trace is None:
        return
    scale = max((abs(point.excess) for point in points if point.excess is not None), default=0.0)
    scale = scale if math.isfinite(scale) else 0.0
    scale = max(scale, abs(one.row.objective or 0.0))
    for name in one.trace.__struct_fields__:
        if name in NOT_COMPARED:
            continue
        there, here = getattr(one.trace, name), [getattr(point, name) for point in points]
        if not _same(there, here, scale if name == "excess" else 0.0, AGREE):
            yield f"trace: {name}", f"{one}: {name} of its trace is not that of the run"


def _same(there: Any, here: Any, scale: float = 0.0, relative: float = AGREE) -> bool:
    """Whether two values of a column agree: numbers up to rounding, all else exactly; an empty text is nothing.

    scale: the size of what a number is a difference of, 0 for none. An archive holds finite numbers alone, so what is
    not finite is nothing too.
    """
    if isinstance(here, Mapping) and isinstance(there, Mapping):
        return there.keys() == here.keys() and all(_same(there[name], here[name], scale, relative) for name in here)
    if isinstance(here, list | tuple) and isinstance(there, list | tuple):
        return len(there) == len(here) and all(map(_same, there, here, repeat(scale), repeat(relative)))
    there, here = (None if each == "" or _endless(each) else each for each in (there, here))
    if _number(here) and _number(there) and float in (type(there), type(here)):
        return bool(abs(there - here) <= relative * max(abs(there), abs(here), scale) + 1e-12 * bool(scale))
    return type(there) is type(here) and bool(there == here)


def _endless(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _lacks(there: Any, here: Any) -> bool:
    """Whether an older row has not got what one of today has; what both have agrees."""
    if isinstance(there, Mapping) and isinstance(here, Mapping):
        return there.keys() < here.keys() and all(_same(there[name], here[name]) for name in there)
    return there is None or there == ""


def _told(value: Any) -> str:
    return "nothing" if value is None else f"{value:.9g}" if isinstance(value, float) else ascii(value)[:80]


def _in_sandbox(found: bundle.Bundle, rows: list[Stated], run: sandbox.Runs, result: Verified) -> None:
    """Run methods of the archive's own code in the sandbox, and judge by the iterates that come back."""
    if run is sandbox.frames and sandbox.at_hand() is None:
        result.unchecked.append(f"{counted(len(rows), 'run')}: {sandbox.NONE}; install one")
        return
    planned: dict[int, tuple[Stated, Problem, np.ndarray]] = {}
    with tempfile.TemporaryDirectory(prefix="dpbench-verify-") as home:
        folder = Path(home) / "given"
        for name, content in found.code.items():
            path = folder / "code" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        tasks = []
        for number, one in enumerate(rows):
            try:
                problem = build(str(one.row.problem))
            except NotAtHand as error:
                result.unchecked.append(f"{one}: {error}")
                continue
            if problem.w2 or problem.row_bound_norm != "l2":
                result.unchecked.append(f"{one}: a problem with w2 or a bound on ‖x‖₁ is not handed to the sandbox")
                continue
            task, start = _task(number, one, problem, folder)
            tasks.append(task)
            planned[number] = one, problem, start
        (folder / "tasks.json").write_bytes(msgspec.json.encode(Tasks("", tasks)))
        frames = {frame.task: frame for frame in run(folder, sandbox.Limits(SECONDS, 2 * SECONDS))}
    for number, (one, problem, start) in planned.items():
        result.again += 1
        result.problems += _judged(one, problem, start, frames.get(number))
    told = "objective, δ and planned ε alone were computed again; install its package to compare the other columns"
    result.unchecked.append(f"{counted(len(planned), 'run')} of the archive's own methods: {told}")


def _task(number: int, one: Stated, problem: Problem, folder: Path) -> tuple[Task, np.ndarray]:
    """The run as a task of the harness, from the start and the stream that its key stands for."""
    row, told = one.row, one.identity
    start = starts.draw(
        catalogue.recipe_of(problem.name).start, problem.d, stream(f"{problem.name}/{row.seed}", "init")
    )
    start, data = np.asarray(start)[None], f"{number}.npz"
    X = problem.X
    parts = (
        {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}
        if problem.is_sparse
        else {"X": np.asarray(X)}
    )
    np.savez(folder / data, y=problem.y, start=start, **parts)
    task = Task(
        task=number, data=data, loss=problem.loss.name, l1=problem.l1, l2=problem.l2, keys=[row.key],
        epsilon=float(row.epsilon or 0), delta=float(row.delta or 0), accounting=told["accounting"],
        relation=str(row.relation), settings=dict(told["settings"]), algorithm=told["algorithm"],
        row_bound=None if math.isinf(problem.row_bound) else problem.row_bound,
    )  # fmt: skip
    return task, start


def _judged(one: Stated, problem: Problem, start: np.ndarray, frame: sandbox.Frame | None) -> Iterator[str]:
    if frame is None:
        yield f"{one}: its code, run again, ended before it"
        return
    if frame.error or len(frame.W) != start.size * 8:
        yield f"{one}: its code, run again: {ascii(frame.error)[1:-1][:160] or 'no iterates came back'}"
        return
    W = np.frombuffer(frame.W).reshape(start.shape)
    with np.errstate(all="ignore"):
        objective = float(problem.value(W)[0]) if np.isfinite(W).all() else math.inf
    stated = math.inf if one.row.objective is None else one.row.objective
    if not _same(stated, objective):
        yield f"{one}: its row says objective = {_told(stated)}, its code run again gives {_told(objective)}"
    try:
        if not _same(delta := delta_value(check_delta(one.identity["delta"]), problem.n), one.row.delta):
            yield f"{one}: its row says delta = {_told(one.row.delta)}, its key stands for {_told(delta)}"
        here = composition_of(msgspec.convert(frame.releases, list[ReleaseCount]))
        cost = spent(here, float(one.row.delta or 0), Relation(one.row.relation)).epsilon
    except (UserError, PrivacyError, msgspec.ValidationError, ValueError, TypeError) as error:
        yield f"{one}: what its code released: {ascii(str(error))[1:-1][:160]}"
        return
    if one.row.private and not _same(cost, one.row.epsilon_planned, 0.0, SAME_EPSILON):
        yield f"{one}: its row plans ε = {_told(one.row.epsilon_planned)}, its code's noise composes to {cost:.6g}"
