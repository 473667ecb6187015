"""A function's value, computed in a fork of this process, which goes on meanwhile."""

from __future__ import annotations

import contextlib
import os
import pickle
import warnings
from collections.abc import Callable
from typing import Generic, TypeVar

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
