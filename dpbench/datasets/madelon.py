"""Madelon, the NIPS 2003 feature selection challenge: 500 features, 20 of them informative."""

from __future__ import annotations

import numpy as np

from dpbench.datasets.recipes import read_table, signs, standardise, with_ones
from dpbench.datasets.spec import Arrays, DatasetSpec, Raw, RawFile

UCI = "https://archive.ics.uci.edu"


def _file(name: str, folder: str, rows: int, sha256: str) -> RawFile:
    sources = (f"{UCI}/ml/machine-learning-databases/madelon/{folder}{name}", f"{UCI}/static/public/171/madelon.zip")
    return RawFile(name, "madelon", sources, (sha256,), rows=rows)


FILES = (
    _file("madelon_train.data", "MADELON/", 2000, "0b6e37711efdc7ab74250c51e7d6966bffd9f8f2b0e9971e882c3a7a380c2314"),
    _file("madelon_train.labels", "MADELON/", 2000, "10bffcc3b017467cb810d326b931951adcbde2b4870faf981da2991993b48689"),
    _file("madelon_valid.data", "MADELON/", 600, "cb9a46475147de1a58d9f15ef4c318e5b85de344e0f9ab92626fa446aa815dc9"),
    _file("madelon_valid.labels", "", 600, "fbac32fa87fac41ab731994a1c824e7b25396069bff6df242c01fe240fcb34dc"),
)


def prepare(raw: Raw) -> Arrays:
    """The 2,600 rows of OpenML 1485: training, then validation."""
    X = np.vstack(
        [read_table(raw[f"madelon_{part}.data"], separator=r"\s+", columns=500) for part in ("train", "valid")]
    )
    labels = [read_table(raw[f"madelon_{part}.labels"], columns=1)[:, 0] for part in ("train", "valid")]
    return with_ones(standardise(X)), signs(np.concatenate(labels), 1, -1)


SPECS = [
    DatasetSpec(
        name="madelon",
        title="Madelon, training and validation rows",
        prepare=prepare,
        rows=2600,
        columns=501,
        classes={-1: 1300, 1: 1300},
        files=FILES,
        recipe="500 features standardised; ones column in front",
        licence="CC BY 4.0",
        citation="Guyon (2004), Madelon, UCI Machine Learning Repository, doi:10.24432/C5602H",
    )
]
