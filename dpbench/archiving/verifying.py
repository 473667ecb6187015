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
import secrets
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
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
from dpbench.run.row import Row
from dpbench.study.plan import plan
from dpbench.submitting import sandbox
from dpbench.submitting.archive import ReleaseCount
from dpbench.submitting.harness import Task, Tasks
from dpbench.submitting.ledgers import composition_of

AGREE = 1e-6  # relative: what another summation order may change
SAME_EPSILON = 2e-3  # relative, of two computations of one ε: their grids
SECONDS = 3600
LONGEST = 1200.0  # seconds that one run may take by a rough estimate
SHOWN = 12
MEASURED = ("objective", "excess", "accuracy", "measured", "gradient_norm", "held_loss", "held_accuracy", "held_auc")
STATED = ("delta", "relation", "accounting", "counts_public", "T")  # what the guarantee is about


@dataclass
class Verified:
    """What became of an archive.

    problems: what is wrong, a line each; empty for one that holds. checked, unchecked: what was looked at, and what
    could not be, with why. again: how many runs were made again; seed: repeats their choice.
    """

    manifest: bundle.Manifest
    digest: str
    seed: int
    problems: list[str] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    again: int = 0

    @property
    def sound(self) -> bool:
        return not self.problems


class Stated(NamedTuple):
    """A row of the archive, and what its key hashes."""

    identity: dict[str, Any]
    row: Row

    def __str__(self) -> str:
        row = self.row
        return f"{row.algorithm} on {row.problem} at ε = {row.epsilon:g}, seed {row.seed} ({row.key[:8]})"

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
            relation=told.get("relation", ""),
            sweep=JSON.encode(told["sweep"]).decode() if told.get("sweep") else "",
            planted=told.get("planted", 1.0),
        )


def verify(
    archive: str | os.PathLike[str], *, sample: int = 5, seed: int | None = None, run_code: bool = False
) -> Verified:
    """Check an archive that `dpbench.archive` made, and make a sample of its runs again.

    Args:
        archive: the file.
        sample: how many runs, at random among those that can be made here.
        seed: of the choice; None draws one, which the result has.
        run_code: run methods that are not installed here from the archive's code, in a sandbox. Without it nothing in
            the archive is run.

    Returns:
        What is wrong, what was checked, what could not be, and the digest.

    Raises:
        UserError: for a file that is no archive, or that is not what its manifest was made for.
    """
    return verified(archive, sample=sample, seed=seed, run_code=run_code)


def verified(
    path: str | os.PathLike[str],
    *,
    sample: int = 5,
    seed: int | None = None,
    run_code: bool = False,
    run: sandbox.Runs = sandbox.frames,
) -> Verified:
    """`verify`; run: what runs the archive's own code."""
    at_least("sample", sample, 0)
    found = bundle.read(path)
    seed = secrets.randbits(32) if seed is None else seed
    result = Verified(found.manifest, found.digest, seed)
    result.checked.append(f"digests of {len(found.manifest.sha256)} members")
    rows = [Stated(told, row) for told, row in found.rows]
    wrong = [f"{one.row.key[:8]}: {why}" for one in rows for why in _of_its_key(one)] + list(_seeds(rows))
    result.problems += wrong[:SHOWN]
    result.checked.append(f"keys and seeds of {counted(len(rows), 'row')}")
    asked = _asked(found) if _compare_code(found, result) else set()
    missing = max(found.manifest.planned - len(rows), len(asked - {one.row.key for one in rows}))
    if missing > 0:
        result.unchecked.append(f"{counted(missing, 'run')} of its grid have no row in it")
    if result.sound:
        _sampled(found, rows, sample, run_code, run, result)
    return result


def _of_its_key(one: Stated) -> Iterator[str]:
    """What is wrong with a row's key, which says what the run was of."""
    told, row = one
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


def _seeds(rows: list[Stated]) -> Iterator[str]:
    """Seeds that were left out, as the best of many would stand for all, and rows of one run."""
    if twice := len(rows) - len({one.row.key for one in rows}):
        yield f"{counted(twice, 'row')} of a run that has another row"
    found = defaultdict(set)
    for told, row in rows:
        found[json.dumps(told, sort_keys=True)].add(int(row.seed or 0))
    gaps = sum(seeds != set(range(len(seeds))) for seeds in found.values())
    if gaps:
        yield f"{counted(gaps, 'setting')} without the first of their seeds: some are left out"


def _compare_code(found: bundle.Bundle, result: Verified) -> bool:
    """Whether its code is that which is installed here."""
    name = found.manifest.experiment
    if name not in experiments.names():
        result.unchecked.append(f"its experiment {name} is not installed here; code in the archive is not run")
        return False
    here, _ = bundle.files_of(experiments.get(name))
    there = {file: text for file, text in found.code.items() if not file.partition("/")[0].endswith(".dist-info")}
    differs = sorted(file for file in here.keys() | there.keys() if here.get(file) != there.get(file))
    if differs:
        result.unchecked.append(f"the installed {name} is another version of it: {', '.join(differs[:3])} differ")
    else:
        result.checked.append(f"the code of {name} is that which is installed here")
    return not differs


