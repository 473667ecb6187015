"""The full grids on up to 1,000 workers, simulated: `python -m benchmarks.cluster_simulation`.

A batch's seconds are `Algorithm.work` over the rates in results/iterations.json (`make bench`; k = 1 and k = 15, the
time per replicate taken as a + b/k between and beyond them), its overheads those of results/cluster.json. The batches
are the runner's, in the runner's order; a worker gets the next one when the driver has dealt with its last, and the
driver deals with one at a time. Runs that are timed alone stay in the driver and are left out. The rates are checked
against the rows of the full profiles that were timed alone. A method that `make bench` does not measure has the highest
rate of those rows instead. Runs that stop early cost what they made, by their rows.
"""

from __future__ import annotations

import heapq
import json
import statistics
from collections.abc import Callable
from pathlib import Path

from benchmarks.iteration_bench import BATCH

RESULTS = Path(__file__).parent / "results"
WORKERS = (1, 10, 100, 1000)


def makespan(seconds: list[float], workers: int, overhead: float, driver: float) -> float:
    """When the last batch is written, in seconds; list scheduling with a driver that deals with one batch at a time.

    >>> makespan([3.0, 2.0, 2.0], 2, 0.0, 0.0)
    4.0
    >>> makespan([1.0] * 10, 10, 0.0, 0.5)
    10.5
    """
    waiting = iter(seconds)
    busy: list[float] = []
    free = 0.0  # when the driver has time
    for one in (next(waiting, None) for _ in range(workers)):
        if one is not None:
            free += driver / 2  # sending is about half of it
            heapq.heappush(busy, free + overhead + one)
    while busy:
        free = max(free, heapq.heappop(busy)) + driver / 2
        following = next(waiting, None)
        if following is not None:
            free += driver / 2
            heapq.heappush(busy, free + overhead + following)
    return free


def benched() -> dict[str, tuple[float, float]]:
    """Algorithm → flops of `Algorithm.work` per second of a batch of 1 and of one of `BATCH`, by `make bench`."""
    lines = json.loads((RESULTS / "iterations.json").read_text())["iterations"]
    return {line["algorithm"]: tuple(line["work_rates"]) for line in lines}


def rates(measured: dict[str, tuple[float, float]], timed: dict[str, float]) -> Callable[[str, int], float]:
    """(algorithm, k) → flops of `Algorithm.work` per second of a batch of k; of `timed` where not `measured`."""
    usual = statistics.median(single for single, _ in measured.values())

    def rate(algorithm: str, k: int) -> float:
        single, batched = measured.get(algorithm) or 2 * (timed.get(algorithm, usual),)
        alone = max(0.0, (1 / single - 1 / batched) / (1 - 1 / BATCH))  # of 1/rate: paid once a batch
        return 1 / max(1 / single - alone + alone / k, 1e-13)

    return rate


def main() -> None:
    from dpbench import experiments
    from dpbench.run import runner
    from dpbench.run.store import Store
    from dpbench.study.plan import plan

    cost = json.loads((RESULTS / "cluster.json").read_text())
    overhead, driver, measured = cost["overhead"], cost["driver"], benched()
    print(f"overhead {1e3 * overhead:.1f} ms, driver {1e3 * driver:.1f} ms a batch")
    for name in experiments.BUILTIN:
        store = Store("results", "full", name)
        jobs = plan(experiments.get(name).blocks("full"), store).jobs
        rows = store.runs().set_index("key")
        made = (rows["iterations"] / rows["T"]).clip(upper=1).dropna().to_dict() if "iterations" in rows else {}

        seconds_alone = rows["seconds"].dropna()
        timed: dict[str, float] = {}
        for job in jobs:
            if job.key in seconds_alone.index:
                found = runner.work(job) * made.get(job.key, 1.0) / seconds_alone[job.key]
                timed[job.algorithm] = max(found, timed.get(job.algorithm, 0.0))  # small problems are mostly overhead
        rate = rates(measured, timed)

        def seconds_of(job, k: int, made=made, rate=rate) -> float:
            return runner.work(job) * made.get(job.key, 1.0) / rate(job.algorithm, k)

        pooled = [job for job in jobs if not job.timed]
        alone = None
        for workers in WORKERS:
            todo = runner.batches(pooled, workers)
            seconds = [sum(seconds_of(job, len(batch)) for job in batch) for batch in todo]
            end = makespan(seconds, workers, overhead, driver)
            alone = alone or end
            print(
                f"{name:<20}{len(pooled):>7} runs {len(todo):>6} batches {workers:>5} workers {_clock(end):>10}"
                f"   {alone / end:>5.0f} times faster   longest batch {_clock(max(seconds))}"
            )
        check(name, [job for job in jobs if job.algorithm in measured], seconds_alone, seconds_of)


def check(name: str, jobs, rows, seconds_of: Callable[..., float]) -> None:
    """Print the median of predicted over measured seconds (rows: key → seconds), where rows were timed alone."""
    ratios = [seconds_of(job, 1) / rows[job.key] for job in jobs if job.key in rows.index]
    if ratios:
        median = statistics.median(ratios)
        print(f"{name:<20}predicted over measured seconds of {len(ratios)} timed runs: median {median:.2f}")


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"


if __name__ == "__main__":
    main()
