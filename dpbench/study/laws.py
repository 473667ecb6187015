"""The laws that a printed number is held against: what a mean, a deviation or a count of k of our runs would be.

Each function returns two-sided chances: how often k runs like ours would print a number at least as far out. A printed
number stands for its whole rounding interval, so its nearest end counts. With at least `MANY` runs of ours the law is
the bootstrap's, widened by sqrt(1 + k/N) because our N are finite; with fewer it is Student's t and Fisher's F.
Leading axes of `ours` and `published` are published values side by side.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

LEVEL = 0.05  # of every test; intervals hold 1 - LEVEL
SEEN = 0.9  # the probability with which a resolution is noticed
MARGIN = 1.1  # a pooled ratio within ÷ MARGIN to × MARGIN is one
HALF, TWICE = 0.5, 2.0  # the factors on the noise that a verdict has to notice
MANY = 100  # runs of ours from which the bootstrap is used
FEWEST = 20  # runs of ours below which nothing is judged
SKEWED = 0.6  # coefficient of variation beyond which fewer than MANY runs reject too often
CURVES = 4  # the fewest that a pooled ratio takes
# A chance near LEVEL then has an error of .0015.
DRAWS = 20_000
BLOCK = 4_000_000  # numbers drawn at a time


def errors(tests: int = 1) -> float:
    """Standard errors beyond which a difference is one, where it is the largest of so many."""
    return NormalDist().inv_cdf(1 - LEVEL / (2 * tests))


ERRORS = errors()


def mean_chance(ours: Any, published: Any, k: int, *, slack: float = 0.0) -> np.ndarray:
    """Chance of the mean of k runs. ours: (…, N), published: (…); slack: half a unit of the last printed digit."""
    ours, published = _side_by_side(ours, published)
    center, N = ours.mean(axis=-1), ours.shape[-1]
    # A printed number stands for its rounding interval: its nearest end is compared.
    gap = np.maximum(np.abs(published - center) - slack, 0) * np.sign(published - center)
    if N >= MANY:
        law = _bootstrapped(ours, k, lambda drawn: drawn.mean(axis=-2))
        return _beyond(_widened(law, center, k, N), center + gap)
    from scipy.stats import t

    # Two samples of one law: theirs of k and ours of N both vary.
    error = ours.std(axis=-1, ddof=1) * math.sqrt(1 / k + 1 / N)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(gap == 0, 1.0, 2 * t.sf(np.abs(gap) / error, N - 1))


def std_chance(ours: Any, published: Any, k: int, *, slack: float = 0.0, count: bool = False) -> np.ndarray:
    """Chance of the standard deviation (ddof = 1) of k ≥ 2 runs; arguments as in `mean_chance`.

    count: of counts, most of which may be equal, so that Fisher's F does not hold: the bootstrap at any N.
    """
    ours, published = _side_by_side(ours, published)
    N, spread = ours.shape[-1], ours.std(axis=-1, ddof=1)
    nearest = published - np.clip(published - spread, -slack, slack)
    if N >= MANY or count:
        law = _bootstrapped(ours, k, lambda drawn: drawn.std(axis=-2, ddof=1))
        return _beyond(_widened(law, law.mean(axis=-1), k, N), nearest)
    from scipy.stats import f

    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(nearest == spread, 1.0, (nearest / spread) ** 2)
    tails = np.minimum(f.sf(ratio, k - 1, N - 1), f.cdf(ratio, k - 1, N - 1))
    chances: np.ndarray = np.where(nearest == spread, 1.0, np.minimum(1.0, 2 * tails))
    return chances


def resolution(ours: Any, k: int) -> float:
    """The gap between our mean and a printed mean of k that is seen with probability `SEEN`, for N values of ours."""
    from scipy.stats import norm

    values = np.asarray(ours, dtype=float)
    # Far enough for the test to reject, and further by what SEEN asks for.
    z = norm.isf(LEVEL / 2) + norm.isf(1 - SEEN)
    return float(z * values.std(ddof=1) * math.sqrt(1 / k + 1 / len(values)))


class Interval(NamedTuple):
    """An estimate and its interval, which holds 1 - `LEVEL`."""

    value: float
    low: float
    high: float

    def beyond(self, bar: float, *, below: bool = False) -> bool | None:
        """Whether the estimand is above `bar` (or below it): None where the interval has the bar in it.

        One seed alone has no interval: its value decides, and its words say so.
        """
        if self.low <= bar <= self.high or math.isnan(self.value):
            return None
        return bool(self.value > bar) is not below  # a bar of numpy's gives a bool of numpy's, which is no True

    def __str__(self) -> str:
        ends = "one seed" if math.isnan(self.low) else f"{self.low:.3g}, {self.high:.3g}"
        return f"{self.value:.3g} [{ends}]"


def mean_interval(values: Iterable[float]) -> Interval:
    """The mean of independent values with Student's t interval; infinitely wide for one value."""
    from scipy.stats import t

    sample = np.asarray(list(values), dtype=float)
    half = math.inf
    if len(sample) > 1:
        half = float(t.isf(LEVEL / 2, len(sample) - 1) * sample.std(ddof=1) / math.sqrt(len(sample)))
    value = float(sample.mean()) if len(sample) else math.nan
    return Interval(value, value - half, value + half)


