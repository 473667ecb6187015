"""A window around the target and the middle of the columns, released before squared loss is fitted: numbers' default.

Bounds that are given too wide make noise large beside what a target really varies by, and rows long and alike. So the
fit first releases, each for a share of its budget (rows z have numbers in [-1, 1], a group of indicators at most one 1;
y in [-1, 1]; the neighbours replace one row, n is public):

    window   one of the public `windows()` [l, h], of probability ∝ (h - l)^-a e^{ε₀c/2}, c the number of rows with
             l ≤ y ≤ h; t is y within it, brought to [-1, 1]
    m̃        mean of t, which moves by 2/n
    z̃        mean of z, which moves by 2√m/n: ‖z‖² ≤ m, the number of columns of numbers and of groups
    q        mean of min(‖a‖², m), a = z - z̃, which moves by m/n: see `row_bound`; U² = q(1 + max(1/m, (2r - 1)/m²)),
             r = √(nε₀/ROOM) ≥ 1: few columns make rows of unlike lengths, of which the long ones say most, and they
             cost less the more can be learnt

and then fits t - m̃ by rows a/U, those longer than U shortened. Each release takes what was released before for public
(adaptive composition). A prediction is m̃ + <x, w> within [-1, 1], brought back to the window.

Where nε₀ < FEW both means would be mostly noise. There t itself is fitted by rows (1, z)/U, and U is the private bound
of `row_bound`: the choice and that bound are all that is released first.

The window is drawn by the exponential mechanism with a public base measure (McSherry and Talwar 2007): a replaced row
moves a count by one at most, so the privacy loss lies in an interval of length ε₀, whatever the measure (Dong, Durfee
and Rogers 2020). For the bytes, (2a/ε₀) ln(h - l) is rounded to an integer, which is public, and the choice is drawn
exactly. A window half as wide is worth (2a ln 2)/ε₀ rows beyond it; a = 2r lets their share fall as more can be
learnt: as the best place to cut a heavy tail does. No width is worth more than n - 2·SURE/ε₀ rows, so that with few
rows a window without any is e^SURE times less likely than one that holds them all.

Where nε₀ < LEAST no window can be told from the others. There the median alone is released, at all of ε, and predicted
for every row: u(g) = -max(0, #{y < g} - n/2, n/2 - #{y ≤ g}) on a fixed public grid, which moves by one at most too
(Smith 2011).

With a unit a row counts a/2ᴮ, of which its person has 1 in all, and n is the number of persons (`problems.persons`). A
count is then a sum over persons of numbers in [0, 1], so all rows of one move it by one at most, and so each of the
scores above; means are of vectors in the convex hulls of a row's.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from dpbench.errors import PrivacyError
from dpbench.own import row_bound as row_bounds
from dpbench.own.row_bound import LABEL, SMALLER, WINDOW, Lengths, Planned, Releasing, noisy_mean, shortened
from dpbench.privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu
from dpbench.privacy.accounting.tight import Tight
from dpbench.privacy.budget import Budget
from dpbench.privacy.check import guarantee
from dpbench.privacy.exact_sums import RowSensitivity, Sum
from dpbench.privacy.ledger import BoundedRange, Composition, CountedRelease, Gaussian, Relation
from dpbench.problems.persons import OfPersons

MEDIAN, MEAN, MIDDLES = "median", "target mean", "column means"
LABELS = (WINDOW, MEDIAN, MEAN, MIDDLES, LABEL)
CHOICE = math.sqrt(1.2)  # ε₀, in μ: 30 % of μ²
LEAST, FEW, ROOM = 36.0, 46.7, 93.3  # nε₀ from which on a window is found, means are released, and a grows
MOST = 5.0  # the largest ε₀
DEEP = 187.0  # nε₀ from which on a window may be 1/1,024 of the bounds anywhere; below, 1/32
WIDTH = 2.0  # a there
SHARES = {MEAN: 0.15, MIDDLES: 0.10, LABEL: 0.03}  # of the μ² that the window leaves; the model has the rest
SURE = 12.0  # see above
CLIP, SAFETY, STEPS = 0.15, 0.03, 4000  # of the method within a window; most steps, which bound the time
METHODS = ("dp-gd-average", "boosted-ssp")
BESIDE = 0.15  # ε₀ of a choice alone, in ε: before a method whose releases add up
ROBUST = ("quantile", "pseudo-huber")  # families of losses of numbers that a choice alone goes before
LARGEST_EPSILON = 100.0
BITS = 16  # of t and z
SPREAD = 0.5  # of a column's mean, before it is released


class WindowSplit(NamedTuple):
    """ε₀ of the choice, the noise multipliers of the Gaussian releases, and (ε, δ) of the model.

    mean, middles, length: infinite where the median is all that is released.
    """

    choice: float
    mean: float
    middles: float
    length: float
    epsilon: float
    delta: float

    @property
    def alone(self) -> bool:
        """Whether the median is all that is released."""
        return math.isinf(self.mean)

    @property
    def release(self) -> Gaussian | BoundedRange:
        """That of the bound on the rows; of the median where there is none."""
        return BoundedRange(self.choice) if self.alone else Gaussian(self.length)

    @property
    def planned(self) -> Composition:
        """What is released before the model."""
        choice = CountedRelease(BoundedRange(self.choice), 1, MEDIAN if self.alone else WINDOW)
        if self.alone:
            return (choice,)
        return (
            choice,
            CountedRelease(Gaussian(self.mean), 1, MEAN),
            CountedRelease(Gaussian(self.middles), 1, MIDDLES),
            CountedRelease(self.release, 1, LABEL),
        )

    @property
    def parts(self) -> list[tuple[Composition, float, float]]:
        """As `privacy.check.compose` takes it."""
        return [(self.planned, self.choice if self.alone else math.inf, 0.0)]


class Window(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was released: ends of the window and the mean in it, of y in [-1, 1]; z̃ of the columns, the bound U.

    Of a median alone: both ends are it. intercept: whether the model has its own, and means were not released.
    """

    low: float
    high: float
    mean: float
    middles: tuple[float, ...]
    bound: float
    intercept: bool = False

    def __post_init__(self) -> None:
        numbers = (self.low, self.high, self.mean, *self.middles)
        inside = all(-1 <= one <= 1 for one in numbers) and self.low <= self.high and 0 < self.bound < math.inf
        if not inside or (self.intercept and (self.mean or any(self.middles))):
            raise ValueError("its window is none that can be found")

    def rows(self, X: np.ndarray, unit: float, numbers: np.ndarray) -> np.ndarray:
        """Rows (n, d), a new array, of ‖·‖ ≤ 1 from encoded ones X = z/unit, whose first column is the intercept."""
        return shortened(self.centred(X, unit, numbers), 1 / self.bound)

    def centred(self, X: np.ndarray, unit: float, numbers: np.ndarray) -> np.ndarray:
        """a (n, d) of the same."""
        Z = unit * X.astype(float)
        # A number of 0 may be a missing cell, which says nothing: it counts as the mean in every row alike.
        A = np.where(numbers & (Z == 0), 0.0, Z - np.array(self.middles))
        A[:, 0] *= self.intercept
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


