"""ijcnn1 (a time series of an engine), and NIPS 2003's feature selection challenge: dorothea, madelon."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dpbench.datasets.recipes import clip_rows, in_float32, read_svmlight, read_table, signs, standardise, with_ones
from dpbench.datasets.spec import Arrays, DatasetSpec, Raw, RawFile, opened

ONE_HOT = 10
IJCNN_FILE = RawFile(
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


IJCNN_COMMON: dict[str, Any] = {
    "rows": 49990,
    "columns": 22,
    "classes": {-1: 45137, 1: 4853},
    "files": (IJCNN_FILE,),
    "licence": "not stated",
    "citation": "Prokhorov (2001), IJCNN 2001 neural network competition; LIBSVM data page",
}
IJCNN_SPECS = [
    DatasetSpec(
        name="ijcnn",
        title="LIBSVM ijcnn1, training and validation rows",
        prepare=prepare_ijcnn,
        recipe="10 one-hot columns as they are, 12 numeric standardised; X / 3; rows divided by max(1, ‖x‖₂)",
        **IJCNN_COMMON,
    ),
    DatasetSpec(
        name="ijcnn-weighted",
        title="LIBSVM ijcnn1, rows weighted by the standardised label",
        prepare=prepare_weighted,
        recipe="10 one-hot columns as they are, 12 numeric and the label z standardised (ddof 1); rows |z|x, labels "
        "sign(z)",
        version=2,  # the problems of nonconvex were built on "ijcnn", version 1, before
        **IJCNN_COMMON,
    ),
    DatasetSpec(
        name="ijcnn-unclipped",
        title="LIBSVM ijcnn1 as nonconvex's scripts scale it",
        prepare=prepare_unclipped,
        recipe="10 one-hot columns as they are, 12 numeric and the label z standardised (ddof 1), X / 3 in float32; "
        "rows |z|x, labels sign(z); no row clipped",
        **IJCNN_COMMON,
    ),
]


UCI = "https://archive.ics.uci.edu"
DOROTHEA_ROWS = 800


def _challenge_file(path: str, archive: int, rows: int, sha256: str, *, pinned: bool = True) -> RawFile:
    """A file of the challenge, "data set/folder/name" at UCI and in its zip of that number."""
    folder, name = path.partition("/")[0], path.rpartition("/")[2]
    sources = (f"{UCI}/ml/machine-learning-databases/{path}", f"{UCI}/static/public/{archive}/{folder}.zip")
    return RawFile(name, folder, sources, (sha256,), pinned=pinned, rows=rows)


# The digest of the data is of a copy without the empty columns, which the recipe drops in any case.
DOROTHEA_DATA, DOROTHEA_LABELS = (
    _challenge_file(f"dorothea/DOROTHEA/dorothea_train.{part}", 169, DOROTHEA_ROWS, sha256, pinned=False)
    for part, sha256 in (
        ("data", "25ff5fd742a10ff4651e07c4bd5cafb1f52a72ae68645656d676978e915ef4df"),
        ("labels", "bd6e76671eea59e152cf8dbce1046b8e7ec745561c1dcd02218d8740e23b7c4e"),
    )
)


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
    X = read_ones(raw[DOROTHEA_DATA.name])
    share = X.sum(axis=0) / X.shape[0]
    # Whoever left the empty columns out and whoever did not get the same arrays.
    X = X[:, (share > 0) & (share < 1)]
    X.sort_indices()
    return X, signs(read_table(raw[DOROTHEA_LABELS.name], columns=1)[:, 0], 1, -1)


DOROTHEA_SPECS = [
    DatasetSpec(
        name="dorothea",
        title="Dorothea, training rows",
        prepare=prepare_dorothea,
        rows=DOROTHEA_ROWS,
        columns=88119,
        classes={-1: 722, 1: 78},
        files=(DOROTHEA_DATA, DOROTHEA_LABELS),
        recipe="constant columns dropped; raw 0/1 columns, neither centred nor scaled",
        licence="CC BY 4.0",
        citation="Guyon et al. (2004), Dorothea, UCI Machine Learning Repository, doi:10.24432/C5NK6X",
        version=2,
    )
]


MADELON_FILES = tuple(
    _challenge_file(f"madelon/{name}", 171, rows, sha256)
    for name, rows, sha256 in (
        ("MADELON/madelon_train.data", 2000, "0b6e37711efdc7ab74250c51e7d6966bffd9f8f2b0e9971e882c3a7a380c2314"),
        ("MADELON/madelon_train.labels", 2000, "10bffcc3b017467cb810d326b931951adcbde2b4870faf981da2991993b48689"),
        ("MADELON/madelon_valid.data", 600, "cb9a46475147de1a58d9f15ef4c318e5b85de344e0f9ab92626fa446aa815dc9"),
        ("madelon_valid.labels", 600, "fbac32fa87fac41ab731994a1c824e7b25396069bff6df242c01fe240fcb34dc"),
    )
)


def prepare_madelon(raw: Raw) -> Arrays:
    """The 2,600 rows of OpenML 1485: training, then validation."""
    X = np.vstack(
        [read_table(raw[f"madelon_{part}.data"], separator=r"\s+", columns=500) for part in ("train", "valid")]
    )
    labels = [read_table(raw[f"madelon_{part}.labels"], columns=1)[:, 0] for part in ("train", "valid")]
    return with_ones(standardise(X)), signs(np.concatenate(labels), 1, -1)


MADELON_SPECS = [
    DatasetSpec(
        name="madelon",
        title="Madelon, training and validation rows",
        prepare=prepare_madelon,
        rows=2600,
        columns=501,
        classes={-1: 1300, 1: 1300},
        files=MADELON_FILES,
        recipe="500 features standardised; ones column in front",
        licence="CC BY 4.0",
        citation="Guyon (2004), Madelon, UCI Machine Learning Repository, doi:10.24432/C5602H",
    )
]

SPECS = [*IJCNN_SPECS, *DOROTHEA_SPECS, *MADELON_SPECS]
