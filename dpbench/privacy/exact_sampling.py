"""Random bits for releases, and the samples and coins that are drawn from them without a rounding.

Exact samples of a Gaussian or Laplace variable rounded to the nearest integer: round(σN), round(bL), and round(sR).

Why rounded: for an integer x, x + round(σN) = round(x + σN). It is a function of the Gaussian mechanism's output, so
all that is known of that mechanism (μ, its profile, every composition and amplification) holds for it.

How: |N| = Φ⁻¹(1 - q) for q uniform on (0, 1/2), of which 53 random bits V are drawn, so q is in [V, V + 1)/2⁵⁴, and
-ln q, q uniform on (0, 1), is |L|. Both are decreasing functions f of q. f is tabulated: on each of 32 pieces of every
octave of V, a Taylor polynomial of degree 8 around the centre (`table`). The product of scale and polynomial is rounded
to an integer k, unless it lies so near to a half that its error, or the bits of q that are not drawn yet, might change
k. Then more bits are drawn and k is decided in multiple precision (`_decided`). This is Ziv's strategy for correctly
rounded functions, and the integers have exactly the law of the rounded variable.

The error, for f at V/2⁵⁴ (the octave's V = m·2^e with m in [1/2, 1), t = m less the piece's centre, exact, |t| ≤ 2⁻⁷):
  - the constant coefficient is f rounded once, from 110 bits: 2⁻⁵³·|f|;
  - Taylor's remainder, at most 2⁻⁵⁶ (bounded by interval arithmetic over every piece in the tests);
  - the other coefficients times t are at most 0.03 in all and right to 2⁻⁴⁵, with their rounding less than 2⁻⁵⁰ of it;
  - the last addition and the product with the scale: 2⁻⁵³ of the result each;
  - what is not drawn of q: |f'| ≤ 1.2534/q for the normal (q/φ(f) ≤ √(π/2) there, Mills' ratio at 0) and 1/q for the
    Laplace law, so f moves by at most 1.2534/V.
Together less than 2⁻⁵¹(|f| + 1) + 1.26/V, which is what `_fast` takes. Below V = 2²¹ (one draw in 2³²) all is decided
in multiple precision.

R in d dimensions, of density ∝ e^{-‖x‖₂}, is ‖M‖·N with M, N standard normal in d + 1 and d dimensions: given
‖M‖² = v, of density ∝ v^{(d-1)/2} e^{-v/2}, it is N(0, vI), and ∫ v^{-1/2} e^{-r²/(2v) - v/2} dv = √(2π) e^{-r}. M and
N are drawn as `Normals`, to as many bits as the rounding of the product takes.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]


class Bits(Protocol):
    """A source of independent, uniformly random bits."""

    def words(self, count: int) -> Words:
        """(count,) words of 64 bits."""
        ...


class SystemBits:
    """The operating system's cryptographic generator: the process keeps nothing that would predict later noise."""

    def words(self, count: int) -> Words:
        """See `Bits`."""
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


