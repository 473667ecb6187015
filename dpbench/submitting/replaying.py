"""The receiver decides: a method run anew on problems that nobody has seen.

The receiver decides: a submission's method run anew, where nobody knows the seeds or the problems beforehand.

In a sandbox, on its cells' public problems under seeds drawn now; and served, on private copies of them, by a process
that has no row of theirs. Of what comes back the iterates alone count: losses and ε are computed here.

Private problems: copies of public ones that nobody has seen, made from a secret seed.

A copy has a secret subset of the rows, in another order, some labels flipped, and another basis: a rotation, or where
the penalty is of single coordinates (l1) a permutation with signs. All of these keep ‖x‖₂ ≤ 1 and what the problem is
like; an optimum that was looked up for the public one is none of the copy's.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pandas as pd

from dpbench import algorithms, datasets
from dpbench.algorithms import rules
from dpbench.algorithms.base import make_settings
from dpbench.archive import harness
from dpbench.archive.content import ReleaseCount, Submission, composition_of
from dpbench.archive.harness import Task, Tasks, run_task
from dpbench.errors import NotAtHand, PrivacyError, UserError
from dpbench.leaderboard import tracks
from dpbench.leaderboard.places import CLIP, score
from dpbench.privacy.check import at_most
from dpbench.privacy.ledger import Relation
from dpbench.privacy.noise import stream
from dpbench.privacy.verify import spent
from dpbench.problems import Problem, build, catalogue
from dpbench.problems.optimum import NoOptimum
from dpbench.run.bind import bind, budget_of
from dpbench.run.execute import one_thread
from dpbench.run.job import delta_value
from dpbench.run.row import Row
from dpbench.serving import sandbox
from dpbench.serving.method import of as served
from dpbench.serving.process import MethodCode, repeat

ROWS = (0.6, 0.9)  # the share of the rows that a copy has
FLIPPED = (0.0, 0.03)  # of a binary target's labels
WIDEST = 600  # columns: a rotation of more takes minutes
SIZE = 32  # bytes of a seed


def seed_of(file: str | os.PathLike[str] | None) -> bytes:
    """The secret in `file`, which is made, readable by its owner alone, where there is none; None: a new one."""
    if file is None:
        return secrets.token_bytes(SIZE)
    path = Path(file)
    if not path.exists():
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as made:
            made.write(secrets.token_hex(SIZE) + "\n")
    try:
        secret = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except (OSError, ValueError):
        raise UserError(f"seed: {file} is no hexadecimal file; give a path where there is none yet") from None
    if len(secret) < SIZE:
        raise UserError(f"seed: {file} holds {len(secret)} bytes; a secret has {SIZE} at least")
    return secret


def copy(name: str, seed: bytes) -> Problem | None:
    """A private copy of the public problem `name`, by `seed`; None where it is sparse or has no optimum."""
    public = build(name)
    if public.is_sparse:
        return None
    # Keyed by the secret: nobody who lacks it can make the copy, and each problem has its own stream.
    digest = hashlib.blake2b(name.encode(), key=seed[:64], digest_size=32).digest()
    rng = np.random.Generator(np.random.PCG64DXSM(int.from_bytes(digest, "big")))
    n, d = public.n, public.d
    rows = rng.permutation(n)[: max(2, round(n * rng.uniform(*ROWS)))]
    X, y = np.asarray(public.X[rows], dtype=np.float64), np.array(public.y[rows], dtype=np.float64)
    if public.loss.binary:
        y = np.where(rng.random(len(y)) < rng.uniform(*FLIPPED), -y, y)
    # A rotation would change what l1 penalises; permutations with signs do not.
    if public.l1 or d > WIDEST:
        X = X[:, rng.permutation(d)] * rng.choice([-1.0, 1.0], size=d)
    else:
        q, r = np.linalg.qr(rng.standard_normal((d, d)))
        # QR alone is not uniform over rotations; the signs of R's diagonal make it so.
        X = X @ (q * np.sign(np.diag(r)))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]  # rounding alone
    made = Problem(X, y, loss=public.loss.name, l1=public.l1, l2=public.l2, row_bound=1.0)
    try:
        made.optimum()
    except NoOptimum:
        return None
    return made


def listing(seed: bytes, profile: str) -> list[dict[str, object]]:
    """What the seed makes of the board's problems that are fetched, a row per copy."""
    copies: list[dict[str, object]] = []
    for name in dict.fromkeys(cell.problems[0] for cell in tracks.cells(profile, tracks.grid())):
        if datasets.available(catalogue.recipe_of(name).dataset) and (made := copy(name, seed)):
            null = float(made.value(np.zeros((1, made.d)))[0]) - made.optimum().value
            copies.append({"copy of": name, "n": made.n, "d": made.d, "excess of w = 0": null})
    return copies


