"""Errors that a user can mend: each is one line that names the argument and the fix."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable


class UserError(Exception):
    """A mistake in what the user asked for. The CLI prints it as one line and exits with code 2."""


class NotAtHand(UserError):
    """A data set whose files are neither prepared nor downloaded."""


class DataError(UserError):
    """Data that is not what it should be: a wrong hash, a wrong row count, NaN, rows beyond the declared bound."""


class PrivacyError(RuntimeError):
    """A release whose accounting is wrong or missing: a defect of an algorithm, never of its user."""


def system_error(error: BaseException | None) -> OSError | None:
    """The OSError that `error` is or was raised over: a full disk shows as the own errors of many libraries."""
    while error is not None and not isinstance(error, OSError):
        error = error.__cause__ or error.__context__
    return error


def reason(error: OSError) -> str:
    """What the system says, without what a library wraps around it."""
    return os.strerror(error.errno) if error.errno else " ".join(str(error).split()) or type(error).__name__


def nearest(name: str, known: Iterable[str]) -> str:
    """The tail of an "unknown name" line: the closest known name, or all of them.

    >>> nearest("dp-gf", ["dp-gd", "dp-sgd"])
    'did you mean dp-gd?'
    """
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"did you mean {close[0]}?"
    return f"known: {', '.join(known)}" if known else "none is registered"
