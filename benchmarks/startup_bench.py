"""Start-up: `dpbench --help` against importing what it cannot do without."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

REPEATS = 9


def main() -> None:
    """Print `start-up: ratio` (target: at most 2)."""
    baseline = [sys.executable, "-c", "import click, numpy"]
    ours = [sys.executable, "-m", "dpbench", "--help"]
    for command in (baseline, ours):
        seconds(command)  # warm the file cache
    pairs = [(seconds(ours), seconds(baseline)) for _ in range(REPEATS)]
    ratio = statistics.median(a / b for a, b in pairs)
    print(f"start-up, dpbench --help over import click, numpy: {ratio:.2f}")


def seconds(command: list[str]) -> float:
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
