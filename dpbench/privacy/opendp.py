"""Releases with noise from OpenDP's samplers: exact discrete Gaussian and Laplace noise from the system's entropy.

`Mechanisms` adds float64 noise, whose low digits can reveal what it was added to (Mironov 2012), from a generator that
is not cryptographic. OpenDP rounds the value to the finest grid of float64 and draws an integer multiple of its step
exactly (Canonne, Kamath and Steinke 2020). What is sampled, permuted or drawn besides noise still comes from NumPy's
generator, under a key of the system's entropy. OpenDP marks the two constructors "contrib": not yet vetted by all its
reviewers.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from dpbench.errors import UserError, how_to_install
from dpbench.privacy.mechanisms import Mechanisms
from dpbench.privacy.release import ISOMETRIC, LAPLACE, SYMMETRIC, Array, Noise, Releases


class OpenDPReleases(Releases):
    """The seam for one replicate with OpenDP's noise, for methods that add it to what they release.

    Not so: trees, correlated noise and objective perturbation, which compute on with noise drawn apart from any value,
    and steps on single rows, which draw theirs in a compiled loop. They raise UserError.
    """

    ahead = plantable = False

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        library()
        self.noise = [_NoGenerator() for _ in self.noise]

    def noisy(self, value: Array, scale: Array, noise: Noise) -> Array:
        if not (np.isfinite(value).all() and np.isfinite(scale).all()):
            return np.full(value.shape, np.nan)  # a run that diverged; OpenDP would put a number there
        flat, b = value[0].reshape(-1), float(scale.reshape(-1)[0])
        if noise is not SYMMETRIC and noise is not ISOMETRIC:
            return np.array(_measurement(noise is LAPLACE, b)(flat)).reshape(value.shape)
        rows, columns = np.triu_indices(value.shape[-1])
        result, off = np.empty(value.shape), rows != columns
        for part, std in ((~off, b), (off, b if noise is SYMMETRIC else b * math.sqrt(0.5))):
            at = rows[part], columns[part]
            if len(at[0]):
                result[0][at] = _measurement(False, std)(value[0][at])
        result[0][columns, rows] = result[0][rows, columns]
        return result

    def draw(self, shape: tuple[int, ...], scale: Array, noise: Noise, what: str) -> Array:
        raise _unfit(what)


class OpenDPMechanisms(Mechanisms):
    """`Mechanisms` for one replicate that draw through `OpenDPReleases`."""

    seam = OpenDPReleases


class _NoGenerator(np.random.Generator):
    """In the place of the noise streams, for whoever would draw from them past `noisy`."""

    def __init__(self) -> None:
        super().__init__(np.random.PCG64DXSM())

    def standard_normal(self, *_: Any, **__: Any) -> Any:
        raise _unfit("a compiled loop over single rows")


def _unfit(what: str) -> UserError:
    return UserError(f"release_noise: {what} takes noise that is not made for the value; use a method without it")


@functools.lru_cache(maxsize=256)
def _measurement(laplace: bool, scale: float) -> Any:
    dp = library()
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    if laplace:
        return dp.m.make_laplace(domain, dp.l1_distance(T=float), scale=scale)
    return dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=scale)


@functools.cache
def library() -> Any:
    """`opendp.prelude`, its constructors enabled; UserError that says how to install it."""
    try:
        import opendp.prelude as dp
    except ImportError:
        raise UserError(f"release_noise='opendp' needs opendp; {how_to_install('release')}") from None
    dp.enable_features("contrib")
    return dp