class SeededBits:
    """Bits of a seeded generator, for runs that are to be repeated and are no releases."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._raw = generator.bit_generator

    def words(self, count: int) -> Words:
        """See `Bits`."""
        return np.atleast_1d(np.asarray(self._raw.random_raw(count), dtype=np.uint64))


class Draws:
    """What samplers and algorithms ask of `np.random.Generator` for samples and coins, each law exactly, from `bits`.

    It has no other method, so an algorithm that would draw anything else, such as noise of its own, fails.
    """

    def __init__(self, bits: Bits) -> None:
        self._bits = bits

    def integers(self, high: int, size: int | None = None) -> Any:
        """Uniform on 0, …, high - 1, by rejection; `size` of them as an array, or one as an int."""
        count, high = 1 if size is None else int(size), int(high)
        if not 0 < high <= 2**63:
            raise ValueError(f"high: must be in 1 … 2**63, got {high}")
        # A whole multiple of `high`: of the words below it every remainder is as likely.
        below = 2**64 // high * high - 1  # the largest word that is kept
        kept = np.empty(0, dtype=np.uint64)
        while len(kept) < count:
            fresh = self._bits.words(count - len(kept))
            kept = np.concatenate([kept, fresh[fresh <= np.uint64(below)]])
        drawn = (kept % np.uint64(high)).astype(np.int64)
        return int(drawn[0]) if size is None else drawn

    def binomial(self, n: int, p: float) -> int:
        """The number of heads of n coins of probability ⌊p·2⁶⁴⌋/2⁶⁴ ≤ p.

        A Poisson sample's amplification grows with its rate, so a rate that is less by 2⁻⁶⁴ costs nothing more.
        """
        if not 0 <= p <= 1:
            raise ValueError(f"p: must be in [0, 1], got {p}")
        numerator, denominator = float(p).as_integer_ratio()
        threshold = (numerator << 64) // denominator
        if threshold >= 2**64:
            return int(n)
        return int(np.count_nonzero(self._bits.words(n) < np.uint64(threshold)))

    def choice(self, n: int, m: int, *, replace: bool, shuffle: bool) -> NDArray[np.int64]:
        """A uniformly random subset of m of 0, …, n - 1, in any order."""
        if replace or shuffle:
            raise ValueError("choice: only subsets without replacement, unordered")
        if m == 0:
            return np.empty(0, dtype=np.int64)
        # Sorting random words gives a uniform order; equal words would favour one, so they are drawn anew.
        keys = self._distinct(n)
        return np.argpartition(keys, m - 1)[:m] if m < n else np.arange(n)

    def permutation(self, n: int) -> NDArray[np.int64]:
        """A uniformly random order of 0, …, n - 1."""
        return np.argsort(self._distinct(n), kind="stable")

    def _distinct(self, n: int) -> Words:
        """n words; given that no two are equal, every order of them is as likely as every other."""
        while True:
            keys = self._bits.words(n)
            ordered = np.sort(keys)
            if not (ordered[1:] == ordered[:-1]).any():
                return keys


Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

PIECES = 32  # of an octave
DEGREE = 8
LEAST, MOST = 22, 53  # exponents e of the V in the table: V = m 2^e, m in [1/2, 1)
PRECISION = 110  # bits of what the table is computed with
LARGEST = 2.0**45  # of a scale: beyond, most draws would be in doubt
MORE = 64  # bits drawn when in doubt
FARTHEST = 2**62  # of an integer drawn; the seam keeps what it releases so far within this that nobody sees it
FIRST = 2.0**40  # the scale at which variables of a product are drawn first: few of them are in doubt
NEAR = 2.0**-34  # of √d, how near `radial_near` is


class Law(NamedTuple):
    """A symmetric law by its upper half.

    whole: log₂ of the denominator of q, q = V/2^whole. tail(x, mp): the q at which f is x, a decreasing function, in
    multiple precision. furthest: in scales, where the search for an integer begins.
    """

    name: str
    whole: int
    tail: Callable[[Any, Any], Any]
    furthest: float


NORMAL = Law("normal", 54, lambda x, mp: mp.erfc(x / mp.sqrt(2)) / 2, 120.0)
LAPLACE = Law("laplace", 53, lambda x, mp: mp.exp(-x), 7000.0)


def normal(scale: float | Floats, count: int, bits: Bits) -> Integers:
    """(count,) independent round(scale·N), N standard normal; scale: one or (count,), 0 < scale ≤ 2⁴⁵."""
    return _rounded(NORMAL, scale, bits.words(count), _fresh(bits))


def laplace(scale: float | Floats, count: int, bits: Bits) -> Integers:
    """(count,) independent round(scale·L), L of density e^{-|x|}/2; scale as of `normal`."""
    return _rounded(LAPLACE, scale, bits.words(count), _fresh(bits))


def radial(scale: float, count: int, bits: Bits) -> Integers:
    """(count,) round(scale·R), R of density ∝ e^{-‖x‖₂} in `count` dimensions; scale as of `normal`."""
    M, N = Normals(count + 1, bits), Normals(count, bits)
    value, error = _product(scale, M, N)
    nearest = np.rint(value)
    doubtful = np.flatnonzero(abs(value - nearest) + error >= 0.5)
    out = np.asarray(nearest, dtype=np.int64)
    for j in doubtful:
        # In doubt: more bits are drawn, until the rounding is sure.
        out[j] = min(max(_decided_product(scale, M, N, int(j)), -FARTHEST), FARTHEST)
    return out


def radial_near(count: int, bits: Bits) -> Floats | None:
    """(count,) within √count · 2⁻³⁴ of R in every entry; None with a probability below e⁻¹⁰⁰⁰, far in R's tails."""
    value, error = _product(1.0, Normals(count + 1, bits), Normals(count, bits))
    return value if error.max(initial=0) <= math.sqrt(count) * NEAR else None


