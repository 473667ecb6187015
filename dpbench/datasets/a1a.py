"""a1a, the LIBSVM form of the 1994 census: 123 binary features of income above 50,000 $."""

from __future__ import annotations

import numpy as np

from dpbench.datasets.recipes import clip_rows, read_svmlight, standardise, with_ones
from dpbench.datasets.spec import Arrays, DatasetSpec, Raw, RawFile

FILE = RawFile(
    "a1a.t",
    "a1a",
    sources=("https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/a1a.t",),
    sha256=("0212d0c4a3996fe6fb6a0ab54033d9f4fa4b60369b6e3bb141821d9ffc40c04d",),
    rows=30956,
)

TRAINING = RawFile(
    "a1a",
    "a1a",
    sources=("https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/a1a",),
    sha256=("eb54c45f1bdb51286f803dd092eb8202b44637a858fc6c4e533a2d64a0d94b4e",),
    rows=1605,
)
ACTIVE = 14  # features that are 1 in a row, at most: one per census attribute


def prepare(raw: Raw) -> Arrays:
    """The test split: standardised, a column of ones, rows within ‖x‖₂ ≤ 1."""
    X, y = read_svmlight(raw["a1a.t"], columns=123)
    return clip_rows(with_ones(standardise(X))), y


def prepare_all(raw: Raw) -> Arrays:
    """Rows scaled by a constant, not by data: 14 ones at most and the intercept have norm √15."""
    parts = [read_svmlight(raw[file.name], columns=None) for file in (TRAINING, FILE)]
    X = np.vstack([np.pad(X, ((0, 0), (0, 123 - X.shape[1]))) for X, _ in parts])
    return clip_rows(with_ones(X) / np.sqrt(ACTIVE + 1)), np.hstack([y for _, y in parts])


SPECS = [
    DatasetSpec(
        name="a1a",
        title="LIBSVM a1a, test split",
        prepare=prepare,
        rows=30956,
        columns=124,
        classes={-1: 23510, 1: 7446},
        files=(FILE,),
        recipe="123 binary features standardised; ones column in front; rows divided by max(1, ‖x‖₂)",
        licence="CC BY 4.0 (UCI Adult, from which it derives)",
        citation="Becker and Kohavi (1996), Adult, UCI; binary form by Platt (1998), LIBSVM data page",
    ),
    DatasetSpec(
        name="a1a-all",
        title="LIBSVM a1a, both splits",
        prepare=prepare_all,
        rows=32561,
        columns=124,
        classes={-1: 24720, 1: 7841},
        files=(TRAINING, FILE),
        recipe="123 binary features as they are; ones column in front; all rows divided by √15, so that ‖x‖₂ ≤ 1",
        licence="CC BY 4.0 (UCI Adult, from which it derives)",
        citation="Becker and Kohavi (1996), Adult, UCI; binary form by Platt (1998), LIBSVM data page",
    ),
]
