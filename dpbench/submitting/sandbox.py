"""A stranger's code in a sandbox: bubblewrap's namespaces, no network, an empty environment, bounded resources.

What comes back comes over a file descriptor of its own, in frames whose sizes are known before; nothing that the code
prints is read. It is data for the receiver to judge, never a verdict.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

MEMORY = 8 << 30  # bytes of address space
LARGEST = 64 << 20  # bytes of one frame
SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin")  # read only; no /etc, no home
NONE = "no sandbox (bubblewrap) works here"


class Frame(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the code made of one task. W: float64, row by row; settings: those it ran at; error: one line, or ""."""

    task: int
    W: bytes = b""
    settings: str = "{}"
    releases: list[dict[str, Any]] = []
    seconds: float = 0.0
    error: str = ""


@dataclass(frozen=True)
class Limits:
    """Seconds of the processor, and of the clock, for all tasks together."""

    seconds: int
    wall: int


@functools.cache
def bubblewrap() -> str:
    """The path of a bwrap that works here, "" without one."""
    found = shutil.which("bwrap") or ""
    if found:
        try:
            tried = subprocess.run([*_command(found, Path("/")), "true"], capture_output=True, timeout=20)
        except (OSError, subprocess.SubprocessError):
            return ""
        return found if tried.returncode == 0 else ""
    return ""


def _command(bwrap: str, folder: Path) -> list[str]:
    """What stands before a command that is to run in the sandbox, in `folder`, which it can read and not write."""
    home = Path(__file__).resolve().parent.parent.parent
    code = [Path(entry).resolve() for entry in sys.path if entry and Path(entry).is_dir()]
    prefixes = [Path(sys.prefix), Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve()]
    bound = dict.fromkeys([*map(str, prefixes), *(str(each) for each in code if each != home), str(home / "dpbench")])
    words = [bwrap, "--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL"]
    words += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]  # first: dpbench itself may lie below /tmp
    for path in [*SYSTEM, *bound]:
        words += ["--ro-bind-try", path, path]
    if folder != Path("/"):
        words += ["--ro-bind", str(folder), "/tmp/given", "--chdir", "/tmp/given"]
    path = os.pathsep.join([str(home), *(str(each) for each in code if each != home)])
    for name, value in {
        "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "HOME": "/tmp", "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1", "PATH": "/usr/bin:/bin", "DPBENCH_DATA": "/tmp/none",
    }.items():  # fmt: skip
        words += ["--setenv", name, value]
    return words


def frames(folder: Path, limits: Limits) -> Iterator[Frame]:
    """Run `dpbench.submitting.harness` on the tasks in `folder`, in the sandbox; what comes back, as it comes.

    It ends where the code ends, for whatever reason; a frame that is none ends it too.
    """
    read, write = os.pipe()
    command = [*_command(bubblewrap(), folder), sys.executable, "-m", "dpbench.submitting.harness", str(write)]
    with (folder.parent / "said").open("wb") as said:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, pass_fds=(write,), env={},
            preexec_fn=functools.partial(_limit, limits.seconds),
        )  # fmt: skip
    os.close(write)
    timer = threading.Timer(limits.wall, process.kill)
    timer.start()
    try:
        with os.fdopen(read, "rb") as pipe:
            while (size := int.from_bytes(pipe.read(4), "big")) and size <= LARGEST:
                try:
                    yield msgspec.msgpack.decode(pipe.read(size), type=Frame)
                except msgspec.DecodeError:
                    return
    finally:
        timer.cancel()
        process.kill()
        process.wait()


def _limit(seconds: int) -> None:
    import resource

    limits = {"CPU": seconds, "AS": MEMORY, "FSIZE": 16 << 20, "CORE": 0, "NOFILE": 256}
    for name, most in limits.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))


Runs = Callable[[Path, Limits], Iterator[Frame]]
