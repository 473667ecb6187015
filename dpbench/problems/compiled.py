"""Inner loops that numba (the extra `fast`) compiles where it is installed; where it is not, NumPy does the same.

Both add in another order: results differ by rounding. Compiled once a machine, and cached beside this file.
"""

from __future__ import annotations

import functools
from types import SimpleNamespace

import numpy as np

LANES = 8  # `gram` is fastest with a multiple of it: a vector of doubles


@functools.cache
def compiler() -> SimpleNamespace | None:
    """`loop`, a decorator that compiles, and `within(v, low, high)` for the loops to use; None without numba."""
    try:
        from numba import njit
    except ImportError:
        return None

    @njit(cache=True, inline="always")
    def within(v, low, high):
        """v clipped to [low, high], by selections that become vector instructions and keep a NaN."""
        v = low if v < low else v
        return high if v > high else v

    # NaN and inf keep their meaning.
    return SimpleNamespace(loop=njit(cache=True, fastmath={"reassoc", "contract"}), within=within)


@functools.cache
def kernels() -> SimpleNamespace | None:
    """The functions below, compiled; None without numba."""
    tools = compiler()
    if tools is None:
        return None
    compile_loop, within = tools.loop, tools.within

    @compile_loop
    def gram(A, h, total):
        """total (d, d, K) += Σ_i h_ik a_i a_iᵀ, lower triangle, for rows a_i (b, d) most of whose entries are 0."""
        b, d = A.shape
        where, entry = np.empty(d, np.int64), np.empty(d)
        for i in range(b):
            m = 0
            for j in range(d):  # without a branch
                where[m], entry[m] = j, A[i, j]
                m += A[i, j] != 0
            for p in range(m):
                row = total[where[p]]
                for q in range(p + 1):
                    x, sums = entry[p] * entry[q], row[where[q]]
                    for k in range(h.shape[1]):
                        sums[k] += h[i, k] * x

    @compile_loop
    def clipped_sums(A, r, clip, share, total):
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
    def clipped_sums_of_sparse(data, indices, indptr, r, clip, share, total):
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
    def move(z, x, change):
        """z (k, n) += change_i x_l."""
        for i in range(len(z)):
            for l in range(z.shape[1]):
                z[i, l] += change[i] * x[l]

    return SimpleNamespace(
        gram=gram, clipped_sums=clipped_sums, clipped_sums_of_sparse=clipped_sums_of_sparse, move=move
    )
