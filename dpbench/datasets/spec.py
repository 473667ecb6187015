"""What a data set is: where its files come from, what they must hold, how they become (X, y).

Raw files may lie compressed or not, under either name: they are known by their digests.
"""

from __future__ import annotations

import bz2
import functools
import gzip
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias

import msgspec

from dpbench.files import read_toml

Raw: TypeAlias = Mapping[str, Path]  # name of a raw file -> where it lies
Arrays: TypeAlias = tuple[Any, ...]  # X (n, d), dense or CSR; y (n,); and `whose` (n,), where there are `persons`
Task: TypeAlias = Literal["binary", "regression"]


@dataclass(frozen=True)
class RawFile:
    """A file as its publisher ships it.

    ``name`` is the upstream name; a copy with ``.gz`` or ``.bz2`` added or taken away is the same file.
    ``folder`` groups the files of one publisher in the cache. ``sources`` are URLs, tried in order: of the
    file itself, of a zip or tar archive that holds it, or ``openml:ID``. ``sha256`` lists the accepted
    digests, of the file as it lies or of its uncompressed content, the publisher's own first. ``pinned`` says
    that any other digest is an error; where the publisher's digest is not known to us it is False, and
    ``rows`` (non-empty lines) and then the content of the prepared arrays judge.
    """

    name: str
    folder: str
    sources: tuple[str, ...] = ()
    sha256: tuple[str, ...] = ()
    pinned: bool = True
    rows: int | None = None

    def __post_init__(self) -> None:
        if self.pinned and not self.sha256:
            raise ValueError(f"{self.name}: a pinned file needs a sha256")


@dataclass(frozen=True, eq=False)
class DatasetSpec:
    """One data set.

    ``prepare`` maps the paths of the raw files (by ``RawFile.name``) to ``(X, y)``: X float64 of shape (rows,
    columns), a NumPy array or a scipy sparse array; y float64 of shape (rows,), labels ±1 if ``task`` is
    "binary". Raise ``version`` whenever it gives other arrays than before. ``rows``, ``columns`` and, for a
    binary task, ``classes`` (label -> rows of it) are checked against what it returns; None is not checked. What
    the arrays are to the last digit is pinned beside the specs: see ``cache``. ``persons``: how many there are, each
    of whom may have several rows; ``prepare`` then gives whose they are, from 0, as a third array.
    ``recipe`` says in words what it does.
    """

    name: str
    title: str
    prepare: Callable[[Raw], Arrays]
    rows: int | None
    columns: int | None
    recipe: str
    files: tuple[RawFile, ...] = ()
    task: Task = "binary"
    classes: Mapping[int, int] | None = None
    persons: int | None = None
    licence: str = ""
    citation: str = ""
    version: int = 1

    @property
    def versioned(self) -> str:
        """The name with the version of the recipe: what prepared arrays are kept, and pinned, under."""
        return f"{self.name}-v{self.version}"

    @property
    def count(self) -> int | None:
        """n: of those who count once, persons or rows."""
        return self.persons or self.rows

    @property
    def synthetic(self) -> bool:
        """Drawn from a fixed seed, or bundled with a dependency: always available."""
        return not self.files


@functools.cache
def _facts() -> dict[str, Any]:
    return read_toml(Path(__file__).with_name("sets.toml"))


def described(recipes: Mapping[str, Callable[[Raw], Arrays]]) -> list[DatasetSpec]:
    """The data sets of these names by these recipes, with what `sets.toml` says of them."""
    specs = []
    for name, prepare in recipes.items():
        facts: dict[str, Any] = {"like": name}
        while like := facts.pop("like", None):
            facts = _facts()[like] | facts
        listed = [{"name": file} | _facts()["files"][file] for file in facts.pop("files", ())]
        files = msgspec.convert(listed, tuple[RawFile, ...])
        classes = {int(label): count for label, count in facts.pop("classes", {}).items()} or None
        specs.append(DatasetSpec(name, prepare=prepare, files=files, classes=classes, **facts))
    return specs


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
    stream: BinaryIO = by_suffix.get(compression(path), open)(path, "rb")
    return stream


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
