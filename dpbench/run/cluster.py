"""Batches on a dask cluster: `dpbench run --backend dask --scheduler ADDRESS`.

A worker needs dpbench installed and a connection to the scheduler, nothing else: no shared file system, no network.
Batches go out one per worker thread and rows come back; a data set goes out once to each worker that does not hold
the same bytes, and from worker to worker where dask can; the file of an algorithm that is one goes with its batches.

What goes to an executor and what comes back: batches of jobs, their rows, or the death of a worker.
"""

from __future__ import annotations

import functools
import itertools
import logging
import sys
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

import msgspec

from dpbench import datasets
from dpbench.algorithms import registry
from dpbench.datasets import loading
from dpbench.errors import UserError, WorkerDied, how_to_install
from dpbench.run.execute import OURS, THEIRS, execute
from dpbench.run.job import Job
from dpbench.run.row import Point, Row
from dpbench.version import __version__

Batch: TypeAlias = list[Job]


class BatchRows(NamedTuple):
    """The rows of `runs` and of `traces` that a batch ended with."""

    runs: list[Row]
    traces: list[Point]


class WorkerDeath(NamedTuple):
    """`times` workers died while they had the batch; why: what the library calls it."""

    times: int
    why: str


class Executor(Protocol):
    """Computes batches."""

    def shares(self) -> int:
        """Into how many even shares the work is cut: a batch longer than one would be the last to end."""

    def run(self, batches: dict[int, Batch]) -> Iterator[tuple[int, BatchRows | WorkerDeath]]:
        """How each batch ended, in the order they end. A batch that did not start may be left out after a death."""


PATIENCE = 10.0  # seconds for the scheduler to answer, and for its first worker to be there
LOSSES = 3  # times that a batch is sent again because the data sent for it were lost with a worker


class Parcel(NamedTuple):
    """What a worker gets besides the jobs: the data to use, the driver's version, the text of a file algorithm."""

    data: str
    sha256: str
    version: str
    source: str


def connect(scheduler: str) -> Any:
    """A `distributed.Client`, with a worker behind it; UserError, in one line, if there is none."""
    import asyncio

    try:
        import distributed
    except ImportError:
        raise UserError(f"--backend dask needs dask.distributed; {how_to_install('dask')}") from None
    # The tracebacks that dask logs would stand beside our one line.
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    where: dict[str, str] = {"scheduler_file": scheduler} if Path(scheduler).is_file() else {"address": scheduler}

    class Client(cast(Any, distributed.Client)):  # type: ignore[misc]
        """Closed at once where it cannot start: collected later, it would wait for a lock that the next one holds."""

        def __init__(self) -> None:
            try:
                super().__init__(**where, timeout=PATIENCE, set_as_default=False)
            except BaseException:
                self.close()
                raise

    try:
        client = Client()
    except (OSError, ValueError, KeyError, RuntimeError, asyncio.TimeoutError) as error:
        # RuntimeError is what dask raises where TLS is demanded and not given.
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise UserError(f"--scheduler: no dask scheduler answers at {scheduler} ({reason})") from None
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except (TimeoutError, asyncio.TimeoutError):  # one and the same from Python 3.11 on
        client.close()
        raise UserError(
            f"--scheduler: {scheduler} has no workers; start some: dask worker {scheduler} --nthreads 1"
        ) from None
    return client


