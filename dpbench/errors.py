"""Errors that a user can mend: each is one line that names the argument and the fix."""

from __future__ import annotations

import difflib
import errno
import functools
import math
import numbers
import operator
import os
import re
from collections.abc import Callable, Collection, Iterable
from traceback import extract_tb
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
Value = TypeVar("Value")

MANY = 20  # names that are more than a line
# How an ImportError ends whose library found no room; the loader tells no number.
UNLOADED = ("failed to map segment from shared object", "cannot allocate memory", "Cannot allocate memory")


class UserError(Exception):
    """A mistake in what the user asked for. The CLI prints it as one line and exits with code 2."""


class NotAtHand(UserError):
    """A data set whose files are neither prepared nor downloaded."""


class DataError(UserError):
    """Data that is not what it should be: a wrong hash, a wrong row count, NaN, rows beyond the declared bound."""


class OutOfReach(UserError):
    """An ε that no amount of noise gives under the accounting asked for."""


class Defect(RuntimeError):
    """An algorithm that breaks what it declared: a mistake in its code, never of its user."""


class PrivacyError(Defect):
    """A release whose accounting is wrong or missing."""


class WorkerDied(RuntimeError):
    """The process of a run ended before the run did."""


# Nothing that a terminal takes for a command, or that turns or hides what stands beside it.
HIDDEN = r"\x00-\x1f\x7f-\xa0\xad\u061c\u200b-\u200f\u2028-\u202f\u2060-\u206f\ud800-\udfff\ufeff\U000e0000-\U000e0fff"
SHOWN = rf"^[^{HIDDEN}]*\Z"


def one_line(text: str, most: int = 400) -> str:
    """The text in one line that a terminal only shows, and its first `most` characters.

    >>> one_line("a\\x1b[2J\\n  b")
    'a [2J b'
    """
    return " ".join(re.sub(f"[{HIDDEN}]", " ", text).split())[:most]


def in_words(error: BaseException, file: str = "") -> str:
    """An exception in one line: its kind, what it says, and which line of code raised it: of `file`, if one did.

    Of a mistake that is told in a sentence of its own, that sentence, and the line of `file`.
    """
    try:
        said = str(error)
    except Exception:  # of code that is not ours
        said = ""
    told = isinstance(error, UserError | Defect | WorkerDied)
    frames = extract_tb(error.__traceback__)
    own = [one for one in frames if one.filename == file] or ([] if told else frames)
    where = "".join(f" ({one_line(os.path.basename(one.filename), 80)}:{one.lineno})" for one in own[-1:])
    kind = type(error).__name__
    words = said or kind if told else f"{kind}: {said}" if said else kind
    return one_line(words, 400 - len(where)) + where


