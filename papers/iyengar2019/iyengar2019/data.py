"""The data sets that can be had: Adult as the authors prepare it, and their two drawn ones.

All rows are divided by max(1, ‖x‖₂), the authors' clipping at L = 1. They try L = 0.1 and 10 too, which no method
that is told nothing of the data can choose.
"""

from dataclasses import replace

import numpy as np
from dpbench.datasets import real
from dpbench.datasets.recipes import clip_rows
from dpbench.datasets.spec import DatasetSpec


def adult(raw):
    """As second_order's, which loads this preparation, without its column of ones: that tells the rows' own lengths."""
    X, y = real.adult_by_maxima(raw)
    return clip_rows(X[:, 1:] / X[:, :1]), y


def low(raw):
    """gen_dataset of the released common/datasets.py."""
    return _drawn(n_samples=10_000, n_features=40, n_informative=30, random_state=1000)


def high(raw):
    """gen_dataset_high_dim of the same: ten columns tell the class, of two thousand."""
    return _drawn(n_samples=2000, n_features=2000, n_informative=10, n_redundant=0, random_state=1)


def _drawn(**given):
    from sklearn.datasets import make_classification

    X, y = make_classification(n_classes=2, class_sep=2.0, **given)
    return clip_rows(X), np.where(y == 1, 1.0, -1.0)


ADULT = replace(
    next(spec for spec in real.SPECS if spec.name == "adult-max"),
    name="iyengar-adult",
    title="UCI Adult as Iyengar et al. (2019) prepare it",
    prepare=adult,
    columns=104,
    recipe='rows with "?" dropped, and the last row left of each file; 8 categorical columns one-hot (98), 6 numeric '
    "divided by their maxima; rows divided by max(1, ‖x‖₂)",
)
DRAWN = "scikit-learn's make_classification by the released settings and seed; rows divided by max(1, ‖x‖₂)"
LOW, HIGH = (
    DatasetSpec(f"iyengar-synthetic-{letter}", f"Synthetic-{letter.upper()}", prepare, rows, columns, recipe=DRAWN)
    for letter, prepare, rows, columns in (("l", low, 10_000, 40), ("h", high, 2000, 2000))
)
