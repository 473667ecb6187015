"""What rows in shards cost beside the rows, and 1,000 workers from it: `python -m benchmarks.shard_bench`.

A scheduler and up to eight worker processes on the loopback interface take the gradient of the logistic loss on a dask
array of 20 columns, a shard per worker. Measured with one and two workers, in processor seconds without those of idle
processes, all processes together:

  - ratio: an iteration on two large shards, over that of one process with the same rows (by turns, the best of three);
  - row: of a worker, for a row; driver: of the driver, for an iteration; question: of a worker, to take a question, ask
    its shard and answer; pass_on: of a worker, to ask another one and add its answer; shard: for a second shard;
  - latency: seconds by the clock between a message and its receiver, beside what both do, the least of many.

From these alone, the processor seconds of an iteration on four and eight workers, and the seconds by the clock on two,
are predicted and then measured. The tree of up to 1,000 workers is simulated with them, message by message, where
`NETWORK` seconds a message and `BANDWIDTH` bytes a second take the place of the loopback interface. Writes
results/shards.json and results/shards.md.
"""

from __future__ import annotations

import functools
import json
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.cluster_bench import RESULT, busy_seconds, cluster
from benchmarks.machine import describe, load

RESULTS = RESULT.parent
LARGE, MEDIUM, SMALL, D = 1_000_000, 100_000, 100, 20  # rows of a shard; columns
PAUSE = 0.02  # seconds between two questions, as rows take them: a process that was at rest takes longer to answer
ROUNDS, LARGE_ITERATIONS, SMALL_ITERATIONS = 3, 10, 200
WORKERS, ROWS = (1, 10, 100, 1000), 1e9
NETWORK, BANDWIDTH = 1e-4, 1e9  # of a data centre: seconds a message, bytes a second (10 Gbit/s)


class Costs(NamedTuple):
    """See the module's docstring; `message`: bytes of a question for each worker that it is still to reach."""

    row: float
    driver: float
    question: float
    pass_on: float
    shard: float
    latency: float
    message: float

    def processor(self, rows: float, workers: int) -> float:
        """Processor seconds of an iteration, all processes together."""
        return self.driver + rows * self.row + workers * self.question + (workers - 1) * self.pass_on

    def seconds(self, rows: float, workers: int, network: float = 0.0, bandwidth: float = np.inf) -> float:
        """Seconds by the clock of an iteration on as many machines as there are workers.

        >>> Costs(1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0).seconds(8.0, 4)
        2.0
        >>> Costs(0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0).seconds(8.0, 4)  # two children, of whom the first has one
        4.0
        """
        latency = max(self.latency, network)
        own = rows / workers * self.row + self.question

        @functools.cache
        def answered(size: int) -> float:
            """Seconds from a question's arrival at the root of a tree of so many workers to its answer."""
            now, children = 0.0, []
            left = size
            while left > 1:  # as `relay.tree` cuts it
                half = 1 << ((left - 1).bit_length() - 1)
                now += self.pass_on / 2 + (left - half) * self.message / bandwidth
                children.append(now + latency + answered(left - half) + latency)
                left = half
            end = now
            for arrived in sorted(children):
                end = max(end, arrived) + self.pass_on / 2
            return max(end, now + own)

        return self.driver + 2 * latency + workers * self.message / bandwidth + answered(workers)


def main() -> None:
    local, large, small, least = [], [], [], []
    one = rows_here(2 * LARGE)
    with tempfile.TemporaryDirectory() as folder, cluster(Path(folder)) as (address, scheduler, workers):
        processes = [scheduler], workers
        with client(address):
            two = problem(LARGE, 2)
            for _ in range(ROUNDS):
                local.append(busy_seconds(repeated(one, LARGE_ITERATIONS))[0] / LARGE_ITERATIONS)
                large.append(busy_seconds(repeated(two, LARGE_ITERATIONS), *processes) / LARGE_ITERATIONS)
            two = problem(MEDIUM, 2)
            clock = shortest(two, SMALL_ITERATIONS)
            del two
            for count in (1, 2, 4):  # shards; the first two have a worker each
                few = problem(SMALL, count)
                small.append(
                    busy_seconds(repeated(few, SMALL_ITERATIONS, PAUSE), *processes, times=ROUNDS) / SMALL_ITERATIONS
                )
                least.append(min(shortest(few, SMALL_ITERATIONS) for _ in range(ROUNDS)))
            extra = (small[2][2] - small[1][2]) / 2
    alone, both = small[0][2], small[1][2]
    answer = max(both - 2 * alone, 0.0)
    costs = Costs(
        row=(min(found[2] for found in large) - both) / (2 * LARGE),
        driver=max(min(found[0] + found[1] for found in small[:2]), 0.0),
        question=alone,
        pass_on=answer,
        shard=extra,
        latency=max((least[1] - least[0] - answer) / 2, 0.0),
        message=message_bytes(),
    )
    checks = [predicted("seconds", 2, MEDIUM, costs.seconds(2 * MEDIUM, 2), clock)]
    checks += [measured(costs, count) for count in (4, 8)]
    ratio = min(sum(found[:-1]) for found in large) / min(local)
    result = {"ratio": ratio, **costs._asdict(), "checks": checks, "load": load(), "machine": describe()}
    RESULTS.joinpath("shards.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", "utf-8")
    RESULTS.joinpath("shards.md").write_text(page(result), encoding="utf-8")
    print(page(result))


