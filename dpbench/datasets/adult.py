"""Adult, the UCI extract of the 1994 census: income above 50,000 $ from 14 attributes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dpbench.datasets.raw import opened
from dpbench.datasets.recipes import clip_rows, one_hot, signs, standardise
from dpbench.datasets.spec import Arrays, DatasetSpec, Raw, RawFile
from dpbench.errors import DataError

UCI = "https://archive.ics.uci.edu"
NUMERIC = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"),
    *("relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country"),
    "income",
)

FILES = tuple(
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


def prepare(raw: Raw) -> Arrays:
    """Rows with "?" dropped; each column in the file's order, categorical ones as one-hot groups."""
    rows = [row for file in FILES for row in _rows(raw[file.name])]
    table = dict(zip(COLUMNS, np.array([row for row in rows if "?" not in row]).T, strict=True))
    y = signs(table.pop("income"), ">50K", "<=50K")
    X = np.hstack(
        [values.astype(np.float64)[:, None] if name in NUMERIC else one_hot(values) for name, values in table.items()]
    )
    return clip_rows(standardise(X)), y


def _rows(path: Path) -> Iterator[list[str]]:
    with opened(path) as stream:
        for line in stream.read().decode("ascii").splitlines():
            if line and not line.startswith("|"):  # the test file's first line: "|1x3 Cross validator"
                row = line.rstrip(".").split(", ")  # the test file's labels end with a full stop
                if len(row) != len(COLUMNS):
                    raise DataError(f"{path.name}: a row of {len(row)} fields found, {len(COLUMNS)} expected")
                yield row


SPECS = [
    DatasetSpec(
        name="adult",
        title="UCI Adult, training and test rows",
        prepare=prepare,
        rows=45222,
        columns=104,
        classes={-1: 34014, 1: 11208},
        files=FILES,
        recipe='rows with "?" dropped; 8 categorical columns one-hot (98), 6 numeric; standardised; '
        "rows divided by max(1, ‖x‖₂)",
        licence="CC BY 4.0",
        citation="Becker and Kohavi (1996), Adult, UCI Machine Learning Repository, doi:10.24432/C5XW20",
    )
]
