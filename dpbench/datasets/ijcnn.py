"""ijcnn1 (LIBSVM): 22 features of a time series of an engine, from the IJCNN 2001 challenge."""

from __future__ import annotations

import numpy as np

from dpbench.datasets.recipes import clip_rows, in_float32, read_svmlight, standardise
from dpbench.datasets.spec import Arrays, DatasetSpec, Raw, RawFile

ONE_HOT = 10
FILE = RawFile(
    "ijcnn1.bz2",
    "ijcnn1",
    sources=("https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/ijcnn1.bz2",),
    sha256=("b38a4198ce142d43e96fb86d17b87211feec1f909ac344fa057455c69de29de3",),
    pinned=False,  # the digest is of a copy written anew; the publisher's is not known to us
    rows=49990,
)


def standardised(raw: Raw) -> Arrays:
    """One-hot columns as they are, the others standardised."""
    X, y = read_svmlight(raw["ijcnn1.bz2"], columns=22)
    X[:, ONE_HOT:] = standardise(X[:, ONE_HOT:].copy())
    return np.ascontiguousarray(X), y


def prepare(raw: Raw) -> Arrays:
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


SPECS = [
    DatasetSpec(
        name="ijcnn",
        title="LIBSVM ijcnn1, training and validation rows",
        prepare=prepare,
        rows=49990,
        columns=22,
        classes={-1: 45137, 1: 4853},
        files=(FILE,),
        recipe="10 one-hot columns as they are, 12 numeric standardised; X / 3; rows divided by max(1, ‖x‖₂)",
        licence="not stated",
        citation="Prokhorov (2001), IJCNN 2001 neural network competition; LIBSVM data page",
    ),
    DatasetSpec(
        name="ijcnn-weighted",
        title="LIBSVM ijcnn1, rows weighted by the standardised label",
        prepare=prepare_weighted,
        rows=49990,
        columns=22,
        classes={-1: 45137, 1: 4853},
        files=(FILE,),
        recipe="10 one-hot columns as they are, 12 numeric and the label z standardised (ddof 1); rows |z|x, labels "
        "sign(z)",
        licence="not stated",
        citation="Prokhorov (2001), IJCNN 2001 neural network competition; LIBSVM data page",
        version=2,  # the problems of nonconvex were built on "ijcnn", version 1, before
    ),
    DatasetSpec(
        name="ijcnn-unclipped",
        title="LIBSVM ijcnn1 as nonconvex's scripts scale it",
        prepare=prepare_unclipped,
        rows=49990,
        columns=22,
        classes={-1: 45137, 1: 4853},
        files=(FILE,),
        recipe="10 one-hot columns as they are, 12 numeric and the label z standardised (ddof 1), X / 3 in float32; "
        "rows |z|x, labels sign(z); no row clipped",
        licence="not stated",
        citation="Prokhorov (2001), IJCNN 2001 neural network competition; LIBSVM data page",
    ),
]
