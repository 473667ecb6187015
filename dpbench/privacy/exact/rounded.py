"""Exact samples of a Gaussian or Laplace variable rounded to the nearest integer: round(σN) and round(bL).

Why rounded: for an integer x, x + round(σN) = round(x + σN). It is a function of the Gaussian mechanism's output, so
all that is known of that mechanism (μ, its profile, every composition and amplification) holds for it.

How: |N| = Φ⁻¹(1 - q) for q uniform on (0, 1/2), of which 53 random bits V are drawn, so q is in [V, V + 1)/2⁵⁴, and
-ln q, q uniform on (0, 1), is |L|. Both are decreasing functions f of q. f is tabulated: on each of 32 cells of every
octave of V, a Taylor polynomial of degree 8 around the centre (`table`). The product of scale and polynomial is rounded
to an integer k, unless it lies so near to a half that its error, or the bits of q that are not drawn yet, might change
k. Then more bits are drawn and k is decided in multiple precision (`_decided`). This is Ziv's strategy for correctly
rounded functions, and the integers have exactly the law of the rounded variable.

The error, for f at V/2⁵⁴ (the octave's V = m·2^e with m in [1/2, 1), t = m less the cell's centre, exact, |t| ≤ 2⁻⁷):
  - the constant coefficient is f rounded once, from 110 bits: 2⁻⁵³·|f|;
  - Taylor's remainder, at most 2⁻⁵⁶ (bounded by interval arithmetic over every cell in the tests);
  - the other coefficients times t are at most 0.03 in all and right to 2⁻⁴⁵, with their rounding less than 2⁻⁵⁰ of it;
  - the last addition and the product with the scale: 2⁻⁵³ of the result each;
  - what is not drawn of q: |f'| ≤ 1.2534/q for the normal (q/φ(f) ≤ √(π/2) there, Mills' ratio at 0) and 1/q for the
    Laplace law, so f moves by at most 1.2534/V.
Together less than 2⁻⁵¹(|f| + 1) + 1.26/V, which is what `_fast` takes. Below V = 2²¹ (one draw in 2³²) all is decided
in multiple precision.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbench.privacy.exact.bits import Bits

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

CELLS = 32  # of an octave
DEGREE = 8
LEAST, MOST = 22, 53  # exponents e of the V in the table: V = m 2^e, m in [1/2, 1)
PRECISION = 110  # bits of what the table is computed with
LARGEST = 2.0**45  # of a scale: beyond, most draws would be in doubt
MORE = 64  # bits drawn when in doubt


class Law(NamedTuple):
    """A symmetric law by its upper half.

    whole: log₂ of the denominator of q, q = V/2^whole. tail(x, mp): the q at which f is x, a decreasing function, in
    multiple precision. furthest: beyond that many scales the tail is less than any q of 10⁴ bits.
    """

    name: str
    whole: int
    tail: Callable[[Any, Any], Any]
    furthest: float


NORMAL = Law("normal", 54, lambda x, mp: mp.erfc(x / mp.sqrt(2)) / 2, 120.0)
LAPLACE = Law("laplace", 53, lambda x, mp: mp.exp(-x), 7000.0)


def normal(scale: float | Floats, count: int, bits: Bits) -> Integers:
    """(count,) independent round(scale·N), N standard normal; scale: one or (count,), 0 < scale ≤ 2⁴⁵."""
    return _rounded(NORMAL, scale, count, bits)


def laplace(scale: float | Floats, count: int, bits: Bits) -> Integers:
    """(count,) independent round(scale·L), L of density e^{-|x|}/2; scale as of `normal`."""
    return _rounded(LAPLACE, scale, count, bits)


def _rounded(law: Law, scale: float | Floats, count: int, bits: Bits) -> Integers:
    least, most = np.min(scale), np.max(scale)
    if not (least > 0 and most <= LARGEST):
        raise ValueError(f"scale: must be in (0, 2**45], got {least:g} … {most:g}")
    words = bits.words(count)
    V = (words >> np.uint64(11)).astype(np.float64)  # 53 bits, exactly
    size, doubtful = _fast(law, V, scale)
    for i in np.flatnonzero(doubtful):
        one = float(scale if np.ndim(scale) == 0 else np.asarray(scale)[i])
        size[i] = _decided(law, int(V[i]), one, bits)
    return np.where(words & np.uint64(1), size, -size).astype(np.int64)


def _fast(law: Law, V: Floats, scale: float | Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """(round(scale·f), whether that may be wrong), each of the shape of V."""
    m, e = np.frexp(V)
    inside = e >= LEAST
    cell = np.where(inside, (m * (2 * CELLS)).astype(np.intp) + (e.astype(np.intp) - LEAST - 1) * CELLS, 0)
    centres, coefficients = table(law)
    t = np.subtract(m, centres.take(cell), out=m)
    value = coefficients[DEGREE].take(cell)
    for k in range(DEGREE - 1, -1, -1):
        value *= t
        value += coefficients[k].take(cell)
    error = np.divide(1.26, np.maximum(V, 1.0), out=t)
    error += 2.0**-51 * (value + 1)
    error *= scale
    value *= scale
    nearest = np.rint(value)
    value -= nearest
    np.abs(value, out=value)
    value += error
    return nearest, (value >= 0.5) | ~inside


def _decided(law: Law, V: int, scale: float, bits: Bits) -> int:
    """The least k ≥ 0 with tail((k + 1/2)/scale) < q, for the q whose first bits are V: more of them as needed."""
    mp = _multiple_precision()
    width = law.whole
    while True:
        V, width = V << MORE | int(bits.words(1)[0]), width + MORE
        with mp.workprec(width + 64):
            unit = mp.mpf(2) ** -width
            slack = unit * mp.mpf(2) ** -32  # 2³² times the error of a tail in this precision
            ends = [_least(law, end, scale, mp) for end in (V * unit - slack, (V + 1) * unit + slack)]
        if ends[0] == ends[1]:
            return ends[0]


def _least(law: Law, q: Any, scale: float, mp: Any) -> int:
    """The least k ≥ 0 with tail((k + 1/2)/scale) < q; one beyond all that matter for q ≤ 0."""
    low, high = 0, math.ceil(law.furthest * scale) + 1
    while low < high:
        middle = (low + high) // 2
        if law.tail((middle + mp.mpf(0.5)) / mp.mpf(scale), mp) < q:
            high = middle
        else:
            low = middle + 1
    return low


@functools.cache
def table(law: Law) -> tuple[Floats, Floats]:
    """(centres (cells,) of m, Taylor coefficients (DEGREE + 1, cells) of f in m around them), octave by octave."""
    middles = (np.arange(CELLS, 2 * CELLS) + 0.5) / (2 * CELLS)
    octaves = np.arange(LEAST, MOST + 1)
    centres = np.tile(middles, len(octaves))
    exponents = np.repeat(octaves - law.whole, CELLS)
    return centres, (_normal_series if law is NORMAL else _laplace_series)(centres, exponents)


def _normal_series(centres: Floats, exponents: NDArray[Any]) -> Floats:
    """Of f(m) = Φ⁻¹(1 - m 2^e): f' = -g with g = 2^e √(2π) exp(f²/2), and g' = f f' g."""
    from scipy.special import ndtri

    mp = _multiple_precision()
    f, g = np.zeros((DEGREE + 1, len(centres))), np.zeros((DEGREE + 1, len(centres)))
    starts = -ndtri(np.ldexp(centres, exponents))
    with mp.workprec(PRECISION):
        for i, (m, e, start) in enumerate(zip(centres, exponents, starts, strict=True)):
            q, x = mp.ldexp(mp.mpf(float(m)), int(e)), mp.mpf(float(start))
            step = (mp.erfc(x / mp.sqrt(2)) / 2 - q) * mp.sqrt(2 * mp.pi) * mp.exp(x * x / 2)
            if abs(step) > 1e-12:  # Newton's error is about |x| step²/2
                raise ArithmeticError("scipy.special.ndtri is not right to twelve digits")
            x += step
            f[0, i] = float(x)
            g[0, i] = float(mp.ldexp(mp.sqrt(2 * mp.pi) * mp.exp(x * x / 2), int(e)))
    for k in range(DEGREE):
        f[k + 1] = -g[k] / (k + 1)
        squares = [(g[: j + 1] * g[j::-1]).sum(axis=0) for j in range(k + 1)]
        g[k + 1] = -sum(f[j] * squares[k - j] for j in range(k + 1)) / (k + 1)
    return f


def _laplace_series(centres: Floats, exponents: NDArray[Any]) -> Floats:
    """Of f(m) = -ln(m 2^e)."""
    mp = _multiple_precision()
    f = np.zeros((DEGREE + 1, len(centres)))
    with mp.workprec(PRECISION):
        f[0] = [float(-mp.log(mp.ldexp(mp.mpf(float(m)), int(e)))) for m, e in zip(centres, exponents, strict=True)]
    for k in range(1, DEGREE + 1):
        f[k] = (-1 / centres) ** k / k
    return f


def _multiple_precision() -> Any:
    import mpmath

    return mpmath.mp
