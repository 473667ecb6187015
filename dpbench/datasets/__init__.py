"""Data sets: where they come from, how they become (X, y), and where the prepared arrays lie.

>>> from dpbench import datasets
>>> datasets.describe("a1a").columns
124
"""

from .cache import Dataset
from .loading import FetchResult, available, fetch, heal, load, verify
from .own import check_arrays, from_arrays, keep
from .registry import describe, is_own, names, register
from .spec import DatasetSpec, RawFile

__all__ = [
    "Dataset",
    "DatasetSpec",
    "FetchResult",
    "RawFile",
    "available",
    "check_arrays",
    "describe",
    "fetch",
    "from_arrays",
    "heal",
    "is_own",
    "keep",
    "load",
    "names",
    "register",
    "verify",
]
