"""What a comparison leaves on the disk of somebody's data: prepared rows and exact scores; and its removal."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from dpbench.datasets import own
from dpbench.errors import UserError


def results_of(dataset: str, results: str | os.PathLike[str]) -> Path:
    """The folder of the finished runs on a data set that `own.keep` stored."""
    return Path(results) / "adhoc" / f"compare-{dataset}"


def forget(data: str | os.PathLike[str], *, results: str | os.PathLike[str] = "results") -> list[Path]:
    """Remove what `compare` kept of a file: its prepared rows, and the runs on them with their exact scores.

    Args:
        data: the file, which need not be there any more.
        results: the folder of all results, as of `compare`.

    Returns:
        The folders that are gone; none where nothing was kept.

    Raises:
        UserError: a folder cannot be removed.
    """
    gone = []
    # Folds and trials are copies of the file's rows as well, under the same source.
    for name in own.copies(data):
        gone.append(own.forget(name))
        scores = results_of(name, results)
        if scores.is_dir():
            try:
                shutil.rmtree(scores)
            except OSError as error:
                raise UserError(f"{scores}: {error.strerror}") from error
            gone.append(scores)
    return gone
