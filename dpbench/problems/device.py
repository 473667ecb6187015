"""Rows on a device of JAX (the extra `jax`): the interface of `Rows`, its sums compiled for a processor or a GPU.

Iterates and noise stay NumPy, in float64: what goes out is W (k, d), what comes back are the sums. The rows are copied
to the device once. What is no sum over blocks (single rows, coordinates, columns, a minimiser's certificate) is taken
from those that stay in memory. A block's predictions of all k replicates are one matrix product, its sums another.

Rows of float32 are multiplied in float32, without the shorter formats of GPUs, 1,024 at a time, and added in float64.
Exact sums (`exact`) are multiples of a power of two that float64 holds, whoever adds them and in whatever order, so
that a device gives the same integers as NumPy wherever the derivative of a row rounds to the same multiple of 2⁻¹⁶.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpbench.errors import UserError
from dpbench.problems.kernels import Pointwise, Rows
from dpbench.problems.losses import Loss

jax.config.update("jax_enable_x64", True)

GROUP = 1024  # rows whose products are added in the rows' own type
NUMBERS = 2**25  # of a block: rows times (columns + replicates)
Array = Any  # of JAX


def check(loss: Loss) -> None:
    """UserError for a loss that is written for NumPy alone (see `namespace`)."""
    z, y = jax.ShapeDtypeStruct((loss.outputs, 2), np.float64), jax.ShapeDtypeStruct((2,), np.float64)
    for function in (loss.value, loss.derivative, *([loss.second_derivative] if loss.smooth else [])):
        try:
            jax.eval_shape(function, z, y, z)
        except UserError:
            continue  # one that it does not have
        except (TypeError, ValueError, AttributeError, NotImplementedError, jax.errors.JAXTypeError) as error:
            raise UserError(f"device: {loss.name} loss is written for NumPy alone; leave device out") from error


class DeviceRows(Rows):
    """The rows of a dense X (n, d), float64 or float32, on `device`: "cpu" or "gpu", or another platform of JAX.

    Raises UserError where JAX has no such device, and for sparse rows.
    """

    def __init__(self, X: Any, y: np.ndarray, device: str) -> None:
        super().__init__(X, y)
        if self.sparse:
            raise UserError("device: sparse rows are computed on in memory; leave device out")
        self.device = _device(device)
        self._length = -(-self.n // GROUP) * GROUP  # with rows of zeros behind, which `_block` does not count
        padded = np.zeros((self._length, self.d), self.X.dtype)
        padded[: self.n] = self.X
        labels = np.concatenate([self.y, np.ones(self._length - self.n, self.y.dtype)])
        self._A, self._b = jax.device_put(padded, self.device), jax.device_put(labels, self.device)

    @functools.cached_property
    def widened(self) -> Rows:
        """See `Rows`; those of a float32 X in memory."""
        return Rows(self.X, self.y).widened if self.single else self

    def sum(self, function: Pointwise, W: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """See `Rows`."""
        return self._added(_sum, (function,), W, rows, (len(W),))

    def weighted_sum(self, function: Pointwise, W: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """See `Rows`."""
        return self._added(_weighted_sum, (function,), W, rows, (len(W), self.d))

    def sum_and_weighted_sum(
        self, value: Pointwise, derivative: Pointwise, W: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """See `Rows`."""
        both = self._added(_sum_and_weighted_sum, (value, derivative), W, None, (len(W), self.d + 1))
        return both[:, 0], both[:, 1:]

    def gram(
        self, function: Pointwise, W: np.ndarray, rows: np.ndarray | None = None, *, convex: bool = True
    ) -> np.ndarray:
        """See `Rows`."""
        found = self._added(_gram, (function,), W, rows, (len(W), self.d, self.d))
        return (found + found.swapaxes(1, 2)) / 2

    def whole(self, function: Callable[..., Any], room: int, *arguments: Any) -> np.ndarray:
        """See `Rows.whole`."""
        kernel = {"weighted_sum": _weighted_sum, "gram_sum": _gram}.get(function.__name__)
        if kernel is None or arguments[0] is None or room < GROUP:
            return super().whole(function, room, *arguments)
        pointwise, W, bits, chosen = arguments
        shape = (len(W), self.d) if kernel is _weighted_sum else (len(W), self.d, self.d)
        unit = 2.0 ** (bits if kernel is _weighted_sum else 2 * bits)
        total = np.zeros(shape, dtype=np.int64)
        for part in self._parts(kernel, (pointwise,), W, chosen, room, exact=True):
            total += (part * unit).astype(np.int64)
        return total

    def _added(
        self,
        kernel: Callable[..., Array],
        functions: tuple[Pointwise, ...],
        W: np.ndarray,
        rows: np.ndarray | None,
        shape: tuple[int, ...],
    ) -> np.ndarray:
        total = np.zeros(shape)
        for part in self._parts(kernel, functions, W, rows):
            total += part
        return total

    def _parts(
        self,
        kernel: Callable[..., Array],
        functions: tuple[Pointwise, ...],
        W: np.ndarray,
        rows: np.ndarray | None,
        room: int = 2**62,
        *,
        exact: bool = False,
    ) -> Iterator[np.ndarray]:
        """What the kernel gives for each block of at most `room` rows, in float64."""
        A, b, n = self._A, self._b, self.n
        if rows is not None:  # a power of two of them, so that few sizes are compiled
            n = len(rows)
            chosen = np.zeros(max(GROUP, 2 ** (n - 1).bit_length() if n else 0), dtype=np.int64)
            chosen[:n] = rows
            A, b = A[chosen], b[chosen]
        size = min(len(A), room // GROUP * GROUP, max(1, NUMBERS // ((self.d + len(W)) * GROUP)) * GROUP)
        run = _compiled(kernel, tuple(map(_Key, functions)), exact)
        V = jax.device_put(W if exact else W.astype(self.X.dtype), self.device)
        for start in range(0, n, size):
            here = min(size, len(A) - start)
            yield np.asarray(run(A, b, V, start, n, here), dtype=np.float64)


class _Key:
    """A function, equal to another that does the same: partial functions and methods are made anew at each call."""

    def __init__(self, function: Any) -> None:
        self.function = function
        parts = (function.func, function.args) if isinstance(function, functools.partial) else (function, ())
        self.parts = (parts[0], tuple(_Key(one) if callable(one) else one for one in parts[1]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(self.parts)


@functools.lru_cache(maxsize=256)
def _compiled(kernel: Callable[..., Array], keys: tuple[_Key, ...], exact: bool) -> Callable[..., Array]:
    """kernel(functions, A, y, z, counts) of the rows start … start + size, of which those before n count."""

    @functools.partial(jax.jit, static_argnums=5)
    def run(A: Array, b: Array, W: Array, start: int, n: int, size: int) -> Array:
        A = jax.lax.dynamic_slice_in_dim(A, start, size)
        y = jax.lax.dynamic_slice_in_dim(b, start, size)
        A, y = (A.astype(jnp.float64), y.astype(jnp.float64)) if exact else (A, y)
        with jax.default_matmul_precision("highest"):
            counts = start + jnp.arange(size) < n
            return kernel(tuple(key.function for key in keys), A, y, W @ A.T, counts)

    return run


def _counted(function: Pointwise, y: Array, z: Array, counts: Array) -> Array:
    return jnp.where(counts, function(z, y, z), 0).astype(z.dtype)


def _sum(functions: tuple[Pointwise, ...], A: Array, y: Array, z: Array, counts: Array) -> Array:
    return _counted(functions[0], y, z, counts).sum(axis=1, dtype=jnp.float64)


def _weighted_sum(functions: tuple[Pointwise, ...], A: Array, y: Array, z: Array, counts: Array) -> Array:
    return _products(_counted(functions[0], y, z, counts), A)


def _sum_and_weighted_sum(functions: tuple[Pointwise, ...], A: Array, y: Array, z: Array, counts: Array) -> Array:
    total = _sum(functions[:1], A, y, z, counts)
    return jnp.concatenate([total[:, None], _weighted_sum(functions[1:], A, y, z, counts)], axis=1)


def _gram(functions: tuple[Pointwise, ...], A: Array, y: Array, z: Array, counts: Array) -> Array:
    h = _counted(functions[0], y, z, counts)
    return jax.lax.map(lambda one: _products((A * one[:, None]).T, A), h)


def _products(C: Array, A: Array) -> Array:
    """C (k, b) @ A (b, d), in float64 from groups of rows."""
    if A.dtype == jnp.float64:
        return C @ A
    grouped = C.reshape(len(C), -1, GROUP).swapaxes(0, 1)
    return (grouped @ A.reshape(-1, GROUP, A.shape[1])).astype(jnp.float64).sum(axis=0)


def _device(name: str) -> Any:
    try:
        return jax.devices(name)[0]
    except RuntimeError:
        there = ", ".join(sorted({one.platform for one in jax.devices()} | {"cpu"}))
        raise UserError(f"device: JAX has no {name!r} here; it has: {there}") from None