def positive(name: str, value: float) -> float:
    """`value` as a positive finite float; UserError, naming it, for any other."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise UserError(f"{name} must be a positive number, got {value!r}") from None
    if not 0 < number < math.inf:
        raise UserError(f"{name} must be a positive number, got {number:g}")
    return number


def at_least(name: str, value: Any, least: int = 1) -> int:
    """`value` as a whole number of `least` or more; UserError, naming it, for any other."""
    try:
        number = operator.index(value)
    except TypeError:
        raise UserError(f"{name} must be a whole number, got {value!r}") from None
    if number < least:
        raise UserError(f"{name} must be at least {least}, got {number}")
    return number


# How arguments are annotated, and what stands for it in a message.
KINDS: dict[str, tuple[type, str]] = {
    "str": (str, "a text"), "os.PathLike[str]": (os.PathLike, "a path"), "float": (numbers.Real, "a number"),
    "Collection[str]": (Collection, "a list"), "Iterable[str]": (Iterable, "a list"), "None": (type(None), "None"),
}  # fmt: skip


def names_arguments(function: Callable[P, Value]) -> Callable[P, Value]:
    """`function`; of a call that breaks as an argument is of another type than annotated, UserError with its name.

    Only of a call that breaks: what takes more than it is annotated for still takes it, and its own words come first.
    """

    @functools.wraps(function)
    def call(*given: P.args, **named: P.kwargs) -> Value:
        try:
            return function(*given, **named)
        except (AssertionError, AttributeError, TypeError) as error:
            import inspect  # which `import dpbench` does without

            signature = inspect.signature(function)
            try:
                arguments = signature.bind(*given, **named).arguments
            except TypeError:  # one is missing, or unknown: Python's own words name the function too
                raise error from None
            for name, value in arguments.items():
                kinds = str(signature.parameters[name].annotation).split(" | ")
                known = [KINDS[kind] for kind in kinds if kind in KINDS]
                if len(known) == len(kinds) and not isinstance(value, tuple(cls for cls, _ in known)):
                    what = " or ".join(words for _, words in known)
                    raise UserError(f"{name} must be {what}, got {one_line(repr(value), 80)}") from error
            raise

    return call


def system_error(error: BaseException | None) -> OSError | None:
    """The OSError that `error` is or was raised over: a full disk shows as the own errors of many libraries."""
    while error is not None and not isinstance(error, OSError):
        error = error.__cause__ or error.__context__
    return error


def out_of_memory(error: BaseException | None) -> bool:
    """Was `error` raised over memory that the system did not give, to Python or to the loader of a library?"""
    while error is not None:
        if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
            return True
        if isinstance(error, ImportError) and str(error).endswith(UNLOADED):
            return True
        if isinstance(error, SystemError) and "without exception set" in str(error):  # compiled code found no room
            return True
        error = error.__cause__ or error.__context__
    return False


def reason(error: OSError) -> str:
    """What the system says, without what a library wraps around it."""
    if not error.errno and "requested and" in str(error):  # NumPy counts what a full disk took
        return os.strerror(errno.ENOSPC)
    return os.strerror(error.errno) if error.errno else " ".join(str(error).split()) or type(error).__name__


def nearest(name: str, known: Iterable[str]) -> str:
    """The tail of an "unknown name" line: the closest known name, or all of them, or of many the nearest.

    >>> nearest("DP-GF", ["dp-gd", "dp-sgd"])
    'did you mean dp-gd?'
    """
    spelled, name = {one.casefold(): one for one in sorted(known)}, str(name)  # a caller may have given a number
    close = difflib.get_close_matches(name.casefold(), spelled, n=1)
    if close:
        return f"did you mean {spelled[close[0]]}?"
    if len(spelled) > MANY:
        some = [spelled[one] for one in difflib.get_close_matches(name.casefold(), spelled, n=5, cutoff=0)]
        return f"the nearest of {len(spelled)}: {', '.join(some)}"
    return f"known: {', '.join(spelled.values())}" if spelled else "none is registered"


def marked(name: str, private: bool, code: object) -> str:
    """A method's name, with what a reader must not miss: that no ε holds, or that its code ran beside the rows."""
    foreign = code if isinstance(code, str) and code != "built in" else ""
    marks = "; ".join(filter(None, ("" if private else "not private", foreign)))
    return f"{name} ({marks})" if marks else name


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "cell"), counted(1200, "run")
    ('1 cell', '1,200 runs')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


EXTRAS = {  # what each extra of pyproject.toml brings
    "dask": ("dask[distributed]>=2024.8",),
    "onnx": ("onnx>=1.16",),
}


def how_to_install(extra: str) -> str:
    """The tail of a "needs a library" line: the libraries themselves, so that it works beside a wheel, too.

    >>> how_to_install("dask")
    "run: pip install 'dask[distributed]>=2024.8'"
    """
    return f"run: pip install {' '.join(repr(one) for one in EXTRAS[extra])}"


def several(given: Any) -> list[Any]:
    """What may be one thing or several, as a list.

    >>> several("adult"), several((0.1, 1.0))
    (['adult'], [0.1, 1.0])
    """
    return [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)


def silent(*_: Any) -> None:
    """Takes progress and remarks where nobody listens."""
