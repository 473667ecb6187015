"""A window around the target and the middle of the columns, released before boosted SSP: `row_bound="window"`.

Bounds that are given too wide make noise large beside what a target really varies by, and rows long and alike. So the
fit first releases, each for a share of its budget (rows z have numbers in [-1, 1], a group of indicators at most one 1;
y in [-1, 1]; the neighbours replace one row, n is public):

    q₁, q₃   quartiles of y on a fixed public grid, by the exponential mechanism; window [q₁ - 2.5w, q₃ + 2.5w],
             w = q₃ - q₁, at least LEAST; t is y within it, brought to [-1, 1]
    m̃        mean of t, which moves by 2/n
    z̃        mean of z, which moves by 2√m/n: ‖z‖² ≤ m, the number of columns of numbers and of groups
    U²       mean of min(‖a‖², m), a = z - z̃, which moves by m/n: see `row_bound`

and then fits t - m̃ by rows a/U, those longer than U shortened. Each release takes what was released before for public
(adaptive composition). A prediction is m̃ + <x, w> within [-1, 1], brought back to the window.

Quartiles: probability ∝ e^{ε₀u(g)/2}, u(g) = -max(0, #{y < g} - pn, pn - #{y ≤ g}). A replaced row moves either count
by one at most, and so u: the privacy loss lies in an interval of length ε₀ (McSherry and Talwar 2007; Dong, Durfee and
Rogers 2020; for quantiles Smith 2011). For the bytes, 4u is an integer, and the choice is drawn exactly.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from dpbench.errors import PrivacyError, UserError
from dpbench.own import row_bound as row_bounds
from dpbench.own.row_bound import LABEL, SMALLER, Lengths, mechanisms_of, noisy_mean, shortened
from dpbench.privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu
from dpbench.privacy.accounting.tight import Tight
from dpbench.privacy.budget import Budget
from dpbench.privacy.check import guarantee
from dpbench.privacy.exact.sums import RowSensitivity, Sum
from dpbench.privacy.ledger import BoundedRange, Composition, CountedRelease, Gaussian, Relation

QUARTILES, MEAN, MIDDLES = "quartiles", "target mean", "column means"
LABELS = (QUARTILES, MEAN, MIDDLES, LABEL)
CHOICES = math.sqrt(0.6)  # ε₀ of a quartile, in μ: both together about 30 % of μ²
RANKS = 1000.0  # ε₀n at most: beyond, quartiles have no error left to lose
ROOM = 66.0  # 8 ln(grid): the least nμ√0.6 at which a quartile is likely within a few ranks of the true one
SHARES = {MEAN: 0.15, MIDDLES: 0.10, LABEL: 0.03}  # of the μ² that the quartiles leave; the model has the rest
LEAST, REACH = 1 / 256, 2.5  # the least w; how many w the window reaches beyond the quartiles
SETTINGS = {"clip": 0.3, "safety": 0.01}  # of boosted SSP within a window
BITS = 16  # of t and z
SPREAD = 0.5  # of a column's mean, before it is released


class WindowSplit(NamedTuple):
    """ε₀ of a quartile, the noise multipliers of the Gaussian releases, and (ε, δ) of the model."""

    choice: float
    mean: float
    middles: float
    length: float
    epsilon: float
    delta: float

    @property
    def release(self) -> Gaussian:
        """That of the bound on the rows."""
        return Gaussian(self.length)

    @property
    def planned(self) -> Composition:
        """What is released before the model."""
        return (
            CountedRelease(BoundedRange(self.choice), 2, QUARTILES),
            CountedRelease(Gaussian(self.mean), 1, MEAN),
            CountedRelease(Gaussian(self.middles), 1, MIDDLES),
            CountedRelease(self.release, 1, LABEL),
        )

    @property
    def parts(self) -> list[tuple[Composition, float, float]]:
        """As `privacy.check.compose` takes it."""
        return [(self.planned, math.inf, 0.0)]


class Window(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was released: ends of the window and the mean in it, of y in [-1, 1]; z̃ of the columns, the bound U."""

    low: float
    high: float
    mean: float
    middles: tuple[float, ...]
    bound: float

    def __post_init__(self) -> None:
        numbers = (self.low, self.high, self.mean, *self.middles)
        if not (all(-1 <= one <= 1 for one in numbers) and self.low < self.high and 0 < self.bound < math.inf):
            raise ValueError("its window is none that can be found")

    def rows(self, X: np.ndarray, unit: float, numbers: np.ndarray) -> np.ndarray:
        """Rows (n, d), a new array, of ‖·‖ ≤ 1 from encoded ones X = z/unit, whose first column is the intercept."""
        return shortened(self.centred(X, unit, numbers), 1 / self.bound)

    def centred(self, X: np.ndarray, unit: float, numbers: np.ndarray) -> np.ndarray:
        """a (n, d) of the same."""
        Z = unit * X.astype(float)
        # A number of 0 may be a missing cell, which says nothing: it counts as the mean in every row alike.
        A = np.where(numbers & (Z == 0), 0.0, Z - np.array(self.middles))
        A[:, 0] = 0.0
        A[X[:, 0] == 0] = 0.0  # a row that was dropped moves no model
        return A

    def residuals(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """t - m̃ (n,), 0 where the row was dropped."""
        return np.where(X[:, 0] == 0, 0.0, self.within(y) - self.mean)

    def within(self, y: np.ndarray) -> np.ndarray:
        """t (n,) in [-1, 1]: y in the window."""
        return np.asarray((np.clip(y, self.low, self.high) - self.middle) / self.half)

    def predictions(self, scores: np.ndarray) -> np.ndarray:
        """Of <x, w>, in [-1, 1] of the public bounds."""
        return np.asarray(self.middle + self.half * np.clip(self.mean + scores, -1.0, 1.0))

    @property
    def middle(self) -> float:
        """Of the window."""
        return (self.low + self.high) / 2

    @property
    def half(self) -> float:
        """Of its width."""
        return (self.high - self.low) / 2


class Ranks(Sum):
    """Scores (1, p) over n rows, each of which a neighbour moves by `most` integers; they are a choice's alone."""

    def __init__(self, integers: np.ndarray, unit: float, most: int, n: int) -> None:
        wide = integers.size * most**2
        super().__init__(integers, unit, RowSensitivity(wide, wide), within=float(most * n))
        self.most = most

    def each(self, relation: Relation) -> Any:
        """See `Sum.each`."""
        return self.most


def split(
    lengths: Lengths,
    n: int,
    epsilon: float,
    delta: float,
    relation: Relation,
    planned: Callable[[float, float], Sequence[tuple[Composition, float]]],
) -> WindowSplit:
    """The split of (ε, δ), from public numbers; UserError where there is no room. planned: see `first_within`."""
    if not (delta > 0 and relation is Relation.REPLACE_ONE and lengths.intercept and lengths.most):
        raise UserError(
            'row_bound: "window" is for numbers with an intercept and columns of numbers, at delta > 0, when one row '
            "is replaced; leave it out"
        )
    whole = gaussian_mu(epsilon, delta)
    if n * whole * CHOICES < ROOM:
        raise UserError(f'row_bound: {n} rows at ε = {epsilon:g} have no room for a "window"; leave it out')
    choice = min(whole * CHOICES, RANKS / n)
    mu = 1 / Tight().noise_scale(((Gaussian(1.0), 1),), ((BoundedRange(choice), 2),), epsilon, delta)

    def way(factor: float) -> WindowSplit:
        at = {label: 1 / (factor * mu * math.sqrt(share)) for label, share in SHARES.items()}
        model = gaussian_epsilon(factor * mu * math.sqrt(1 - sum(SHARES.values())), delta)
        return WindowSplit(choice, at[MEAN], at[MIDDLES], at[LABEL], model, delta)

    return row_bounds.first_within(map(way, SMALLER), epsilon, delta, relation, planned)


def grid() -> np.ndarray:
    """(p,) public points in [-1, 1]: 4,097 equal steps, and towards both ends geometric ones, to 10⁻⁴ of the whole."""
    near = 2 * np.exp(-np.arange(512) * math.log(1e4) / 512)
    return np.unique(np.concatenate([np.linspace(-1, 1, 4097), -1 + near, 1 - near]))


def ranks(y: np.ndarray, points: np.ndarray, quarter: int) -> np.ndarray:
    """(1, p) integers 4u(g), p = `quarter`/4: how far a point is from that quantile, times -4."""
    ordered = np.sort(y)
    below = 4 * np.searchsorted(ordered, points, "left")
    upto = 4 * np.searchsorted(ordered, points, "right")
    aim = quarter * len(y)
    return -np.maximum(0, np.maximum(below - aim, aim - upto))[None].astype(np.int64)


def release(
    X: np.ndarray,
    y: np.ndarray,
    lengths: Lengths,
    unit: float,
    way: WindowSplit,
    budget: Budget,
    *,
    seed: int | None = None,
    arithmetic: str | None = None,
) -> tuple[Window, list[dict[str, Any]]]:
    """(the window, the ledger's lines) of encoded rows X (n, d), z/unit, and y (n,) in [-1, 1].

    The others as of `row_bound.release`. Raises PrivacyError where what was drawn is not what was planned.
    """
    exact = arithmetic == "bytes" or (arithmetic is None and seed is None)
    key = secrets.token_hex(32) if seed is None else f"window/{budget}/{seed}"
    mechanisms = mechanisms_of(exact, seed)([key], budget)
    for entry in way.planned[:-1]:
        mechanisms.plan(entry.label, entry.release, entry.count)
    n, m, points = len(X), lengths.most + lengths.others, grid()
    y = np.clip(np.where(np.isfinite(y), y, 0.0), -1.0, 1.0)

    ends = []
    for quarter in (1, 3):
        scores = Ranks(ranks(y, points, quarter), 0.25, 4, n)
        values: Any = scores if exact else scores.integers * scores.unit
        chosen = mechanisms.exponential(values, sensitivity=1.0, epsilon=way.choice, label=QUARTILES)
        ends.append(float(points[int(chosen[0])]))
    low, high = sorted(ends)
    w = max(high - low, LEAST)
    window = Window(max(-1.0, low - REACH * w), min(1.0, high + REACH * w), 0.0, (0.0,) * X.shape[1], 1.0)

    t = np.rint(window.within(y) * 2**BITS).astype(np.int64)
    noisy = _noisy(mechanisms, t[:, None], 1, n, way.mean, MEAN, exact)
    mean = float(np.clip(noisy[0, 0], -1, 1))
    Z = np.trunc(np.clip(unit * X.astype(float), -1, 1) * 2**BITS).astype(np.int64)
    Z[:, 0] = 0
    Z[(Z * Z).sum(axis=1) > m << 2 * BITS] = 0  # there is none: the bound is that of the encoding
    noisy = _noisy(mechanisms, Z, m, n, way.middles, MIDDLES, exact)[0]
    if error := guarantee(mechanisms.ledger, 0, budget, LABELS[:-1]).error:
        raise PrivacyError(f"window: {error}")
    # Weighed against 0 by how much of it is noise, as of two normal laws.
    std = 2 * math.sqrt(m) / n * way.middles
    middles = np.clip(noisy / (1 + (std / SPREAD) ** 2), -1, 1)
    middles[0] = 0.0
    window = msgspec.structs.replace(window, mean=mean, middles=tuple(middles.tolist()))

    A = window.centred(X, unit, lengths.numbers)
    seen, std, ledger = noisy_mean(A, m, way.release, budget, seed, arithmetic)
    every = Lengths(np.ones(X.shape[1], bool), m, 0, 0)
    bound = row_bounds.bound_of(seen, std, every)
    return msgspec.structs.replace(window, bound=bound), [*mechanisms.ledger.summary(), *ledger]


def _noisy(mechanisms: Any, rows: np.ndarray, m: int, n: int, z: float, label: str, exact: bool) -> np.ndarray:
    """(1, w): the mean of integer rows (n, w) · 2⁻ᴮ of squared length ≤ m, with noise."""
    unit, square = 2.0**-BITS / n, m << 2 * BITS
    total = rows.sum(axis=0)[None]
    value: Any = Sum(total, unit, RowSensitivity(square, 4 * square)) if exact else total * unit
    return np.asarray(mechanisms.gaussian(value, sensitivity=2 * math.sqrt(m) / n, noise_multiplier=z, label=label))