def chosen(T: Integers, rate: float, bits: Bits) -> int:
    """j of probability ∝ e^{rate·T_j}, T (p,) integers within ±2⁵²: where a uniform number falls among their sums.

    In float64 an e^x, x ≤ 0, is off by |x|·2⁻⁵² (of x) and 2⁻⁴⁸ (sixteen units in the last place) times itself, or by
    2⁻¹⁰⁰⁰, and a sum of p by p·2⁻⁵³ of the total. As |x|e^x ≤ 1, all p together are within 2⁻⁴⁶p of a total ≥ 1. Where
    that leaves two, more bits and digits decide.
    """
    below = T - T.max()
    sums = np.cumsum(np.exp(rate * below.astype(np.float64)))
    V = int(bits.words(1)[0]) >> 11
    # Four times the bound above.
    error = 2.0**-44 * len(T) * float(sums[-1])
    ends = [(V + i) * 2.0**-53 * float(sums[-1]) + (2 * i - 1) * error for i in (0, 1)]
    first, last = np.searchsorted(sums, ends, side="right")
    if first == last < len(T):
        return int(first)
    return _chosen_by_digits(below, rate, V, _fresh(bits)(0))


def _chosen_by_digits(below: Integers, rate: float, V: int, further: Iterator[int]) -> int:
    mp = _multiple_precision()
    width = 53
    while True:
        V, width = V << MORE | next(further), width + MORE
        with mp.workprec(width + 64):
            sums = list(itertools.accumulate(mp.exp(mp.mpf(rate) * int(one)) for one in below))
            unit = sums[-1] * mp.mpf(2) ** -width
            slack = unit * mp.mpf(2) ** -16 * len(below)  # 2⁴⁸ times the error of a sum in this precision
            ends = [sum(one <= end for one in sums) for end in (V * unit - slack, (V + 1) * unit + slack)]
        if ends[0] == ends[1] < len(below):
            return int(ends[0])


class Normals:
    """(count,) independent standard normal variables, of which as many bits are drawn as are asked for."""

    def __init__(self, count: int, bits: Bits) -> None:
        self._bits, self._words = bits, bits.words(count)
        self._more: dict[int, list[int]] = {}  # the words of an entry beyond its first

    def rounded(self, scale: float) -> Integers:
        """(count,) round(scale·N), of the same N at every scale ≤ 2⁴⁵."""
        return _rounded(NORMAL, scale, self._words, self._further)

    def digits(self, j: int, width: int) -> int:
        """round(2^width · N_j), at any width."""
        word = int(self._words[j])
        size = _decided(NORMAL, word >> 11, 2.0**width, self._further(j))
        return size if word & 1 else -size

    def __len__(self) -> int:
        return len(self._words)

    def _further(self, j: int) -> Iterator[int]:
        drawn = self._more.setdefault(j, [])
        for i in itertools.count():
            if i == len(drawn):
                drawn.append(int(self._bits.words(1)[0]))
            yield drawn[i]


def _product(scale: float, M: Normals, N: Normals) -> tuple[Floats, Floats]:
    """(scale·‖M‖·N in float64, how far off that may be), each (d,), from the first 40 bits behind the point of both.

    u = 2⁻⁵³: squares are off by u of themselves, and so is what `fsum` makes of them, and the root.
    """
    step = 1 / FIRST
    m, x = M.rounded(FIRST) * step, N.rounded(FIRST) * step  # exact
    length = math.sqrt(math.fsum(m * m))
    off = length * 2.0**-51 + math.sqrt(len(m)) * step / 2  # of ‖M‖
    value = np.asarray(scale * length * x, dtype=np.float64)
    error = scale * (length * step / 2 + (abs(x) + step / 2) * off) + 2.0**-51 * abs(value)
    return value, error * (1 + 2.0**-40)


