"""Data sets of the 1994 census, income above 50,000 $: a1a (LIBSVM's binary features), adult (UCI's attributes)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dpbench.datasets.recipes import clip_rows, one_hot, read_svmlight, signs, standardise, with_ones
from dpbench.datasets.spec import Arrays, DatasetSpec, Raw, RawFile, opened
from dpbench.errors import DataError

A1A_TRAINING, A1A_FILE = (
    RawFile(
        name,
        "a1a",
        sources=(f"https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/{name}",),
        sha256=(sha256,),
        rows=rows,
    )
    for name, rows, sha256 in (
        ("a1a", 1605, "eb54c45f1bdb51286f803dd092eb8202b44637a858fc6c4e533a2d64a0d94b4e"),
        ("a1a.t", 30956, "0212d0c4a3996fe6fb6a0ab54033d9f4fa4b60369b6e3bb141821d9ffc40c04d"),
    )
)
A1A_ACTIVE = 14  # features that are 1 in a row, at most: one per census attribute


def prepare_a1a(raw: Raw) -> Arrays:
    """The test split: standardised, a column of ones, rows within ‖x‖₂ ≤ 1."""
    X, y = read_svmlight(raw["a1a.t"], columns=123)
    return clip_rows(with_ones(standardise(X))), y


def prepare_all(raw: Raw) -> Arrays:
    """Rows scaled by a constant, not by data: 14 ones at most and the intercept have norm √15."""
    parts = [read_svmlight(raw[file.name], columns=None) for file in (A1A_TRAINING, A1A_FILE)]
    # Each file ends at its own highest feature: 119 and 123.
    X = np.vstack([np.pad(X, ((0, 0), (0, 123 - X.shape[1]))) for X, _ in parts])
    return clip_rows(with_ones(X) / np.sqrt(A1A_ACTIVE + 1)), np.hstack([y for _, y in parts])


A1A_COMMON: dict[str, Any] = {
    "columns": 124,
    "licence": "CC BY 4.0 (UCI Adult, from which it derives)",
    "citation": "Becker and Kohavi (1996), Adult, UCI; binary form by Platt (1998), LIBSVM data page",
}
A1A_SPECS = [
    DatasetSpec(
        name="a1a",
        title="LIBSVM a1a, test split",
        prepare=prepare_a1a,
        rows=30956,
        classes={-1: 23510, 1: 7446},
        files=(A1A_FILE,),
        recipe="123 binary features standardised; ones column in front; rows divided by max(1, ‖x‖₂)",
        **A1A_COMMON,
    ),
    DatasetSpec(
        name="a1a-all",
        title="LIBSVM a1a, both splits",
        prepare=prepare_all,
        rows=32561,
        classes={-1: 24720, 1: 7841},
        files=(A1A_TRAINING, A1A_FILE),
        recipe="123 binary features as they are; ones column in front; all rows divided by √15, so that ‖x‖₂ ≤ 1",
        **A1A_COMMON,
    ),
]


UCI = "https://archive.ics.uci.edu"
NUMERIC = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"),
    *("relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country"),
    "income",
)

ADULT_FILES = tuple(
    RawFile(
        name,
        "adult",
        sources=(f"{UCI}/ml/machine-learning-databases/adult/{name}", f"{UCI}/static/public/2/adult.zip"),
        sha256=(sha256,),
    )
    for name, sha256 in (
        ("adult.data", "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"),
        ("adult.test", "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05"),
    )
)


def prepare_adult(raw: Raw) -> Arrays:
    """Rows with "?" dropped; each column in the file's order, categorical ones as one-hot groups; standardised."""
    X, y = _encoded([row for file in ADULT_FILES for row in _complete_rows(raw[file.name])])
    return clip_rows(standardise(X)), y


def prepare_by_maxima(raw: Raw) -> Arrays:
    """second_order's: the last complete row of each file lost, numeric columns over their maxima, a column of ones.

    The preparation that the authors load slices off each file's last row as if it were blank, after the rows with "?"
    are gone. Not standardised: indicators stay 0/1.
    """
    X, y = _encoded([row for file in ADULT_FILES for row in _complete_rows(raw[file.name])[:-1]])
    X /= X.max(axis=0)  # an indicator's maximum is 1
    return clip_rows(with_ones(X)), y


def _encoded(rows: list[list[str]]) -> Arrays:
    """Numbers as they are, categories as one-hot groups, (n, 104); y."""
    table = dict(zip(COLUMNS, np.array(rows).T, strict=True))
    y = signs(table.pop("income"), ">50K", "<=50K")
    X = np.hstack(
        [values.astype(np.float64)[:, None] if name in NUMERIC else one_hot(values) for name, values in table.items()]
    )
    return X, y


def _complete_rows(path: Path) -> list[list[str]]:
    return [row for row in _rows(path) if "?" not in row]


def _rows(path: Path) -> Iterator[list[str]]:
    with opened(path) as stream:
        for line in stream.read().decode("ascii").splitlines():
            if line and not line.startswith("|"):  # the test file's first line: "|1x3 Cross validator"
                row = line.rstrip(".").split(", ")  # the test file's labels end with a full stop
                if len(row) != len(COLUMNS):
                    raise DataError(f"{path.name}: a row of {len(row)} fields found, {len(COLUMNS)} expected")
                yield row


ADULT_COMMON: dict[str, Any] = {
    "files": ADULT_FILES,
    "licence": "CC BY 4.0",
    "citation": "Becker and Kohavi (1996), Adult, UCI Machine Learning Repository, doi:10.24432/C5XW20",
}
ADULT_SPECS = [
    DatasetSpec(
        name="adult",
        title="UCI Adult, training and test rows, standardised",
        prepare=prepare_adult,
        rows=45222,
        columns=104,
        classes={-1: 34014, 1: 11208},
        recipe='rows with "?" dropped; 8 categorical columns one-hot (98), 6 numeric; standardised; '
        "rows divided by max(1, ‖x‖₂)",
        **ADULT_COMMON,
    ),
    DatasetSpec(
        name="adult-max",
        title="UCI Adult, training and test rows, divided by the columns' maxima",
        prepare=prepare_by_maxima,
        rows=45220,
        columns=105,
        classes={-1: 34014, 1: 11206},
        recipe='rows with "?" dropped, and the last row left of each file; 8 categorical columns one-hot (98), '
        "6 numeric divided by their maxima; ones column in front; rows divided by max(1, ‖x‖₂)",
        **ADULT_COMMON,
    ),
]

SPECS = [*A1A_SPECS, *ADULT_SPECS]
