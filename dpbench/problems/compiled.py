"""Inner loops that numba (the extra `fast`) compiles where it is installed; where it is not, NumPy does the same.

Both add in another order: results differ by rounding. Compiled once a machine, and cached beside this file.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

LANES = 8  # `gram` is fastest with a multiple of it: a vector of doubles


class Compiler(NamedTuple):
    """`loop`, a decorator that compiles, and `within(v, low, high)` for the loops to use."""

    loop: Callable[[Callable[..., Any]], Callable[..., Any]]
    within: Callable[[float, float, float], float]


@functools.cache
def compiler() -> Compiler | None:
    """What compiles; None without numba."""
    try:
        from numba import njit
    except ImportError:
        return None

    @njit(cache=True, inline="always")
    def within(v: float, low: float, high: float) -> float:
        """v clipped to [low, high], by selections that become vector instructions and keep a NaN."""
        v = low if v < low else v
        return high if v > high else v

    # NaN and inf keep their meaning.
    return Compiler(njit(cache=True, fastmath={"reassoc", "contract"}), within)


@functools.cache
def kernels() -> SimpleNamespace | None:
    """The functions below, compiled; None without numba."""
    tools = compiler()
    if tools is None:
        return None
    compile_loop, within = tools.loop, tools.within

    @compile_loop
    def gram(
        A: np.ndarray, inverse: np.ndarray, usual: np.ndarray, slack: np.ndarray, h: np.ndarray, total: np.ndarray
    ) -> None:
        """total (e, e, K) += Σ_i h_ik r_i r_iᵀ, lower triangle, for r_i = inverse_i a_i - usual, mostly 0.

        A (b, d). Entries of r up to `slack` count as 0. e = d, or d + 1: then each r_i has a 1 behind it.
        """
        b, d = A.shape
        where, entry = np.empty(d + 1, np.int64), np.empty(d + 1)
        for i in range(b):
            m = 0
            for j in range(d):  # without a branch
                r = A[i, j] * inverse[i] - usual[j]
                where[m], entry[m] = j, r
                m += not abs(r) <= slack[j]
            if len(total) > d:
                where[m], entry[m] = d, 1.0
                m += 1
            for p in range(m):
                row = total[where[p]]
                for q in range(p + 1):
                    x, sums = entry[p] * entry[q], row[where[q]]
                    for k in range(h.shape[1]):
                        sums[k] += h[i, k] * x

    @compile_loop
    def products(
        data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, first: int, W: np.ndarray, z: np.ndarray
    ) -> None:
        """z[i] = x_i W for the CSR rows from `first` on: W (d, k), z (b, k)."""
        for i in range(len(z)):
            sums = z[i]
            sums[:] = 0.0
            for c in range(indptr[first + i], indptr[first + i + 1]):
                x, w = data[c], W[indices[c]]
                for k in range(len(sums)):
                    sums[k] += x * w[k]

    @compile_loop
    def add_rows(
        data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, first: int, r: np.ndarray, total: np.ndarray
    ) -> None:
        """total (d, k) += Σ_i x_iᵀ r_i over the same rows: r (b, k)."""
        for i in range(len(r)):
            residuals = r[i]
            for c in range(indptr[first + i], indptr[first + i + 1]):
                x, sums = data[c], total[indices[c]]
                for k in range(len(residuals)):
                    sums[k] += x * residuals[k]

    @compile_loop
    def clipped_sums(A: np.ndarray, r: np.ndarray, clip: np.ndarray, share: np.ndarray, total: np.ndarray) -> None:
        """total[i, j] = Σ_l clip(r_il a_jl, ±clip_i share_j): A (d, n), r (k, n), total (k, d)."""
        d, n = A.shape
        size = max(1, 32_768 // n)  # 256 kB of r stay in the second-level cache while all of A goes by
        for first in range(0, len(r), size):
            for j in range(d):
                for i in range(first, min(first + size, len(r))):
                    high = clip[i] * share[j]
                    low, s = -high, 0.0
                    for l in range(n):
                        s += within(r[i, l] * A[j, l], low, high)
                    total[i, j] = s

    @compile_loop
    def clipped_sums_of_sparse(
        data: np.ndarray,
        indices: np.ndarray,
        indptr: np.ndarray,
        r: np.ndarray,
        clip: np.ndarray,
        share: np.ndarray,
        total: np.ndarray,
    ) -> None:
        """The same for a CSC matrix; r (n, k) and total (d, k) have the replicates last, to go through them in line."""
        k = len(clip)
        for j in range(len(share)):
            sums = total[j]
            sums[:] = 0.0
            for c in range(indptr[j], indptr[j + 1]):
                x, residuals = data[c], r[indices[c]]
                for i in range(k):
                    high = clip[i] * share[j]
                    sums[i] += within(residuals[i] * x, -high, high)

    @compile_loop
    def move(z: np.ndarray, x: np.ndarray, change: np.ndarray) -> None:
        """z (k, n) += change_i x_l."""
        for i in range(len(z)):
            for l in range(z.shape[1]):
                z[i, l] += change[i] * x[l]

    return SimpleNamespace(
        gram=gram,
        products=products,
        add_rows=add_rows,
        clipped_sums=clipped_sums,
        clipped_sums_of_sparse=clipped_sums_of_sparse,
        move=move,
    )