def _asked(found: bundle.Bundle) -> set[str]:
    """The keys of its grid as it is here, but for those that other runs decide: how many there are is its own word."""
    try:
        return plan(experiments.get(found.manifest.experiment).blocks(found.manifest.profile), None).keys
    except UserError:
        return set()


def _sampled(
    found: bundle.Bundle, rows: list[Stated], sample: int, run_code: bool, run: sandbox.Runs, result: Verified
) -> None:
    """Make a sample of the runs again, by what is installed or else in the sandbox, and compare."""
    choice = random.Random(result.seed)
    whole = [one for one in rows if one.row.status != "died" and not one.row.timed]  # a process may live here
    reasons: dict[str, int] = defaultdict(int)
    foreign: list[Stated] = []
    known: dict[tuple[str, str], str] = {}
    for one in choice.sample(whole, len(whole)):
        if result.again + len(foreign) == sample:
            break
        at = (str(one.identity["algorithm"]), str(one.row.problem))
        if at not in known:
            known[at] = _not_here(one)
        why = known[at] or _not_so(one)
        if why == ELSEWHERE and one.row.status not in RESULTS:
            why = UNJUDGED
        if why == ELSEWHERE and run_code and _public(one):
            foreign.append(one)
        elif why:
            reasons[why] += 1
        else:
            ((again,), _) = execute([one.job])
            result.again += 1
            result.problems += _differences(one, again)
    if foreign:
        _in_sandbox(found, foreign, run, result)
    died = sum(one.row.status == "died" for one in rows)
    reasons |= {"its process died, which another machine need not do": died} if died else {}
    result.unchecked += [f"{counted(count, 'run')}: {why}" for why, count in reasons.items()]
    result.checked.append(
        f"{counted(result.again, 'run')} of {len(whole):,} made again, chosen by the seed {result.seed}; if a tenth of "
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


def _differences(one: Stated, again: Row) -> Iterator[str]:
    stated = one.row
    if stated.algorithm != again.algorithm:
        yield f"{one}: its key stands for a run of {again.algorithm}"
        return
    if stated.status != again.status:
        yield f"{one}: its row says {stated.status}, run again it is {again.status}: {again.error or 'no error'}"
        return
    scale = abs(again.objective or 0.0)
    for name in MEASURED:
        there, here = getattr(stated, name), getattr(again, name)
        if (there is None) != (here is None) or (there is not None and not _close(there, here, scale)):
            yield f"{one}: its row says {name} = {_shown(there)}, run again it is {_shown(here)}"
            return
    for name in STATED:
        if not _same(there := getattr(stated, name), here := getattr(again, name)):
            yield f"{one}: its row says {name} = {_told(there)}, run again it is {_told(here)}"
    if not _close(stated.epsilon_planned or 0.0, again.epsilon_planned or 0.0, 0.0, SAME_EPSILON):
        yield f"{one}: its row plans ε = {_shown(stated.epsilon_planned)}, run again {_shown(again.epsilon_planned)}"
    if bool(stated.private) != bool(again.private):
        yield f"{one}: its row says that it keeps its ε: {stated.private}, run again: {again.private}"
    if again.values is not None:
        there, here = (
            np.asarray(each if each is not None else [], dtype=float) for each in (stated.values, again.values)
        )
        if there.shape != here.shape or not np.allclose(there, here, rtol=1e-4, atol=1e-6 * scale, equal_nan=True):
            yield f"{one}: the values of its row are not those of the run"


def _close(there: float, here: float, scale: float, relative: float = AGREE) -> bool:
    if not (math.isfinite(there) and math.isfinite(here)):
        return there == here or (math.isnan(there) and math.isnan(here))
    return abs(there - here) <= relative * max(abs(there), abs(here), scale) + 1e-12


def _same(there: Any, here: Any) -> bool:
    """Of what a row says of its guarantee: numbers up to rounding; what is not stated is nothing."""
    if isinstance(there, float) and isinstance(here, float):
        return math.isclose(there, here, rel_tol=1e-9)
    return (there or None) == (here or None)


def _shown(value: float | None) -> str:
    return "nothing" if value is None else f"{value:.9g}"


def _told(value: Any) -> str:
    return _shown(value) if value is None or isinstance(value, float) else ascii(value)[:80]


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
    if not _close(stated, objective, 0.0):
        yield f"{one}: its row says objective = {_shown(stated)}, its code run again gives {_shown(objective)}"
    try:
        if not _same(delta := delta_value(check_delta(one.identity["delta"]), problem.n), one.row.delta):
            yield f"{one}: its row says delta = {_shown(one.row.delta)}, its key stands for {_shown(delta)}"
        here = composition_of(msgspec.convert(frame.releases, list[ReleaseCount]))
        cost = spent(here, float(one.row.delta or 0), Relation(one.row.relation)).epsilon
    except (UserError, PrivacyError, msgspec.ValidationError, ValueError, TypeError) as error:
        yield f"{one}: what its code released: {ascii(str(error))[1:-1][:160]}"
        return
    if one.row.private and not _close(cost, one.row.epsilon_planned or 0.0, 0.0, SAME_EPSILON):
        yield f"{one}: its row plans ε = {_shown(one.row.epsilon_planned)}, its code's noise composes to {cost:.6g}"
