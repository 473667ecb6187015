"""Fashion-MNIST: t-shirts (class 0) against dresses (class 3), 28 × 28 grey pixels."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dpbench.datasets.raw import opened
from dpbench.datasets.recipes import clip_rows, signs
from dpbench.datasets.spec import Arrays, DatasetSpec, Raw, RawFile
from dpbench.errors import DataError

IMAGES, LABELS = (
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


def prepare(raw: Raw) -> Arrays:
    """Classes 0 and 3, pixels in [-0.5, 0.5], as `recipe` says."""
    images, labels = read_idx(raw[IMAGES.name]), read_idx(raw[LABELS.name])
    chosen = np.isin(labels, (0, 3))
    X = images[chosen].reshape(chosen.sum(), -1).astype(np.float64)
    X /= 255.0
    X -= 0.5
    X /= 0.5
    return clip_rows(X), signs(labels[chosen], 3, 0)


SPECS = [
    DatasetSpec(
        name="fmnist",
        title="Fashion-MNIST training images, class 3 (+1) against 0 (-1)",
        prepare=prepare,
        rows=12000,
        columns=784,
        classes={-1: 6000, 1: 6000},
        files=(IMAGES, LABELS),
        recipe="pixel / 255, then (v - 0.5) / 0.5; rows divided by max(1, ‖x‖₂)",
        licence="MIT, copyright 2017 Zalando SE",
        citation="Xiao, Rasul and Vollgraf (2017), Fashion-MNIST, arXiv:1708.07747",
    )
]
