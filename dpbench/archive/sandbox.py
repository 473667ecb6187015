"""A stranger's code in a sandbox: namespaces, no network, an empty environment, nothing to write, bounded resources.

By bubblewrap; where it does not work, in a container of podman or docker, of an image without a file, on which the same
folders are mounted to read as bubblewrap shows. What comes back comes over a file descriptor of its own, in frames
whose sizes are known before; nothing that the code prints is read. It is data for the receiver to judge, never a
verdict.
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec

MEMORY = 8 << 30  # bytes of address space; of a container, of memory
LARGEST = 64 << 20  # bytes of one frame
WRITTEN, FILES, PROCESSES = 16 << 20, 256, 256  # bytes of a file, open files, processes of a container
SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin")  # read only; no /etc, no home
IMAGE = "localhost/dpbench-nothing:1"  # made here, of an archive without a file: nothing is fetched
GIVEN = "/tmp/given"  # where the sandbox shows the folder that it is given
NONE = "no sandbox (bubblewrap, podman or docker) works here"


class Frame(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the code made of one task.

    W: float64, row by row; settings: those it ran at; public: what it says that it takes from the data without paying;
    error: one line, or "".
    """

    task: int
    W: bytes = b""
    settings: str = "{}"
    public: str = ""
    releases: list[dict[str, Any]] = []
    seconds: float = 0.0
    error: str = ""


@dataclass(frozen=True)
class Limits:
    """Seconds of the processor, and of the clock, for all tasks together."""

    seconds: int
    wall: int


class Sandbox(NamedTuple):
    """A program that works here: kind is bwrap, podman or docker."""

    kind: str
    program: str


@functools.cache
def at_hand() -> Sandbox | None:
    """The first that works here."""
    for kind in ("bwrap", "podman", "docker"):
        box = Sandbox(kind, shutil.which(kind) or "")
        if box.program and _works(box):
            return box
    return None


def _works(box: Sandbox) -> bool:
    try:
        if box.kind == "bwrap":
            tried = subprocess.run([*_bubblewrap(box, Path("/")), "true"], capture_output=True, timeout=20)
            return tried.returncode == 0
        there = subprocess.run([box.program, "image", "inspect", IMAGE], capture_output=True, timeout=60)
        if there.returncode:
            nothing = b"\0" * 10240  # as tar ends
            subprocess.run(
                [box.program, "import", "-", IMAGE], input=nothing, capture_output=True, timeout=60, check=True
            )
        code = "import os, sys; os.write(int(sys.argv[1]), b'here')"
        tried = subprocess.run(
            _container(box, "dpbench-try-" + secrets.token_hex(8), Path("/"), Limits(10, 30), ["-c", code]),
            capture_output=True, timeout=60,
        )  # fmt: skip
        return tried.returncode == 0 and tried.stdout == b"here"
    except (OSError, subprocess.SubprocessError):
        return False


def _shown() -> tuple[list[str], dict[str, str]]:
    """The folders that the code can read, beside its own, and its whole environment."""
    home = Path(__file__).resolve().parent.parent.parent
    prefixes = [Path(sys.prefix), Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve()]
    code = [Path(entry).resolve() for entry in sys.path if entry and Path(entry).is_dir()]
    # packages alone: the folder that somebody works in may be on the path too, with the secret of the copies in it
    code = [one for one in code if one.name == "site-packages" or any(one.is_relative_to(each) for each in prefixes)]
    folders = dict.fromkeys([*SYSTEM, *map(str, prefixes), *map(str, code), str(home / "dpbench")])
    path = os.pathsep.join([*map(str, [home, *code]), f"{GIVEN}/code"])  # an archive's own packages, last
    return list(folders), {
        "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "HOME": "/tmp", "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1", "PATH": "/usr/bin:/bin", "DPBENCH_DATA": "/tmp/none",
    }  # fmt: skip


def _bubblewrap(box: Sandbox, folder: Path) -> list[str]:
    """What stands before a command that is to run in the sandbox, in `folder`, which it can read and not write."""
    folders, environment = _shown()
    words = [box.program, "--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL"]
    words += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]  # first: dpbench itself may lie below /tmp
    for path in folders:
        words += ["--ro-bind-try", path, path]
    if folder != Path("/"):
        words += ["--ro-bind", str(folder), GIVEN, "--chdir", GIVEN]
    for name, value in environment.items():
        words += ["--setenv", name, value]
    return words


