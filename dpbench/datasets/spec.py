"""What a data set is: where its files come from, what they must hold, how they become (X, y)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

Raw: TypeAlias = Mapping[str, Path]  # name of a raw file -> where it lies
Arrays: TypeAlias = tuple[Any, np.ndarray]  # X (n, d), dense or CSR; y (n,)
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
    the arrays are to the last digit is pinned beside the specs: see ``pins``.
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
    licence: str = ""
    citation: str = ""
    version: int = 1

    @property
    def versioned(self) -> str:
        """The name with the version of the recipe: what prepared arrays are kept, and pinned, under."""
        return f"{self.name}-v{self.version}"

    @property
    def synthetic(self) -> bool:
        """Drawn from a fixed seed, or bundled with a dependency: always available."""
        return not self.files
