"""The real data sets of the benchmark: from the publishers' files to (X, y), a function per set.

a1a and adult are of the 1994 census (income above 50,000 $), covertype of cells of forest, california of the 1990
census, protein of KDD 2004; ijcnn is a time series of an engine, dorothea and madelon are of NIPS 2003's feature
selection challenge; fmnist has t-shirts against dresses, mtp melting points from 202 molecular descriptors.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from dpbench.datasets.recipes import (
    clip_rows,
    in_float32,
    one_hot,
    read_svmlight,
    read_table,
    signs,
    standardise,
    with_ones,
)
from dpbench.datasets.spec import Arrays, Raw, described, opened
from dpbench.errors import DataError

A1A_ACTIVE = 14  # features that are 1 in a row, at most: one per census attribute


def prepare_a1a(raw: Raw) -> Arrays:
    """The test split: standardised, a column of ones, rows within ‖x‖₂ ≤ 1."""
    X, y = read_svmlight(raw["a1a.t"], columns=123)
    return clip_rows(with_ones(standardise(X))), y


def prepare_a1a_all(raw: Raw) -> Arrays:
    """Rows scaled by a constant, not by data: 14 ones at most and the intercept have norm √15."""
    parts = [read_svmlight(raw[name], columns=None) for name in ("a1a", "a1a.t")]
    # Each file ends at its own highest feature: 119 and 123.
    X = np.vstack([np.pad(X, ((0, 0), (0, 123 - X.shape[1]))) for X, _ in parts])
    return clip_rows(with_ones(X) / np.sqrt(A1A_ACTIVE + 1)), np.hstack([y for _, y in parts])


ADULT_NUMERIC = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
ADULT_COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"),
    *("relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country"),
    "income",
)

ADULT_FILES = ("adult.data", "adult.test")


def prepare_adult(raw: Raw) -> Arrays:
    """Rows with "?" dropped; each column in the file's order, categorical ones as one-hot groups; standardised."""
    X, y = _encode_adult([row for name in ADULT_FILES for row in _complete_adult_rows(raw[name])])
    return clip_rows(standardise(X)), y


def adult_by_maxima(raw: Raw) -> Arrays:
    """second_order's: the last complete row of each file lost, numeric columns over their maxima, a column of ones.

    The preparation that the authors load slices off each file's last row as if it were blank, after the rows with "?"
    are gone. Not standardised: indicators stay 0/1.
    """
    X, y = _encode_adult([row for name in ADULT_FILES for row in _complete_adult_rows(raw[name])[:-1]])
    X /= X.max(axis=0)  # an indicator's maximum is 1
    return clip_rows(with_ones(X)), y


def _encode_adult(rows: list[list[str]]) -> Arrays:
    """Numbers as they are, categories as one-hot groups, (n, 104); y."""
    table = dict(zip(ADULT_COLUMNS, np.array(rows).T, strict=True))
    y = signs(table.pop("income"), ">50K", "<=50K")
    X = np.hstack(
        [
            values.astype(np.float64)[:, None] if name in ADULT_NUMERIC else one_hot(values)
            for name, values in table.items()
        ]
    )
    return X, y


def _complete_adult_rows(path: Path) -> list[list[str]]:
    return [row for row in _adult_rows(path) if "?" not in row]


def _adult_rows(path: Path) -> Iterator[list[str]]:
    with opened(path) as stream:
        for line in stream.read().decode("ascii").splitlines():
            if line and not line.startswith("|"):  # the test file's first line: "|1x3 Cross validator"
                row = line.rstrip(".").split(", ")  # the test file's labels end with a full stop
                if len(row) != len(ADULT_COLUMNS):
                    raise DataError(f"{path.name}: a row of {len(row)} fields found, {len(ADULT_COLUMNS)} expected")
                yield row


COVERTYPE_ROWS, COVERTYPE_NUMERIC, COVERTYPE_FEATURES = 581012, 10, 54
COVERTYPE_FILE = "covtype.data.gz"


def _covertype(raw: Raw) -> tuple[np.ndarray, np.ndarray]:
    """The integers of all rows, (581012, 54), and the classes 1..7."""
    table = read_table(raw[COVERTYPE_FILE], dtype=np.int16, columns=COVERTYPE_FEATURES + 1)
    if len(table) != COVERTYPE_ROWS:
        raise DataError(f"{COVERTYPE_FILE}: {len(table)} rows found, {COVERTYPE_ROWS} expected")
    return table[:, :-1], table[:, -1]


def prepare_covertype(raw: Raw) -> Arrays:
    """Classes 3 and 6, standardised."""
    features, cover = _covertype(raw)
    chosen = np.isin(cover, (3, 6))
    X = standardise(features[chosen].astype(np.float64))
    return clip_rows(with_ones(X)), signs(cover[chosen], 3, 6)