def suits(lengths: Lengths, budget: Budget) -> bool:
    """Whether there can be a window: with an intercept and columns, at δ > 0, when one row is replaced.

    Nor at an ε that protects nobody: the second accountant's grid of a choice beside so little noise fills the memory.
    """
    columns = lengths.intercept and lengths.most + lengths.others
    paid = budget.epsilon <= LARGEST_EPSILON and budget.delta > 0
    return bool(columns and paid and budget.relation is Relation.REPLACE_ONE)


def settings(method: str, n: int, d: int) -> dict[str, Any]:
    """Those of the method within a window."""
    return {"clip": CLIP, "safety": SAFETY} | ({"work": 4.0 * n * d * STEPS} if method == "dp-gd-average" else {})


def split(n: int, lengths: Lengths, budget: Budget, planned: Planned) -> WindowSplit | row_bounds.BoundSplit:
    """The split of the budget, from public numbers. planned: see `first_within`."""
    epsilon, delta = budget.epsilon, budget.delta
    whole = gaussian_mu(epsilon, delta)
    choice = min(whole * CHOICE, MOST)
    # Where δ alone pays for most of μ, nothing of ε would be left for a model.
    if n * choice < (LEAST if lengths.most else FEW) or not gaussian_epsilon(0.65 * whole, delta):
        return WindowSplit(epsilon, math.inf, math.inf, math.inf, epsilon, delta)
    mu = 1 / Tight().noise_scale(((Gaussian(1.0), 1),), ((BoundedRange(choice), 1),), epsilon, delta)

    def way(factor: float) -> WindowSplit | row_bounds.BoundSplit:
        if n * choice < FEW:
            model = gaussian_epsilon(factor * mu * math.sqrt(1 - SHARES[LABEL]), delta)
            return row_bounds.BoundSplit(Gaussian(1 / (factor * mu * math.sqrt(SHARES[LABEL]))), model, delta, choice)
        at = {label: 1 / (factor * mu * math.sqrt(share)) for label, share in SHARES.items()}
        model = gaussian_epsilon(factor * mu * math.sqrt(1 - sum(SHARES.values())), delta)
        return WindowSplit(choice, at[MEAN], at[MIDDLES], at[LABEL], model, delta)

    return row_bounds.first_within(map(way, SMALLER), budget, planned)


