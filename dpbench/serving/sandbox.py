"""A stranger's code in a sandbox: namespaces, no network, an empty environment, nothing to write, bounded resources.

The program is bubblewrap; without it nothing is run. What comes back comes over a file descriptor of its own, in frames
whose sizes are known before; nothing that the code prints is read. It is data for the receiver to judge, never a
verdict.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

MEMORY = 8 << 30  # bytes of address space
WRITTEN, FILES = 16 << 20, 256  # bytes of a file, open files
SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin")  # read only; no /etc, no home
LAST_BITS = ("OPENBLAS_CORETYPE", "MKL_CBWR")  # which kernels linear algebra takes, and so how it rounds
SHOWN_FOLDER = "/tmp/given"  # where the sandbox shows the folder that it is given
NONE = "no sandbox (bubblewrap) works here"


@dataclass(frozen=True)
class Limits:
    """Seconds of the processor, and of the clock, for all tasks together."""

    seconds: int
    wall: int


@functools.cache
def at_hand() -> str | None:
    """The path of bubblewrap, None where it does not work."""
    program = shutil.which("bwrap")
    return program if program and _works(program) else None


def _works(program: str) -> bool:
    try:
        tried = subprocess.run([*_bubblewrap(program, Path("/")), "true"], capture_output=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return False
    return tried.returncode == 0


def _shown() -> tuple[list[str], dict[str, str]]:
    """The folders that the code can read, beside its own, and its whole environment."""
    home = Path(__file__).resolve().parent.parent.parent
    prefixes = [Path(sys.prefix), Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve()]
    code = [Path(entry).resolve() for entry in sys.path if entry and Path(entry).is_dir()]
    # packages alone: the folder that somebody works in may be on the path too, with the secret of the copies in it
    code = [one for one in code if one.name == "site-packages" or any(one.is_relative_to(each) for each in prefixes)]
    folders = dict.fromkeys([*SYSTEM, *map(str, prefixes), *map(str, code), str(home / "dpbench")])
    blas = {name: os.environ[name] for name in LAST_BITS if name in os.environ}
    path = os.pathsep.join([*map(str, [home, *code]), f"{SHOWN_FOLDER}/code"])  # an archive's own packages, last
    return list(folders), {
        **blas, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "HOME": "/tmp", "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1", "PATH": "/usr/bin:/bin", "DPBENCH_DATA": "/tmp/none",
    }  # fmt: skip


def _bubblewrap(program: str, folder: Path) -> list[str]:
    """What stands before a command that is to run in the sandbox, in `folder`, which it can read and not write."""
    folders, environment = _shown()
    words = [program, "--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL"]
    words += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]  # first: dpbench itself may lie below /tmp
    for path in folders:
        words += ["--ro-bind-try", path, path]
    if folder != Path("/"):
        words += ["--ro-bind", str(folder), SHOWN_FOLDER, "--chdir", SHOWN_FOLDER]
    for name, value in environment.items():
        words += ["--setenv", name, value]
    return words


def start(command: list[str], folder: Path, limits: Limits, pipes: tuple[int, ...]) -> subprocess.Popen[bytes]:
    """A process in `folder` that has these pipes and nothing else, in the sandbox; in none where none works here."""
    program = at_hand()
    if program is None:
        environment = _shown()[1] | {"HOME": str(folder)}
    else:
        command, environment = [*_bubblewrap(program, folder), *command], {}
    return subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        pass_fds=pipes, env=environment, preexec_fn=functools.partial(_limit, limits.seconds),
    )  # fmt: skip


def _limit(seconds: int) -> None:
    import resource

    limits = {"CPU": seconds, "AS": MEMORY, "FSIZE": WRITTEN, "CORE": 0, "NOFILE": FILES}
    for name, most in limits.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))
