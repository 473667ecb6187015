"""The functions of an array's own library, by NumPy's names: losses are written once, for NumPy and for devices.

A loss computes in NumPy in place, `out=`, so that its hot path allocates nothing. Arrays of other libraries cannot be
written to, and their compilers need no telling: there `out` is left out. So a loss has to go on with what a function
returns, never with the array it was asked to write into.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np


def namespace(array: Any) -> Any:
    """NumPy for its own arrays; for others what their `__array_namespace__` has, taking and ignoring `out`."""
    return np if isinstance(array, np.ndarray | np.generic) else _returning(array.__array_namespace__())


@functools.cache
def _returning(library: Any) -> Any:
    return _Returning(library)


class _Returning:
    """A library whose functions take `out`, and return what they would have written there."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = getattr(self._library, name)

        def returning(*arguments: Any, out: Any = None, **more: Any) -> Any:
            return function(*arguments, **more)

        return returning
