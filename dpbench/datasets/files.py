"""Raw files on disk: compressed or not, their digests, and writing them whole or not at all."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

SUFFIXES = {b"\x1f\x8b": (".gz", gzip.open), b"BZ": (".bz2", bz2.open)}
CHUNK = 1 << 20
STALE = 3600.0  # seconds: older temporary files belong to no running process


def stem(name: str) -> str:
    """``name`` without a compression suffix.

    >>> stem("ijcnn1.t.bz2")
    'ijcnn1.t'
    """
    return name.removesuffix(".gz").removesuffix(".bz2")


def variants(name: str) -> list[str]:
    """The names under which the same file may lie, its own first."""
    return list(dict.fromkeys([name, stem(name), f"{stem(name)}.gz", f"{stem(name)}.bz2"]))


def compression(path: Path) -> str:
    """The suffix that belongs to the first bytes of a file: "", ".gz" or ".bz2"."""
    with open(path, "rb") as stream:
        return SUFFIXES.get(stream.read(2), ("", None))[0]


def opened(path: Path) -> BinaryIO:
    """The uncompressed content of a file, as a binary stream."""
    by_suffix = dict(SUFFIXES.values())
    return by_suffix.get(compression(path), open)(path, "rb")


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: stream.read(CHUNK), b"")


def sha256(path: Path, *, uncompressed: bool = False) -> str:
    digest = hashlib.sha256()
    with opened(path) if uncompressed else open(path, "rb") as stream:
        for chunk in _chunks(stream):
            digest.update(chunk)
    return digest.hexdigest()


def count_rows(path: Path) -> int:
    """Non-empty lines of the uncompressed content."""
    with opened(path) as stream:
        return sum(1 for line in stream if line.strip())


def find(folders: list[Path], name: str) -> Iterator[Path]:
    """The files that may be ``name``, in the order of the folders."""
    for folder in folders:
        for variant in variants(name):
            if (folder / variant).is_file():
                yield folder / variant


def sweep(folder: Path) -> None:
    """Remove the temporary files and folders that a killed process left."""
    for leftover in folder.glob(".*.tmp"):
        with suppress(OSError):  # another process may be sweeping too
            if time.time() - leftover.stat().st_mtime > STALE:
                shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()


@contextmanager
def temporary_beside(path: Path) -> Iterator[Path]:
    """A temporary file in the folder of ``path``, gone at the end whatever happens: rename it to keep it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    sweep(path.parent)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}-", suffix=".tmp", dir=path.parent)
    os.close(handle)
    os.chmod(name, 0o644)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)
