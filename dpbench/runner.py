"""From a list of jobs to rows in the store: group, batch, run in a process pool, survive what goes wrong."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import sys
import threading
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from threadpoolctl import threadpool_limits

from dpbench import algorithms, datasets
from dpbench.errors import UserError
from dpbench.execute import execute, failed_row
from dpbench.jobs import Job
from dpbench.problems import catalogue
from dpbench.results import Store

ATTEMPTS = 3  # of a batch whose worker died under it


@dataclass
class Summary:
    """What a call of `run` did: rows by status, jobs found finished, and the rows that failed."""

    found: int = 0
    statuses: Counter = field(default_factory=Counter)
    failures: list[dict] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)

    @property
    def failed(self) -> int:
        return self.statuses["failed"]


@dataclass(frozen=True)
class Progress:
    """Told to the caller after each batch: a share of the work in [0, 1] and what has just ended."""

    share: float
    done: int
    total: int
    last: Job
    seconds_alone: bool


def work(job: Job) -> float:
    """The job's rough cost in flops (see Algorithm.work); 1 where extreme settings overflow: the run will say so."""
    try:
        cost = job.count * algorithms.get(job.algorithm).work(*_size(job.problem), job.parsed())
    except ArithmeticError:
        return 1.0
    return cost if math.isfinite(cost) else 1.0


def _size(problem: str) -> tuple[int, int]:
    """Rows and columns of the problem's data, guessed where a third party's data set does not declare them."""
    spec = datasets.describe(catalogue.dataset_of(problem))
    return spec.rows or 10_000, spec.columns or 100


def batches(jobs: list[Job], workers: int = 1) -> list[list[Job]]:
    """Jobs grouped into batches that advance together, the costliest first so that no core idles at the end.

    With many `workers`, a batch that is more than one's even share of the whole is cut: it would be the last to end.
    """
    groups = defaultdict(list)
    for job in jobs:
        groups[job.group].append(job)
    share = sum(map(work, jobs)) / workers
    result = []
    for group in groups.values():
        size = algorithms.get(group[0].algorithm).batch_size(*_size(group[0].problem))
        if workers > 1:
            size = min(size, max(1, int(share / work(group[0]))))
        result += [group[i : i + size] for i in range(0, len(group), size)]
    return sorted(result, key=lambda batch: -sum(work(job) for job in batch))


def run(
    jobs: list[Job],
    store: Store,
    *,
    workers: int = 1,
    backend: str = "loky",
    scheduler: str | None = None,
    report: Callable[[Progress], None] = lambda progress: None,
) -> Summary:
    """Run the jobs that the store has not finished and write each batch's rows as soon as it ends.

    Batches of untimed jobs go to `workers` processes, or to those of a dask `scheduler` (see `cluster`). Timed jobs
    run afterwards, one at a time with nothing else of ours running, in the driver. Interrupting loses at most the
    batches in flight.
    """
    unique = {job.key: job for job in jobs}
    finished = store.finished()
    traced = store.traced() if any(job.trace for job in jobs) else set()
    missing = [job for key, job in unique.items() if key not in finished or (job.trace and key not in traced)]
    if missing:
        store.prepare()
        _heal(missing)
    summary = Summary(found=len(unique) - len(missing), keys=list(unique))
    total = sum(work(job) for job in missing) or 1.0
    progress = _Progress(report, total, len(missing))

    pooled = [job for job in missing if not job.timed]
    shared = batches(pooled, _threads(scheduler) if scheduler and pooled else 1)
    alone = batches([job for job in missing if job.timed])
    for batch, rows, traces in _results(shared, workers, backend, scheduler):
        _record(store, summary, rows, traces)
        progress.advance(batch, alone=False)
    for batch in alone:
        rows, traces = execute(batch)
        _record(store, summary, rows, traces)
        progress.advance(batch, alone=True)
    with contextlib.suppress(UserError):  # every row is in the store by now: merging the parts can wait
        store.compact()
    return summary


def _threads(scheduler: str) -> int:
    from dpbench import cluster

    return cluster.threads(scheduler)


def _heal(jobs: list[Job]) -> None:
    """Hash the prepared data before they are used; what was damaged on the disk is prepared anew."""
    for name in sorted({catalogue.dataset_of(job.problem) for job in jobs}):
        if datasets.heal(name):
            print(f"warning: data set {name}: its prepared arrays were damaged; prepared anew", file=sys.stderr)


def _record(store: Store, summary: Summary, rows: list[dict], traces: list[dict]) -> None:
    store.write(rows, traces)
    summary.statuses.update(row["status"] for row in rows)
    summary.failures += [row for row in rows if row["status"] == "failed"]


class _Progress:
    def __init__(self, report, total, jobs):
        self._report, self._total, self._jobs = report, total, jobs
        self._work, self._done = 0.0, 0

    def advance(self, batch: list[Job], alone: bool) -> None:
        self._work += sum(work(job) for job in batch)
        self._done += len(batch)
        self._report(Progress(self._work / self._total, self._done, self._jobs, batch[-1], alone))


def _results(
    todo: list[list[Job]], workers: int, backend: str, scheduler: str | None = None
) -> Iterator[tuple[list[Job], list, list]]:
    """(batch, rows, traces) in the order they end. A batch whose worker dies is tried again, alone in the end."""
    if workers == 1 and backend == "loky":
        for batch in todo:
            yield batch, *execute(batch)
        return
    if backend == "dask":
        from dpbench import cluster

        yield from cluster.results(todo, scheduler) if todo else ()
        return
    attempts = Counter()
    waiting = dict(enumerate(todo))
    while waiting:
        ready, suspects = dict(waiting), {i for i in waiting if attempts[i]}
        if suspects:  # a worker has died: those in flight then run one at a time, so that the culprit shows
            ready = {min(suspects): waiting[min(suspects)]}
        dispatched: list[int] = []
        try:
            for index, rows, traces in _pool(ready, workers, backend, dispatched):
                batch = waiting.pop(index)
                dispatched.remove(index)
                yield batch, rows, traces
        except _worker_death() as death:
            for index in dispatched:
                attempts[index] += 1
                if attempts[index] >= ATTEMPTS:
                    batch = waiting.pop(index)
                    error = RuntimeError(f"its worker process died {ATTEMPTS} times ({type(death).__name__})")
                    yield batch, [failed_row(job, error) for job in batch], []


def _pool(ready: dict[int, list[Job]], workers: int, backend: str, dispatched: list[int]):
    from joblib import Parallel, delayed

    def tasks():
        for index, batch in ready.items():
            dispatched.append(index)
            yield delayed(_indexed)(index, batch, os.getpid())

    # Threads share one BLAS: the limit that `execute` sets would end with the first of them.
    with threadpool_limits(1 if backend == "threading" else None), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given to the executor")
        parallel = Parallel(
            n_jobs=workers,
            backend=backend,
            return_as="generator_unordered",
            batch_size=1,
            pre_dispatch="n_jobs",
        )
        yield from parallel(tasks())


def _indexed(index: int, batch: list[Job], driver: int):
    _end_with(driver)
    rows, traces = execute(batch)
    return index, rows, traces


@functools.cache
def _end_with(driver: int) -> None:
    """End this worker soon after a driver that was killed; loky lets it wait for more work for five minutes."""

    def watch():
        while os.getppid() == driver:
            time.sleep(1)
        os._exit(1)

    if os.getpid() != driver:
        threading.Thread(target=watch, daemon=True).start()


def _worker_death() -> type[BaseException]:
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    return TerminatedWorkerError
