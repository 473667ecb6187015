"""One batch of jobs, from streams to checked rows: where the runner and the Python API both end.

Linear algebra has one thread, so that the last bits of a run do not depend on the machine's cores but by how many runs
advance together, which `--jobs` decides (5e-16 of an objective). A row says by which interpreter, libraries and machine
it was made. Rows do not hold their ledgers: `planned` works out anew what a row's run could release.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import platform
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import lru_cache
from importlib import metadata
from importlib.util import find_spec
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from traceback import format_exception
from typing import Any

import msgspec
import numpy as np
from threadpoolctl import ThreadpoolController

from dpbench import algorithms, datasets
from dpbench.algorithms import registry
from dpbench.algorithms.base import BaseSettings, RunResult
from dpbench.datasets import cache
from dpbench.errors import Defect, UserError, WorkerDied, in_words
from dpbench.privacy.noise import stream
from dpbench.problems import Problem, build
from dpbench.problems.optimum import NoOptimum, Optimum
from dpbench.problems.scores import held_out_scores
from dpbench.run import outcomes
from dpbench.run.bind import BatchRun, BoundRun, ObjectiveTrace, bind_jobs, own_columns
from dpbench.run.job import Job
from dpbench.run.row import BUILT_IN, RUNS, Point, Row
from dpbench.serving.method import ServedMethod
from dpbench.serving.process import isolation
from dpbench.version import DISTRIBUTION, __version__


@functools.cache
def environment() -> str:
    """One line, e.g. "Python 3.11.7, numpy 2.4.1, scipy 1.17.1; Linux x86_64; AMD EPYC 7B13, 2 CPUs"."""
    # numba changes the last digits, so rows say whether it was there.
    names = ["numpy", "scipy", "dp-accounting"] + ["numba"] * (find_spec("numba") is not None)
    libraries = ", ".join(f"{name} {metadata.version(name)}" for name in names)
    system = f"{platform.system()} {platform.machine()}"
    return f"Python {platform.python_version()}, {libraries}; {system}; {_processor()}, {os.cpu_count()} CPUs"


def _processor() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or "processor not known"


def one_thread() -> AbstractContextManager[Any]:
    """Inside, the libraries that are loaded now take one thread each."""
    limit: AbstractContextManager[Any] = _libraries(len(sys.modules)).limit(limits=1)
    return limit


@lru_cache(maxsize=1)
def _libraries(modules: int) -> ThreadpoolController:
    """Those loaded with so many modules: to look for them takes longer than a small fit."""
    return ThreadpoolController()


# A timed run shorter than this is made twice, and the second is measured: the first pages in the data, solves for the
# noise scale (which is kept) and compiles loops. In a longer one these do not count.
REHEARSED = 10.0  # seconds
PATH = os.pathsep.join(filter(None, sys.path))  # as it is before any code that is not ours could change it


def execute(jobs: list[Job], nudge: float = 0.0) -> tuple[list[Row], list[Point]]:
    """Rows of `runs` and of `traces` for jobs of one group; failures become rows, never exceptions.

    nudge: what every coordinate of the start moves by, to see whether a run
    is chaotic.
    """
    with one_thread():
        try:
            return _sweep(jobs[0], nudge) if jobs[0].sweep else _execute(jobs, nudge)
        except (Exception, SystemExit) as error:  # a method that exits would end the command with its own code
            return [failed_row(job, error) for job in jobs], []


WORKER = 512 << 20  # bytes of address space: a worker that has loaded everything takes 390 MB


def room_for_worker() -> None:
    """MemoryError where a limit on this process (ulimit -v) leaves no room for another."""
    with contextlib.suppress(ImportError):  # not on every system
        import resource

        # OpenBLAS asks again, in a loop without an end, for memory that a limit keeps from it.
        if 0 <= resource.getrlimit(resource.RLIMIT_AS)[0] < WORKER:
            raise MemoryError("a worker process does not fit into the limit on this one")


class OtherProcess:
    """A process that computes the jobs it is sent, one call at a time, until this one ends."""

    _process: subprocess.Popen[bytes] | None = None
    _pipe: Connection

    def __init__(self) -> None:
        self._free = threading.Lock()
        atexit.register(self.end)

    def _start(self) -> None:
        room_for_worker()
        self._pipe, there = Pipe()
        command = f"from dpbench.run import execute; execute.answer({there.fileno()}, {os.getpid()})"
        with there:
            self._process = subprocess.Popen(
                [sys.executable, "-c", command], pass_fds=[there.fileno()], env={**os.environ, "PYTHONPATH": PATH}
            )

    def execute(self, jobs: list[Job]) -> tuple[list[Row], list[Point]]:
        """See `execute`; WorkerDied where the process ends before it has answered."""
        with self._free:
            try:
                if self._process is None:
                    self._start()
                self._pipe.send((jobs, str(cache.root())))
                rows: tuple[list[Row], list[Point]] = self._pipe.recv()
                return rows
            except (EOFError, OSError):
                raise WorkerDied(f"it ended with {self.end()}") from None
            except BaseException:
                self.end()  # its answer, if there is one, would be taken for that to the next question
                raise

    def end(self) -> int:
        """End it; the code that it ended with."""
        process, self._process = self._process, None
        if process is None:
            return 0
        self._pipe.close()
        try:
            return process.wait(1)  # it ends by itself, with a code of its own, where its pipe is closed
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()


OURS, THEIRS = OtherProcess(), OtherProcess()  # for dpbench's own code alone, and for other code


def answer(place: int, driver: int) -> None:
    """In a process of its own: compute what is asked for over the pipe `place`, until its other end is closed."""
    end_with(driver)
    process = os.getpid()
    with contextlib.suppress(EOFError, OSError), Connection(place) as pipe:
        while True:
            jobs, os.environ["DPBENCH_DATA"] = pipe.recv()
            try:
                made = execute(jobs)
            except BaseException as error:  # Ctrl-C is not heard here, so it is the method that raised
                made = [failed_row(job, error) for job in jobs], []
            if os.getpid() != process:  # a fork that the method made, which would answer a second time
                registry.EXIT(0)
            pipe.send(made)


@functools.cache
def end_with(driver: int) -> None:
    """End this process, a worker, soon after a driver that was killed.

    Ctrl-C is the driver's to answer: in a worker, between two batches, it was a traceback. In a group of its own a
    worker hears no terminal, and a method that signals its whole group, os.kill(0, 9), ends no more than its own run.
    A session of its own would also be scheduled by itself, whatever `nice` the driver has.
    """

    def watch() -> None:
        while os.getppid() == driver:
            time.sleep(1)
        registry.EXIT(1)

    if os.getpid() != driver:
        with contextlib.suppress(AttributeError, OSError):  # no such call on this system; it leads a session
            os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        threading.Thread(target=watch, daemon=True).start()


def _execute(jobs: list[Job], nudge: float) -> tuple[list[Row], list[Point]]:
    first, bound = jobs[0], bind_jobs(jobs)
    bound = replace(bound, start=bound.start + nudge) if nudge else bound
    run = bound.run(traced=first.trace)
    if first.timed and run.seconds < REHEARSED:
        run = bound.run(traced=first.trace)
    algorithm, problem, settings = bound.algorithm, bound.problem, bound.settings
    outcome = RunResult(run.W, run.columns, evidence=run.evidence)
    measured = algorithm.measure(problem, outcome, settings[0], [stream(job.stream_key, "measure") for job in jobs])
    run = run._replace(columns=run.columns | own_columns(algorithm, measured, len(jobs)))
    optimum = _optimum(problem)
    rows = _rows(jobs, bound, run, optimum)
    return rows, _trace_rows(jobs, run.trace, optimum)


def _sweep(job: Job, nudge: float) -> tuple[list[Row], list[Point]]:
    """The one row of a sweep: the excess losses of its members (infinite where one diverged), their worst ε."""
    members = job.members()
    problem, algorithm = build(job.problem), algorithms.get(job.algorithm)
    size = algorithm.batch_size(problem.n, problem.d)
    rows = [row for i in range(0, len(members), size) for row in _execute(members[i : i + size], nudge)[0]]
    worst = max(rows, key=lambda row: (row.status not in outcomes.RESULTS, row.epsilon_planned or 0.0))
    found = describe(job, job.parsed())
    for name in ("T", "delta", "relation", "accounting", "private", "epsilon_planned", "epsilon_realised",
                 "epsilon_accounted", "checked_by", "counts_public", "error", "data_sha256"):  # fmt: skip
        setattr(found, name, getattr(worst, name))
    done = (row.excess if row.status == "done" and row.excess is not None else np.inf for row in rows)
    found.values = [excess if np.isfinite(excess) else np.inf for excess in done]
    status = outcomes.worst([row.status or "defect" for row in rows])
    found.status = "done" if status in outcomes.RESULTS else status
    return [found], []


# Kept, failures too: a search that fails is long, and every batch of the problem would repeat it.
@functools.lru_cache(maxsize=32)
def _optimum(problem: Problem) -> Optimum | None:
    """None where there is none to high accuracy (nonconvex, separable data): excess is then left empty."""
    try:
        return problem.optimum() if problem.convex else None
    except NoOptimum:
        return None


def _support(problem: Problem, W: np.ndarray, optimum: Optimum | None) -> dict[str, np.ndarray]:
    """With l1: the non-zeros of each of W (k, d) that the optimum has too, and those that it has not."""
    if not problem.l1 or optimum is None:
        return {}
    found, true = W != 0, optimum.w != 0
    return {"support_correct": (found & true).sum(axis=1), "support_wrong": (found & ~true).sum(axis=1)}


def _held_out(job: Job, problem: Problem, W: np.ndarray, optimum: Optimum | None) -> dict[str, np.ndarray]:
    """Scores on the rows that the problem or its data set keeps apart, where it does."""
    held_out = problem.held_out or datasets.load(job.recipe.dataset).held_out
    if held_out is None:
        return {}
    reference = np.zeros(problem.d) if optimum is None else optimum.w
    with np.errstate(all="ignore"):
        return held_out_scores(problem.loss, *held_out, W, reference, problem.mean_label)


def _rows(jobs: list[Job], bound: BoundRun, run: BatchRun, optimum: Optimum | None) -> list[Row]:
    problem = bound.problem
    with np.errstate(all="ignore"):
        gradient_norm = np.linalg.norm(problem.gradient(run.W), axis=1)
        accuracy = problem.accuracy(run.W) if problem.loss.binary else None
    columns = run.columns | _support(problem, run.W, optimum) | _held_out(jobs[0], problem, run.W, optimum)
    rows = []
    for i, job in enumerate(jobs):
        given = {name: values[i] for name, values in columns.items() if not _blank(values[i])}
        plain = {name: msgspec.to_builtins(value, enc_hook=_plain) for name, value in given.items()}
        row = describe(job, bound.settings[i])
        for name in plain.keys() & RUNS.keys():
            setattr(row, name, plain[name])
        row.diagnostics = {name: value for name, value in plain.items() if name not in RUNS} or None
        row.T = run.T[i]
        row.delta = bound.budgets[i].delta
        row.objective = float(run.objective[i])
        row.excess = None if optimum is None else float(run.objective[i] - optimum.value)
        row.gradient_norm = float(gradient_norm[i])
        row.accuracy = None if accuracy is None else float(accuracy[i])
        row.seconds = run.seconds if job.timed else None
        row.status = run.status[i]
        row.data_sha256 = problem.data_hash
        fill_guarantee(row, bound, run, i)
        rows.append(row)
    return rows


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else float(value)


def _blank(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value)


def fill_guarantee(row: Row, bound: BoundRun, run: BatchRun, i: int) -> None:
    """Fill the privacy fields, which nothing else writes; a private run that fails its check is a defect."""
    budget, flaw, result = bound.budgets[i], bound.flaw(i), bound.guarantee(run, i)
    row.relation, row.accounting = budget.relation.value, budget.accounting
    row.private = bound.algorithm.private and not flaw
    row.error = run.errors[i] or flaw
    # The ledger of a planted run says what the noise should have been, not what it was.
    if bound.planted == 1:
        row.epsilon_planned, row.epsilon_realised = result.planned, result.realised
        row.epsilon_accounted, row.checked_by = result.accounted, result.checked_by
    if row.private and result.error:
        row.status, row.private, row.error = "defect", False, result.error


def describe(job: Job, settings: BaseSettings) -> Row:
    """What is known before a job has run."""
    values = msgspec.to_builtins(settings)
    full = {name: getattr(settings, name) for name in settings.__struct_fields__} | values
    algorithm = algorithms.get(job.algorithm)
    return Row(
        key=job.key,
        problem=job.problem,
        algorithm=algorithms.display_name(job.algorithm, settings),
        epsilon=job.epsilon,
        seed=job.seed,
        settings=full | job.axes,
        sweep=job.sweep or None,
        T=full.get("T"),
        timed=job.timed,
        planted=None if job.planted == 1 else job.planted,
        code_version=code_version(),
        environment=environment(),
        relation=job.neighbours.value,
        accounting=algorithm.accounting(job.accounting),
        counts_public=algorithm.public(settings),
        code=code_of(job, settings),
    )


def code_of(job: Job, settings: BaseSettings) -> str:
    """Where the method's code comes from, and whether it ran where the rows are."""
    if isinstance(algorithms.get(job.algorithm), ServedMethod):
        return isolation()
    foreign = algorithms.not_ours(job.algorithm, msgspec.structs.asdict(settings))
    return BUILT_IN if foreign is None else "foreign code, trusted"