def measured(costs: Costs, count: int) -> dict[str, Any]:
    """Processor seconds of an iteration on `count` workers, as predicted and as measured."""
    with (
        tempfile.TemporaryDirectory() as folder,
        cluster(Path(folder), count) as (address, scheduler, workers),
        client(address, count) as driver,
    ):
        few = problem(SMALL, count)
        assert all(driver.has_what().values()), "a worker has no shard"
        work = repeated(few, SMALL_ITERATIONS, PAUSE)
        found = busy_seconds(work, [scheduler], workers, times=ROUNDS)[:-1].sum()
    expected = costs.processor(count * SMALL, count)
    return predicted("processor seconds", count, SMALL, expected, found / SMALL_ITERATIONS)


def predicted(what: str, workers: int, rows: int, expected: float, found: float) -> dict[str, Any]:
    return {"what": what, "workers": workers, "rows": rows, "predicted": expected, "measured": found}


def client(address: str, count: int = 2) -> Any:
    """A client of a scheduler, once its workers are there."""
    from distributed import Client

    found = Client(address)
    found.wait_for_workers(count, timeout=60)
    return found


def problem(size: int, count: int) -> Any:
    """A problem of `count` shards of `size` rows each."""
    import dask.array as da

    from dpbench.problems.kernels import Rows
    from dpbench.run import shards

    X = da.random.default_rng(0).uniform(-0.2, 0.2, (size * count, D), chunks=(size, D))
    return shards.of_arrays(X, da.where(X[:, 0] > 0, 1.0, -1.0), Rows)


def rows_here(n: int) -> Any:
    """A problem of n such rows in this process."""
    from dpbench.problems import Problem

    X = np.random.default_rng(0).uniform(-0.2, 0.2, (n, D))
    return Problem(X, np.where(X[:, 0] > 0, 1.0, -1.0))


def repeated(problem: Any, times: int, pause: float = 0.0) -> Any:
    """So many iterations of dp-gd, less its noise, behind the first; pause: seconds before each."""
    W = np.zeros((1, D))
    problem.gradient(W)

    def iterate() -> None:
        for _ in range(times):
            time.sleep(pause)
            problem.gradient(W)

    return iterate


def shortest(problem: Any, times: int) -> float:
    """The least seconds by the clock of so many iterations."""
    W, found = np.zeros((1, D)), np.inf
    for _ in range(times):
        start = time.perf_counter()
        problem.gradient(W)
        found = min(found, time.perf_counter() - start)
    return found


def message_bytes() -> float:
    """Of a question to 1,000 workers, for each."""
    from dpbench.run import relay

    key = "_prepared-12345678-1234-5678-1234-567812345678"
    places = [(f"tcp://10.0.{i // 256}.{i % 256}:40000", [(i, key, ())]) for i in range(1000)]
    return len(relay.tree(places)[1]) / 1000


def page(result: dict[str, Any]) -> str:
    """The tables of the guide."""
    costs = Costs(*(result[name] for name in Costs._fields))
    lines = ["| workers | rows each | what | predicted | measured |", "|--:|--:|---|--:|--:|"]
    for check in result["checks"]:
        times = " | ".join(f"{1e3 * check[name]:.2f} ms" for name in ("predicted", "measured"))
        lines.append(f"| {check['workers']} | {check['rows']:,} | {check['what']} | {times} |")
    lines += ["", "| workers | rows each | seconds an iteration | times one worker |", "|--:|--:|--:|--:|"]
    alone = costs.seconds(ROWS, 1, NETWORK, BANDWIDTH)
    for workers in WORKERS:
        seconds = costs.seconds(ROWS, workers, NETWORK, BANDWIDTH)
        lines.append(f"| {workers:,} | {ROWS / workers:,.0f} | {seconds:.3f} | {alone / seconds:.0f} |")
    driver, question, pass_on, shard, latency = (
        f"{1e3 * getattr(costs, name):.2f} ms" for name in ("driver", "question", "pass_on", "shard", "latency")
    )
    facts = f"""
Two workers take {result["ratio"]:.2f} times the processor time of one process with the same rows (2 × {LARGE:,}).
A row of {D} columns costs {1e9 * costs.row:.0f} ns.
For an iteration, the driver takes {driver}, whatever the number of workers;
a worker {question} for question and answer, {pass_on} for each worker that it asks, {shard} for a shard more;
a message is {latency} under way. Load average {result["load"]:.0f} on {result["machine"]["cores"]} cores.
"""
    return "\n".join(lines) + "\n" + facts


if __name__ == "__main__":
    main()
