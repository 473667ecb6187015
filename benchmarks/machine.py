"""What the machine is and what it can do: its description, and the roofline of one core, measured in the same run."""

from __future__ import annotations

import os
import platform
import time
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dpbench.version import __version__


class Roofline(NamedTuple):
    """Best of several repetitions on one core: flop/s of dgemm and bytes/s read from memory."""

    flops: float
    bandwidth: float

    def seconds(self, flops: float, bytes_read: float) -> float:
        """The least time that this much arithmetic and memory traffic takes."""
        return max(flops / self.flops, bytes_read / self.bandwidth)


def describe() -> dict[str, str | int]:
    """Processor, cores, memory, BLAS and versions."""
    from threadpoolctl import threadpool_info

    blas = [f"{lib['internal_api']} {lib['version']} ({lib.get('architecture', '?')})" for lib in threadpool_info()]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 0,
        "memory": f"{memory / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "blas": ", ".join(sorted(set(blas))),
        **{name: version(name) for name in ("numpy", "scipy", "numba") if find_spec(name)},
        "dpbench": __version__,
    }


def load() -> float:
    """The system's load average of the last minute: above about 1, others were using the machine."""
    return os.getloadavg()[0]


def roofline(repeats: int = 5) -> Roofline:
    """dgemm at 1,500 x 1,500, and ddot over 160 MB, which no cache holds."""
    A = np.random.default_rng(0).standard_normal((1500, 1500))
    out = np.empty_like(A)
    a = np.ones(20_000_000)
    return Roofline(
        2 * 1500**3 / best(lambda: np.matmul(A, A, out=out), repeats), a.nbytes / best(lambda: a @ a, repeats)
    )


def best(function, repeats: int) -> float:
    """The shortest time of several calls, after one that does not count."""
    function()
    return min(seconds(function) for _ in range(repeats))


def seconds(function) -> float:
    """Processor time of a call on one thread: what others do meanwhile costs it caches and bandwidth, not its turn."""
    begin = time.process_time()
    function()
    return time.process_time() - begin


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        if names:
            return names[0]
    return platform.processor() or platform.machine()
