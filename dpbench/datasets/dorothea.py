"""Dorothea, the NIPS 2003 feature selection challenge: drug discovery from 100,000 sparse binary features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dpbench.datasets.raw import opened
from dpbench.datasets.recipes import read_table, signs
from dpbench.datasets.spec import Arrays, DatasetSpec, Raw, RawFile

UCI = "https://archive.ics.uci.edu"
ROWS = 800


def _file(name: str, sha256: str) -> RawFile:
    sources = (f"{UCI}/ml/machine-learning-databases/dorothea/DOROTHEA/{name}", f"{UCI}/static/public/169/dorothea.zip")
    return RawFile(name, "dorothea", sources, (sha256,), pinned=False, rows=ROWS)


# The digest of the data is of a copy without the empty columns, which the recipe drops in any case.
DATA = _file("dorothea_train.data", "25ff5fd742a10ff4651e07c4bd5cafb1f52a72ae68645656d676978e915ef4df")
LABELS = _file("dorothea_train.labels", "bd6e76671eea59e152cf8dbce1046b8e7ec745561c1dcd02218d8740e23b7c4e")


def read_ones(path: Path) -> Any:
    """A line of 1-based indices of the ones per row -> CSR of 0/1."""
    from scipy.sparse import csr_array

    with opened(path) as stream:
        rows = [np.array(line.split(), dtype=np.int32) - 1 for line in stream if line.strip()]
    indices = np.concatenate(rows)
    indptr = np.cumsum([0, *map(len, rows)], dtype=np.int32)
    return csr_array((np.ones(len(indices)), indices, indptr), shape=(len(rows), int(indices.max()) + 1))


def prepare(raw: Raw) -> Arrays:
    """The 0/1 columns that are not constant, as CSR; labels ±1."""
    X = read_ones(raw[DATA.name])
    share = X.sum(axis=0) / X.shape[0]
    X = X[:, (share > 0) & (share < 1)]
    X.sort_indices()
    return X, signs(read_table(raw[LABELS.name], columns=1)[:, 0], 1, -1)


SPECS = [
    DatasetSpec(
        name="dorothea",
        title="Dorothea, training rows",
        prepare=prepare,
        rows=ROWS,
        columns=88119,
        classes={-1: 722, 1: 78},
        files=(DATA, LABELS),
        recipe="constant columns dropped; raw 0/1 columns, neither centred nor scaled",
        licence="CC BY 4.0",
        citation="Guyon et al. (2004), Dorothea, UCI Machine Learning Repository, doi:10.24432/C5NK6X",
        version=2,
    )
]