def room_of(n: int, choice: float) -> float:
    """r ≥ 1: how much more can be learnt than where there is room for a window alone."""
    return max(1.0, math.sqrt(n * choice / ROOM))


@cache
def windows(deep: bool) -> np.ndarray:
    """(p, 2) public windows in [-1, 1]: all of it, 1/2 to 1/32 of it anywhere by halves, to 2⁻¹⁴ at either end.

    deep: to 1/1,024 anywhere; with few rows so many places would draw the choice away from the rows.
    """
    places = [(-1.0, 1.0)]
    for j in range(1, 15):
        w = 2.0 ** (1 - j)
        starts = range(2 ** (j + 1) - 1) if j <= (10 if deep else 5) else (0, 1, 2 ** (j + 1) - 3, 2 ** (j + 1) - 2)
        places += [(i * w / 2 - 1, i * w / 2 - 1 + w) for i in starts]
    return np.array(places)


def points() -> np.ndarray:
    """(p,) public points in [-1, 1]: 4,097 equal steps, and towards both ends geometric ones, to 10⁻⁴ of the whole."""
    near = 2 * np.exp(-np.arange(512) * math.log(1e4) / 512)
    return np.unique(np.concatenate([np.linspace(-1, 1, 4097), -1 + near, 1 - near]))


def below(y: np.ndarray, of: OfPersons, points: np.ndarray, side: Literal["left", "right"]) -> np.ndarray:
    """(p,) integers: the weights of the rows with y < a point ("left"), or ≤ it ("right")."""
    order = np.argsort(y, kind="stable")
    summed = np.append(0, np.cumsum(of.weights[order]))
    return np.asarray(summed[np.searchsorted(y[order], points, side)])


def counts(y: np.ndarray, choice: float, of: OfPersons) -> np.ndarray:
    """(1, p) integers, in 2⁻ᴮ: the rows within each of the `windows()`, less what its width costs, in rows."""
    low, high = windows(of.number * choice >= DEEP).T
    a = WIDTH * room_of(of.number, choice)
    worth = np.minimum(-2 * a / choice * np.log((high - low) / 2), max(0.0, of.number - 2 * SURE / choice))
    whole = np.rint(worth).astype(np.int64) << of.bits
    return (below(y, of, high, "right") - below(y, of, low, "left") + whole)[None]


def ranks(y: np.ndarray, points: np.ndarray, of: OfPersons) -> np.ndarray:
    """(1, p) integers 2u(g), in 2⁻ᴮ: how far a point is from the median, times -2."""
    n = of.number << of.bits
    less, upto = (2 * below(y, of, points, side) for side in ("left", "right"))
    return -np.maximum(0, np.maximum(less - n, n - upto))[None]


def release(
    X: np.ndarray, y: np.ndarray, lengths: Lengths, unit: float, way: WindowSplit, how: Releasing
) -> tuple[Window, list[dict[str, Any]]]:
    """(the window, the ledger's lines) of encoded rows X (n, d), z/unit, and y (n,) in [-1, 1].

    Raises PrivacyError where what was drawn is not what was planned.
    """
    of, exact = how.of_persons or OfPersons.once(len(X)), how.exact
    mechanisms = how.mechanisms(WINDOW)
    for entry in way.planned[:1] if way.alone else way.planned[:-1]:
        mechanisms.plan(entry.label, entry.release, entry.count)
    n, m = of.number, lengths.most + lengths.others
    y = np.clip(np.where(np.isfinite(y), y, 0.0), -1.0, 1.0)
    if way.alone:
        middle = float(points()[_chosen(mechanisms, ranks(y, points(), of), 2, MEDIAN, way.choice, of, exact)])
        window = Window(middle, middle, 0.0, (0.0,) * X.shape[1], 1.0)
    else:
        known = X[:, 0] != 0  # a row that was dropped, or has no target, tells nothing of where the others' are
        window = _drawn_window(mechanisms, y, way.choice, of, exact, X.shape[1], known)
        t = np.rint(window.within(y) * known * 2**BITS).astype(np.int64)
        noisy = _noisy(mechanisms, t[:, None], 1, of, way.mean, MEAN, exact)
        mean = float(np.clip(noisy[0, 0], -1, 1))
        Z = np.trunc(np.clip(unit * X.astype(float), -1, 1) * 2**BITS).astype(np.int64)
        Z[:, 0] = 0
        Z[(Z * Z).sum(axis=1) > m << 2 * BITS] = 0  # there is none: the bound is that of the encoding
        noisy = _noisy(mechanisms, Z, m, of, way.middles, MIDDLES, exact)[0]
        # Weighed against 0 by how much of it is noise, as of two normal laws.
        std = 2 * math.sqrt(m) / n * way.middles
        middles = np.clip(noisy / (1 + (std / SPREAD) ** 2), -1, 1)
        middles[0] = 0.0
        window = msgspec.structs.replace(window, mean=mean, middles=tuple(middles.tolist()), intercept=False)
    if error := guarantee(mechanisms.ledger, 0, how.budget, LABELS[:-1]).error:
        raise PrivacyError(f"window: {error}")
    if not isinstance(way.release, Gaussian):
        return window, mechanisms.ledger.summary()

    A = window.centred(X, unit, lengths.numbers)
    seen, std, ledger = noisy_mean(A, m, way.release, how)
    every = Lengths(np.ones(X.shape[1], bool), m, 0, 0)
    longer = max(1 / m, (2 * room_of(n, way.choice) - 1) / m**2)
    bound = min(row_bounds.bound_of(seen, std, every) * math.sqrt(1 + longer), math.sqrt(m))
    return msgspec.structs.replace(window, bound=bound), [*mechanisms.ledger.summary(), *ledger]


