"""Data sets of the 1994 census, income above 50,000 $: a1a (LIBSVM's binary features), adult (UCI's attributes)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dpbench.datasets.recipes import clip_rows, one_hot, read_svmlight, signs, standardise, with_ones
from dpbench.datasets.spec import Arrays, Raw, described, opened
from dpbench.errors import DataError

A1A_ACTIVE = 14  # features that are 1 in a row, at most: one per census attribute


def prepare_a1a(raw: Raw) -> Arrays:
    """The test split: standardised, a column of ones, rows within ‖x‖₂ ≤ 1."""
    X, y = read_svmlight(raw["a1a.t"], columns=123)
    return clip_rows(with_ones(standardise(X))), y


def prepare_all(raw: Raw) -> Arrays:
    """Rows scaled by a constant, not by data: 14 ones at most and the intercept have norm √15."""
    parts = [read_svmlight(raw[name], columns=None) for name in ("a1a", "a1a.t")]
    # Each file ends at its own highest feature: 119 and 123.
    X = np.vstack([np.pad(X, ((0, 0), (0, 123 - X.shape[1]))) for X, _ in parts])
    return clip_rows(with_ones(X) / np.sqrt(A1A_ACTIVE + 1)), np.hstack([y for _, y in parts])


NUMERIC = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"),
    *("relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country"),
    "income",
)

ADULT_FILES = ("adult.data", "adult.test")


def prepare_adult(raw: Raw) -> Arrays:
    """Rows with "?" dropped; each column in the file's order, categorical ones as one-hot groups; standardised."""
    X, y = _encoded([row for name in ADULT_FILES for row in _complete_rows(raw[name])])
    return clip_rows(standardise(X)), y


def prepare_by_maxima(raw: Raw) -> Arrays:
    """second_order's: the last complete row of each file lost, numeric columns over their maxima, a column of ones.

    The preparation that the authors load slices off each file's last row as if it were blank, after the rows with "?"
    are gone. Not standardised: indicators stay 0/1.
    """
    X, y = _encoded([row for name in ADULT_FILES for row in _complete_rows(raw[name])[:-1]])
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


SPECS = described({"a1a": prepare_a1a, "a1a-all": prepare_all, "adult": prepare_adult, "adult-max": prepare_by_maxima})
