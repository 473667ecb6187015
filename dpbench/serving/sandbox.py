"""A stranger's code in a sandbox: namespaces, no network, an empty environment, nothing to write, bounded resources.

The program is bubblewrap; where it does not work, limits and the filter of system calls are all that there is.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import platform
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

MEMORY = 8 << 30  # bytes of address space
WRITTEN, FILES = 16 << 20, 256  # bytes of a file, open files
SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin")  # read only; no /etc, no home
LAST_BITS = ("OPENBLAS_CORETYPE", "MKL_CBWR")  # which kernels linear algebra takes, and so how it rounds
SHOWN_FOLDER = "/tmp/given"  # where the sandbox shows the folder that it is given


class Limits(NamedTuple):
    """Seconds of the processor, and of the clock, for all tasks together."""

    seconds: int
    wall: int


@functools.cache
def at_hand() -> str | None:
    """The path of bubblewrap; None where it does not work, or `alone` does not in it."""
    if program := shutil.which("bwrap"):
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            command = [*_bubblewrap(program, Path("/")), sys.executable, "-I", __file__]
            subprocess.run(command, capture_output=True, timeout=20, check=True)
            return program
    return None


def _shown() -> tuple[list[str], dict[str, str]]:
    """The folders that the code can read, beside its own, and its whole environment."""
    home = Path(__file__).resolve().parent.parent.parent
    prefixes = [Path(sys.prefix), Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve()]
    code = [Path(entry).resolve() for entry in sys.path if entry and Path(entry).is_dir()]
    # packages alone: the folder that somebody works in may be on the path too, with the secret of the copies in it
    code = [one for one in code if one.name == "site-packages" or any(one.is_relative_to(each) for each in prefixes)]
    folders = dict.fromkeys([*SYSTEM, *map(str, prefixes), *map(str, code), str(home / "dpbench")])
    blas = {name: os.environ[name] for name in LAST_BITS if name in os.environ}
    path = os.pathsep.join(map(str, [home, *code]))
    return list(folders), {
        **blas, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "HOME": "/tmp", "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1", "PATH": "/usr/bin:/bin", "DPBENCH_DATA": "/tmp/none",
    }  # fmt: skip


def _bubblewrap(program: str, folder: Path) -> list[str]:
    """What stands before a command that is to run in the sandbox, in `folder`, which it can read and not write."""
    folders, environment = _shown()
    words = [program, "--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL"]
    # First, as dpbench itself may lie below /tmp.
    words += ["--proc", "/proc", "--dev", "/dev", "--size", str(WRITTEN), "--tmpfs", "/tmp"]
    for path in folders:
        words += ["--ro-bind-try", path, path]
    # What may be written is small, and nothing else may: it is memory, beside that of the process.
    words += ["--size", str(WRITTEN), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]
    if folder != Path("/"):
        words += ["--ro-bind", str(folder), SHOWN_FOLDER, "--chdir", SHOWN_FOLDER]
    for name, value in environment.items():
        words += ["--setenv", name, value]
    return [*words, "--remount-ro", "/"]


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
        kind = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(kind)[1]
        # A limit of the user's own, as of ulimit, cannot be raised.
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))


# Of the kernel's interface: the numbers of calls, by machine (audit.h), and what a filter answers. First those that
# make a process: clone; fork, vfork, execve, execveat, clone3. Then what outlives a run, is seen by others beside it,
# or is memory that no limit counts: unshare (so, mounts), io_uring_setup; add_key, request_key, keyctl; shmget, semget,
# msgget, mq_open; flock; memfd_create. Last what reaches into another process, such as the receiver's where no sandbox
# hides it: kill, tkill, tgkill, rt_sigqueueinfo, rt_tgsigqueueinfo, pidfd_open; ptrace, process_vm_readv and _writev.
CALLS = {
    "x86_64": (0xC000003E, 56, (57, 58, 59, 322, 435,
                                272, 425, 248, 249, 250, 29, 64, 68, 240, 73, 319,
                                62, 200, 234, 129, 297, 434, 101, 310, 311)),
    "aarch64": (0xC00000B7, 220, (221, 281, 435,
                                  97, 425, 217, 218, 219, 194, 190, 186, 180, 32, 279,
                                  129, 130, 131, 138, 240, 434, 117, 270, 271)),
}  # fmt: skip
ALLOW, REFUSE = 0x7FFF0000, 0x00050000  # the latter with the number of an error
PERMISSION, UNKNOWN = 1, 38  # EPERM; ENOSYS, at which libraries fall back from clone3 to clone, from a memfd to a file
FALLING_BACK = (435, 319, 279)
THREAD = 0x00010000  # the flag of clone that makes a thread


def alone() -> bool:
    """Whether this process can make no other from now on, nor become another program: so a limit on it is on all.

    Nor can it leave anything with the kernel (keys, memory and queues by number, locks on files that other runs see),
    signal another process or read its memory.

    By a filter of system calls (seccomp), on Linux; False where there is none. It holds for code that comes later too.
    """
    if sys.platform != "linux" or platform.machine() not in CALLS:
        return False
    architecture, clone, others = CALLS[platform.machine()]
    load, equal, least, masked, answer = 0x20, 0x15, 0x35, 0x45, 0x06
    program = [(load, 0, 0, 4), (equal, 1, 0, architecture), (answer, 0, 0, REFUSE | PERMISSION), (load, 0, 0, 0)]
    program += [(least, 0, 1, 0x40000000), (answer, 0, 0, REFUSE | PERMISSION)]  # another set of numbers for the same
    for number in others:
        error = UNKNOWN if number in FALLING_BACK else PERMISSION
        program += [(equal, 0, 1, number), (answer, 0, 0, REFUSE | error)]
    program += [(equal, 0, 3, clone), (load, 0, 0, 16), (masked, 1, 0, THREAD), (answer, 0, 0, REFUSE | PERMISSION)]
    program += [(answer, 0, 0, ALLOW)]
    packed = b"".join(struct.pack("HBBI", *line) for line in program)
    code = ctypes.create_string_buffer(packed)
    header = struct.pack("HxxxxxxP", len(program), ctypes.addressof(code))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    filtered = ctypes.create_string_buffer(header)
    return bool(prctl(38, 1, 0, 0, 0) == 0 and prctl(22, 2, filtered, 0, 0) == 0)  # no new privileges; the filter


if __name__ == "__main__":
    sys.exit(not alone())