def _container(box: Sandbox, name: str, folder: Path, limits: Limits, python: list[str]) -> list[str]:
    """The command that runs `python` (its arguments, and a descriptor's number) in a container `name`, in `folder`.

    The descriptor is the container's standard output, as docker passes no other on; the shell has put it elsewhere
    before the interpreter begins, whose own goes to /dev/null.
    """
    folders, environment = _shown()
    words = [
        box.program, "run", "--rm", f"--name={name}", "--pull=never", "--network=none", "--log-driver=none",
        "--read-only", "--tmpfs=/tmp:rw,nosuid,nodev,size=64m", "--cap-drop=ALL",
        "--security-opt=no-new-privileges", "--security-opt=label=disable",
        f"--memory={MEMORY}", f"--memory-swap={MEMORY}", "--cpus=1", f"--pids-limit={PROCESSES}",
    ]  # fmt: skip
    # podman's root is, where it runs as a user, that user; docker's is the machine's
    words += [f"--user={os.getuid()}:{os.getgid()}"] if box.kind == "docker" else ["--read-only-tmpfs=false"]
    most = {"cpu": limits.seconds, "fsize": WRITTEN, "core": 0, "nofile": FILES, "nproc": PROCESSES}
    words += [f"--ulimit={one}={value}:{value}" for one, value in most.items()]
    shown = [(path, path) for path in folders if Path(path).exists()]
    shown += [(str(folder), GIVEN)] if folder != Path("/") else []
    words += [f"--mount=type=bind,src={src},dst={dst},readonly,bind-nonrecursive" for src, dst in shown]
    words += [f"--workdir={GIVEN}"] if folder != Path("/") else []
    inside = ["timeout", "--signal=KILL", str(limits.wall), "env", "-i"]
    inside += [f"{key}={value}" for key, value in environment.items()]
    moved = 'exec 3>&1 >/dev/null 2>&1 </dev/null; exec "$@"'
    return [*words, IMAGE, "/bin/sh", "-c", moved, "sh", *inside, sys.executable, *python, "3"]


def frames(folder: Path, limits: Limits) -> Iterator[Frame]:
    """Run `dpbench.archive.harness` on the tasks in `folder`, in the sandbox; what comes back, as it comes.

    It ends where the code ends, for whatever reason; a frame that is none ends it too.
    """
    box = at_hand()
    assert box is not None
    name = "dpbench-" + secrets.token_hex(8)
    process, pipe = _started(box, name, folder, limits, ["-m", "dpbench.archive.harness"])
    timer = threading.Timer(limits.wall, _ended, [box, name, process])
    timer.start()
    try:
        with pipe:
            while (size := int.from_bytes(pipe.read(4), "big")) and size <= LARGEST:
                try:
                    yield msgspec.msgpack.decode(pipe.read(size), type=Frame)
                except msgspec.DecodeError:
                    return
    finally:
        timer.cancel()
        _ended(box, name, process)


def _started(
    box: Sandbox, name: str, folder: Path, limits: Limits, python: list[str]
) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    """The process that runs `python` in the sandbox, and what can be read of its descriptor."""
    if box.kind != "bwrap":
        command = _container(box, name, folder, limits, python)
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert process.stdout is not None
        return process, process.stdout
    read, write = os.pipe()
    try:
        process = subprocess.Popen(
            [*_bubblewrap(box, folder), sys.executable, *python, str(write)], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=(write,), env={},
            preexec_fn=functools.partial(_limit, limits.seconds),
        )  # fmt: skip
    finally:
        os.close(write)
    return process, os.fdopen(read, "rb")


def _ended(box: Sandbox, name: str, process: subprocess.Popen[bytes]) -> None:
    """Nothing of it runs any more: a container outlives the program that asked for it."""
    process.kill()
    if box.kind != "bwrap":
        with contextlib.suppress(OSError, subprocess.SubprocessError):  # its own clock ends it too
            subprocess.run([box.program, "rm", "--force", name], capture_output=True, timeout=120)
    process.wait()


def _limit(seconds: int) -> None:
    import resource

    limits = {"CPU": seconds, "AS": MEMORY, "FSIZE": WRITTEN, "CORE": 0, "NOFILE": FILES}
    for name, most in limits.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))


Runs = Callable[[Path, Limits], Iterator[Frame]]
