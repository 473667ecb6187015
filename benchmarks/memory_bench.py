"""Memory: fits of mapped rows, and two workers on the largest data set, beyond the files that the page cache holds.

`python -m benchmarks.memory_bench ROWS` measures fits of so many rows alone; 1e8 takes 9 GB of disk below TMPDIR.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

DATASET, PROBLEM = "covertype12", "covertype12-logistic"
LIMIT_MB = 700


ROWS, COLUMNS = 2_000_000, 20


def main() -> None:
    """Print `memory: ratio` lines: what a fit, and two workers, hold beyond the rows over the size of the rows."""
    fit_beyond_its_rows()
    from dpbench import datasets

    if not datasets.available(DATASET):
        print(f"memory, two workers on {DATASET}: data set not at hand (dpbench fetch {DATASET})")
        return
    mapped = datasets.load(DATASET).X.nbytes / 1e6
    private = workers_private_megabytes()
    print(
        f"memory, two workers on {DATASET} beyond the mapped file over the file ({mapped:.0f} MB): "
        f"{private / mapped:.2f}  ({private:.0f} MB of {LIMIT_MB} MB)"
    )


def fit_beyond_its_rows(rows: int = ROWS) -> None:
    """Print what `dpbench.fit` holds beyond mapped float32 rows and their labels, at its peak, over the rows."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        rng = np.random.default_rng(0)
        X = np.lib.format.open_memmap(f"{folder}/X.npy", "w+", np.float32, (rows, COLUMNS))
        y = np.lib.format.open_memmap(f"{folder}/y.npy", "w+", np.float32, (rows,))
        for start in range(0, rows, 1_000_000):
            A = X[start : start + 1_000_000]
            A[...] = 0.4 * rng.random(A.shape, np.float32) - np.float32(0.2)
            y[start : start + len(A)] = np.where(A[:, 0] > 0, 1, -1)
        size = X.nbytes
        del X, y, A
        for algorithm in ("dp-newton", "objpert"):
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
                megabytes, seconds = pool.submit(_peak_of_a_fit, folder, algorithm).result()
            print(
                f"memory, {algorithm}'s fit beyond float32 rows, {rows:,} x {COLUMNS}, over the rows: "
                f"{megabytes * 1e6 / size:.2f}  ({megabytes:.0f} MB, {megabytes * 1e6 / rows:.1f} bytes a row, "
                f"{seconds:.0f} s)",
                flush=True,
            )


def _peak_of_a_fit(folder: str, algorithm: str) -> tuple[float, float]:
    """In MB, of a second fit, as the first has loaded what the package loads; and its processor seconds."""
    import threading
    import time

    import numpy as np

    import dpbench

    X, y = np.load(f"{folder}/X.npy", mmap_mode="r"), np.load(f"{folder}/y.npy", mmap_mode="r")
    call = {"algorithm": algorithm, "epsilon": 1.0, "delta": 1e-9, "precision": "float32"}
    call |= {"T": 2} if algorithm == "dp-newton" else {}
    dpbench.fit(np.array(X[:2000]), np.array(y[:2000]), **call)
    base, peak, stop = anonymous_megabytes(), [0.0], threading.Event()

    def watch() -> None:
        while not stop.wait(0.002 if len(X) <= ROWS else 0.05):
            peak[0] = max(peak[0], anonymous_megabytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    begin = time.process_time()
    dpbench.fit(X, y, **call)
    seconds = time.process_time() - begin
    stop.set()
    watcher.join()
    return peak[0] - base, seconds


def workers_private_megabytes() -> float:
    """Peak memory of two workers running dp-gd, beyond pages that are backed by files, in MB."""
    from joblib import Parallel, delayed

    with tempfile.TemporaryDirectory() as folder:
        peaks = Parallel(n_jobs=2, backend="loky")(delayed(worker)(folder, seed) for seed in range(2))
    return sum(peaks)


def worker(folder: str, seed: int) -> float:
    """Run one batch of 15 replicates and return this process's peak anonymous memory in MB."""
    import threading

    from dpbench.run.execute import execute
    from dpbench.run.job import make_job

    (Path(folder) / str(seed)).touch()
    while len(list(Path(folder).iterdir())) < 2:  # both workers at once, in two processes
        threading.Event().wait(0.01)
    peak, stop = [0.0], threading.Event()

    def watch():
        while not stop.wait(0.02):
            peak[0] = max(peak[0], anonymous_megabytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    jobs = [
        make_job(problem=PROBLEM, algorithm="dp-gd", epsilon=1.0, seed=15 * seed + i, settings={"T": 5})
        for i in range(15)
    ]
    rows, _ = execute(jobs)
    stop.set()
    watcher.join()
    failed = [row["error"] for row in rows if row["status"] != "done"]
    if failed:
        raise RuntimeError(failed[0])
    return max(peak[0], anonymous_megabytes())


def anonymous_megabytes() -> float:
    """Resident memory of this process that no file backs (Linux)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1e3
    raise RuntimeError("RssAnon is not in /proc/self/status")


if __name__ == "__main__":
    fit_beyond_its_rows(int(float(sys.argv[1]))) if sys.argv[1:] else main()
