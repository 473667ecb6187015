"""What a guarantee for the bytes released costs: exact fits against float64 ones, and the noise against NumPy's.

Fits are taken in turns and timed in processor time, all of a fit included: the data's check or repair, the grid, the
iterations, both accountants. Of each the least time counts, as what else runs on the machine only adds. A ratio above 1
says that exact is slower.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

import dpbench
from dpbench.privacy import exact_sampling
from dpbench.privacy.exact_sampling import SystemBits

SHAPES = ((45_222, 105), (1_000_000, 20))  # adult with an intercept; many rows of few columns
METHODS = (("dp-gd", {"T": 100}), ("objpert", {}))


def main(rounds: int = 5) -> None:
    """Print `name: ratio` lines."""
    with threadpool_limits(1):
        for n, d in SHAPES:
            rng = np.random.default_rng(0)
            X = rng.standard_normal((n, d))
            X /= np.sqrt(np.einsum("ij,ij->i", X, X))[:, None]
            y = np.where(X[:, 0] + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
            for name, settings in METHODS:
                call = {"algorithm": name, "epsilon": 1.0, "delta": 1e-8, **settings}
                exact, plain = in_turns(
                    lambda: dpbench.fit(X, y, arithmetic="bytes", **call),  # noqa: B023
                    lambda: dpbench.fit(X, y, arithmetic="real", **call),  # noqa: B023
                    rounds,
                )
                print(f"exact over plain fit, {name}, {n} x {d}: {exact / plain:.2f}  ({exact:.3f} s / {plain:.3f} s)")
        bits, generator = SystemBits(), np.random.default_rng(0)
        for d in (100, 1000, 10_000):
            exact, plain = in_turns(
                lambda: [exact_sampling.normal(2.0**22, d, bits) for _ in range(200)],  # noqa: B023
                lambda: [generator.standard_normal(d) for _ in range(200)],  # noqa: B023
                rounds,
            )
            print(f"exact over NumPy's noise, d = {d}: {exact / plain:.1f}  ({exact / 200 * 1e6:.0f} µs a release)")


def in_turns(first: Callable[[], object], second: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Least processor seconds of each, after one unmeasured call."""
    times: tuple[list[float], list[float]] = ([], [])
    first(), second()
    for _ in range(rounds):
        for function, found in zip((first, second), times, strict=True):
            gc.collect()
            begin = time.process_time()
            function()
            found.append(time.process_time() - begin)
    return min(times[0]), min(times[1])


if __name__ == "__main__":
    main()
