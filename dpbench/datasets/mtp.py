"""Melting points from 202 molecular descriptors, in the forms of OpenML and of QSARdata."""

from __future__ import annotations

from io import StringIO

import numpy as np

from dpbench.datasets.raw import opened
from dpbench.datasets.recipes import standardise
from dpbench.datasets.spec import Arrays, DatasetSpec, Raw, RawFile
from dpbench.errors import DataError

FEATURES = 202
OPENML = RawFile("mtp.arff", "mtp", sources=("openml:405",), pinned=False)
QSAR = RawFile(
    "MeltingPoint.csv.gz", "mtp", sha256=("527b0c86131dfe018bb1f6ecbdf7fa1a460f788aaebde6b8f6b1511f32da7977",)
)


def _finish(table: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return standardise(np.ascontiguousarray(table)), standardise(target[:, None].copy())[:, 0]


def prepare_openml(raw: Raw) -> Arrays:
    """Target oz203, the rest descriptors."""
    from scipy.io import arff

    with opened(raw[OPENML.name]) as stream:
        text = stream.read().decode("utf-8")
    try:
        content, described = arff.loadarff(StringIO(text))
    except (arff.ArffError, NotImplementedError, StopIteration, ValueError) as error:
        raise DataError(f"{OPENML.name}: not an ARFF file ({error})") from error
    columns = described.names()
    if "oz203" not in columns:
        raise DataError(f"{OPENML.name}: no column oz203")
    table = np.array(content.tolist(), dtype=np.float64)
    target = columns.index("oz203")
    return _finish(np.delete(table, target, axis=1), table[:, target])


def prepare_qsar(raw: Raw) -> Arrays:
    """Target MP_Outcome (°C); MP_Data is the publisher's split, unused."""
    import pandas as pd

    with opened(raw[QSAR.name]) as stream:
        table = pd.read_csv(stream)
    target = table.pop("MP_Outcome").to_numpy(np.float64)
    return _finish(table.drop(columns="MP_Data").to_numpy(np.float64), target)


STUDY = "Karthikeyan, Glen and Bender (2005), General melting point prediction, J. Chem. Inf. Model. 45(3)"
SPECS = [
    DatasetSpec(
        name="mtp",
        title="OpenML mtp (405)",
        prepare=prepare_openml,
        rows=4450,
        columns=FEATURES,
        task="regression",
        files=(OPENML,),
        recipe="202 descriptors and the target standardised",
        licence="not stated",
        citation=f"{STUDY}; OpenML data set 405",
    ),
    DatasetSpec(
        name="mtp-qsar",
        title="QSARdata MeltingPoint, a substitute for mtp",
        prepare=prepare_qsar,
        rows=4401,
        columns=FEATURES,
        task="regression",
        files=(QSAR,),
        recipe="202 descriptors and the target standardised; the same study as mtp, less 49 compounds",
        licence="GPL (R package QSARdata)",
        citation=f"{STUDY}; R package QSARdata 1.3 (Kuhn)",
    ),
]
