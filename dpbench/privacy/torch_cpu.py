"""The random numbers of PyTorch's CPU generator, rebuilt in NumPy: for runs that repeat a published random stream.

Normal draws agree with torch's within 3.6e-7 (its vectorised logarithm and cosine differ in the last bits of a float32)
and the position in the stream agrees exactly. Not for private runs: a published seed gives the noise away.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK = 16  # normals of a block: eight radii and eight angles
_LOW_24, _UNIT_24 = np.uint32(2**24 - 1), np.float32(2.0**-24)
_EPS = np.float32(np.finfo(np.float32).eps)


class TorchCPU:
    """What `torch.manual_seed(seed)` starts on the CPU: a 32-bit Mersenne twister, seeded as NumPy's legacy one.

    Its methods are those of `numpy.random.Generator` that noise is drawn by; the numbers are float32 ones, in float64.
    """

    def __init__(self, seed: int) -> None:
        self._twister = np.random.RandomState(seed)
        self._kept: float | None = None  # the second number of the last pair that was drawn one by one

    def standard_normal(self, size: int | tuple[int, ...] | None = None, *, out: Any = None) -> NDArray[Any]:
        """`torch.randn(size)`, filled in row-major order; into the array `out` where that is given.

        From 16 numbers on they are made in blocks of 16. Where 16 does not divide how many there are, a fresh block is
        put over the last 16. Fewer are made one by one, in pairs of which the second is kept for the next such call,
        whatever blocks are drawn in between.
        """
        shape = np.shape(out) if out is not None else (size,) if isinstance(size, int) else size or ()
        n = math.prod(shape)
        numbers = self._in_blocks(n) if n >= BLOCK else np.array([self._one() for _ in range(n)], dtype=np.float32)
        normals = numbers.astype(float).reshape(shape)
        if out is not None:
            out[...] = normals
        return normals

    def symmetric(self, d: int) -> NDArray[Any]:
        """(d, d) the lower triangle of a normal array with its diagonal, mirrored."""
        square = self.standard_normal((d, d))
        return np.asarray(np.tril(square) + np.tril(square, -1).T)

    def laplace(self, size: tuple[int, ...] = ()) -> NDArray[Any]:
        """Numbers of `torch.distributions.Laplace(0, 1)`, one output each."""
        v = self._uniform(math.prod(size)) * (np.float32(1) - (_EPS - np.float32(1))) + (_EPS - np.float32(1))
        return np.asarray((-np.sign(v) * np.log1p(-np.abs(v))).astype(float).reshape(size))

    def _in_blocks(self, n: int) -> NDArray[Any]:
        numbers = self._uniform(n)
        whole = n - n % BLOCK
        numbers[:whole] = _box_muller(numbers[:whole].reshape(-1, BLOCK)).ravel()
        if whole < n:
            numbers[n - BLOCK :] = _box_muller(self._uniform(BLOCK)[None])[0]
        return numbers

    def _uniform(self, n: int) -> NDArray[Any]:
        """n float32 numbers on [0, 1): the low 24 bits of an output each."""
        return np.asarray((self._outputs(n) & _LOW_24).astype(np.float32) * _UNIT_24)

    def _outputs(self, n: int) -> NDArray[Any]:
        return np.asarray(self._twister.randint(0, 2**32, size=n, dtype=np.uint32))

    def _one(self) -> float:
        if self._kept is not None:
            kept, self._kept = self._kept, None
            return kept
        first, second = self._long_uniform(), self._long_uniform()
        radius, angle = math.sqrt(-2 * math.log1p(-second)), 2 * math.pi * first
        self._kept = radius * math.sin(angle)
        return radius * math.cos(angle)

    def _long_uniform(self) -> float:
        """A float64 number on [0, 1): the low 53 bits of two outputs, the high word first."""
        high, low = (int(x) for x in self._outputs(2))
        return ((high << 32 | low) & (2**53 - 1)) * 2.0**-53


def _box_muller(uniform: NDArray[Any]) -> NDArray[Any]:
    """Blocks (b, 16) of uniform numbers to normal ones, in float32: radii of the first eight, angles of the others."""
    radii = np.sqrt(np.float32(-2) * np.log(np.float32(1) - uniform[:, : BLOCK // 2]))
    angles = np.float32(2 * math.pi) * uniform[:, BLOCK // 2 :]
    return np.concatenate([radii * np.cos(angles), radii * np.sin(angles)], axis=1)
