"""Peak memory of one call, measured in a process of its own.

`python -m dpbench.memory` reads a pickled call from standard input and prints, in bytes, the resident memory before it
and its peak while it runs.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

PROC = Path("/proc/self")


def peak_of(function: Callable[..., Any], *arguments: Any, warm_up: tuple[Any, ...]) -> tuple[int, int]:
    """(resident before, peak while) `function(*arguments)` runs, in bytes, in a fresh process.

    function: of a module, so that it can be pickled. warm_up: arguments of a call made first, that loads libraries.
    """
    call = pickle.dumps((function, arguments, warm_up))
    child = subprocess.run([sys.executable, "-m", __name__], input=call, capture_output=True, check=True)
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
    function, arguments, warm_up = pickle.load(sys.stdin.buffer)
    function(*warm_up)
    if (PROC / "clear_refs").exists():
        (PROC / "clear_refs").write_text("5")  # forget the peak of what came before
    before = _resident_now()
    function(*arguments)
    print(before, _resident_peak())


if __name__ == "__main__":
    _main()
