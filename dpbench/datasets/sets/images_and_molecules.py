"""Fashion-MNIST, t-shirts against dresses in 28 × 28 grey pixels, and melting points from 202 molecular descriptors."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import numpy as np

from dpbench.datasets.recipes import clip_rows, signs, standardise
from dpbench.datasets.spec import Arrays, DatasetSpec, Raw, RawFile, opened
from dpbench.errors import DataError

IMAGES, FMNIST_LABELS = (
    RawFile(
        name,
        "fashion-mnist",
        sources=(
            f"https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/{name}",
            f"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/{name}",
        ),
        sha256=tuple(sha256),
    )
    for name, *sha256 in (  # of the file, of its content: some servers unpack what they send
        (
            "train-images-idx3-ubyte.gz",
            "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        ),
        (
            "train-labels-idx1-ubyte.gz",
            "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        ),
    )
)


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
    images, labels = read_idx(raw[IMAGES.name]), read_idx(raw[FMNIST_LABELS.name])
    chosen = np.isin(labels, (0, 3))
    X = images[chosen].reshape(chosen.sum(), -1).astype(np.float64)
    # In place, step by step: one expression would make temporaries of 75 MB each.
    X /= 255.0
    X -= 0.5
    X /= 0.5
    return clip_rows(X), signs(labels[chosen], 3, 0)


FMNIST_SPECS = [
    DatasetSpec(
        name="fmnist",
        title="Fashion-MNIST training images, class 3 (+1) against 0 (-1)",
        prepare=prepare_fmnist,
        rows=12000,
        columns=784,
        classes={-1: 6000, 1: 6000},
        files=(IMAGES, FMNIST_LABELS),
        recipe="pixel / 255, then (v - 0.5) / 0.5; rows divided by max(1, ‖x‖₂)",
        licence="MIT, copyright 2017 Zalando SE",
        citation="Xiao, Rasul and Vollgraf (2017), Fashion-MNIST, arXiv:1708.07747",
    )
]


MTP_FEATURES = 202
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


MTP_STUDY = "Karthikeyan, Glen and Bender (2005), General melting point prediction, J. Chem. Inf. Model. 45(3)"
MTP_SPECS = [
    DatasetSpec(
        name="mtp",
        title="OpenML mtp (405)",
        prepare=prepare_openml,
        rows=4450,
        columns=MTP_FEATURES,
        task="regression",
        files=(OPENML,),
        recipe="202 descriptors and the target standardised",
        licence="not stated",
        citation=f"{MTP_STUDY}; OpenML data set 405",
    ),
    DatasetSpec(
        name="mtp-qsar",
        title="QSARdata MeltingPoint, a substitute for mtp",
        prepare=prepare_qsar,
        rows=4401,
        columns=MTP_FEATURES,
        task="regression",
        files=(QSAR,),
        recipe="202 descriptors and the target standardised; the same study as mtp, less 49 compounds",
        licence="GPL (R package QSARdata)",
        citation=f"{MTP_STUDY}; R package QSARdata 1.3 (Kuhn)",
    ),
]

SPECS = [*FMNIST_SPECS, *MTP_SPECS]
