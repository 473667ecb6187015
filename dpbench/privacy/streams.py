"""Random streams by name: what a job draws depends on its key alone, not on its batch, worker or machine."""

from __future__ import annotations

import hashlib

import numpy as np


def stream(key: str, name: str) -> np.random.Generator:
    """The stream `name` ("init", "noise", "sampling" or "coins") of the job `key`.

    PCG64DXSM, seeded by a `SeedSequence` on the 128-bit blake2b digest of "name:key": streams of different names or
    keys are independent for all practical purposes, equal ones are equal bit by bit.

    >>> stream("a", "noise").random() == stream("a", "noise").random()
    True
    """
    digest = hashlib.blake2b(f"{name}:{key}".encode(), digest_size=16).digest()
    seed = np.random.SeedSequence(int.from_bytes(digest, "big"))
    return np.random.Generator(np.random.PCG64DXSM(seed))
