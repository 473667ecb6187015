"""What the prepared arrays of every data set are known to be: nothing that lies beside them vouches for them.

`pinned.toml` has, per data set and recipe version, the sha256 of the arrays and a fingerprint: a weighted sum of each
array, the weights a fixed function of position. Equal digests are equal bytes. Where a processor rounds a mean in its
last digit the digest differs and the fingerprint does not, to a relative 1e-12; rows that were swapped, changed or
taken from elsewhere move it by far more. The command below writes the file anew, from what is there:

    python -m dpbench.datasets.pinning
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np

from dpbench.errors import DataError
from dpbench.files import read_toml

FILE = Path(__file__).with_name("pinned.toml")
TOLERANCE = 1e-12  # of the sum of all terms' sizes: 1e4 times what the order of a sum over 1e8 rows can move
GOLDEN = (5**0.5 - 1) / 2  # its multiples modulo 1 are spread evenly, and no two positions weigh the same
BLOCK = 1 << 20


class Pin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arrays of one recipe version."""

    sha256: str
    fingerprint: dict[str, tuple[float, float]]  # by array: the weighted sum, and that of the terms' sizes


@functools.cache
def pinned() -> dict[str, Pin]:
    """Every pin, by "name-vVERSION"."""
    return msgspec.convert(read_toml(FILE), dict[str, Pin]) if FILE.exists() else {}


def fingerprint(parts: Mapping[str, np.ndarray]) -> dict[str, tuple[float, float]]:
    """Of each array (by file name): Σ_k u_k a_k and Σ_k u_k |a_k|, u_k = k·0.618… mod 1, in C order.

    >>> fingerprint({"y.npy": np.array([1.0, -2.0])})
    {'y.npy': (0.1458980337503153, 1.0901699437494745)}
    """
    found = {}
    for name, array in sorted(parts.items()):
        flat = array.reshape(-1)
        sums = np.zeros(2)
        for first in range(0, flat.size, BLOCK):
            values = flat[first : first + BLOCK].astype(np.float64)
            weights = (np.arange(first + 1, first + 1 + values.size) * GOLDEN) % 1
            sums += weights @ values, weights @ np.abs(values)
        found[name] = (float(sums[0]), float(sums[1]))
    return found


def accepted(name: str, sha256: str) -> bool:
    """May rows say that they were made with arrays of this digest? True where nothing is pinned."""
    pin = pinned().get(name)
    return pin is None or pin.sha256 == sha256


def check(name: str, where: Path, sha256: str, parts: Mapping[str, np.ndarray]) -> None:
    """Raise DataError unless the arrays are those pinned for `name` ("adult-v1"); without a pin anything passes.

    sha256: what the arrays were found to have, or what is said of them; they are read only where it is not the
    pinned one.
    """
    pin = pinned().get(name)
    if pin is None or pin.sha256 == sha256:
        return
    found = fingerprint(parts)
    same = found.keys() == pin.fingerprint.keys() and all(
        abs(value - pin.fingerprint[part][0]) <= TOLERANCE * pin.fingerprint[part][1]
        and abs(size - pin.fingerprint[part][1]) <= TOLERANCE * pin.fingerprint[part][1]
        for part, (value, size) in found.items()
    )
    if not same:
        raise DataError(
            f"{name}: the arrays are not those of its recipe (sha256 {sha256[:16]}…, pinned {pin.sha256[:16]}…); "
            f"remove {where} and prepare it again from the publisher's files"
        )