def choose(
    y: np.ndarray, choice: float, d: int, how: Releasing, known: np.ndarray | bool = True
) -> tuple[Window, list[dict[str, Any]]]:
    """(a window of d columns whose means are 0, the ledger's line) of y (n,) in [-1, 1] by the choice alone, at ε₀.

    known: (n,), which rows were not dropped. It goes before a method that finds its own intercept, and before the bound
    on the rows.
    """
    mechanisms = how.mechanisms(WINDOW)
    mechanisms.plan(WINDOW, BoundedRange(choice), 1)
    y = np.clip(np.where(np.isfinite(y), y, 0.0), -1.0, 1.0)
    of = how.of_persons or OfPersons.once(len(y))
    window = _drawn_window(mechanisms, y, choice, of, how.exact, d, known)
    if error := guarantee(mechanisms.ledger, 0, how.budget, (WINDOW,)).error:
        raise PrivacyError(f"window: {error}")
    return window, mechanisms.ledger.summary()


def _drawn_window(
    mechanisms: Any, y: np.ndarray, choice: float, of: OfPersons, exact: bool, d: int, known: np.ndarray | bool
) -> Window:
    """The window that is drawn, before any mean is known; rows that are not `known` count for none."""
    of = of._replace(weights=of.weights * known)
    places = windows(of.number * choice >= DEEP)
    low, high = places[_chosen(mechanisms, counts(y, choice, of), 1, WINDOW, choice, of, exact)]
    return Window(float(low), float(high), 0.0, (0.0,) * d, 1.0, intercept=True)


def _chosen(
    mechanisms: Any, integers: np.ndarray, most: int, label: str, choice: float, of: OfPersons, exact: bool
) -> int:
    """Which of the scores is drawn."""
    # Within ± 2n: a count is n at most, and so is what a narrow window is worth.
    scores = Scores(integers, most << of.bits, 2 * of.number << of.bits)
    values: Any = scores if exact else scores.integers * scores.unit
    return int(mechanisms.exponential(values, sensitivity=1.0, epsilon=choice, label=label)[0])


class Scores(Sum):
    """Scores (1, p), integers/`most` within ± `within`, each of which a neighbour moves by one: a choice's alone."""

    def __init__(self, integers: np.ndarray, most: int, within: int) -> None:
        wide = integers.size * most**2
        super().__init__(integers, 1 / most, RowSensitivity(wide, wide), within=float(within))
        self.most = most

    def each(self, relation: Relation) -> Any:
        """See `Sum.each`."""
        return self.most


def _noisy(mechanisms: Any, rows: np.ndarray, m: int, of: OfPersons, z: float, label: str, exact: bool) -> np.ndarray:
    """(1, w): the mean of integer rows (n, w) · 2⁻ᴮᴵᵀˢ of squared length ≤ m, with noise."""
    n, unit, square = of.number, 2.0**-BITS / of.number, m << 2 * BITS
    total = (of.weights @ rows)[None]
    value: Any = Sum(total, unit, RowSensitivity(square, 4 * square)).finer(of.bits) if exact else total * unit
    return np.asarray(mechanisms.gaussian(value, sensitivity=2 * math.sqrt(m) / n, noise_multiplier=z, label=label))
