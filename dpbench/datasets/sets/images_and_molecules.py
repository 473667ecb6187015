"""Fashion-MNIST, t-shirts against dresses in 28 × 28 grey pixels, and melting points from 202 molecular descriptors."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import numpy as np

from dpbench.datasets.recipes import clip_rows, signs, standardise
from dpbench.datasets.spec import Arrays, Raw, described, opened
from dpbench.errors import DataError


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


OPENML = "mtp.arff"


def _finish(table: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return standardise(np.ascontiguousarray(table)), standardise(target[:, None].copy())[:, 0]


def prepare_openml(raw: Raw) -> Arrays:
    """Target oz203, the rest descriptors."""
    from scipy.io import arff

    with opened(raw[OPENML]) as stream:
        text = stream.read().decode("utf-8")
    try:
        content, described = arff.loadarff(StringIO(text))
    except (arff.ArffError, NotImplementedError, StopIteration, ValueError) as error:
        raise DataError(f"{OPENML}: not an ARFF file ({error})") from error
    columns = described.names()
    if "oz203" not in columns:
        raise DataError(f"{OPENML}: no column oz203")
    table = np.array(content.tolist(), dtype=np.float64)
    target = columns.index("oz203")
    return _finish(np.delete(table, target, axis=1), table[:, target])


def prepare_qsar(raw: Raw) -> Arrays:
    """Target MP_Outcome (°C); MP_Data is the publisher's split, unused."""
    import pandas as pd

    with opened(raw["MeltingPoint.csv.gz"]) as stream:
        table = pd.read_csv(stream)
    target = table.pop("MP_Outcome").to_numpy(np.float64)
    return _finish(table.drop(columns="MP_Data").to_numpy(np.float64), target)


SPECS = described({"fmnist": prepare_fmnist, "mtp": prepare_openml, "mtp-qsar": prepare_qsar})
