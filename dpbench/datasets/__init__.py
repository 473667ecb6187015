"""Data sets: where they come from, how they become (X, y), and where the prepared arrays lie.

>>> from dpbench import datasets
>>> datasets.describe("a1a").columns
124
"""

from dpbench.datasets.cache import Dataset
from dpbench.datasets.loading import (
    FetchResult,
    available,
    describe,
    fetch,
    heal,
    is_own,
    load,
    names,
    register,
    verify,
)
from dpbench.datasets.own import as_arrays, check_arrays, keep, labels_of
from dpbench.datasets.spec import DatasetSpec, RawFile

__all__ = ["Dataset", "DatasetSpec", "FetchResult", "RawFile", "as_arrays", "available", "check_arrays", "describe",
           "fetch", "heal", "is_own", "keep", "labels_of", "load", "names", "register", "verify"]  # fmt: skip
