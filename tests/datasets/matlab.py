"""MATLAB's random numbers, which the draw of accelerated's authors is made of.

MATLAB's `rand` and `randn` after `rng(seed)` are rebuilt on NumPy's Mersenne Twister. `rand` takes 53 bits of two words
of the twister, as `RandomState.random_sample` does. `randn` is the ziggurat of Marsaglia and Tsang (2000), 256 layers,
on the same two words: the 53 bits are the abscissa u in [-1, 1), the highest byte of the second word is the layer; a
point outside the layer's rectangle is tested against the density with one more `rand`. Checked against the first
values that MATLAB prints after `rng default`.
"""

import math

import numpy as np

LAYERS = 256
R, V = 3.6541528853610088, 4.92867323399e-3  # where the tail begins, and the area of a layer


class Twister:
    """MATLAB's global stream after `rng(seed)`. seed: 0 stands for `rng default`, as there."""

    def __init__(self, seed: int) -> None:
        self._mt = np.random.RandomState(seed or 5489)
        # From the tail inwards: each layer has the area V, which fixes its inner edge.
        edges = [0.0] * LAYERS + [V / _density(R)]
        edges[-2] = R
        for i in range(LAYERS - 2, 0, -1):
            edges[i] = math.sqrt(-2 * math.log(V / edges[i + 1] + _density(edges[i + 1])))
        self._edges = edges

    def rand(self, rows: int, columns: int = 1) -> np.ndarray:
        """(rows, columns) uniform numbers in (0, 1), filled column by column."""
        return self._mt.random_sample(rows * columns).reshape(columns, rows).T

    def randn(self, rows: int) -> np.ndarray:
        """(rows,) standard normal numbers."""
        return np.array([self._normal() for _ in range(rows)])

    def _normal(self) -> float:
        while True:
            high, low = (int(word) for word in self._mt.randint(0, 2**32, size=2, dtype=np.uint32))
            # 53 bits of the two words, as `rand` takes them; the top byte of the second names the layer.
            u, layer = ((high >> 5) * 2**26 + (low >> 6)) / 2**53, low >> 24
            inner, outer = self._edges[layer], self._edges[layer + 1]
            value = (2 * u - 1) * outer
            if abs(value) < inner:
                return value
            if layer == LAYERS - 1:
                raise NotImplementedError("randn: a number beyond 3.65, for which MATLAB's rule is not known")
            top, bottom = _density(inner), _density(outer)
            # In the wedge between the rectangle and the density: the point is kept if it lies below.
            if bottom + self._mt.random_sample() * (top - bottom) < _density(value):
                return value


def _density(x: float) -> float:
    return math.exp(-0.5 * x * x)
