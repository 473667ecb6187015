"""A function's value, computed in a fork of this process, which goes on meanwhile or waits, with bounds."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from dpbench.errors import silent

T = TypeVar("T")


class Died(Exception):
    """The fork ended without a value; `signal`: by which, 0 if by none."""

    def __init__(self, by: int) -> None:
        super().__init__(f"a process was killed by signal {by}" if by else "a process died")
        self.signal = by


class Forked(Generic[T]):
    """`function`, called in a fork, after `before` there. Its exceptions are for it to catch: they are a death."""

    def __init__(self, function: Callable[[], T], before: Callable[[], object] = silent) -> None:
        read, write = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside BLAS's idle threads, which stay here
            self._child = os.fork()
        if not self._child:
            code = 1
            with contextlib.suppress(BaseException):
                os.close(read)
                before()
                with os.fdopen(write, "wb") as pipe:
                    pickle.dump(function(), pipe)
                code = 0
            os._exit(code)
        os.close(write)
        self._pipe = os.fdopen(read, "rb")

    def value(self) -> T:
        """Waits for it; Died where there is none."""
        with self._pipe as pipe:
            sent = pipe.read()
        status = os.waitpid(self._child, 0)[1]
        if status or not sent:
            raise Died(os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0)
        value: T = pickle.loads(sent)
        return value


class OutOfBounds(Exception):
    """It took more time or memory than it was given, or its process died."""


def bounded(function: Callable[[], T], seconds: int, memory: int) -> T:
    """The function's value, computed in a fork of this process; OutOfBounds where it exceeds what it may take.

    seconds: of the processor. memory: bytes of address space beyond what this process has. Where a system has no fork
    (Windows) it is called here, without bounds.
    """
    if not hasattr(os, "fork"):
        return function()
    try:
        value, error = Forked(lambda: _outcome(function), lambda: _limit(seconds, memory)).value()
    except Died as death:
        if death.signal in (signal.SIGXCPU, signal.SIGKILL):
            raise OutOfBounds(f"it takes more than {seconds} s") from None
        raise OutOfBounds("it takes more memory than it may, or died") from None
    if error is not None:
        raise OutOfBounds(error)
    return cast(T, value)


def _outcome(function: Callable[[], Any]) -> tuple[Any, str | None]:
    try:
        return function(), None
    except MemoryError:
        return None, "it takes more memory than it may"


def _limit(seconds: int, memory: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":  # elsewhere the address space cannot be bounded
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[0])
        most = pages * resource.getpagesize() + memory
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
