"""What the time of a fit tells of one row: processor time on neighbouring tables, with and without `timing="constant"`.

`python -m benchmarks.timing_bench` writes results/timing.csv. Fits on two tables are made in random order, and their
times are held against each other. auc: how often a fit on the second takes longer than one on the first, over all
pairs of them: 0.5 tells nothing, 0 or 1 all. error: its standard error where time tells nothing.
"""

from __future__ import annotations

import csv
import gc
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import mannwhitneyu
from threadpoolctl import threadpool_limits

import dpbench
from dpbench import files

RESULTS = Path(__file__).parent / "results" / "timing.csv"
N, D, FITS = 2_000, 20, 250
METHODS: tuple[tuple[str, dict[str, Any]], ...] = (("dp-gd", {"T": 20}), ("objpert", {}))
HEADER = ("method", "timing", "neighbours", "fits", "ms", "auc", "error")


def tables() -> dict[str, tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]]:
    """Pairs of tables that differ in their last row, and one that differs in all."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    X /= np.sqrt(np.einsum("ij,ij->i", X, X))[:, None]
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(N) > 0, 1.0, -1.0)

    def differing(row: np.ndarray, label: float) -> tuple[np.ndarray, np.ndarray]:
        A, b = X.copy(), y.copy()
        A[-1], b[-1] = row, label
        return A, b

    missing = X[-1].copy()
    missing[3] = np.nan
    plain = differing(X[-1], 1.0)
    return {
        "equal tables": (plain, plain),
        "the opposite row": (plain, differing(-X[-1], 1.0)),
        "a row beyond the bound": (plain, differing(1e6 * X[-1], 1.0)),
        "a missing value": (plain, differing(missing, 1.0)),
        "entries of 1e-310": (plain, differing(np.full(D, 1e-310), 1.0)),
        "every row another, to compare": (plain, (1e6 * X, np.where(X[:, 0] > 0, 1.0, -1.0))),
    }


def auc(pair: tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]], **call: Any) -> tuple[float, float]:
    """(area under the curve, median milliseconds of a fit)."""
    order = np.random.default_rng(1).permutation(np.repeat([0, 1], FITS))
    times: tuple[list[float], list[float]] = ([], [])
    gc.collect()
    gc.disable()
    for world in (0, 1, *order):
        begin = time.process_time_ns()
        dpbench.fit(*pair[world], epsilon=1.0, delta=1e-8, **call)
        times[world].append((time.process_time_ns() - begin) / 1e6)
    gc.enable()
    first, second = (one[1:] for one in times)
    return float(mannwhitneyu(second, first).statistic) / FITS**2, float(np.median(first + second))


def main() -> None:
    """Print a line a pair, and write them all."""
    rows, error = [], math.sqrt((2 * FITS + 1) / (12 * FITS**2))
    with threadpool_limits(1):
        for method, settings in METHODS:
            for timing in (None, "constant"):
                for words, pair in tables().items():
                    found, ms = auc(pair, algorithm=method, timing=timing, **settings)
                    numbers = str(2 * FITS), f"{ms:.2f}", f"{found:.3f}", f"{error:.3f}"
                    rows.append((method, timing or "", words, *numbers))
                    print("  ".join(rows[-1]), flush=True)
    with files.replacing(RESULTS) as staged, open(staged, "w", encoding="utf-8", newline="") as out:
        csv.writer(out, lineterminator="\n").writerows([HEADER, *rows])


if __name__ == "__main__":
    main()
