"""What numba (the extra `fast`) compiles against the NumPy that does the same without it, on random data.

Each line is the processor time of NumPy over that of the compiled loop, the two taken in turns, one BLAS thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from unittest import mock

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from dpbench.problems import Problem, fast_rows, rows
from dpbench.problems import problem as columns

ROUNDS = 3


def main() -> None:
    """Print `name: ratio` lines; one line where numba is not installed."""
    if fast_rows.kernels() is None:
        print("compiled loops: numba is not installed (pip install '.[fast]')")
        return
    rng = np.random.default_rng(0)
    with threadpool_limits(1):
        n, d = 495_141, 54  # covertype12's size, and its share of nonzeros
        X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 12 / 54)
        problem = Problem(X, rng.choice([-1.0, 1.0], n))
        for k in (5, 15):
            W = rng.standard_normal((k, d))
            compare(f"Hessians, {n} x {d}, a fifth nonzero, k = {k}", lambda W=W, p=problem: p.hessian(W))
        clip = np.tile(np.logspace(-4, 6, 50), 10)
        for name, problem in {
            "1000 x 1000": Problem(rng.standard_normal((1000, 1000)), rng.standard_normal(1000), loss="squared"),
            "800 x 88119, sparse": Problem(
                sparse.random_array((800, 88_119), density=0.009, format="csr", rng=rng), rng.choice([-1.0, 1.0], 800)
            ),
        }.items():
            W = 0.01 * rng.standard_normal((500, problem.d))
            compare(f"clipped gradients, {name}, k = 500", lambda W=W, p=problem: p.clipped_gradient(W, clip))


def compare(name: str, function: Callable, rounds: int = ROUNDS) -> float:
    """Time `function` with and without the compiled loops; print and return the ratio."""
    function()  # compiles
    fast, slow = [], []
    for _ in range(rounds):
        fast.append(seconds_of(function))
        with mock.patch.object(rows, "kernels", _none), mock.patch.object(columns, "kernels", _none):
            slow.append(seconds_of(function))
    mine, theirs = np.median(fast), np.median(slow)
    print(f"{name}: {theirs / mine:.1f}  ({1e3 * theirs:.0f} ms / {1e3 * mine:.0f} ms)", flush=True)
    return theirs / mine


def _none() -> None:
    """`fast_rows.kernels` without numba."""


def seconds_of(function: Callable) -> float:
    """Processor time of one call."""
    begin = time.process_time()
    function()
    return time.process_time() - begin


if __name__ == "__main__":
    main()