def board_secret(seed: str | os.PathLike[str], *, profile: str = "full") -> pd.DataFrame:
    """The private copies of the board's problems that the secret in the file `seed` makes; the file is made if missing.

    A row per copy of a problem whose data are fetched: problem, n and d of the copy, the excess loss of w = 0 there.
    """
    return pd.DataFrame(listing(seed_of(seed), profile))


COPIES = 6  # private problems, of the smallest public ones
REPLICATES = 8  # runs on each
LUCK = 4.0  # standard errors by which stated losses may be below replayed ones
GAP_ERRORS = 3.0  # the same of private and public scores, beside
MARGIN = 0.3  # decades, for what a copy with fewer rows does to a method beyond what it does to the default
AGREE = 1e-6  # relative, of one run's objective there and here
SECONDS = 3600


SUBMITTED = "submit-"  # what stands before the method's name in the column `experiment`
# The columns of a row that a check looks at, or that are words of its author's. What else an archive states of a run,
# as its accuracy, nobody has computed again: it is not kept.
KEPT = (
    "experiment", "problem", "algorithm", "epsilon", "delta", "seed", "settings", "objective", "excess", "status",
    "error", "epsilon_planned", "relation", "accounting", "private", "counts_public", "timed", "notes", "key",
    "code_version", "data_sha256", "environment",
)  # fmt: skip


def kept(record: Any, **changes: Any) -> Row:
    """What a results folder keeps of a row of an archive, with these columns changed."""
    return Row.read({name: getattr(record, name) for name in KEPT} | changes)


@dataclass
class ReceiverRuns:
    """The result of the receiver's runs.

    done: whether every cell was run again, and the private copies served: a place takes that. why: if not.
    problems: what differs from the archive. flags: what the board shows its readers. rows: of the runs made
    here. scores: (problem, public, private) scores. served: what was run without rows, in words.
    """

    done: bool = False
    why: str = ""
    problems: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    scores: list[tuple[str, float, float]] = field(default_factory=list)
    served: str = ""


class ReplayedCell(NamedTuple):
    """One (problem, ε) of the archive: its rows by seed, and its ledger."""

    rows: list[Any]
    releases: list[ReleaseCount]


@dataclass
class SandboxTask:
    """A task, the problem it is on, and what it is for: "cell" or "copy"."""

    task: Task
    problem: Problem
    what: str
    of: Any
    start: np.ndarray


def replay(
    submission: Submission,
    seed: bytes,
    *,
    trusted: bool = False,
    run: harness.Runs = harness.frames,
    notify: Callable[[str], None] = lambda _: None,
) -> ReceiverRuns:
    """Run a submission's method again: on all of its cells in the sandbox, and served on private copies.

    run: what runs the tasks in a folder; for tests. seed: of the private copies. trusted: whether the method gets their
    rows, as another library's solver has to: whoever asks for that has read its code.
    """
    if run is harness.frames and sandbox.at_hand() is None:
        return ReceiverRuns(why=f"not re-run: {sandbox.NONE}; install bubblewrap")
    cells = _cells(submission)
    away = sorted({at[0] for at in cells if not datasets.available(catalogue.recipe_of(at[0]).dataset)})
    if away:
        return ReceiverRuns(why=f"not re-run: data not fetched: {', '.join(away)}")
    try:
        planned, copies = list(_public(cells)), list(_private(cells, seed))
    except NotAtHand as error:
        return ReceiverRuns(why=f"not re-run: {error}")
    if not copies:
        return ReceiverRuns(why="not re-run: none of its problems has private copies")
    served_runs = REPLICATES * len(copies)
    notify(f"{len(planned)} tasks in the sandbox, under new seeds, and {served_runs} served runs on private copies")
    secrets.SystemRandom().shuffle(planned)
    result = ReceiverRuns()
    frames = {} if trusted else _serve(submission, copies)  # first: what cannot be served has no place, however it runs
    result.problems += [] if trusted else _whole(copies, frames)
    if not result.problems:
        result.served = f"{served_runs} runs without rows on private copies, within ε, and repeated"
        if trusted:
            result.served = f"{served_runs} runs on private copies; foreign code, trusted, run by us"
        planned += copies if trusted else []
        frames |= _run(submission, planned, run)
        result.problems += _whole(planned, frames)
    planned += [] if trusted else copies
    if not result.problems:
        _judge_cells(planned, frames, cells, result)
        _judge_copies(planned, frames, result)
    result.done = not result.problems
    return result


