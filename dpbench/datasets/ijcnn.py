"""ijcnn1 (LIBSVM): 22 features of a time series of an engine, from the IJCNN 2001 challenge."""

from __future__ import annotations

import numpy as np

from .recipes import clip_rows, read_svmlight, standardise
from .spec import DatasetSpec, RawFile

ONE_HOT = 10
FILE = RawFile(
    "ijcnn1.bz2",
    "ijcnn1",
    sources=("https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/ijcnn1.bz2",),
    sha256=("b38a4198ce142d43e96fb86d17b87211feec1f909ac344fa057455c69de29de3",),
    pinned=False,  # the digest is of a copy written anew; the publisher's is not known to us
    rows=49990,
)


def scaled(raw):
    """nonconvex's scaling: one-hot columns as they are, the others standardised; X / 3."""
    X, y = read_svmlight(raw["ijcnn1.bz2"], columns=22)
    X[:, ONE_HOT:] = standardise(X[:, ONE_HOT:].copy())
    X /= 3.0
    return np.ascontiguousarray(X), y


def prepare(raw):
    """nonconvex's, with the rows clipped that its scaling leaves longer than 1."""
    X, y = scaled(raw)
    return clip_rows(X), y


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
        home=("nonconvex",),
    )
]
