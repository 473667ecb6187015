"""Synthetic phase retrieval: sizes of random projections of a hidden unit vector (zeroth_order)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpbench.datasets.spec import Arrays, DatasetSpec, Raw

SEED = 2024
ROWS = 100_000
DIMENSIONS = (5, 20, 100)
LONG = 1_000_000
ACTIVE = 5  # of the coordinates of the problems whose d varies and whose F does not


def draw(rng: np.random.Generator, n: int, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows A (n, d) uniform on the unit sphere, the hidden x (d,) likewise, and the sizes |A x| (n,)."""
    A = rng.standard_normal((n, d))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    x = rng.standard_normal(d)
    x /= np.linalg.norm(x)
    return A, x, np.abs(A @ x)


def prepare(d: int, rows: int = ROWS, width: int | None = None) -> Callable[[Raw], Arrays]:
    """The recipe that draws d columns; width: of the rows, whose coordinates from d on are 0."""

    def recipe(raw: Raw) -> Arrays:
        A, _, b = draw(np.random.Generator(np.random.PCG64DXSM(SEED + d)), rows, d)
        return np.pad(A, ((0, 0), (0, (width or d) - d))), b

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
    )
    for d in DIMENSIONS
]
SPECS += [
    DatasetSpec(
        name="phase-5-long",
        title="phase retrieval in 5 dimensions, 1,000,000 rows",
        prepare=prepare(5, LONG),
        rows=LONG,
        columns=5,
        task="regression",
        recipe="as phase-5",
    ),
    *(
        DatasetSpec(
            name=f"phase-5-in-{d}",
            title=f"phase retrieval in 5 of {d} dimensions",
            prepare=prepare(ACTIVE, width=d),
            rows=ROWS,
            columns=d,
            task="regression",
            recipe=f"phase-5 with {d - ACTIVE} columns of zeros: the same F, whatever d",
        )
        for d in (20, 100)
    ),
]
