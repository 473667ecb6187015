"""Printed numbers: their laws, and whether a computed one, rounded to a paper's digits, is what the paper prints.

Rounding is done on decimal strings: a binary double has no ties, a printed number has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal, InvalidOperation

import numpy as np

from dpbench.study import laws

MEAN, STD, COUNT, ALL, ROUNDED, FIXED = "mean", "std", "count", "all", "rounded mean", "fixed"  # laws of a number

EQUAL, TIE, OTHER = "equal", "tie", "other"
# Papers do not say how they round: NumPy rounds by the first rule, spreadsheets by the second.
RULES = {"half to even": ROUND_HALF_EVEN, "half up": ROUND_HALF_UP}
SIGNIFICANT = 12  # digits of a computed double that count: those after them are rounding errors of sums


def number(text: str) -> float:
    """The value of a printed number.

    >>> number("0.710"), number("5.6e-4")
    (0.71, 0.00056)
    """
    return float(_decimal(text))


def unit(text: str) -> float:
    """One unit of the last printed digit.

    >>> unit("0.710"), unit("375"), unit("5.6e-4")
    (0.001, 1.0, 1e-05)
    """
    return float(Decimal(1).scaleb(_exponent(text)))


def shown(value: float, decimals: int) -> str:
    """A number that a data file has as a float, with the decimals that the paper prints.

    >>> shown(0.71, 3), shown(375.0, 0)
    ('0.710', '375')
    """
    return f"{value:.{decimals}f}"


def roundings(value: float | str, text: str) -> dict[str, str]:
    """A computed value at the digits of a printed one, by rounding rule; the two differ at a tie alone.

    >>> roundings("0.0205", "0.021")
    {'half to even': '0.020', 'half up': '0.021'}
    """
    # Twelve digits of a double: those after them are errors of a sum's order, which would decide ties.
    exact = _decimal(value) if isinstance(value, str) else Decimal(f"{value:.{SIGNIFICANT}g}")
    step = Decimal(1).scaleb(_exponent(text))
    return {name: str(exact.quantize(step, rounding=rule)) for name, rule in RULES.items()}


def agreement(value: float | str, text: str) -> str:
    """`EQUAL` where the value rounds to the printed number; `TIE` where only one rounding rule does; else `OTHER`.

    >>> agreement(0.62049, "0.620"), agreement("0.0205", "0.021"), agreement("0.0205", "0.02")
    ('equal', 'tie', 'equal')
    """
    printed = _decimal(text)
    agree = [Decimal(rounded) == printed for rounded in roundings(value, text).values()]
    return EQUAL if all(agree) else TIE if any(agree) else OTHER


def _exponent(text: str) -> int:
    exponent = _decimal(text).as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0


def _decimal(text: str) -> Decimal:
    try:
        number = Decimal(text.replace(",", ""))
    except InvalidOperation:
        raise ValueError(f"printed number: {text!r} is no decimal number") from None
    if not number.is_finite():
        raise ValueError(f"printed number: {text!r} is not finite")
    return number


@dataclass(frozen=True)
class Number:
    """One printed number of a published value.

    quantity: its name in the runs; text: as printed, "0.710" ("yes" or "×" where law is `ALL`); k: over how many
    runs. law: `MEAN`; `STD` (ddof = 1); `COUNT` (of the k runs, how many; values 0 or 1); `ALL` (whether all k did);
    `ROUNDED` (a mean printed as a whole number); `FIXED` (nothing random: ours must round to it).
    count: of counts, whose laws are not normal. lowest: the least mean of a grid, which lies low.
    """

    quantity: str
    text: str
    law: str = MEAN
    k: int = 1
    count: bool = False
    lowest: bool = False

    def __post_init__(self) -> None:
        if self.law not in (MEAN, STD, COUNT, ALL, ROUNDED, FIXED):
            raise ValueError(f"number {self.quantity}: {self.law!r} is no law of a printed number")
        if self.law == ALL:
            if self.text not in ("yes", "×"):
                raise ValueError(f'number {self.quantity}: print "yes" or "×", not {self.text!r}')
        else:
            number(self.text)

    @property
    def value(self) -> float:
        return float(self.text == "yes") if self.law == ALL else number(self.text)

    @property
    def slack(self) -> float:
        return 0.0 if self.law == ALL else unit(self.text) / 2


def chance(
    number: Number, values: np.ndarray, tuned: Sequence[float] | None, counts: tuple[Number, Number] | None = None
) -> tuple[float, str]:
    """(chance of the printed number beside our runs, in words); the chance is nan where it cannot be tested.

    counts: the mean and the deviation that are printed of the same counts.
    """
    k, name = number.k, number.quantity
    if number.law == ALL:
        odds = laws.all_chance(values, number.text == "yes", k)
        return odds, f"{name}: ours {int(values.sum())} of {len(values)}, published {number.text}, {_p(odds)}"
    if number.law == COUNT:
        odds = laws.count_chance(values, int(number.value), k)
        said = f"{name}: ours {int(values.sum())} of {len(values)}, published {number.text} of {k}, {_p(odds)}"
        return odds, said
    if number.law == FIXED:
        agreed = agrees(number, values.tolist()) == EQUAL
        return float(agreed), f"{name}: ours {values[0]:.6g}, published {number.text}"
    finite = values[np.isfinite(values)]
    # The paper prints a finite number, so none of its k runs diverged.
    share = (len(finite) / len(values)) ** k  # of k runs, none diverges
    if len(finite) < min(len(values), laws.FEWEST):
        return 0.0, f"{name}: {len(values) - len(finite)} of {len(values)} of ours diverged"
    center, spread = float(finite.mean()), float(finite.std(ddof=1))
    ours = f"{name}: ours {center:.4g} (sd {spread:.2g}, N = {len(values)})"
    if number.law == ROUNDED:
        odds = share * laws.rounded_chance(finite, int(number.value), k)
        return odds, f"{ours}, published {number.text}, {_p(odds)}"
    if counts and number in counts and not spread and share == 1:  # one law for both: they say the same
        mean, std = counts
        odds = laws.odd_ones_chance(finite, (mean.value, mean.slack), (std.value, std.slack), k)
        sd = " sd" if number.law == STD else ""
        said = f"{name}: ours {center:.4g} in all of {len(values)}, published{sd} {number.text} (k = {k}), {_p(odds)}"
        return odds, said
    if number.law == STD:
        odds = share * float(laws.std_chance(finite, number.value, k, slack=number.slack, count=number.count))
        return odds, f"{name}: ours sd {spread:.3g}, published {number.text}, {_p(odds)}"
    # A mean of k is at least a kth of each run, where none is negative: the paper's runs had none beyond k times it.
    # One run is its own mean, which says nothing of the others.
    small = finite[finite <= k * (number.value + number.slack)] if k > 1 and finite.min() >= 0 else finite
    if 1 < len(small) < len(finite):
        share, finite = (len(small) / len(values)) ** k, small
    theirs = f"published {number.text} (k = {k})"
    # Student's t takes values that are nearly normal; few and skewed ones reject too often.
    skewed = spread > laws.SKEWED * abs(center) and len(values) < laws.MANY
    more = f" (spread wide: judge it by {laws.MANY} seeds)" if skewed else ""
    plain = share * float(laws.mean_chance(finite, number.value, k, slack=number.slack))
    # The least of a grid of noisy means lies below the mean of its winner: only that side is excused.
    if number.lowest and number.value + number.slack < center:
        if tuned is None:
            side = "on the better side of ours, where the least of a grid lies"
            return math.nan, f"{ours}, {theirs}, {_p(plain)}, but {side}"
        finite = np.asarray(tuned, dtype=float)
        odds = share * float(laws.mean_chance(finite, number.value, 1, slack=number.slack))
        return odds, f"{ours}, {theirs}, {_p(odds)} by the law of our tuned minimum ({finite.mean():.4g})"
    return plain, f"{ours}, {theirs}, {_p(plain)}{more}"


def _p(chance: float) -> str:
    return "chance < .001" if chance < 0.001 else f"chance {chance:.2g}"


def agrees(number: Number, ours: Sequence[float]) -> str:
    """Whether k runs of the published stream give the printed number: see `agreement`."""
    values = np.asarray(ours, dtype=float)
    if number.law == FIXED:
        return agreement(float(values[0]), number.text) if np.ptp(values) == 0 else OTHER
    if len(values) != number.k or not np.isfinite(values).all():
        return OTHER
    if number.law == ALL:
        return EQUAL if bool(values.all()) is (number.text == "yes") else OTHER
    return agreement(_statistic(number, values), number.text)


def _statistic(number: Number, values: np.ndarray) -> float:
    """What the paper prints of these runs."""
    if number.law == STD:
        return float(values.std(ddof=1))
    return float(values.sum() if number.law == COUNT else values.mean())


def missed(number: Number, ours: Sequence[float]) -> str:
    """What k runs of the published stream give instead of the printed number; a tie is named."""
    values = np.asarray(ours, dtype=float)
    if number.law == ALL:
        return f"{number.quantity}: {int(values.sum())} of {len(values)}, published {number.text}"
    if number.law != FIXED and len(values) != number.k:
        return f"{number.quantity}: {len(values)} runs, published of {number.k}"
    value = _statistic(number, values)
    if agrees(number, ours) == TIE:
        rules = ", ".join(f"{rule} gives {text}" for rule, text in roundings(value, number.text).items())
        return f"{number.quantity}: a rounding tie ({value:.6g}: {rules}), published {number.text}"
    return f"{number.quantity}: {value:.6g}, published {number.text}"


def named(number: Number) -> str:
    """A printed number by its name: "loss sd 0.022"."""
    return f"{number.quantity}{' sd' if number.law == STD else ''} {number.text}"
