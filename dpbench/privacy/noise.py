"""The seam below every mechanism: named random streams, the noise drawn from them, and the ledger of each draw.

All arrays have a leading axis of length k, one row per replicate. Replicate i draws from the streams "noise",
"sampling" and "coins" of its own key: what it gets depends on the key alone, not on its batch, worker or machine.
Replicates of equal keys share one draw (common random numbers); they stand next to each other and advance in step.
Noise is float64 from a seeded generator: fit for a benchmark, not for the release of sensitive data.

An audit decorates `Releases`: `publish` sees every value that leaves, `sample` every sample that is drawn.

`TorchCPU` rebuilds the random numbers of PyTorch's CPU generator, for runs that repeat a published stream. Normal draws
agree with torch's within 3.6e-7 (its vectorised logarithm and cosine differ in the last bits of a float32), the
position in the stream exactly. Not for private runs: a published seed gives the noise away.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import math
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from dpbench.errors import PrivacyError
from dpbench.privacy.ledger import Drawn, Ledger, Release

BLOCK = 16  # normals of a block: eight radii and eight angles
_LOW_24, _UNIT_24 = np.uint32(2**24 - 1), np.float32(2.0**-24)
_EPS = np.float32(np.finfo(np.float32).eps)


def stream(key: str, name: str) -> np.random.Generator:
    """The stream `name` ("init", "noise", "sampling" or "coins") of the job `key`.

    PCG64DXSM, seeded by a `SeedSequence` on the 128-bit blake2b digest of "name:key": streams of different names or
    keys are independent for all practical purposes, equal ones are equal bit by bit.

    >>> stream("a", "noise").random() == stream("a", "noise").random()
    True
    """
    # A hash and not the key's own bits: neighbouring keys must not give neighbouring seeds.
    digest = hashlib.blake2b(f"{name}:{key}".encode(), digest_size=16).digest()
    seed = np.random.SeedSequence(int.from_bytes(digest, "big"))
    return np.random.Generator(np.random.PCG64DXSM(seed))


Array = NDArray[Any]
Scalars = float | Array  # one value for the batch, or one per replicate: ()- or (k,)-shaped
OBJECTIVE = "objective perturbation"  # what a linear term is drawn for
Event = Callable[[float], Release]  # a noise multiplier (or ε) to what the ledger gets


class Noise(NamedTuple):
    """A law of unit noise, and how a contiguous array is filled with it."""

    name: str
    fill: Callable[[np.random.Generator, Array], None]


def _normal(generator: np.random.Generator, out: Array) -> None:
    generator.standard_normal(out=out)


def _symmetric(generator: np.random.Generator, out: Array) -> None:
    if own := getattr(generator, "symmetric", None):  # a published stream fills symmetric matrices by its own rule
        out[...] = own(len(out))
        return
    rows, columns = _upper_triangle(len(out))
    out[rows, columns] = generator.standard_normal(len(rows))
    out[columns, rows] = out[rows, columns]


def _isometric(generator: np.random.Generator, out: Array) -> None:
    _symmetric(generator, out)
    diagonal = np.einsum("ii->i", out).copy()
    out *= np.sqrt(0.5)
    np.einsum("ii->i", out)[:] = diagonal


def _laplace(generator: np.random.Generator, out: Array) -> None:
    out[...] = generator.laplace(size=out.shape)


def _radial(generator: np.random.Generator, out: Array) -> None:
    generator.standard_normal(out=out)
    out *= generator.standard_gamma(out.size) / np.linalg.norm(out)


def _gumbel(generator: np.random.Generator, out: Array) -> None:
    out[...] = generator.gumbel(size=out.shape)


def _uniform(generator: np.random.Generator, out: Array) -> None:
    out[...] = generator.random(size=out.shape)


@lru_cache(maxsize=8)
def _upper_triangle(d: int) -> tuple[Array, Array]:
    return np.triu_indices(d)


NORMAL, LAPLACE = Noise("normal", _normal), Noise("laplace", _laplace)
# On symmetric matrices: of variance 1 in every entry, or of 1/2 off the diagonal. With the upper triangle's entries off
# the diagonal times √2, the Frobenius norm is the ℓ₂ norm, and the latter is N(0, I) of that vector.
SYMMETRIC, ISOMETRIC = Noise("symmetric", _symmetric), Noise("isometric", _isometric)

# Of density ∝ e^{-‖b‖₂}: a length of Gamma(d) in a uniform direction.
RADIAL = Noise("radial", _radial)
GUMBEL = Noise("Gumbel", _gumbel)
UNIFORM = Noise("uniform", _uniform)  # on [0, 1): the place within a box, which hides nothing by itself


class Releases:
    """Streams, noise and ledger of the replicates named by `keys`.

    streams: slices of replicates, one per stream: all of length 1 as a rule. noise, sampling, coins: a generator per
    stream; coins are for random choices that use no data. `noiseless` adds no noise and records everything all the
    same. `factor`: what a declared sensitivity is multiplied by (2 where an add/remove algorithm runs for replace-one).
    `planted`: what the noise is multiplied by in a run that is wrong on purpose. The ledger does not get it, so such a
    run keeps no ε; seams that release to the world refuse any but 1 (`plantable`).
    """

    plantable: ClassVar[bool] = True

    def __init__(
        self, keys: Sequence[str], *, noiseless: bool = False, factor: float = 1.0, planted: float = 1.0
    ) -> None:
        if planted != 1 and not self.plantable:
            raise PrivacyError(f"planted: {type(self).__name__} draws the noise that is right alone, not × {planted:g}")
        self.run_keys = tuple(keys)
        self.k, self.noiseless, self.factor, self.planted = len(keys), noiseless or planted == 0, factor, planted
        self.ledger = Ledger(self.k)
        self.members: tuple[int, ...] | None = None  # None: all of the ledger's replicates
        self.streams = _runs_of_equals(keys)
        self._distinct = [keys[members.start] for members in self.streams]

    @cached_property  # made when first drawn from: a generator takes as long to seed as a thousand normals
    def noise(self) -> list[np.random.Generator]:
        return [stream(key, "noise") for key in self._distinct]

    @cached_property
    def sampling(self) -> list[np.random.Generator]:
        return [stream(key, "sampling") for key in self._distinct]

    @cached_property
    def coins(self) -> list[np.random.Generator]:
        return [stream(key, "coins") for key in self._distinct]

    def draw_from(self, noise: Sequence[TorchCPU], sampling: Sequence[np.random.Generator]) -> None:
        """Draw noise and samples from these generators, one per stream: a published run's, which its key does not name.

        Nothing drawn so is private: whoever knows the published seed can subtract the noise.
        """
        if not len(noise) == len(sampling) == len(self.streams):
            raise ValueError(f"one generator per stream is {len(self.streams)} of each")
        self.noise, self.sampling = cast("list[np.random.Generator]", list(noise)), list(sampling)

    def member(self, i: int) -> Releases:
        """A view of replicate `i` alone (k = 1) on the same streams and ledger."""
        if len(self.streams) != self.k:
            raise PrivacyError("replicates that share a stream advance in step: none can be run alone")
        view = copy.copy(self)
        view.k, view.streams = 1, [slice(0, 1)]
        view.members = (i if self.members is None else self.members[i],)
        # The very generators, not copies: what one view draws, another does not draw again.
        view.noise, view.sampling, view.coins = [self.noise[i]], [self.sampling[i]], [self.coins[i]]
        return view

    def release(
        self,
        value: Array,
        noise: Noise,
        event: Event,
        label: str,
        *,
        sensitivity: Scalars,
        multiplier: Scalars,
        replaced: Scalars | None = None,
        count: int = 1,
    ) -> Array:
        """`value` + noise of scale sensitivity · multiplier, in the ledger as `event` of what was drawn, and published.

        replaced: instead of factor · sensitivity. count: how many the ledger gets. PrivacyError for a negative
        sensitivity.
        """
        value = np.asarray(value, dtype=float)
        moved = self.scaled_sensitivity(sensitivity, replaced)
        scale: Array = np.asarray(moved * multiplier, dtype=float)
        realised = _computed(moved, scale, multiplier)
        first = self.record(event, realised, label, value.shape[1:], scale, realised, count)
        return self.publish(noise.name, label, first, value, scale, lambda: self.noisy(value, scale, noise))

    def record(
        self,
        event: Event,
        parameter: Scalars,
        label: str,
        shape: tuple[int, ...],
        scale: Scalars,
        multiplier: Scalars,
        count: int = 1,
    ) -> Release:
        """`count` times event(parameter) into the ledger, with noise of `scale` = sensitivity · multiplier per entry.

        shape: of one replicate's value. With a (k,)-shaped parameter each replicate has its own. Returns the first.
        """
        low, high = (scale, scale) if np.ndim(scale) == 0 else (np.min(scale), np.max(scale))
        if not low > 0:  # or NaN, of a replicate that diverged
            if (np.asarray(scale) < 0).any():
                raise PrivacyError(f"{label}: sensitivity must not be negative, got a noise scale of {low:g}")
            zero = np.flatnonzero(np.broadcast_to(scale, (self.k,)) == 0)
            # Noise of scale 0 is no noise: the ledger says so, and the check refuses the run.
            self.ledger.exact |= {self.members[j] if self.members else int(j): label for j in zero}
        if np.ndim(parameter) == 0:
            release = event(float(parameter))
            drawn = Drawn(shape, float(low), float(high), float(np.ravel(multiplier)[0]))
            self.ledger.record(release, label, self.members, count, drawn)
            return release
        each = np.asarray(parameter)
        if each.shape != (self.k,):
            raise PrivacyError(f"{label}: one parameter per replicate is shape ({self.k},), got {each.shape}")
        scales, multipliers = np.broadcast_to(scale, each.shape), np.broadcast_to(multiplier, each.shape)
        releases = [event(float(one)) for one in each]
        for i, one, std, z in zip(self.members or range(self.k), releases, scales, multipliers, strict=True):
            self.ledger.record(one, label, (i,), count, Drawn(shape, float(std), float(std), float(z)))
        return releases[0]

    def scaled_sensitivity(self, sensitivity: Scalars, replaced: Scalars | None = None) -> Scalars:
        """The sensitivity in the run's own relation."""
        return self.factor * sensitivity if replaced is None or self.factor == 1 else replaced

    def noisy(self, value: Array, scale: Array, noise: Noise) -> Array:
        """`value` (k, …) + unit noise · scale. NaN or infinite where a replicate has diverged."""
        if value.shape[:1] != (self.k,):
            raise PrivacyError(f"a value to release needs the leading axis k = {self.k}, got shape {value.shape}")
        if self.noiseless:
            return np.array(value)
        out: Array = np.empty(value.shape)
        for members, generator in zip(self.streams, self.noise, strict=True):
            first = members.start
            noise.fill(generator, out[first : first + 1] if value.ndim == 1 else out[first])
            # Replicates of one key get the same numbers, drawn once.
            out[first + 1 : members.stop] = out[first]
        with np.errstate(invalid="ignore", over="ignore"):
            scale = scale if self.planted == 1 else scale * self.planted
            out *= scale if scale.ndim == 0 else scale.reshape((self.k,) + (1,) * (value.ndim - 1))
            out += value
        return out

    def term(self, d: int, noise: Noise, event: Event, multiplier: float, label: str, *, sensitivity: Scalars) -> Array:
        """The random linear term (k, d) of objective perturbation, in the ledger as event(multiplier)."""
        scale = np.asarray(self.scaled_sensitivity(sensitivity) * multiplier)
        self.record(event, multiplier, label, (d,), scale, multiplier)
        return self.hidden_noise((self.k, d), scale, noise, OBJECTIVE)

    def hidden_noise(self, shape: tuple[int, ...], scale: Array, noise: Noise, what: str) -> Array:
        """Noise apart from any value, for mechanisms that compute on with it; `what`, in words, is one."""
        return self.noisy(np.zeros(shape), scale, noise)

    def publish(
        self,
        kind: str,
        label: str,
        event: Release | None,
        value: Array,
        scale: Scalars,
        release: Callable[[], Array],
        group: Hashable = None,
        mix: Sequence[tuple[int, float]] = (),
    ) -> Array:
        """What the world sees of `value`: the result of `release`, called once.

        kind: "normal", "symmetric", "isometric", "laplace" or "radial" noise of `scale` on value; "argmax" or
        "argmax of magnitudes" of value with Laplace noise, "argmax by Gumbel noise"; "threshold", the answer of a
        sparse vector whose query is that far above its threshold; "depth", a point drawn by its depth among value's.
        group: the sparse vector it belongs to, or the mechanism whose rounds have correlated noise: with `mix`, that of
        (round, weight), of its earlier rounds added, a round is a release with independent noise of that scale.
        """
        return release()

    def sample(self, rule: Callable[[np.random.Generator], Array], least: Array) -> list[Array]:
        """What `rule` draws from each stream's generator of samples. least: a sample that holds row 0, for audits."""
        return [rule(generator) for generator in self.sampling]


def _computed(sensitivity: Scalars, scale: Array, multiplier: Scalars) -> Scalars:
    """The noise multiplier of what is drawn, scale over sensitivity: `multiplier` but for rounding, or 0/0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = scale / sensitivity
        off: Array = abs(ratio / multiplier - 1) > 1e-9
    return np.where(off, ratio, multiplier) if off.any() else multiplier


def _runs_of_equals(keys: Sequence[str]) -> list[slice]:
    starts = [i for i, key in enumerate(keys) if i == 0 or key != keys[i - 1]]
    # Equal keys apart from each other would draw the same noise twice for different values.
    if len({keys[i] for i in starts}) != len(starts):
        raise ValueError("keys: replicates that share a stream must stand next to each other")
    return [slice(a, b) for a, b in itertools.pairwise([*starts, len(keys)])]


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
