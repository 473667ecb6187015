"""Protein homology, the KDD Cup 2004 (task "biology"): 74 match features of pairs of proteins."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dpbench.datasets.recipes import clip_rows, read_table, signs, standardise, with_ones
from dpbench.datasets.spec import Arrays, DatasetSpec, Raw, RawFile
from dpbench.errors import DataError

ROWS, POSITIVE, FEATURES, CHOSEN = 145751, 1296, 74, 50000

FILE = RawFile(
    "bio_train.dat",
    "protein",
    sources=("https://www.kdd.org/cupfiles/KDDCupData/2004/data_kddcup04.tar.gz",),
    pinned=False,
    rows=ROWS,
)
SAMPLE = RawFile(
    "bio_train_sample1000.dat.gz",
    "protein",
    sha256=("c5794c728e15cdcbdde6e0396be0e12c9334c643518601603d36d90945c2f571",),
)


def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Features and labels ±1 of a file like bio_train.dat: block, example, label 0/1, 74 features."""
    table = read_table(path, separator="\t", columns=3 + FEATURES)
    return np.ascontiguousarray(table[:, 3:]), signs(table[:, 2], 1, 0)


def finish(X: np.ndarray) -> np.ndarray:
    """Standardised, a column of ones, rows within ‖x‖₂ ≤ 1."""
    return clip_rows(with_ones(standardise(X)))


def prepare(raw: Raw) -> Arrays:
    """The chosen rows of the whole file, whose counts are checked first."""
    X, y = read(raw[FILE.name])
    if (len(y), int(np.sum(y == 1))) != (ROWS, POSITIVE):
        raise DataError(f"{FILE.name}: {len(y)} rows, {np.sum(y == 1)} positive found; {ROWS}, {POSITIVE} expected")
    return choose(X, y)


def choose(X: np.ndarray, y: np.ndarray) -> Arrays:
    """The paper's 50,000 rows: the legacy generator is part of the recipe."""
    rows = np.random.RandomState(3000).choice(len(y), CHOSEN, replace=False)
    return finish(X[rows]), y[rows]


def prepare_sample(raw: Raw) -> Arrays:
    """All rows of the sample."""
    X, y = read(raw[SAMPLE.name])
    return finish(X), y


CITATION = "Caruana, Joachims and Backstrom (2004), KDD-Cup 2004: results and analysis, SIGKDD Explorations 6(2)"
SPECS = [
    DatasetSpec(
        name="protein",
        title="KDD Cup 2004, protein homology, 50,000 rows",
        prepare=prepare,
        rows=CHOSEN,
        columns=FEATURES + 1,
        files=(FILE,),
        recipe="rows RandomState(3000).choice(145751, 50000, replace=False); standardised; "
        "ones column in front; rows divided by max(1, ‖x‖₂)",
        licence="not stated",
        citation=CITATION,
    ),
    DatasetSpec(
        name="protein-sample",
        title="KDD Cup 2004, protein homology, a random sample of 1,000 rows",
        prepare=prepare_sample,
        rows=1000,
        columns=FEATURES + 1,
        classes={-1: 985, 1: 15},
        files=(SAMPLE,),
        recipe="standardised; ones column in front; rows divided by max(1, ‖x‖₂); in no experiment",
        licence="not stated",
        citation=CITATION,
    ),
]
