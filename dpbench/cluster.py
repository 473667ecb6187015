"""Batches on a dask cluster: `dpbench run --backend dask --scheduler ADDRESS`.

A worker needs dpbench installed and a connection to the scheduler, nothing else: no shared file system, no network.
Batches go out one per worker thread and rows come back; a data set goes out once to each worker that does not hold
the same bytes, and from worker to worker where dask can; the file of an algorithm that is one goes with its batches.
"""

from __future__ import annotations

import asyncio
import functools
import queue
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from dpbench import __version__, datasets
from dpbench.datasets import shipping
from dpbench.errors import UserError
from dpbench.execute import execute, failed_row
from dpbench.jobs import Job
from dpbench.problems import catalogue

PATIENCE = 10.0  # seconds for the scheduler to answer, and for its first worker to be there
TIMEOUTS = (TimeoutError, asyncio.TimeoutError)  # one and the same from Python 3.11 on
LOSSES = 3  # times that a batch is sent again because the data sent for it were lost with a worker


class Parcel(NamedTuple):
    """What a worker is told besides the jobs: the data to use, the driver's version, the text of a file algorithm."""

    data: str
    sha256: str
    version: str
    source: str


def results(todo: list[list[Job]], scheduler: str) -> Iterator[tuple[list[Job], list[dict], list[dict]]]:
    """(batch, rows, traces) in the order they end, from the workers of `scheduler` ("tcp://host:port" or its file).

    dask moves the batches of a dead worker to others; one under which `distributed.scheduler.allowed-failures` + 1
    workers died becomes failed rows. Raises UserError if the scheduler cannot be reached or goes away.
    """
    client = connect(scheduler)
    from distributed.comm import CommClosedError

    try:
        yield from _Dispatch(client, scheduler).results(todo)
    except CommClosedError as error:
        raise _gone(scheduler) from error
    finally:
        client.close()


def threads(scheduler: str) -> int:
    """Threads of all its workers now; errors as of `connect`."""
    client = connect(scheduler)
    try:
        return sum(client.nthreads().values())
    finally:
        client.close()


def connect(scheduler: str):
    """A `distributed.Client`, with a worker behind it; UserError, in one line, if there is none."""
    try:
        from distributed import Client
    except ImportError:
        raise UserError("--backend dask needs dask.distributed; run: pip install 'dpbench[dask]'") from None
    where = {"scheduler_file": scheduler} if Path(scheduler).is_file() else {"address": scheduler}
    try:
        client = Client(**where, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, KeyError, *TIMEOUTS) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise UserError(f"--scheduler: no dask scheduler answers at {scheduler} ({reason})") from None
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TIMEOUTS:
        client.close()
        raise UserError(
            f"--scheduler: {scheduler} has no workers; start some: dask worker {scheduler} --nthreads 1"
        ) from None
    return client


class _Dispatch:
    """Sends batches and collects what comes back."""

    def __init__(self, client, scheduler: str):
        self.client, self.scheduler = client, scheduler
        self.ended = queue.SimpleQueue()  # futures, put there by their callbacks
        self.flying: dict[str, tuple[int, list[Job]]] = {}  # key of a future -> its batch; `futures` keeps it alive
        self.futures: dict[str, object] = {}
        self.shipments: dict[str, object] = {}  # data set -> future of its files
        self.losses: Counter = Counter()
        self._slots, self._counted = 1, -float("inf")

    def results(self, todo):
        waiting = list(enumerate(todo))[::-1]
        while waiting or self.flying:
            while waiting and len(self.flying) < self.slots():
                self.send(*waiting.pop())
            key = self.next_key()
            (index, batch), future = self.flying.pop(key), self.futures.pop(key)
            outcome = self.outcome(future, index, batch)
            if outcome is None:
                self.send(index, batch, shipped=True)
            else:
                yield batch, *outcome

    def slots(self) -> int:
        """Threads of all workers, asked for every two seconds: workers come and go."""
        if time.monotonic() - self._counted > 2:
            self._slots = max(1, sum(self.client.nthreads().values()))
            self._counted = time.monotonic()
        return self._slots

    def send(self, index: int, batch: list[Job], shipped: bool = False) -> None:
        data = datasets.load(catalogue.dataset_of(batch[0].problem))
        text = Path(batch[0].algorithm.rpartition(":")[0]).read_text("utf-8") if batch[0].source else ""
        parcel = Parcel(data.name, data.sha256, __version__, text)
        if shipped and data.name not in self.shipments:
            self.shipments[data.name] = self.client.scatter(shipping.pack(data.name), hash=False)
        shipment = self.shipments[data.name] if shipped else None
        future = self.client.submit(perform, batch, parcel, shipment, pure=False)
        self.flying[future.key], self.futures[future.key] = (index, batch), future
        future.add_done_callback(lambda done: self.ended.put(done.key))

    def next_key(self) -> str:
        told = False
        while True:
            try:
                key = self.ended.get(timeout=PATIENCE)
            except queue.Empty:
                self.alive()
                if not told and not self.client.nthreads():
                    print(f"warning: {self.scheduler} has no workers left; waiting for one", file=sys.stderr)
                    told = True
                continue
            if key in self.flying:
                return key

    def outcome(self, future, index: int, batch: list[Job]) -> tuple[list[dict], list[dict]] | None:
        """Rows and traces, or None if the batch has to go out again with its data."""
        from distributed import CancelledError, KilledWorker

        try:
            return future.result()
        except KilledWorker as death:
            error = RuntimeError(f"its worker process died {death.allowed_failures + 1} times (KilledWorker)")
            return [failed_row(job, error) for job in batch], []
        except CancelledError as error:
            self.alive()
            self.losses[index] += 1
            if self.losses[index] > LOSSES:
                return [failed_row(job, error) for job in batch], []
            self.shipments.pop(catalogue.dataset_of(batch[0].problem), None)  # lost with the worker that held it
            return None
        except UserError:
            raise
        except Exception as error:  # `perform` makes rows of an algorithm's failures: this is the worker's own
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            raise UserError(f"a worker of {self.scheduler} cannot run dpbench: {reason}") from error

    def alive(self) -> None:
        if self.client.status != "running":
            raise _gone(self.scheduler)


def _gone(scheduler: str) -> UserError:
    return UserError(f"the scheduler {scheduler} went away; what was finished is kept, the same command goes on")


def perform(batch: list[Job], parcel: Parcel, shipment: dict[str, bytes] | None):
    """On a worker: rows and traces of a batch, or None if the data set must be sent first."""
    from threadpoolctl import threadpool_limits

    if parcel.version != __version__:
        raise UserError(f"a worker has dpbench {__version__}, the driver {parcel.version}: install the same version")
    if not shipping.adopt(parcel.data, parcel.sha256, shipment):
        return None
    threadpool_limits(1)  # for good: with several threads a worker, leaving a `with` would undo it for the others
    if parcel.source:
        path, _, name = batch[0].algorithm.rpartition(":")
        here = f"{_source_file(Path(path).name, parcel.source)}:{name}"
        batch = [msgspec.structs.replace(job, algorithm=here) for job in batch]
    return execute(batch)


@functools.cache
def _source_file(name: str, text: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="dpbench-"))
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name
