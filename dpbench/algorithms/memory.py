"""Peak memory of dp-newton's eigenvalue modification, measured in a process of its own (Ganesh et al. 2023, C.7).

`python -m dpbench.algorithms.memory clip` reads one d × d matrix as .npy from standard input and prints, in bytes, the
resident memory before H̃⁻¹g is computed and its peak while it is.
"""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import numpy as np

PROC = Path("/proc/self")


def peak_of_modification(H: np.ndarray, modification: str) -> tuple[int, int]:
    """(resident before, peak while) H (d, d) is modified and solved with, in bytes, in a fresh process."""
    buffer = io.BytesIO()
    np.save(buffer, H)
    child = subprocess.run(
        [sys.executable, "-m", __name__, modification], input=buffer.getvalue(), capture_output=True, check=True
    )
    before, peak = map(int, child.stdout.split())
    return before, peak


def _resident_now() -> int:
    """Resident memory; where the system does not tell, its peak so far."""
    status = PROC / "status"
    return _field(status, "VmRSS") if status.exists() else _resident_peak()


def _resident_peak() -> int:
    status = PROC / "status"
    if status.exists():
        return _field(status, "VmHWM")
    import resource  # not on every system

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def _field(status: Path, name: str) -> int:
    (line,) = (line for line in status.read_text().splitlines() if line.startswith(name + ":"))
    return 1024 * int(line.split()[1])


def _main() -> None:
    from dpbench.algorithms.newton import SOLVE

    solve = SOLVE[sys.argv[1]]
    H = np.load(io.BytesIO(sys.stdin.buffer.read()))[None]
    g, lambda0 = np.ones((1, H.shape[1])), np.full(1, 1e-3)
    solve(np.eye(2)[None], np.ones((1, 2)), lambda0)  # loads LAPACK, so that only the work itself is counted
    if (PROC / "clear_refs").exists():
        (PROC / "clear_refs").write_text("5")  # forget the peak of what came before
    before = _resident_now()
    solve(H, g, lambda0)
    print(before, _resident_peak())


if __name__ == "__main__":
    _main()
