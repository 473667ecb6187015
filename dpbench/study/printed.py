"""Printed decimals: whether a computed number, rounded to a paper's digits, is the number that the paper prints.

All of it is done on decimal strings: a binary double has no ties, a printed number has.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal, InvalidOperation

EQUAL, TIE, OTHER = "equal", "tie", "other"
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


def with_deviation(mean: float, deviation: float, decimals: int) -> str:
    """A mean and a standard deviation as a paper prints them, both to the same digit.

    >>> with_deviation(0.621, 0.0094, 3)
    '0.621 ± 0.009'
    """
    return " ± ".join((shown(mean, decimals), shown(deviation, decimals)))


def roundings(value: float | str, text: str) -> dict[str, str]:
    """A computed value at the digits of a printed one, by rounding rule; the two differ at a tie alone.

    >>> roundings("0.0205", "0.021")
    {'half to even': '0.020', 'half up': '0.021'}
    """
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
        found = Decimal(text.replace(",", ""))
    except InvalidOperation:
        raise ValueError(f"printed number: {text!r} is no decimal number") from None
    if not found.is_finite():
        raise ValueError(f"printed number: {text!r} is not finite")
    return found
