"""Where batches are computed: here, in processes or threads of this machine, or on a dask cluster.

One policy for a worker that dies: what was in flight is tried again one at a time, so that the culprit shows; a batch
under which workers died ATTEMPTS times becomes failed rows. What an executor has to do is to say which batches ended,
and how.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext
from multiprocessing import resource_tracker
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from dpbench.datasets import cache
from dpbench.errors import UserError, WorkerDied, at_least, nearest
from dpbench.run.cluster import Batch, BatchRows, Cluster, Executor, WorkerDeath, computed
from dpbench.run.execute import end_with, failed_row, room_for_worker

ATTEMPTS = 3  # of a batch whose worker died under it
BACKENDS = ("loky", "threading", "dask")
T = TypeVar("T")


def cores() -> int:
    """How many processes or threads there are where nobody says."""
    return os.cpu_count() or 1


class Here:
    """In this process, one after the other."""

    def shares(self) -> int:
        return 1

    def run(self, batches: dict[int, Batch]) -> Iterator[tuple[int, BatchRows | WorkerDeath]]:
        for index, batch in batches.items():
            yield index, computed(batch)


POOL_THREADS = 4  # that joblib's pool starts in this process: its manager, a queue's feeder, and some to spare


def pooled(
    function: Callable[..., T], tasks: Iterable[tuple[Any, ...]], jobs: int | None = None, backend: str = "loky", *,
    ordered: bool = False,
) -> Iterator[T]:  # fmt: skip
    """What `function` returns for each of `tasks`, its arguments: in their order, or in that in which they end.

    jobs: how many processes or threads, None for one per core.

    Raises:
        MemoryError: where a limit on this process (ulimit -v) leaves no room for a pool. BrokenProcessPool: where a
            process died.
    """
    from joblib import Parallel, delayed

    jobs, data = jobs or cores(), str(cache.root())  # asked here: joblib draws tasks in threads of its own
    if jobs > 1:
        _room_for_pool()
    # Threads share one BLAS: a limit that a task sets would end with the first of them.
    with threadpool_limits(1 if backend == "threading" else None), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"A worker stopped while some jobs|\d+ tasks which were")
        with _uninterrupted():
            results = Parallel(
                n_jobs=jobs, backend=backend, return_as="generator" if ordered else "generator_unordered",
                batch_size=1, pre_dispatch="n_jobs",
            )(delayed(_work)(function, task, os.getpid(), data) for task in tasks)  # fmt: skip
        yield from results


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C waits for the end, and processes that start here never see it: one that imports would print a trace."""
    if not hasattr(signal, "pthread_sigmask"):  # not on every system
        yield
        return
    resource_tracker.ensure_running()  # where it starts by itself, it lets all signals through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Local:
    """In `jobs` processes ("loky") or threads ("threading") of this machine."""

    def __init__(self, jobs: int, backend: str) -> None:
        self._jobs, self._backend = jobs, backend

    def shares(self) -> int:
        return self._jobs

    def run(self, batches: dict[int, Batch]) -> Iterator[tuple[int, BatchRows | WorkerDeath]]:
        flying: list[int] = []

        def tasks() -> Iterator[tuple[int, Batch]]:
            for task in batches.items():
                flying.append(task[0])
                yield task

        try:
            for index, rows in pooled(_indexed, tasks(), self._jobs, self._backend):
                flying.remove(index)
                yield index, rows
        except BrokenProcessPool as death:
            for index in flying:
                yield index, WorkerDeath(1, type(death).__name__)


def _room_for_pool() -> None:
    """MemoryError where a pool's own threads would not start, or no worker: it would wait for them for ever."""
    room_for_worker()
    end = threading.Event()
    threads = [threading.Thread(target=end.wait, daemon=True) for _ in range(POOL_THREADS)]
    try:
        for thread in threads:
            thread.start()
    except RuntimeError as error:
        # Python's only word for it is "can't start new thread".
        raise MemoryError(str(error)) from error
    finally:
        end.set()
        for thread in threads:
            if thread.ident is not None:
                thread.join()


def check(backend: str, jobs: int | None, scheduler: str | None) -> None:
    """UserError, in one line, for options that `open_executor` does not take."""
    if jobs is not None:
        at_least("jobs", jobs)
    if backend not in BACKENDS:
        raise UserError(f"unknown backend {backend!r}: {nearest(backend, BACKENDS)}")
    if (backend == "dask") != (scheduler is not None):
        raise UserError("scheduler: give an address with backend dask, and with no other backend")


def open_executor(
    backend: str = "loky", jobs: int | None = None, scheduler: str | None = None
) -> AbstractContextManager[Executor]:
    """The executor of these options; leaving the context releases it.

    backend: "loky" (processes), "threading" or "dask". jobs: how many processes or threads, None for one per core.
    scheduler: dask's, "tcp://host:port" or its scheduler file. Raises UserError as `check`.
    """
    check(backend, jobs, scheduler)
    jobs = jobs or cores()
    if scheduler is not None:
        return Cluster(scheduler)
    return nullcontext(Here() if jobs == 1 and backend == "loky" else Local(jobs, backend))


def results(todo: list[Batch], executor: Executor) -> Iterator[tuple[Batch, BatchRows]]:
    """Every batch with its rows, in the order they end; see the module's docstring for those whose workers die."""
    waiting, deaths = dict(enumerate(todo)), Counter[int]()
    while waiting:
        suspects = [index for index in waiting if deaths[index]]
        chosen = {suspects[0]: waiting[suspects[0]]} if suspects else dict(waiting)
        for index, ended in executor.run(chosen):
            if isinstance(ended, WorkerDeath):
                deaths[index] += ended.times
                if deaths[index] < ATTEMPTS:
                    continue
                often = f"its worker process died {deaths[index]} times ({ended.why})"
                error = WorkerDied(f"{often}; if memory ran out, fewer jobs leave more to each")
                ended = BatchRows([failed_row(job, error) for job in waiting[index]], [])
            yield waiting.pop(index), ended


def _indexed(index: int, batch: Batch) -> tuple[int, BatchRows | WorkerDeath]:
    return index, computed(batch)


def _work(function: Callable[..., T], task: tuple[Any, ...], driver: int, data: str) -> T:
    end_with(driver)  # loky lets a worker wait for more work for five minutes
    # loky keeps its workers between calls, and one of an earlier call may know another folder of data.
    if os.getpid() != driver:
        os.environ["DPBENCH_DATA"] = data
    return function(*task)
