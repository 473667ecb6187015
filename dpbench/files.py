"""Files written whole or not at all, TOML, and the peak memory of a call.

Files and folders written whole or not at all, and TOML; what killed writers left is swept away.

Peak memory of one call, measured in a process of its own.

`python -m dpbench.files` reads a pickled call from standard input and prints, in bytes, the resident memory before it
and its peak while it runs.
"""

from __future__ import annotations

import errno
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from dpbench.errors import UserError

STALE = 3600.0  # seconds: older temporary files belong to no running process


def sweep(folder: Path) -> None:
    """Remove the temporary files and folders that a killed process left."""
    leftovers = list(folder.glob(".*.tmp"))
    if not leftovers:
        return
    with suppress(OSError), tempfile.TemporaryFile(dir=folder) as probe:
        now = os.fstat(probe.fileno()).st_mtime  # by the clock of the disk, which may be another machine's
        for leftover in leftovers:
            with suppress(OSError):  # another process may be sweeping too
                if now - leftover.stat().st_mtime > STALE:
                    shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()


@contextmanager
def temporary(path: Path) -> Iterator[Path]:
    """An empty file beside `path`, gone at the end whatever happens: rename it to keep it.

    In a folder that its owner alone may enter the file is its owner's alone too, whatever the umask.
    """
    if path.is_dir():  # told before the work, not by the renaming after it
        raise IsADirectoryError(errno.EISDIR, "is a folder; name a file in it")
    path.parent.mkdir(parents=True, exist_ok=True)
    sweep(path.parent)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}-", suffix=".tmp", dir=path.parent)
    os.close(handle)
    if path.parent.stat().st_mode & 0o077:
        os.chmod(name, 0o666 & ~umask())
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """An empty file beside `path` to write to; it takes its name at the end, unless an error is raised."""
    with temporary(path) as written:
        yield written
        os.replace(written, path)


def write(path: Path, text: str) -> None:
    """Write `text` as UTF-8: `path` has all of it or stays as it was."""
    with replacing(path) as written:
        written.write_text(text, encoding="utf-8")


def synchronise(path: Path) -> None:
    """Wait until the disk has a file's content, or a folder's names."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def umask() -> int:
    """What the user's umask takes away from the rights of new files."""
    mask = os.umask(0o077)  # it can only be read by setting it
    os.umask(mask)
    return mask


def private_folder(folder: Path) -> Path:
    """The folder, made if it is not there, which its owner alone may enter; OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    os.chmod(folder, 0o700)
    return folder


@contextmanager
def staging(target: Path, *, private: bool = False) -> Iterator[Path]:
    """An empty folder beside `target`, gone at the end whatever happens: move out of it what is to stay.

    private: its owner alone may enter it, whatever the umask.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    sweep(target.parent)
    folder = Path(tempfile.mkdtemp(prefix=f".{target.name}-", suffix=".tmp", dir=target.parent))
    try:
        if not private:
            os.chmod(folder, 0o777 & ~umask())
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def read_toml(source: str | os.PathLike[str]) -> dict[str, Any]:
    """The content of a TOML file; UserError, in one line, if it cannot be read or is not TOML."""
    if sys.version_info >= (3, 11):  # `tomllib` came with it
        import tomllib
    else:
        import tomli as tomllib
    if not isinstance(source, str | os.PathLike):  # a number would be an open file, which may be the terminal
        raise UserError(f"give the name of a TOML file, got {source!r}")
    try:
        with open(source, "rb") as file:
            content: dict[str, Any] = tomllib.load(file)
            return content
    except OSError as error:
        raise UserError(f"{source}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{source}: {error}") from None


T = TypeVar("T", str, bytes)


def written(content: T, out: str | os.PathLike[str] | None) -> T:
    """The content, as it is in the file `out`, if one is named; UserError where it cannot be written."""
    if out is not None:
        try:
            with replacing(Path(out)) as staged:
                staged.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        except OSError as error:
            raise UserError(f"{Path(out)}: {error.strerror}") from None
    return content


def writable(name: str, out: str | os.PathLike[str] | None) -> None:
    """UserError, which names the argument, where a file cannot be written; a missing folder is made, as by writing."""
    if out is not None:
        try:
            with temporary(Path(out)):
                pass
        except OSError as error:
            raise UserError(f"{name}: {Path(out)}: {error.strerror}") from None


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
