"""Where a run was made: what its row says of the interpreter, the libraries and the machine."""

from __future__ import annotations

import functools
import os
import platform
import re
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path


@functools.cache
def environment() -> str:
    """One line, e.g. "Python 3.11.7, numpy 2.4.1, scipy 1.17.1; Linux x86_64; AMD EPYC 7B13, 2 CPUs"."""
    names = ["numpy", "scipy", "dp-accounting"] + ["numba"] * (find_spec("numba") is not None)  # numba: for speed
    libraries = ", ".join(f"{name} {metadata.version(name)}" for name in names)
    system = f"{platform.system()} {platform.machine()}"
    return f"Python {platform.python_version()}, {libraries}; {system}; {_processor()}, {os.cpu_count()} CPUs"


def machine() -> str:
    """What a run's seconds depend on, e.g. "AMD EPYC 7B13, 2 CPUs, 64 GB"; without the memory where nobody says it."""
    try:
        memory = f", {os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9:.0f} GB"
    except (AttributeError, ValueError, OSError):
        memory = ""
    return f"{_processor()}, {os.cpu_count()} CPUs{memory}"


def _processor() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or "processor not known"
