"""A function run in a process of its own, within bounds on processor time and memory."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

T = TypeVar("T")


class OutOfBounds(Exception):
    """It took more time or memory than it was given, or its process died."""


def bounded(function: Callable[[], T], seconds: int, memory: int) -> T:
    """The function's value, computed in a fork of this process; OutOfBounds where it exceeds what it may take.

    seconds: of the processor. memory: bytes of address space beyond what this process has. Where a system has no fork
    (Windows) it is called here, without bounds.
    """
    if not hasattr(os, "fork"):
        return function()
    # A fork inherits the function and its data, which a spawned process would have to pickle.
    fork = multiprocessing.get_context("fork")
    received, sent = fork.Pipe(duplex=False)

    def child() -> None:
        with contextlib.suppress(BaseException):  # a death: nothing is sent
            _limit(seconds, memory)
            sent.send(_outcome(function))

    process = fork.Process(target=child)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside BLAS's idle threads, which stay here
        process.start()
    # Else the pipe stays open when the child dies, and `recv` waits for ever.
    sent.close()
    try:
        value, error = received.recv()
    except EOFError:
        process.join()
        # The soft limit sends SIGXCPU, the hard one a second later SIGKILL.
        if process.exitcode in (-signal.SIGXCPU, -signal.SIGKILL):
            raise OutOfBounds(f"it takes more than {seconds} s") from None
        raise OutOfBounds("it takes more memory than it may, or died") from None
    process.join()
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
    # A killed check must not leave a dump of the archive's data on the disk.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":  # elsewhere the address space cannot be bounded
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[0])
        most = pages * resource.getpagesize() + memory
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