def failed_row(job: Job, error: BaseException) -> Row:
    """The row of a job that raised: its description, and one line on why."""
    algorithm = algorithms.get(job.algorithm)
    told = isinstance(error, UserError | Defect | WorkerDied)
    line = in_words(error, "" if told else type(algorithm).run.__code__.co_filename)
    traceback = "" if told or not error.__traceback__ else "".join(format_exception(error))
    row = describe(job, job.parsed())
    row.delta = None if isinstance(job.delta, str) else job.delta
    row.status, row.error, row.traceback = outcomes.status_of(error), line, traceback
    row.private = algorithm.private and job.planted == 1
    return row


def _trace_rows(jobs: list[Job], trace: ObjectiveTrace | None, optimum: Optimum | None) -> list[Point]:
    if trace is None:
        return []
    reference = 0.0 if optimum is None else optimum.value
    return [
        Point(
            key=job.key,
            iteration=iteration,
            passes=float(passes[i]),
            seconds=seconds if job.timed else None,
            excess=float(values[i] - reference),
        )
        for i, job in enumerate(jobs)
        for iteration, passes, seconds, values in trace.points
        if not np.isnan(passes[i])
    ]


@functools.cache
def code_version() -> str:
    """Distribution and version, with the commit when it runs from a git checkout; in rows, not in their keys."""
    version = f"{DISTRIBUTION} {__version__}"
    root = Path(__file__).resolve().parent.parent.parent
    if not (root / ".git").exists():
        return version
    try:
        commit = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True, timeout=5
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        commit = ""
    return f"{version}+g{commit}" if commit else version
