"""A table larger than what one wants to hold: memory beyond the page cache, and a gradient against reading.

`python -m benchmarks.stream_bench [ROWS]`, 400,000 by default; 20,000,000 takes 10 GB of disk below TMPDIR.
Each part runs in a process of its own, so that the peak is its own.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.memory_bench import anonymous_megabytes

COLUMNS, SHARE_ROWS = 20, 1_000_000
LIMIT_MB = 1024


def main(rows: int = 400_000) -> None:
    """Print `name: ratio` lines; a ratio of memory is over the 1 GiB that is allowed, one of speed over reading."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        _alone(write, path, rows)
        for precision in ("float64", "float32"):
            base, peak, seconds, pace, cold = _alone(prepare_and_run, path, folder, precision)
            size = rows * (COLUMNS + 1) * np.dtype(precision).itemsize
            name = f"{rows:,} x {COLUMNS} from parquet, {precision}"
            print(
                f"streaming, peak memory beyond the page cache over 1 GiB, {name}: {(peak - base) / LIMIT_MB:.2f}  "
                f"({peak - base:.0f} MB; the rows are {size / 1e6:.0f} MB; read in {seconds:.0f} s)"
            )
            print(
                f"streaming, rate of dp-gd's gradient from a cold file over that of reading it, {name}: "
                f"{pace:.2f}  ({cold:.1f} GB/s read)",
                flush=True,
            )


def _alone(function: Callable[..., Any], *arguments: object) -> Any:
    """What function(*arguments) returns, called in a new process."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def write(path: Path, rows: int) -> None:
    """A parquet file of random numbers with a label, a million rows at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    generator, writer = np.random.default_rng(0), None
    for start in range(0, rows, SHARE_ROWS):
        n = min(SHARE_ROWS, rows - start)
        X = generator.standard_normal((n, COLUMNS))
        label = (X[:, 0] - X[:, 1] + generator.standard_normal(n) > 0).astype(np.int8)
        table = pa.table({**{f"x{j}": X[:, j] for j in range(COLUMNS)}, "label": label})
        writer = writer or pq.ParquetWriter(path, table.schema, compression="none")
        writer.write_table(table)
    if writer is not None:
        writer.close()


def prepare_and_run(path: Path, folder: str, precision: str) -> tuple[float, float, float, float, float]:
    """(MB before, peak MB, seconds to prepare, rate of the gradient over that of reading, GB/s read)."""
    from threadpoolctl import threadpool_limits

    from dpbench.comparing import rows
    from dpbench.datasets import cache, keep
    from dpbench.problems.losses import LOSSES
    from dpbench.problems.rows import Rows
    from dpbench.schema import Column, Schema, Target

    os.environ["DPBENCH_DATA"] = folder
    rows.LARGE = 1.0
    base, peak, stop = anonymous_megabytes(), [0.0], threading.Event()

    def watch() -> None:
        while not stop.wait(0.02):
            peak[0] = max(peak[0], anonymous_megabytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    with threadpool_limits(1):
        start = time.perf_counter()
        columns = {f"x{j}": Column(bounds=(-5.0, 5.0)) for j in range(COLUMNS)}
        schema = Schema(target=Target(name="label", classes=(0, 1)), columns=columns)
        table = rows.read(path, None, schema, holdout=0.01, precision=precision)
        name = keep(table.X, table.y, "stream", "by its schema")
        del table
        seconds = time.perf_counter() - start
        file = cache.root() / "prepared" / f"{name}-v1" / "X.npy"
        y, W, size = np.load(file.with_name("y.npy")), np.zeros((1, COLUMNS + 1)), file.stat().st_size

        def read() -> None:
            with open(file, "rb", buffering=0) as stream:
                while stream.readinto(chunk):
                    pass

        def iterate() -> None:  # what a gradient sums; mapped anew, as pages that are mapped stay in the page cache
            Rows(np.load(file, mmap_mode="r"), y).weighted_sum(LOSSES["logistic"].derivative, W)

        chunk = bytearray(1 << 23)
        times = [(_cold(file, read), _cold(file, iterate)) for _ in range(5)]
        reading, iterating = map(min, zip(*times, strict=True))
    stop.set()
    watcher.join()
    return base, peak[0], seconds, reading / iterating, size / reading / 1e9


def _cold(file: Path, work: Callable[[], object]) -> float:
    """Seconds of work on a file whose pages were dropped from the page cache before."""
    with open(file, "rb") as stream:
        os.fsync(stream.fileno())
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
