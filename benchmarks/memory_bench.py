"""Memory: two workers on the largest data set beyond the file that they share through the page cache."""

from __future__ import annotations

import tempfile
from pathlib import Path

DATASET, PROBLEM = "covertype12", "covertype12-logistic"
LIMIT_MB = 700


def main() -> None:
    """Print `memory: ratio` of what two workers hold beyond the mapped file over the mapped file's size."""
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
    from dpbench.run.jobs import make_job

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
    main()
