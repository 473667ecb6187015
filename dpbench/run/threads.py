"""One thread for linear algebra, wherever runs are made: their last bits do not depend on the machine's cores."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[Any]:
    """Inside, the libraries that are loaded now take one thread each."""
    limit: AbstractContextManager[Any] = _libraries(len(sys.modules)).limit(limits=1)
    return limit


@lru_cache(maxsize=1)
def _libraries(modules: int) -> ThreadpoolController:
    """Those loaded with so many modules: to look for them takes longer than a small fit."""
    return ThreadpoolController()
