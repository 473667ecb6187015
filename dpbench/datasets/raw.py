"""Raw files on disk: compressed or not, their names and digests."""

from __future__ import annotations

import bz2
import gzip
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

SUFFIXES: dict[bytes, tuple[str, Callable[..., Any]]] = {b"\x1f\x8b": (".gz", gzip.open), b"BZ": (".bz2", bz2.open)}
CHUNK = 1 << 20


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
    found: BinaryIO = by_suffix.get(compression(path), open)(path, "rb")
    return found


def uncompressed(path: Path, file: BinaryIO) -> BinaryIO:
    """The same of a file that is open already, whose place tells how much of it was read."""
    reader = dict(SUFFIXES.values()).get(compression(path))
    return file if reader is None else reader(file, "rb")


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: stream.read(CHUNK), b"")


def sha256(path: Path, *, uncompressed: bool = False) -> str:
    """The hexadecimal digest of a file, or of what it holds compressed."""
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