def _cells(submission: Submission) -> dict[tuple[str, float], ReplayedCell]:
    ledgers = {one.key: one.releases for one in submission.ledgers}
    rows_at: dict[tuple[str, float], list[Any]] = defaultdict(list)
    for row in sorted(submission.rows, key=lambda row: row.seed):
        rows_at[row.problem, row.epsilon].append(row)
    return {
        at: ReplayedCell(rows, next((ledgers[row.key] for row in rows if row.key in ledgers), []))
        for at, rows in rows_at.items()
    }


def _task(problem: Problem, name: str, keys: list[str], inits: list[str], **given: Any) -> tuple[Task, np.ndarray]:
    rule = catalogue.recipe_of(name).start
    start = np.stack([catalogue.draw(rule, problem.d, stream(key, "init")) for key in inits])
    task = Task(task=secrets.randbits(48), data=f"{secrets.token_hex(8)}.npz", loss=problem.loss.name, l1=problem.l1,
                l2=problem.l2, keys=keys, relation=rules.RELATION.value, **given)  # fmt: skip
    return task, start


def _tokens(count: int) -> list[str]:
    """Stream keys that were nobody's before."""
    return [secrets.token_hex(16) for _ in range(count)]


def _public(cells: dict[tuple[str, float], ReplayedCell]) -> Iterable[SandboxTask]:
    """Every cell: its first seed, which must come to the same, then as many seeds as it states that are new."""
    for (name, epsilon), cell in cells.items():
        first = cell.rows[0]
        fresh = _tokens(len(cell.rows))
        problem = build(name)
        task, start = _task(
            problem, name, [first.key, *fresh], [f"{name}/{first.seed}", *fresh], epsilon=epsilon, delta=first.delta,
            accounting=first.identity["accounting"],
        )  # fmt: skip
        yield SandboxTask(task, problem, "cell", (name, epsilon), start)


