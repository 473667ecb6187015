"""`make bench`: every measurement, one `name: ratio` per line, then the table of iterations.

`python -m benchmarks dp-gd dp-newton` measures the iterations of these alone and writes nothing.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # before NumPy: idle threads spin
    os.environ.setdefault(variable, "1")

RESULTS = Path(__file__).parent / "results"


def main(names: list[str]) -> None:
    from benchmarks import (
        compiled_bench,
        exact_bench,
        grid_bench,
        machine,
        memory_bench,
        problems_bench,
        startup_bench,
        stream_bench,
        tables,
        time_to_loss,
    )
    from benchmarks.iteration_bench import Line, lines

    before = machine.load()
    if not names:
        for bench in (
            startup_bench,
            problems_bench,
            compiled_bench,
            grid_bench,
            memory_bench,
            stream_bench,
            exact_bench,
            time_to_loss,
        ):
            bench.main()
    roofline = machine.roofline()
    print(f"dgemm {roofline.flops / 1e9:.1f} GFLOP/s, memory read {roofline.bandwidth / 1e9:.1f} GB/s", flush=True)
    found: list[Line] = []
    for line in lines(roofline, names):
        if isinstance(line, Line):
            found.append(line)
            print("  ".join(tables.cells(line)), flush=True)
        else:
            print(line, flush=True)
    print("\n" + "\n".join(tables.aligned([list(tables.HEADER), *map(tables.cells, found)])))
    if not names:
        tables.save(RESULTS, found, machine.describe(), roofline, (before, machine.load()))
        print(f"\nwritten to {RESULTS}/iterations.md, .csv, .json")


if __name__ == "__main__":
    main(sys.argv[1:])