def covertype_by_maxima(raw: Raw) -> Arrays:
    """second_order's: classes 3 and 6, each measure over its maximum of all 581,012 rows; indicators stay 0/1.

    No published file holds these features; of the scalings tried, this one alone gives the paper's curve of DP-GD
    (Fig. 1, root mean square log error 0.013).
    """
    features, cover = _covertype(raw)
    chosen = np.isin(cover, (3, 6))
    X = features[chosen].astype(np.float64)
    X[:, :COVERTYPE_NUMERIC] /= features[:, :COVERTYPE_NUMERIC].max(axis=0)
    return clip_rows(with_ones(X)), signs(cover[chosen], 6, 3)


def _covertype12(raw: Raw) -> Arrays:
    """Classes 1 and 2 in file order; mean and deviation of the measures are those of all 581,012 rows."""
    features, cover = _covertype(raw)
    numeric = standardise(features[:, :COVERTYPE_NUMERIC].astype(np.float64))
    chosen = np.isin(cover, (1, 2))
    X = features[chosen].astype(np.float64)
    X[:, :COVERTYPE_NUMERIC] = numeric[chosen]
    return X, signs(cover[chosen], 1, 2)


def prepare_covertype12(raw: Raw) -> Arrays:
    """nonconvex's X / 4, with the rows clipped that this leaves longer than 1."""
    X, y = _covertype12(raw)
    return clip_rows(X / 4.0), y


def covertype12_unclipped(raw: Raw) -> Arrays:
    """X / 4 with the float32 rounding and the ddof of 1 of nonconvex's scripts; no row is clipped."""
    X, y = _covertype12(raw)
    # From a deviation over n to one over n - 1.
    X[:, :COVERTYPE_NUMERIC] *= np.sqrt(1 - 1 / COVERTYPE_ROWS)
    return in_float32(X, 4.0), y


def prepare_california(raw: Raw) -> Arrays:
    """The features of scikit-learn's form of the data; the target in 100,000 $."""
    table = read_table(raw["cal_housing.data"], columns=9)
    longitude, latitude, age, rooms, bedrooms, population, households, income, value = table.T
    per_household = (rooms / households, bedrooms / households, population, population / households)
    X = np.column_stack([income, age, *per_household, latitude, longitude])
    return standardise(X), value / 100_000.0


def california_centred(raw: Raw) -> Arrays:
    """For models without an intercept."""
    X, value = prepare_california(raw)
    return X, standardise(value[:, None])[:, 0]


PROTEIN_ROWS, PROTEIN_POSITIVE, PROTEIN_FEATURES, PROTEIN_CHOSEN = 145751, 1296, 74, 50000

PROTEIN_FILE = "bio_train.dat"