class Cluster:
    """The executor of a dask `scheduler` ("tcp://host:port" or its file).

    dask moves the batches of a dead worker to others: a death is reported when `distributed.scheduler.allowed-failures`
    + 1 workers died under one batch. Raises UserError if the scheduler cannot be reached or goes away.
    """

    def __init__(self, scheduler: str) -> None:
        self.scheduler = scheduler
        self._shipments: dict[str, Any] = {}  # data set -> future of its files

    def __enter__(self) -> Cluster:
        self._client = connect(self.scheduler)
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def shares(self) -> int:
        return max(1, self._threads())

    def _threads(self) -> int:
        """Of all its workers now."""
        import asyncio

        try:
            return sum(int(threads) for threads in self._client.nthreads().values())
        except (OSError, asyncio.TimeoutError) as error:
            # A client whose scheduler died tries to reach it for a while.
            raise gone(self.scheduler) from error

    def run(self, batches: dict[int, Batch]) -> Iterator[tuple[int, BatchRows | WorkerDeath]]:
        from distributed.comm.core import CommClosedError

        waiting, flying = iter(batches.items()), dict[Any, tuple[int, Batch, int]]()
        try:
            while True:
                # One batch a thread, so that a slow worker never holds several.
                for index, batch in itertools.islice(waiting, max(0, self.shares() - len(flying))):
                    flying[self._send(batch)] = index, batch, 0
                if not flying:
                    return
                self._wait(flying)
                for future in [one for one in flying if one.done()]:
                    index, batch, losses = flying.pop(future)
                    outcome = self._outcome(future, batch, losses)
                    if outcome is None:
                        flying[self._send(batch, shipped=True)] = index, batch, losses + 1
                    else:
                        yield index, outcome
        except CommClosedError as error:
            raise gone(self.scheduler) from error

    def _send(self, batch: Batch, shipped: bool = False) -> Any:
        """The future of a batch's rows; shipped: with its data."""
        data = datasets.load(batch[0].recipe.dataset)
        text = Path(batch[0].algorithm.rpartition(":")[0]).read_text("utf-8") if batch[0].source else ""
        parcel = Parcel(data.name, data.sha256, __version__, text)
        if shipped and data.name not in self._shipments:
            self._shipments[data.name] = self._client.scatter(loading.pack(data.name), hash=False)
        return self._client.submit(perform, batch, parcel, self._shipments[data.name] if shipped else None, pure=False)

    def _wait(self, flying: Collection[Any]) -> None:
        """Until one of the futures has ended."""
        import asyncio

        import distributed

        told = False
        while True:
            try:
                with self._client.as_current():
                    cast(Any, distributed).wait([*flying], timeout=PATIENCE, return_when="FIRST_COMPLETED")
                return
            except distributed.CancelledError:  # it has ended too
                return
            except (TimeoutError, asyncio.TimeoutError):
                self._alive()
                if not told and not self._threads():
                    print(f"warning: {self.scheduler} has no workers left; waiting for one", file=sys.stderr)
                    told = True

    def _outcome(self, future: Any, batch: Batch, losses: int) -> BatchRows | WorkerDeath | None:
        """How a batch ended, or None if it has to go out again with its data."""
        from distributed import CancelledError, KilledWorker

        try:
            rows: BatchRows | WorkerDeath | None = future.result()
            return rows
        except KilledWorker as death:
            return WorkerDeath(death.allowed_failures + 1, "KilledWorker")
        except CancelledError:
            self._alive()
            if losses > LOSSES:
                return WorkerDeath(losses, "the data that were sent to it were lost each time")
            # The shipment was lost with the worker that held it, so it has to be scattered anew.
            self._shipments.pop(batch[0].recipe.dataset, None)
            return None
        except UserError:
            raise
        except Exception as error:
            # `perform` makes rows of what an algorithm raises, so any other error is of the worker's installation.
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            raise UserError(f"a worker of {self.scheduler} cannot run dpbench: {reason}") from error

    def _alive(self) -> None:
        if self._client.status != "running":
            raise gone(self.scheduler)


def gone(scheduler: str) -> UserError:
    """What to raise where the scheduler does not answer any more."""
    return UserError(f"the scheduler {scheduler} went away; what was finished is kept, the same command goes on")


def computed(batch: Batch) -> BatchRows | WorkerDeath:
    """How a batch ended that was computed here, or in a process of its own where it or code beside it is not ours.

    Code that is not dpbench's own may change what else runs in its process, and end it: so rows that say *built in*
    are of processes that have imported nothing else.
    """
    foreign = any(job.foreign for job in batch)
    try:
        if foreign or registry.FOREIGN:
            return BatchRows(*(THEIRS if foreign else OURS).execute(batch))
        return BatchRows(*execute(batch))
    except WorkerDied as death:
        return WorkerDeath(1, str(death))


def perform(batch: Batch, parcel: Parcel, shipment: dict[str, bytes] | None) -> BatchRows | WorkerDeath | None:
    """On a worker: the rows of a batch, or None if the data set must be sent first."""
    from threadpoolctl import threadpool_limits

    if parcel.version != __version__:
        raise UserError(f"a worker has dpbench {__version__}, the driver {parcel.version}: install the same version")
    if not loading.adopt(parcel.data, parcel.sha256, shipment):
        return None
    # For good: a worker may have several threads, and leaving a `with` would undo the limit for the others.
    threadpool_limits(1)
    if parcel.source:
        path, _, name = batch[0].algorithm.rpartition(":")
        here = f"{_source_file(Path(path).name, parcel.source)}:{name}"
        batch = [msgspec.structs.replace(job, algorithm=here) for job in batch]
    return computed(batch)


@functools.cache
def _source_file(name: str, text: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="dpbench-"))
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name
