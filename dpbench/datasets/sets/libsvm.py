"""ijcnn1 (a time series of an engine), and NIPS 2003's feature selection challenge: dorothea, madelon."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dpbench.datasets.recipes import clip_rows, in_float32, read_svmlight, read_table, signs, standardise, with_ones
from dpbench.datasets.spec import Arrays, Raw, described, opened

ONE_HOT = 10


def standardised(raw: Raw) -> Arrays:
    """One-hot columns as they are, the others standardised."""
    X, y = read_svmlight(raw["ijcnn1.bz2"], columns=22)
    X[:, ONE_HOT:] = standardise(X[:, ONE_HOT:].copy())
    return np.ascontiguousarray(X), y


def prepare_ijcnn(raw: Raw) -> Arrays:
    """X / 3, and the rows clipped that are longer than 1 then."""
    X, y = standardised(raw)
    return clip_rows(X / 3.0), y


def prepare_weighted(raw: Raw) -> Arrays:
    """nonconvex's rows: its scripts standardise the label with the 12 columns beside it, all with ddof = 1.

    A margin is then z<x, w>, z = 3.050 or -0.328: the row |z|x with the label sign(z), not divided and not clipped.
    """
    X, y = standardised(raw)
    n = len(y)
    X[:, ONE_HOT:] *= np.sqrt(1 - 1 / n)
    # A margin z<x, w> is sign(z) times <|z|x, w>.
    X *= np.abs((y - y.mean()) / y.std(ddof=1))[:, None]
    return X, y


def prepare_unclipped(raw: Raw) -> Arrays:
    """The same divided by 3, in file order, with the float32 rounding of nonconvex's scripts; no row is clipped."""
    X, y = standardised(raw)
    X[:, ONE_HOT:] *= np.sqrt(1 - 1 / len(y))
    z = in_float32((y - y.mean()) / y.std(ddof=1), 1.0)
    X = in_float32(X, 3.0)
    X *= np.abs(z)[:, None]
    return X, y


def read_ones(path: Path) -> Any:
    """A line of 1-based indices of the ones per row -> CSR of 0/1."""
    from scipy.sparse import csr_array

    with opened(path) as stream:
        rows = [np.array(line.split(), dtype=np.int32) - 1 for line in stream if line.strip()]
    indices = np.concatenate(rows)
    indptr = np.cumsum([0, *map(len, rows)], dtype=np.int32)
    return csr_array((np.ones(len(indices)), indices, indptr), shape=(len(rows), int(indices.max()) + 1))


def prepare_dorothea(raw: Raw) -> Arrays:
    """The 0/1 columns that are not constant, as CSR; labels ±1."""
    X = read_ones(raw["dorothea_train.data"])
    share = X.sum(axis=0) / X.shape[0]
    # Whoever left the empty columns out and whoever did not get the same arrays.
    X = X[:, (share > 0) & (share < 1)]
    X.sort_indices()
    return X, signs(read_table(raw["dorothea_train.labels"], columns=1)[:, 0], 1, -1)


def prepare_madelon(raw: Raw) -> Arrays:
    """The 2,600 rows of OpenML 1485: training, then validation."""
    X = np.vstack(
        [read_table(raw[f"madelon_{part}.data"], separator=r"\s+", columns=500) for part in ("train", "valid")]
    )
    labels = [read_table(raw[f"madelon_{part}.labels"], columns=1)[:, 0] for part in ("train", "valid")]
    return with_ones(standardise(X)), signs(np.concatenate(labels), 1, -1)


SPECS = described({
    "ijcnn": prepare_ijcnn, "ijcnn-weighted": prepare_weighted, "ijcnn-unclipped": prepare_unclipped,
    "dorothea": prepare_dorothea, "madelon": prepare_madelon,
})  # fmt: skip