def _read_protein(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Features and labels ±1 of a file like bio_train.dat: block, example, label 0/1, 74 features."""
    table = read_table(path, separator="\t", columns=3 + PROTEIN_FEATURES)
    return np.ascontiguousarray(table[:, 3:]), signs(table[:, 2], 1, 0)


def _finish_protein(X: np.ndarray) -> np.ndarray:
    """Standardised, a column of ones, rows within ‖x‖₂ ≤ 1."""
    return clip_rows(with_ones(standardise(X)))


def prepare_protein(raw: Raw) -> Arrays:
    """The chosen rows of the whole file, whose counts are checked first."""
    X, y = _read_protein(raw[PROTEIN_FILE])
    if (len(y), int(np.sum(y == 1))) != (PROTEIN_ROWS, PROTEIN_POSITIVE):
        raise DataError(
            f"{PROTEIN_FILE}: {len(y)} rows, {np.sum(y == 1)} positive found; "
            f"{PROTEIN_ROWS}, {PROTEIN_POSITIVE} expected"
        )
    return _choose_protein(X, y)


def _choose_protein(X: np.ndarray, y: np.ndarray) -> Arrays:
    """The paper's 50,000 rows: the legacy generator is part of the recipe."""
    # numpy's newer generators draw other rows from the same seed.
    rows = np.random.RandomState(3000).choice(len(y), PROTEIN_CHOSEN, replace=False)
    return _finish_protein(X[rows]), y[rows]


def protein_sample(raw: Raw) -> Arrays:
    """All rows of the sample."""
    X, y = _read_protein(raw["bio_train_sample1000.dat.gz"])
    return _finish_protein(X), y


IJCNN_ONE_HOT = 10  # columns


def _ijcnn(raw: Raw) -> Arrays:
    """One-hot columns as they are, the others standardised."""
    X, y = read_svmlight(raw["ijcnn1.bz2"], columns=22)
    X[:, IJCNN_ONE_HOT:] = standardise(X[:, IJCNN_ONE_HOT:].copy())
    return np.ascontiguousarray(X), y


def prepare_ijcnn(raw: Raw) -> Arrays:
    """X / 3, and the rows clipped that are longer than 1 then."""
    X, y = _ijcnn(raw)
    return clip_rows(X / 3.0), y


def ijcnn_weighted(raw: Raw) -> Arrays:
    """nonconvex's rows: its scripts standardise the label with the 12 columns beside it, all with ddof = 1.

    A margin is then z<x, w>, z = 3.050 or -0.328: the row |z|x with the label sign(z), not divided and not clipped.
    """
    X, y = _ijcnn(raw)
    n = len(y)
    X[:, IJCNN_ONE_HOT:] *= np.sqrt(1 - 1 / n)
    # A margin z<x, w> is sign(z) times <|z|x, w>.
    X *= np.abs((y - y.mean()) / y.std(ddof=1))[:, None]
    return X, y


def ijcnn_unclipped(raw: Raw) -> Arrays:
    """The same divided by 3, in file order, with the float32 rounding of nonconvex's scripts; no row is clipped."""
    X, y = _ijcnn(raw)
    X[:, IJCNN_ONE_HOT:] *= np.sqrt(1 - 1 / len(y))
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


def read_idx(path: Path) -> np.ndarray:
    """An IDX file: two zeros, the type (8: bytes), the number of axes, their sizes (big-endian), bytes."""
    with opened(path) as stream:
        content = stream.read()
    if content[:3] != b"\0\0\x08":
        raise DataError(f"{path.name}: not an IDX file of unsigned bytes")
    axes = content[3]
    shape = np.frombuffer(content, ">u4", count=axes, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape)


def prepare_fmnist(raw: Raw) -> Arrays:
    """Classes 0 and 3, pixels in [-0.5, 0.5], as `recipe` says."""
    images, labels = (read_idx(raw[f"train-{part}-ubyte.gz"]) for part in ("images-idx3", "labels-idx1"))
    chosen = np.isin(labels, (0, 3))
    X = images[chosen].reshape(chosen.sum(), -1).astype(np.float64)
    # In place, step by step: one expression would make temporaries of 75 MB each.
    X /= 255.0
    X -= 0.5
    X /= 0.5
    return clip_rows(X), signs(labels[chosen], 3, 0)


MTP_FILE = "mtp.arff"


def _standardise_mtp(table: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return standardise(np.ascontiguousarray(table)), standardise(target[:, None].copy())[:, 0]


def prepare_mtp(raw: Raw) -> Arrays:
    """Target oz203, the rest descriptors."""
    from scipy.io import arff

    with opened(raw[MTP_FILE]) as stream:
        text = stream.read().decode("utf-8")
    try:
        content, described = arff.loadarff(StringIO(text))
    except (arff.ArffError, NotImplementedError, StopIteration, ValueError) as error:
        raise DataError(f"{MTP_FILE}: not an ARFF file ({error})") from error
    columns = described.names()
    if "oz203" not in columns:
        raise DataError(f"{MTP_FILE}: no column oz203")
    table = np.array(content.tolist(), dtype=np.float64)
    target = columns.index("oz203")
    return _standardise_mtp(np.delete(table, target, axis=1), table[:, target])


def prepare_mtp_qsar(raw: Raw) -> Arrays:
    """Target MP_Outcome (°C); MP_Data is the publisher's split, unused."""
    import pandas as pd

    with opened(raw["MeltingPoint.csv.gz"]) as stream:
        table = pd.read_csv(stream)
    target = table.pop("MP_Outcome").to_numpy(np.float64)
    return _standardise_mtp(table.drop(columns="MP_Data").to_numpy(np.float64), target)


SPECS = described({
    "a1a": prepare_a1a, "a1a-all": prepare_a1a_all, "adult": prepare_adult, "adult-max": adult_by_maxima,
    "covertype": prepare_covertype, "covertype-max": covertype_by_maxima, "covertype12": prepare_covertype12,
    "covertype12-unclipped": covertype12_unclipped, "california": prepare_california,
    "california-centred": california_centred, "protein": prepare_protein, "protein-sample": protein_sample,
    "ijcnn": prepare_ijcnn, "ijcnn-weighted": ijcnn_weighted, "ijcnn-unclipped": ijcnn_unclipped,
    "dorothea": prepare_dorothea, "madelon": prepare_madelon, "fmnist": prepare_fmnist, "mtp": prepare_mtp,
    "mtp-qsar": prepare_mtp_qsar,
})  # fmt: skip