def _decided_product(scale: float, M: Normals, N: Normals, j: int) -> int:
    """round(scale·‖M‖·N_j), in integers of as many digits as that takes: ⌊|scale·‖M‖·N_j| + ½⌋ at both ends."""
    top, bottom = scale.as_integer_ratio()
    for width in itertools.count(80, 64):
        length = math.isqrt(sum(M.digits(i, width) ** 2 for i in range(len(M))))
        off = math.isqrt(len(M)) // 2 + 2  # of the root, and √p/2 of p numbers rounded
        size = N.digits(j, width)
        half = bottom << (2 * width)
        ends = [(top * (length + s * off) * (2 * abs(size) + s) + half) // (2 * half) for s in (-1, 1)]
        if size and ends[0] == ends[1]:
            return ends[0] if size > 0 else -ends[0]
    raise AssertionError


def _rounded(law: Law, scale: float | Floats, words: Words, further: Callable[[int], Iterator[int]]) -> Integers:
    """further(i): words of 64 bits that follow the first of entry i."""
    least, most = np.min(scale), np.max(scale)
    if not (least > 0 and most <= LARGEST):
        raise ValueError(f"scale: must be in (0, 2**45], got {least:g} … {most:g}")
    # 53 bits for the size, exact in float64, and the lowest bit for the sign: none is used twice.
    V = (words >> np.uint64(11)).astype(np.float64)  # 53 bits, exactly
    rounded, doubtful = _fast(law, V, scale)
    size = rounded.astype(np.int64)
    for i in np.flatnonzero(doubtful):
        one = float(scale if np.ndim(scale) == 0 else np.asarray(scale)[i])
        size[i] = min(_decided(law, int(V[i]), one, further(int(i))), FARTHEST)
    return np.where(words & np.uint64(1), size, -size)


def _fresh(bits: Bits) -> Callable[[int], Iterator[int]]:
    return lambda _: iter(lambda: int(bits.words(1)[0]), None)


def _fast(law: Law, V: Floats, scale: float | Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """(round(scale·f), whether that may be wrong), each of the shape of V."""
    m, e = np.frexp(V)
    inside = e >= LEAST
    piece = np.where(inside, (m * (2 * PIECES)).astype(np.intp) + (e.astype(np.intp) - LEAST - 1) * PIECES, 0)
    centres, coefficients = table(law)
    t = np.subtract(m, centres.take(piece), out=m)
    value = coefficients[DEGREE].take(piece)
    for k in range(DEGREE - 1, -1, -1):
        value *= t
        value += coefficients[k].take(piece)
    error = np.divide(1.26, np.maximum(V, 1.0), out=t)
    error += 2.0**-51 * (value + 1)
    error *= scale
    value *= scale
    nearest = np.rint(value)
    value -= nearest
    np.abs(value, out=value)
    value += error
    return nearest, (value >= 0.5) | ~inside


def _decided(law: Law, V: int, scale: float, further: Iterator[int]) -> int:
    """The least k ≥ 0 with tail((k + 1/2)/scale) < q, for the q whose first bits are V: more of them as needed."""
    mp = _multiple_precision()
    width = law.whole
    while True:
        V, width = V << MORE | next(further), width + MORE
        with mp.workprec(width + 64):
            unit = mp.mpf(2) ** -width
            slack = unit * mp.mpf(2) ** -32  # 2³² times the error of a tail in this precision
            ends = [_least(law, end, scale, mp) for end in (V * unit - slack, (V + 1) * unit + slack)]
        if ends[0] == ends[1] and ends[0] is not None:
            return ends[0]


def _least(law: Law, q: Any, scale: float, mp: Any) -> int | None:
    """The least k ≥ 0 with tail((k + 1/2)/scale) < q; None for q ≤ 0, where there is none."""
    if q <= 0:
        return None

    def fits(k: int) -> bool:
        return bool(law.tail((k + mp.mpf(0.5)) / mp.mpf(scale), mp) < q)

    low, high = 0, math.ceil(law.furthest * scale) + 1
    while not fits(high):
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        if fits(middle):
            high = middle
        else:
            low = middle + 1
    return low


@functools.cache
def table(law: Law) -> tuple[Floats, Floats]:
    """(centres (pieces,) of m, Taylor coefficients (DEGREE + 1, pieces) of f in m around them), octave by octave."""
    middles = (np.arange(PIECES, 2 * PIECES) + 0.5) / (2 * PIECES)
    octaves = np.arange(LEAST, MOST + 1)
    centres = np.tile(middles, len(octaves))
    exponents = np.repeat(octaves - law.whole, PIECES)
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
            # One step of Newton's method from twelve digits gives 24, more than float64 keeps.
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
