"""The cost of a batch on a dask cluster: `python -m benchmarks.cluster_bench` writes results/cluster.json.

A scheduler and two worker processes on the loopback interface, each with a data cache of its own, run batches of one
short job each (dp-gd, T = 1 ... N, on the synthetic data). overhead: processor seconds per batch, of workers and
driver together, beyond what the same batches cost in one local process. driver: those of the driver (sending,
receiving, writing part files): what no number of workers makes faster. Rates per second are by the clock. What idle
processes take is left out.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import numpy as np

from benchmarks.machine import describe, load

BATCHES, WORKERS = 100, 2
RESULT = Path(__file__).parent / "results" / "cluster.json"


def main() -> None:
    from dpbench.run import runner
    from dpbench.run.job import make_job
    from dpbench.run.store import Store

    jobs = [
        make_job(problem="synthetic", algorithm="dp-gd", epsilon=1.0, seed=0, settings={"T": T})
        for T in range(1, BATCHES + 1)
    ]
    with tempfile.TemporaryDirectory() as folder, cluster(Path(folder)) as (address, _, workers):
        warm = [
            make_job(problem="synthetic", algorithm="dp-gd", epsilon=2.0, seed=s, settings={"T": s + 1})
            for s in range(20)
        ]
        for where in ({}, {"backend": "dask", "scheduler": address}):
            runner.run(warm, Store(folder, "warm", where.get("backend", "local")), **where)
        times = {}
        for name, where in (("local", {}), ("dask", {"backend": "dask", "scheduler": address})):
            store = Store(folder, "bench", name)
            times[name] = busy_seconds(lambda store=store, where=where: runner.run(jobs, store, **where), workers)
    result = {
        "batches": BATCHES,
        "workers": WORKERS,
        "batches_per_second": BATCHES / times["dask"][-1],
        "local_batches_per_second": BATCHES / times["local"][-1],
        "overhead": (times["dask"][:2].sum() - times["local"][0]) / BATCHES,
        "driver": times["dask"][0] / BATCHES,
        "load": load(),
        "machine": describe(),
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for name in ("batches_per_second", "local_batches_per_second", "overhead", "driver"):
        print(f"{name}: {result[name]:.3g}")


def busy_seconds(work: Callable[[], object], *processes: list[subprocess.Popen], times: int = 1) -> np.ndarray:
    """Processor seconds that work takes here and in each group of processes, and at the end those by the clock.

    The best of so many times. Without those of idle processes, whose heartbeats go on while others have the machine.
    """

    def now() -> np.ndarray:
        return np.array([time.process_time(), *map(processor_seconds, processes), time.perf_counter()])

    start = now()
    time.sleep(5)
    idle = now() - start
    found = []
    for _ in range(times):
        start = now()
        work()
        used = now() - start
        used[:-1] -= idle[:-1] / idle[-1] * used[-1]
        found.append(used)
    return min(found, key=lambda used: used[:-1].sum())


def processor_seconds(processes: list[subprocess.Popen]) -> float:
    """What they have used so far."""
    import psutil

    return sum(sum(psutil.Process(process.pid).cpu_times()[:2]) for process in processes)


@contextmanager
def cluster(folder: Path, count: int = WORKERS):
    """(address, scheduler process, worker processes) of a scheduler with `count` workers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    with ExitStack() as stack:

        def start(kind, *arguments, **environment):
            command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *arguments, "--no-dashboard"]
            process = subprocess.Popen(
                command,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"} | environment,
                start_new_session=True,
            )
            stack.callback(_end, process)
            return process

        scheduler = start("scheduler", "--host", "127.0.0.1", "--port", str(port))
        workers = []
        for i in range(count):
            local = str(folder / f"dask-{i}")
            workers.append(
                start(
                    "worker",
                    address,
                    "--nthreads",
                    "1",
                    "--no-nanny",
                    "--local-directory",
                    local,
                    DPBENCH_DATA=f"{folder}/{i}",
                )
            )
        yield address, scheduler, workers


def _end(process: subprocess.Popen) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


if __name__ == "__main__":
    main()