def _private(cells: dict[tuple[str, float], ReplayedCell], seed: bytes) -> Iterable[SandboxTask]:
    """Copies of the smallest problems, each at the middle of its ε."""
    names = sorted({name for name, _ in cells}, key=lambda name: build(name).n * build(name).d)
    made = 0
    for name in names:
        if made == COPIES or (problem := copy(name, seed)) is None:
            continue
        made += 1
        epsilons = sorted(e for at, e in cells if at == name)
        epsilon = epsilons[len(epsilons) // 2]
        row = cells[name, epsilon].rows[0]
        delta = 0.0 if row.delta == 0 else float(delta_value(rules.DELTA, problem.n))
        keys = _tokens(REPLICATES)
        task, start = _task(
            problem, name, keys, keys, epsilon=epsilon, delta=delta, accounting=row.identity["accounting"]
        )
        yield SandboxTask(task, problem, "copy", (name, epsilon), start)


def _serve(submission: Submission, copies: list[SandboxTask]) -> dict[int, harness.TaskResult]:
    """Every run on a private copy, by a process that has no row of it."""
    frames = {}
    for one in copies:
        try:
            frame = harness.TaskResult(one.task.task, W=_served(submission, one))
        except (UserError, PrivacyError) as error:
            frame = harness.TaskResult(one.task.task, error=str(error)[:300])
        frames[one.task.task] = frame
    return frames


def _served(submission: Submission, one: SandboxTask) -> bytes:
    """The iterates of a copy's runs; PrivacyError where one is refused, exceeds ε, or does not repeat."""
    method, task = served(MethodCode(submission.manifest.class_name, submission.method)), one.task
    budget = budget_of(method, one.problem.n, task.epsilon, task.delta, task.relation, task.accounting)
    settings = make_settings(method, method.public_settings(one.problem.n, one.problem.d, task.epsilon))
    iterates: list[np.ndarray] = []
    for key, start in zip(task.keys, one.start, strict=True):
        bound = bind(method, one.problem, [settings], [budget], start[None], [key])
        with one_thread():
            run = bound.run()
        if error := bound.guarantee(run).error:
            raise PrivacyError(error)
        if not iterates and (differs := repeat(method.code, *run.evidence)):
            raise PrivacyError(f"it {differs}")
        iterates.append(run.W[0])
    return np.stack(iterates).tobytes()


def _run(submission: Submission, planned: list[SandboxTask], run: harness.Runs) -> dict[int, harness.TaskResult]:
    with tempfile.TemporaryDirectory(prefix="dpbench-rerun-") as home:
        folder = Path(home) / "given"
        folder.mkdir()
        (folder / "method.py").write_bytes(submission.method)
        tasks = Tasks(submission.manifest.class_name, [one.task for one in planned])
        (folder / "tasks.json").write_bytes(msgspec.json.encode(tasks))
        for one in planned:
            X = one.problem.X
            parts = (
                {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}
                if one.problem.is_sparse
                else {"X": np.asarray(X)}
            )
            np.savez(folder / one.task.data, y=one.problem.y, start=one.start, **parts)
        return {frame.task: frame for frame in run(folder, sandbox.Limits(SECONDS, 2 * SECONDS))}


def _whole(planned: list[SandboxTask], frames: dict[int, harness.TaskResult]) -> list[str]:
    """What is missing of what was asked for."""
    missing = [one for one in planned if one.task.task not in frames]
    if missing:
        return [f"its code, run again, ended after {len(planned) - len(missing)} of {len(planned)} tasks"]
    wrong = []
    for one in planned:
        frame = frames[one.task.task]
        if frame.error:
            wrong.append(f"its code, run again on {_where(one)}: {ascii(frame.error)[1:-1][:160]}")
        elif len(frame.W) != one.start.size * 8:
            wrong.append(f"its code, run again on {_where(one)}: not as many iterates as runs")
    return wrong[:3]


def _where(one: SandboxTask) -> str:
    name, epsilon = one.of
    kind = {"cell": "", "copy": "a private copy of "}.get(one.what, "two neighbours like ")
    return f"{kind}{name} at ε = {epsilon:g}"


def _objectives(one: SandboxTask, frame: harness.TaskResult) -> np.ndarray:
    """(k,) objectives of the iterates that came back, computed here; infinite where one is no number."""
    W = np.frombuffer(frame.W).reshape(one.start.shape)
    # What the sandbox sends back is anybody's bytes: no number of it may break the judge.
    sane = np.isfinite(W).all(axis=1) & (np.abs(W).max(axis=1, initial=0.0) < 1e100)
    with np.errstate(all="ignore"):
        values = one.problem.value(np.where(sane[:, None], W, 0.0))
    return np.where(sane & np.isfinite(values), values, np.inf)


def _judge_cells(
    planned: list[SandboxTask],
    frames: dict[int, harness.TaskResult],
    cells: dict[tuple[str, float], ReplayedCell],
    result: ReceiverRuns,
) -> None:
    for one in planned:
        if one.what != "cell":
            continue
        frame, cell, where = frames[one.task.task], cells[one.of], _where(one)
        first, fresh = cell.rows[0], _objectives(one, frame)
        best = one.problem.optimum().value
        if json.loads(frame.settings) != first.identity.get("settings"):
            result.problems.append(f"{where}: its code runs at other settings than its rows")
        if frame.public != (first.counts_public or ""):
            said = f"{ascii(frame.public)[:80]}, its rows {ascii(first.counts_public)[:80]}"
            result.problems.append(f"{where}: its code says that it takes unpaid {said}")
        # The one run whose seed is public: the same code must come to the same loss.
        if not math.isclose(fresh[0], first.objective or math.inf, rel_tol=AGREE, abs_tol=1e-9):
            told = math.nan if first.objective is None else first.objective
            result.problems.append(f"{where}: its code gives F = {fresh[0]:.9g}, its row says {told:.9g}")
        result.problems += _ledger(where, frame, cell, first)
        excess = fresh[1:] - best
        stated = np.array([np.inf if row.excess is None else row.excess for row in cell.rows])
        if beats_replay(stated, excess):
            told = f"{stated.mean():.4g}, under new seeds {excess.mean():.4g}"
            result.problems.append(f"{where}: its rows' mean excess loss is {told}")
        for row, objective in zip(cell.rows, fresh[1:], strict=True):
            ended = bool(np.isfinite(objective))
            made = kept(row, settings=frame.settings)
            made.objective = float(objective) if ended else None
            made.excess = float(objective - best) if ended else None
            made.status = "done" if ended else "diverged"
            result.rows.append(made)


def _ledger(where: str, frame: harness.TaskResult, cell: ReplayedCell, row: Any) -> list[str]:
    """Whether the run made here planned to release what the archive's ledger has, and within ε."""
    try:
        here = composition_of(msgspec.convert(frame.releases, list[ReleaseCount]))
        there = composition_of(cell.releases)
        cost = spent(here, row.delta, Relation(row.relation)).epsilon
    except (UserError, PrivacyError, msgspec.ValidationError, ValueError, TypeError) as error:
        return [f"{where}: the ledger of its code, run again: {ascii(str(error))[1:160]}"]
    if not here or not at_most(cost, row.epsilon):
        return [f"{where}: its code's noise composes to ε = {cost:.6g}"]
    if [(e.label, e.count) for e in here] != [(e.label, e.count) for e in there]:
        return [f"{where}: its code, run again, releases other things than its ledger has"]
    if not math.isclose(cost, row.epsilon_planned, rel_tol=2e-3, abs_tol=1e-4 * row.epsilon):
        return [f"{where}: its code's noise composes to ε = {cost:.6g}, its rows say {row.epsilon_planned:.6g}"]
    return []


def beats_replay(stated: np.ndarray, replayed: np.ndarray) -> bool:
    """Whether stated losses are below those of a replay by more than luck: LUCK standard errors, and a tenth.

    >>> beats_replay(np.array([1.0, 1.1, 0.9]), np.array([2.0, 2.1, 1.9]))
    True
    >>> beats_replay(np.ones(3), np.array([1.0, 1.1, 0.9]))
    False
    """
    if not np.isfinite(stated).all():
        return False
    if not np.isfinite(replayed).all():
        return int(np.isinf(replayed).sum()) > 1  # one diverged run may be chance
    gap = replayed.mean() - stated.mean()
    # The replay's own spread: a submitter could widen that of the stated losses at will.
    spread = float(replayed.std(ddof=1)) if len(replayed) > 1 else 0.0
    standard_error = spread * math.sqrt(1 / len(replayed) + 1 / len(stated))
    return bool(gap > LUCK * standard_error and gap > 0.1 * abs(replayed.mean()))


def _judge_copies(planned: list[SandboxTask], frames: dict[int, harness.TaskResult], result: ReceiverRuns) -> None:
    """Whether the method is worse on copies that nobody has seen than on the problems, beyond what the default is."""
    by_cell = {one.of: one for one in planned if one.what == "cell"}
    gaps = []
    for one in planned:
        if one.what != "copy":
            continue
        there = by_cell[one.of]
        public = _score(there, _objectives(there, frames[there.task.task])[1:])
        private = _score(one, _objectives(one, frames[one.task.task]))
        result.scores.append((one.of[0], public, private))
        gaps.append(private - public - _expected(one, there))
    if gaps and worse_on_copies(np.array(gaps)):
        result.flags.append(
            f"on private copies it is {np.mean(gaps):.1f} decades worse than on the public problems, beyond the default"
        )


def _score(one: SandboxTask, objectives: np.ndarray) -> float:
    null = float(one.problem.value(np.zeros((1, one.problem.d)))[0]) - one.problem.optimum().value
    return score(float(np.mean(objectives)) - one.problem.optimum().value, null)


def _expected(copy: SandboxTask, public: SandboxTask) -> float:
    """What the change from the public problem to its copy does to the default method's score; 0 without one."""
    scores = []
    for one in (copy, public):
        try:
            name = rules.method(one.problem)
            frame = run_task(name, one.problem, one.start[:REPLICATES], _as(one.task, name))
        except UserError:
            return 0.0
        few = replace(one, start=one.start[:REPLICATES])
        scores.append(_score(few, _objectives(few, frame)))
    return scores[0] - scores[1]


def _as(task: Task, name: str) -> Task:
    """The task, for a method of this dpbench."""
    method, _ = algorithms.resolve(name)
    return msgspec.structs.replace(
        task, keys=task.keys[:REPLICATES], accounting=rules.accounting(method), settings=None,
        delta=0.0 if rules.delta(method) == 0 else (task.delta or 1e-6),
    )  # fmt: skip


def worse_on_copies(gaps: np.ndarray) -> bool:
    """Whether gaps of scores (decades, one per problem) are above MARGIN by more than chance.

    >>> [worse_on_copies(np.array(gaps)) for gaps in ([2.0, 2.5, 3.0], [0.1, -0.2, 0.3], [3.0])]
    [True, False, True]
    """
    error = float(np.std(gaps, ddof=1)) / math.sqrt(len(gaps)) if len(gaps) > 1 else CLIP / 10
    return bool(np.mean(gaps) > MARGIN + GAP_ERRORS * error)
