"""Random allocation: each row takes part in one of the t steps of an epoch, drawn uniformly (balls and bins).

As in Chua et al. (2024) and Feldman and Shenfeld (2025), under add/remove. In units of the sensitivity: a row whose
step is I moves step i by 1[i = I]·g_i, ‖g_i‖₂ ≤ 1, and g_i may depend on what was released before. Given
x_i = 1[i = I] + z·N_i, step i is x_i g_i + √(1 - ‖g_i‖²) z·N'_i along g_i and noise that no row moves across it: every
run is made of the x alone (post-processing). So one pair dominates, P = (1/t) Σ N(e_i, z²I) and Q = N(0, z²I).

Its likelihood ratio is S/t, S = Σ Y_i, Y_i = e^{(2x_i - 1)/(2z²)}: independent under Q, lognormal of mean 1. Hence

    δ(ε) = E_Q(S/t - e^ε)⁺ with the row removed, E_Q(1 - e^ε S/t)⁺ with the row added.

Both are convex in each Y_i. So they rise, for every ε, where a Y_i gives way to one of the same mean on the two ends of
its bin of a grid, and the pair that S is of then dominates this one (Zhu, Dong and Wang 2022, Theorem 10: its
compositions do, too). Beyond a cap Y_i is the cap, and what that takes of S's mean counts as an infinite loss. S is
a sum of t equal laws: one Fourier transform, raised to the power t. Its error is bounded (`_sum`), masses
are lowered by the bound, and what all of them lack is an infinite loss, too.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbench.privacy.accounting.gaussian import normal_masses

Array = NDArray[np.floating[Any]]

FINENESS = 32  # intervals to the standard deviation of Y, where t is MANY or more: the error of ε is about 1e-4
MANY = 64
HIGHEST, LOWEST = 7.65, 12.0  # deviations of ln Y up to the cap (Φ(-7.65) = 1e-14 of the mean is beyond), and down
TAIL = 1e-26  # of S, beyond either end of the window that the transform sees
SLOPE = 23.0  # of the tilt over the window: what wraps around it, e^SLOPE times as much at most, stays below WRAPPED
WRAPPED = 1e-14
LARGEST = 2**23  # points of a grid
LEAST_DELTA = 1e-10  # below it the error of the transforms would count
LEAST = 0.75  # noise multiplier, below which the cap is so far that a grid would be too large
LONG = np.longdouble  # 80 bits where there are: in 64 the error of a transform would be felt at δ < 1e-8


class Ratios(NamedTuple):
    """S/t on a grid: ratios (m,), increasing, and masses (m,) of it under Q, none too large.

    removed, added: what is missing of all mass in that direction, an infinite loss.
    """

    ratios: Array
    masses: Array
    removed: float
    added: float


@lru_cache(maxsize=64)
def likelihood_ratio(steps: int, z: float) -> Ratios | None:
    """S/t of t = `steps` at noise multiplier `z`; None where the grid would be too large."""
    from scipy.special import ndtr

    s = 1 / z  # ln Y is N(-s²/2, s²)
    with np.errstate(over="ignore"):
        interval = np.sqrt(np.expm1(s * s)) / FINENESS * min(1.0, math.sqrt(steps / MANY))
        low, cap = np.exp(-s * s / 2 - LOWEST * s), np.exp(s * s / 2 + HIGHEST * s)
    if z < LEAST or cap - low > LARGEST * interval:
        return None
    edges = interval * np.arange(math.floor(low / interval), math.ceil(cap / interval) + 1)
    with np.errstate(divide="ignore"):
        x = np.log(edges) / s
    mass, mean = normal_masses(x + s / 2), normal_masses(x - s / 2)  # of each bin: of 1, and of E Y
    up = np.clip((mean - edges[:-1] * mass) / interval, 0.0, mass)
    masses = np.append(mass - up, ndtr(-x[-1] - s / 2))
    masses[1:] += up
    window = _window(edges, masses, steps)
    first, last = (math.floor((end - steps * edges[0]) / interval) + i for i, end in enumerate(window))
    size = 2 ** math.ceil(math.log2(last - first + 1))
    if size > LARGEST:
        return None
    # The tilted sum is sharper where S is large, the plain one where it is small.
    total = np.maximum(*(_sum(masses, steps, first, size, slope / size) for slope in (0.0, SLOPE)))
    ratios = edges[0] + interval / steps * np.arange(first, first + size)
    kept = total > 0
    ratios, total = ratios[kept], total[kept]
    # What wraps around the window is where it does no good, but it also hides what is missing: once more, then.
    # So does rounding, by which a mass of Y is off by a few units and one of S by t times as many.
    hidden = WRAPPED + 8 * steps * float(np.finfo(float).eps)
    removed, added = (max(0.0, float(1 - whole)) + hidden for whole in (ratios @ total, total.sum()))
    return Ratios(ratios, total.astype(float), removed, added)


def _sum(masses: Array, count: int, first: int, size: int, tilt: float) -> Array:
    """At most the masses (size,), from `first` on, of a sum of `count` independent variables of `masses` on 0, 1, ….

    By masses times e^{tilt·k}, which the sum's are divided by again, and with them their error. A transform of N
    points is off by at most 8 u log₂N times its ℓ₂ norm (Higham 2002, Theorem 24.2), a power by count times the
    relative error of its base; from there to a mass by Cauchy and Schwarz. To first order, doubled for the others.
    """
    from scipy import fft

    places = np.arange(len(masses))
    middle = float(places @ masses)
    tilted = masses * np.exp(tilt * (places - middle))
    scale = tilted.sum()
    folded = np.bincount(places % size, weights=tilted / scale, minlength=size)
    spectrum = fft.rfft(folded.astype(LONG))
    square, before, power = spectrum, count - 1, np.ones_like(spectrum)
    while before:
        if before % 2:
            power = power * square
        square, before = square * square, before // 2
    total = np.roll(fft.irfft(power * spectrum, size), -(first % size))
    unit = 8 * float(np.finfo(LONG).eps) / 2 * math.log2(size)
    # Half of the spectrum is that of all by symmetry: at most twice the mean over this half.
    steep = math.sqrt(2 * float(np.mean(np.abs(power) ** 2)))
    error = 2 * unit * (count * float(np.linalg.norm(folded)) * steep + float(np.sqrt(np.sum(total**2))))
    plain = np.exp(count * math.log(scale) - tilt * (np.arange(first, first + size) - count * middle))
    return np.asarray(np.maximum(total - error, 0.0) * plain)


def _window(values: Array, masses: Array, count: int) -> tuple[float, float]:
    """Ends beyond which the sum of `count` has at most TAIL: below of its mass, above of its mean (Chernoff)."""
    mean = float(values @ masses)
    span = float(values[-1] - mean)
    # Where few large terms decide, and where all do.
    fastest = math.sqrt(-2 * math.log(TAIL) / (count * float((values - mean) ** 2 @ masses)))
    rates = np.geomspace(min(15 / span, fastest), min(120 / span, fastest), 8)
    low, high = count * values[0], count * values[-1]
    for rate in rates:
        for sign in (-1, 1):
            with np.errstate(over="ignore", invalid="ignore"):  # 0 · ∞ is NaN, which no bound is below
                grown = masses * np.exp(sign * rate * (values - mean))
            log = (count - 1) * math.log(grown.sum()) - math.log(TAIL)
            if sign < 0:
                low = np.fmax(low, count * mean - (log + math.log(grown.sum())) / rate)
            else:
                high = np.fmin(high, count * mean + (log + math.log(values @ grown)) / rate)
    return float(low), float(high)