def ratio_interval(mean: float, se: float, other: float, other_se: float) -> Interval:
    """The ratio of two independent positive means with their standard errors: normal on the logarithm."""
    value = mean / other
    # On the logarithm the interval is symmetric and its lower end stays positive.
    spread = math.exp(ERRORS * math.hypot(se / mean, other_se / other))
    return Interval(value, value / spread, value * spread)


def share_interval(some: int, of: int) -> Interval:
    """A share of independent cases with the exact interval of Clopper and Pearson."""
    from scipy.stats import beta

    low = float(beta.ppf(LEVEL / 2, some, of - some + 1)) if some else 0.0
    high = float(beta.isf(LEVEL / 2, some + 1, of - some)) if some < of else 1.0
    return Interval(some / of if of else math.nan, low, high)


def drawn_interval(value: float, drawn: Any) -> Interval:
    """An estimate with the central part of its values in resamples."""
    low, high = np.quantile(np.asarray(drawn, dtype=float), [LEVEL / 2, 1 - LEVEL / 2])
    return Interval(value, float(low), float(high))


def resampled(statistic: Callable[[np.random.Generator], float], draws: int) -> np.ndarray:
    """(draws,) A statistic of resamples, each drawn by its generator; the same in every report."""
    generator = np.random.Generator(np.random.PCG64DXSM(0))
    return np.array([statistic(generator) for _ in range(draws)])


class Pooled(NamedTuple):
    """The ratio ours / published of many values, and "match", "differs" or "cannot tell"."""

    ratio: Interval
    word: str
    curves: int
    values: int

    def __str__(self) -> str:
        return f"{self.ratio} ({self.word}; {self.values} values in {self.curves} curves)"


def pooled(ratios: Mapping[str, Sequence[float]]) -> Pooled | None:
    """Ratios by curve: the mean of their logarithms first within a curve, then over curves; None of too few curves."""
    # Points of one curve share their runs: each curve is one observation.
    logs = [float(np.mean(np.log(each))) for each in ratios.values() if len(each)]
    if len(logs) < CURVES:
        return None
    interval = mean_interval(logs)
    word = "cannot tell"
    if -math.log(MARGIN) <= interval.low and interval.high <= math.log(MARGIN):
        word = "match"
    elif not interval.low <= 0 <= interval.high:
        word = "differs"
    value = Interval(*(math.exp(one) for one in interval))
    return Pooled(value, word, len(logs), sum(map(len, ratios.values())))


def count_chance(happened: Any, printed: int, k: int) -> float:
    """Chance of `printed` of k runs, by the binomial law at our share: all counts no likelier than the printed one."""
    from scipy.stats import binom

    law = binom.pmf(np.arange(k + 1), k, np.mean(np.asarray(happened, dtype=float)))
    # Two-sided without symmetry: all counts no likelier than the printed one (the slack is for rounding).
    return float(law[law <= law[printed] * (1 + 1e-9)].sum())


def all_chance(happened: Any, printed: bool, k: int) -> float:
    """Chance that all of k runs end well, or (printed = False) that one at least does not, by the binomial law."""
    ended = float(np.mean(np.asarray(happened, dtype=float))) ** k
    return ended if printed else 1 - ended


