"""Synthetic phase retrieval: sizes of random projections of a hidden unit vector (zeroth_order)."""

from __future__ import annotations

import numpy as np

from .spec import DatasetSpec

SEED = 2024
ROWS = 100_000
DIMENSIONS = (5, 20, 100)


def draw(rng: np.random.Generator, n: int, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows A (n, d) uniform on the unit sphere, the hidden x (d,) likewise, and the sizes |A x| (n,)."""
    A = rng.standard_normal((n, d))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    x = rng.standard_normal(d)
    x /= np.linalg.norm(x)
    return A, x, np.abs(A @ x)


def prepare(d: int):
    def recipe(raw):
        A, _, b = draw(np.random.Generator(np.random.PCG64DXSM(SEED + d)), ROWS, d)
        return A, b

    return recipe


SPECS = [
    DatasetSpec(
        name=f"phase-{d}",
        title=f"phase retrieval in {d} dimensions",
        prepare=prepare(d),
        rows=ROWS,
        columns=d,
        task="regression",
        recipe="a uniform on the unit sphere; b = |<a, x_true>|, x_true a random unit vector",
        home=("zeroth_order",),
    )
    for d in DIMENSIONS
]
