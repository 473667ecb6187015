"""The cost of a batch on a dask cluster: `python -m benchmarks.cluster_bench` writes results/cluster.json.

A scheduler and two worker processes on the loopback interface, each with a data cache of its own, run batches of one
short job each (dp-gd, T = 1 ... N, on the synthetic data). overhead: processor seconds per batch, of workers and
driver together, beyond what the same batches cost in one local process. driver: those of the driver (sending,
receiving, writing part files): what no number of workers makes faster. Rates per second are by the clock.
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
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from benchmarks.machine import describe, load

BATCHES, WORKERS = 100, 2
RESULT = Path(__file__).parent / "results" / "cluster.json"


def main() -> None:
    from dpbench.run import runner
    from dpbench.run.jobs import make_job
    from dpbench.run.results import Store

    jobs = [
        make_job(problem="synthetic", algorithm="dp-gd", epsilon=1.0, seed=0, settings={"T": T})
        for T in range(1, BATCHES + 1)
    ]
    with tempfile.TemporaryDirectory() as folder, cluster(Path(folder)) as (address, workers):
        warm = [
            make_job(problem="synthetic", algorithm="dp-gd", epsilon=2.0, seed=s, settings={"T": s + 1})
            for s in range(20)
        ]
        for where in ({}, {"backend": "dask", "scheduler": address}):
            runner.run(warm, Store(folder, "warm", where.get("backend", "local")), **where)
        times, busy = {}, processor_seconds(workers)
        for name, where in (("local", {}), ("dask", {"backend": "dask", "scheduler": address})):
            wall, processor = time.perf_counter(), time.process_time()
            runner.run(jobs, Store(folder, "bench", name), **where)
            times[name] = (time.perf_counter() - wall, time.process_time() - processor)
        busy = processor_seconds(workers) - busy
    result = {
        "batches": BATCHES,
        "workers": WORKERS,
        "batches_per_second": BATCHES / times["dask"][0],
        "local_batches_per_second": BATCHES / times["local"][0],
        "overhead": (busy + times["dask"][1] - times["local"][1]) / BATCHES,
        "driver": times["dask"][1] / BATCHES,
        "load": load(),
        "machine": describe(),
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for name in ("batches_per_second", "local_batches_per_second", "overhead", "driver"):
        print(f"{name}: {result[name]:.3g}")


def processor_seconds(processes: list[subprocess.Popen]) -> float:
    """What they have used so far."""
    import psutil

    return sum(sum(psutil.Process(process.pid).cpu_times()[:2]) for process in processes)


@contextmanager
def cluster(folder: Path):
    """(address, worker processes) of a scheduler with `WORKERS` workers."""
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

        start("scheduler", "--host", "127.0.0.1", "--port", str(port))
        workers = []
        for i in range(WORKERS):
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
        yield address, workers


def _end(process: subprocess.Popen) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


if __name__ == "__main__":
    main()