def odd_ones_chance(ours: Any, mean: tuple[float, float], std: tuple[float, float], k: int) -> float:
    """Chance of a printed mean and deviation (each with its slack) of k counts where our N counts are all the same.

    Some of the k were then other than ours. m are the fewest that this mean and deviation allow, and of N + k runs of
    one law all m are among those k by C(k, m)/C(N + k, m). With d = mean - our count, m runs that carry all of it have
    deviations of Σ ≥ k d²(k/m - 1) in squares, so (k - 1) std² ≥ k d²(k - m)/m.
    """
    values = np.asarray(ours, dtype=float)
    gap, spread = max(abs(mean[0] - values[0]) - mean[1], 0.0), std[0] + std[1]
    if not gap and std[0] <= std[1]:
        return 1.0
    ratio = (k - 1) * spread**2 / (k * gap**2) if gap else math.inf
    m = max(1 if gap else 2, math.ceil(k / (1 + ratio) - 1e-9))
    return math.comb(k, m) / math.comb(len(values) + k, m)


def rounded_chance(ours: Any, printed: int, k: int) -> float:
    """Chance of a mean of k printed as a whole number: all whole numbers no likelier than it.

    A mean that ends in a half counts for the rounding rule, half to even or half up, that is kinder to the paper.
    """
    values = np.asarray(ours, dtype=float)[None, :]
    means = _bootstrapped(values, k, lambda drawn: drawn.mean(axis=-2))[0]
    chances = []
    for rounded in (np.rint(means), np.floor(means + 0.5)):
        numbers, counts = np.unique(rounded, return_counts=True)
        own = counts[numbers == printed].sum()
        # A number that was never drawn is rarer than one in so many, not impossible.
        chances.append(counts[counts <= own].sum() / DRAWS if own else 1 / (DRAWS + 1))
    return float(max(chances))


def benjamini_hochberg(chances: Any) -> np.ndarray:
    """Which of these chances stand when a share of at most `LEVEL` of those that do may be false."""
    chances = np.asarray(chances, dtype=float)
    order = np.argsort(chances, kind="stable")
    # The largest rank that is under the line decides, and all before it stand with it.
    below = chances[order] <= LEVEL * np.arange(1, len(chances) + 1) / max(1, len(chances))
    stands = np.zeros(len(chances), dtype=bool)
    stands[order[: below.nonzero()[0].max(initial=-1) + 1]] = True
    return stands


@functools.lru_cache(maxsize=8)
def _places(N: int, k: int, draws: int) -> np.ndarray:
    """The same places for every value: a report judged twice says the same."""
    return np.random.Generator(np.random.PCG64DXSM(k)).integers(N, size=(k, draws))


def _bootstrapped(ours: np.ndarray, k: int, of: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """(…, DRAWS): a statistic of k of ours, drawn with replacement; `of` takes (…, k, DRAWS)."""
    places = _places(ours.shape[-1], k, DRAWS)
    flat = ours.reshape(-1, ours.shape[-1])
    step = max(1, BLOCK // places.size)
    parts = [of(flat[at : at + step][:, places]) for at in range(0, len(flat), step)]
    return np.concatenate(parts).reshape(*ours.shape[:-1], DRAWS)


def _widened(law: np.ndarray, center: np.ndarray, k: int, N: int) -> np.ndarray:
    """The law drawn apart: our N values have a mean of their own, and vary by (N - 1)/N of what runs do."""
    around = np.asarray(center)[..., None]
    wider: np.ndarray = around + math.sqrt((1 + k / N) * N / max(1, N - 1)) * (law - around)
    return wider


def _beyond(law: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Twice the smaller tail; a law without any spread leaves its own value alone."""
    draws = law.shape[-1]
    near = np.asarray(value)[..., None]
    slack = 1e-12 * np.abs(near)
    above, below = (law >= near - slack).sum(axis=-1), (law <= near + slack).sum(axis=-1)
    # One is added above and below, so that no chance from draws is 0.
    chances: np.ndarray = np.minimum(1.0, 2 * (np.minimum(above, below) + 1) / (draws + 1))
    return chances


def _side_by_side(ours: Any, published: Any) -> tuple[np.ndarray, np.ndarray]:
    values = np.asarray(ours, dtype=float)
    return values, np.broadcast_to(np.asarray(published, dtype=float), values.shape[:-1])
